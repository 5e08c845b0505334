# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is written about the node is true: its faults, its rights and its parameters."""

import ast
from pathlib import Path
import re
from time import sleep
from xml.etree import ElementTree

from harness import ros
import pytest
from rbd_ros.ros.control import control_parameters
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.parameters.parameters import CHANGEABLE, DESCRIPTIONS
from rclpy.node import Node
from rclpy.parameter import Parameter
import yaml

ROOT = Path(__file__).parents[2]
# In place of what the code puts into a text.
GAP = '\0'
# Names, topics and numbers that the page of faults gives as examples.
EXAMPLE = r"(?<=')[^']*(?=')|/\w+|-?\b\d[\d.e+]*"
# What the node itself reads; all others are for its parts.
OF_THE_NODE = {'robot_description', 'gravity_limit', 'executor', 'autostart'}
# Of every parameter that may change, a value that is not its default.
OTHER_VALUES = {
    'publish_rate': 50.0, 'gravity': [0.0, 0.0, 3.0], 'gravity_limit': 40.0, 'friction': True,
    'friction_dead_band': 0.5, 'model_changes': 'never', 'state_timeout': 2.0,
    'check_stamps': False, 'missing_velocity': 'zero', 'velocity_filter': 0.1, 'on_stale': 'hold',
    'implausible_velocity': 5.0, 'ramp_time': 2.0, 'blend_time': 2.0, 'effort_rate_limit': 5.0,
    'limit_efforts': True, 'task_link': 'tool',
    'marker_rate': 5.0, 'condition_limit': 50.0, 'coriolis_factorization': 'body'}
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
    assert rows <= tested


def messages():
    """Return all texts of the code, with a gap in place of what is put into them."""
    found = []
    for path in (ROOT / 'rbd_ros').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append(''.join(part.value if isinstance(part, ast.Constant) else GAP
                                     for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_messages_on_the_page_of_faults_are_those_of_the_code():
    page, known = (ROOT / 'doc/faults.md').read_text(), messages()
    seen = re.findall(r'^\| \d+ \| ([^|]*) \|', page, re.MULTILINE)
    quoted = [part.strip(' ,:') for text in seen for quote in re.findall('`([^`]+)`', text)
              for part in quote.split('…') if part.strip()]
    assert len(quoted) > 80
    for quote in quoted:
        pattern = re.sub(EXAMPLE, GAP, quote)
        assert any(quote in text or pattern in text for text in known), quote


@pytest.mark.parametrize('kind', USED)
def test_the_policy_names_exactly_the_topics_and_services_of_the_node(start, kind):
    if kind is RobotInMujoco:
        pytest.importorskip('mujoco')       # there are no wheels for Python 3.10
    node = start(kind)
    name = node.get_name()
    if isinstance(node, SimulatedRobot):
        node._describe()                    # which it does if nobody else has
    observer = Node('observer')
    sleep(1.0)
    profile = ElementTree.parse(ROOT / f'config/sros2/{name}.policy.xml').find('.//profile')
    assert (profile.get('ns'), profile.get('node')) == ('/', name)

    def allowed(kind, way):
        return {name.text for name in profile.find(f"{kind}[@{way}='ALLOW']")}

    for kind, way, used in (
            ('topics', 'publish', observer.get_publisher_names_and_types_by_node),
            ('topics', 'subscribe', observer.get_subscriber_names_and_types_by_node),
            ('services', 'reply', observer.get_service_names_and_types_by_node)):
        assert allowed(kind, way) == {used_name for used_name, _ in used(name, '/')}
    assert not observer.get_client_names_and_types_by_node(name, '/')
    observer.destroy_node()


def test_every_program_with_a_node_has_a_policy():
    programs = set(re.findall(r"'(\w+) = rbd_ros\.ros\.", (ROOT / 'setup.py').read_text()))
    files = {path.name.removesuffix('.policy.xml') for path in (ROOT / 'config/sros2').iterdir()}
    assert files == {name.removesuffix('_node') for name in programs}


def test_parameters_are_described_listed_and_in_the_file_of_defaults(node):
    readme = (ROOT / 'README.md').read_text().partition('| parameter |')[2].partition('\n\n')[0]
    defaults = (ROOT / 'config/dynamics.param.yaml').read_text()
    for name in node._parameters:
        if name in ('use_sim_time', 'start_type_description_service'):
            continue
        descriptor = node.describe_parameter(name)
        assert descriptor.description
        assert descriptor.read_only == (name not in CHANGEABLE)
        row, = re.findall(rf'^\|[^|]*`{name}`[^|]*\|', readme, re.MULTILINE)
        assert ('*' in row) == (name in CHANGEABLE)
        assert re.search(rf'^    (# )?{name}:', defaults, re.MULTILINE), name
        value = node.get_parameter_or(name).value
        if isinstance(value, float):
            limits, = descriptor.floating_point_range
            assert limits.from_value <= value <= limits.to_value


def test_parameters_of_the_torque_controller_are_described_listed_and_in_a_file(start):
    node = start(TorqueController)
    page = (ROOT / 'doc/how_to/torque_controller.md').read_text()
    defaults = (ROOT / 'config/torque_controller.param.yaml').read_text()
    values = yaml.safe_load(defaults)['/**']['ros__parameters']
    assert set(control_parameters.DESCRIPTIONS) < set(node._parameters)
    for name in control_parameters.DESCRIPTIONS:
        descriptor, value = node.describe_parameter(name), node.get_parameter_or(name).value
        assert descriptor.description and not descriptor.read_only
        assert f'`{name}`' in page, name
        assert re.search(rf'^    (# )?{name}:', defaults, re.MULTILINE), name
        assert name not in values or values[name] == (
            value if isinstance(value, (str, float)) else list(value)), name
        if isinstance(value, float):
            limits, = descriptor.floating_point_range
            assert limits.from_value <= value <= limits.to_value


def test_every_parameter_is_used_and_its_changes_reach_all_parts_that_use_it(node):
    assert set(OTHER_VALUES) == set(CHANGEABLE)
    parts = (node.commands, node.current, node.listening, node.publishing, node.answering,
             node.analysing, node.health, node.forces, node.filling, node.compensation)

    def settings():
        return [node.current._robot_settings, *(part._settings for part in parts)]

    # Those of a group are used together.
    assert OF_THE_NODE | {name for one in settings() for name in one._fields} == {
        name.partition('.')[0] for name in DESCRIPTIONS}
    for name, value in OTHER_VALUES.items():
        before = [getattr(one, name) for one in settings() if name in one._fields]
        result, = node.set_parameters([Parameter(name, value=value)])
        assert result.successful, result.reason
        value = tuple(value) if isinstance(value, list) else value
        assert value not in before
        assert {getattr(one, name) for one in settings() if name in one._fields} <= {value}
