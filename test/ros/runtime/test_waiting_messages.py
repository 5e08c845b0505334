# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that are taken from a queue, and what becomes of them where that cannot be."""

from contextlib import nullcontext
from time import monotonic, sleep
from types import SimpleNamespace

import harness
from harness import Harness, joint_state, ros
import pytest
from rbd_ros.ros.runtime.rclpy_workarounds import WaitingMessages
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

ARM = """<robot name="arm"><link name="base"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint></robot>"""


def test_messages_are_taken_in_their_order_without_an_executor():
    with ros():
        node, waiting, heard = Node('queue'), WaitingMessages(JointState), []
        publisher = node.create_publisher(JointState, 'joint_states', 10)
        subscription = node.create_subscription(JointState, 'joint_states', print, 10, raw=True)
        end = monotonic() + harness.PATIENCE
        while not publisher.get_subscription_count():
            assert monotonic() < end
        for name in 'abc':
            publisher.publish(joint_state([name], [0.0]))
        while len(heard) < 3:
            assert monotonic() < end
            raw = waiting.take(subscription)
            if raw is None:
                sleep(0.01)
            else:
                heard += deserialize_message(raw, JointState).name
        assert heard == ['a', 'b', 'c']
        assert waiting.take(subscription) is None
        node.destroy_subscription(subscription)
        assert waiting.take(subscription) is None
        # The one that was closed says nothing of others.
        assert waiting._possible
        node.destroy_node()


class OtherHandle(nullcontext):
    """As of an rclpy whose call wants something else."""

    def take_message(self, kind):
        raise AssertionError('must not be reached')


@pytest.mark.parametrize('handle', [nullcontext(), SimpleNamespace(), OtherHandle()],
                         ids=['no such call', 'no context', 'another call'])
def test_an_rclpy_without_the_call_is_found_out_once(handle, caplog):
    waiting = WaitingMessages(JointState)
    for _ in range(3):
        assert waiting.take(SimpleNamespace(handle=handle)) is None
    assert len(caplog.messages) == 1
    assert 'one by one' in caplog.text


def test_a_node_to_which_messages_come_one_by_one_answers_each(monkeypatch):
    monkeypatch.setattr(WaitingMessages, 'take', lambda self, subscription: None)
    with ros():
        node = Harness(ARM)
        try:
            count = len(node.heard['~/dynamics'])
            positions = [0.1 * k for k in range(8)]
            for q in positions:
                node.send(['j'], [q], [0.0])
            node.spin_until(lambda: len(node.heard['~/dynamics']) == count + len(positions))
            assert [message.position[0] for message in node.heard['~/dynamics'][count:]
                    ] == positions
        finally:
            node.close()
