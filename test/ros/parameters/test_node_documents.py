# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The pages about the nodes are true: faults, permissions, topics, services, parameters."""

import ast
from pathlib import Path
import re
import runpy
from time import sleep
from xml.etree import ElementTree

from harness import ros
import pytest
from rbd_ros._internal.setting import settings_of
from rbd_ros.ros.control.law_factory import ControlSettings
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.nodes.viewed_robot import KINDS as TOPICS_OF_THE_VIEWER
from rclpy.node import Node
from rclpy.parameter import Parameter
import yaml

ROOT = Path(__file__).parents[3]
# In place of what the code puts into a text.
GAP = '\0'
# Names, topics and numbers that the page of faults gives as examples.
EXAMPLE = r"(?<=')[^']*(?=')|/\w+|-?\b\d[\d.e+]*"
# What the node itself reads; all others are for its parts.
OF_THE_NODE = {'robot_description', 'gravity_limit', 'executor', 'autostart',
               'exit_unless_configured'}
# Values other than the default, of parameters for which `other_value` finds none.
OTHER_VALUES = {'gravity': [0.0, 0.0, 3.0], 'task_link': 'tool', 'ramp_time': 2.0}
# With what nodes use all that they can.
ROBOTS_OWN = ['--ros-args', '-r', '~/commands:=/dynamics/effort_commands']
USED = {
    DynamicsNode: ([], 'floating_base', True),
    TorqueController: ([], 'floating_base', True),
    SimulatedRobot: (ROBOTS_OWN, 'rate', 100.0),
    RobotInMujoco: (ROBOTS_OWN, 'push_link', 'tool')}


@pytest.fixture
def start():
    """Return a function that starts a node of a kind that uses all it can."""
    with ros():
        nodes = []

        def make(kind):
            arguments, name, value = USED[kind]
            nodes.append(kind(cli_args=arguments, parameter_overrides=[
                Parameter('use_sim_time', value=True), Parameter(name, value=value)]))
            return nodes[0]
        yield make
        for node in nodes:
            node.destroy_node()


@pytest.fixture
def node(start):
    """Return a dynamics node that uses all it can."""
    return start(DynamicsNode)


def test_every_fault_is_explained_to_an_operator_and_has_a_test():
    tables = [[int(row) for row in re.findall(r'^\| (\d+) \|', section, re.MULTILINE)]
              for section in (ROOT / 'doc/faults.md').read_text().split('\n## ')]
    assert tables == [sorted(table) for table in tables]
    rows = {row for table in tables for row in table}
    assert sorted(rows) == list(range(1, max(rows) + 1))
    tested = {int(row) for path in (ROOT / 'test').rglob('test_*.py')
              for row in re.findall(r'^def test_fault_(\d+)_', path.read_text(), re.MULTILINE)}
    assert rows == tested


