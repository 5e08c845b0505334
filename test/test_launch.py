# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The launch file itself, where launch_ros is installed (it is not on PyPI)."""

import pathlib

import pytest

launch_ros = pytest.importorskip('launch_ros')

LAUNCH = pathlib.Path(__file__).parents[1] / 'launch' / 'dynamics.launch.py'


def nodes(monkeypatch, **arguments):
    """Return the actions that the launch file makes of these arguments."""
    from launch import LaunchContext
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    monkeypatch.setattr('rbd_ros.ros.launch_plan._is_installed', lambda *_: True)
    context = LaunchContext()
    context.launch_configurations.update(arguments)
    description = PythonLaunchDescriptionSource(str(LAUNCH)).get_launch_description(context)
    found, waiting = [], list(description.entities)
    while waiting:
        entity = waiting.pop(0)
        if isinstance(entity, launch_ros.actions.Node):
            found.append(entity)
        else:
            waiting = list(entity.visit(context) or []) + waiting
    return found


def test_the_file_starts_what_is_planned(monkeypatch):
    started = nodes(monkeypatch)
    assert [node.node_executable for node in started] == [
        'dynamics_node', 'robot_state_publisher', 'simulated_robot']


def test_a_bad_argument_is_an_error_before_anything_starts(monkeypatch):
    with pytest.raises(RuntimeError, match='rviz must be true or false'):
        nodes(monkeypatch, rviz='perhaps')
