# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Fastest motions, also with limited jerk: by closed forms, by toppra, and at 1 kHz."""

from dataclasses import replace
from pathlib import Path

from covering import covering
import numpy as np
from optional import Optional
import pinocchio as pin
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.analysis import retime
from rbd_ros.control import JointTrajectory
from rbd_ros.model import with_friction, with_springs
from rbd_ros.motions import path_limits
from rbd_ros.motions.limits import limits_of
from robots import example_urdf, load_quietly
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

toppra = Optional('toppra')
algorithm = Optional('toppra.algorithm')
constraint = Optional('toppra.constraint')

URDF = example_urdf('panda.urdf')
DEMO_ARM = Path(__file__).parents[2] / 'urdf/demo_arm.urdf'
FINGERS = {'panda_finger_joint1': 0.0}
# Limits may be exceeded by a thousandth at 1 kHz, and durations by a hundredth of toppra's.
EXCESS, LONGER = 1.001, 1.01
# Durations against closed forms: the grid, and linear friction.
DURATION = 2e-3
INERTIA, WAY = 0.5, 2.0     # of the wheel, kg m^2, and of its motion, rad


@pytest.fixture(scope='module')
def arm():
    """Return a Panda without friction, nor fingers that move."""
    robot = rbd_ros.with_locked_joints(load_quietly(URDF), FINGERS)
    return with_friction(robot, damping=0.0 * robot.damping)


@pytest.fixture(scope='module')
def worn(arm):
    """Return the same with viscous and Coulomb friction."""
    return with_friction(arm, damping=dict.fromkeys(arm.velocity_names, 2.0),
                         friction=dict.fromkeys(arm.velocity_names, 1.5))


def waypoints(arm, seed, count, through=8):
    """Return waypoints on a smooth random path near the middle of the limits."""
    rng = np.random.default_rng(seed)
    middle = 0.5 * (arm.lower + arm.upper)
    random = middle + rng.uniform(-0.5, 0.5, (through, arm.nv))
    return CubicSpline(np.linspace(0.0, 1.0, through), random)(np.linspace(0.0, 1.0, count))


def torques(states, friction=(0.0, 0.0), payload=None):
    """Return torques by Pinocchio, with viscous and Coulomb friction, and a mass at the flange."""
    full = pin.buildModelFromUrdf(str(URDF))
    robot = pin.buildReducedModel(full, [full.getJointId('panda_finger_joint1'),
                                         full.getJointId('panda_finger_joint2')],
                                  pin.neutral(full))
    if payload is not None:
        frame = robot.frames[robot.getFrameId('panda_link8')]
        robot.appendBodyToJoint(frame.parentJoint, pin.Inertia(payload, np.zeros(3),
                                                               np.zeros((3, 3))), frame.placement)
    data = robot.createData()
    viscous, coulomb = friction
    return np.array([pin.rnea(robot, data, q, v, a) + viscous * v + coulomb * np.sign(v)
                     for q, v, a in zip(*states)])


def curve_of(found):
    if found.smooth:
        return BPoly.from_derivatives(found.time, np.stack((found.q, found.v, found.a), axis=1))
    return CubicHermiteSpline(found.time, found.q, found.v)


def at_1_khz(found):
    """Return q, v, a and jerks at every millisecond."""
    curve, time = curve_of(found), np.arange(0.0, found.time[-1], 1e-3)
    return [curve(time, k) for k in range(4)]


@pytest.mark.parametrize('seed, count, speed, acceleration, jerk', covering([
    (0, 6, 1.0, np.inf, None), (1, 6, 1.0, 15.0, None), (2, 100, 1.0, np.inf, None),
    (3, 100, 1.0, 15.0, None), (0, 6, 1.0, 15.0, 100.0), (1, 6, 1.0, 15.0, 2000.0),
    (2, 100, 1.0, 8.0, 300.0), (3, 100, 1.0, 1e3, 1e4), (4, 20, 0.2, 1e3, 300.0)],
    (0, 6, 1.0, np.inf, None), (3, 100, 1.0, 15.0, None), (0, 6, 1.0, 15.0, 100.0),
    (4, 20, 0.2, 1e3, 300.0)))
