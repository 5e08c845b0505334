# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions with limited jerk: at 1 kHz, at extrema, and compared with closed-form optima."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis import retime
from rbd_ros.control import JointTrajectory
from rbd_ros.model import with_friction
from robots import load_quietly
from scipy.interpolate import BPoly, CubicSpline
from test_retiming import EXCESS, FINGERS, INERTIA, torques, URDF, WAY, waypoints, wheel

ARM = rbd_ros.with_locked_joints(load_quietly(URDF), FINGERS)
# Without friction, and with viscous and Coulomb friction, N m s/rad and N m.
ROBOTS = [(with_friction(ARM, damping=dict.fromkeys(ARM.velocity_names, viscous),
                         friction=dict.fromkeys(ARM.velocity_names, coulomb)), (viscous, coulomb))
          for viscous, coulomb in ((0.0, 0.0), (2.0, 1.5))]
FREE = ROBOTS[0][0]


def quintics(found):
    """Return the curve between the points that controllers follow."""
    return BPoly.from_derivatives(found.time, np.stack((found.q, found.v, found.a), axis=1))


def used(found, robot, most, jerk, friction=(0.0, 0.0)):
    """Return the largest shares of limits at 1 kHz: velocity, acceleration, jerk and torque."""
    curve, t = quintics(found), np.arange(0.0, found.time[-1], 1e-3)
    q, v, a, j = (curve.derivative(k)(t) for k in range(4))
    tau = torques((q, v, a), friction)
    return [np.max(np.abs(x) / limit) for x, limit in (
        (v, robot.velocity_limit), (a, most), (j, jerk), (tau, robot.effort_limit))]


@pytest.mark.parametrize('seed, count, speed, acceleration, jerk', [
    (0, 6, 1.0, 15.0, 100.0), (1, 6, 1.0, 15.0, 2000.0), (2, 100, 1.0, 8.0, 300.0),
    (3, 100, 1.0, 1e3, 1e4), (4, 20, 0.2, 1e3, 300.0)])
def test_no_limit_is_exceeded_at_1_khz(seed, count, speed, acceleration, jerk):
    path = waypoints(ARM, seed, count)
    most, jerks = np.full(ARM.nv, acceleration), np.linspace(jerk, 2.0 * jerk, ARM.nv)
    for robot, friction in ROBOTS:
        robot = replace(robot, velocity_limit=speed * robot.velocity_limit)
        fastest = retime(robot, path, acceleration_limit=most)
        found = retime(robot, path, acceleration_limit=most, jerk_limit=jerks)
        shares = used(found, robot, most, jerks, friction)
        assert max(shares) <= EXCESS
        # It is no slower than it must be.
        assert max(shares) > 0.98 and found.time[-1] > fastest.time[-1]
        assert found.smooth and not fastest.smooth
        # The reference of the torque controller finds all extrema, to a millionth.
        limited = replace(robot, acceleration_limit=most, deceleration_limit=0.6 * most,
                          jerk_limit=jerks)
        found = retime(limited, path, effort_share=0.99)
        JointTrajectory(limited, found.time, found.q, found.v, found.a).check_limits()


def test_result_is_on_the_path_from_rest_to_rest_with_its_efforts():
    path = waypoints(FREE, 4, 20)
    found = retime(FREE, path, jerk_limit=np.full(FREE.nv, 500.0))
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))))
    fine = CubicSpline(s, path, bc_type='natural')(np.linspace(0.0, s[-1], 20001))
    curve = quintics(found)
    apart = [np.min(np.max(np.abs(fine - q), axis=1)) for q in curve(
        np.arange(0.0, found.time[-1], 0.02))]
    assert max(apart) < 1e-3
    assert np.allclose(found.q[[0, -1]], path[[0, -1]])
    assert not found.v[[0, -1]].any() and np.max(np.abs(found.a[[0, -1]])) < 1e-6
    assert np.allclose(found.effort, torques((found.q, found.v, found.a)), atol=1e-9)


@pytest.mark.parametrize('jerk', [4.0, 20.0, 100.0, 1000.0])
def test_a_single_joint_is_little_slower_than_the_fastest_motion(jerk):
    robot = wheel(effort=3.0)
    found = retime(robot, [[0.0], [WAY]], jerk_limit=[jerk])
    most = 3.0 / INERTIA
    # The acceleration rises to its limit, or is a zigzag below it.
    shortest = (most / jerk + np.sqrt((most / jerk) ** 2 + 4.0 * WAY / most)
                if WAY >= 2.0 * most ** 3 / jerk ** 2 else (32.0 * WAY / jerk) ** (1.0 / 3.0))
    assert shortest <= found.time[-1] <= 1.3 * shortest
    if jerk == 1000.0:
        assert found.time[-1] <= 1.02 * shortest


