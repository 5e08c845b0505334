# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives, regressors, task space and rates, on the node in this process."""

import numpy as np
import pinocchio as pin
import pytest
from rbd_msgs.srv import HybridDynamicsDerivatives, TaskSpaceDynamics, TorqueRegressor
import rbd_ros
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.parameter import Parameter
from robots import example_urdf, random_state, relative_error
from std_msgs.msg import String

pytestmark = pytest.mark.usefixtures('domain')

# The node hands the library's numbers on: rounding alone may differ, where sums are ordered anew.
AGREEMENT = 1e-9
URDF = example_urdf('ur10_robot.urdf')
TOOL = 'tool0'


def shuffled(model, seed):
    """Return a permutation of the joints, their names in it, q, v and a."""
    order = np.random.default_rng(seed).permutation(model.nv)
    return order, [model.velocity_names[k] for k in order], *random_state(model, seed)


def values(matrix):
    """Return the numbers of a message."""
    return np.reshape(matrix.data, (len(matrix.row_names), len(matrix.column_names)))


def test_hybrid_dynamics_derivatives_come_in_the_order_of_the_request(arm, model):
    order, names, q, v, a = shuffled(model, 1)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    prescribed = np.arange(6) % 2 == 0
    got = arm.call(HybridDynamicsDerivatives, 'hybrid_dynamics_derivatives', joint_names=names,
                   position=q[order].tolist(), velocity=v[order].tolist(),
                   acceleration=np.where(prescribed, a, np.nan)[order].tolist(),
                   effort=np.where(prescribed, np.nan, tau)[order].tolist(),
                   acceleration_prescribed=prescribed[order].tolist())
    assert got.success, got.message
    assert relative_error(got.acceleration, a[order]) < AGREEMENT
    assert relative_error(got.effort, tau[order]) < AGREEMENT
    expected = rbd_ros.hybrid_dynamics_derivatives(model, q, v, a, tau, prescribed)
    for name, part in expected._asdict().items():
        matrix = getattr(got, name)
        assert matrix.row_names == matrix.column_names == names
        assert relative_error(values(matrix), part[np.ix_(order, order)]) < AGREEMENT


def test_torque_regressor_times_its_parameters_is_the_torque(arm, model):
    order, names, q, v, a = shuffled(model, 2)
    request = {'joint_names': names, 'position': q[order].tolist(),
               'velocity': v[order].tolist()}
    got = arm.call(TorqueRegressor, 'torque_regressor', acceleration=a[order].tolist(), **request)
    assert got.success, got.message
    assert got.regressor.row_names == names
    assert got.regressor.column_names == list(rbd_ros.model.inertial_parameter_names(model))
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    assert relative_error(values(got.regressor) @ got.parameters, tau[order]) < AGREEMENT
    v_r, a_r = a, v
    got = arm.call(TorqueRegressor, 'torque_regressor', reference_velocity=v_r[order].tolist(),
                   reference_acceleration=a_r[order].tolist(), **request)
    assert got.success, got.message
    terms = rbd_ros.all_terms(model, q, v)
    expected = terms.M @ a_r + terms.C @ v_r + terms.g
    assert relative_error(values(got.regressor) @ got.parameters, expected[order]) < AGREEMENT
    got = arm.call(TorqueRegressor, 'torque_regressor', reference_velocity=v_r[order].tolist(),
                   **request)
    assert got.success, got.message
    # What is left out is zero.
    expected = terms.C @ v_r + terms.g
    assert relative_error(values(got.regressor) @ got.parameters, expected[order]) < AGREEMENT


def test_the_regressor_service_also_returns_rotor_inertias(harness, model):
    node = harness(state_timeout=60.0, **{
        'drives.joints': ['elbow_joint', 'wrist_1_joint'], 'drives.armature': [0.7, 0.2]})
    geared = rbd_ros.with_armature(model, {'elbow_joint': 0.7, 'wrist_1_joint': 0.2})
    order, names, q, v, a = shuffled(model, 3)
    got = node.call(TorqueRegressor, 'torque_regressor', joint_names=names,
                    position=q[order].tolist(), velocity=v[order].tolist(),
                    acceleration=a[order].tolist())
    tau = values(got.regressor) @ got.parameters + np.array(got.armature) * a[order]
    assert relative_error(tau, rbd_ros.inverse_dynamics(geared, q, v, a)[order]) < AGREEMENT