def test_no_limit_is_exceeded_at_1_khz(arm, worn, seed, count, speed, acceleration, jerk):
    path = waypoints(arm, seed, count)
    most = np.full(arm.nv, acceleration)
    for robot, friction in ((arm, (0.0, 0.0)), (worn, (2.0, 1.5))):
        robot = replace(robot, velocity_limit=speed * robot.velocity_limit)
        found = fastest = retime(robot, path, acceleration_limit=most)
        jerks = np.full(arm.nv, np.inf)
        if jerk is not None:
            jerks = np.linspace(jerk, 2.0 * jerk, arm.nv)
            found = retime(robot, path, acceleration_limit=most, jerk_limit=jerks)
        q, v, a, rates = at_1_khz(found)
        used = np.abs([v / robot.velocity_limit, a / most,
                       torques((q, v, a), friction) / robot.effort_limit, rates / jerks])
        assert np.max(used) <= EXCESS
        assert found.smooth == (jerk is not None) and not fastest.smooth
        if jerk is None:
            # One limit is nearly reached all the time: the motion could not be much faster.
            assert np.mean(np.max(used, axis=(0, 2))) > 0.98
            continue
        assert np.max(used) > 0.98 and found.time[-1] > fastest.time[-1]
        # The reference of the torque controller finds all extrema, to a millionth.
        limited = replace(robot, acceleration_limit=most, deceleration_limit=0.6 * most,
                          jerk_limit=jerks)
        found = retime(limited, path, effort_share=0.99)
        JointTrajectory(limited, found.time, found.q, found.v, found.a).check_limits()


@pytest.mark.parametrize('seed, count, acceleration', [(0, 6, 1e3), (3, 100, 15.0)])
def test_retimed_motions_are_as_fast_as_those_of_toppra(arm, seed, count, acceleration):
    path = waypoints(arm, seed, count)
    most = np.full(arm.nv, acceleration)
    robot = with_friction(arm, friction=dict.fromkeys(arm.velocity_names, 1.5))
    found = retime(robot, path, acceleration_limit=most)
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))))
    speed, rate, effort = (np.stack((-x, x), axis=1)
                           for x in (arm.velocity_limit, most, arm.effort_limit))
    limits = [constraint.JointVelocityConstraint(speed),
              constraint.JointAccelerationConstraint(rate),
              constraint.SecondOrderConstraint.joint_torque_constraint(
                  lambda *state: torques([[x] for x in state])[0], effort, np.full(arm.nv, 1.5))]
    problem = algorithm.TOPPRA(limits, toppra.SplineInterpolator(s, path),
                               solver_wrapper='seidel', parametrizer='ParametrizeConstAccel')
    assert found.time[-1] <= LONGER * problem.compute_trajectory(0, 0).duration


@pytest.mark.parametrize('jerk', [None, 500.0])
def test_result_is_on_the_path_from_rest_to_rest_with_its_efforts(arm, jerk):
    path = waypoints(arm, 4, 20)
    found = retime(arm, path, jerk_limit=jerk and np.full(arm.nv, jerk))
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))))
    fine = CubicSpline(s, path, bc_type='natural')(np.linspace(0.0, s[-1], 20001))
    apart = [np.min(np.max(np.abs(fine - q), axis=1)) for q in at_1_khz(found)[0][::20]]
    assert max(apart) < 1e-3
    assert np.allclose(found.q[[0, -1]], path[[0, -1]])
    assert found.time[0] == 0.0 and not found.v[[0, -1]].any()
    assert np.allclose(found.effort, torques((found.q, found.v, found.a)), atol=1e-9)
    if jerk:
        assert np.max(np.abs(found.a[[0, -1]])) < 1e-6
        return
    # Accelerations are those of the polynomials, on the average of both sides.
    curve = curve_of(found)
    sides = [curve(found.time[1:-1] + x, 2) for x in (-1e-9, 1e-9)]
    assert np.allclose(found.a[1:-1], 0.5 * (sides[0] + sides[1]), atol=1e-3)
    # Controllers go on with the last point.
    assert not found.a[-1].any() and np.abs(curve(found.time[-1] - 1e-9, 2)).max() > 1.0


