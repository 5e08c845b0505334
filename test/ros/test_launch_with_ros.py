# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The launch files with the launch of an installed ROS; without one, `test_launch` stands in."""

from pathlib import Path
import runpy

import pytest

launch = pytest.importorskip('launch')
pytest.importorskip('launch_ros')

LAUNCH = Path(__file__).parents[2] / 'launch'


def visit(actions, context):
    """Execute all actions but those that start something; return these."""
    from launch.actions import ExecuteProcess
    found = []
    for action in actions or ():
        if isinstance(action, ExecuteProcess):
            found.append(action)
        else:
            found += visit(action.execute(context), context)
    return found


@pytest.mark.parametrize('file, executables', [
    ('dynamics.launch.py', ['dynamics_node', 'robot_state_publisher', 'simulated_robot']),
    ('bringup.launch.py', ['robot_state_publisher', 'ros2_control_node', 'spawner'])])
def test_launch_takes_the_actions_of_the_file(monkeypatch, file, executables):
    monkeypatch.setattr('rbd_ros.ros.launch_plan._is_installed', lambda *_: True)
    names = runpy.run_path(str(LAUNCH / file))
    nodes = visit(names['generate_launch_description']().entities, launch.LaunchContext())
    assert [node.node_executable for node in nodes] == executables
