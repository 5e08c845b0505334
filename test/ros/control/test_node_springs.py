# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Springs of joints in the outputs and commands of the nodes, with the parameter springs."""

from harness import Harness, keep_sending
import numpy as np
import pytest
from rbd_msgs.srv import FillEfforts
import rbd_ros
from rbd_ros.model import with_springs
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rclpy.parameter import Parameter
from robots import example_urdf, load_quietly, relative_error
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# The same operations in another order.
AGREEMENT = 1e-9
URDF = example_urdf('ur10_robot.urdf').read_text()
MODEL = load_quietly(example_urdf('ur10_robot.urdf'))
NAMES = MODEL.velocity_names
STIFFNESS, REFERENCE = np.linspace(5.0, 20.0, 6), np.linspace(-1.0, 1.0, 6)
Q, V = np.linspace(0.3, -1.0, 6), np.linspace(-0.5, 0.5, 6)
HOLDING = STIFFNESS * (Q - REFERENCE)
DRIVES = {'drives.joints': list(NAMES), 'drives.stiffness': STIFFNESS.tolist(),
          'drives.spring_reference': REFERENCE.tolist()}

pytestmark = pytest.mark.usefixtures('domain')


def heard(node, topic, expected):
    """Send states until the last numbers on a topic are as expected."""
    def arrived():
        some = node.heard[topic]
        if not some:
            return False
        found = some[-1].data if topic == '~/effort_commands' else some[-1].effort
        return len(found) == 6 and relative_error(np.array(found), expected) < AGREEMENT
    keep_sending(node, (NAMES, Q, V), arrived)


def test_outputs_include_springs_on_request_but_the_terms_of_the_equation_never(harness):
    node = harness(URDF, **DRIVES)
    g = rbd_ros.gravity_torques(MODEL, Q)
    heard(node, '~/gravity_torques', g)
    heard(node, '~/effort_commands', g)
    result, = node.node.set_parameters([Parameter('springs', value=True)])
    assert result.successful, result.reason
    heard(node, '~/gravity_torques', g + HOLDING)
    heard(node, '~/effort_commands', g + HOLDING)
    got = node.answer(NAMES, Q, V)
    assert relative_error(np.array(got.gravity_torques), g) < AGREEMENT


def test_a_robot_that_compensates_gravity_gets_the_torques_of_springs(harness):
    node = harness(URDF, springs=True, **DRIVES,
                   **{'effort_convention.commands': 'without_gravity'})
    heard(node, '~/effort_commands', HOLDING)


def test_measured_efforts_hold_springs_too(harness):
    node, a = harness(URDF, **DRIVES), np.linspace(1.0, 2.0, 6)
    effort = rbd_ros.inverse_dynamics(MODEL, Q, V, a) + HOLDING
    got = node.answer(NAMES, Q, V, effort, topic='~/coriolis_matrix_rate')
    expected = rbd_ros.analysis.matrices_dot(MODEL, Q, V, a).C_dot
    assert relative_error(np.array(got.matrix.data), expected.ravel()) < AGREEMENT


@pytest.mark.parametrize('springs', [False, True])
def test_efforts_of_trajectories_include_springs_on_request(harness, springs):
    points = [JointTrajectoryPoint(positions=Q.tolist(), velocities=[0.0] * 6,
                                   accelerations=[0.0] * 6)]
    got = harness(URDF, springs=springs, **DRIVES).call(
        FillEfforts, 'fill_efforts',
        trajectory=JointTrajectory(joint_names=list(NAMES), points=points))
    assert got.success, got.message
    expected = rbd_ros.gravity_torques(MODEL, Q) + springs * HOLDING
    assert relative_error(np.array(got.trajectory.points[0].effort), expected) < AGREEMENT


def test_control_laws_hold_springs_on_request():
    model = with_springs(MODEL, stiffness=STIFFNESS, spring_reference=REFERENCE)
    still = np.zeros(6)
    for springs in (False, True):
        node = Harness(URDF, kind=TorqueController, mode='gravity', springs=springs,
                       state_timeout=60.0, **DRIVES)
        try:
            expected = rbd_ros.gravity_torques(model, Q) + springs * HOLDING
            keep_sending(node, (NAMES, Q, still), lambda node=node, expected=expected: bool(
                node.heard['~/effort_commands']) and relative_error(
                    np.array(node.heard['~/effort_commands'][-1].data), expected) < AGREEMENT)
        finally:
            node.close()