@pytest.mark.parametrize('seed, count', [(0, 6), (1, 12)])
def test_reference_of_the_torque_controller_accepts_the_motion(arm, seed, count):
    # It finds all extrema of velocities and accelerations, to a millionth.
    limited = replace(arm, acceleration_limit=np.full(arm.nv, 15.0),
                      deceleration_limit=np.full(arm.nv, 12.0))
    found = retime(limited, waypoints(arm, seed, count), effort_share=0.98)
    JointTrajectory(limited, found.time, found.q, found.v).check_limits()


def test_payload_makes_the_motion_slower_and_is_in_the_efforts(arm):
    path = waypoints(arm, 6, 30)
    loaded = rbd_ros.with_payload(arm, 'panda_link8', 5.0)
    found = retime(loaded, path)
    tau = torques(at_1_khz(found)[:3], payload=5.0)
    assert np.max(np.abs(tau) / arm.effort_limit) == pytest.approx(1.0, abs=1e-3)
    assert found.time[-1] > retime(arm, path).time[-1]


def wheel(axis=(0.0, 0.0, 1.0), **limits):
    """Return a joint that turns 0.01 kg m^2 and 1.96 kg, 0.5 m away: 0.5 kg m^2 in all."""
    options = {'lower': -9.0, 'upper': 9.0, **limits}
    return (rbd_ros.ModelBuilder('wheel').link('base')
            .link('arm', 1.96, com=(0.0, 0.5, 0.0), inertia=(0.01, 0.01, 0.01))
            .joint('j', 'revolute', 'base', 'arm', axis=axis, **options).build())


def duration(robot, **options):
    return retime(robot, [[0.0], [WAY]], **options).time[-1]


# The shortest time for half of the way per square root of the acceleration, there and back.
HALVES = 2.0 * np.sqrt(WAY)
PAIR = (rbd_ros.ModelBuilder('pair').link('base')
        .link('one', 1.0, inertia=(0.1, 0.1, 0.1)).link('two', 1.0, inertia=(0.1, 0.1, 0.1))
        .joint('j', 'continuous', 'base', 'one', axis=(0.0, 0.0, 1.0), effort=3.0)
        .joint('k', 'continuous', 'base', 'two', axis=(0.0, 0.0, 1.0), mimic=('j', -2.0, 0.0))
        .build())
SPRUNG = with_springs(wheel(effort=3.0), stiffness=[1.0], spring_reference=[0.5 * WAY])


@pytest.mark.parametrize('robot, options, shortest', [
    # Bang-bang: accelerate half of the way, and brake on the other half.
    (wheel(effort=3.0), {}, HALVES * np.sqrt(INERTIA / 3.0)),
    (wheel(effort=3.0), {'effort_share': 0.5}, HALVES * np.sqrt(INERTIA / 1.5)),
    (wheel(effort=3.0, velocity=9.0), {'acceleration_limit': [4.0]}, HALVES / 2.0),
    (wheel(acceleration=8.0, deceleration=2.0), {}, np.sqrt(2.0 * WAY * (1.0 / 8.0 + 1.0 / 2.0))),
    # A trapezoid: 1 rad/s is reached after 1/6 s, in which 1/12 rad is covered; so at the end.
    (wheel(effort=3.0, velocity=1.0), {}, WAY + 1.0 / 6.0),
    (wheel(effort=3.0), {'velocity_limit': [1.0]}, WAY + 1.0 / 6.0),
    (rbd_ros.with_armature(wheel(effort=3.0), {'j': INERTIA}), {},
     HALVES * np.sqrt(2.0 * INERTIA / 3.0)),
    # The second joint turns twice as far: four times its inertia.
    (PAIR, {}, HALVES * np.sqrt(0.5 / 3.0)),
    (SPRUNG, {'springs': False}, HALVES * np.sqrt(INERTIA / 3.0)),
    (with_friction(wheel(effort=3.0), friction={'j': 1.0}), {'friction': False},
     HALVES * np.sqrt(INERTIA / 3.0))])
