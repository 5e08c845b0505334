# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of acceleration, deceleration and jerk, from the URDF to planned motions."""

import json

import numpy as np
import pytest
import rbd_ros
from rbd_ros import load_urdf_string, StateError
from rbd_ros.cli.main import main
from rbd_ros.identification import excitation_limits, excite
from rbd_ros.motions.limits import slowdown
from rbd_ros.motions.trajectories import JointTrajectory
from rbd_ros.motions.trajectory_efforts import trajectory_efforts
from urdf_texts import changed

# Rounding of closed forms, and the tolerance of bisection.
ROUNDING, BISECTION = 1e-12, 1e-5


def arm(**limits):
    """Return an arm of one joint with wide limits of everything but these."""
    given = {'lower': -9, 'upper': 9, 'effort': 900, 'velocity': 99} | limits
    return load_urdf_string(changed(('lower="-1" upper="1" effort="9" velocity="2"',
                                     ' '.join(f'{name}="{x}"' for name, x in given.items()))))


def test_missing_rate_limits_are_infinite():
    model = arm(acceleration=5, jerk=70)
    assert (model.acceleration_limit, model.deceleration_limit, model.jerk_limit) == (5, 5, 70)
    assert arm(deceleration=6).acceleration_limit == arm().jerk_limit == np.inf


def test_limits_are_those_of_the_joints_that_move_in_the_order_of_velocities():
    builder = rbd_ros.ModelBuilder('r').link('a').link('b', mass=1.0).link('c', mass=1.0).link('d')
    model = (builder.joint('j', 'planar', 'a', 'b', acceleration=[1.0, 2.0, 3.0], jerk=9.0)
             .joint('k', 'revolute', 'b', 'c', deceleration=4.0)
             .joint('l', 'revolute', 'c', 'd', acceleration=5.0, mimic=('k',)).build())
    assert model.acceleration_limit.tolist() == [1.0, 2.0, 3.0, np.inf]
    assert model.deceleration_limit.tolist() == [np.inf, np.inf, np.inf, 4.0]
    assert model.jerk_limit.tolist() == [9.0, 9.0, 9.0, np.inf]
    locked = rbd_ros.with_locked_joints(model, {'j': np.zeros(3)})
    assert (locked.acceleration_limit, locked.deceleration_limit) == (np.inf, 4.0)
    assert rbd_ros.with_floating_base(model).jerk_limit.tolist() == [np.inf] * 6 + [9.0] * 3 + [
        np.inf]


# -- Efforts along a trajectory. ------------------------------------------------------------------

@pytest.mark.parametrize('limits, factor', [
    ({}, 1.0), ({'velocity': 2.0}, 1.0), ({'acceleration': 4.0}, 1.0),
    ({'acceleration': 0.25}, 4.0), ({'deceleration': 0.25}, 2.0),
    ({'acceleration': 4.0, 'deceleration': 0.25}, 2.0), ({'jerk': 8.0 / 27.0}, 3.0),
    ({'jerk': 8.0 / 27.0, 'acceleration': 0.04}, 10.0)])
def test_time_scale_follows_each_rate_limit(limits, factor):
    # Accelerations of 4 and -1 rad/s^2: with times c, 1/c^2 of them. Jerks of at most 8 rad/s^3.
    time, v, a = np.array([0.0, 1.0, 2.0, 3.0]), *np.array(
        [[0.0, 1.0, 1.0, 0.0], [4.0, 4.0, -1.0, -1.0]])[..., None]
    a[0], a[2:], time[1:] = 4.0, -1.0, [1.0, 1.625, 3.0]
    found = trajectory_efforts(arm(**limits), time, v, v, a)
    assert found.time_scale == pytest.approx(factor, abs=BISECTION)
    assert slowdown(arm(**limits), time, v, a) == pytest.approx([factor], abs=ROUNDING)


def test_torques_of_the_command_line_name_the_joint_that_is_too_fast(tmp_path, capsys):
    (tmp_path / 'r.urdf').write_text(changed(
        ('effort="9" velocity="2"', 'effort="99" velocity="2" acceleration="1"')))
    (tmp_path / 't.csv').write_text('time,j/position,j/velocity,j/acceleration\n'
                                    '0,0,0,4\n1,0.1,0,0\n')
    assert main(['torques', str(tmp_path / 'r.urdf'), str(tmp_path / 't.csv')]) == 2
    output = capsys.readouterr()
    assert 'its acceleration or jerk is beyond the limit!' in output.out
    assert 'multiply all times by 2,' in output.err
    assert main(['torques', str(tmp_path / 'r.urdf'), '--a', '4']) == 0
    assert "'j': the acceleration is 4 rad/s^2, its limit is 1" in capsys.readouterr().err


def test_check_shows_the_limits_as_text_and_as_json(tmp_path, capsys):
    path = tmp_path / 'r.urdf'
    path.write_text(changed(('velocity="2"', 'velocity="2" acceleration="5" deceleration="6"')))
    assert main(['check', str(path)]) == 0
    text = capsys.readouterr().out
    assert 'acceleration 5 rad/s^2, deceleration 6 rad/s^2\n' in text
    assert main(['check', '--json', str(path)]) == 0
    joint = json.loads(capsys.readouterr().out)['coordinates'][0]
    assert (joint['acceleration_limit'], joint['deceleration_limit'], joint['jerk_limit']) == (
        5.0, 6.0, None)


# -- References. ----------------------------------------------------------------------------------

