# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure the dynamics node under load: rate, lost states, latency, CPU time and memory.

Three processes: one publishes joint states, the node answers, this one subscribes. Every topic of
the node has a subscriber, but only ~/dynamics, which the node publishes last, is received and
counted, and only its stamp is read, so that the node and not the subscriber is measured. Latency
is the time from the stamp of a joint state, taken right before it is published, to the arrival of
the corresponding ~/dynamics.

For comparison, `copying_node.py` publishes as much and computes nothing. The torque controller,
which is the dynamics node with another law for ~/effort_commands, is measured in its modes.

"""

from array import array
import gc
from importlib import import_module
import itertools
import math
import multiprocessing
import os
from pathlib import Path
import struct
import subprocess
import sys
from time import monotonic, perf_counter, sleep, time_ns

import numpy as np
import psutil
from timing import gauge, HERE, options, save

# s, limit for the node to compile its kernels
START = 60.0
NODES = {'rbd_ros': ('-m', 'rbd_ros.ros.nodes', 'dynamics_node'),
         'copying': (str(HERE / 'copying_node.py'),)}
# Modes of the torque controller, and their required parameters
CONTROLLER = {'pd_gravity': (), 'computed_torque': (), 'joint_impedance': (),
              'slotine_li': ('slotine_li.adaptation:=20.0',),
              'cartesian_impedance': ('task_link:={link}',)}
DYNAMICS = '/dynamics/dynamics'
# A message begins with four bytes of encoding, then the stamp, s and ns.
STAMP = struct.Struct('<4xiI')


def send(urdf, rate, seconds, go, sent, first):
    """Publish joint states at a rate; cycles missed because of a pause are skipped."""
    from rbd_ros import load_urdf
    import rclpy
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    rclpy.init()
    node = rclpy.create_node('source')
    model = load_urdf(urdf)
    describe = node.create_publisher(String, 'robot_description', QoSProfile(
        depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    describe.publish(String(data=Path(urdf).read_text()))
    publisher = node.create_publisher(JointState, 'joint_states', 10)
    message = JointState(name=list(model.velocity_names))
    q, v = np.full(model.nv, 0.3), np.full(model.nv, 0.1)

    def publish():
        now = time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10 ** 9)
        message.position, message.velocity = array('d', q), array('d', v)
        publisher.publish(message)
        return now

    while not go.is_set():
        publish()
        sleep(0.05)
    # Let all earlier messages arrive.
    sleep(0.5)
    gc.freeze()
    count, due = 0, perf_counter()
    end = due + seconds
    while due < end:
        while (left := due - perf_counter()) > 0.0:
            sleep(left)
        due += max(1, math.ceil(-left * rate)) / rate
        q[:] = 0.3 + 0.2 * np.sin(0.01 * count)
        now = publish()
        first.value = first.value or now
        count += 1
    sent.value = count
    sleep(1.0)
    rclpy.try_shutdown()


def listen_to_all(node):
    """Subscribe to every topic of the node except ~/dynamics and return their names."""
    topics = []
    for topic, (kind,) in node.get_publisher_names_and_types_by_node('dynamics', '/'):
        if topic not in (DYNAMICS, '/rosout', '/parameter_events'):
            package, _, name = kind.split('/')
            offered, = {(info.qos_profile.reliability, info.qos_profile.durability)
                        for info in node.get_publishers_info_by_topic(topic)}
            node.create_subscription(
                getattr(import_module(f'{package}.msg'), name), topic, lambda message: None,
                _quality(*offered), raw=True)
            topics.append(topic)
    return topics


def _quality(reliability, durability):
    from rclpy.qos import QoSProfile
    return QoSProfile(depth=1, reliability=reliability, durability=durability)


def command_line(which, kind_of_executor, link):
    """Return the arguments of Python that run a node under the dynamics node's name."""
    options = ['--ros-args', '-p', f'executor:={kind_of_executor}']
    if which not in CONTROLLER:
        return [*NODES[which], *options]
    for one in (f'mode:={which}', *CONTROLLER[which]):
        options += ['-p', one.format(link=link)]
    return ['-m', 'rbd_ros.ros.nodes', 'torque_controller', *options, '-r', '__node:=dynamics']