def test_durations_are_those_of_closed_forms(robot, options, shortest):
    assert duration(robot, **options) == pytest.approx(shortest, rel=DURATION)
    back = retime(robot, [[WAY], [0.0]], **options)
    assert back.time[-1] == pytest.approx(shortest, rel=DURATION)


@pytest.mark.parametrize('direction', [1.0, -1.0])
def test_coulomb_friction_helps_to_brake(direction):
    robot = with_friction(wheel(effort=3.0), friction={'j': 1.0})
    faster, slower = 2.0 / INERTIA, 4.0 / INERTIA
    top = np.sqrt(2.0 * WAY / (1.0 / faster + 1.0 / slower))
    found = retime(robot, [[0.0], [direction * WAY]])
    assert found.time[-1] == pytest.approx(top / faster + top / slower, rel=DURATION)


def test_viscous_friction_limits_the_speed():
    # I dv/dt = L - d v, then - L - d v: the switch is where both parts cover the way.
    damping, effort = 2.0, 3.0
    robot = with_friction(wheel(effort=effort), damping={'j': damping})
    rate, speed = damping / INERTIA, effort / damping

    def way(switch):
        top = speed * (1.0 - np.exp(-rate * switch))
        rest = np.log1p(top / speed) / rate
        return speed * switch - top / rate + top / rate - speed * rest, switch + rest
    low, high = 0.0, 10.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if way(middle)[0] < WAY else (low, middle)
    assert way(low)[1] < duration(robot) <= LONGER * way(low)[1]


def test_a_payload_that_is_hardly_held_is_moved_as_fast_as_without_friction():
    # Damping is at most 0.3 N m s/rad.
    arm = rbd_ros.with_payload(load_quietly(DEMO_ARM), 'tool', 10.0)
    path = [[0.9, 1.1, 0.0, 0.9, 0.0, 1.1, 0.0], [0.0, 0.5, 0.4, 1.2, 0.0, 1.4, 0.5],
            [-0.9, 1.1, 0.0, 0.9, 0.0, 1.1, 1.0]]
    for share in (0.75, 0.72, 0.7):
        with_it, without = (retime(
            arm, path, acceleration_limit=np.full(arm.nv, 10.0), effort_share=share,
            friction=friction).time[-1] for friction in (True, False))
        assert with_it < 1.2 * without


def test_motions_are_found_where_efforts_hardly_exceed_those_at_rest():
    # A straight line in 3 s, with a quintic, uses at most 90 % of these limits.
    path = np.array([[0.0, 0.66, -0.75, -0.56, 0.69, -0.69, -0.59],
                     [0.72, 0.70, -0.21, 0.02, 0.26, -0.36, -0.58]])
    arm = load_quietly(DEMO_ARM)
    arm = replace(arm, effort_limit=np.array([1.0, 42.26, 5.17, 12.94, 1.33, 1.59, 1.0]))
    x = np.linspace(0.0, 1.0, 1001)[:, None]
    way = path[1] - path[0]
    used = batch.inverse_dynamics(
        arm, path[0] + (10.0 * x ** 3 - 15.0 * x ** 4 + 6.0 * x ** 5) * way,
        30.0 * x ** 2 * (1.0 - x) ** 2 * way / 3.0,
        (60.0 * x - 180.0 * x ** 2 + 120.0 * x ** 3) * way / 9.0)
    assert np.all(np.abs(used) < 0.9 * arm.effort_limit)
    assert retime(arm, path).time[-1] < 3.0


