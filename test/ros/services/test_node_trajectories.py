# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Requests that leave out what is measured or zero, trajectories and speeds of contacts."""

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Vector3
import numpy as np
import pinocchio as pin
import pytest
from rbd_msgs.srv import (FillEfforts, ForwardDynamics, HybridDynamics, HybridDynamicsDerivatives,
                          InverseDynamics, RetimeTrajectory, SpeedLimit, TorqueRegressor)
import rbd_ros
from rbd_ros.analysis import retime, speed_limit
from robots import example_urdf, relative_error
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# Against Pinocchio: rounding is a hundredth of it.
AGREEMENT = 1e-9
URDF = example_urdf('ur10_robot.urdf')
ROBOT = pin.buildModelFromUrdf(str(URDF))
STILL = np.zeros(6)
# Velocity and effort limits of the URDF.
FASTEST, STRONGEST = ROBOT.velocityLimit, ROBOT.effortLimit


pytestmark = pytest.mark.usefixtures('domain')


def rnea(q, v, a):
    """Return torques, by Pinocchio."""
    return pin.rnea(ROBOT, ROBOT.createData(), q, v, a)


def test_an_empty_request_is_about_the_measured_state_without_acceleration(arm, state):
    names, q, v = state
    arm.answer(names, q, v)
    got = arm.call(InverseDynamics, 'inverse_dynamics')
    assert got.success, got.message
    assert list(got.joint_names) == list(names)
    assert relative_error(got.effort, rnea(q, v, STILL)) < AGREEMENT
    free = np.linalg.solve(pin.crba(ROBOT, ROBOT.createData(), q), -rnea(q, v, STILL))
    for kind, name in ((ForwardDynamics, 'forward_dynamics'), (HybridDynamics, 'hybrid_dynamics'),
                       (HybridDynamicsDerivatives, 'hybrid_dynamics_derivatives')):
        got = arm.call(kind, name)
        assert got.success, got.message
        assert relative_error(got.acceleration, free) < 10 * AGREEMENT
    got = arm.call(TorqueRegressor, 'torque_regressor')
    tau = np.reshape(got.regressor.data, (6, -1)) @ got.parameters
    assert relative_error(tau, rnea(q, v, STILL)) < AGREEMENT


def test_given_fields_of_a_request_are_used_and_missing_ones_measured(arm, state):
    names, q, v = state
    arm.answer(names, q, v)
    order = np.random.default_rng(1).permutation(6)
    got = arm.call(InverseDynamics, 'inverse_dynamics', velocity=[0.0] * 6,
                   joint_names=[names[k] for k in order], acceleration=np.arange(6.0).tolist())
    a = np.zeros(6)
    a[order] = np.arange(6.0)
    assert relative_error(got.effort, rnea(q, STILL, a)[order]) < AGREEMENT
    # All accelerations prescribed, as zero.
    got = arm.call(HybridDynamics, 'hybrid_dynamics', acceleration_prescribed=[True] * 6)
    assert relative_error(got.effort, rnea(q, v, STILL)) < AGREEMENT
    assert not np.any(got.acceleration)


def trajectory(names, time, q, v=None, a=None):
    """Return a message."""
    message = JointTrajectory(joint_names=list(names))
    message.header.frame_id = 'kept'
    for k, t in enumerate(time):
        point = JointTrajectoryPoint(positions=q[k].tolist(), time_from_start=Duration(
            sec=int(t), nanosec=round(1e9 * (t % 1.0))))
        if v is not None:
            point.velocities = v[k].tolist()
        if a is not None:
            point.accelerations = a[k].tolist()
        message.points.append(point)
    return message


def swing(count=9, size=0.5):
    """Return times, q, v and a of a motion that begins and ends at rest."""
    time = np.linspace(0.0, 2.0, count)
    phase = np.pi * time[:, None] * np.ones(6)
    start = np.array([0.3, -1.0, 1.2, 0.4, -0.6, 0.2])
    return (time, start + size * (1.0 - np.cos(phase)), size * np.pi * np.sin(phase),
            size * np.pi ** 2 * np.cos(phase))


def numbers(message, name):
    """Return the numbers of all points."""
    return np.array([getattr(point, name) for point in message.points])


def test_efforts_are_those_of_inverse_dynamics_in_the_order_of_the_trajectory(arm, model):
    order = np.random.default_rng(2).permutation(6)
    time, q, v, a = swing()
    names = [model.velocity_names[k] for k in order]
    sent = trajectory(names, time, q[:, order], v[:, order], a[:, order])
    got = arm.call(FillEfforts, 'fill_efforts', trajectory=sent)
    assert got.success, got.message
    expected = np.array([rnea(*state) for state in zip(q, v, a)])
    assert relative_error(numbers(got.trajectory, 'effort'), expected[:, order]) < AGREEMENT
    # The rest is as it was.
    for point in got.trajectory.points:
        point.effort = []
    assert got.trajectory == sent
    assert (got.time_scaling, list(got.beyond_limits)) == (1.0, [])


