# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Instructions on the pages work: Python runs, commands use existing names, links resolve."""

from argparse import ArgumentParser
import ast
import doctest
from functools import cache
import importlib
import inspect
from itertools import pairwise
import os
from pathlib import Path
import re
import runpy
import shlex
import subprocess
import sys

import harness
from harness import Harness, keep_sending, ros
import numpy as np
import pytest
import rbd_ros
from rbd_ros.cli.common.terminal import Parser
from rbd_ros.cli.main import main as rbd_ros_command
from rbd_ros.model.files.constraint_elements import constraints_of
from rbd_ros.model.files.constraint_files import read_constraints
from rbd_ros.model.files.xml_elements import parse
from rbd_ros.ros.launch import bringup_plan
from rbd_ros.ros.launch import launch_plan
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.nodes.viewer import ViewerNode
from rbd_ros.ros.parameters.parameters import checked_value
from rclpy.parameter import Parameter
import yaml

ROOT = Path(__file__).parents[2]
DOC = ROOT / 'doc'
PAGES = {str(path.relative_to(DOC)): path.read_text(encoding='utf-8')
         for path in sorted(DOC.rglob('*.md')) if 'generated' not in path.parts}
# Pages that GitHub shows without a build.
OTHERS = {f'../{name}': (ROOT / name).read_text(encoding='utf-8')
          for name in ('README.md', 'CONTRIBUTING.md', 'QUALITY_DECLARATION.md')}
ARM = (ROOT / 'urdf/demo_arm.urdf').read_text(encoding='utf-8')
JOINTS = re.findall(r'<joint name="(\w+)" type="revolute"', ARM)
STATE = JOINTS, [0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0], [0.0] * 7
# s: a separate process, which first imports ROS, on a shared machine
PATIENCE = 60.0
# Commands of other programs, which are not run.
OF_OTHERS = ('git', 'mkdir', 'cd', 'ln', 'source', '.', 'pip', 'python3', 'rosdep', 'colcon',
             'export', 'docker', 'bloom-release', '.venv/bin/twine')
TARGETS = re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(), re.MULTILINE)


