# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The viewer node: what it makes of states and of the dynamics node, and its page."""

from pathlib import Path
import signal
import socket
from time import monotonic, sleep
from typing import NamedTuple
from xml.etree import ElementTree

from browser import chromium, complaints, table, wait_for
from command_line import ARM, ROOT
from forged_pages import refused, status
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from harness import at, joint_state, LATCHED, odometry, PATIENCE
import numpy as np
import pytest
from rbd_msgs.msg import DynamicsStamped
import rbd_ros
from rbd_ros import random_configuration
from rbd_ros.ros.nodes.viewed_robot import (
    BASE, DEVIATION, DYNAMICS, MAX_AGE, TORQUES, ViewedRobot, WRENCH)
from rbd_ros.ros.nodes.viewer import ViewerNode
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from robots import example_urdf, load_quietly, Oracle, random_state, relative_error
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

DESCRIPTION, ROUNDING = Path(ARM).read_text(), 1e-12
# Numbers on the page have three digits after the point.
PRINTED = 5.001e-4
ARM_JOINTS = ('shoulder_pan', 'shoulder_lift', 'upper_arm_roll', 'elbow', 'forearm_roll',
              'wrist_pitch', 'flange_roll')


class Arm(NamedTuple):
    """The UR10, the same in Pinocchio, and a state of it."""

    model: rbd_ros.Model
    oracle: Oracle
    q: np.ndarray
    v: np.ndarray
    names: list[str]


@pytest.fixture
def ur10():
    """Return the UR10 in a state."""
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    return Arm(model, Oracle(path, model), *random_state(model, 4)[:2], list(model.velocity_names))


@pytest.fixture
def viewer(peer):
    """Return a function that makes a viewer on any port; it is taken down after the test."""
    made = []

    def make(text=DESCRIPTION, **parameters):
        made.append(ViewerNode(parameter_overrides=[
            Parameter(name, value=value) for name, value in {
                'port': 0, 'robot_description': text, **parameters}.items()]))
        return made[-1]
    yield make
    for node in made:
        node.finish()
        node.destroy_node()


@pytest.fixture
def robot(peer, ur10):
    """Return a robot that is listened to."""
    robot = ViewedRobot(peer, ur10.model, 'left/')
    robot.listen(True)
    return robot


@pytest.fixture
def send(peer, robot):
    """Return a function that sends a message until the robot shows something."""
    publishers = {}

    def send(topic, message, shows=lambda state: True):
        publisher = publishers.setdefault(topic, peer.create_publisher(type(message), topic, 10))
        end = monotonic() + PATIENCE
        while monotonic() < end:
            publisher.publish(message)
            sleep(0.02)
            state = robot.newest()
            if state is not None and shows(state):
                return state
        raise AssertionError(f'{topic} is not shown')
    return send


def test_without_a_dynamics_node_torques_are_computed(robot, send, ur10):
    model, oracle, q, v, _ = ur10
    assert robot.newest() is None
    zero = np.zeros(model.nv)
    # In any order, with a joint that nobody knows.
    order = np.random.default_rng(0).permutation(model.nv)
    names = [*(model.velocity_names[k] for k in order), 'caster']
    state = send('joint_states', joint_state(names, [*q[order], 7.0]),
                 lambda state: np.array_equal(state.q, q))
    assert np.all(np.isnan(state.coriolis)) and np.all(np.isnan(state.effort))
    state = send('joint_states', joint_state(names, [*q[order], 7.0], [*v[order], 7.0],
                                             [*order, 7.0]),
                 lambda state: np.array_equal(state.v, v))
    g = oracle.tau(q, zero, zero)
    assert relative_error(state.gravity, g) < ROUNDING
    assert relative_error(state.coriolis, oracle.tau(q, v, zero) - g) < 1e-10
    assert relative_error(state.M, oracle.M(q)) < ROUNDING
    np.testing.assert_array_equal(state.effort, np.arange(model.nv))
    assert np.all(np.isnan(state.external)) and not state.wrenches


