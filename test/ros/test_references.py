# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Messages that are motions, and messages that are refused."""

from dataclasses import replace

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
import numpy as np
import pytest
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.model.configurations import quaternion_of_matrix
from rbd_ros.ros.references import Motions, read_pose, read_trajectory, Refused, Rest
from robots import random_pose, random_tree
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# Of numbers around 1, by a hundred operations or so.
ROUNDING = 1e-12
MODEL = random_tree(1, 3, kinds=('revolute',))
MODEL = replace(MODEL, lower=np.full(MODEL.nv, -1.0), upper=np.full(MODEL.nv, 2.0),
                velocity_limit=np.full(MODEL.nv, 4.0))
NAMES = list(MODEL.velocity_names)
START = JointReference(MODEL, [0.1, 0.2, 0.3], [0.5, -0.5, 0.25], [1.0, 0.0, -1.0],
                       [3.0, 2.0, 1.0])


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


def test_names_say_what_numbers_are_for_and_a_point_at_zero_is_where_the_reference_is():
    order = [NAMES[2], NAMES[0], NAMES[1]]
    motion, _ = read_trajectory(message(order, (0.0, [0.32, 0.08, 0.2]), (1.0, [0.5, 0.6, 0.7])),
                                MODEL, START, False)
    assert np.max(np.abs(motion.at(0.0).q - START.q)) < ROUNDING
    assert np.max(np.abs(motion.at(0.0).v - START.v)) < ROUNDING
    assert np.max(np.abs(motion.at(1.0).q - [0.6, 0.7, 0.5])) < ROUNDING


def test_efforts_are_for_free_joints_alone_and_begin_where_they_are():
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
    (NAMES[:1], [(9.0, [2.1])], 'beyond the limits of its position at point 1'),
    (NAMES[:1], [(9.0, [0.0]), (18.0, [-1.1])], 'beyond the limits of its position at point 2'),
    (NAMES[:1], [(0.0, [0.16]), (1.0, [0.0])], 'from the present reference'),
    (NAMES[:1], [(0.0, [0.1])], 'only point is at 0 s'),
    (NAMES[:1], [(0.1, [0.6])], 'faster than the limit of its velocity on the way'),
    (NAMES[:1], [(1.0, [0.0]), (1.1, [0.5])], 'faster than the limit of its velocity on the way'),
    (NAMES[:1], [(1.0, [0.0], [4.1]), (2.0, [0.0], [0.0])], 'faster than the limit of its vel'),
    (NAMES[:1], [(1.0, [0.0], [0.1])], 'not at rest')])
def test_what_cannot_be_followed_is_refused_with_the_reason(names, points, why):
    with pytest.raises(Refused, match=why):
        read_trajectory(message(names, *points), MODEL, START, False)


def test_a_pose_is_reached_no_faster_than_allowed():
    rng = np.random.default_rng(0)
    start, goal = random_pose(rng), random_pose(rng)
    one = PoseStamped()
    one.header.frame_id = 'root'
    for name, x in zip('xyz', goal[:3, 3]):
        setattr(one.pose.position, name, float(x))
    for name, x in zip('xyzw', quaternion_of_matrix(goal[:3, :3])):
        setattr(one.pose.orientation, name, float(x))
    motion, duration = read_pose(one, 'root', PoseReference(start), 0.2, 0.5)
    assert np.max(np.abs(motion.at(0.0).T - start)) < ROUNDING
    assert np.max(np.abs(motion.at(duration).T - goal)) < ROUNDING
    V = np.array([motion.at(t).V for t in np.linspace(0.0, duration, 201)])
    speeds = np.max(np.linalg.norm(V[:, :3], axis=1)), np.max(np.linalg.norm(V[:, 3:], axis=1))
    # One of the two limits is reached.
    assert speeds[0] <= 0.5 + 1e-9 and speeds[1] <= 0.2 + 1e-9
    assert max(speeds[0] / 0.5, speeds[1] / 0.2) > 0.999
    for spoil in ('frame', 'norm', 'number'):
        bad = PoseStamped(header=one.header, pose=one.pose)
        with pytest.raises(Refused, match={'frame': "not 'other'"}.get(spoil, 'no pose')):
            if spoil == 'norm':
                bad.pose.orientation.w += 0.1
            elif spoil == 'number':
                bad.pose.orientation.w -= 0.1
                bad.pose.position.x = np.nan
            read_pose(bad, 'other' if spoil == 'frame' else 'root', PoseReference(start), 0.2, 0.5)


def test_a_motion_of_later_waits_and_one_of_now_is_in_place_of_those_that_wait():
    rests = [Rest(JointReference(MODEL, np.full(3, 0.1 * k))) for k in range(4)]
    motions = Motions(rests[0].reference)
    motions.add(10.0, 12.0, 3.0, rests[1])
    assert motions.at(11.9) is rests[0].reference
    assert motions.at(12.0) is rests[1].reference
    assert motions.left(11.0) == 4.0
    motions.add(11.0, 11.5, 1.0, rests[2])
    assert motions.at(11.4) is rests[0].reference
    assert motions.at(99.0) is rests[2].reference
    assert motions.left(12.5) == 0.0
    for _ in range(20):
        motions.add(13.0, 15.0, 1.0, rests[3])
    for k in range(20):
        motions.add(20.0 + k, 20.0 + k, 1.0, rests[3])
    with pytest.raises(Refused, match='motions wait'):
        for k in range(20):
            motions.add(50.0, 51.0 + k, 1.0, rests[3])