@pytest.mark.parametrize('link', [TOOL, ''])
def test_task_space_dynamics_is_that_of_the_link_or_of_the_parameter(arm, model, link):
    order, names, q, v, _ = shuffled(model, 3)
    got = arm.call(TaskSpaceDynamics, 'task_space_dynamics', link=link, joint_names=names,
                   position=q[order].tolist(), velocity=v[order].tolist())
    assert got.success, got.message
    expected = rbd_ros.task_space_dynamics(model, q, v, TOOL)
    assert relative_error(values(got.task_inertia), expected.Lambda) < AGREEMENT
    assert relative_error(got.bias_wrench, expected.eta) < AGREEMENT
    assert got.jacobian.column_names == names
    assert relative_error(values(got.jacobian), expected.J[:, order]) < AGREEMENT
    assert got.condition_number == pytest.approx(expected.condition)
    assert not got.damped


def test_fault_43_a_singular_pose_is_damped_and_its_condition_number_reported(arm, model):
    # The elbow is straight; how much is damped depends on the unit of length.
    q, v = np.array([0.3, -0.7, 0.0, 0.4, 0.9, 0.2]), np.full(6, 0.1)
    got = arm.call(TaskSpaceDynamics, 'task_space_dynamics', position=q.tolist(),
                   velocity=v.tolist())
    assert got.success, got.message
    assert got.damped
    assert got.condition_number > 1e3
    expected = rbd_ros.task_space_dynamics(model, q, v, TOOL).Lambda
    assert relative_error(values(got.task_inertia), expected) < AGREEMENT
    # On the topic too; the diagnostics count it.
    before = arm.node.report.counts['task inertia damped']
    got = arm.answer(model.velocity_names, q, v, topic='~/task_inertia')
    assert relative_error(values(got.matrix), expected) < AGREEMENT
    assert arm.node.report.counts['task inertia damped'] != before


def test_fault_41_bad_requests_are_refused_with_the_reason(arm, model):
    state = {'position': [0.1] * 6, 'velocity': [0.0] * 6}
    for link, message in (('hand', "no link 'hand'"), ('world', 'no joint moves it')):
        got = arm.call(TaskSpaceDynamics, 'task_space_dynamics', link=link, **state)
        assert not got.success
        assert message in got.message
    got = arm.call(TorqueRegressor, 'torque_regressor', acceleration=[np.nan] * 6, **state)
    assert not got.success
    assert 'is nan' in got.message
    got = arm.call(HybridDynamicsDerivatives, 'hybrid_dynamics_derivatives',
                   acceleration=[0.0] * 6, effort=[0.0] * 6, acceleration_prescribed=[True],
                   **state)
    assert not got.success
    assert 'acceleration_prescribed has 1 entries' in got.message


def test_fault_48_a_task_link_that_no_joint_moves_is_refused_by_name():
    node = DynamicsNode(parameter_overrides=[Parameter('task_link', value='world')])
    node.listening._on_description(String(data=URDF.read_text()))
    assert "task_link names 'world', which no joint moves" in node.report.last_error
    node.destroy_node()


def test_rates_are_those_of_the_motion_that_the_measured_efforts_produce(arm, model):
    q, v, a = random_state(model, 4)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    expected = rbd_ros.analysis.matrices_dot(model, q, v, a)
    for topic, part in (('~/mass_matrix_rate', expected.M_dot),
                        ('~/coriolis_matrix_rate', expected.C_dot),
                        ('~/gravity_torques_rate', expected.g_dot)):
        got = arm.answer(model.velocity_names, q, v, tau, topic=topic)
        got = got.effort if part.ndim == 1 else values(got.matrix)
        assert relative_error(got, part) < AGREEMENT


def test_fault_6_without_efforts_the_rate_of_c_is_withheld_and_the_others_are_not(arm, model):
    q, v, _ = random_state(model, 5)
    for effort in ((), [np.nan] * 6, [1.0]):
        before = len(arm.heard['~/coriolis_matrix_rate'])
        arm.answer(model.velocity_names, q, v, effort, topic='~/mass_matrix_rate')
        arm.answer(model.velocity_names, q, v, effort, topic='~/gravity_torques_rate')
        arm.settle()
        assert len(arm.heard['~/coriolis_matrix_rate']) == before


def numbers(*parts):
    """Return the numbers of parts of messages."""
    return np.array([getattr(part, name) for part in parts
                     for name in part.get_fields_and_field_types()])