def test_partial_states_are_merged_and_other_numbers_left_out(send, ur10):
    q, names = ur10.q, ur10.names
    send('joint_states', joint_state(names[:2], q[:2]), lambda s: s.q[1] == q[1])
    state = send('joint_states', joint_state(names[2:], q[2:]), lambda s: s.q[2] == q[2])
    np.testing.assert_array_equal(state.q, q)
    state = send('joint_states', joint_state(names[:2], [np.nan, 0.25]), lambda s: s.q[1] == 0.25)
    assert state.q[0] == q[0]


def dynamics(names, model_names, values):
    """Return a message of a dynamics node whose joints are in another order."""
    order = [model_names.index(name) for name in names]
    gravity, coriolis, M, C = values
    return DynamicsStamped(
        joint_names=names, gravity_torques=gravity[order], coriolis_torques=coriolis[order],
        mass_matrix=M[np.ix_(order, order)].ravel(),
        coriolis_matrix=C[np.ix_(order, order)].ravel())


def test_outputs_of_the_dynamics_node_are_shown_while_they_are_recent(robot, send, ur10):
    _, oracle, q, _, names = ur10
    rng = np.random.default_rng(1)
    send('joint_states', joint_state(names, q), lambda state: np.array_equal(state.q, q))
    said = [rng.normal(size=shape) for shape in (6, 6, (6, 6), (6, 6))]
    state = send(DYNAMICS, dynamics(names[::-1], names, said),
                 lambda state: state.gravity[0] == said[0][0])
    for shown, expected in zip((state.gravity, state.coriolis, state.M, state.C), said):
        np.testing.assert_array_equal(shown, expected)
    external = rng.normal(size=6)
    state = send(TORQUES, JointState(name=names[::-1], effort=external[::-1]),
                 lambda state: not np.any(np.isnan(state.external)))
    np.testing.assert_array_equal(state.external, external)
    # A node that locks the first joint knows nothing of it; matrices are then those of the robot.
    state = send(DYNAMICS, dynamics(names[1:], names, said),
                 lambda state: np.isnan(state.gravity[0]))
    np.testing.assert_array_equal(state.gravity[1:], said[0][1:])
    assert relative_error(state.M, oracle.M(q)) < ROUNDING
    sleep(1.5 * MAX_AGE)
    state = robot.newest()
    assert relative_error(state.gravity, oracle.tau(q, 0 * q, 0 * q)) < ROUNDING
    assert np.all(np.isnan(state.external))


def wrench(frame):
    """Return moment and force on a link."""
    return WrenchStamped(header=Header(frame_id=frame), wrench=Wrench(
        torque=Vector3(x=1.0, y=2.0, z=3.0), force=Vector3(x=4.0, y=5.0, z=6.0)))


def test_external_wrenches_are_those_on_the_link_of_their_frame(send, ur10):
    send('joint_states', joint_state(ur10.names, ur10.q))
    state = send(WRENCH, wrench('left/tool0'), lambda state: state.wrenches)
    assert list(state.wrenches) == ['tool0']
    np.testing.assert_array_equal(state.wrenches['tool0'], [1, 2, 3, 4, 5, 6])
    send(WRENCH, wrench('nowhere'), lambda state: not state.wrenches)


def test_the_base_is_shown_at_its_odometry(send, ur10):
    _, oracle, q, _, names = ur10
    assert send('joint_states', joint_state(names, q)).base is None
    turn, zero = Rotation.from_rotvec([0.4, -0.2, 0.7]), np.zeros(3)
    state = send(BASE, odometry('base', turn.as_quat(), (1.0, 2.0, 3.0), zero, zero),
                 lambda state: state.base is not None)
    np.testing.assert_allclose(state.base[:3, :3], turn.as_matrix(), atol=ROUNDING)
    np.testing.assert_array_equal(state.base[:3, 3], [1.0, 2.0, 3.0])
    # Gravity has turned in the axes of the root.
    assert relative_error(state.gravity, oracle.tau(q, 0 * q, 0 * q)) > 0.01
    for spoilt in (np.nan, 0.0):
        sent = []
        state = send(BASE, odometry('base', [spoilt] * 4, (7.0, 2.0, 3.0), zero, zero),
                     lambda state, sent=sent: sent.append(0) or len(sent) > 5)
        assert state.base[0, 3] == 1.0