def test_paths_stay_near_waypoints_that_are_unevenly_far_apart(arm):
    for way in ([0.0, 0.3, 0.31, 0.3], [0.3, 0.31, 0.3, 0.0], [0.0, 0.2, 0.205, 0.2, 0.205]):
        path = np.zeros((len(way), arm.nv))
        path[:, 0], path[:, 3], path[:, 5] = way, -1.5, 1.5
        q = retime(arm, path, acceleration_limit=np.full(arm.nv, 5.0)).q[:, 0]
        overshoot = 0.25 * np.ptp(way)
        assert min(way) - overshoot < q.min() and q.max() < max(way) + overshoot


def test_small_accelerations_do_not_shrink_the_efforts_that_hold_the_robot():
    # Gravity takes 9.6 of 10 N m. The path reverses several times.
    lifted = wheel(axis=(1.0, 0.0, 0.0), effort=10.0)
    path = np.array([-0.0006, -0.0669, -0.0672, -0.0674, -0.0673, -0.0656, -0.0878])[:, None]
    for acceleration in (0.2, 0.6):
        found = retime(lifted, path, acceleration_limit=[acceleration])
        assert np.max(np.abs(found.a)) <= acceleration * (1.0 + 1e-6)
        assert np.max(np.abs(found.effort)) <= 10.0 * (1.0 + 1e-6)


def test_springs_are_held():
    q, _, a, _ = at_1_khz(retime(SPRUNG, [[0.0], [WAY]]))
    tau = INERTIA * a + q - 0.5 * WAY
    assert np.max(np.abs(tau)) <= 3.0 * EXCESS
    assert np.mean(np.abs(tau) > 0.99 * 3.0) > 0.9


def test_a_joint_that_reverses_or_rests_stays_within_its_limits(worn):
    middle = 0.5 * (worn.lower + worn.upper)
    zigzag = middle + 0.4 * np.array([[0] * 7, [1] * 7, [0] * 7, [1, 0] * 3 + [1], [0] * 7])
    one_by_one = middle + 0.4 * np.tril(np.ones((7, 7)))
    for path in (zigzag, one_by_one):
        q, v, a, _ = at_1_khz(retime(worn, path))
        assert np.max(np.abs(torques((q, v, a), (2.0, 1.5))) / worn.effort_limit) <= EXCESS
        assert np.max(np.abs(v) / worn.velocity_limit) <= EXCESS


def test_closed_loops_move_within_limits():
    robot = rbd_ros.load_urdf('urdf/palletizer.urdf')
    start = rbd_ros.neutral(robot)
    goal = rbd_ros.integrate(robot, start, np.full(robot.nv, 0.2), 1.0)
    found = retime(robot, [start, goal])
    tau = np.array([rbd_ros.inverse_dynamics(robot, *state) + rbd_ros.friction_torques(
        robot, state[1], q=state[0]) for state in zip(found.q, found.v, found.a)])
    assert np.allclose(found.q[-1], goal, atol=1e-6)
    assert 0.99 < np.max(np.abs(tau) / robot.effort_limit) <= EXCESS


@pytest.mark.parametrize('jerk, least', [(None, 0.98), ([10.0], 0.95)])
def test_joints_that_depend_on_others_keep_to_their_limits_of_velocity(jerk, least):
    text = Path('urdf/four_bar.urdf').read_text(encoding='utf-8')
    slow = rbd_ros.load_urdf_string(text.replace('effort="0" velocity="40"',
                                                 'effort="0" velocity="0.5"'))
    start, goal = (rbd_ros.model.normalize(slow, [crank, 0.0, 0.0]) for crank in (0.2, 0.9))
    # Velocities of all joints, by differences of their positions.
    q = [start]
    found = retime(slow, [start, goal], jerk_limit=jerk)
    for x in at_1_khz(found._replace(q=found.q[:, :1]))[0][:, 0]:
        q.append(rbd_ros.model.normalize(slow, [x, *q[-1][1:]]))
    fastest = np.max(np.abs(np.diff(q[1:], axis=0)), axis=0) / 1e-3
    assert least * 0.5 < np.max(fastest[1:]) <= EXCESS * 0.5


