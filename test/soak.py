# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Let the dynamics node work for ten minutes, and fail if it loses states, grows, or slows down.

A robot of seven joints sends its state at 1 kHz from a process of its own, but for the cycles that
the machine sleeps through; this one listens to ~/dynamics and compares every answer with the
torques and positions that belong to its state. Every state must be answered. After the first
minute (or a quarter of the time) memory may grow by 1 MB, threads and open files not at all.

With --patient the robot stops when five states are unanswered, until they are: a machine that is
shared with others, or slow, then takes longer, and still nothing may be lost.

"""

import argparse
from array import array
import gc
import math
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys
from threading import Event
from time import monotonic, perf_counter, sleep, time_ns

import numpy as np
import psutil
from rbd_ros import load_urdf, Workspace
from rbd_ros.ros.share import share

POSITIONS = 50             # states in turn, so that an answer can be checked by its position
GROWTH = 2 ** 20           # bytes, allowed after the beginning
AGREEMENT = 1e-9           # as a share of the largest torque
RATE = 1000.0              # Hz
UNANSWERED = 5             # states, at which a patient robot stops; a queue holds ten
PATIENCE = 30.0            # s


def states(model):
    """Return the positions that are sent in turn."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, (POSITIONS, model.nv))


def send(urdf, seconds, patient, go, started, sent, answered):
    """
    Send joint states at 1 kHz.

    Cycles that the machine slept through are left out, as the loop of ros2_control leaves them
    out: no robot sends twenty states at once.

    """
    def wait_for_answers():
        """Return whether all that was sent is answered."""
        end = perf_counter() + PATIENCE
        while answered.value < sent.value and perf_counter() < end:
            sleep(1.0 / RATE)
        return answered.value >= sent.value

    import rclpy
    from rbd_ros.ros.subscriptions import DESCRIPTION_QOS
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    rclpy.init()
    node = rclpy.create_node('source')
    model = load_urdf(urdf)
    describe = node.create_publisher(String, 'robot_description', DESCRIPTION_QOS)
    describe.publish(String(data=Path(urdf).read_text()))
    publisher = node.create_publisher(JointState, 'joint_states', 10)
    message = JointState(name=list(model.velocity_names))
    positions = [array('d', q) for q in states(model)]
    message.velocity = array('d', np.full(model.nv, 0.1))

    def publish(k):
        now = time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10 ** 9)
        message.position = positions[k % POSITIONS]
        publisher.publish(message)

    while not go.is_set():
        publish(0)
        sleep(0.05)
    gc.freeze()
    started.value = time_ns()
    due = perf_counter()
    for k in range(round(RATE * seconds)):
        while (left := due - perf_counter()) > 0.0:
            sleep(left)
        due += max(1, math.ceil(-left * RATE)) / RATE
        if patient and sent.value - answered.value >= UNANSWERED and not wait_for_answers():
            break
        publish(k)
        sent.value = k + 1
    wait_for_answers()
    rclpy.try_shutdown()


def soak(urdf, seconds, patient, executor):
    """Run the node and return what went wrong, a sentence each."""
    import rclpy
    from rbd_msgs.msg import DynamicsStamped
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.task import Future

    # The stamp of the first state, and how many were sent and answered since.
    started, sent, answered = (multiprocessing.Value(kind, 0) for kind in 'qii')
    model = load_urdf(urdf)
    workspace, expected = Workspace(model), {}
    for q in states(model):
        terms = workspace.all_terms(q, np.full(model.nv, 0.1))
        expected[q.tobytes()] = np.concatenate((terms.g, terms.coriolis_torques, terms.M.ravel()))
    rclpy.init()
    node, heard, stamps, wrong = rclpy.create_node('sink'), Event(), set(), []

    def on_dynamics(message):
        stamp = message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec
        heard.set()
        if not 0 < started.value <= stamp:
            return
        stamps.add(stamp)
        answered.value = len(stamps)
        right = expected.get(np.array(message.position).tobytes())
        got = np.concatenate((message.gravity_torques, message.coriolis_torques,
                              message.mass_matrix))
        if right is None or not np.max(np.abs(got - right)) < AGREEMENT * np.max(np.abs(right)):
            wrong.append(message)

    node.create_subscription(DynamicsStamped, '/dynamics/dynamics', on_dynamics, 1000)
    listener = EventsExecutor()
    listener.add_node(node)
    # A patient robot's states are not too old because the machine stood still.
    process = subprocess.Popen([sys.executable, '-m', 'rbd_ros.ros.dynamics_node', '--ros-args',
                                '-p', f'executor:={executor}',
                                *(('-p', 'state_timeout:=60.0') if patient else ())])
    watched = psutil.Process(process.pid)
    go = multiprocessing.Event()
    source = multiprocessing.Process(target=send, args=(urdf, seconds, patient, go, started, sent,
                                                        answered))
    source.start()
    faults = []
    try:
        end = monotonic() + 120.0
        while not heard.is_set() and monotonic() < end:
            listener.spin_until_future_complete(Future(), 0.1)
        gc.freeze()
        go.set()
        begin, first, due = monotonic(), None, 0.0
        while source.is_alive():
            listener.spin_until_future_complete(Future(), 0.1)
            elapsed = monotonic() - begin
            if elapsed < min(60.0, 0.25 * seconds):
                continue
            now = (watched.memory_info().rss, watched.num_threads(), watched.num_fds())
            first = first or now
            if elapsed > due:
                due = elapsed + 30.0
                print(f'{elapsed:6.0f} s: {sent.value} sent, {len(stamps)} answered, '
                      f'{now[0] / 2 ** 20:.1f} MB, {now[1]} threads, {now[2]} files', flush=True)
        cpu = sum(watched.cpu_times()[:2]) / elapsed
        if now[0] - first[0] > GROWTH:
            faults.append(f'memory grew by {(now[0] - first[0]) / 1024:.0f} KiB')
        for what, before, after in zip(('threads', 'files'), first[1:], now[1:]):
            if after > before:
                faults.append(f'{what} grew from {before} to {after}')
    finally:
        source.join()
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=10.0)
        listener.shutdown()
        rclpy.try_shutdown()
    print(f'{sent.value} states sent in {elapsed:.0f} s, {len(stamps)} answered, '
          f'{len(wrong)} wrong; memory {(now[0] - first[0]) / 1024:+.0f} KiB; '
          f'{100 * cpu:.0f} % of a core; exit code {code}')
    if wrong:
        faults.append(f'{len(wrong)} answers are wrong')
    if code:
        faults.append(f'the exit code is {code}')
    if sent.value < round(RATE * seconds):
        faults.append(f'the robot stopped: after {PATIENCE:.0f} s states were still unanswered')
    if len(stamps) != sent.value:
        faults.append(f'{sent.value - len(stamps)} states were not answered')
    return faults


def main():
    """Run the node; the exit code is 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=600.0)
    parser.add_argument('--executor', default='events', choices=['single', 'events'])
    parser.add_argument('--patient', action='store_true',
                        help='stop while states are unanswered, on a busy machine')
    options = parser.parse_args()
    multiprocessing.set_start_method('spawn')
    from domain_coordinator import domain_id
    with domain_id() as domain:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        faults = soak(str(share('urdf', 'demo_arm.urdf')), options.seconds, options.patient,
                      options.executor)
    for fault in faults:
        print(f'Fault: {fault}')
    sys.exit(bool(faults))


if __name__ == '__main__':
    main()