def test_velocities_and_accelerations_that_are_left_out_are_filled_in(arm, model):
    time, q, v, a = swing(count=41)
    got = arm.call(FillEfforts, 'fill_efforts',
                   trajectory=trajectory(model.velocity_names, time, q))
    assert got.success, got.message
    # A cubic spline of 41 points: h^4 of the second derivative's size, and h^2.
    assert np.allclose(numbers(got.trajectory, 'velocities'), v, atol=1e-3)
    assert np.allclose(numbers(got.trajectory, 'accelerations'), a, atol=2e-2)
    expected = [rnea(*state) for state in zip(*(numbers(got.trajectory, name) for name in (
        'positions', 'velocities', 'accelerations')))]
    assert relative_error(numbers(got.trajectory, 'effort'), expected) < AGREEMENT


def test_fill_efforts_reports_exceeded_limits_and_the_time_scale_that_meets_them(arm, model):
    order = np.array([3, 0, 4, 5, 2, 1])
    names = [model.velocity_names[k] for k in order]
    time, q, v, a = swing(size=0.8)
    got = arm.call(FillEfforts, 'fill_efforts', trajectory=trajectory(
        names, time, q[:, order], v[:, order], a[:, order]))
    # The two joints at the shoulder are slower than the others.
    assert np.array_equal(np.any(np.abs(v) > FASTEST, axis=0), [True] * 2 + [False] * 4)
    tau = np.array([rnea(*state) for state in zip(q, v, a)])
    assert np.all(np.abs(tau) < STRONGEST)
    assert list(got.beyond_limits) == ['shoulder_pan_joint', 'shoulder_lift_joint']
    c = got.time_scaling
    assert c > 1.0
    slower = [np.max(np.abs(v) / c / FASTEST), np.max(np.abs(
        [rnea(x, y / c, z / c ** 2) for x, y, z in zip(q, v, a)]) / STRONGEST)]
    assert max(slower) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize('commands', ['without_gravity', 'without_gravity_and_coriolis'])
def test_efforts_follow_the_convention_of_the_drives(harness, model, commands):
    node = harness(**{'effort_convention.commands': commands,
                      'effort_convention.joints': ['elbow_joint'],
                      'effort_convention.command_constants': [-8.0]})

    def told(tau, q, v):
        """Return what the drives are told for torques."""
        result = tau - np.array([rnea(x, y if 'coriolis' in commands else STILL, STILL)
                                 for x, y in zip(q, v)])
        result[:, 2] /= -8.0
        return result
    time, q, v, a = swing()
    got = node.call(FillEfforts, 'fill_efforts', trajectory=trajectory(
        model.velocity_names, time, q, v, a))
    tau = np.array([rnea(*state) for state in zip(q, v, a)])
    assert relative_error(numbers(got.trajectory, 'effort'), told(tau, q, v)) < AGREEMENT
    got = node.call(RetimeTrajectory, 'retime_trajectory', with_efforts=True,
                    trajectory=trajectory(model.velocity_names, time[:5], q[:5]))
    timed = retime(model, q[:5])
    assert relative_error(numbers(got.trajectory, 'effort'),
                          told(timed.effort, timed.q, timed.v)) < 1e-6


def test_with_friction_efforts_overcome_it(harness, model):
    text = URDF.read_text().replace('<dynamics damping="0.0" friction="0.0"/>',
                                    '<dynamics damping="2.0" friction="3.0"/>')
    time, q, v, a = swing()
    node = harness(text, friction=True)
    got = node.call(FillEfforts, 'fill_efforts', trajectory=trajectory(
        model.velocity_names, time, q, v, a))
    expected = np.array([rnea(*state) for state in zip(q, v, a)]) + 2.0 * v + 3.0 * np.sign(v)
    assert relative_error(numbers(got.trajectory, 'effort'), expected) < AGREEMENT


def test_fault_41_trajectories_that_make_no_sense_are_refused_by_name(arm, model):
    for change, message in (
            (lambda one: one.points.clear(), 'the trajectory has no points'),
            (lambda one: one.points.reverse(), 'times must increase'),
            (lambda one: one.points[3].positions.pop(),
             'point 3: position has 5 entries, expected 6'),
            (lambda one: setattr(one.points[2], 'positions', []),
             'point 2: it has no positions'),
            (lambda one: setattr(one.points[2], 'velocities', []),
             'point 2: it has no velocities, other points have'),
            (lambda one: one.points[4].accelerations.append(0.0),
             'point 4: accelerations has 7 entries'),
            (lambda one: one.points[1].positions.__setitem__(0, np.nan),
             'point 1: not all positions are finite'),
            (lambda one: one.points[2].velocities.__setitem__(5, np.inf),
             'point 2: not all velocities are finite'),
            (lambda one: one.joint_names.pop(), 'missing: wrist_3_joint'),
            (lambda one: one.joint_names.__setitem__(0, 'door'), "the robot has no joint 'door'")):
        sent = trajectory(model.velocity_names, *swing())
        change(sent)
        got = arm.call(FillEfforts, 'fill_efforts', trajectory=sent)
        assert not got.success and message in got.message


