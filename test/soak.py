# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Run the dynamics node for ten minutes while it is disturbed, and fail on any error.

A robot with seven joints repeats the motion of the demo and sends its state at 1 kHz from a
separate process, except for cycles missed because of a pause of the machine. Another process calls
slow services all the time. This one occasionally stops the node for up to a second (SIGSTOP),
replaces its robot, and adds or removes the payload of the demo. It subscribes to ~/dynamics and
~/effort_commands and checks:

- every answer has the values of its state and of the robot that the node had then,
- commands do not step: two consecutive ones differ by at most what a blend of 0.25 s and the
  motion of the robot allow within 20 ms,
- every state is answered, except for those sent while the node was stopped and shortly after,
  those counted by the node as overruns, and one of ten thousand, since a shared machine may pause
  for longer than a queue holds,
- after the first minute (or half of the time) memory grows by no more than 1 MB, and the numbers
  of threads and open files not at all.

With --patient the robot stops when five states are unanswered, until they are answered or the node
reports them as overruns: on a shared or slow machine the run then takes longer, and still no state
may be lost.

"""

import argparse
from array import array
from contextlib import suppress
from functools import partial
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
from rbd_ros import (center_of_mass, gravity_torques, inverse_dynamics, load_urdf, mass_matrix,
                     with_payload)
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.robots import heavy_position, tip
from rbd_ros.ros.demo.torque_modes import AdaptiveMode, ComputedTorqueMode
from rbd_ros.ros.runtime.share_directory import share

RATE = 1000.0              # Hz
POSITIONS = round(RATE * ComputedTorqueMode.MOTION)    # of a motion
GROWTH = 2 ** 20           # bytes, allowed after the beginning
AGREEMENT = 1e-9           # as a share of the largest torque
LOST = 1e-4                # share of the states that may be lost without --patient
UNANSWERED = 5             # states, at which a patient robot stops; a queue holds ten
PATIENCE = 30.0            # s
LONGEST_STOP = 1.0         # s, for which the node is stopped
# s: states sent within these times before and after a stop may be lost
BEFORE, AFTER = 0.02, 0.2
# s, between stops, new robots and payloads; different primes, so that all combinations occur
STOPS, SWAPS, LOADS = 7.0, 11.0, 3.1
LONG = 600.0               # s, of a run that the benchmark reports
QUIET = 2.0                # s, without disturbance in the end
# s, of a blend, and the largest part of it that one command may catch up
BLEND, LONGEST_STEP = 0.25, 0.02
# kg; m, in the frame of the link that carries it
LOAD, PLACE = AdaptiveMode.PAYLOAD, AdaptiveMode.PAYLOAD_COM
LINK = 'elbow_link'        # whose mass is another one in the other robot
VELOCITY = 0.1             # rad/s, which is sent with every position


def path(model):
    """Return the positions that are sent in turn, shape (POSITIONS, nv)."""
    motion = Motion(model, heavy_position(model), ComputedTorqueMode.MOTION)
    return np.array([motion.at(k / RATE) for k in range(POSITIONS)])


def heavier(text):
    """Return the description of the same robot with one link three times as heavy."""
    link = text.index(f'<link name="{LINK}">')
    begin = text.index('<mass value="', link) + len('<mass value="')
    end = text.index('"', begin)
    return f'{text[:begin]}{3.0 * float(text[begin:end])}{text[end:]}'


# -- The robot. -----------------------------------------------------------------------------------

def send(urdf, seconds, patient, go, sent, answered, left_out, stamps):
    """Send joint states at 1 kHz; like ros2_control, skip cycles missed because of a pause."""
    def unanswered():
        return sent.value - answered.value - left_out.value

    def wait_for_answers():
        """Return whether all that was sent is answered, or left out by a node that said so."""
        end = perf_counter() + PATIENCE
        while unanswered() > 0 and perf_counter() < end:
            sleep(1.0 / RATE)
        return unanswered() <= 0

    import rclpy
    from sensor_msgs.msg import JointState

    rclpy.init()
    node = rclpy.create_node('source')
    model = load_urdf(urdf)
    publisher = node.create_publisher(JointState, 'joint_states', 10)
    message = JointState(name=list(model.velocity_names))
    positions = [array('d', q) for q in path(model)]
    message.velocity = array('d', np.full(model.nv, VELOCITY))

    def publish(k):
        now = time_ns()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10 ** 9)
        message.position = positions[k % POSITIONS]
        publisher.publish(message)
        return now

    while not go.is_set():
        publish(0)
        sleep(0.05)
    gc.freeze()
    due = perf_counter()
    for k in range(round(RATE * seconds)):
        while (left := due - perf_counter()) > 0.0:
            sleep(left)
        due += max(1, math.ceil(-left * RATE)) / RATE
        if patient and unanswered() >= UNANSWERED and not wait_for_answers():
            break
        stamps[k] = publish(k)
        sent.value = k + 1
    if patient:
        wait_for_answers()
    else:
        sleep(1.0)
    rclpy.try_shutdown()


# -- Those who ask. -------------------------------------------------------------------------------

def ask(urdf, go, over, asked, wrong):
    """Call the slowest services one after the other, and check their responses."""
    from rbd_msgs.srv import HybridDynamicsDerivatives, TaskSpaceDynamics, TorqueRegressor
    import rclpy

    rclpy.init()
    node = rclpy.create_node('analyst')
    model = load_urdf(urdf)
    q, one = path(model)[0].tolist(), [1.0] * model.nv
    requests = (
        (TorqueRegressor, 'torque_regressor', {'acceleration': one}),
        (TorqueRegressor, 'torque_regressor', {'reference_velocity': one,
                                               'reference_acceleration': one}),
        (HybridDynamicsDerivatives, 'hybrid_dynamics_derivatives', {
            'acceleration': one, 'effort': one, 'acceleration_prescribed': [True] * model.nv}),
        (TaskSpaceDynamics, 'task_space_dynamics', {'link': tip(model)}))
    clients = {name: node.create_client(kind, f'/dynamics/{name}') for kind, name, _ in requests}
    for client in clients.values():
        client.wait_for_service()
    go.wait()
    while not over.is_set():
        for kind, name, fields in requests:
            future = clients[name].call_async(kind.Request(
                position=q, velocity=[VELOCITY] * model.nv, **fields))
            rclpy.spin_until_future_complete(node, future, timeout_sec=PATIENCE)
            asked.value += 1
            if not future.done() or not future.result().success:
                wrong.value += 1
                print(f'{name}:', future.result().message if future.done() else 'no answer')
            elif 'acceleration' in fields and kind is TorqueRegressor:
                answer = future.result()
                rows, columns = model.nv, len(answer.parameters)
                tau = np.reshape(answer.regressor.data, (rows, columns)) @ answer.parameters
                # By any of the robots that the node may have had then.
                if not any(np.allclose(tau, inverse_dynamics(one_of, q, [VELOCITY] * rows, one))
                           for one_of in robots(urdf).values()):
                    wrong.value += 1
                    print(f'{name}: wrong torques {tau}')
        sleep(0.02)
    rclpy.try_shutdown()


_ROBOTS = {}


def robots(urdf):
    """Return the robots that the node may have, by mass."""
    if not _ROBOTS:
        from rbd_ros import load_urdf_string
        text = Path(urdf).read_text()
        for model in (load_urdf_string(text), load_urdf_string(heavier(text))):
            for one in (model, with_payload(model, tip(model), LOAD, PLACE)):
                _ROBOTS[round(one.mass, 9)] = one
    return _ROBOTS


# -- What is heard. -------------------------------------------------------------------------------

class Ears:
    """Receives the outputs of the node and checks them."""

    def __init__(self, urdf, answered, left_out):
        models = robots(urdf)
        q = path(next(iter(models.values())))
        self._index = {position.tobytes(): k for k, position in enumerate(q)}
        still = np.full(q.shape[1], VELOCITY)
        self._expected = {
            mass: [(gravity_torques(model, x), inverse_dynamics(model, x, still, 0.0 * still),
                    mass_matrix(model, x), center_of_mass(model, x)) for x in q]
            for mass, model in models.items()}
        g = np.array([[terms[0] for terms in of_robot] for of_robot in self._expected.values()])
        self._largest = np.max(np.abs(g))
        # The widest blend is between two robots and two poses; meanwhile the robot moves on.
        width = g.max(axis=(0, 1)) - g.min(axis=(0, 1))
        speed = RATE * np.max(np.abs(np.diff(g, axis=1)), axis=(0, 1))
        self._reach = LONGEST_STEP * (width / BLEND + speed) + AGREEMENT * self._largest
        self._last, self._answered, self._left_out = None, answered, left_out
        # Stamps of the answered states, ns; errors; and the counters of the node.
        self.heard, self.stamps, self.commands = Event(), set(), 0
        self.wrong, self.jumps, self.counts = [], [], {}
        self.g, self.begin, self.largest_step = None, math.inf, 0.0

    def on_dynamics(self, message):
        """Check an answer against functions that compute one quantity each."""
        stamp = message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec
        self.heard.set()
        terms = self._expected.get(round(message.mass, 9))
        k = self._index.get(np.array(message.position).tobytes())
        if terms is None or k is None:
            self.wrong.append(f'an answer for {message.mass} kg at {list(message.position)}')
            return
        g, bias, M, com = terms[k]
        self.g = g
        tau = np.add(message.gravity_torques, message.coriolis_torques)
        scale = AGREEMENT * self._largest
        if not (np.max(np.abs(message.gravity_torques - g)) < scale
                and np.max(np.abs(tau - bias)) < scale
                and np.max(np.abs(np.reshape(message.mass_matrix, M.shape) - M)) < scale
                and np.max(np.abs([message.com.x, message.com.y, message.com.z] - com)) < scale):
            self.wrong.append(f'position {k}, {message.mass} kg')
        if stamp >= self.begin:
            self.stamps.add(stamp)
            self._answered.value = len(self.stamps)

    def on_commands(self, message):
        """Check that a command does not step."""
        efforts = np.array(message.data)
        self.commands += 1
        if self._last is not None:
            step = np.abs(efforts - self._last)
            self.largest_step = max(self.largest_step, np.max(step))
            if not np.all(step <= self._reach):
                self.jumps.append(f'from {self._last} to {efforts}')
        self._last = efforts

    def on_diagnostics(self, message):
        """Store the counters of the node."""
        self.counts = {pair.key: pair.value for pair in message.status[0].values}
        self._left_out.value = self.count('overruns')

    def count(self, what):
        """Return a counter of the node."""
        return int(self.counts.get(what, '0'))

    def settled(self):
        """Return whether the last command is the gravity torque of the last answer."""
        return np.allclose(self._last, self.g, atol=1e-6 * self._largest)


# -- The soak. ------------------------------------------------------------------------------------

class Disturber:
    """Occasionally stops the node, and calls `swap` and `load` with an increasing number."""

    def __init__(self, process, swap, load):
        self._process, self._rng, begin = process, np.random.default_rng(1), monotonic()
        self._actions = {'stop': (self._stop, math.inf), 'swap': (swap, SWAPS),
                         'load': (load, LOADS)}
        self._due = {'stop': begin + STOPS, 'swap': begin + SWAPS, 'load': begin + LOADS}
        # Intervals in which the node was stopped, ns.
        self._going_on, self.stops, self.counts = math.inf, [], dict.fromkeys(self._due, 0)

    def act(self):
        """Perform the disturbances that are due."""
        now = monotonic()
        if now >= self._going_on:
            self.end()
            self._going_on, self._due['stop'] = math.inf, now + STOPS
        for what, (do, period) in self._actions.items():
            if now >= self._due[what]:
                self._due[what] = now + period
                self.counts[what] += 1
                do(self.counts[what])

    def _stop(self, _):
        self.stops.append((time_ns(), math.inf))
        self._process.send_signal(signal.SIGSTOP)
        # Half of the stops are shorter than a gap in the states.
        self._going_on = monotonic() + LONGEST_STOP * self._rng.uniform() ** 3

    def end(self):
        """Resume the node."""
        if self.stops and self.stops[-1][1] == math.inf:
            self._process.send_signal(signal.SIGCONT)
            self.stops[-1] = (self.stops[-1][0], time_ns())


def soak(urdf, seconds, patient, executor):
    """Run the node and return the errors found, one sentence each."""
    from diagnostic_msgs.msg import DiagnosticArray
    from geometry_msgs.msg import Inertia, Vector3
    from rbd_msgs.msg import DynamicsStamped
    from rbd_msgs.srv import SetPayload
    import rclpy
    from rclpy.experimental.events_executor import EventsExecutor
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from rclpy.task import Future
    from std_msgs.msg import Float64MultiArray, String

    sent, answered, left_out, asked, unanswered = (
        multiprocessing.Value('i', 0) for _ in range(5))
    stamps = multiprocessing.Array('q', round(RATE * seconds), lock=False)
    go, over = multiprocessing.Event(), multiprocessing.Event()
    texts = [Path(urdf).read_text()]
    texts.append(heavier(texts[0]))
    link, payload = tip(load_urdf(urdf)), Inertia(m=LOAD, com=Vector3(**dict(zip('xyz', PLACE))))
    ears = Ears(urdf, answered, left_out)

    rclpy.init()
    node = rclpy.create_node('sink')
    node.create_subscription(DynamicsStamped, '/dynamics/dynamics', ears.on_dynamics, 1000)
    node.create_subscription(Float64MultiArray, '/dynamics/effort_commands', ears.on_commands,
                             1000)
    node.create_subscription(DiagnosticArray, '/diagnostics', ears.on_diagnostics, 10)
    descriptions = node.create_publisher(String, 'robot_description', QoSProfile(
        depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    descriptions.publish(String(data=texts[0]))
    payloads = node.create_client(SetPayload, '/dynamics/set_payload')
    listener = EventsExecutor()
    listener.add_node(node)
    spin = partial(listener.spin_until_future_complete, Future())

    # States of a patient robot must not be dropped as too old after a pause of the machine.
    process = subprocess.Popen([
        sys.executable, '-m', 'rbd_ros.ros.nodes', 'dynamics_node', '--ros-args', '--log-level',
        'error', '-p', f'executor:={executor}', '-p', 'model_changes:=accept',
        '-p', 'on_stale:=hold',
        *(('-p', 'state_timeout:=60.0') if patient else ())])
    import psutil    # Not needed by tests that read the figures above.
    watched = psutil.Process(process.pid)
    helpers = [multiprocessing.Process(target=send, args=(urdf, seconds, patient, go, sent,
                                                          answered, left_out, stamps)),
               multiprocessing.Process(target=ask, args=(urdf, go, over, asked, unanswered))]
    source, _ = helpers
    resources, disturber = [], None
    try:
        for helper in helpers:
            helper.start()
        end = monotonic() + 120.0
        while not ears.heard.is_set() and monotonic() < end:
            spin(0.1)
        gc.freeze()
        disturber = Disturber(
            process, lambda count: descriptions.publish(String(data=texts[count % 2])),
            lambda count: payloads.call_async(SetPayload.Request(
                link=link, inertia=payload if count % 2 else Inertia())))
        ears.begin = time_ns()
        go.set()
        begin, due = monotonic(), 0.0
        while source.is_alive():
            spin(0.01)
            elapsed = monotonic() - begin
            if sent.value < len(stamps) - RATE * QUIET:
                disturber.act()
            else:
                disturber.end()
            if elapsed < min(60.0, 0.5 * seconds):
                continue
            resources.append((watched.memory_info().rss, watched.num_threads(),
                              watched.num_fds()))
            if elapsed > due:
                due = elapsed + 30.0
                print(f'{elapsed:6.0f} s: {sent.value} sent, {len(ears.stamps)} answered, '
                      f'{resources[-1][0] / 2 ** 20:.1f} MB', flush=True)
        cpu = sum(watched.cpu_times()[:2]) / elapsed
        over.set()
        # Receive the last diagnostics of the node, and the last outputs.
        before = ears.counts
        end = monotonic() + 5.0
        while ears.counts is before and monotonic() < end:
            spin(0.1)
    finally:
        over.set()
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=10.0)
        for helper in helpers:
            helper.join(timeout=PATIENCE)
            with suppress(ProcessLookupError):
                helper.kill()
        listener.shutdown()
        rclpy.try_shutdown()

    lost = set(stamps[:sent.value]) - ears.stamps
    excused = [stamp for stamp in lost
               if any(a - 1e9 * BEFORE < stamp < b + 1e9 * AFTER for a, b in disturber.stops)]
    unexcused, overruns = len(lost) - len(excused), ears.count('overruns')
    (memory, *first), (memory_then, *last) = resources[0], resources[-1]
    counts = {
        's': elapsed, 'states sent': sent.value, 'answered': len(ears.stamps),
        'wrong': len(ears.wrong), 'lost while the node was stopped': len(excused),
        'lost otherwise': unexcused, 'commands': ears.commands, 'jumps': len(ears.jumps),
        'largest step, N m': ears.largest_step,
        'times the node was stopped': len(disturber.stops),
        'robots exchanged': disturber.counts['swap'], 'loads': disturber.counts['load'],
        'requests answered': asked.value, 'memory, KiB': (memory_then - memory) // 1024}
    stood = sum(b - a for a, b in disturber.stops) * 1e-9
    print(*(f'{name}: {value:.6g}' for name, value in counts.items()), sep='; ')
    print(f'stopped for {stood:.1f} s; {overruns} overruns, {ears.count("joint states dropped")} '
          f'dropped; {100 * cpu:.0f} % of a core')
    if seconds >= LONG:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'benchmark'))
        from timing import save
        save('soak', False, {'counts': counts})
    faults = [text for found, text in (
        (ears.wrong, f'{len(ears.wrong)} answers are wrong, the first: {ears.wrong[:1]}'),
        (ears.jumps, f'{len(ears.jumps)} commands jumped, the first: {ears.jumps[:1]}'),
        (not ears.settled(), 'the last command is not the gravity torque of the last answer'),
        (unanswered.value, f'{unanswered.value} requests were not answered, or wrongly'),
        (not asked.value, 'no request was made'),
        (memory_then - memory > GROWTH, f'memory grew by {counts["memory, KiB"]} KiB'),
        *((after > before, f'{what} grew from {before} to {after}')
          for what, before, after in zip(('threads', 'files'), first, last)),
        (code, f'the exit code is {code}'),
        (sent.value < round(RATE * seconds),
         f'the robot stopped: after {PATIENCE:.0f} s states were still unanswered'),
        (unexcused > overruns + (0 if patient else LOST * sent.value),
         f'{unexcused} states were not answered, and the node has counted {overruns}')) if found]
    if faults:
        print('the node says:', *(f'  {key}: {value}' for key, value in ears.counts.items()),
              sep='\n')
    return faults


def main():
    """Run the node; the exit code is 0 if no error was found."""
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
