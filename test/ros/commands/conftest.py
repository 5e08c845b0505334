# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes to which nobody listens, for what shows without messages."""

import pytest
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.parameter import Parameter
from robots import example_urdf
from std_msgs.msg import String


@pytest.fixture
def silent_node():
    """Return a function that makes a node with the description of the UR10, if it takes it."""
    made, ur10 = [], example_urdf('ur10_robot.urdf').read_text()

    def make(**parameters):
        node = DynamicsNode(parameter_overrides=[
            Parameter(name, value=value) for name, value in parameters.items()])
        made.append(node)
        if node.configured:
            node.listening._on_description(String(data=ur10))
        return node
    yield make
    for node in made:
        node.destroy_node()
