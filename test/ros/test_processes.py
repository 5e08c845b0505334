# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes as processes of their own, as a user starts them."""

import signal
import subprocess
import sys
from time import monotonic, sleep

from harness import at, joint_state, LATCHED, PATIENCE, ros
import numpy as np
import pytest
from rbd_msgs.msg import DynamicsStamped
import rbd_ros
import rclpy
from robots import example_urdf, load_quietly, random_state, relative_error
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

# s: a node may have to compile its kernels first
START_UP = 120.0


@pytest.fixture(autouse=True)
def peer():
    """Give the test a ROS domain of its own, and a node in it."""
    with ros():
        node = rclpy.create_node('peer')
        yield node
        node.destroy_node()


@pytest.fixture
def start():
    """Return a function that starts a node of this package; all are ended after the test."""
    processes = []

    def start(name, *arguments):
        process = subprocess.Popen([sys.executable, '-m', f'rbd_ros.ros.{name}', '--ros-args',
                                    *arguments], stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def spin_until(node, done, patience=PATIENCE):
    """Let a node work until something is so; fail if it does not become so."""
    end = monotonic() + patience
    while not done():
        rclpy.spin_once(node, timeout_sec=0.05)
        assert monotonic() < end


def end(process, number):
    """Send a signal and return the exit code."""
    process.send_signal(number)
    return process.wait(timeout=PATIENCE)


class Robot:
    """A peer that plays the robot to a dynamics node in another process."""

    def __init__(self, node):
        self.node, self.heard = node, []
        self.states = node.create_publisher(JointState, 'joint_states', 10)
        self.descriptions = node.create_publisher(String, 'robot_description', LATCHED)
        node.create_subscription(DynamicsStamped, '/dynamics/dynamics', self.heard.append, 10)

    def check(self, model, model_id):
        """Send states in shuffled order, with a joint nobody knows, until they are answered."""
        for seed in range(5):
            q, v, _ = random_state(model, seed)
            order = np.random.default_rng(seed).permutation(model.nv)
            names = [*(model.velocity_names[k] for k in order), 'caster']
            sent = set()

            def answered(names=names, q=q, v=v, order=order, sent=sent):
                sent.add(stamp := at())
                self.states.publish(joint_state(names, [*q[order], 0.3], [*v[order], 0.1],
                                                stamp=stamp))
                sleep(0.02)
                if not self.heard:
                    return False
                stamp = self.heard[-1].header.stamp
                return (stamp.sec, stamp.nanosec) in sent

            spin_until(self.node, answered, START_UP)
            got, terms = self.heard[-1], rbd_ros.all_terms(model, q, v)
            assert got.model_id == model_id
            assert got.joint_names == list(model.velocity_names)
            assert np.array_equal(got.position, q)
            assert relative_error(got.mass_matrix, terms.M.ravel()) < 1e-12
            assert relative_error(got.coriolis_matrix, terms.C.ravel()) < 1e-12
            assert relative_error(got.gravity_torques, terms.g) < 1e-12


def test_shuffled_states_unknown_joints_and_a_model_swap_across_processes(peer, start):
    robot = Robot(peer)
    process = start('dynamics_node')
    for model_id, name in enumerate(('panda.urdf', 'ur5_robot.urdf', 'talos_full_v2.urdf'), 1):
        path = example_urdf(name)
        robot.descriptions.publish(String(data=path.read_text()))
        robot.check(load_quietly(path), model_id)
    assert end(process, signal.SIGINT) == 0


@pytest.mark.parametrize('name', ['dynamics_node', 'simulated_robot', 'mujoco_robot'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('times', [1, 3])
def test_fault_46_signals_end_every_node_with_exit_code_0(peer, start, name, number, times):
    unique = f'{name}_{number.name.lower()}_{times}'
    process = start(name, '-r', f'__node:={unique}')
    spin_until(peer, lambda: unique in peer.get_node_names(), START_UP)
    for _ in range(times - 1):
        process.send_signal(number)
        sleep(0.01)
    assert end(process, number) == 0


def test_simulated_robot_describes_itself_waits_with_its_brakes_on_and_then_falls(peer, start):
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    start_at = [0.1, -0.5, 0.9, 0.2, 0.3, 0.4]
    states, descriptions = [], []
    peer.create_subscription(JointState, 'joint_states', states.append, 10)
    peer.create_subscription(String, 'robot_description', descriptions.append, LATCHED)
    commands = peer.create_publisher(Float64MultiArray, '/simulated_robot/commands', 10)
    process = start('simulated_robot', '-p', f'urdf:={path}', '-p',
                    f'initial_positions:={start_at}')
    spin_until(peer, lambda: len(states) > 50 and descriptions, START_UP)
    assert descriptions[0].data == path.read_text()
    assert states[-1].name == list(model.velocity_names)
    assert list(states[-1].position) == start_at
    spin_until(peer, lambda: commands.get_subscription_count() > 0)
    # What is no command at all leaves the brakes on.
    for bad in ([0.0] * 5, [np.nan] * 6):
        commands.publish(Float64MultiArray(data=bad))
    count = len(states)
    spin_until(peer, lambda: len(states) > count + 50)
    assert list(states[-1].position) == start_at
    commands.publish(Float64MultiArray(data=[0.0] * 6))
    spin_until(peer, lambda: np.max(np.abs(np.subtract(states[-1].position, start_at))) > 0.2)
    assert end(process, signal.SIGTERM) == 0


def test_simulated_robot_refuses_what_it_cannot_simulate(start):
    path = example_urdf('romeo.urdf')
    process = start('simulated_robot', '-p', f'urdf:={path}')
    _, errors = process.communicate(timeout=START_UP)
    assert process.returncode == 1
    assert "'LHand' moves no inertia" in errors
    process = start('simulated_robot', '-p', 'urdf:=/nowhere/arm.urdf')
    _, errors = process.communicate(timeout=START_UP)
    assert process.returncode == 1
    assert '/nowhere/arm.urdf' in errors
