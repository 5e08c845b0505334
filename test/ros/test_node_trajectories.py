# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Requests that leave out what is measured or zero, and the efforts of trajectories."""

from builtin_interfaces.msg import Duration
import numpy as np
import pinocchio as pin
import pytest
from rbd_msgs.srv import (FillEfforts, ForwardDynamics, HybridDynamics, HybridDynamicsDerivatives,
                          InverseDynamics, TorqueRegressor)
from robots import example_urdf, relative_error
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# Against Pinocchio: rounding is a hundredth of it.
AGREEMENT = 1e-9
URDF = example_urdf('ur10_robot.urdf')
ROBOT = pin.buildModelFromUrdf(str(URDF))
STILL = np.zeros(6)
# Velocity and effort limits of the URDF.
FASTEST, STRONGEST = ROBOT.velocityLimit, ROBOT.effortLimit


@pytest.fixture(autouse=True)
def network(domain):
    """Keep this module's nodes among themselves."""


def rnea(q, v, a):
    """Return torques, by Pinocchio."""
    return pin.rnea(ROBOT, ROBOT.createData(), q, v, a)


# -- Requests. -----------------------------------------------------------------------------------

def test_an_empty_request_is_about_the_measured_state_without_acceleration(harness, state):
    node = harness(state_timeout=60.0)
    names, q, v = state
    node.answer(names, q, v)
    got = node.call(InverseDynamics, 'inverse_dynamics')
    assert got.success, got.message
    assert list(got.joint_names) == list(names)
    assert relative_error(got.effort, rnea(q, v, STILL)) < AGREEMENT
    free = np.linalg.solve(pin.crba(ROBOT, ROBOT.createData(), q), -rnea(q, v, STILL))
    for kind, name in ((ForwardDynamics, 'forward_dynamics'), (HybridDynamics, 'hybrid_dynamics'),
                       (HybridDynamicsDerivatives, 'hybrid_dynamics_derivatives')):
        got = node.call(kind, name)
        assert got.success, got.message
        assert relative_error(got.acceleration, free) < 10 * AGREEMENT
    got = node.call(TorqueRegressor, 'torque_regressor')
    tau = np.reshape(got.regressor.data, (6, -1)) @ got.parameters
    assert relative_error(tau, rnea(q, v, STILL)) < AGREEMENT


def test_what_is_given_counts_beside_what_is_left_out(harness, state):
    node = harness(state_timeout=60.0)
    names, q, v = state
    node.answer(names, q, v)
    order = np.random.default_rng(1).permutation(6)
    got = node.call(InverseDynamics, 'inverse_dynamics', velocity=[0.0] * 6,
                    joint_names=[names[k] for k in order], acceleration=np.arange(6.0).tolist())
    a = np.zeros(6)
    a[order] = np.arange(6.0)
    assert relative_error(got.effort, rnea(q, STILL, a)[order]) < AGREEMENT
    # All accelerations prescribed, as zero.
    got = node.call(HybridDynamics, 'hybrid_dynamics', acceleration_prescribed=[True] * 6)
    assert relative_error(got.effort, rnea(q, v, STILL)) < AGREEMENT
    assert not np.any(got.acceleration)


def test_an_empty_request_without_a_measured_state_is_refused(harness):
    got = harness().call(InverseDynamics, 'inverse_dynamics')
    assert not got.success
    assert 'there is no recent one of' in got.message


# -- Trajectories. -------------------------------------------------------------------------------

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


def test_efforts_are_those_of_inverse_dynamics_in_the_order_of_the_trajectory(harness, model):
    node, order = harness(), np.random.default_rng(2).permutation(6)
    time, q, v, a = swing()
    names = [model.velocity_names[k] for k in order]
    sent = trajectory(names, time, q[:, order], v[:, order], a[:, order])
    got = node.call(FillEfforts, 'fill_efforts', trajectory=sent)
    assert got.success, got.message
    expected = np.array([rnea(*state) for state in zip(q, v, a)])
    assert relative_error(numbers(got.trajectory, 'effort'), expected[:, order]) < AGREEMENT
    # The rest is as it was.
    for point in got.trajectory.points:
        point.effort = []
    assert got.trajectory == sent
    assert (got.time_scaling, list(got.beyond_limits)) == (1.0, [])