@pytest.mark.parametrize('options, message', [
    ({'velocity_limit': np.zeros(7)}, "velocity limit of 'panda_joint1' must be positive, got 0"),
    ({'acceleration_limit': np.full(7, np.nan)},
     "acceleration limit of 'panda_joint1' must be positive, got nan"),
    ({'jerk_limit': np.zeros(7)}, "the jerk limit of 'panda_joint1' must be positive, got 0"),
    ({'effort_share': 1.5}, 'effort_share must lie between 0 and 1'),
    ({'effort_share': 0.0}, 'effort_share is 0')])
def test_options_that_are_wrong_are_named(arm, options, message):
    middle = 0.5 * (arm.lower + arm.upper)
    with pytest.raises(rbd_ros.StateError, match=message):
        retime(arm, [middle, middle + 0.1], **options)


def test_robots_and_paths_without_a_fastest_motion_are_refused(arm):
    middle = 0.5 * (arm.lower + arm.upper)
    for path in ([middle, middle], np.zeros((0, arm.nv))):
        with pytest.raises(rbd_ros.StateError, match='at least two are needed'):
            retime(arm, path)
    free = replace(arm, effort_limit=np.full(arm.nv, np.inf))
    with pytest.raises(rbd_ros.StateError, match='give acceleration_limit'):
        retime(free, [middle, middle + 0.1])
    floating = rbd_ros.with_floating_base(arm)
    with pytest.raises(rbd_ros.ModelError, match='has several coordinates'):
        retime(floating, [rbd_ros.neutral(floating)] * 2)
    # The spline overshoots between the waypoints.
    steep = [[0.0], [0.0], [0.5], [1.0], [0.9], [0.0]]
    with pytest.raises(rbd_ros.StateError, match=r"'j' to 1.0[0-9]* rad after waypoint 2, beyond"):
        retime(wheel(effort=3.0, upper=1.001), steep)


@pytest.mark.parametrize('limits, drives, share, message', [
    # The arm is level at the start, where its motor is too weak, or may do too little.
    ({'axis': (1.0, 0.0, 0.0), 'effort': 1.96 * 0.5 * 9.81 / 1.1}, {}, 1.0,
     r"'j' needs 9\.61.* N m .*and may use 8\.74 N m"),
    ({'axis': (1.0, 0.0, 0.0), 'effort': 50.0}, {}, 0.1,
     r'needs 9\.61.*may use 5 N m.*raise effo'),
    # Friction takes all of the effort, and damping would need more.
    ({'effort': 3.0}, {'friction': {'j': 3.0}, 'damping': {'j': 2.0}}, 1.0,
     r"'j' needs 3 N m .* and may use 3 N m")])