def refused(model, *points):
    """Return why the motion through points is refused, '' if it is accepted."""
    try:
        JointTrajectory(model, *points).check_limits()
    except StateError as error:
        return str(error)
    return ''


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_motions_that_become_faster_or_slower_beyond_a_limit_are_refused(sign):
    # From rest, to 2 rad/s after 1 s, and to rest after 2 more: cubics q = t^2 and its mirror,
    # half as fast, with 2 and -1 rad/s^2.
    points = [0.0, 1.0, 3.0], sign * np.array([[0.0], [1.0], [3.0]]), sign * np.array(
        [[0.0], [2.0], [0.0]])
    assert not refused(arm(acceleration=2.0, deceleration=1.0), *points)
    text = refused(arm(acceleration=1.99, deceleration=9.0), *points)
    assert "'j' accelerates at 2 rad/s^2" in text and 'its limit is 1.99 rad/s^2' in text
    text = refused(arm(acceleration=9.0, deceleration=0.99), *points)
    assert "'j' decelerates at 1 rad/s^2" in text and 'its limit is 0.99 rad/s^2' in text


def test_accelerations_between_points_are_found_where_they_are_largest():
    # A quintic from rest to rest, 1 rad in 1 s, has 10/sqrt(3) rad/s^2 at (3 -+ sqrt(3))/6 s, the
    # second of which brakes, and 60 rad/s^3 at its ends.
    still, peak = np.zeros((2, 1)), 10.0 / 3.0 ** 0.5
    points = [0.0, 1.0], [[0.0], [1.0]], still, still
    assert not refused(arm(acceleration=1.001 * peak), *points)
    assert 'at 0.2113 s' in refused(arm(acceleration=0.999 * peak, deceleration=9.0), *points)
    assert 'at 0.7887 s' in refused(arm(acceleration=9.0, deceleration=0.999 * peak), *points)
    assert not refused(arm(jerk=60.01), *points)
    assert "'j' has a jerk of 60 rad/s^3" in refused(arm(jerk=59.9), *points)


def test_accelerations_are_those_on_both_sides_of_a_point_and_of_a_turn():
    # A cubic from rest to rest, 1 rad in 1 s: from 6 to -6 rad/s^2; then it rests.
    still = np.zeros((3, 1))
    points = [0.0, 1.0, 2.0], [[0.0], [1.0], [1.0]], still
    assert not refused(arm(acceleration=6.01, deceleration=6.01), *points)
    text = refused(arm(acceleration=9.0, deceleration=5.9), *points)
    assert "'j' decelerates at 6 rad/s^2 at 1 s" in text
    # q = t^2 - t turns after 0.5 s: 2 rad/s^2 are a deceleration before, an acceleration after.
    points = [0.0, 1.0], [[0.0], [0.0]], [[-1.0], [1.0]]
    assert 'decelerates at 2' in refused(arm(acceleration=9.0, deceleration=1.9), *points)
    assert 'accelerates at 2' in refused(arm(acceleration=1.9, deceleration=9.0), *points)
    assert not refused(arm(acceleration=2.0, deceleration=2.0), *points)


def test_jerks_are_those_on_both_sides_of_a_point():
    # q = t^5 for 1 s, whose jerk is 60 t^2, then with less jerk over 100 rad to rest.
    points = [0.0, 1.0, 11.0], [[0.0], [1.0], [101.0]], [[0.0], [5.0], [0.0]], [[0.0], [20.0],
                                                                                [0.0]]
    assert not refused(arm(upper=999, jerk=60.01), *points)
    assert 'jerk of 60 rad/s^3 at 1 s' in refused(arm(upper=999, jerk=59.0), *points)


def test_jumps_of_the_acceleration_are_no_jerks_and_limits_of_zero_are_no_limits():
    points = [0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]]
    assert not refused(arm(jerk=1.0), *points)
    still = np.zeros((3, 1))
    assert not refused(arm(acceleration=0.0, deceleration=0.0, jerk=0.0), *points, still, still)


# -- Excitation. ----------------------------------------------------------------------------------

def test_excitation_uses_the_limits_of_the_robot():
    assert excitation_limits(arm(acceleration=5, deceleration=3), share=1.0).acceleration == 3.0
    assert excitation_limits(arm(deceleration=7), share=0.5).acceleration == 3.5
    assert excitation_limits(arm(acceleration=5), acceleration=[8.0], share=1.0).acceleration == 8
    assert excitation_limits(arm(), share=1.0).acceleration == 99.0 / 0.5
    assert excitation_limits(arm(jerk=8), share=0.5).jerk == 4.0
    assert excitation_limits(arm(jerk=8), share=1.0).reduced(0.25).jerk == 2.0
    # 0 is not stated.
    assert excitation_limits(arm(jerk=0.0)).jerk == excitation_limits(arm()).jerk > 0.0
    with pytest.raises(StateError, match="of 'j' must be positive and finite, got 0"):
        excitation_limits(arm(), acceleration=[0.0])


def test_excitation_keeps_to_the_jerk_and_uses_a_good_part_of_it():
    model = arm(acceleration=50, jerk=20)
    motion = excite(model, excitation_limits(model, share=1.0), duration=10.0, harmonics=4,
                    steps=40).motion
    time = np.linspace(0.0, 10.0, 20001)
    jerk = np.gradient(motion.at(time)[2], time, axis=0)
    # Differences over 1 ms, of motions below 0.4 Hz: 1e-6.
    assert 5.0 < np.max(np.abs(jerk)) < 20.0 * (1.0 + 1e-5)