def test_viewed_states_have_an_age_and_residuals_have_deviations(robot, send, ur10):
    assert send('joint_states', joint_state(ur10.names, ur10.q)).deviation is None
    before = monotonic()
    sleep(0.3)
    age = robot.newest().age
    assert 0.3 <= age <= monotonic() - before + PATIENCE
    deviation = np.arange(6.0)
    state = send(DEVIATION, JointState(name=ur10.names[::-1], effort=deviation[::-1]),
                 lambda state: state.deviation is not None)
    np.testing.assert_array_equal(state.deviation, deviation)


def test_states_given_to_the_viewer_do_not_change(send, ur10):
    _, _, q, v, names = ur10
    state = send('joint_states', joint_state(names, q, v, v), lambda s: s.q[1] == q[1])
    kept = [x.copy() for x in (state.q, state.v, state.effort, state.gravity, state.M)]
    send('joint_states', joint_state(names, 2 * q, 2 * v, 2 * v), lambda s: s.q[1] == 2 * q[1])
    for x, y in zip((state.q, state.v, state.effort, state.gravity, state.M), kept):
        np.testing.assert_array_equal(x, y)


def test_infinite_efforts_count_as_unknown(send, ur10):
    _, oracle, q, _, names = ur10
    rng = np.random.default_rng(2)
    state = send('joint_states', joint_state(names, q, [0.0] * 6, [np.inf, -np.inf, 3.0] * 2),
                 lambda state: state.effort[2] == 3.0)
    np.testing.assert_array_equal(state.effort, [np.nan, np.nan, 3.0] * 2)
    said = [rng.normal(size=shape) for shape in (6, 6, (6, 6), (6, 6))]
    for k, spoilt in enumerate((said[2].ravel()[:-1], np.full(36, np.nan), np.full(36, np.inf),
                                [])):
        said[0] = np.append(float(k), said[0][1:])
        message = dynamics(names, names, said)
        message.mass_matrix, message.coriolis_torques = spoilt, [np.inf] * 6
        state = send(DYNAMICS, message, lambda state, k=k: state.gravity[0] == k)
        assert relative_error(state.M, oracle.M(q)) < ROUNDING
        np.testing.assert_array_equal(state.C, said[3])
        assert np.all(np.isnan(state.coriolis))
    message = wrench('left/tool0')
    send(WRENCH, message, lambda state: state.wrenches)
    message.wrench.torque.y = np.inf
    send(WRENCH, message, lambda state: not state.wrenches)


def test_joints_of_closed_loops_that_are_not_measured_are_shown_where_they_must_be(peer):
    model = load_quietly(ROOT / 'urdf/four_bar.urdf')
    robot, q = ViewedRobot(peer, model, ''), random_configuration(model, 3)
    own = model.loops.own
    names = [model.position_names[k] for k in own]
    robot._subscriptions = {'joint_states': None}
    for measured, known in (((names[0], np.nan), False), ((names[0], q[own][0]), True)):
        waiting = [serialize_message(joint_state([measured[0]], [measured[1]]))]
        robot._waiting['joint_states'].take = lambda _, waiting=waiting: (
            waiting.pop() if waiting else None)
        state = robot.newest()
        assert (state is not None) == known
    np.testing.assert_allclose(np.exp(1j * state.q), np.exp(1j * q), atol=1e-9)


def test_states_that_cannot_be_shown_do_not_stop_the_viewer(peer, viewer):
    node = viewer()
    node.viewer.server.get_clients = lambda: {0: None}
    shown = []
    node.viewer.show = lambda time, state: shown.append(state.v[0])
    publisher = peer.create_publisher(JointState, 'joint_states', 10)

    def send(speed, done):
        end = monotonic() + PATIENCE
        while not done():
            assert monotonic() < end
            publisher.publish(joint_state(ARM_JOINTS, [0.1] * 7, [speed] * 7))
            sleep(0.02)
            node._on_timer()
    send(1e300, lambda: node._report.counts['errors'])
    assert 'not finite' in node._report.last_error
    send(0.5, lambda: 0.5 in shown)


@pytest.mark.parametrize('host, own', [
    ('localhost', 'localhost'), ('0.0.0.0', socket.gethostname())])
def test_pages_of_other_sites_are_refused_by_the_node(viewer, host, own):
    port = viewer(host=host).viewer.server.get_port()
    here = f'http://127.0.0.1:{port}'
    assert status(here, Host=f'{own}:{port}')[0] == 200
    assert status(here, Host=f'evil.example:{port}')[0] == 403
    assert refused(here, origin='https://evil.example')
    assert refused(here, host=f'evil.example:{port}', origin=f'http://evil.example:{port}')
    assert not refused(here)


