# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What an operator is told about the torque controller; numbers are rows of doc/faults.md."""

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from harness import keep_sending
import numpy as np
import pytest
from rbd_ros.ros.nodes.torque_controller import TorqueController
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

pytestmark = pytest.mark.usefixtures('domain')


def test_fault_66_a_mode_without_what_it_needs_commands_nothing(harness, state):
    node = harness(kind=TorqueController, mode='pd_gravity', control_joints=['elbow_joint'],
                   state_timeout=60.0)
    heard = node.heard['~/effort_commands']
    sent = []
    keep_sending(node, state, lambda: sent.append(0) or len(sent) > 20)
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
def test_fault_67_a_reference_that_the_mode_does_not_take_is_said(
        harness, state, capfd, mode, kind, topic, reason):
    node = harness(kind=TorqueController, mode=mode, task_link='tool0', state_timeout=60.0)
    names, q, v = state
    still = names, q, np.zeros_like(v)
    heard = node.heard['~/effort_commands']
    keep_sending(node, still, lambda: len(heard) > 3)
    publisher = node.peer.create_publisher(kind, f'{node.name}/{topic}', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    message = kind()
    if kind is JointTrajectory:
        message.joint_names = list(names)
        message.points = [JointTrajectoryPoint(positions=list(q))]
    publisher.publish(message)
    keep_sending(node, still, lambda: node.node.report.counts['references refused'])
    assert f'~/{topic} refused: {reason}' in capfd.readouterr().err
    level, message, _ = node.diagnosis()
    assert level == DiagnosticStatus.WARN
    assert 'references were refused' in message
    node.peer.destroy_publisher(publisher)
