# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A node where numba is missing, as with apt's packages alone: slow, and right."""

import signal
import subprocess
import sys
from time import monotonic

from harness import joint_state, LATCHED, PATIENCE, ros
from hidden_modules import environment
import numpy as np
import rbd_ros
import rclpy
from robots import example_urdf, load_quietly, Oracle, random_state, relative_error
from sensor_msgs.msg import JointState
from std_msgs.msg import String

# Rounding, over seven bodies.
ROUNDING = 1e-12
# s: it starts an interpreter, and every import is slow on a busy machine
START_UP = 60.0


def test_it_says_so_once_and_publishes_the_torques_of_pinocchio(tmp_path):
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    q, _, _ = random_state(model, 0)
    still = np.zeros(model.nv)
    with ros():
        peer = rclpy.create_node('peer')
        states = peer.create_publisher(JointState, 'joint_states', 10)
        peer.create_publisher(String, 'robot_description', LATCHED).publish(
            String(data=path.read_text()))
        heard = []
        peer.create_subscription(JointState, '/dynamics/gravity_torques', heard.append, 10)
        process = subprocess.Popen(
            [sys.executable, '-m', 'rbd_ros.ros.nodes.dynamics_node'], stderr=subprocess.PIPE,
            text=True, env=environment(tmp_path, 'numba', 'llvmlite'))
        try:
            end = monotonic() + START_UP
            while not heard:
                assert monotonic() < end
                states.publish(joint_state(model.velocity_names, q))
                rclpy.spin_once(peer, timeout_sec=0.05)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.communicate()
            peer.destroy_node()
    assert process.returncode == 0
    assert heard[0].name == list(model.velocity_names)
    expected = Oracle(path, rbd_ros.load_urdf(path)).tau(q, still, still)
    assert relative_error(heard[0].effort, expected) < ROUNDING
    slow = [line for line in said.splitlines() if 'thousand times slower' in line]
    assert len(slow) == 1 and 'WARN' in slow[0] and '[dynamics]' in slow[0]
    assert sum('WARN' in line for line in said.splitlines()) == 1
    assert 'Traceback' not in said and 'kernels ready' not in said
