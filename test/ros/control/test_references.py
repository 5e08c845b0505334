# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that are motions, and messages that are refused."""

from dataclasses import replace
from pathlib import Path

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
import numpy as np
import pytest
from rbd_ros import (
    forward_kinematics, integrate, load_urdf, mass_matrix, ModelBuilder, neutral, StateError,
    with_locked_joints)
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.model.se3 import quaternion_of_matrix
from rbd_ros.ros.control.reference_messages import (
    check_reach, Following, read_pose, read_trajectory, Refused, Tolerances)
from rbd_ros.ros.runtime.share_directory import share
from robots import load_quietly, random_pose, random_tree
from scipy.spatial.transform import Rotation
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# Of numbers around 1, by a hundred operations or so.
ROUNDING = 1e-12
MODEL = random_tree(1, 3, kinds=('revolute',))
MODEL = replace(MODEL, lower=np.full(MODEL.nv, -1.0), upper=np.full(MODEL.nv, 2.0),
                velocity_limit=np.full(MODEL.nv, 4.0))
NAMES = list(MODEL.velocity_names)
START = JointReference(MODEL, [0.1, 0.2, 0.3], [0.5, -0.5, 0.25], [1.0, 0.0, -1.0],
                       [3.0, 2.0, 1.0])
STILL = JointReference(MODEL, np.zeros(3))
ARM = load_urdf(Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf')


def message(names, *points):
    """Return a trajectory of points: time, s, positions and further fields."""
    result = JointTrajectory(joint_names=list(names))
    for t, positions, *more in points:
        point = JointTrajectoryPoint(positions=positions, time_from_start=Duration(
            sec=int(t // 1.0), nanosec=round(1e9 * (t % 1.0))))
        for name, values in zip(('velocities', 'accelerations', 'effort'), more):
            setattr(point, name, values)
        result.points.append(point)
    return result


@pytest.mark.parametrize('more', [(), ([0.0],), ([0.0], [0.0])])
def test_a_motion_takes_over_position_and_velocity_and_ends_where_it_should(more):
    motion, duration = read_trajectory(message(NAMES[1:2], (1.5, [-0.4], *more)), MODEL, START,
                                       False)
    assert duration == 1.5
    first, last = motion.at(0.0), motion.at(1.5)
    assert np.max(np.abs(first.q - START.q)) < ROUNDING
    assert np.max(np.abs(first.v - START.v)) < ROUNDING
    if len(more) == 2:
        assert np.max(np.abs(first.a - START.a)) < ROUNDING
    # The others stay.
    assert np.max(np.abs(last.q - [0.1, -0.4, 0.3])) < ROUNDING
    assert not last.v.any() and not last.tau.any()


def test_points_are_ordered_by_joint_name_and_one_at_time_zero_is_replaced_by_the_reference():
    order = [NAMES[2], NAMES[0], NAMES[1]]
    motion, _ = read_trajectory(message(order, (0.0, [0.32, 0.08, 0.2]), (1.0, [0.5, 0.6, 0.7])),
                                MODEL, START, False)
    assert np.max(np.abs(motion.at(0.0).q - START.q)) < ROUNDING
    assert np.max(np.abs(motion.at(0.0).v - START.v)) < ROUNDING
    assert np.max(np.abs(motion.at(1.0).q - [0.6, 0.7, 0.5])) < ROUNDING


def test_effort_references_are_only_for_free_joints_and_begin_at_the_present_effort():
    given = message(NAMES[:1], (1.0, [0.2], [], [], [7.0]))
    motion, _ = read_trajectory(given, MODEL, START, True)
    assert np.max(np.abs(motion.at(0.0).tau - START.tau)) < ROUNDING
    assert np.max(np.abs(motion.at(0.5).tau - [5.0, 2.0, 1.0])) < ROUNDING
    assert np.max(np.abs(motion.at(1.0).tau - [7.0, 2.0, 1.0])) < ROUNDING


def test_an_empty_trajectory_stops_where_the_reference_is():
    motion, duration = read_trajectory(JointTrajectory(), MODEL, START, True)
    assert np.max(np.abs(motion.at(0.0).v - START.v)) < ROUNDING
    for t in (duration, 9.0):
        last = motion.at(t)
        assert np.max(np.abs(last.q - START.q)) < ROUNDING
        assert not last.v.any() and not last.tau.any()


@pytest.mark.parametrize('names, points, why', [
    (['elbow'], [(1.0, [0.0])], "no joint 'elbow'"), ([], [(1.0, [])], 'names no joint'),
    (NAMES[:1] * 2, [(1.0, [0.0, 0.0])], 'one twice'),
    (NAMES[:1], [(1.0, [])], 'no positions'), (NAMES[:1], [(1.0, [0.0, 0.0])], '1 positions'),
    (NAMES[:1], [(1.0, [0.0], [0.0]), (2.0, [0.0])], '1 velocities'),
    (NAMES[:1], [(1.0, [0.0], [], [0.0])], 'no velocities'),
    (NAMES[:1], [(1.0, [0.0], [], [], [1.0, 2.0])], '1 effort'),
    (NAMES[:1], [(1.0, [0.0]), (1.0, [0.1])], 'times do not increase'),
    (NAMES[:1], [(-1.0, [0.0])], 'times do not increase'),
    (NAMES[:1], [(1.0, [np.nan])], 'not all positions are finite'),
    (NAMES[:1], [(1.0, [0.0], [np.inf])], 'not all velocities are finite'),
    (NAMES[:1], [(9.0, [2.1])], 'reaches 2.1 rad at 9 s, its limit is 2'),
    (NAMES[:1], [(9.0, [0.0]), (18.0, [-1.1])], 'reaches -1.1 rad at 18 s, its limit is -1'),
    (NAMES[:1], [(0.0, [0.16]), (1.0, [0.0])], 'from the current reference'),
    (NAMES[:1], [(0.0, [0.1])], 'only point is at 0 s'),
    (NAMES[:1], [(0.1, [0.6])], 'moves at .* its limit is 4'),
    (NAMES[:1], [(1.0, [0.0]), (1.1, [0.5])], 'moves at .* its limit is 4'),
    (NAMES[:1], [(1.0, [0.0], [4.1]), (2.0, [0.0], [0.0])], 'moves at 4.1 rad/s at 1 s'),
    (NAMES[:1], [(1.0, [0.0], [0.1])], 'not at rest')])
def test_trajectories_that_cannot_be_followed_are_refused_with_the_reason(names, points, why):
    with pytest.raises((Refused, StateError), match=why):
        read_trajectory(message(names, *points), MODEL, START, False)


@pytest.mark.parametrize('begin, way', [(2.1, -1.0), (-1.1, 1.0)])
def test_a_joint_beyond_its_limit_may_have_points_on_its_way_back(begin, way):
    # The limits are -1 and 2.
    start = JointReference(MODEL, [begin, 0.0, 0.0])
    back = [(0.0, [begin]), (1.0, [begin + 0.05 * way]), (3.0, [begin + way])]
    read_trajectory(message(NAMES[:1], *back), MODEL, start, False)
    with pytest.raises(StateError, match=f"'{NAMES[0]}' reaches .* at 1 s"):
        read_trajectory(message(NAMES[:1], back[0], (1.0, [begin - 0.01 * way])), MODEL, start,
                        False)


TURNING = (ModelBuilder('turning').link('base').link('a', mass=1.0).link('b', mass=1.0)
           .joint('pan', 'continuous', 'base', 'a').joint('lift', 'revolute', 'a', 'b').build())


@pytest.mark.parametrize('start, points, ways', [
    (3.0, [-3.0], [0.2832]), (-3.0, [3.0], [-0.2832]), (0.0, [6.5], [0.2168]),
    (40.0, [-3.0], [0.9823]), (0.0, [np.pi], [np.pi]),
    # Between points beyond half a turn of zero, turns are meant: also those of a wrapped path.
    (0.0, [1.0, 7.0, 20.0, 2.0], [1.0, 6.0, 13.0, -18.0]),
    (0.0, [2.9, -2.9, -2.5], [2.9, 0.4832, 0.4]),
    (3.0, [-3.0, -3.2, -9.0], [0.2832, -0.2, -5.8])])
@pytest.mark.parametrize('speeds', [(), ([0.0, 0.0],)])
def test_a_continuous_joint_takes_the_shortest_way_and_another_one_does_not(start, points, ways,
                                                                            speeds):
    model, other = TURNING, 0.5
    begin = JointReference(model, [start, other])
    motion, duration = read_trajectory(message(model.velocity_names[::-1], *(
        (9.0 * (k + 1), [0.1 * k - 0.9, x], *speeds) for k, x in enumerate(points))), model, begin,
        False)
    assert duration == 9.0 * len(points)
    q = np.array([motion.at(9.0 * k).q for k in range(len(points) + 1)])
    assert np.allclose(np.diff(q[:, 0]), ways, atol=1e-4)
    assert np.allclose(q[:, 1], [0.5, *(0.1 * k - 0.9 for k in range(len(points)))])


def test_a_first_point_at_zero_may_be_turns_away():
    begin = JointReference(TURNING, [0.2, 0.0])
    points = (0.0, [0.22 + 4.0 * np.pi]), (1.0, [1.0 + 4.0 * np.pi])
    motion, _ = read_trajectory(message(TURNING.velocity_names[:1], *points), TURNING, begin,
                                False)
    assert np.allclose(motion.at(1.0).q, [1.0, 0.0])
    with pytest.raises(Refused, match='from the current reference'):
        read_trajectory(message(TURNING.velocity_names[1:], *points), TURNING, begin, False)


def stamped(T):
    """Return a message with a pose."""
    message = PoseStamped()
    for name, x in zip('xyz', T[:3, 3]):
        setattr(message.pose.position, name, float(x))
    for name, x in zip('xyzw', quaternion_of_matrix(T[:3, :3])):
        setattr(message.pose.orientation, name, float(x))
    return message


def test_a_pose_is_reached_no_faster_than_allowed():
    rng = np.random.default_rng(0)
    start, frame, local = (random_pose(rng) for _ in range(3))
    goal = frame @ local
    motion, duration = read_pose(stamped(local), frame, PoseReference(start), 0.2, 0.5)
    assert np.max(np.abs(motion.at(0.0).T - start)) < ROUNDING
    assert np.max(np.abs(motion.at(duration).T - goal)) < ROUNDING
    V = np.array([motion.at(t).V for t in np.linspace(0.0, duration, 201)])
    speeds = np.max(np.linalg.norm(V[:, :3], axis=1)), np.max(np.linalg.norm(V[:, 3:], axis=1))
    # One of the two limits is reached.
    assert speeds[0] <= 0.5 + 1e-9 and speeds[1] <= 0.2 + 1e-9
    assert max(speeds[0] / 0.5, speeds[1] / 0.2) > 0.999


@pytest.mark.parametrize('spoil', ['norm', 'number'])
def test_a_message_without_a_pose_is_refused(spoil):
    bad = stamped(np.eye(4))
    if spoil == 'norm':
        bad.pose.orientation.w += 0.1
    else:
        bad.pose.position.x = np.nan
    with pytest.raises(Refused, match='not a pose'):
        read_pose(bad, np.eye(4), PoseReference(np.eye(4)), 0.2, 0.5)


def test_a_target_beyond_the_arm_is_refused_with_its_distance():
    link, q = ARM.link_index('tool'), np.full(ARM.nv, 0.3)
    T = forward_kinematics(ARM, q)[link].copy()
    # The arm is less than 2 m long: it gets no closer than the rest of 5 m.
    T[:3, 3] *= 5.0 / np.linalg.norm(T[:3, 3])
    motion, duration = read_pose(stamped(T), np.eye(4), PoseReference(np.eye(4)), 9.0, 9.0)
    with pytest.raises(Refused, match=r"'tool' gets no closer than [3-5]") as refused:
        check_reach(motion, duration, ARM, 'tool', q)
    assert 'out of reach' in str(refused.value)


def test_targets_that_other_configurations_reach_are_accepted():
    rng, link = np.random.default_rng(3), ARM.link_index('tool')
    for _ in range(30):
        start, there = rng.uniform(0.9 * ARM.lower, 0.9 * ARM.upper, (2, ARM.nv))
        T = forward_kinematics(ARM, there)[link]
        motion, duration = read_pose(stamped(T), np.eye(4), PoseReference(np.eye(4)), 9.0, 9.0)
        check_reach(motion, duration, ARM, 'tool', start)


def test_a_rotation_that_joints_cannot_make_is_named_but_accepted():
    # Two joints about z and y: the link never rolls.
    arm = with_locked_joints(ARM, dict.fromkeys(ARM.velocity_names[2:], 0.4))
    q = np.array([0.2, 0.5])
    T = forward_kinematics(arm, q)[arm.link_index('tool')].copy()
    motion, duration = read_pose(stamped(T), np.eye(4), PoseReference(np.eye(4)), 9.0, 9.0)
    assert not check_reach(motion, duration, arm, 'tool', q + 0.1)
    T[:3, :3] = T[:3, :3] @ Rotation.from_rotvec([0.0, 0.0, 0.5]).as_matrix()
    motion, duration = read_pose(stamped(T), np.eye(4), PoseReference(np.eye(4)), 9.0, 9.0)
    assert 'rotation may be out of reach' in check_reach(motion, duration, arm, 'tool', q)


# -- Between two points. --------------------------------------------------------------------------

def test_a_motion_that_overshoots_its_points_is_refused_with_the_extremum():
    # From rest to 1.8 in 3 s, arriving at 1.5 rad/s, and back to rest there a second later:
    # the cubic q = 1.8 + 1.5 t - 3 t^2 + 1.5 t^3 has its maximum at t = 1/3.
    peak = 1.8 + 1.5 / 3.0 - 3.0 / 9.0 + 1.5 / 27.0
    given = message(NAMES[:1], (3.0, [1.8], [1.5]), (4.0, [1.8], [0.0]))
    with pytest.raises(StateError, match=f"'{NAMES[0]}' reaches {peak:.4g} rad at 3.333 s"):
        read_trajectory(given, MODEL, STILL, False)


def test_a_motion_that_touches_its_limit_between_two_points_is_accepted():
    # As above, with the maximum at the limit of 2 rad, by 1e-9 rad on either side of it.
    v = 1.5
    top = 2.0 - (v / 3.0 - 2.0 * v / 9.0 + v / 27.0)
    given = message(NAMES[:1], (3.0, [top - 1e-9], [v]), (4.0, [top - 1e-9], [0.0]))
    motion, _ = read_trajectory(given, MODEL, STILL, False)
    assert abs(motion.at(3.0 + 1.0 / 3.0).q[0] - 2.0) < 1e-8
    given = message(NAMES[:1], (3.0, [top + 1e-4], [v]), (4.0, [top + 1e-4], [0.0]))
    with pytest.raises(StateError, match='reaches 2 rad'):
        read_trajectory(given, MODEL, STILL, False)


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_a_polynomial_that_is_too_fast_between_its_points_is_refused(sign):
    # Mean 3, at rest at both ends: a cubic is 1.5 times as fast in its middle.
    model = replace(MODEL, lower=np.full(3, -9.0), upper=np.full(3, 9.0))
    given = message(NAMES[:1], (1.0, [STILL.q[0] + sign * 3.0], [0.0]))
    with pytest.raises(StateError, match=f'moves at {sign * 4.5:.4g} rad/s at 0.5 s, its limit'):
        read_trajectory(given, model, STILL, False)


def test_a_motion_that_needs_more_than_the_effort_limit_is_refused_and_a_slower_one_is_not():
    # One joint about the vertical, without friction: M times the acceleration, of which the
    # largest of 10 x^3 - 15 x^4 + 6 x^5 is 10/sqrt(3).
    arm = with_locked_joints(ARM, dict.fromkeys(ARM.velocity_names[1:], 0.0))
    arm = replace(arm, velocity_limit=np.full(1, 100.0), damping=np.zeros(1), friction=np.zeros(1))
    name, start = arm.velocity_names[0], JointReference(arm, np.zeros(1))
    shortest = np.sqrt(mass_matrix(arm, np.zeros(1))[0, 0] * 10.0 / np.sqrt(3.0)
                       / arm.effort_limit[0])
    read_trajectory(message([name], (1.001 * shortest, [1.0], [0.0], [0.0])), arm, start, False)
    with pytest.raises(StateError, match=f"'{name}' needs .* its limit is 180 N m"):
        read_trajectory(message([name], (0.99 * shortest, [1.0], [0.0], [0.0])), arm, start, False)


def test_a_later_motion_waits_and_an_immediate_one_replaces_the_waiting_ones():
    no_limit = np.full(3, np.inf)
    motions = Following('first', Tolerances(no_limit, no_limit, np.inf, (), ()),
                        lambda sender, state, reason: None)

    def add(now, begin, duration=1.0, name='third'):
        motions.add(now, begin, duration, lambda t: (name, t), None)
    add(10.0, 12.0, 3.0, 'second')
    assert motions.at(11.9) == 'first' and motions.at(12.0) == ('second', 0.0)
    assert motions.left(11.0) == 4.0
    add(11.0, 11.5)
    assert motions.at(11.4) == 'first' and motions.at(99.0) == ('third', 87.5)
    assert motions.left(12.5) == 0.0
    for _ in range(20):
        add(13.0, 15.0)
    for k in range(20):
        add(20.0 + k, 20.0 + k)
    for k in range(8):
        add(50.0, 51.0 + k)
    with pytest.raises(Refused, match='8 motions are already waiting'):
        add(50.0, 59.0)


def test_a_trajectory_of_motors_moves_the_passive_joints_of_closed_loops():
    model = load_quietly(share('urdf', 'palletizer.urdf'))
    own = [model.position_names.index(name) for name in model.velocity_names]
    start = integrate(model, neutral(model), np.array([0.1, -0.2, 0.3, 0.2]), 1.0)
    reference = JointReference(model, start)
    motion, duration = read_trajectory(
        message(['crank', 'shoulder'], (2.0, [0.5, 0.3]), (4.0, [0.1, 0.2])), model, reference,
        False)
    assert np.max(np.abs(motion.at(0.0).q - start)) < ROUNDING
    for t, crank, shoulder in ((2.0, 0.5, 0.3), (duration, 0.1, 0.2)):
        q = motion.at(t).q
        assert np.max(np.abs(q[own] - [start[own[0]], shoulder, start[own[2]], crank])) < ROUNDING
        # In a parallelogram the elbow turns by the difference of crank and lower arm.
        assert abs(q[model.position_names.index('elbow')] - (crank - shoulder)) < 1e-9
    rest, _ = read_trajectory(message(model.velocity_names), model, reference, False)
    assert np.max(np.abs(rest.at(9.0).q - start)) < ROUNDING
    with pytest.raises(StateError, match=r"'crank' reaches 1 rad at 9 s"):
        read_trajectory(message(['crank'], (9.0, [1.0])), model, reference, False)
    with pytest.raises(Refused, match="no joint 'elbow'"):
        read_trajectory(message(['elbow'], (9.0, [0.0])), model, reference, False)
