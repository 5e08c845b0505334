# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The launch files themselves, with actions that only record what they were made with.

launch_ros is not on PyPI; what the files decide is tested in `test_launch_plan` and
`test_bringup_plan`.

"""

import pathlib
import runpy
import sys
from types import ModuleType, SimpleNamespace

import pytest

LAUNCH = pathlib.Path(__file__).parents[2] / 'launch'
ACTIONS = {'launch': ['LaunchDescription'],
           'launch.actions': ['DeclareLaunchArgument', 'GroupAction', 'OpaqueFunction',
                              'RegisterEventHandler', 'Shutdown'],
           'launch.event_handlers': ['OnProcessExit', 'OnProcessIO'],
           'launch.substitutions': ['LaunchConfiguration'], 'launch_ros': [],
           'launch_ros.actions': ['Node', 'PushRosNamespace'],
           'launch_ros.parameter_descriptions': ['ParameterValue']}


class Recorded:
    """An action, and what it was made with."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options

    def perform(self, context):
        """Return the value of a launch argument."""
        return context[self.arguments[0]]


@pytest.fixture
def run(monkeypatch):
    """Return a function that returns the names that a launch file defines."""
    for name, actions in ACTIONS.items():
        module = ModuleType(name)
        vars(module).update({action: type(action, (Recorded,), {}) for action in actions})
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr('rbd_ros.ros.launch_plan._is_installed', lambda *_: True)
    monkeypatch.delitem(sys.modules, 'rbd_ros.ros.launch_actions', raising=False)
    yield lambda name: SimpleNamespace(**runpy.run_path(str(LAUNCH / name)))
    # It was made with these actions.
    sys.modules.pop('rbd_ros.ros.launch_actions', None)


@pytest.fixture
def launch_file(run):
    """Return the names that the launch file of the node defines."""
    return run('dynamics.launch.py')


@pytest.fixture
def bringup(run):
    """Return the names that the launch file for ros2_control defines."""
    return run('bringup.launch.py')


def started(launch_file, **values):
    """Return the declared arguments, the namespace and the nodes, by executable."""
    *declared, last = launch_file.generate_launch_description().arguments[0]
    context = {one.arguments[0]: one.options['default_value'] for one in declared} | values
    group, = last.options['function'](context)
    namespace, *nodes = group.arguments[0]
    return context, namespace.arguments[0], {node.options['executable']: node for node in nodes}


def test_the_file_starts_what_is_planned(launch_file):
    context, namespace, nodes = started(launch_file, namespace='left', commands='/efforts',
                                        rviz='true')
    assert set(nodes) == {'dynamics_node', 'robot_state_publisher', 'simulated_robot', 'rviz2'}
    assert namespace == 'left'
    assert context['use_sim_time'] == 'false'
    node = nodes['dynamics_node'].options
    assert (node['package'], node['name']) == ('rbd_ros', 'dynamics')
    assert ('~/effort_commands', '/efforts') in node['remappings']
    assert 'name' not in nodes['simulated_robot'].options
    # A text that looks like YAML stays a text.
    description = nodes['robot_state_publisher'].options['parameters'][0]['robot_description']
    assert type(description).__name__ == 'ParameterValue'
    assert description.options == {'value_type': str}
    assert '<robot' in description.arguments[0]


def test_the_end_of_a_node_that_others_need_is_that_of_all(launch_file):
    nodes = started(launch_file, rviz='true')[2]
    ending = {name for name, node in nodes.items()
              if type(node.options.get('on_exit')).__name__ == 'Shutdown'}
    assert ending == set(nodes) - {'rviz2'}


def test_a_bad_argument_is_an_error_before_anything_starts(launch_file):
    with pytest.raises(RuntimeError, match='rviz must be true or false'):
        started(launch_file, rviz='perhaps')


# -- ros2_control. --------------------------------------------------------------------------------

def begun(bringup, **values):
    """Return what is started at once, the handlers of ends, and the one of output."""
    *declared, last = bringup.generate_launch_description().arguments[0]
    context = {one.arguments[0]: one.options['default_value'] for one in declared} | values
    actions = last.options['function'](context)
    handlers = [one.arguments[0] for one in actions
                if type(one).__name__ == 'RegisterEventHandler']
    ends = {one.options['target_action']: one.options['on_exit'] for one in handlers
            if type(one).__name__ == 'OnProcessExit'}
    says, = (one for one in handlers if type(one).__name__ == 'OnProcessIO')
    return [one for one in actions if type(one).__name__ == 'Node'], ends, says


def ended(code):
    """Return the event of a process that has ended."""
    return SimpleNamespace(returncode=code, process_name='spawner-1')


def test_each_step_follows_the_one_before_and_the_controller_is_activated_last(bringup):
    at_once, ends, says = begun(bringup, namespace='left', mode='gravity')
    assert [one.options['executable'] for one in at_once] == [
        'robot_state_publisher', 'ros2_control_node', 'spawner']
    broadcaster = at_once[-1]
    assert broadcaster.options['arguments'][0] == 'joint_state_broadcaster'
    loading = ends[broadcaster](ended(0), None)
    assert loading.options['arguments'][0] == 'effort_controller'
    assert '--inactive' in loading.options['arguments']
    node = ends[loading](ended(0), None)
    assert node.options['executable'] == 'torque_controller'
    assert says.options['target_action'] is node
    # Nothing else that the node says, and only once.
    say = says.options['on_stderr']
    assert say(SimpleNamespace(text=b'[INFO] kernels ready after 1 s')) is None
    line = SimpleNamespace(text=b'[INFO] [1.0] [left.torque_controller]: '
                           b'~/effort_commands have reached their full size\n')
    activating = say(line)
    assert activating.options['arguments'][0] == 'effort_controller'
    assert '--inactive' not in activating.options['arguments']
    assert says.options['on_stdout'](line) is None
    assert ends[activating](ended(0), None) is None
    for one in (*at_once, loading, node, activating):
        assert one.options['namespace'] == 'left'


def test_a_step_that_fails_ends_all(bringup):
    at_once, ends, says = begun(bringup)
    broadcaster = at_once[-1]
    loading = ends[broadcaster](ended(0), None)
    node = ends[loading](ended(0), None)
    activating = says.options['on_stdout'](SimpleNamespace(
        text=b'~/effort_commands have reached their full size'))
    for spawner in (broadcaster, loading, activating):
        failed = ends[spawner](ended(1), None)
        assert type(failed).__name__ == 'Shutdown'
        assert 'spawner-1 has failed' in failed.options['reason']
    for one in (*at_once[:2], node):
        assert type(one.options['on_exit']).__name__ == 'Shutdown'


def test_a_bad_argument_of_the_bring_up_is_an_error_before_anything_starts(bringup):
    with pytest.raises(RuntimeError, match='model: ros2_control needs the description'):
        begun(bringup, model='none')
