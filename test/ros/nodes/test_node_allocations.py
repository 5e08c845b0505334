# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that states leave behind in the node: none, however many are answered."""

from itertools import count
import struct
from time import time_ns

from covering import covering
from harness import joint_state, ros, TOPICS
from memory import memory_left
import numpy as np
import pytest
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from robots import example_urdf

# States, and how many of them differ.
MANY, ROUND = 400, 50
# Bytes: half of the smallest object for each state. What NumPy, rclpy and the interpreter keep of
# a few objects of each size is less.
LEFT = 12 * MANY
# s and ns of a serialized message.
STAMP = struct.Struct('<iI')


class Listener:
    """Stands for a publisher to which somebody listens."""

    def __init__(self):
        self.heard, self.topic_name = 0, '/topic'

    def get_subscription_count(self):
        return 1

    def publish(self, message):
        self.heard += 1


@pytest.mark.parametrize('effort', covering([False, True], True))
def test_processing_states_leaves_no_objects_behind(effort):
    with ros():
        node = DynamicsNode(parameter_overrides=[
            Parameter('robot_description',
                      value=example_urdf('ur10_robot.urdf').read_text()),
            Parameter('task_link', value='tool0'), Parameter('check_stamps', value=False),
            Parameter('marker_rate', value=100.0)])
        try:
            left, listeners, markers = drive(node, effort)
        finally:
            node.destroy_node()
    withheld = set() if effort else {'~/coriolis_matrix_rate', '~/external_torques',
                                     '~/external_wrench'}
    assert {topic for topic, one in listeners.items() if one.heard} == (
        TOPICS.keys() - withheld - {'~/contact', '~/torque_deviation'})
    assert markers.heard
    assert left < LEFT


def drive(node, effort):
    """Let a node answer many states; return the bytes left behind, and who listened."""
    publishing, model = node.publishing, node.robot.model
    # One each millisecond, however long the machine sleeps.
    stamps = count(time_ns(), 10 ** 6)
    listeners, markers = {topic: Listener() for topic in publishing._publishers}, Listener()
    commands = {topic: Listener() for topic in node.commanding._publishers}
    publishing._publishers, publishing._marker_publisher = listeners, markers
    node.commanding._publishers = commands

    # Serialized once: rclpy keeps something of what it serializes.
    # A motion that ends where it begins: the robot does not jump from the last one to the first.
    states = [bytearray(serialize_message(joint_state(
        model.velocity_names, q, 0.1 * q, q if effort else ())))
        for q in 0.3 + 0.02 * np.sin(np.arange(ROUND) * 2.0 * np.pi / ROUND)[:, None]
        * np.ones(model.nv)]

    def answer_some():
        for _ in range(MANY // ROUND):
            for state in states:
                STAMP.pack_into(state, 4, *divmod(next(stamps), 10 ** 9))
                node.listening._on_joint_state(bytes(state))
        # Once a second this lets go of what it tells.
        node.health.message()
    return memory_left(answer_some, 1), {**listeners, **commands}, markers
