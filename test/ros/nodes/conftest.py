# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What tests of nodes need: processes that end with the test, and simulated robots in this one."""

import os
import subprocess
import sys

from harness import ros
import pytest
from rbd_ros.ros.nodes import simulated_robot
from rclpy.parameter import Parameter


@pytest.fixture
def python():
    """Return a function that starts Python; all processes are killed after the test."""
    processes = []

    def start(*arguments, **options):
        process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE,
                                   text=True, **options)
        processes.append(process)
        return process
    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def start(python):
    """Return a function that starts a node of this package with arguments, in an environment."""
    def start(name, *arguments, **environment):
        return python('-m', 'rbd_ros.ros.nodes', name, '--ros-args', *arguments,
                      env={**os.environ, **environment})
    return start


@pytest.fixture
def robot(monkeypatch):
    """Return a function that makes a simulated robot, with the list of states it publishes."""
    # However long this machine pauses, no time passes for the robot.
    monkeypatch.setattr(simulated_robot, 'monotonic', lambda: 0.0)
    with ros():
        made = []

        def make(kind=simulated_robot.SimulatedRobot, **parameters):
            node, states = kind(parameter_overrides=[
                Parameter(name, value=value) for name, value in parameters.items()]), []
            made.append(node)
            node._publisher.publish = lambda state: states.append(
                (list(state.position), list(state.velocity), list(state.effort)))
            return node, states
        yield make
        for node in made:
            node.destroy_node()
