# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes as processes of their own, as a user starts them."""

from itertools import product
import os
import signal
import socket
import sys
from time import monotonic, sleep

from covering import covering
from diagnostic_msgs.msg import DiagnosticArray
from harness import joint_state, LATCHED, PATIENCE
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
import numpy as np
from optional import Optional
import pytest
import rbd_ros
from rbd_ros.kernels.jit.numba_backend import COMPILES
import rclpy
from rclpy.qos import ReliabilityPolicy
from robots import example_urdf, load_quietly, random_state, relative_error
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

psutil = Optional('psutil')

# s: a node may have to compile its kernels first
START_UP = 120.0

pytestmark = pytest.mark.usefixtures('peer')


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
    """A peer that plays the robot to a node in another process."""

    def __init__(self, node):
        self.states = node.create_publisher(JointState, 'joint_states', 10)
        self.descriptions = node.create_publisher(String, 'robot_description', LATCHED)


@pytest.mark.skipif(not COMPILES, reason='nothing is compiled')
@pytest.mark.parametrize('number', covering([signal.SIGINT, signal.SIGTERM], signal.SIGTERM))
def test_a_first_start_answers_states_while_it_compiles_and_ends_at_once(peer, start, tmp_path,
                                                                         number):
    robot, torques, kernels = Robot(peer), [], []
    # They need the fewest kernels.
    peer.create_subscription(JointState, '/dynamics/gravity_torques', torques.append, 10)
    path = example_urdf('ur5_robot.urdf')
    model = load_quietly(path)
    q, _, _ = random_state(model, 0)
    peer.create_subscription(
        DiagnosticArray, '/diagnostics', lambda report: kernels.extend(
            pair.value for pair in report.status[0].values if pair.key == 'kernels'), 10)
    process = start('dynamics_node', '-p', 'implausible_velocity:=0.0',
                    XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR='')
    robot.descriptions.publish(String(data=path.read_text()))

    def answered():
        robot.states.publish(joint_state(model.velocity_names, q))
        sleep(0.02)
        return torques and kernels
    spin_until(peer, answered, START_UP)
    assert relative_error(torques[-1].effort, rbd_ros.gravity_torques(model, q)) < 1e-12
    assert kernels[-1] == 'being compiled'
    compiler, = psutil.Process(process.pid).children()
    assert end(process, number) == 0
    spin_until(peer, lambda: not compiler.is_running()
               or compiler.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize('name, number, times', covering(
    product(('dynamics_node', 'torque_controller', 'simulated_robot', 'mujoco_robot'),
            (signal.SIGINT, signal.SIGTERM), (1, 3)),
    # One signal ends the dynamics node and the simulated robot in other tests of this file.
    ('torque_controller', signal.SIGINT, 3), ('mujoco_robot', signal.SIGTERM, 3)))
def test_fault_46_signals_end_every_node_with_exit_code_0(peer, start, name, number, times):
    unique = f'{name}_{number.name.lower()}_{times}'
    process = start(name, '-r', f'__node:={unique}')
    spin_until(peer, lambda: unique in peer.get_node_names(), START_UP)
    for _ in range(times - 1):
        process.send_signal(number)
        sleep(0.01)
    assert end(process, number) == 0


def test_the_quality_of_service_of_the_commands_of_controller_guard_is_a_parameter(
        peer, python, tmp_path):
    # The service of a controller manager that is not there: the guard waits for it.
    (tmp_path / 'controller_manager_msgs').mkdir()
    (tmp_path / 'controller_manager_msgs' / 'srv.py').write_text(
        'from std_srvs.srv import Trigger as ListControllers')
    topic = '/effort_controller/commands'
    python('-m', 'rbd_ros.ros.nodes.controller_guard', '1.0', '{}', '--ros-args', '-p',
           f'qos_overrides.{topic}.subscription.reliability:=best_effort',
           env=os.environ | {'PYTHONPATH': os.pathsep.join([str(tmp_path), *sys.path])})
    found = []

    def subscribed():
        found[:] = peer.get_subscriptions_info_by_topic(topic)
        return found
    spin_until(peer, subscribed)
    assert [one.qos_profile.reliability for one in found] == [ReliabilityPolicy.BEST_EFFORT]


@pytest.mark.parametrize('name', covering(['simulated_robot', 'mujoco_robot'], 'simulated_robot'))
def test_robots_describe_themselves_wait_with_their_brakes_on_and_then_fall(peer, start, name):
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    start_at = [0.1, -0.5, 0.9, 0.2, 0.3, 0.4]
    states, descriptions = [], []
    peer.create_subscription(JointState, 'joint_states', states.append, 10)
    peer.create_subscription(String, 'robot_description', descriptions.append, LATCHED)
    commands = peer.create_publisher(Float64MultiArray, f'/{name}/commands', 10)
    process = start(name, '-p', f'urdf:={path}', '-p', f'initial_positions:={start_at}')
    spin_until(peer, lambda: len(states) > 50 and descriptions, START_UP)
    # Without the XML declaration, which names the encoding of the file.
    assert descriptions[0].data == path.read_text().partition('?>')[2]
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


@pytest.mark.parametrize('name, value, reason', covering([
    ('simulated_robot', f'urdf:={example_urdf("romeo.urdf")}', "'RHand' moves no inertia"),
    ('simulated_robot', 'rate:=fast', 'rate must be a number'),
    ('mujoco_robot', 'urdf:=/nowhere/arm.urdf', '/nowhere/arm.urdf'),
    ('viewer', 'port:=65536', 'port out of range')],
    ('simulated_robot', 'rate:=fast', 'rate must be a number'),
    ('mujoco_robot', 'urdf:=/nowhere/arm.urdf', '/nowhere/arm.urdf'),
    ('viewer', 'port:=65536', 'port out of range')))
def test_fault_68_nodes_reject_parameters_in_one_line(start, name, value, reason):
    check_refused(start(name, '-p', value), f'{name}: ', reason)


def test_the_viewer_ends_when_its_port_is_taken(peer, start):
    latched = peer.create_publisher(String, 'robot_description', LATCHED)
    with socket.create_server(('localhost', 0)) as taken:
        process = start('viewer', '-p', f'port:={taken.getsockname()[1]}')
        latched.publish(String(data=example_urdf('ur10_robot.urdf').read_text()))
        check_refused(process, 'viewer: port ', 'choose another one')


def check_refused(process, *parts):
    """Check that a process ends with an error, and that it says why in its last line alone."""
    _, errors = process.communicate(timeout=START_UP)
    assert process.returncode == 1
    *others, last = errors.strip().splitlines()
    assert 'Traceback' not in errors
    assert all(part in last for part in parts), errors
    assert not any('ERROR' in line for line in others)


def test_fault_48_the_torque_controller_rejects_parameters_in_one_line(peer, start):
    process = start('torque_controller', '-p', 'computed_torque.kp:=[1.0, 2.0]')
    spin_until(peer, lambda: 'torque_controller' in peer.get_node_names(), START_UP)
    # It waits to be configured with another value.
    assert lifecycle(peer, GetState, 'get_state').current_state.label == 'unconfigured'
    assert end(process, signal.SIGINT) == 0
    errors = process.stderr.read()
    line, = (line for line in errors.splitlines() if 'ERROR' in line)
    assert ('not configured: computed_torque.kp has 2 entries, control_joints has 0') in line
    assert 'Traceback' not in errors


def lifecycle(peer, kind, service, **request):
    """Call a service of the life cycle of the torque controller."""
    client = peer.create_client(kind, f'/torque_controller/{service}')
    assert client.wait_for_service(PATIENCE)
    if request:
        request = {'transition': Transition(**request)}
    future = client.call_async(kind.Request(**request))
    spin_until(peer, future.done)
    peer.destroy_client(client)
    return future.result()


@pytest.mark.alone        # its commands go on in real time, without a step
def test_the_torque_controller_holds_a_robot_and_follows_its_life_cycle(peer, start):
    path = example_urdf('ur10_robot.urdf')
    robot = Robot(peer)
    model, heard = load_quietly(path), []
    q, _, _ = random_state(model, 1)
    peer.create_subscription(Float64MultiArray, '/torque_controller/effort_commands',
                             heard.append, 1000)
    process = start('torque_controller', '-p', 'mode:=pd_gravity', '-p', 'on_stale:=ramp_down',
                    '-p', 'ramp_time:=0.3')
    robot.descriptions.publish(String(data=path.read_text()))
    g = rbd_ros.gravity_torques(model, q)

    def holds():
        robot.states.publish(joint_state(model.velocity_names, q, np.zeros(model.nv)))
        sleep(0.005)
        return heard and np.allclose(heard[-1].data, g, rtol=0.0, atol=1e-9)

    def wait(done):
        spin_until(peer, done, START_UP)

    wait(holds)
    assert lifecycle(peer, ChangeState, 'change_state',
                     id=Transition.TRANSITION_DEACTIVATE).success
    wait(lambda: not np.any(heard[-1].data))
    heard.clear()
    finish = monotonic() + 0.5
    wait(lambda: (holds(), monotonic() > finish)[1])
    assert not heard
    assert lifecycle(peer, ChangeState, 'change_state', id=Transition.TRANSITION_ACTIVATE).success
    wait(holds)
    # From where it ended, at zero, and without a step.
    sizes = np.array([0.0, *(np.linalg.norm(message.data) for message in heard)])
    assert np.max(np.abs(np.diff(sizes))) < 0.25 * np.linalg.norm(g)
    for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP,
                       Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
        assert lifecycle(peer, ChangeState, 'change_state', id=transition).success
    heard.clear()
    wait(holds)
    process.send_signal(signal.SIGINT)
    wait(lambda: process.poll() is not None)
    assert process.returncode == 0
    wait(lambda: not np.any(heard[-1].data))
