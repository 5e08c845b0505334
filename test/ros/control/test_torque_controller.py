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
from rbd_ros.control import ComputedTorque, JointReference, PdGravity
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rclpy.parameter import Parameter
from robots import example_urdf
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# Rounding is a thousandth of it.
AGREEMENT = 1e-9
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


@pytest.mark.parametrize('mode, convention', [
    ('gravity', 'without_gravity'), ('pd_gravity', 'without_gravity_and_coriolis'),
    ('computed_torque', 'without_gravity'), ('computed_torque', 'without_gravity_and_coriolis')])
def test_onboard_compensation_is_subtracted_once(controller, model, rest, mode, convention):
    names, q, v = rest
    node, moving = controller(mode=mode, **{'effort_convention.commands': convention}), v + 0.5
    efforts = np.array(node.answer(names, q, moving, topic=COMMANDS).data)
    terms = rbd_ros.all_terms(model, q, moving)
    law = (PdGravity(model, 50.0, 5.0, friction_speed=None) if mode == 'pd_gravity'
           else ComputedTorque(model, 100.0, friction_speed=None))
    whole = (terms.g if mode == 'gravity'
             else law.update(0.0, q, moving, JointReference(model, q)))
    own = terms.g + (terms.coriolis_torques if mode == 'computed_torque'
                     and convention == 'without_gravity_and_coriolis' else 0.0)
    assert np.max(np.abs(efforts - (whole - own))) < AGREEMENT * np.max(np.abs(whole))


def test_set_mode_without_a_robot_reports_that_there_is_no_robot(controller):
    node = controller(mode='gravity', description=None)
    assert 'there is a robot' in node.call(SetMode, 'set_mode', mode='computed_torque').message


def test_an_invalid_mode_is_refused_and_the_old_one_stays(controller, rest):
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
def test_in_every_mode_links_that_cannot_adapt_are_refused_immediately(controller, rest, link,
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
    publisher = node.peer.create_publisher(JointTrajectory, f'{node.name}/joint_trajectory', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    point = JointTrajectoryPoint(positions=[3.3 - 2.0 * np.pi])
    point.time_from_start.sec = 1
    publisher.publish(JointTrajectory(joint_names=list(names[5:]), points=[point]))
    keep_sending(node, (names, off, still), lambda: np.allclose(
        heard[-1].data - g, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], atol=1e-6))
    efforts = np.array([message.data[5] for message in heard]) - g[5]
    assert np.max(np.abs(efforts)) < 1.0 + 1e-6
    assert float(node.diagnosis()[2]['error of wrist_3_joint, rad or m']) < 0.1 + 1e-6


@pytest.mark.parametrize('policy', ['withhold', 'zero'])
def test_without_velocities_nothing_is_commanded_and_diagnostics_name_the_reason(
        controller, rest, policy):
    names, q, _ = rest
    node = controller(mode='pd_gravity', missing_velocity=policy)
    node.answer(names, q, topic='~/gravity_torques')
    node.settle()
    assert not node.heard[COMMANDS]
    said(node, 'mode pd_gravity commands nothing: the law needs the velocities',
         DiagnosticStatus.ERROR)


# -- What an operator is told; numbers are rows of doc/faults.md. ---------------------------------

def test_fault_66_a_mode_without_its_parameters_commands_nothing(controller, state):
    node = controller(mode='pd_gravity', control_joints=['elbow_joint'])
    heard = node.heard['~/effort_commands']
    sent = []
    sending(node, state, lambda: sent.append(0) or len(sent) > 20)
    level, message, _ = node.diagnosis()
    assert level == DiagnosticStatus.ERROR
    assert 'mode pd_gravity commands nothing: ' in message
    assert 'control_joints must name every joint' in message
    assert not heard


@pytest.mark.parametrize('mode, kind, topic, reason', [
    ('gravity', JointTrajectory, 'joint_trajectory', 'mode gravity takes no references'),
    ('pd_gravity', PoseStamped, 'pose_target', 'mode pd_gravity takes ~/joint_trajectory'),
    ('cartesian_impedance', JointTrajectory, 'joint_trajectory',
     'mode cartesian_impedance takes ~/pose_target')])
def test_fault_67_a_reference_of_the_wrong_type_is_reported(controller, rest, capfd, mode, kind,
                                                            topic, reason):
    node = controller(mode=mode)
    heard = node.heard['~/effort_commands']
    sending(node, rest, lambda: len(heard) > 3)
    publisher = node.peer.create_publisher(kind, f'{node.name}/{topic}', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    message = kind()
    if kind is JointTrajectory:
        message.joint_names = list(rest[0])
        message.points = [JointTrajectoryPoint(positions=list(rest[1]))]
    publisher.publish(message)
    sending(node, rest, lambda: node.node.report.counts['references refused'])
    assert f'~/{topic} refused: {reason}' in capfd.readouterr().err
    level, message, _ = node.diagnosis()
    assert level == DiagnosticStatus.WARN
    assert 'references were refused' in message
    node.peer.destroy_publisher(publisher)
