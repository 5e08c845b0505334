# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
A node that answers like the dynamics node but computes nothing.

It publishes the same messages, serialized in advance, for every joint state, of which it reads
only the stamp: its cost is that of rclpy and the middleware.

"""

import gc
import struct

from builtin_interfaces.msg import Time
import numpy as np
from rbd_ros.model.files.urdf import load_urdf_string
from rbd_ros.ros.messages.topics import (
    C_RATE, COMMANDED, CommandMessages, COMMANDS, DEVIATION, EXTERNAL, Outputs, TASK, TOPICS)
from rbd_ros.ros.outputs.commanding import NO_EVENTS
from rbd_ros.ros.robot.subscriptions import DESCRIPTION_QOS
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import String

# A message begins with four bytes of encoding, then the stamp, s and ns.
STAMP = struct.Struct('<4x8s')


class CopyingNode(Node):
    """Publishes the same messages for every joint state."""

    def __init__(self):
        super().__init__('dynamics')
        self.declare_parameter('executor', 'events')
        self._messages = {}
        self._publishers_of = {
            topic: self.create_publisher(kind, topic, 10, event_callbacks=NO_EVENTS)
            for topic, kind in ((COMMANDS, CommandMessages.kinds[COMMANDS]),
                                *((topic, one.kind) for topic, one in TOPICS.items()))}
        self.create_subscription(String, 'robot_description', self._on_description,
                                 DESCRIPTION_QOS)
        self.create_subscription(JointState, 'joint_states', self._on_joint_state, 10, raw=True)

    def _on_description(self, message):
        model = load_urdf_string(message.data)
        n = model.nv
        values = {'q': np.zeros(model.nq), 'com': np.zeros(3), 'com_jacobian': np.zeros((3, n)),
                  **dict.fromkeys(('v', 'g', 'holding', 'coriolis_torques', 'g_dot', 'positions',
                                   'velocities'), np.zeros(n)),
                  **dict.fromkeys(('M', 'C', 'M_dot'), np.zeros((n, n)))}
        outputs = Outputs(model, 1)
        # In the node's order, without topics that it publishes only with efforts or a task.
        self._messages = {COMMANDS: bytearray(CommandMessages().message(
            COMMANDS, model.velocity_names, values['g']))}
        self._messages.update(
            (topic, bytearray(outputs.message(topic, Time(), 'world', values)))
            for topic, one in TOPICS.items() if topic not in (COMMANDED, C_RATE)
            and one.source not in (DEVIATION, EXTERNAL, TASK))
        gc.freeze()

    def _on_joint_state(self, raw):
        stamp, = STAMP.unpack_from(raw)
        for topic, message in self._messages.items():
            if topic != COMMANDS:
                message[4:12] = stamp
            self._publishers_of[topic].publish(bytes(message))


def main():
    """Run the node until the process is ended."""
    rclpy.init()
    node = CopyingNode()
    events = node.get_parameter('executor').value == 'events'
    executor = EventsExecutor() if events else SingleThreadedExecutor()
    executor.add_node(node)
    executor.spin_until_future_complete(Future(), 3600.0)


if __name__ == '__main__':
    main()
