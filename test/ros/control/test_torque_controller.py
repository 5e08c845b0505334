# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The torque controller as a node: modes, references and what keeps them from doing harm."""

import re

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from harness import check_values, keep_sending as sending, said
import numpy as np
import pytest
from rbd_msgs.srv import SetMode
import rbd_ros
from rbd_ros.control import (
    CartesianImpedance, ComputedTorque, JointReference, PdGravity, PoseReference)
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rclpy.parameter import Parameter
from robots import example_urdf
from scipy.spatial.transform import Rotation
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# Rounding is a thousandth of it.
AGREEMENT = 1e-9
WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR
MODES = ('gravity', 'pd_gravity', 'computed_torque', 'joint_impedance', 'cartesian_impedance',
         'slotine_li', 'hybrid')
COMMANDS = '~/effort_commands'

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture
def controller(harness):
    """Return a function that starts a torque controller of the UR10."""
    def start(**parameters):
        return harness(kind=TorqueController, **{'task_link': 'tool0', 'state_timeout': 60.0,
                                                 **parameters})
    return start


@pytest.fixture
def rest(model):
    """Return names, a position and zero velocity of the UR10."""
    return model.velocity_names, np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.0]), np.zeros(6)


def keep_sending(node, state, done):
    """Send states, so slowly that a gap takes half a second: the machine may be busy."""
    sending(node, state, done, 0.1)


