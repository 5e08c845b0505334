# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every stamped output names the frame in whose axes its numbers are."""

from time import monotonic

from harness import TOPICS
import numpy as np
import pinocchio
import pytest
from rbd_ros.ros.messages import topics
from robots import example_urdf

pytestmark = pytest.mark.usefixtures('domain')
TOOL, ROOT = 'tool0', 'world'
# Topics by the frame of their numbers; those of joints are not in the axes of any frame.
LINK = {'~/task_jacobian', '~/task_bias', '~/task_inertia', '~/external_wrench'}
BASE = {'~/com', '~/com_jacobian', '~/dynamics', '~/task_pose', '~/task_dynamics'}
JOINTS = {'~/gravity_torques', '~/coriolis_torques', '~/mass_matrix', '~/coriolis_matrix',
          '~/full_joint_states', '~/mass_matrix_rate', '~/coriolis_matrix_rate',
          '~/gravity_torques_rate', '~/torque_deviation', '~/external_torques', '~/contact',
          '~/commanded_efforts'}
NO_HEADER = {'~/effort_commands'}
# Withheld from a robot that was not identified.
WITHHELD = {'~/torque_deviation'}


def vector(part):
    """Return the numbers of a message with x, y, z."""
    return np.array([part.x, part.y, part.z])


def test_each_declared_topic_is_in_the_frame_that_its_header_names(harness, state):
    assert set(topics.TOPICS) == LINK | BASE | JOINTS == set(TOPICS) - NO_HEADER
    names, q, v = state
    node = harness(task_link=TOOL, frame_prefix='a1/', contact_threshold=[1.0], state_timeout=60.0)
    robot = pinocchio.buildModelFromUrdf(str(example_urdf('ur10_robot.urdf')))
    data, tool = robot.createData(), robot.getFrameId(TOOL, pinocchio.BODY)
    push = np.array([1.0, -2.0, 3.0, 4.0, 5.0, -6.0])     # moment, force in the axes of the tool
    order = [robot.joints[robot.getJointId(name)].idx_v for name in names]
    qp, vp = np.zeros(robot.nq), np.zeros(robot.nv)
    qp[order], vp[order] = q, v
    pinocchio.computeAllTerms(robot, data, qp, vp)
    J = pinocchio.computeFrameJacobian(robot, data, qp, tool, pinocchio.LOCAL)[[3, 4, 5, 0, 1, 2]]
    effort = pinocchio.computeGeneralizedGravity(robot, data, qp)[order] - J.T[order] @ push
    end = monotonic() + 1.0
    while monotonic() < end or not node.heard['~/contact']:
        node.answer(names, q, np.zeros(len(q)), effort)
    node.settle()
    wrench = node.heard['~/external_wrench'][-1].wrench     # at rest, before the jump of v
    node.answer(names, q, v, effort)
    node.settle()
    got = {topic: messages[-1] for topic, messages in node.heard.items() if messages}
    assert set(TOPICS) - set(got) <= WITHHELD
    frames = {topic: got[topic].header.frame_id for topic in (LINK | BASE | JOINTS) - WITHHELD}
    assert frames == {topic: f'a1/{TOOL if topic in LINK else ROOT}' for topic in frames}
    # In the named frame, the numbers are those of another library.
    pinocchio.computeAllTerms(robot, data, qp, vp)
    pinocchio.forwardKinematics(robot, data, qp, vp, np.zeros(robot.nv))
    pose = pinocchio.updateFramePlacement(robot, data, tool)
    bias = pinocchio.getFrameAcceleration(robot, data, tool, pinocchio.LOCAL)
    J = J[:, order]
    M = np.triu(data.M) + np.triu(data.M, 1).T
    inertia = np.linalg.inv(J @ np.linalg.solve(M[np.ix_(order, order)], J.T))
    # Pinocchio leaves out what does not move.
    fixed, moving = robot.inertias[0], data.mass[0]
    share = moving / (moving + fixed.mass)
    com, com_jacobian = share * data.com[0] + (1.0 - share) * fixed.lever, share * data.Jcom
    accel = got['~/task_bias'].accel
    for found, expected in (
            (vector(got['~/com'].point), com),
            (vector(got['~/dynamics'].com), com),
            (got['~/com_jacobian'].matrix.data, com_jacobian[:, order]),
            (got['~/dynamics'].com_jacobian, com_jacobian[:, order]),
            (vector(got['~/task_pose'].pose.position), pose.translation),
            (vector(got['~/task_dynamics'].pose.position), pose.translation),
            (got['~/task_jacobian'].matrix.data, J),
            (got['~/task_inertia'].matrix.data, inertia),
            (np.append(vector(accel.angular), vector(accel.linear)),
             np.append(bias.angular, bias.linear))):
        expected = np.ravel(expected)
        assert np.allclose(found, expected, rtol=0.0, atol=1e-6 * np.abs(expected).max())
    found = np.append(vector(wrench.torque), vector(wrench.force))
    assert np.max(np.abs(found - push)) < 0.05 * np.max(np.abs(push))