def test_the_viewer_subscribes_only_while_a_page_is_open(robot, peer):
    topics = ('joint_states', DYNAMICS, TORQUES, WRENCH, DEVIATION, BASE)
    assert [peer.count_subscribers(topic) for topic in topics] == [1] * 6
    robot.listen(False)
    assert [peer.count_subscribers(topic) for topic in topics] == [0] * 6
    robot.listen(True)
    robot.listen(True)
    assert [peer.count_subscribers(topic) for topic in topics] == [1] * 6


def test_the_policy_names_all_topics_and_services_of_the_viewer(peer, viewer):
    node = viewer(use_sim_time=True)
    described = ViewerNode(parameter_overrides=[Parameter('use_sim_time', value=True)],
                           namespace='waiting')
    ViewedRobot(node, load_quietly(ARM), '').listen(True)
    sleep(1.0)
    profile = ElementTree.parse(ROOT / 'config/sros2/viewer.policy.xml').find('.//profile')
    for kind, way, used in (
            ('topics', 'publish', peer.get_publisher_names_and_types_by_node),
            ('topics', 'subscribe', peer.get_subscriber_names_and_types_by_node),
            ('services', 'reply', peer.get_service_names_and_types_by_node)):
        allowed = {name.text for name in profile.find(f"{kind}[@{way}='ALLOW']")}
        # It waits for a description only if it was not given one.
        waiting = {name.removeprefix('/waiting') for name, _ in used('viewer', '/waiting')
                   if 'description' in name}
        assert allowed == {name for name, _ in used('viewer', '/')} | waiting
    described.destroy_node()


def test_descriptions_replace_each_other_unless_they_are_wrong(viewer):
    node = viewer('')
    node._on_timer()
    assert node.viewer is None
    one = ('<robot name="one"><link name="a"><inertial><mass value="1"/></inertial></link>'
           '</robot>')
    for text, expected in ((DESCRIPTION, ARM_JOINTS), ('<robot', ARM_JOINTS), (one, ()),
                           (DESCRIPTION, ARM_JOINTS)):
        node._on_description(String(data=text))
        assert node.viewer.panels._model.velocity_names == expected
        node._on_timer()


@pytest.mark.long
def test_the_page_follows_a_robot_and_its_dynamics_node(peer, start):
    model = load_quietly(ARM)
    oracle = Oracle(ARM, model)
    q, v, _ = random_state(model, 2)
    q *= 0.5
    zero = np.zeros(model.nv)
    nodes = (start('dynamics_node', '-p', 'payload_link:=tool', '-p', 'payload_mass:=3.0', '-p',
                   'payload_com:=[0.0, 0.0, 0.1]'), start('viewer', '-p', 'port:=0'))
    states = peer.create_publisher(JointState, 'joint_states', 10)
    peer.create_publisher(String, 'robot_description', LATCHED).publish(String(data=DESCRIPTION))
    url = next(line.split('shown at ')[1].strip() for line in nodes[1].stderr
               if 'shown at ' in line)
    # The viewer knows no load: these torques can only be those of the dynamics node. They
    # follow from virtual work: the weight of 3 kg at a point of the tool.
    T, J = oracle.pose(q, 'tool'), oracle.jacobian(q, 'tool')
    point = T[:3, :3] @ (J[3:] - np.cross([0.0, 0.0, 0.1], J[:3], axisb=0, axisc=0))
    gravity = oracle.tau(q, zero, zero) + 3.0 * 9.81 * point[2]
    with chromium() as page:
        page.get(url)

        def shown():
            states.publish(joint_state(model.velocity_names, q, v, zero, stamp=at()))
            cells = table(page)
            return cells and all(
                abs(float(cells[name].get('gravity', 'nan')) - expected) < PRINTED
                for name, expected in zip(model.velocity_names, gravity))
        wait_for(shown, 'the torques of the dynamics node')
        assert not complaints(page)
    for node in reversed(nodes):
        node.send_signal(signal.SIGINT)
        assert node.wait(timeout=PATIENCE) == 0
