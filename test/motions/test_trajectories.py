# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions through points, and from pose to pose."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from control_robots import bare_arm, POSE
import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
import pytest
import rbd_ros
from rbd_ros import StateError
from rbd_ros.control import JointTrajectory, PoseMotion
from rbd_ros.model.se3 import exp, inverse, log, pose
from robots import random_pose, random_tree

# Differences over a step of 1e-5.
STEP, BY_DIFFERENCES = 1e-5, 1e-5
# Of numbers around 1, by a hundred operations or so.
ROUNDING = 1e-12
TIMES = np.array([1.0, 1.5, 3.0, 3.2])
ARM = rbd_ros.load_urdf(Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf')


@pytest.mark.parametrize('degree, given', [(5, 3), (3, 2)])
def test_trajectories_through_points_of_a_polynomial_reproduce_it(degree, given):
    q = np.random.default_rng(0).normal(size=(degree + 1, 7))
    curves = [polyder(q, k) for k in range(3)]
    points = [polyval(TIMES, curve).T for curve in curves]
    trajectory = JointTrajectory(bare_arm(), TIMES, *points[:given])
    for t in np.linspace(TIMES[0], TIMES[-1] - 1e-9, 50):
        reference = trajectory.at(t)
        for x, curve in zip((reference.q, reference.v, reference.a), curves):
            assert np.allclose(x, polyval(t, curve), rtol=1e-7, atol=1e-7)


def test_positions_alone_are_passed_without_overshooting_and_with_rest_at_the_ends():
    points = POSE + np.array([0.0, 1.0, 1.1, -0.3])[:, None] * np.linspace(-1.0, 1.0, 7)
    trajectory = JointTrajectory(bare_arm(), TIMES, points)
    for k, t in enumerate(TIMES):
        assert np.allclose(trajectory.at(t).q, points[k])
    for t in (TIMES[0], TIMES[-1] - 1e-9):
        assert np.allclose(trajectory.at(t).v, 0.0, atol=1e-6)
    for start, end, first, last in zip(TIMES, TIMES[1:], points, points[1:]):
        for t in np.linspace(start, end, 40):
            q = trajectory.at(t).q
            assert np.all(q >= np.minimum(first, last) - 1e-12)
            assert np.all(q <= np.maximum(first, last) + 1e-12)
            # The velocity is that of the positions, and has no jumps.
            ahead, behind = trajectory.at(t + STEP), trajectory.at(t - STEP)
            if TIMES[0] < t - STEP and t + STEP < TIMES[-1]:
                assert np.allclose((ahead.q - behind.q) / (2.0 * STEP), trajectory.at(t).v,
                                   atol=1e-3)


def test_trajectories_rest_outside_their_time_and_interpolate_torques():
    points, torques = np.tile(POSE, (4, 1)) + np.arange(4.0)[:, None], np.ones((4, 7))
    torques[1] = 3.0
    trajectory = JointTrajectory(bare_arm(), TIMES, points, np.ones((4, 7)), tau=torques)
    for t, q, tau in ((-5.0, points[0], 1.0), (9.0, points[-1], 1.0), (3.2, points[-1], 1.0)):
        reference = trajectory.at(t)
        assert np.array_equal(reference.q, q) and np.all(reference.tau == tau)
        assert not reference.v.any() and not reference.a.any()
    assert np.allclose(trajectory.at(1.25).tau, 2.0)
    single = JointTrajectory(bare_arm(), [2.0], [POSE])
    assert all(np.array_equal(single.at(t).q, POSE) for t in (0.0, 2.0, 3.0))


@pytest.mark.parametrize('arguments, message', [
    (([1.0, 1.0], [POSE, POSE]), 'increasing times'), (([], np.zeros((0, 7))), 'increasing times'),
    (([0.0, np.inf], [POSE, POSE]), 'times must be finite'),
    (([0.0, 1.0], [POSE]), 'q has the shape'),
    (([0.0, 1.0], [POSE, POSE], None, np.zeros((2, 7))), 'needs velocities'),
    (([0.0, 1.0], [POSE, POSE], np.zeros((2, 3))), 'v has the shape'),
    (([0.0, 1.0], [POSE, np.full(7, np.nan)]), 'q of state 1')])
def test_points_that_do_not_belong_together_are_refused(arguments, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        JointTrajectory(bare_arm(), *arguments)


def test_quaternions_are_refused():
    model = rbd_ros.with_floating_base(ARM)
    with pytest.raises(rbd_ros.StateError, match='quaternions'):
        JointTrajectory(model, [0.0], [rbd_ros.neutral(model)])


@pytest.mark.parametrize('seed', range(2))
def test_a_pose_motion_leads_from_start_to_goal_with_its_derivatives(seed):
    rng = np.random.default_rng(seed)
    start, goal = random_pose(rng), random_pose(rng)
    motion = PoseMotion(start, goal, 2.0, begin=1.0)
    for t, T in ((0.0, start), (1.0, start), (3.0, goal), (9.0, goal)):
        reference = motion.at(t)
        assert np.allclose(reference.T, T)
        assert not reference.V.any() and not reference.V_dot.any()
    for t in (1.3, 2.0, 2.9):
        ahead, here, behind = (motion.at(x) for x in (t + STEP, t, t - STEP))
        turn = log(inverse(behind.T) @ ahead.T)[:3] / (2.0 * STEP)
        assert np.allclose(here.T[:3, :3] @ turn, here.V[:3], atol=BY_DIFFERENCES)
        shift = (ahead.T[:3, 3] - behind.T[:3, 3]) / (2.0 * STEP)
        assert np.allclose(shift, here.V[3:], atol=BY_DIFFERENCES)
        assert np.allclose((ahead.V - behind.V) / (2.0 * STEP), here.V_dot, atol=BY_DIFFERENCES)
    # It stays on the line, and turns about one axis.
    way, part = goal[:3, 3] - start[:3, 3], motion.at(1.7).T
    assert np.linalg.norm(np.cross(way, part[:3, 3] - start[:3, 3])) < 1e-12
    turn = log(pose(goal[:3, :3] @ start[:3, :3].T, np.zeros(3)))[:3]
    done = exp(np.concatenate((turn * 0.5, np.zeros(3))))[:3, :3] @ start[:3, :3]
    assert np.allclose(motion.at(2.0).T[:3, :3], done)


@pytest.mark.parametrize('arguments, message', [
    ((np.eye(4), 2.0 * np.eye(4), 1.0), 'goal must be a pose'),
    ((np.eye(4), np.eye(4), 0.0), 'duration'), ((np.eye(4), np.eye(4), -1.0), 'duration')])
def test_invalid_motions_are_refused(arguments, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        PoseMotion(*arguments)


def test_a_trajectory_of_positions_may_begin_with_a_velocity():
    model = random_tree(2, 4, kinds=('revolute', 'prismatic'))
    times, q = [0.0, 0.5, 1.2], np.random.default_rng(3).normal(size=(3, model.nv))
    first_v = np.linspace(-1.0, 1.0, model.nv)
    motion = JointTrajectory(model, times, q, first_v=first_v)
    at_rest = JointTrajectory(model, times, q)
    assert np.max(np.abs(motion.at(0.0).v - first_v)) < ROUNDING
    assert np.max(np.abs(motion.at(0.0).q - q[0])) < ROUNDING
    for t in (0.5, 0.8, 1.2, 2.0):
        assert np.max(np.abs(motion.at(t).q - at_rest.at(t).q)) < ROUNDING
        assert np.max(np.abs(motion.at(t).v - at_rest.at(t).v)) < ROUNDING
    with pytest.raises(rbd_ros.StateError, match='first_v'):
        JointTrajectory(model, times, q, q, first_v=first_v)


def test_a_motion_of_a_pose_takes_over_a_twist_and_loses_it():
    rng = np.random.default_rng(4)
    start, goal = (exp(rng.normal(size=6)) for _ in range(2))
    twist = rng.normal(size=6)
    motion, plain = (PoseMotion(start, goal, 1.2, begin=2.0, twist=one) for one in (twist, None))
    first = motion.at(2.0)
    assert np.max(np.abs(first.T - start)) < ROUNDING
    assert np.max(np.abs(first.V - twist)) < ROUNDING
    for t in (0.0, 2.5, 3.0, 4.0):
        for label in ('T', 'V', 'V_dot'):
            assert np.max(np.abs(getattr(motion.at(t), label)
                                 - getattr(plain.at(t), label))) < ROUNDING
    for t in (2.1, 2.3, 2.45):
        before, one, after = (motion.at(t + s) for s in (-1e-5, 0.0, 1e-5))
        turn = log(pose(after.T[:3, :3] @ before.T[:3, :3].T, np.zeros(3)))[:3]
        V = np.concatenate((turn, after.T[:3, 3] - before.T[:3, 3])) / 2e-5
        # Differences over 2e-5 s: 1e-9 of terms of third order, 1e-11 of rounding.
        assert np.max(np.abs(one.V - V)) < 1e-7
        assert np.max(np.abs(one.V_dot - (after.V - before.V) / 2e-5)) < 1e-7


# -- Limits between points. -----------------------------------------------------------------------

def free_arm(**changes):
    """Return the arm without limits, apart from those that are given."""
    unlimited = {'lower': -np.inf, **dict.fromkeys(
        ('upper', 'velocity_limit', 'effort_limit'), np.inf)}
    limits = {name: np.full(ARM.nv, x) for name, x in unlimited.items()} | changes
    return replace(ARM, **{name: np.array(x) for name, x in limits.items()})


@contextmanager
def refused_if(refused, message):
    """Expect that limits are checked and, if so, that the motion is refused."""
    if not refused:
        yield
        return
    with pytest.raises(StateError, match=message):
        yield


@pytest.mark.parametrize('seed', range(3))
def test_efforts_are_refused_exactly_where_they_exceed_a_limit_between_points(seed):
    rng, count = np.random.default_rng(seed), 4
    times = np.cumsum(rng.uniform(0.3, 2.0, count))
    q, v = rng.normal(size=(2, count, ARM.nv))
    given = ((), (v,), (v, 3.0 * rng.normal(size=(count, ARM.nv))))[seed % 3]
    motion = JointTrajectory(ARM, times, q, *given)
    # So many states miss an extremum by less than 1e-5 of it.
    tau = []
    for t in np.concatenate([np.linspace(times[k], times[k + 1] - 1e-9, 2000)
                             for k in range(count - 1)]):
        one = motion.at(t)
        tau.append(rbd_ros.inverse_dynamics(ARM, one.q, one.v, one.a) + ARM.damping * one.v)
    joint, peak = seed % ARM.nv, np.max(np.abs(tau), axis=0)
    for share, refused in ((1.0003, False), (0.9997, True)):
        limit = np.full(ARM.nv, np.inf)
        limit[joint] = share * peak[joint]
        with refused_if(refused, f"'{ARM.velocity_names[joint]}' needs"):
            JointTrajectory(free_arm(effort_limit=limit), times, q, *given).check_limits()


@pytest.mark.parametrize('points', [3, 3000])
def test_motions_that_rest_at_each_point_are_checked_in_between(points):
    # 0.02 rad in 0.1 s, with rest at both ends: 10/sqrt(3) 0.02/0.1^2 rad/s^2 in between.
    q, still = np.zeros((2, points, ARM.nv))
    q[1::2, 0] = 0.02
    inertia = rbd_ros.mass_matrix(ARM, q[0])[0, 0]
    peak = inertia * 10.0 / np.sqrt(3.0) * 0.02 / 0.1 ** 2
    limit = np.full(ARM.nv, np.inf)
    rubbing = ARM.damping[0] * 1.875 * 0.02 / 0.1
    for most, refused in ((0.95 * (peak - rubbing), True), (1.05 * (peak + rubbing), False)):
        limit[0] = most
        motion = JointTrajectory(free_arm(effort_limit=limit), 0.1 * np.arange(points), q, still,
                                 still)
        with refused_if(refused, 'needs'):
            motion.check_limits()


def test_efforts_that_stay_near_their_limit_are_accepted_and_friction_counts_where_it_acts():
    # A joint that rests under gravity, and one that turns round: friction is never on both sides.
    q = np.tile([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0], (3, 1))
    g = np.abs(rbd_ros.gravity_torques(ARM, q[0]))
    JointTrajectory(free_arm(effort_limit=g + 1e-3), [0.0, 1.0, 2.0], q).check_limits()
    q[1, 0], limit, rubbing = 0.5, np.full(ARM.nv, np.inf), 4.0
    inertia = rbd_ros.mass_matrix(ARM, q[0])[0, 0]
    # Two cubics from rest to rest, of 6 way/h^2 at their ends, where it turns round.
    for most, refused in ((1.01, False), (0.99, True)):
        limit[0] = most * (inertia * 6.0 * 0.5 + rubbing)
        model = free_arm(effort_limit=limit, damping=np.zeros(ARM.nv),
                         friction=np.full(ARM.nv, rubbing))
        with refused_if(refused, "'shoulder_pan' needs"):
            JointTrajectory(model, [0.0, 1.0, 2.0], q, np.zeros_like(q)).check_limits()


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_a_joint_that_begins_beyond_its_limit_may_come_back_but_go_no_further(sign):
    model = free_arm(lower=np.full(ARM.nv, -1.0), upper=np.full(ARM.nv, 1.0))
    begin = sign * np.array([1.2, *[0.0] * 6])
    for goal, refused in ((1.2, False), (0.5, False), (1.201, True)):
        end = begin.copy()
        end[0] = sign * goal
        with refused_if(refused, 'reaches'):
            JointTrajectory(model, [0.0, 1.0], [begin, end]).check_limits()
    # Another limit is as it was.
    with pytest.raises(StateError, match='reaches'):
        JointTrajectory(model, [0.0, 1.0], [begin, -1.001 * begin / 1.2]).check_limits()
