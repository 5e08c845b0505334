# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure how long the dynamics node takes from the start of its process to its first output.

Description and joint states (100 Hz) are there before it starts. It starts several times with the
kernels in the cache, and once with an empty cache; `rbd_ros warmup` compiles what is not the
node's, too.

"""

from array import array
import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import monotonic, time_ns

import numpy as np
from rbd_ros import load_urdf
from robots import DEMO_ARM
from timing import gauge, options, save

RATE = 100.0        # Hz
AT_MOST = 120.0     # s, for a start
PAUSE = 1.5         # s between two starts, for the node to leave the graph


class Source:
    """What a node needs, and what it answers."""

    def __init__(self):
        import rclpy
        from rbd_msgs.msg import DynamicsStamped
        from rbd_ros.ros.subscriptions import DESCRIPTION_QOS
        from sensor_msgs.msg import JointState
        from std_msgs.msg import String

        rclpy.init()
        self._spin_once, self._node = rclpy.spin_once, rclpy.create_node('source')
        model = load_urdf(DEMO_ARM)
        self._describe = self._node.create_publisher(String, 'robot_description', DESCRIPTION_QOS)
        self._describe.publish(String(data=DEMO_ARM.read_text()))
        self._states = self._node.create_publisher(JointState, 'joint_states', 10)
        self._message = JointState(name=list(model.velocity_names))
        self._message.position = array('d', np.full(model.nv, 0.1))
        self._message.velocity = array('d', np.full(model.nv, 0.1))
        self._node.create_timer(1.0 / RATE, self._send)
        self._heard = []
        self._node.create_subscription(DynamicsStamped, '/dynamics/dynamics', self._hear, 10)

    def _send(self):
        stamp = self._message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time_ns(), 10 ** 9)
        self._states.publish(self._message)

    def _hear(self, _):
        self._heard.append(monotonic())

    def start(self, environment):
        """Return the time from the start of a node to its first output, s."""
        gauge.wait_for_calm()
        begin = monotonic()
        process = subprocess.Popen([sys.executable, '-m', 'rbd_ros.ros.dynamics_node'],
                                   env=environment, stderr=subprocess.DEVNULL)
        try:
            while not self._heard:
                self._spin_once(self._node, timeout_sec=0.05)
                if monotonic() > begin + AT_MOST:
                    raise RuntimeError(f'no output within {AT_MOST:.0f} s')
        finally:
            process.terminate()
            process.wait(timeout=30.0)
        first, end = self._heard[0], monotonic() + PAUSE
        while monotonic() < end:
            self._spin_once(self._node, timeout_sec=0.05)
        self._heard.clear()
        return first - begin


def main():
    """Measure, print and save."""
    from domain_coordinator import domain_id

    quick = options(__doc__).parse_args().quick
    with domain_id() as domain, TemporaryDirectory() as empty:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        source = Source()
        source.start(os.environ)
        warm = [source.start(os.environ) for _ in range(2 if quick else 10)]
        # This one would win.
        os.environ.pop('NUMBA_CACHE_DIR', None)
        cold = source.start({**os.environ, 'XDG_CACHE_HOME': empty})
    with TemporaryDirectory() as empty:
        gauge.wait_for_calm()
        begin = monotonic()
        subprocess.run([sys.executable, '-m', 'rbd_ros.cli.main', 'warmup'], check=True,
                       env={**os.environ, 'XDG_CACHE_HOME': empty}, stdout=subprocess.DEVNULL)
        all_kernels = monotonic() - begin
    print(f'warm {np.median(warm):.2f} s ({min(warm):.2f} ... {max(warm):.2f}), cold {cold:.1f} '
          f's, all kernels {all_kernels:.1f} s')
    save('start', quick, {'warm': warm, 'cold': cold, 'all kernels': all_kernels})


if __name__ == '__main__':
    main()