@pytest.mark.parametrize('prefix', ['', 'a1/'])
def test_task_space_outputs_match_pinocchio(harness, model, prefix):
    node = harness(state_timeout=60.0, task_link=TOOL, frame_prefix=prefix)
    robot = pin.buildModelFromUrdf(str(URDF))
    data, frame = robot.createData(), robot.getFrameId(TOOL)
    for seed in range(2):
        q, v, a = random_state(model, seed)
        node.settle()
        got = node.answer(model.velocity_names, q, v, topic='~/task_dynamics')
        assert (got.link, got.joint_names) == (TOOL, list(model.velocity_names))
        assert got.header.frame_id == prefix + model.link_names[0]
        pin.forwardKinematics(robot, data, q, v, np.zeros(6))
        pin.updateFramePlacements(robot, data)
        place = data.oMf[frame]
        assert relative_error(numbers(got.pose.position), place.translation) < AGREEMENT
        x, y, z, w = numbers(got.pose.orientation)
        assert relative_error(pin.Quaternion(w, x, y, z).matrix(), place.rotation) < AGREEMENT
        twist = pin.getFrameVelocity(robot, data, frame)
        V = np.concatenate((twist.angular, twist.linear))
        assert relative_error(numbers(got.twist.angular, got.twist.linear), V) < AGREEMENT
        J = np.reshape(got.jacobian, (6, 6))
        of_pinocchio = pin.computeFrameJacobian(robot, data, q, frame)
        assert relative_error(J, np.roll(of_pinocchio, 3, axis=0)) < AGREEMENT
        # The accelerations of the frame: J a + bias.
        pin.forwardKinematics(robot, data, q, v, a)
        rate = pin.getFrameAcceleration(robot, data, frame)
        bias = numbers(got.bias_acceleration.angular, got.bias_acceleration.linear)
        assert relative_error(J @ a + bias, np.concatenate((rate.angular, rate.linear))
                              ) < AGREEMENT
        # A wrench that balances eta, and gives the inertia an acceleration.
        Lambda = np.reshape(got.task_inertia, (6, 6))
        wrench = Lambda @ (J @ a + bias) + numbers(got.bias_wrench.torque, got.bias_wrench.force)
        assert relative_error(J.T @ wrench, pin.rnea(robot, data, q, v, a)) < AGREEMENT
        assert got.condition_number < got.condition_limit == 2000.0
        # The same on the topics of their own.
        pose = node.answer(model.velocity_names, q, v, topic='~/task_pose')
        assert (pose.pose, pose.header.frame_id) == (got.pose, got.header.frame_id)
        inertia = node.answer(model.velocity_names, q, v, topic='~/task_inertia')
        assert inertia.matrix.row_names == ['wx', 'wy', 'wz', 'vx', 'vy', 'vz']
        assert np.array_equal(values(inertia.matrix), Lambda)
        jacobian = node.answer(model.velocity_names, q, v, topic='~/task_jacobian')
        assert jacobian.matrix.row_names == ['wx', 'wy', 'wz', 'vx', 'vy', 'vz']
        assert np.array_equal(values(jacobian.matrix), J)
        accel = node.answer(model.velocity_names, q, v, topic='~/task_bias')
        assert accel.header.frame_id == jacobian.header.frame_id == prefix + TOOL
        assert relative_error(numbers(accel.accel.angular, accel.accel.linear), bias) < AGREEMENT


def test_without_velocity_the_task_link_has_a_pose_and_a_jacobian_but_no_motion(arm, model):
    q, _, _ = random_state(model, 1)
    arm.answer(model.velocity_names, q, topic='~/task_pose')
    arm.answer(model.velocity_names, q, topic='~/task_jacobian')
    arm.settle()
    assert not arm.heard['~/task_dynamics']
    assert not arm.heard['~/task_bias']


def test_task_outputs_do_not_overwrite_other_topics(arm, model):
    """Workspaces reuse their results: what the task link needs must not write over terms."""
    q, v, _ = random_state(model, 2)
    whole = arm.answer(model.velocity_names, q, v)
    arm.settle()
    terms = rbd_ros.all_terms(model, q, v)
    assert relative_error(whole.mass_matrix, terms.M.ravel()) < AGREEMENT
    task = arm.heard['~/task_dynamics'][-1]
    expected = rbd_ros.task_space_dynamics(model, q, v, TOOL)
    assert relative_error(task.task_inertia, expected.Lambda.ravel()) < AGREEMENT
    rate = np.reshape(arm.heard['~/mass_matrix_rate'][-1].matrix.data, (6, 6))
    assert relative_error(rate, terms.C + terms.C.T) < AGREEMENT