def test_motors_that_are_too_weak_are_named(limits, drives, share, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        duration(with_friction(wheel(**limits), **drives), effort_share=share)


def test_a_missing_package_is_named(arm, monkeypatch):
    monkeypatch.setitem(__import__('sys').modules, 'toppra', None)
    with pytest.raises(rbd_ros.ModelError, match=r"pip install 'rbd_ros\[retime\]'"):
        retime(arm, waypoints(arm, 0, 3))


# -- Limited jerk. --------------------------------------------------------------------------------

@pytest.mark.parametrize('jerk, slower', [(4.0, 1.3), (20.0, 1.3), (100.0, 1.3), (1000.0, 1.02)])
def test_a_single_joint_is_little_slower_than_the_fastest_motion(jerk, slower):
    most = 3.0 / INERTIA
    # The acceleration rises to its limit, or is a zigzag below it.
    shortest = (most / jerk + np.sqrt((most / jerk) ** 2 + 4.0 * WAY / most)
                if WAY >= 2.0 * most ** 3 / jerk ** 2 else (32.0 * WAY / jerk) ** (1.0 / 3.0))
    assert shortest <= duration(wheel(effort=3.0), jerk_limit=[jerk]) <= slower * shortest
    # Deceleration has its own limit; the jerk hardly matters.
    shortest = np.sqrt(2.0 * WAY * (1.0 / 8.0 + 1.0 / 2.0))
    robot = wheel(acceleration=8.0, deceleration=2.0)
    assert shortest <= duration(robot, jerk_limit=[1e4]) <= 1.02 * shortest


def test_the_last_effort_holds_the_robot_without_friction(worn):
    for seed in range(3):
        found = retime(worn, waypoints(worn, seed, 6), jerk_limit=np.full(worn.nv, 800.0))
        assert np.allclose(found.effort[-1], rbd_ros.gravity_torques(worn, found.q[-1]))


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


def test_the_smaller_of_the_limits_of_the_robot_and_those_given_holds(arm):
    path = waypoints(arm, 1, 6)
    limited = replace(arm, jerk_limit=np.array([200.0] * 6 + [np.inf]))
    durations = [retime(robot, path, jerk_limit=limit).time[-1] for robot, limit in (
        (arm, [200.0] * 6 + [1e9]), (limited, None), (limited, np.full(7, 1e9)),
        (limited, np.full(7, 100.0)))]
    assert durations[0] == pytest.approx(durations[1]) == pytest.approx(durations[2])
    assert durations[3] > 1.1 * durations[0]


def test_efforts_against_gravity_keep_to_their_limits():
    robot = wheel((1.0, 0.0, 0.0), effort=12.0)
    found = retime(robot, [[0.0], [0.7], [0.2], [1.5]], jerk_limit=[500.0])
    tau = batch.inverse_dynamics(robot, *at_1_khz(found)[:3])
    assert 0.98 * 12.0 < np.max(np.abs(tau)) <= EXCESS * 12.0


def there_and_back():
    """Return the path of a wheel with friction, the limits at its nodes, and squared rates."""
    robot = with_friction(wheel(effort=9.0, velocity=1.0), damping={'j': 2.0},
                          friction={'j': 3.0})
    limits = limits_of(robot)
    path = path_limits.Path(robot, limits, np.array([[0.0], [1.0], [0.0]]))
    return (path, path_limits.NodeLimits(robot, limits, path, True, True),
            np.full(len(path.s), 0.25))


def test_friction_at_nodes_has_all_directions_that_a_joint_may_have():
    path, nodes, x = there_and_back()
    least, largest = nodes.friction(x)
    v = 0.5 * path.slope
    turn = int(np.argmin(np.abs(path.slope)))
    assert path.slope[turn] == 0.0 and 0 < turn < len(path.s) - 1
    for end in (0, 1):
        speeds = v[end:len(x) - 1 + end]
        one_way = 2.0 * speeds + 3.0 * np.sign(path.direction)
        both = [k for k in range(len(speeds)) if k + end in (0, turn, len(x) - 1)]
        other = np.setdiff1d(np.arange(len(speeds)), both)
        assert np.allclose(least[end, other], one_way[other])
        assert np.allclose(largest[end, other], one_way[other])
    # Both directions where it turns; at the ends, one of them or none.
    for end, k in ((0, turn), (1, turn - 1)):
        assert (least[end, k, 0], largest[end, k, 0]) == (-3.0, 3.0)
    assert np.allclose([least[0, 0, 0], largest[0, 0, 0]], 2.0 * v[0, 0] + np.array([0.0, 3.0]))
    assert np.allclose([least[1, -1, 0], largest[1, -1, 0]],
                       2.0 * v[-1, 0] + np.array([-3.0, 0.0]))
