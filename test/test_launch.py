# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The launch file, where launch_ros is installed (it is not on PyPI)."""

import pathlib

import pytest

launch_ros = pytest.importorskip('launch_ros')

LAUNCH = pathlib.Path(__file__).parents[1] / 'launch' / 'dynamics.launch.py'


def nodes(**arguments):
    """Return the executables that the launch file starts with these arguments, and the actions."""
    from launch import LaunchContext, LaunchDescription
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    context = LaunchContext()
    context.launch_configurations.update(arguments)
    description = PythonLaunchDescriptionSource(str(LAUNCH)).get_launch_description(context)
    assert isinstance(description, LaunchDescription)
    found, waiting = [], list(description.entities)
    while waiting:
        entity = waiting.pop(0)
        if isinstance(entity, launch_ros.actions.Node):
            found.append(entity.node_executable)
        else:
            waiting = list(entity.visit(context) or []) + waiting
    return found


def test_without_arguments_the_demo_arm_is_simulated_and_compensated():
    assert nodes() == ['dynamics_node', 'robot_state_publisher', 'simulated_robot']


@pytest.mark.parametrize('arguments, expected', [
    ({'model': ''}, ['dynamics_node']),
    ({'robot_state_publisher': 'false'}, ['dynamics_node', 'simulated_robot']),
    ({'sim': 'false'}, ['dynamics_node', 'robot_state_publisher']),
    ({'rviz': 'true', 'sim': 'false'}, ['dynamics_node', 'robot_state_publisher', 'rviz2']),
])
def test_arguments_choose_the_nodes(arguments, expected):
    assert nodes(**arguments) == expected


def test_a_robot_of_ones_own_is_not_simulated_unless_asked_for(tmp_path):
    model = tmp_path / 'arm.urdf'
    model.write_text('<robot name="arm"><link name="base"/></robot>')
    assert nodes(model=str(model)) == ['dynamics_node', 'robot_state_publisher']
    assert nodes(model=str(model), sim='true') == [
        'dynamics_node', 'robot_state_publisher', 'simulated_robot']
