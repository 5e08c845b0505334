# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The launch file itself, with actions that only record what they were made with.

launch_ros is not on PyPI; what the file decides is tested in `test_launch_plan`.

"""

import pathlib
import runpy
import sys
from types import ModuleType, SimpleNamespace

import pytest

LAUNCH = pathlib.Path(__file__).parents[2] / 'launch' / 'dynamics.launch.py'
ACTIONS = {'launch': ['LaunchDescription'],
           'launch.actions': ['DeclareLaunchArgument', 'GroupAction', 'OpaqueFunction',
                              'Shutdown'],
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
def launch_file(monkeypatch):
    """Return the names that the launch file defines."""
    for name, actions in ACTIONS.items():
        module = ModuleType(name)
        vars(module).update({action: type(action, (Recorded,), {}) for action in actions})
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr('rbd_ros.ros.launch_plan._is_installed', lambda *_: True)
    return SimpleNamespace(**runpy.run_path(str(LAUNCH)))


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
