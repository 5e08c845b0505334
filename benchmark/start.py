# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure how long programs take to start.

Library: the import of `rbd_ros`, the first model and the first torque of a new process with cached
kernels, and two commands. Node: from the start of its process to its first output.

Description and joint states (100 Hz) are available before. The node starts several times with
cached kernels, then with an empty cache: the states between its first output and its last compiled
kernel are counted, and those without an answer. The torque controller starts in one mode, until
its first command. `rbd_ros warmup` also compiles the kernels that the node does not use. Without
numba, with an empty cache, the node starts with 7 and with 32 joints, until its first output and
until all topics flow that it publishes by default. CPU seconds depend less on other load of the
machine than the duration.

"""

from array import array
import os
import subprocess
import sys
from tempfile import TemporaryDirectory, TemporaryFile
from time import monotonic, time_ns

import numpy as np
import psutil
from rbd_ros import load_urdf
from robots import DEMO_ARM, TALOS
from timing import gauge, options, save

RATE = 100.0        # Hz
AT_MOST = 300.0     # s, limit of a start
READY = 'kernels ready after'       # logged by a node
MODE = 'slotine_li'     # Mode of the torque controller with the most kernels
PAUSE = 1.5         # s between two starts, for the node to leave the graph


class Source:
    """The inputs of a node, and a record of its outputs."""

    def __init__(self):
        from rbd_msgs.msg import DynamicsStamped
        from rbd_ros.ros.robot.subscriptions import DESCRIPTION_QOS
        import rclpy
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray, String

        rclpy.init()
        self._spin_once, self._node = rclpy.spin_once, rclpy.create_node('source')
        self._describe = self._node.create_publisher(String, 'robot_description', DESCRIPTION_QOS)
        self._states = self._node.create_publisher(JointState, 'joint_states', 10)
        self._message, self._description = JointState(), String()
        self.play(DEMO_ARM)
        self._node.create_timer(1.0 / RATE, self._send)
        self._sent, self._heard, self._topics, self._arrived = [], [], set(), {}
        self._listen({'/dynamics/dynamics': DynamicsStamped,
                      '/torque_controller/effort_commands': Float64MultiArray})

    def play(self, path):
        """Be another robot, given its URDF; return the number of its joints."""
        model = load_urdf(path)
        self._description.data = path.read_text()
        self._describe.publish(self._description)
        self._message.name = list(model.velocity_names)
        self._message.position = array('d', np.full(model.nv, 0.1))
        self._message.velocity = array('d', np.full(model.nv, 0.1))
        return model.nv

    def listen_to_all(self):
        """Subscribe to all topics that the node publishes by default."""
        from rbd_ros.ros.messages.topics import TOPICS

        kinds = {topic.replace('~', '/dynamics'): one.kind
                 for topic, one in TOPICS.items() if not one.source}
        self._topics = {*kinds}
        del kinds['/dynamics/dynamics']     # subscribed before
        self._listen(kinds)

    def _listen(self, kinds):
        for topic, kind in kinds.items():
            self._node.create_subscription(
                kind, topic, lambda message, topic=topic: self._hear(message, topic), 100)

    def _send(self):
        time = time_ns()
        stamp = self._message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time, 10 ** 9)
        self._states.publish(self._message)
        self._sent.append(time)

    def _hear(self, message, topic):
        self._arrived.setdefault(topic, monotonic())
        if hasattr(message, 'header'):
            stamp = message.header.stamp
            self._heard.append(10 ** 9 * stamp.sec + stamp.nanosec)

    def _spin_until(self, done):
        end = monotonic() + AT_MOST
        while not done():
            self._spin_once(self._node, timeout_sec=0.05)
            if monotonic() > end:
                raise RuntimeError(f'no output within {AT_MOST:.0f} s')

    def start(self, environment, name='dynamics_node', *parameters, all_kernels=False,
              all_topics=False):
        """
        Start a node and end it.

        Returns
        -------
        dict of str to float
            Seconds and CPU seconds from the start to the first output; with ``all_kernels`` also
            until all kernels are compiled, and counts of the ``states`` after the first output
            until then, and of the ``unanswered`` ones; with ``all_topics`` until all topics flow,
            and the ``pace`` of the machine before.

        """
        gauge.wait_for_calm()
        self._sent.clear()
        self._heard.clear()
        self._arrived.clear()
        pace = gauge.pace([gauge.read() for _ in range(50)])
        with TemporaryFile('w+') as log:
            begin = monotonic()
            process = subprocess.Popen(
                [sys.executable, '-m', 'rbd_ros.ros.nodes', name, '--ros-args', *parameters],
                env=environment, stderr=log)
            try:
                self._spin_until(lambda: self._arrived)
                found = {'first': min(self._arrived.values()) - begin,
                         'first, CPU': cpu_time(process)}
                if all_topics:
                    self._spin_until(lambda: self._arrived.keys() >= self._topics)
                    found.update({'all': max(self._arrived.values()) - begin, 'pace': pace})
                if all_kernels:
                    self._spin_until(lambda: READY in os.pread(log.fileno(), 10 ** 6, 0).decode())
                    end = time_ns()
                    found.update({'all': monotonic() - begin, 'all, CPU': cpu_time(process)})
                    self._spin_until(lambda: self._heard[-1] > end)
                    sent = {time for time in self._sent if self._heard[0] <= time <= end}
                    found.update(states=len(sent), unanswered=len(sent.difference(self._heard)))
            finally:
                process.terminate()
                process.wait(timeout=30.0)
        end = monotonic() + PAUSE
        self._spin_until(lambda: monotonic() > end)
        return found


FIRST = """
from time import perf_counter
begin = perf_counter()
import rbd_ros
arm = rbd_ros.load_urdf({path!r})
loaded = perf_counter()
rbd_ros.gravity_torques(arm, rbd_ros.neutral(arm))
print(loaded - begin, perf_counter() - begin)
"""


def library(repeat):
    """Return the shortest times, s, to first model and torque, and of commands."""
    def run(*arguments):
        begin = monotonic()
        found = subprocess.run([sys.executable, *arguments], check=True, capture_output=True,
                               text=True).stdout
        return monotonic() - begin, found
    gauge.wait_for_calm()
    path = str(DEMO_ARM)
    run('-c', FIRST.format(path=path))      # caches the kernel
    first = [run('-c', FIRST.format(path=path))[1].split() for _ in range(repeat)]
    model, torque = np.min(np.array(first, float), axis=0).tolist()
    main = '-m', 'rbd_ros.cli.main'
    return {'first model': model, 'first torque': torque, **{
        'rbd_ros ' + words[0]: min(run(*main, *words)[0] for _ in range(repeat))
        for words in (('--help',), ('check', path))}}


def cpu_time(process):
    """Return the CPU seconds of a process and its children."""
    parent = psutil.Process(process.pid)
    own = parent.cpu_times()
    # The compiler's time counts as the parent's once it has ended.
    return own.user + own.system + own.children_user + own.children_system + sum(
        sum(child.cpu_times()[:2]) for child in parent.children())


def main():
    """Measure, print and save."""
    from domain_coordinator import domain_id

    quick = options(__doc__).parse_args().quick
    found = library(3 if quick else 8)
    print(', '.join(f'{name} {time:.2f} s' for name, time in found.items()))
    with domain_id() as domain, TemporaryDirectory() as empty:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        source = Source()
        source.start(os.environ)
        warm = [source.start(os.environ)['first'] for _ in range(2 if quick else 4)]
        # It would take precedence over XDG_CACHE_HOME.
        os.environ.pop('NUMBA_CACHE_DIR', None)
        cold = source.start({**os.environ, 'XDG_CACHE_HOME': empty}, all_kernels=True)
        with TemporaryDirectory() as empty:
            mode = source.start({**os.environ, 'XDG_CACHE_HOME': empty}, 'torque_controller',
                                '-p', f'mode:={MODE}')
        compiled = {}
        source.listen_to_all()
        for path in (DEMO_ARM, TALOS):
            joints = source.play(path)
            with TemporaryDirectory() as empty:
                one = compiled[joints] = source.start(
                    {**os.environ, 'RBD_ROS_KERNELS': 'cc', 'XDG_CACHE_HOME': empty},
                    all_topics=True)
            print(f'without numba, {joints} joints: cold {one["first"]:.1f} s, all topics '
                  f'{one["all"]:.1f} s, at a pace of {one["pace"]:.2f}')
    print(f'warm {np.median(warm):.2f} s ({min(warm):.2f} ... {max(warm):.2f}), cold '
          f'{cold["first"]:.1f} s ({cold["first, CPU"]:.1f} s CPU), its kernels {cold["all"]:.1f} '
          f's ({cold["all, CPU"]:.1f} s CPU), unanswered {cold["unanswered"]} of '
          f'{cold["states"]}')
    print(f'{MODE}: cold {mode["first"]:.1f} s ({mode["first, CPU"]:.1f} s CPU)')
    with TemporaryDirectory() as empty:
        gauge.wait_for_calm()
        begin = monotonic()
        subprocess.run([sys.executable, '-m', 'rbd_ros.cli.main', 'warmup'], check=True,
                       env={**os.environ, 'XDG_CACHE_HOME': empty}, stdout=subprocess.DEVNULL)
        all_kernels = monotonic() - begin
    print(f'all kernels {all_kernels:.1f} s')
    save('start', quick, {'library': found, 'warm': warm, 'cold': cold['first'],
                          'all kernels': all_kernels, 'in the background': cold,
                          'modes': {MODE: mode}, 'compiled': compiled})


if __name__ == '__main__':
    main()