# The shoulder needs all of the smaller share.
@pytest.mark.parametrize('jerk, share', [(None, 0.3), (np.linspace(200.0, 400.0, 6), 0.9)])
def test_retimed_motions_are_those_of_the_library_in_the_order_of_the_trajectory(
        arm, model, jerk, share):
    order = np.array([3, 0, 4, 5, 2, 1])
    time, q, _, _ = swing()
    q *= np.linspace(1.0, 0.5, 6)
    limits = {'acceleration_limit': np.linspace(4.0, 9.0, 6), 'velocity_limit': 0.5 * FASTEST}
    if jerk is not None:
        limits['jerk_limit'] = jerk
    sent = trajectory([model.velocity_names[k] for k in order], time[:5], q[:5, order])
    got = arm.call(RetimeTrajectory, 'retime_trajectory', trajectory=sent, effort_share=share,
                   **{name: most[order].tolist() for name, most in limits.items()})
    assert got.success and not got.message
    found, expected = got.trajectory, retime(model, q[:5], effort_share=share, **limits)
    assert (found.joint_names, found.header) == (sent.joint_names, sent.header)
    assert np.allclose([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
                        for point in found.points], expected.time, rtol=0.0, atol=1e-9)
    assert relative_error(numbers(found, 'positions'), expected.q[:, order]) < AGREEMENT
    assert relative_error(numbers(found, 'velocities'), expected.v[:, order]) < AGREEMENT
    if jerk is None:
        # Accelerations jump at the points, and efforts were not asked for.
        assert not numbers(found, 'accelerations').size and not numbers(found, 'effort').size
    else:
        assert relative_error(numbers(found, 'accelerations'), expected.a[:, order]) < AGREEMENT


def test_retiming_includes_friction_and_reports_positions_out_of_range(harness, model):
    node = harness(**{'drives.joints': ['elbow_joint'], 'drives.friction': [30.0]})
    time, q, _, _ = swing()
    q[:5, 2] = np.linspace(3.5, 3.0, 5)
    got = node.call(RetimeTrajectory, 'retime_trajectory', with_efforts=True,
                    trajectory=trajectory(model.velocity_names, time[:5], q[:5]))
    assert got.success
    assert got.message == ("'elbow_joint': the position is 3.5 rad, its limits are -3.142 ... "
                           '3.142')
    worn = rbd_ros.model.with_friction(model, friction={'elbow_joint': 30.0})
    assert relative_error(numbers(got.trajectory, 'effort'), retime(worn, q[:5]).effort) < 1e-6


def test_fault_41_requests_to_retime_that_make_no_sense_are_refused(arm, model):
    time, q, _, _ = swing()
    for change, message in (
            ({'acceleration_limit': [1.0] * 5}, 'acceleration_limit has 5 entries, expected 6'),
            ({'velocity_limit': [0.0] * 6},
             "velocity limit of 'shoulder_pan_joint' must be positive, got 0"),
            ({'effort_share': 2.0}, 'effort_share must lie between 0 and 1'),
            ({'trajectory': JointTrajectory()}, 'the trajectory has no points')):
        got = arm.call(RetimeTrajectory, 'retime_trajectory', **{
            'trajectory': trajectory(model.velocity_names, time[:5], q[:5]), **change})
        assert not got.success and message in got.message


def test_speed_limits_are_those_of_the_library(harness, model, state):
    node = harness(task_link='ee_link', state_timeout=60.0)
    names, q, v = state
    node.answer(names, q, v)
    got = node.call(SpeedLimit, 'speed_limit', body_region='hands and fingers')
    assert got.success, got.message
    expected = speed_limit(model, q, v, 'ee_link', 'hands and fingers')
    assert (got.effective_mass, got.speed, got.speed_limit, got.factor) == pytest.approx(
        (expected.effective_mass, expected.speed, expected.limit, expected.factor))
    # What is given, in another order.
    q, v, order = np.linspace(-1.0, 0.8, 6), np.linspace(2.0, -1.0, 6), [3, 0, 4, 5, 2, 1]
    got = node.call(SpeedLimit, 'speed_limit', body_region='chest', link='forearm_link',
                    joint_names=[names[k] for k in order], position=q[order].tolist(),
                    velocity=v[order].tolist(), direction=Vector3(x=1.0, y=2.0), clamped=True)
    expected = speed_limit(model, q, v, 'forearm_link', 'chest', direction=(1.0, 2.0, 0.0),
                           clamped=True)
    assert (got.effective_mass, got.speed, got.speed_limit, got.factor) == pytest.approx(
        (expected.effective_mass, expected.speed, expected.limit, expected.factor))


def test_fault_41_requests_for_speed_limits_that_make_no_sense_are_refused(harness):
    node = harness()
    for change, message in (
            ({'body_region': 'tail'}, 'body_region must be'), ({'link': 'hook'}, "no link 'hook'"),
            ({'velocity': [0.0] * 6}, "'ee_link' does not move"), ({'link': ''}, 'name a link')):
        got = node.call(SpeedLimit, 'speed_limit', **{
            'body_region': 'chest', 'link': 'ee_link', 'position': [0.1] * 6,
            'velocity': [1.0] * 6, **change})
        assert not got.success and message in got.message
