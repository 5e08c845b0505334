# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure how many robots with seven joints at 100 Hz one core can serve.

All nodes run in one process, or in one process each. A process publishes the joint states of all
robots; this one subscribes to ~/effort_commands and ~/dynamics of all, and counts the latter.

"""

import argparse
from array import array
from functools import partial
import itertools
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys
from time import monotonic, perf_counter, sleep, time_ns

import numpy as np
import psutil
from rbd_msgs.msg import DynamicsStamped
from rbd_ros import load_urdf
from rbd_ros.ros.runtime.share_directory import share
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from timing import save

RATE = 100.0               # Hz
URDF = str(share('urdf', 'demo_arm.urdf'))


def serve(count, events):
    """Run nodes in this process until SIGTERM."""
    from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.task import Future

    rclpy.init()
    executor = EventsExecutor() if events else SingleThreadedExecutor()
    nodes = [DynamicsNode(namespace=f'robot{k}', alone=True) for k in range(count)]
    for node in nodes:
        executor.add_node(node)
    while rclpy.ok():
        executor.spin_until_future_complete(Future(), 3600.0)


def send(count, seconds, go):
    """Publish the joint states of all robots, evenly spaced in time."""
    from rbd_ros.ros.robot.subscriptions import DESCRIPTION_QOS
    import rclpy

    rclpy.init()
    node, model = rclpy.create_node('source'), load_urdf(URDF)
    publishers, describe = [], []
    for k in range(count):
        describe.append(node.create_publisher(String, f'/robot{k}/robot_description',
                                              DESCRIPTION_QOS))
        describe[-1].publish(String(data=Path(URDF).read_text()))
        publishers.append(node.create_publisher(JointState, f'/robot{k}/joint_states', 10))
    message = JointState(name=list(model.velocity_names))
    message.position = array('d', np.full(model.nv, 0.3))
    message.velocity = array('d', np.full(model.nv, 0.1))

    def publish(publisher):
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(time_ns(), 10 ** 9)
        publisher.publish(message)

    while not go.is_set():
        for publisher in publishers:
            publish(publisher)
        sleep(0.2)
    begin = perf_counter()
    for k in range(round(RATE * seconds * count)):
        while (left := begin + k / (RATE * count) - perf_counter()) > 0.0:
            sleep(left)
        publish(publishers[k % count])
    sleep(1.0)
    rclpy.try_shutdown()


def measure(count, processes, events, seconds):
    """Return the share of answered states, the number of cores in use, and memory, bytes."""
    import rclpy
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.task import Future

    rclpy.init()
    node, bystander = rclpy.create_node('sink'), rclpy.create_node('bystander')
    heard, answered = set(), 0

    def on_dynamics(k, message):
        nonlocal answered
        heard.add(k)
        answered += 1

    for k in range(count):
        node.create_subscription(DynamicsStamped, f'/robot{k}/dynamics/dynamics',
                                 partial(on_dynamics, k), 100)
        # This node is never spun: its queues overflow silently.
        bystander.create_subscription(Float64MultiArray, f'/robot{k}/dynamics/effort_commands',
                                      lambda message: None, 1)
    executor = EventsExecutor()
    executor.add_node(node)
    kind = 'events' if events else 'single'
    if processes:
        commands = [['-m', 'rbd_ros.ros.nodes', 'dynamics_node', '--ros-args', '-r',
                     f'__ns:=/robot{k}', '-p', f'executor:={kind}'] for k in range(count)]
    else:
        commands = [[__file__, '--serve', str(count), '--executors', kind]]
    nodes = [subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
             for command in commands]
    go = multiprocessing.Event()
    source = multiprocessing.Process(target=send, args=(count, seconds, go))
    source.start()
    try:
        end = monotonic() + 120.0
        while len(heard) < count and monotonic() < end:
            executor.spin_until_future_complete(Future(), 0.1)
        watched, answered = [psutil.Process(one.pid) for one in nodes], 0
        before = sum(sum(one.cpu_times()[:2]) for one in watched)
        go.set()
        while source.is_alive():
            executor.spin_until_future_complete(Future(), 0.1)
        cpu = sum(sum(one.cpu_times()[:2]) for one in watched) - before
        memory = sum(one.memory_info().rss for one in watched)
    finally:
        source.join()
        for one in nodes:
            one.send_signal(signal.SIGTERM)
            one.wait(timeout=10.0)
        executor.shutdown()
        rclpy.try_shutdown()
    return min(answered / (RATE * seconds * count), 1.0), cpu / seconds, memory


def main():
    """Print a line for every number of robots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--robots', type=int, nargs='+', default=[4, 16])
    parser.add_argument('--executors', nargs='+', default=['events'])
    parser.add_argument('--seconds', type=float, default=5.0)
    parser.add_argument('--quick', action='store_true', help='two robots, to try the script')
    parser.add_argument('--serve', type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.executors == ['events'])
        return
    if options.quick:
        options.robots, options.seconds = [2], 3.0
    rows = []
    multiprocessing.set_start_method('spawn')
    from domain_coordinator import domain_id
    print('executor  processes  robots  answered  CPU %  CPU % a robot  memory MB')
    for kind, processes, count in itertools.product(options.executors, (False, True),
                                                    options.robots):
        with domain_id() as domain:
            os.environ.update(ROS_DOMAIN_ID=str(domain),
                              ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
            answered, cpu, memory = measure(count, processes, kind == 'events', options.seconds)
        print(f'{kind:8s}  {"one each" if processes else "one":9s} {count:7d} '
              f'{100 * answered:8.2f}% {100 * cpu:6.1f} {100 * cpu / count:14.2f} '
              f'{memory / 2 ** 20:10.0f}', flush=True)
        rows.append({'executor': kind, 'one each': processes, 'robots': count,
                     'answered': answered, 'CPU %': 100 * cpu, 'memory': memory})
    save('fleet', options.quick, {'rows': rows, 'seconds': options.seconds})


if __name__ == '__main__':
    main()
