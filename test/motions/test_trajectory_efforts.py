# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Efforts along trajectories, by Pinocchio, and how much slower they must be."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import rbd_ros
from rbd_ros.analysis import trajectory_efforts
from rbd_ros.model import with_friction, with_springs
from robots import example_urdf, load_quietly
from test_retiming import wheel

URDF = example_urdf('ur5_robot.urdf')
# N m: rounding of torques of 100 N m.
ROUNDING = 1e-10
# Relative: what bisection leaves, and rounding of files.
FOUND = 3e-6


@pytest.fixture(scope='module')
def arm():
    return load_quietly(URDF)


def motion(nv, time):
    """Return a cubic motion, which splines repeat exactly, from rest to rest in a second."""
    start, way = np.linspace(-1.0, 1.0, nv), np.linspace(0.5, 2.0, nv)
    t = time[:, None]
    return (start + way * (3.0 * t ** 2 - 2.0 * t ** 3), way * (6.0 * t - 6.0 * t ** 2),
            way * (6.0 - 12.0 * t))


def torques(q, v, a):
    robot = pin.buildModelFromUrdf(str(URDF))
    data = robot.createData()
    return np.array([pin.rnea(robot, data, *state) for state in zip(q, v, a)])


@pytest.mark.parametrize('given', ['q', 'qv', 'qva', 'qa'])
def test_efforts_match_pinocchio_with_and_without_given_velocities_and_accelerations(arm, given):
    time = np.linspace(0.0, 1.0, 21)
    q, v, a = motion(arm.nv, time)
    found = trajectory_efforts(arm, time, q, v if 'v' in given else None,
                               a if 'a' in given else None)
    assert np.allclose(found.velocity, v, atol=1e-9)
    assert np.allclose(found.acceleration, a, atol=1e-7)
    assert np.allclose(found.effort, torques(q, v, a), atol=1e-6 if given != 'qva' else ROUNDING)


def test_accelerations_at_uneven_times_are_those_between_the_velocities(arm):
    time = np.array([0.0, 1.0, 1.01, 1.02, 1.03])
    v = np.zeros((5, arm.nv))
    v[:, 0] = 0.0, 0.5, 0.49, 0.5, 0.49
    found = trajectory_efforts(arm, time, np.zeros((5, arm.nv)), v).acceleration[:, 0]
    means = np.diff(v[:, 0]) / np.diff(time)     # 0.5, then 1 in turns of sign
    for k in range(1, 4):
        assert min(means[k - 1:k + 1]) <= found[k] <= max(means[k - 1:k + 1])
    assert np.max(np.abs(found)) < 3.0
    # Of two points it is constant.
    found = trajectory_efforts(arm, time[:2], np.zeros((2, arm.nv)), v[:2]).acceleration
    assert np.allclose(found[:, 0], 0.5, rtol=1e-12)


def test_efforts_of_trajectories_include_springs_and_friction_unless_excluded(arm):
    stiffness, reference = np.linspace(5.0, 30.0, 6), np.linspace(-1.0, 0.5, 6)
    worn = with_springs(with_friction(
        arm, damping={'elbow_joint': 2.0}, friction={'elbow_joint': 3.0}), stiffness=stiffness,
        spring_reference=reference)
    time = np.linspace(0.0, 1.0, 21)
    q, v, a = motion(arm.nv, time)
    rigid, friction, springs = torques(q, v, a), np.zeros_like(v), stiffness * (q - reference)
    friction[:, 2] = 2.0 * v[:, 2] + 3.0 * np.sign(v[:, 2])
    for options, expected in (({}, rigid + friction + springs), ({'springs': False}, rigid
                              + friction), ({'friction': False}, rigid + springs)):
        assert np.allclose(trajectory_efforts(worn, time, q, v, a, **options).effort, expected,
                           atol=ROUNDING)
    # Springs need their torque, however slow the motion is; gravity and motion need less here.
    weak = replace(with_springs(arm, stiffness=1e4 * np.ones(6)), effort_limit=np.full(6, 1e3))
    assert trajectory_efforts(weak, time, q, v, a, springs=False).time_scale == 1.0
    assert trajectory_efforts(weak, time, q, v, a).time_scale == np.inf