def texts(tree):
    """Return the texts in a part of the code, with a gap in place of what is put into them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield ''.join(part.value if isinstance(part, ast.Constant) else GAP
                          for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_messages_on_the_page_of_faults_are_those_of_the_code():
    page = (ROOT / 'doc/faults.md').read_text()
    known = '\1'.join(text for path in (ROOT / 'rbd_ros').rglob('*.py')
                      for text in texts(ast.parse(path.read_text())))
    seen = ''.join(re.findall(r'^\| \d+ \| ([^|]*) \|', page, re.MULTILINE))
    quoted = [part.strip(' ,:') for quote in re.findall('`([^`]+)`', seen)
              for part in quote.split('…') if part.strip()]
    assert len(quoted) > 80
    for quote in quoted:
        assert quote in known or re.sub(EXAMPLE, GAP, quote) in known, quote


def test_every_program_with_a_node_has_a_policy():
    programs = set(re.findall(r"'(\w+) = rbd_ros\.ros\.", (ROOT / 'setup.py').read_text()))
    files = {path.name.removesuffix('.policy.xml') for path in (ROOT / 'config/sros2').iterdir()}
    assert files == {name.removesuffix('_node') for name in programs} - {'foxglove_layout', 'rbd'}


# -- Topics and services. ------------------------------------------------------------------------

# Beginnings of the names that rclpy gives every node.
OF_RCLPY = ('/clock', '/parameter_events', '/rosout', 'rcl_interfaces/', 'lifecycle_msgs/',
            'type_description_interfaces/')


def tables(text):
    """Return {first head of a table: {name in backquotes: other cells}} of a page, or a part."""
    found, table = {}, None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip('|').split(' | ')]
        if not line.startswith('|'):
            table = None
        elif table is None:
            table = found.setdefault(cells[0], {})
        elif cells[0].startswith('`'):
            name = cells[0].strip('`')
            assert name not in table, name
            table[name] = cells[1:]
    return found


def section(title):
    """Return the tables of a section of the page of topics and services."""
    page = (ROOT / 'doc/interfaces.md').read_text(encoding='utf-8')
    return tables(page.partition(f'\n## {title}\n')[2].partition('\n## ')[0])


def used(node):
    """Return the topics and services that a node uses, as the page lists them, with types."""
    own = node.get_fully_qualified_name() + '/'

    def listed(things, topic, kind):
        found = {}
        for one in things:
            package, folder = getattr(one, kind).__module__.split('.')[:2]
            short, name = f'{package}/{getattr(one, kind).__name__}', getattr(one, topic)
            if not short.startswith(OF_RCLPY) and not name.startswith(OF_RCLPY):
                assert folder in ('msg', 'srv')
                found['~/' + name.removeprefix(own) if name.startswith(own)
                      else name if name == '/diagnostics' else name.lstrip('/')] = short
        return found
    return {'subscribed topic': listed(node.subscriptions, 'topic_name', 'msg_type'),
            'published topic': listed(node.publishers, 'topic_name', 'msg_type'),
            'service': listed(node.services, 'srv_name', 'srv_type')}


def types(section):
    """Return the types that a section of the page gives."""
    return {head: {name: cells[0] for name, cells in rows.items()}
            for head, rows in section.items()}


def listed(kind):
    """Return what the page lists for a kind of node."""
    if kind in (SimulatedRobot, RobotInMujoco):
        page = types(section('The simulated robots')) | {'service': {}}
        topics = page['subscribed topic']
        topics['dynamics/effort_commands'] = topics.pop('~/commands')
        if kind is SimulatedRobot:
            assert topics.pop('~/push')
        return page
    common, own = types(section('The dynamics node')), types(section('The torque controller'))
    return {head: common[head] | (own[head] if kind is TorqueController else {})
            for head in common}


@pytest.mark.parametrize('kind', USED)
def test_page_and_policy_have_exactly_the_topics_and_services_of_the_node(start, kind):
    if kind is RobotInMujoco:
        pytest.importorskip('mujoco')       # there are no wheels for Python 3.10
    node = start(kind)
    name = node.get_name()
    if kind in (SimulatedRobot, RobotInMujoco):
        node._describe()                    # which it does if nobody else has
        assert {**used(node), 'service': {}} == listed(kind)
    else:
        assert used(node) == listed(kind)
    observer = Node('observer')
    sleep(1.0)
    profile = ElementTree.parse(ROOT / f'config/sros2/{name}.policy.xml').find('.//profile')
    assert (profile.get('ns'), profile.get('node')) == ('/', name)

    def allowed(kind, way):
        return {name.text for name in profile.find(f"{kind}[@{way}='ALLOW']")}

    for kind, way, names in (
            ('topics', 'publish', observer.get_publisher_names_and_types_by_node),
            ('topics', 'subscribe', observer.get_subscriber_names_and_types_by_node),
            ('services', 'reply', observer.get_service_names_and_types_by_node)):
        assert allowed(kind, way) == {used_name for used_name, _ in names(name, '/')}
    assert not observer.get_client_names_and_types_by_node(name, '/')
    observer.destroy_node()


def test_the_page_lists_exactly_the_topics_of_the_viewer():
    page = types(section('The viewer'))
    assert page.keys() == {'subscribed topic'}
    assert page['subscribed topic'] == {'robot_description': 'std_msgs/String'} | {
        name: f'{kind.__module__.split(".")[0]}/{kind.__name__}'
        for name, kind in TOPICS_OF_THE_VIEWER.items()}


def test_the_short_list_of_the_readme_agrees_with_the_page():
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (`[^|]*) \| ([\w/, ]+) \| ', readme.partition(
        '| topic |')[2].partition('\n\n')[0], re.MULTILINE)
    page = types(section('The dynamics node'))
    known = page['subscribed topic'] | page['published topic']
    assert len(rows) == 10
    for names, kinds in rows:
        names, kinds = re.findall('`([^`]+)`', names), kinds.split(', ')
        assert kinds == list(dict.fromkeys(known[name] for name in names))


# -- Parameters. ---------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def page():
    """Return the generated page of parameters and launch arguments, by sections."""
    text = runpy.run_path(str(ROOT / 'doc/generate.py'))['parameters_page']()
    return {part.partition('\n')[0].strip('# '): tables(part).get('name', {})
            for part in re.split(r'\n(?=##)', text)}


def test_parameters_are_on_the_page_as_they_may_change(page):
    declared = DynamicsNode.settings
    for heading, changeable in (('May be set while the node runs', True),
                                ('Read when the node is configured', False)):
        rows = page[heading]
        assert rows.keys() == {x for x, one in declared.items() if one.changeable == changeable}
        for name, (_, meaning) in rows.items():
            assert meaning.replace('\\', '').startswith(declared[name].description)
    assert page['The torque controller'].keys() == set(settings_of((ControlSettings,)))


def test_defaults_on_the_page_are_those_of_the_code(page):
    listed = page['May be set while the node runs'] | page['Read when the node is configured']
    checked = 0
    for name, setting in DynamicsNode.settings.items():
        default = yaml.safe_load(listed[name][0].strip('`') or "''")
        first = list(setting.default) if isinstance(setting.default, tuple) else setting.default
        assert default == first and type(default) is type(first), name
        checked += bool(first) or not isinstance(first, list)
    assert checked > 30


@pytest.mark.parametrize('name, settings', [
    ('dynamics', DynamicsNode.settings), ('torque_controller', settings_of((ControlSettings,)))])
def test_parameters_are_in_a_file_of_defaults_and_those_of_modes_explained(name, settings):
    page = (ROOT / 'doc/how_to/torque_controller.md').read_text()
    text = (ROOT / f'config/{name}.param.yaml').read_text()
    values = yaml.safe_load(text)['/**']['ros__parameters']
    for label, one in settings.items():
        assert re.search(rf'^    (# )?{label}:', text, re.MULTILINE), label
        assert label not in values or values[label] == (
            list(one.default) if isinstance(one.default, tuple) else one.default), label
        assert name == 'dynamics' or (one.changeable and f'`{label}`' in page), label


def other_value(name, setting):
    """Return a value of a parameter that is accepted and not its default."""
    default = setting.default
    if name in OTHER_VALUES:
        return OTHER_VALUES[name]
    if isinstance(default, bool):
        return not default
    if setting.choices:
        return next(one for one in setting.choices if one != default)
    return type(default)(min(default + 1.0, setting.high))


def test_every_parameter_is_used_and_its_changes_reach_all_parts_that_use_it(node):
    parts = (node.commands, node.current, node.listening, node.publishing, node.forces,
             node.compensation)

    def settings():
        return [node.current._robot_settings, node.answering.settings,
                *(part._settings for part in parts)]

    # Those of a group are used together.
    assert OF_THE_NODE | {name for one in settings() for name in one._fields} == {
        name.partition('.')[0] for name in DynamicsNode.settings}
    for name, one in DynamicsNode.settings.items():
        if not one.changeable:
            continue
        value = other_value(name, one)
        before = [getattr(one, name) for one in settings() if name in one._fields]
        result, = node.set_parameters([Parameter(name, value=value)])
        assert result.successful, result.reason
        value = tuple(value) if isinstance(value, list) else value
        assert value not in before
        assert {getattr(one, name) for one in settings() if name in one._fields} <= {value}