def run(which, urdf, link, kind_of_executor, rate, seconds):
    """Run one measurement and return its results, or how it failed."""
    from rbd_msgs.msg import DynamicsStamped
    import rclpy
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.task import Future

    rclpy.init()
    node = rclpy.create_node('sink')
    arrivals = []

    def on_dynamics(message):
        arrivals.append((time_ns(), *STAMP.unpack_from(message)))

    node.create_subscription(DynamicsStamped, DYNAMICS, on_dynamics, 100, raw=True)
    # This node is never spun: its queues overflow silently.
    bystander = rclpy.create_node('bystander')
    executor = EventsExecutor()
    executor.add_node(node)

    def spin(seconds):
        executor.spin_until_future_complete(Future(), seconds)

    started = monotonic()
    process = subprocess.Popen([sys.executable, *command_line(which, kind_of_executor, link)],
                               stderr=subprocess.DEVNULL)
    go, sent = multiprocessing.Event(), multiprocessing.Value('i', 0)
    first = multiprocessing.Value('q', 0)
    source = multiprocessing.Process(target=send, args=(urdf, rate, seconds, go, sent, first))
    source.start()
    try:
        while not (arrivals and bystander.count_publishers(DYNAMICS)):
            spin(0.05)
            if process.poll() is not None:
                return {'failed': f'ended with code {process.returncode}'}
            if monotonic() - started > START:
                return {'failed': f'no answer within {START:.0f} s'}
        spin(1.0)
        topics = listen_to_all(bystander)
        spin(1.0)
        gc.freeze()
        watched = psutil.Process(process.pid)
        cpu, begin, memory = sum(watched.cpu_times()[:2]), monotonic(), None
        readings = []
        go.set()
        while source.is_alive():
            spin(0.1)
            readings.append(gauge.read())
            if memory is None and monotonic() - begin > min(10.0, seconds / 2):
                memory, counted = watched.memory_info().rss, len(arrivals)
        cpu = (sum(watched.cpu_times()[:2]) - cpu) / seconds
        growth, counted = watched.memory_info().rss - memory, len(arrivals) - counted
    finally:
        go.set()
        source.join()
        process.terminate()
        process.wait(timeout=30.0)
        executor.shutdown()
        rclpy.try_shutdown()
    arrived, stamps, fraction = np.array(arrivals, np.int64).T
    stamps = stamps * 10 ** 9 + fraction
    mine = stamps >= first.value
    p50, p99, p999 = np.percentile((arrived - stamps)[mine], (50.0, 99.0, 99.9)) * 1e-6
    return {'topics': 1 + len(topics), 'sent': sent.value,
            'lost': sent.value - len(np.unique(stamps[mine])),
            'pace': gauge.pace(readings), 'p50 ms': p50, 'p99 ms': p99, 'p99.9 ms': p999,
            'CPU %': 100.0 * cpu,
            'growth KiB': growth / 1024.0, 'growth bytes a state': growth / max(counted, 1)}


def main():
    """Measure, print and save."""
    from domain_coordinator import domain_id
    from robots import DEMO_ARM, TALOS

    parser = options(__doc__)
    parser.add_argument('--seconds', type=float, default=6.0, help='of each measurement, s')
    chosen = parser.parse_args()
    seconds = 2.0 if chosen.quick else chosen.seconds
    multiprocessing.set_start_method('spawn')
    robots = (7, DEMO_ARM, 'tool'), (32, TALOS, 'gripper_left_base_link')
    cases = [*itertools.product(('rbd_ros',), robots, ('events',), (100, 1000)),
             ('rbd_ros', robots[1], 'single', 1000),
             *itertools.product(('copying', *CONTROLLER), robots, ('events',), (1000,))]
    rows = []
    for which, (joints, urdf, link), executor, rate in cases:
        gauge.wait_for_calm()
        with domain_id() as domain:
            os.environ.update(ROS_DOMAIN_ID=str(domain),
                              ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
            row = {'node': which, 'joints': joints, 'executor': executor, 'rate': rate,
                   **run(which, str(urdf), link, executor, rate, seconds)}
        rows.append(row)
        print(', '.join(f'{label} {x:.2f}' if isinstance(x, float) else f'{label} {x}'
                        for label, x in row.items()), flush=True)
    save('node', chosen.quick, {'seconds': seconds, 'rows': rows})


if __name__ == '__main__':
    main()
