# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure the dynamics node under load: rate, latency, CPU time and memory.

Three processes: one sends joint states, the node answers, this one listens. The topics have a
listener, but only ~/dynamics, which is published last, is taken and counted: it is the node that
shall be measured. Latency is the time from the stamp of a joint state, taken right before it is
sent, to the arrival of the ~/dynamics that belongs to it.

"""

import argparse
from array import array
import gc
import itertools
import multiprocessing
import os
from pathlib import Path
import subprocess
import sys
from time import monotonic, perf_counter, sleep, time_ns

from geometry_msgs.msg import PointStamped
import numpy as np
import psutil
from rbd_msgs.msg import DynamicsStamped, MatrixStamped
from rbd_ros import load_urdf
from rbd_ros.ros.share import share
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from visualization_msgs.msg import MarkerArray

KINDS = {'gravity_torques': JointState, 'coriolis_torques': JointState,
         'mass_matrix': MatrixStamped, 'coriolis_matrix': MatrixStamped,
         'com_jacobian': MatrixStamped, 'com': PointStamped,
         'effort_commands': Float64MultiArray, 'markers': MarkerArray}


def send(urdf, rate, seconds, go, sent):
    """Send joint states at a rate, on the dot."""
    import rclpy
    from rbd_ros.ros.inputs import DESCRIPTION_QOS

    rclpy.init()
    node = rclpy.create_node('source')
    model = load_urdf(urdf)
    describe = node.create_publisher(String, 'robot_description', DESCRIPTION_QOS)
    describe.publish(String(data=Path(urdf).read_text()))
    publisher = node.create_publisher(JointState, 'joint_states', 10)
    message = JointState(name=list(model.velocity_names))
    q, v = np.full(model.nv, 0.3), np.full(model.nv, 0.1)

    def publish():
        now = time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10 ** 9)
        message.position, message.velocity = array('d', q), array('d', v)
        publisher.publish(message)

    while not go.is_set():
        publish()
        sleep(0.05)
    gc.freeze()
    count, begin = round(rate * seconds), perf_counter()
    for k in range(count):
        while (left := begin + k / rate - perf_counter()) > 0.0:
            sleep(left)
        q[:] = 0.3 + 0.2 * np.sin(0.01 * k)
        publish()
    sent.value = count
    sleep(1.0)
    rclpy.try_shutdown()


def listen(urdf, topics, kind_of_executor, rate, seconds):
    """Run one measurement and return what was measured."""
    import rclpy
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.task import Future

    rclpy.init()
    node = rclpy.create_node('sink')
    latencies, stamps = [], set()

    def on_dynamics(message):
        stamp = message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec
        latencies.append(time_ns() - stamp)
        stamps.add(stamp)

    node.create_subscription(DynamicsStamped, '/dynamics/dynamics', on_dynamics, 100)
    # This node is never spun: its queues overflow silently.
    bystander = rclpy.create_node('bystander')
    for topic in topics:
        bystander.create_subscription(KINDS[topic], f'/dynamics/{topic}', lambda message: None, 1)
    executor = EventsExecutor()
    executor.add_node(node)
    process = subprocess.Popen([sys.executable, '-m', 'rbd_ros.ros.dynamics_node', '--ros-args',
                                '-p', f'executor:={kind_of_executor}'],
                               stderr=subprocess.DEVNULL)
    go, sent = multiprocessing.Event(), multiprocessing.Value('i', 0)
    source = multiprocessing.Process(target=send, args=(urdf, rate, seconds, go, sent))
    source.start()
    try:
        end = monotonic() + 120.0
        while not stamps and monotonic() < end:
            executor.spin_until_future_complete(Future(), 0.1)
        gc.freeze()
        latencies.clear()
        stamps.clear()
        watched = psutil.Process(process.pid)
        cpu, begin, memory = sum(watched.cpu_times()[:2]), monotonic(), None
        go.set()
        while source.is_alive():
            executor.spin_until_future_complete(Future(), 0.1)
            if memory is None and monotonic() - begin > min(10.0, seconds / 2):
                memory = watched.memory_info().rss
        cpu = (sum(watched.cpu_times()[:2]) - cpu) / seconds
        growth = watched.memory_info().rss - memory
    finally:
        source.join()
        process.terminate()
        code = process.wait(timeout=10.0)
        executor.shutdown()
        rclpy.try_shutdown()
    p50, p99, p999 = np.percentile(latencies, (50, 99, 99.9)) * 1e-6
    # Some states of before the start may have been answered after it.
    answered = min(len(stamps), sent.value)
    return {'sent': sent.value, 'answered': answered, 'p50': p50, 'p99': p99, 'p99.9': p999,
            'cpu': cpu, 'growth': growth / 1024, 'exit code': code}


def main():
    """Print a line for every rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--urdf', default=str(share('urdf', 'demo_arm.urdf')))
    parser.add_argument('--rates', type=float, nargs='+', default=[1000.0], help='Hz')
    parser.add_argument('--executors', nargs='+', default=['single', 'events'])
    parser.add_argument('--topics', nargs='*', default=list(KINDS), choices=list(KINDS),
                        help='those that have a listener besides ~/dynamics')
    parser.add_argument('--seconds', type=float, default=60.0)
    options = parser.parse_args()
    multiprocessing.set_start_method('spawn')
    from domain_coordinator import domain_id
    model = load_urdf(options.urdf)
    print(f'Dynamics node, {model.name}, {model.nv} joints, listened to: dynamics, '
          f'{", ".join(options.topics)}; '
          f'{options.seconds:.0f} s each')
    print('executor    rate Hz     sent answered   p50 ms   p99 ms p99.9 ms    CPU %'
          '  memory growth KiB')
    for executor, rate in itertools.product(options.executors, options.rates):
        with domain_id() as domain:
            os.environ.update(ROS_DOMAIN_ID=str(domain),
                              ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
            got = listen(options.urdf, options.topics, executor, rate, options.seconds)
        print(f'{executor:8s} {rate:10.0f} {got["sent"]:8d} {got["answered"]:8d}'
              f' {got["p50"]:8.2f} {got["p99"]:8.2f} {got["p99.9"]:8.2f}'
              f' {100 * got["cpu"]:8.1f} {got["growth"]:18.0f}', flush=True)


if __name__ == '__main__':
    main()