def test_one_point_is_a_state_at_rest(arm):
    q = np.full((1, arm.nv), 0.3)
    found = trajectory_efforts(arm, [0.0], q)
    assert not found.velocity.any() and not found.acceleration.any()
    assert np.allclose(found.effort, torques(q, 0.0 * q, 0.0 * q), atol=ROUNDING)


def scale(robot, sign=1.0, **options):
    """Return by how much a second of cubic motion by 2 rad must be slower: 3 rad/s, 12 rad/s^2."""
    time = np.linspace(0.0, 1.0, 201)
    t = time[:, None]
    q, v, a = 6.0 * t ** 2 - 4.0 * t ** 3, 12.0 * t - 12.0 * t ** 2, 12.0 - 24.0 * t
    return trajectory_efforts(robot, time, sign * q, sign * v, sign * a, **options).time_scale


@pytest.mark.parametrize('limits, expected', [
    ({'velocity': 4.0, 'effort': 7.0}, 1.0),
    ({'velocity': 3.0, 'effort': 6.0}, 1.0),
    ({'velocity': 2.0, 'effort': 7.0}, 1.5),
    ({'velocity': 4.0, 'effort': 1.5}, 2.0),
    ({'velocity': 2.0, 'effort': 1.5}, 2.0),
    ({'velocity': 1.0, 'effort': 1.5}, 3.0),
    ({}, 1.0)])
def test_time_scale_is_the_ratio_of_velocities_or_the_root_of_that_of_efforts(limits, expected):
    # About a vertical axis there is no gravity.
    assert scale(wheel((0.0, 0.0, 1.0), **limits)) == pytest.approx(expected, rel=FOUND)


def test_friction_that_grows_with_the_velocity_needs_less_time():
    # Damping alone, of a wheel that weighs nothing to speak of: efforts go with the velocity.
    light = (rbd_ros.ModelBuilder('light').link('base')
             .link('arm', 1e-9, inertia=(1e-9, 1e-9, 1e-9))
             .joint('j', 'revolute', 'base', 'arm', axis=(0.0, 0.0, 1.0), effort=1.0, damping=2.0)
             .build())
    assert scale(light) == pytest.approx(6.0, rel=FOUND)
    assert scale(light, friction=False) == 1.0


def test_no_time_scale_satisfies_effort_limits_below_the_gravity_torque():
    weight = 1.96 * 0.5 * 9.81
    assert scale(wheel((1.0, 0.0, 0.0), effort=weight - 0.1)) == np.inf
    # The same motion about the opposite axis: all efforts are negative.
    assert scale(wheel((-1.0, 0.0, 0.0), effort=weight - 0.1), sign=-1.0) == np.inf
    # At the start, where the arm is level: weight + 6 / c^2. A millionth of the limit is nearly a
    # ten-thousandth of what it leaves.
    slow = scale(wheel((1.0, 0.0, 0.0), effort=weight + 0.1))
    assert slow == pytest.approx(np.sqrt(60.0), rel=1e-4)


def test_invalid_trajectories_are_refused_by_their_point(arm):
    q = np.zeros((3, 6))
    with pytest.raises(rbd_ros.StateError, match='times must increase: point 2 is at 1 s'):
        trajectory_efforts(arm, [0.0, 1.0, 1.0], q)
    with pytest.raises(rbd_ros.StateError, match='v has the shape'):
        trajectory_efforts(arm, [0.0, 1.0, 2.0], q, q[:2])
    with pytest.raises(rbd_ros.StateError, match='a of state 1'):
        trajectory_efforts(arm, [0.0, 1.0, 2.0], q, q, np.diag([0.0, np.nan, 0.0, 0, 0, 0])[:3])
    floating = rbd_ros.with_floating_base(arm)
    with pytest.raises(rbd_ros.ModelError, match='several coordinates'):
        trajectory_efforts(floating, [0.0], rbd_ros.neutral(floating)[None])