def test_the_last_effort_holds_the_robot_without_friction():
    robot, _ = ROBOTS[1]
    for seed in range(6):
        found = retime(robot, waypoints(robot, seed, 6), jerk_limit=np.full(robot.nv, 800.0))
        assert np.allclose(found.effort[-1], rbd_ros.gravity_torques(robot, found.q[-1]))


def test_a_motion_that_only_momentum_carries_is_refused():
    # Near the top, the motor is too weak to hold the wheel.
    robot = wheel((1.0, 0.0, 0.0), effort=0.95 * 1.96 * 0.5 * 9.81)
    path = [[-1.2], [1.2]]
    assert retime(robot, path).time[-1] < 2.0
    with pytest.raises(rbd_ros.StateError, match='no motion with limited jerk keeps to'):
        retime(robot, path, jerk_limit=[300.0])


@pytest.mark.parametrize('jerk', [50.0, 300.0, 5000.0])
def test_a_motion_may_end_where_friction_would_be_too_much(jerk):
    # At the end, level, the motor holds the weight, but could not lift it against friction.
    robot = with_friction(wheel((1.0, 0.0, 0.0), effort=1.96 * 0.5 * 9.81 + 1.0),
                          friction={'j': 3.0})
    found = retime(robot, [[1.3], [0.0]], jerk_limit=[jerk])
    assert found.time[-1] < 3.0 and np.allclose(found.q[-1], 0.0)


def test_deceleration_has_its_own_limit():
    robot = wheel(acceleration=6.0, deceleration=2.0)
    found = retime(robot, [[0.0], [WAY]], jerk_limit=[1e4])
    shortest = np.sqrt(2.0 * WAY * (1.0 / 6.0 + 1.0 / 2.0))
    assert shortest <= found.time[-1] <= 1.02 * shortest


def test_the_smaller_of_the_limits_of_the_robot_and_those_given_holds():
    path = waypoints(FREE, 1, 6)
    limited = replace(FREE, jerk_limit=np.array([200.0] * 6 + [np.inf]))
    durations = [retime(robot, path, jerk_limit=limit).time[-1] for robot, limit in (
        (FREE, [200.0] * 6 + [1e9]), (limited, None), (limited, np.full(7, 1e9)),
        (limited, np.full(7, 100.0)))]
    assert durations[0] == pytest.approx(durations[1]) == pytest.approx(durations[2])
    assert durations[3] > 1.1 * durations[0]
    with pytest.raises(rbd_ros.StateError, match="the jerk limit of 'panda_joint1' is 0"):
        retime(FREE, path, jerk_limit=np.zeros(FREE.nv))


def test_efforts_against_gravity_keep_to_their_limits():
    robot = wheel((1.0, 0.0, 0.0), effort=12.0)
    found = retime(robot, [[0.0], [0.7], [0.2], [1.5]], jerk_limit=[500.0])
    curve, t = quintics(found), np.arange(0.0, found.time[-1], 1e-3)
    tau = rbd_ros.batch.inverse_dynamics(robot, *(curve.derivative(k)(t) for k in range(3)))
    assert 0.98 * 12.0 < np.max(np.abs(tau)) <= EXCESS * 12.0


def test_joints_that_depend_on_others_keep_to_their_limits_of_velocity():
    text = Path('urdf/four_bar.urdf').read_text(encoding='utf-8')
    slow = rbd_ros.load_urdf_string(text.replace('effort="0" velocity="40"',
                                                 'effort="0" velocity="0.5"'))
    start, goal = (rbd_ros.model.normalize(slow, [crank, 0.0, 0.0]) for crank in (0.2, 0.9))
    found = retime(slow, [start, goal], jerk_limit=[10.0])
    crank = BPoly.from_derivatives(found.time, np.stack((found.q[:, 0], found.v[:, 0],
                                                         found.a[:, 0]), axis=1))
    q = [start]
    for x in crank(np.arange(0.0, found.time[-1], 1e-3)):
        q.append(rbd_ros.model.normalize(slow, [x, *q[-1][1:]]))
    fastest = np.max(np.abs(np.diff(q[1:], axis=0)), axis=0) / 1e-3
    assert 0.95 * 0.5 < np.max(fastest[1:]) <= EXCESS * 0.5
