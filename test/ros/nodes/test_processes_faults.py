# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that are killed, told to end in the middle, or not allowed to start."""

from itertools import product
import os
import signal
import subprocess
import sys
from time import monotonic, sleep

from covering import covering
from harness import at, joint_state, LATCHED
import numpy as np
import pytest
from rbd_msgs.msg import DynamicsStamped
import rbd_ros
from robots import example_urdf, load_quietly, random_state
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from test_processes import end, spin_until, START_UP

ARM = example_urdf('ur10_robot.urdf')


def spin_for(node, seconds):
    """Let a node work for some time."""
    finish = monotonic() + seconds
    spin_until(node, lambda: monotonic() > finish)


@pytest.fixture
def arm():
    """Return the UR10, and a state of it."""
    model = load_quietly(ARM)
    return model, *random_state(model, 5)[:2]


@pytest.mark.long
def test_fault_16_either_side_may_be_killed_and_started_again(peer, start, arm):
    model, q, _ = arm
    heard = []
    peer.create_subscription(DynamicsStamped, '/dynamics/dynamics', heard.append, 10)
    g = rbd_ros.gravity_torques(model, q)

    def robot():
        return start('simulated_robot', '-p', f'urdf:={ARM}', '-p',
                     f'initial_positions:={q.tolist()}')

    def works():
        heard.clear()
        spin_until(peer, lambda: len(heard) > 20, START_UP)
        assert all(np.array_equal(message.position, q) for message in heard)
        assert np.allclose(heard[-1].gravity_torques, g)

    node, other = start('dynamics_node'), robot()
    works()
    other.kill()
    other.wait()
    spin_for(peer, 0.5)
    heard.clear()
    spin_for(peer, 0.5)
    assert not heard
    robot()
    works()
    node.kill()
    node.wait()
    node = start('dynamics_node')
    works()
    assert end(node, signal.SIGTERM) == 0


def test_fault_46_sigterm_in_the_middle_of_a_long_computation(peer, start):
    # A tree of 500 joints, whose answers take many milliseconds and megabytes.
    links = ''.join(f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
                    'izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>' for k in range(500))
    joints = ''.join(f'<joint name="j{k}" type="continuous"><parent link="l{k // 2}"/>'
                     f'<child link="l{k + 1}"/><axis xyz="0 1 0"/></joint>' for k in range(499))
    heard = []
    peer.create_subscription(DynamicsStamped, '/dynamics/dynamics', heard.append, 1)
    describe = peer.create_publisher(String, 'robot_description', LATCHED)
    describe.publish(String(data=f'<robot name="big">{links}{joints}</robot>'))
    states = peer.create_publisher(JointState, 'joint_states', 10)
    node = start('dynamics_node')
    names = [f'j{k}' for k in range(499)]

    def answered():
        states.publish(joint_state(names, [0.1] * 499, [0.1] * 499, stamp=at()))
        return heard
    spin_until(peer, answered, START_UP)
    for _ in range(10):
        states.publish(joint_state(names, [0.1] * 499, [0.1] * 499, stamp=at()))
    assert end(node, signal.SIGTERM) == 0


def secured(keystore, strategy):
    """Return the environment of a process with security."""
    return {'ROS_SECURITY_ENABLE': 'true', 'ROS_SECURITY_STRATEGY': strategy,
            'ROS_SECURITY_KEYSTORE': str(keystore)}


@pytest.mark.parametrize('module, folder, why', [
    ('simulated_robot', False, 'failed to initialize rcl'),
    # There is a folder, but no keys are in it, and the middleware from PyPI could not use them.
    ('dynamics_node', True, 'error creating node')])
def test_fault_50_enforced_security_without_keys_refuses_to_start(start, tmp_path, module,
                                                                  folder, why):
    if folder:
        (tmp_path / 'enclaves' / 'a').mkdir(parents=True)
    node = start(module, '--enclave', '/a', **secured(tmp_path, 'Enforce'))
    _, errors = node.communicate(timeout=START_UP)
    assert node.returncode == 1
    last = errors.splitlines()[-1]
    assert last.startswith('ROS does not start')
    assert why in last and 'keystore' in last
    assert 'Traceback' not in errors


def test_fault_50_permissive_security_without_an_enclave_is_no_security(peer, start, tmp_path):
    # Whoever misspells the strategy gets this one, too.
    node = start('dynamics_node', **secured(tmp_path, 'enforce'))
    spin_until(peer, lambda: 'dynamics' in peer.get_node_names(), START_UP)
    assert end(node, signal.SIGTERM) == 0