def blocks(text, language):
    """Return the first lines and the texts of the fenced blocks of a page."""
    return [(text[:found.end(1)].count('\n') + 2, found[2]) for found in re.finditer(
        rf'^(```{language})\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)]


def commands(language, programs=''):
    """Return page and words of every command of the shell, or of programs, on the pages."""
    return [(page, shlex.split(line)) for page, text in {**PAGES, **OTHERS}.items()
            for _, block in blocks(text, language)
            for part in block.replace('\\\n', ' ').splitlines()
            for line in part.partition('  #')[0].split(' && ')
            if line.strip() and line.startswith(programs)]


PYTHON = {page: blocks(text, 'python') for page, text in PAGES.items()}
FOR_ROS = [page for page, found in PYTHON.items() if any('rclpy' in code for _, code in found)]
FOR_THE_LIBRARY = [page for page, found in PYTHON.items() if found and page not in FOR_ROS]
COMMANDS = commands('bash')
# Commands that need files, robots or nodes which a test lacks.
SKETCHED = [words for _, words in commands('text', ('rbd_ros ', 'ros2 service call '))]
# A page whose code is one interactive session.
SESSION = 'how_to/without_ros2.md'


def compiled(page):
    """Return the code of a page, block by block, with its line numbers."""
    return [compile('\n' * (line - 1) + code, str(DOC / page), 'exec')
            for line, code in PYTHON[page]]


def test_every_recipe_has_something_to_run():
    recipes = [page for page in PAGES if page.startswith('how_to/')]
    assert len(recipes) >= 8
    assert all(PYTHON[page] for page in recipes)


@cache
def names_of(page):
    """Run the code of a page, once, and return the names that it defines."""
    names = {'__name__': '__main__'}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        for code in compiled(page):
            exec(code, names)
    return names


@pytest.mark.parametrize('page', FOR_THE_LIBRARY)
def test_python_of_the_page_runs(page):
    assert names_of(page)


def test_python_of_the_readme_runs_as_printed(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names, found = {'__name__': '__main__'}, blocks(OTHERS['../README.md'], 'python')
    assert len(found) == 1
    for _, code in found:
        exec(code, names)
    assert ast.literal_eval(capsys.readouterr().out) == dict(
        zip(JOINTS, rbd_ros.gravity_torques(names['arm'], STATE[1]).round(2)))


@pytest.fixture
def node():
    """Return a node that has the demo arm and its state, which does not grow old for a minute."""
    with ros():
        node = Harness(ARM, state_timeout=60.0)
        try:
            node.answer(*STATE)
            yield node
        finally:
            node.close()


@pytest.fixture
def run_beside(node, tmp_path, monkeypatch):
    """Return a function that runs the code of a page while states arrive."""
    monkeypatch.setattr(harness, 'PATIENCE', PATIENCE)

    def run(page, typed=False):
        """Run it as one program, or type it at Python's prompt, block by block."""
        script = tmp_path / f'{Path(page).stem}.py'
        script.write_text('\n'.join(code for _, code in PYTHON[page]), encoding='utf-8')
        path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
        with (open(script, encoding='utf-8') as keyboard, subprocess.Popen(
                [sys.executable, *(['-i', '-q'] if typed else [str(script)])], cwd=ROOT,
                stdin=keyboard, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, 'PYTHONPATH': path}) as process):
            try:
                keep_sending(node, STATE, lambda: process.poll() is not None)
            finally:
                process.kill()
            output, complaints = process.communicate()
        assert process.returncode == 0 and 'Error' not in complaints, complaints
        return output
    return run


@pytest.mark.parametrize('page', [page for page in FOR_ROS if page != SESSION])
def test_python_for_ros_on_the_pages_runs_next_to_a_node(page, run_beside):
    assert run_beside(page).strip()


def test_the_session_without_the_command_ros2_gives_the_results_on_the_page(node, run_beside):
    lines = run_beside(SESSION, typed=True).splitlines()
    assert {'dynamics', 'me'} <= set(lines[0].split())
    assert '/dynamics/gravity_torques sensor_msgs/msg/JointState' in lines
    assert '/dynamics/set_payload rbd_msgs/srv/SetPayload' in lines
    g = rbd_ros.gravity_torques(rbd_ros.load_urdf_string(ARM), STATE[1])
    echoed = {line.split()[0]: float(line.split()[1]) for line in lines if line.endswith(' N m')}
    assert list(echoed) == JOINTS and list(echoed.values()) == pytest.approx(g, abs=0.0051)
    answer, accepted, refused, value, *states = lines[-6:]
    answer = ast.literal_eval(answer)
    assert list(answer) == JOINTS and list(answer.values()) == pytest.approx(g)
    assert accepted == 'set' and 'marker_rate' in refused
    assert value == 'marker_rate: 10.0'
    assert node.node.get_parameter('marker_rate').value == 10.0
    assert states == ['now inactive', 'now active']


# -- Commands of the shell. ----------------------------------------------------------------------

def of(*words):
    """Return the commands that begin with some words: page and what follows."""
    return [pytest.param(rest[len(words):], id=f'{page}: {" ".join(rest)[:60]}')
            for page, rest in COMMANDS if rest[:len(words)] == list(words)]


def message_type(text):
    package, folder, name = text.split('/')
    return getattr(importlib.import_module(f'{package}.{folder}'), name)


def fill(message, values):
    """Write values, as YAML has them, to the fields of a message."""
    kinds = dict(zip(message.get_fields_and_field_types(), message.SLOT_TYPES))
    for name, value in values.items():
        kind = kinds[name]
        element = getattr(kind, 'value_type', kind)
        if hasattr(element, 'namespaces'):
            one = message_type('/'.join((*element.namespaces, element.name)))
            value = ([fill(one(), each) for each in value] if isinstance(value, list)
                     else fill(one(), value))
        elif 'double' in str(getattr(element, 'typename', '')):
            value = [float(x) for x in value] if isinstance(value, list) else float(value)
        setattr(message, name, value)
    return message


def test_service_calls_of_the_pages_are_answered(node):
    calls = [words[3:] for _, words in COMMANDS if words[:3] == ['ros2', 'service', 'call']]
    assert len(calls) > 8
    for name, kind, values in calls:
        kind = message_type(kind)
        request = fill(kind.Request(), yaml.safe_load(values))
        fields = {field: getattr(request, field)
                  for field in request.get_fields_and_field_types()}
        answer = node.call(kind, name.removeprefix('/dynamics/'), **fields)
        assert answer.success, (name, answer.message)


def test_topics_and_parameters_of_the_pages_are_those_of_the_node(node):
    topics = dict(node.node.get_topic_names_and_types())
    echoed = [words[3] for _, words in COMMANDS if words[:3] == ['ros2', 'topic', 'echo']]
    assert echoed
    assert set(echoed) <= set(topics)
    changed = [words[3:] for _, words in COMMANDS if words[:3] == ['ros2', 'param', 'set']]
    assert changed
    for owner, name, value in changed:
        assert owner == '/dynamics'
        result, = node.node.set_parameters([Parameter(name, value=yaml.safe_load(value))])
        assert result.successful, (name, result.reason)


@pytest.mark.parametrize('words', of('ros2', 'run'))
def test_programs_and_their_parameters_exist(words):
    package, program, *options = words
    assert package == 'rbd_ros'
    assert f"'{program} = rbd_ros" in (ROOT / 'setup.py').read_text()
    given = [two.partition(':=') for one, two in pairwise(options) if one == '-p']
    others = {'simulated_robot': SimulatedRobot, 'mujoco_robot': RobotInMujoco,
              'viewer': ViewerNode}
    if program in others:
        kind = others[program]
        for name, _, value in given:
            assert isinstance(yaml.safe_load(value), type(kind.parameters[name].default))
        return
    settings = (TorqueController if program == 'torque_controller' else DynamicsNode).settings
    for name, _, value in given:
        checked_value(name, settings[name], yaml.safe_load(value))


@pytest.mark.parametrize('words', [*of('ros2', 'launch'), *(
    words[2:] for _, words in commands('text', 'ros2 launch '))])
def test_launch_arguments_exist(words):
    package, file, *arguments = words
    assert package == 'rbd_ros' and (ROOT / 'launch' / file).is_file()
    known = {'bringup.launch.py': bringup_plan, 'dynamics.launch.py': launch_plan}[file].ARGUMENTS
    assert {one.partition(':=')[0] for one in arguments} <= set(known)


def ros2_control():
    """Return the parsers of commands of ros2_control 5.16 by their words, for a test by name."""
    switch, spawner = ArgumentParser('switch_controllers'), ArgumentParser('spawner')
    switch.add_argument('--deactivate', nargs='*')
    switch.add_argument('--activate', nargs='*')
    strictness = switch.add_mutually_exclusive_group()
    strictness.add_argument('--strict', action='store_true')
    strictness.add_argument('--best-effort', action='store_true')
    spawner.add_argument('controllers', nargs='+')
    spawner.add_argument('--param-file', action='append')
    spawner.add_argument('--inactive', action='store_true')
    for parser in (switch, spawner):
        parser.add_argument('--controller-manager')
    return {('ros2', 'control', 'switch_controllers'): switch,
            ('ros2', 'run', 'controller_manager', 'spawner'): spawner}


@pytest.mark.parametrize('words', [
    words for _, words in commands('text', 'ros2 ')
    if words not in SKETCHED and words[1] != 'launch'], ids=' '.join)
def test_commands_of_ros2_control_and_their_options_exist(words):
    (parser, options), = ((parser, words[len(name):]) for name, parser in ros2_control().items()
                          if tuple(words[:len(name)]) == name)
    assert any(vars(parser.parse_args(options)).values())


@pytest.mark.parametrize('words', of('rbd_ros'))
def test_commands_of_rbd_ros_on_the_pages_run(words, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert rbd_ros_command(words) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize('words', SKETCHED, ids=' '.join)
def test_arguments_of_abridged_commands_exist(words):
    if words[0] == 'ros2':
        kind = message_type(words[4])
        assert fill(kind.Request(), yaml.safe_load(words[5])) != kind.Request()
        return
    parser = Parser(prog='rbd_ros')
    importlib.import_module(f'rbd_ros.cli.{words[1]}').add_options(parser)
    assert parser.parse_args(words[2:])


def test_abridged_commands_are_found():
    assert {words[1] for words in SKETCHED} >= {'diagnose', 'gains', 'identify', 'replay', 'view',
                                                'service'}


def test_the_robot_in_mujoco_of_the_page_runs(monkeypatch):
    pytest.importorskip('mujoco')       # there are no wheels for Python 3.10
    monkeypatch.chdir(ROOT)
    page = 'how_to/control.md'
    names = names_of(page).copy()
    names['reference'] = names['swing'](0.0)
    code, = (text for _, text in blocks(PAGES[page], 'text') if 'MujocoRobot' in text)
    exec(code, names)
    assert names['robot'].time > names['sample'].t


@pytest.mark.parametrize('words', of('make'))
def test_targets_exist(words):
    assert set(words[:1]) <= set(TARGETS)


def test_no_other_commands_are_on_the_pages():
    ours = {('ros2', 'service'), ('ros2', 'topic'), ('ros2', 'param'), ('ros2', 'run'),
            ('ros2', 'launch'), ('ros2', 'security')}
    programs = re.findall(r"'(\w+) = rbd_ros", (ROOT / 'setup.py').read_text())
    for page, words in COMMANDS:
        assert (words[0] in ('rbd_ros', 'make', *OF_OTHERS)
                or words[0].removeprefix('.venv/bin/') in programs
                or tuple(words[:2]) in ours), (page, words)


@pytest.mark.parametrize('page, text', [(page, text) for page, found in PAGES.items()
                                        for _, text in blocks(found, 'yaml')])
def test_parameters_in_files_exist(page, text):
    given = yaml.safe_load(text).get('dynamics', {}).get('ros__parameters', {})
    for name, value in given.items():
        assert name in DynamicsNode.settings, (page, name)
        checked_value(name, DynamicsNode.settings[name], value)


# -- Links and names. ----------------------------------------------------------------------------

def anchors(text):
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r'^#+ (.*)$', re.sub(r'^```.*?^```$', '', text,
                                               flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-')
            for heading in headings}


@pytest.mark.parametrize('page', [*PAGES, *OTHERS])
def test_links_within_the_repository_have_targets(page):
    text = {**PAGES, **OTHERS}[page]
    prose = re.sub(r'^```.*?^```$', '', text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r'\]\(([^)\s]+)\)', prose):
        if '://' in target or 'generated/' in target:
            continue        # of others: `make docs-links`; generated: the build says
        file, _, anchor = target.partition('#')
        path = (DOC / page).parent / file if file else DOC / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding='utf-8')), target


@pytest.mark.parametrize('page', ['architecture.md', 'where_things_are.md', '../CONTRIBUTING.md'])
def test_files_and_names_that_pages_lead_to_exist(page):
    text = {**PAGES, **OTHERS}[page]
    tracked = subprocess.run(['git', 'ls-files'], cwd=ROOT, capture_output=True, text=True,
                             check=False).stdout.split()
    folders = ('rbd_ros/', 'rbd_msgs/', 'test/', 'config/', 'doc/', 'launch/', 'benchmark/',
               'examples/', 'urdf/')
    paths = [one for one in re.findall(r'`([^`\s]+)`', text) if one.startswith(folders)]
    assert paths
    for one in paths:
        assert (ROOT / one).exists() or any(file.startswith(one) for file in tracked), one
    # `file.py`: `name`, `name` ... in tables and lists
    for file, names in re.findall(r'`((?:rbd_ros|test|doc)/[\w/]+\.py)`: '
                                  r'((?:`\w+`(?:, | and )?)+)', text):
        defined = {part.id if isinstance(part, ast.Name) else getattr(part, 'name', None)
                   for part in ast.walk(ast.parse((ROOT / file).read_text(encoding='utf-8')))
                   if isinstance(part, (ast.Name, ast.FunctionDef, ast.ClassDef))}
        for name in re.findall(r'`(\w+)`', names):
            assert name in defined, (file, name)


def test_the_table_of_folders_has_every_folder_with_code():
    table = OTHERS['../CONTRIBUTING.md'].partition('| folder |')[2].partition('\n\n')[0]
    listed = set(re.findall('`([\\w/]+/)`', '\n'.join(
        row.split(' | ')[0] for row in table.splitlines())))
    tracked = subprocess.run(['git', 'ls-files', '*.py'], cwd=ROOT, capture_output=True,
                             text=True, check=True).stdout.splitlines()
    folders = {f'{path.split("/")[0]}/' for path in tracked if '/' in path}
    rooms = {'/'.join(path.split('/')[:2]) + '/' for path in tracked
             if path.startswith('rbd_ros/') and path.count('/') > 1}
    assert folders | rooms <= listed
    assert all((ROOT / folder).is_dir() for folder in listed)


def test_the_picture_of_the_architecture_is_that_of_its_page():
    drawing, text = runpy.run_path(str(DOC / 'draw_architecture.py')), PAGES['architecture.md']
    picture = (DOC / 'images/architecture.svg').read_text(encoding='utf-8')
    assert picture == drawing['draw'](text), 'run python doc/draw_architecture.py'
    drawn = [row for _, rows in drawing['walks'](text) for row in rows]
    assert len(drawn) == len(re.findall(r'^\| [a-z]', text, re.MULTILINE)) - 4      # heads
    assert all(names for _, _, names in drawn)


def test_the_picture_of_closed_loops_is_that_of_the_robots():
    drawing = runpy.run_path(str(DOC / 'draw_loops.py'))
    picture = (DOC / 'images/closed_loops.svg').read_text(encoding='utf-8')
    assert picture == drawing['draw'](), 'run python doc/draw_loops.py'
    # Each constraint of each robot has its mark, and one explains it.
    urdfs = [(ROOT / f'urdf/{name}.urdf').read_text() for name in drawing['ROBOTS']]
    assert picture.count('class="cut"') == sum(text.count('</constraint>') for text in urdfs) + 1


@pytest.mark.long
def test_the_picture_of_the_controller_is_that_of_the_simulation():
    drawing = runpy.run_path(str(DOC / 'draw_controller.py'))
    picture = (DOC / 'images/controller.svg').read_text(encoding='utf-8')
    found, rms = drawing['simulate'](), drawing['rms']
    drawn = [float(x) for x in re.findall(r'>(\S+) mrad<', picture)]
    assert drawn == pytest.approx([rms(one[label]) for label in drawing['NAMES']
                                   for one in found.values()], rel=0.01)
    rows = re.findall(r'\| (\S+) mrad \| (\S+) mrad \|', PAGES['how_to/feed_a_controller.md'])
    assert [float(x) for row in rows for x in row] == drawn
    for one in found.values():
        for label in ('declared', 'compensated'):
            assert rms(one[label]) < min(0.1 * rms(one['pid']), 0.5 * rms(one['pd']))


def test_the_page_about_closed_loops_describes_one_loop_in_all_formats(tmp_path):
    (_, xml), = blocks(PAGES['closed_loops.md'], 'xml')
    (_, text), = blocks(PAGES['closed_loops.md'], 'yaml')
    names = names_of('closed_loops.md')
    (built,) = names['four_bar'].constraints
    (of_urdf,) = constraints_of(parse(f'<robot>{xml}</robot>'))
    (tmp_path / 'loops.yaml').write_text(text)
    (of_yaml,), independent, _ = read_constraints(tmp_path / 'loops.yaml')
    assert independent == list(names['four_bar'].independent_joints)
    for found in (of_urdf, of_yaml):
        assert (found.name, found.kind) == (built.name, built.kind)
        for label in ('placement_a', 'placement_b'):
            # The turn about the z axis does not matter.
            a, b = (getattr(one, label)[:, 2:] for one in (found, built))
            assert np.allclose(a, b, atol=1e-15)


def test_every_page_is_in_the_table_of_contents():
    listed = {one for text in PAGES.values() for _, block in blocks(text, r'\{toctree\}')
              for one in block.split()}
    assert {page.removesuffix('.md') for page in PAGES} - {'index'} <= listed


def test_examples_in_docstrings_hold():
    failed = tried = 0
    for path in sorted((ROOT / 'rbd_ros').rglob('*.py')):
        if '>>>' in path.read_text(encoding='utf-8'):
            name = '.'.join(path.relative_to(ROOT).with_suffix('').parts)
            result = doctest.testmod(importlib.import_module(name),
                                     extraglobs={'rbd_ros': rbd_ros})
            failed, tried = failed + result.failed, tried + result.attempted
    assert tried > 0 and failed == 0


# -- The generated pages. ------------------------------------------------------------------------

@pytest.fixture(scope='module')
def generate():
    return runpy.run_path(str(DOC / 'generate.py'))


def test_every_public_name_is_in_the_reference(generate):
    public = {name: getattr(rbd_ros, name) for name in rbd_ros.__all__}
    modules = {name for name, one in public.items() if inspect.ismodule(one)}
    assert {'rbd_ros', *(f'rbd_ros.{name}' for name in modules)} <= generate['PUBLIC'].keys()
    page = '\n'.join(generate['public_page']('rbd_ros', 'Names'))
    documented = re.findall(r'^\.\. auto(?:function|class|exception):: (\w+)$', page, re.MULTILINE)
    assert sorted(documented) == sorted(public.keys() - modules)


def test_docstrings_are_made_fit_for_sphinx(generate):
    lines = ['Sum.', '', 'A paragraph about V_ and |v|:', '', '    a = b_i', '', 'More.', '',
             'Parameters', '----------', 'x_ : float', '    In ``y_`` units.', '']
    generate['mark_literal_blocks'](None, 'function', '', None, None, lines)
    assert lines[2:7] == [r'A paragraph about V\_ and \|v\|:', '', '::', '', '    a = b_i']
    assert lines[-3:] == [r'x\_ : float', '    In ``y_`` units.', '']


def test_every_parameter_and_launch_argument_has_a_meaning(generate):
    names = {}
    for line in generate['parameters_page']().splitlines():
        cells = [cell.strip() for cell in line.strip('|').split(' | ')]
        if line.startswith('| `'):
            names[cells[0].strip('`')] = cells[-1].strip('| ')
    assert all(names.values()), names
    expected = {*TorqueController.settings, *launch_plan.ARGUMENTS,
                'controllers', *SimulatedRobot.parameters, *RobotInMujoco.parameters,
                *ViewerNode.parameters}
    assert expected <= set(names)


def test_the_commands_that_build_a_workspace_are_on_one_page_and_are_those_tested():
    found = [block for text in (*PAGES.values(), *OTHERS.values())
             for _, block in blocks(text, 'bash') if 'rosdep install' in block]
    assert len(found) == 1
    typed = runpy.run_path(str(ROOT / 'tools/workspace.py'))['commands']()
    assert typed == found[0].replace('<this repository>', 'repository')