def test_velocities_and_accelerations_that_are_left_out_are_filled_in(harness, model):
    time, q, v, a = swing(count=41)
    got = harness().call(FillEfforts, 'fill_efforts',
                         trajectory=trajectory(model.velocity_names, time, q))
    assert got.success, got.message
    # A cubic spline of 41 points: h^4 of the second derivative's size, and h^2.
    assert np.allclose(numbers(got.trajectory, 'velocities'), v, atol=1e-3)
    assert np.allclose(numbers(got.trajectory, 'accelerations'), a, atol=2e-2)
    expected = [rnea(*state) for state in zip(*(numbers(got.trajectory, name) for name in (
        'positions', 'velocities', 'accelerations')))]
    assert relative_error(numbers(got.trajectory, 'effort'), expected) < AGREEMENT


def test_limits_and_the_time_that_would_meet_them_are_told(harness, model):
    order = np.array([3, 0, 4, 5, 2, 1])
    names = [model.velocity_names[k] for k in order]
    time, q, v, a = swing(size=0.8)
    got = harness().call(FillEfforts, 'fill_efforts', trajectory=trajectory(
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


def test_no_time_is_long_enough_for_a_load_that_cannot_be_held(harness, model):
    node = harness(payload_link='tool0', payload_mass=60.0)
    got = node.call(FillEfforts, 'fill_efforts', trajectory=trajectory(
        model.velocity_names, *swing()))
    assert got.success
    assert np.isinf(got.time_scaling)
    assert got.beyond_limits


@pytest.mark.parametrize('commands', ['without_gravity', 'without_gravity_and_coriolis'])
def test_efforts_are_what_the_drives_are_told(harness, model, commands):
    node = harness(**{'effort_convention.commands': commands,
                      'effort_convention.joints': ['elbow_joint'],
                      'effort_convention.command_constants': [-8.0]})
    time, q, v, a = swing()
    got = node.call(FillEfforts, 'fill_efforts', trajectory=trajectory(
        model.velocity_names, time, q, v, a))
    own = np.array([rnea(x, y if 'coriolis' in commands else STILL, STILL)
                    for x, y in zip(q, v)])
    expected = np.array([rnea(*state) for state in zip(q, v, a)]) - own
    expected[:, 2] /= -8.0
    assert relative_error(numbers(got.trajectory, 'effort'), expected) < AGREEMENT


def test_with_friction_efforts_overcome_it(harness, model):
    text = URDF.read_text().replace('<dynamics damping="0.0" friction="0.0"/>',
                                    '<dynamics damping="2.0" friction="3.0"/>')
    time, q, v, a = swing()
    node = harness(text, friction=True)
    got = node.call(FillEfforts, 'fill_efforts', trajectory=trajectory(
        model.velocity_names, time, q, v, a))
    expected = np.array([rnea(*state) for state in zip(q, v, a)]) + 2.0 * v + 3.0 * np.sign(v)
    assert relative_error(numbers(got.trajectory, 'effort'), expected) < AGREEMENT


@pytest.mark.parametrize('change, message', [
    (lambda one: one.points.clear(), 'the trajectory has no points'),
    (lambda one: one.points.reverse(), 'times must increase'),
    (lambda one: one.points[3].positions.pop(), 'point 3: position has 5 entries, expected 6'),
    (lambda one: setattr(one.points[2], 'positions', []), 'point 2: it has no positions'),
    (lambda one: setattr(one.points[2], 'velocities', []),
     'point 2: it has no velocities, other points have'),
    (lambda one: one.points[4].accelerations.append(0.0), 'point 4: accelerations has 7 entries'),
    (lambda one: one.points[1].positions.__setitem__(0, np.nan),
     'q of state 1 has an entry that is not finite'),
    (lambda one: one.joint_names.pop(), 'missing: wrist_3_joint'),
    (lambda one: one.joint_names.__setitem__(0, 'door'), "the robot has no joint 'door'")])
def test_fault_41_trajectories_that_make_no_sense_are_refused_by_name(harness, model, change,
                                                                      message):
    sent = trajectory(model.velocity_names, *swing())
    change(sent)
    got = harness().call(FillEfforts, 'fill_efforts', trajectory=sent)
    assert not got.success
    assert message in got.message