def trajectory(names, *points, **fields):
    """Return a message; points are times, s, with positions."""
    message = JointTrajectory(joint_names=list(names))
    for t, q in points:
        point = JointTrajectoryPoint(positions=[float(x) for x in q])
        point.time_from_start.sec, point.time_from_start.nanosec = int(t), round(1e9 * (t % 1.0))
        message.points.append(point)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def publish(node, kind, topic, message):
    """Publish a message to the node, and let it be heard."""
    publisher = node.peer.create_publisher(kind, f'{node.name}/{topic}', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    publisher.publish(message)
    node.settle()
    node.peer.destroy_publisher(publisher)


@pytest.mark.parametrize('mode', MODES)
def test_every_mode_begins_with_gravity_torques_of_a_robot_at_rest(controller, model, rest, mode):
    node = controller(mode=mode)
    got = node.answer(*rest, topic=COMMANDS)
    node.spin_until(lambda: node.heard['~/effort_trajectory'])
    g = rbd_ros.gravity_torques(model, rest[1])
    assert np.max(np.abs(got.data - g)) < AGREEMENT * np.max(np.abs(g))
    message = node.heard['~/effort_trajectory'][-1]
    assert list(message.joint_names) == list(model.velocity_names)
    assert list(message.points[0].effort) == list(got.data)
    assert node.diagnosis()[2]['mode'] == mode
    check_values(node.heard['/diagnostics'][-1])


def test_errors_are_answered_by_the_law_with_the_gains_of_the_parameters(controller, model, rest):
    names, q, v = rest
    node = controller(mode='computed_torque', **{
        'control_joints': list(reversed(names)),
        'computed_torque.kp': [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    heard = node.heard[COMMANDS]
    keep_sending(node, rest, lambda: len(heard) > 8)
    off, moving = q + 0.01, v + 0.1
    law = ComputedTorque(model, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0], friction_speed=None)
    expected = law.update(0.0, off, moving, JointReference(model, q))
    keep_sending(node, (names, off, moving), lambda: np.allclose(
        heard[-1].data, expected, rtol=AGREEMENT, atol=AGREEMENT))


@pytest.mark.parametrize('convention', ['without_gravity', 'without_gravity_and_coriolis'])
@pytest.mark.parametrize('mode', ['gravity', 'pd_gravity', 'computed_torque'])
def test_what_the_robot_adds_is_taken_off_once(controller, model, rest, mode, convention):
    names, q, v = rest
    full, node = (controller(mode=mode, **{'effort_convention.commands': one})
                  for one in ('full', convention))
    moving = v + 0.5
    efforts = [np.array(one.answer(names, q, moving, topic=COMMANDS).data) for one in (node,)]
    full.close()
    full.close = lambda: None
    terms = rbd_ros.all_terms(model, q, moving)
    law = (PdGravity(model, 50.0, 5.0, friction_speed=None) if mode == 'pd_gravity'
           else ComputedTorque(model, 100.0, friction_speed=None))
    whole = (terms.g if mode == 'gravity'
             else law.update(0.0, q, moving, JointReference(model, q)))
    own = terms.g + (terms.coriolis_torques if mode == 'computed_torque'
                     and convention == 'without_gravity_and_coriolis' else 0.0)
    assert np.max(np.abs(efforts[0] - (whole - own))) < AGREEMENT * np.max(np.abs(whole))


def test_before_there_is_a_robot_none_is_said_to_be_held(controller):
    node = controller(mode='gravity', description=None)
    assert 'there is a robot' in node.call(SetMode, 'set_mode', mode='computed_torque').message


def test_a_mode_that_cannot_be_is_refused_and_the_old_one_stays(controller, rest):
    node = controller(mode='pd_gravity', task_link='')
    node.answer(*rest, topic=COMMANDS)
    got = node.call(SetMode, 'set_mode', mode='cartesian_impedance')
    assert not got.success and 'task_link' in got.message
    got = node.call(SetMode, 'set_mode', mode='fly')
    assert not got.success and 'mode must be one of' in got.message
    assert node.diagnosis()[2]['mode'] == 'pd_gravity'
    result, = node.node.set_parameters([Parameter('pd_gravity.stiffness', value=[1.0, 2.0])])
    assert not result.successful and 'control_joints' in result.reason
    assert node.call(SetMode, 'set_mode', mode='hybrid').success
    assert node.diagnosis()[2]['mode'] == 'hybrid'


@pytest.mark.parametrize('link, message', [
    ('nosuch', "slotine_li.links: .*'nosuch'"), ('base_link', 'no joint moves it')])
def test_links_that_cannot_adapt_are_refused_at_once_in_every_mode(controller, rest, link,
                                                                   message):
    node = controller(mode='gravity')
    node.answer(*rest, topic=COMMANDS)
    result, = node.node.set_parameters([Parameter('slotine_li.links', value=[link])])
    assert not result.successful and re.search(message, result.reason)
    assert node.node.get_parameter('slotine_li.links').value == []
    result, = node.node.set_parameters([Parameter('slotine_li.links', value=['tool0'])])
    assert result.successful
    # At the start the robot is not known yet: then nothing is commanded.
    late = controller(mode='gravity', **{'slotine_li.links': [link]})
    keep_sending(late, rest, lambda: any(
        re.search(f'commands nothing: .*{message}', status.message)
        for report in late.heard['/diagnostics'] for status in report.status))
    assert not late.heard[COMMANDS]


def test_a_mode_holds_the_robot_where_it_is_and_begins_without_a_step(controller, model, rest):
    names, q, v = rest
    node = controller(mode='pd_gravity')
    heard = node.heard[COMMANDS]
    keep_sending(node, rest, lambda: len(heard) > 8)
    off = q + 0.1
    g = rbd_ros.gravity_torques(model, off)
    first = g - 50.0 * 0.1
    keep_sending(node, (names, off, v), lambda: np.allclose(heard[-1].data, first, atol=1e-9))
    count = len(heard)
    assert node.call(SetMode, 'set_mode', mode='joint_impedance').success
    keep_sending(node, (names, off, v), lambda: np.allclose(heard[-1].data, g, atol=1e-9))
    steps = np.abs(np.diff([message.data for message in heard[count - 1:]], axis=0))
    # A fifth of the way at once, of what is left.
    assert len(steps) > 4
    assert np.max(steps[0]) <= 0.2 * 50.0 * 0.1 + 1e-9


def test_a_continuous_joint_is_held_and_moved_across_half_a_turn(controller, model):
    text = example_urdf('ur10_robot.urdf').read_text().replace(
        'name="wrist_3_joint" type="revolute"', 'name="wrist_3_joint" type="continuous"')
    names, still, q = model.velocity_names, np.zeros(6), np.array([0.3, -0.9, 1.1, -0.4, 0.6, 3.1])
    node = controller(description=text, mode='pd_gravity', path_tolerance=[0.5],
                      **{'pd_gravity.stiffness': [10.0], 'pd_gravity.damping': [0.0]})
    g, heard = rbd_ros.gravity_torques(model, q), node.heard[COMMANDS]
    keep_sending(node, (names, q, still), lambda: len(heard) > 8)
    # Measured beyond half a turn, wrapped: 0.1 rad from the reference.
    off = q + [0.0, 0.0, 0.0, 0.0, 0.0, 0.1 - 2.0 * np.pi]
    keep_sending(node, (names, off, still), lambda: np.allclose(
        heard[-1].data - g, [0.0, 0.0, 0.0, 0.0, 0.0, -1.0], atol=1e-6))
    # The goal is 0.2 rad from the reference, and 0.1 rad from the robot.
    publish(node, JointTrajectory, 'joint_trajectory', trajectory(names[5:], (1.0, [
        3.3 - 2.0 * np.pi])))
    keep_sending(node, (names, off, still), lambda: np.allclose(
        heard[-1].data - g, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], atol=1e-6))
    efforts = np.array([message.data[5] for message in heard]) - g[5]
    assert np.max(np.abs(efforts)) < 1.0 + 1e-6
    assert float(node.diagnosis()[2]['error of wrist_3_joint, rad or m']) < 0.1 + 1e-6


def test_the_reference_does_not_survive_a_gap(controller, model, rest):
    names, q, _ = rest
    node = controller(mode='pd_gravity', state_timeout=0.3)
    heard = node.heard[COMMANDS]
    keep_sending(node, rest, lambda: len(heard) > 20)
    publish(node, JointTrajectory, 'joint_trajectory', trajectory(names, (0.5, q + 0.2)))
    node.settle()
    keep_sending(node, rest, lambda: np.allclose(
        heard[-1].data, rbd_ros.gravity_torques(model, q), atol=1e-9))
    assert node.diagnosis()[2]['reference'] == 'holding'


def test_a_trajectory_is_followed_by_those_that_it_names(controller, model, rest):
    names, q, _ = rest
    # A guard would warn when a busy machine delays states.
    node = controller(mode='pd_gravity', soft_stop_zone=0.0, velocity_guard=0.0, **{
        'pd_gravity.stiffness': [10.0], 'pd_gravity.damping': [0.0]})
    g, heard = rbd_ros.gravity_torques(model, q), node.heard[COMMANDS]
    publisher = node.peer.create_publisher(JointTrajectory, f'{node.name}/joint_trajectory', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    keep_sending(node, rest, lambda: len(heard) > 8)
    count = len(heard)
    publisher.publish(trajectory([names[2], names[0]], (1.0, [q[2] + 0.1, q[0] - 0.2])))
    goal = np.array([-0.2, 0.0, 0.1, 0.0, 0.0, 0.0])
    keep_sending(node, rest, lambda: np.allclose(heard[-1].data, g + 10.0 * goal, atol=1e-9))
    ways = np.array([message.data for message in heard[count:]]) - g
    assert any(0.2 < way[0] / -2.0 < 0.8 for way in ways)
    # Springs and dampers of a reference that never steps.
    assert np.max(np.abs(ways[:, [1, 3, 4, 5]])) < AGREEMENT * np.max(np.abs(g))
    level, text, facts = node.diagnosis()
    assert level == DiagnosticStatus.OK, text
    assert abs(float(facts[f'error of {names[0]}, rad or m']) - 0.2) < 1e-6
    # An empty one stops.
    count = len(heard)      # states have paused meanwhile
    keep_sending(node, rest, lambda: len(heard) > count + 3)
    publisher.publish(trajectory(names, (60.0, q)))
    keep_sending(node, rest, lambda: node.node.modes.facts()['reference'] == 'moving')
    publisher.publish(JointTrajectory())
    keep_sending(node, rest, lambda: node.node.modes.facts()['reference'] == 'holding')


def test_a_reference_that_cannot_be_followed_is_refused_whole(controller, rest):
    node = controller(mode='computed_torque')
    heard = node.heard[COMMANDS]
    publisher = node.peer.create_publisher(JointTrajectory, f'{node.name}/joint_trajectory', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    keep_sending(node, rest, lambda: len(heard) > 8)
    publisher.publish(trajectory(['elbow'], (1.0, [0.0])))
    keep_sending(node, rest, lambda: node.node.report.counts['references refused'] == 1)
    assert "no joint 'elbow'" in node.node.report.last_error
    keep_sending(node, rest, lambda: any(
        'references were refused (1)' in message.status[0].message
        for message in node.heard['/diagnostics']))


def test_a_pose_target_moves_the_task_link(controller, model, rest):
    _, q, v = rest
    node = controller(mode='cartesian_impedance', cartesian_speed=1.0)
    heard = node.heard[COMMANDS]
    publisher = node.peer.create_publisher(PoseStamped, f'{node.name}/pose_target', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    keep_sending(node, rest, lambda: len(heard) > 8)
    T = rbd_ros.forward_kinematics(model, q)[model.link_index('tool0')].copy()
    message = PoseStamped()
    message.header.frame_id = 'camera'
    publisher.publish(message)
    keep_sending(node, rest, lambda: node.node.report.counts['references refused'] == 1)
    T[:3, 3] += [0.03, 0.0, -0.04]
    T[:3, :3] = Rotation.from_rotvec([0.0, 0.1, 0.0]).as_matrix() @ T[:3, :3]
    message.header.frame_id = model.link_names[0]
    x, y, z = T[:3, 3]
    message.pose.position.x, message.pose.position.y, message.pose.position.z = x, y, z
    for name, number in zip('xyzw', Rotation.from_matrix(T[:3, :3]).as_quat()):
        setattr(message.pose.orientation, name, float(number))
    publisher.publish(message)
    law = CartesianImpedance(model, 'tool0', [30.0] * 3 + [300.0] * 3, posture=q,
                             friction_speed=None)
    expected = law.update(0.0, q, v, PoseReference(T))
    keep_sending(node, rest, lambda: np.allclose(heard[-1].data, expected, atol=1e-6))
    _, _, facts = node.diagnosis()
    assert abs(float(facts['error of tool0, m']) - 0.05) < 1e-6
    assert abs(float(facts['error of tool0, rad']) - 0.1) < 1e-6


def test_without_velocities_nothing_is_commanded_and_why_is_said(controller, rest):
    names, q, _ = rest
    for policy in ('withhold', 'zero'):
        node = controller(mode='pd_gravity', missing_velocity=policy)
        heard = node.heard[COMMANDS]
        node.answer(names, q, topic='~/gravity_torques')
        node.settle()
        assert not heard
        said(node, 'mode pd_gravity commands nothing: the law needs the velocities', ERROR)
        node.close()
        node.close = lambda: None