@pytest.mark.long
@pytest.mark.alone        # its commands go on in real time, without a step
@pytest.mark.parametrize('executor', ['single', 'events'])
@pytest.mark.parametrize('policy', ['stop', 'hold', 'ramp_down'])
def test_fault_52_a_process_that_was_stopped_goes_on_without_a_step(peer, start, arm, executor,
                                                                    policy):
    model, q, v = arm
    later = q + 0.8
    before, after = (rbd_ros.gravity_torques(model, x) for x in (q, later))
    heard = []
    peer.create_subscription(Float64MultiArray, '/dynamics/effort_commands', heard.append, 1000)
    describe = peer.create_publisher(String, 'robot_description', LATCHED)
    describe.publish(String(data=ARM.read_text()))
    states = peer.create_publisher(JointState, 'joint_states', 10)
    node = start('dynamics_node', '-p', f'executor:={executor}', '-p', f'on_stale:={policy}',
                 '-p', 'ramp_time:=2.0')

    def play(position, done):
        """Be a robot that stands somewhere until something is so."""
        def sent_and_done():
            states.publish(joint_state(model.velocity_names, position, v, stamp=at()))
            return done()
        spin_until(peer, sent_and_done, START_UP)

    play(q, lambda: len(heard) > 30)
    assert np.allclose(heard[-1].data, before)
    node.send_signal(signal.SIGSTOP)
    finish = monotonic() + 2.0
    play(later, lambda: monotonic() > finish)
    count = len(heard)
    node.send_signal(signal.SIGCONT)
    play(later, lambda: len(heard) > count and np.allclose(heard[-1].data, after))
    commands = np.array([message.data for message in heard[count - 1:]])
    way = np.max(np.abs(after - before)) + np.max(np.abs(before)) * (policy == 'ramp_down')
    # 0.02 s of a blend of 0.25 s is the longest step.
    assert np.max(np.abs(np.diff(commands, axis=0))) < 0.09 * way
    assert end(node, signal.SIGTERM) == 0


# s, from a node's first line on: imports, ROS, kernels and the first timers follow.
DELAYS = (0.0, 0.1, 0.2, 0.35, 0.55, 0.75, 1.05)


@pytest.mark.parametrize('name, number, delays', covering(
    product(('dynamics_node', 'simulated_robot', 'mujoco_robot'),
            (signal.SIGINT, signal.SIGTERM), (DELAYS[::2], DELAYS[1::2])),
    ('dynamics_node', signal.SIGINT, DELAYS[::2]),
    ('mujoco_robot', signal.SIGTERM, DELAYS[1::2])))
def test_fault_57_a_signal_during_the_start_ends_a_node_with_exit_code_0(peer, python, name,
                                                                         number, delays):
    for delay in delays:
        node = python('-c', SIGNALLED.format(name=name), stdout=subprocess.PIPE)
        # It says so when it has come to its first line.
        assert node.stdout.readline() == 'first line\n'
        sleep(delay)
        node.send_signal(number)
        _, errors = node.communicate(timeout=10.0)
        assert node.returncode == 0, errors
        assert 'Traceback' not in errors


SIGNALLED = """
import sys
sys.argv = ['{name}']
from rbd_ros.ros.runtime import entry_points as run
listen = run.End.__init__
def init(self):
    listen(self)
    print('first line', flush=True)
run.End.__init__ = init
run.{name}()
"""


@pytest.mark.parametrize('name', covering(['dynamics_node', 'simulated_robot'], 'dynamics_node'))
def test_fault_57_at_its_end_a_node_searches_nothing_for_garbage(peer, python, name):
    # It took 0.4 s of computing, and under load seconds: launch's patience has an end.
    node = python('-c', COUNTED.format(name=name), stdout=subprocess.PIPE)
    # A node that is told to end before it spins ends at once, without what is done at exit.
    assert node.stdout.readline() == 'spinning\n', node.stderr.read()
    node.send_signal(signal.SIGINT)
    output, errors = node.communicate(timeout=START_UP)
    assert node.returncode == 0, errors
    kept, searched = map(int, output.split())
    assert kept > 50_000
    assert searched < 1_000


COUNTED = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count(), len(gc.get_objects())))
sys.argv = ['{name}']
from rbd_ros.ros.runtime import entry_points as run
call = run.End.call
def called(self, finish):
    call(self, finish)
    print('spinning', flush=True)
run.End.call = called
run.{name}()
"""


@pytest.mark.parametrize('given, used', [({}, '1'), ({'OPENBLAS_NUM_THREADS': '2'}, '2')])
def test_signals_are_handled_before_slow_imports_and_blas_has_one_thread(given, used):
    script = ('import os, sys; from rbd_ros.ros.runtime import entry_points; '
              'print([x for x in ("numba", "numpy", "rclpy", "lxml") if x in sys.modules], '
              'os.environ["OPENBLAS_NUM_THREADS"])')
    others = {name: x for name, x in os.environ.items() if name != 'OPENBLAS_NUM_THREADS'}
    run = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True,
                         check=True, env={**others, **given})
    assert run.stdout == f'[] {used}\n'


@pytest.mark.parametrize('name', covering(
    ['dynamics_node', 'simulated_robot', 'mujoco_robot', 'viewer'], 'dynamics_node', 'viewer'))
def test_help_is_printed_and_nothing_is_started(name):
    run = subprocess.run([sys.executable, '-m', 'rbd_ros.ros.nodes', name, '--help'],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert f'usage: {name} --ros-args' in run.stdout
    assert 'robot_description' in run.stdout
    assert not run.stderr
