# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller is told at the beginning, at jumps, without states and at the end; no ROS."""

from command_watch import Settings
import numpy as np
import pytest
from rbd_ros.ros.commands.effort_commands import EffortCommands

# Sums of a few numbers near 10 N m.
ROUNDING = 1e-12
JOINTS = ('a', 'b')
EFFORTS = np.array([4.0, -8.0])
FREE = np.full(2, np.inf)
# As in doc/how_to/feed_a_controller.md and the docstring of the class, s: the shortest blend and
# ramp, the longest step at a time, and the pause after which a subscriber counts as new.
SMOOTH, LONGEST_STEP, FORGOTTEN = 0.25, 0.02, 1.0
PERIOD = 0.01


def commands(limits=FREE):
    """Return the commands of a robot with two joints."""
    result = EffortCommands(Settings())
    result.set_joints(JOINTS, limits)
    result.begin()
    return result


def near(got, expected):
    """Return whether commands are what they should be."""
    return got is not None and np.max(np.abs(got - expected)) < ROUNDING


def update(one, efforts, now, settings):
    """Return what is commanded for efforts under settings."""
    one.configure(settings)
    return one.update(efforts, now)


def repeat(one, now, settings, **options):
    """Return what is commanded without efforts under settings."""
    one.configure(settings)
    return one.repeat(now, **options)


def stream(one, efforts, begin, duration, settings):
    """Have the same efforts commanded 100 times a second; return times and commands."""
    times = begin + PERIOD * np.arange(round(duration / PERIOD) + 1)
    return times, np.array([update(one, efforts, now, settings).copy() for now in times])


def silence(one, begin, duration, settings):
    """Ask 100 times a second what to command without states; return times and commands."""
    times = begin + PERIOD * np.arange(round(duration / PERIOD) + 1)
    got = []
    for now in times:
        command = repeat(one, now, settings)
        got.append(None if command is None else command.copy())
    return times, got


def largest_step(got):
    """Return the largest change from one command to the next, as a share of EFFORTS."""
    return np.max(np.abs(np.diff(got, axis=0) / EFFORTS), initial=0.0)


@pytest.mark.parametrize('settings, seconds', [
    (Settings(), 0.0), (Settings(blend_time=2.0), 2.0),
    # 8 N m at 10 N m/s; and 5 N m, which is all that limits leave of them
    (Settings(effort_rate_limit=10.0), 0.8),
    (Settings(effort_rate_limit=10.0, limit_efforts=True), 0.5)])
def test_commands_are_complete_when_the_blend_and_the_rate_limit_are_over(settings, seconds):
    one = commands(np.array([5.0, 5.0]))
    assert not one.complete
    for k in range(300):
        update(one, EFFORTS, PERIOD * k, settings)
        # The step at that time may fall on either side.
        if abs(PERIOD * k - seconds) > 0.5 * PERIOD or not seconds:
            assert one.complete == (PERIOD * k >= seconds), k
    # Other blends do not take it back, another controller does.
    one.disturb()
    update(one, EFFORTS, 3.0, settings)
    assert one.complete
    one.note_no_subscriber(3.0)
    update(one, EFFORTS, 3.0 + FORGOTTEN + PERIOD, Settings(blend_time=2.0))
    assert not one.complete


def test_fault_49_efforts_beyond_the_limits_are_named_and_clamped_if_so_wanted():
    one = commands(np.array([5.0, 5.0]))
    assert near(update(one, EFFORTS, 0.0, Settings()), EFFORTS)
    assert one.beyond_limits() == ['b']
    assert one.beyond_limits() == []
    assert near(update(one, EFFORTS, 0.01, Settings(limit_efforts=True)), [4.0, -5.0])
    assert one.beyond_limits() == ['b']


@pytest.mark.parametrize('extra', [{}, {'effort_rate_limit': 1.0}, {'blend_time': 5.0}])
def test_fault_49_limits_apply_after_blends_and_rate_limits(extra):
    one = commands()
    stream(one, EFFORTS, 0.0, 20.0, Settings(**extra))
    # Those of another robot are lower: at once.
    one.set_joints(JOINTS, np.array([1.0, 2.0]))
    _, got = stream(one, 3.0 * EFFORTS, 20.01, 1.0, Settings(limit_efforts=True, **extra))
    assert np.all(np.abs(got) <= [1.0, 2.0])
    for policy in ('hold', 'ramp_down'):
        one.set_joints(JOINTS, np.array([0.5, 0.25]))
        _, got = silence(one, 23.0, 2.0, Settings(policy, limit_efforts=True, **extra))
        assert all(np.all(np.abs(command) <= [0.5, 0.25]) for command in got)


def test_fault_20_commands_go_smoothly_to_those_of_a_robot_that_has_changed():
    one, settings = commands(), Settings()
    stream(one, EFFORTS, 0.0, 1.0, settings)
    one.set_joints(JOINTS, FREE)
    times, got = stream(one, 2.0 * EFFORTS, 1.0 + PERIOD, 1.0, settings)
    shares = np.minimum((times - times[0]) / SMOOTH, 1.0)
    assert np.max(np.abs(got - (1.0 + shares[:, None]) * EFFORTS)) < ROUNDING


def test_fault_51_the_order_stays_while_the_joints_are_the_same():
    one, settings = commands(), Settings()
    assert one.joints == JOINTS
    # Before there were commands, too.
    one.set_joints(('b', 'a'), np.array([1.0, 2.0]))
    assert one.joints == JOINTS
    stream(one, EFFORTS, 0.0, 1.0, settings)
    one.set_joints(('b', 'a'), np.array([1.0, 2.0]))
    assert (one.joints, one.enabled, one.mismatch) == (JOINTS, True, '')
    # The limits are those of the joints, wherever they stand.
    got = update(one, EFFORTS, 1.01, Settings(limit_efforts=True))
    assert np.array_equal(np.abs(got), [2.0, 1.0])


@pytest.mark.parametrize('joints', [('a', 'c'), ('a',), ('a', 'b', 'c')])
@pytest.mark.parametrize('policy', ['stop', 'hold', 'ramp_down'])
def test_fault_51_other_joints_end_the_commands_until_they_are_enabled(joints, policy):
    one, settings = commands(), Settings(on_stale=policy)
    stream(one, EFFORTS, 0.0, 1.0, settings)
    one.set_joints(joints, np.full(len(joints), np.inf))
    assert not one.enabled
    assert ', '.join(joints) in one.mismatch
    assert 'a, b' in one.mismatch
    # What is said meanwhile is for the joints that were there before.
    times, got = silence(one, 1.01, 2.0, settings)
    assert one.joints == JOINTS
    if policy != 'ramp_down':
        assert set(map(type, got)) == {type(None)}
    else:
        said = np.array([command for command in got if command is not None])
        assert largest_step([EFFORTS, *said]) < 1.01 * PERIOD / settings.ramp_time
        assert not said[-1].any()
    # Even if the first joints come back: somebody has to look.
    one.set_joints(JOINTS, FREE)
    assert not one.enabled
    one.set_joints(joints, np.full(len(joints), np.inf))
    assert f'the robot now has the joints {", ".join(joints)}, ' in one.mismatch
    one.begin()
    assert not one.enabled
    one.enable()
    assert (one.joints, one.enabled, one.mismatch) == (joints, True, '')
    # Each joint goes on where it was, those that are new from zero.
    last = 0.0 if policy == 'ramp_down' else 1.0
    start = np.array([last * dict(zip(JOINTS, EFFORTS)).get(name, 0.0) for name in joints])
    goal = np.full(len(joints), 10.0)
    times, got = stream(one, goal, times[-1] + PERIOD, 1.0, settings)
    shares = np.minimum((times - times[0]) / SMOOTH, 1.0)[:, None]
    assert np.max(np.abs(got - (1.0 - shares) * start - shares * goal)) < ROUNDING


def test_fault_51_other_joints_are_taken_over_while_nothing_was_commanded():
    one = commands()
    one.set_joints(('c', 'd', 'e'), np.full(3, np.inf))
    assert (one.joints, one.enabled) == (('c', 'd', 'e'), True)
    assert near(update(one, np.ones(3), 0.0, Settings()), np.ones(3))


@pytest.mark.parametrize('period', [0.001, 0.01, 0.2])
def test_a_change_at_every_state_does_not_keep_commands_where_they_are(period):
    one, settings = commands(), Settings()
    update(one, EFFORTS, 0.0, settings)
    got = [EFFORTS]
    for k in range(1, max(60, round(3.0 / period))):
        one.disturb()
        got.append(update(one, 3.0 * EFFORTS, period * k, settings).copy())
    assert near(got[1], EFFORTS)
    assert np.max(np.abs(got[-1] - 3.0 * EFFORTS)) < 0.01
    # No faster than a blend that begins now, at any of them.
    assert largest_step(got) <= 2.0 * min(max(period, LONGEST_STEP) / SMOOTH, 0.2) + ROUNDING


@pytest.mark.parametrize('policy', ['stop', 'hold', 'ramp_down'])
@pytest.mark.parametrize('pause', [0.15, 0.49, 0.51, 2.0, 1000.0])
def test_fault_52_after_a_gap_commands_blend_whether_timer_or_state_notices_it(policy, pause):
    settings = Settings(on_stale=policy)
    for timer_first in (True, False):
        one = commands()
        stream(one, EFFORTS, 0.0, 1.0, settings)
        got = [EFFORTS]
        if timer_first:
            command = repeat(one, 1.0 + pause, settings)
            got += [] if command is None else [command.copy()]
        _, more = stream(one, 3.0 * EFFORTS, 1.0 + pause, 1.0, settings)
        assert largest_step([*got, *more]) < 2.02 * PERIOD / SMOOTH
        assert near(more[-1], 3.0 * EFFORTS)


def test_fault_52_a_low_rate_of_publishing_is_no_gap():
    # Of one command a second, ~/effort_commands are not stale after half a second.
    one, settings = commands(), Settings(on_stale='ramp_down', publish_rate=1.0)
    for k in range(12):
        got = update(one, (1.0 + 0.1 * k) * EFFORTS, float(k), settings)
        if k > 8:
            assert near(got, (1.0 + 0.1 * k) * EFFORTS)
        for part in (0.3, 0.6, 0.9):
            assert repeat(one, k + part, settings, states_come=True) is None
    # But they are when states stop.
    assert repeat(one, 11.6, settings, states_come=False) is not None


def test_fault_13_hold_repeats_the_last_command_until_states_come():
    one, settings = commands(), Settings(on_stale='hold')
    assert repeat(one, 0.0, settings) is None
    update(one, EFFORTS, 0.0, settings)
    assert repeat(one, 0.4, settings) is None
    for now in (0.6, 5.0, 500.0):
        assert near(repeat(one, now, settings), EFFORTS)
    times, got = stream(one, 3.0 * EFFORTS, 600.0, 1.0, settings)
    shares = np.minimum((times - 600.0) / SMOOTH, 1.0)
    assert np.max(np.abs(got - (1.0 + 2.0 * shares[:, None]) * EFFORTS)) < ROUNDING


def test_no_state_is_late_while_the_node_answers_one():
    one, settings = commands(), Settings(on_stale='ramp_down')
    for now in (0.0, 3.0):
        update(one, EFFORTS, now, settings)
        one.note_duration(2.0)
        assert repeat(one, now + 2.4, settings) is None
    update(one, EFFORTS, 5.5, settings)
    assert repeat(one, 5.9, settings) is None
    assert repeat(one, 6.1, settings) is not None


@pytest.mark.parametrize('ramp_time', [0.0, 2.0])
def test_fault_13_ramp_down_goes_straight_to_zero_and_stays_there(ramp_time):
    one, settings = commands(), Settings(on_stale='ramp_down', ramp_time=ramp_time)
    update(one, EFFORTS, 0.0, settings)
    assert repeat(one, 0.4, settings) is None
    for begin in (0.6, 200.6):
        times, got = silence(one, begin, 3.0, settings)
        shares = np.maximum(1.0 - (times - begin) / max(ramp_time, SMOOTH), 0.0)
        assert np.max(np.abs(got - shares[:, None] * EFFORTS)) < ROUNDING
        # States come again: from zero; and the next ramp is another one.
        _, got = stream(one, EFFORTS, begin + 60.0, 40.0, settings)
        assert not got[0].any()
        assert largest_step(got) < 1.01 * PERIOD / SMOOTH
        assert near(got[-1], EFFORTS)


@pytest.mark.parametrize('on_stale', ['stop', 'hold', 'ramp_down'])
def test_fault_46_at_the_end_commands_follow_on_stale(on_stale):
    one, settings = commands(), Settings(on_stale=on_stale, ramp_time=0.5)
    stream(one, EFFORTS, 0.0, 1.0, settings)
    one.end()
    times, got = silence(one, 1.01, 2.0, settings)
    said = [command for command in got if command is not None]
    if on_stale != 'ramp_down':
        assert not said
    else:
        # All is said: at zero nothing more.
        assert len(said) == round(0.5 / PERIOD) + 1
        shares = np.linspace(1.0, 0.0, len(said))
        assert np.max(np.abs(said - shares[:, None] * EFFORTS)) < ROUNDING
    one.begin()
    start = said[-1] if said else EFFORTS
    times, got = stream(one, EFFORTS, 4.0, 1.0, settings)
    shares = np.minimum((times - 4.0) / SMOOTH, 1.0)[:, None]
    assert np.max(np.abs(got - (1.0 - shares) * start - shares * EFFORTS)) < ROUNDING


@pytest.mark.parametrize('policy', ['stop', 'hold', 'ramp_down'])
def test_commands_to_a_new_controller_start_from_zero_but_not_after_a_short_loss(policy):
    settings = Settings(on_stale=policy, blend_time=0.5)
    one = commands()
    stream(one, EFFORTS, 0.0, 1.0, settings)
    one.note_no_subscriber(1.01)
    one.note_no_subscriber(1.5)
    _, got = stream(one, EFFORTS, 1.01 + 0.9 * FORGOTTEN, 1.0, settings)
    assert np.max(np.abs(got - EFFORTS)) < ROUNDING
    one.note_no_subscriber(4.0)
    one.note_no_subscriber(9.0)
    assert repeat(one, 9.0, settings) is None
    _, got = stream(one, EFFORTS, 9.1, 1.0, settings)
    assert not got[0].any()
    assert largest_step(got) < 1.01 * PERIOD / 0.5


def test_starts_blend_is_true_at_the_first_command_and_after_a_gap():
    one = EffortCommands(Settings(state_timeout=60.0))
    one.set_joints(['a'], [np.inf])
    assert one.starts_blend(0.0)
    for k in range(8):
        one.update(np.ones(1), 0.5 * k)
    # States come slowly: neither is a gap.
    assert not one.starts_blend(4.0)
    assert not one.starts_blend(5.5)
    assert one.starts_blend(6.5)
    one.note_no_subscriber(3.6)
    assert not one.starts_blend(4.5)
    assert one.starts_blend(4.7)
    one.update(np.ones(1), 4.5)
    one.disturb()
    assert one.starts_blend(4.6)


@pytest.mark.parametrize('settings', [
    Settings(blend_time=0.5), Settings(effort_rate_limit=20.0)])
def test_commands_that_must_start_at_measured_efforts_need_efforts_within_the_limits(settings):
    one = commands(np.array([10.0, 10.0]))
    assert not one.why_not_start(np.array([np.nan, 1e4]))
    one.configure(settings)
    assert not one.why_not_start(np.array([10.0, -11.0]))
    assert 'the efforts of b at which commands must' in one.why_not_start(np.array([0.0, np.nan]))
    assert 'far beyond the limits of a: check' in one.why_not_start(np.array([-13.0, 0.0]))
    start = np.array([3.0, -2.0])
    assert near(one.update(EFFORTS, 0.0, start=start), start)


def test_a_guard_acts_once_on_blended_commands():
    one = commands()
    one.update(EFFORTS, 1.0)
    one.disturb()
    goal, brake = np.array([14.0, 2.0]), np.array([-3.0, 0.0])
    for k in range(1, 41):
        got = one.update(goal, 1.0 + PERIOD * k, lambda tau: tau + brake)
        share = min((k - 1) * PERIOD / SMOOTH, 1.0)
        # What the guard takes off is not taken off twice, nor does the blend go on from there.
        assert near(got, EFFORTS + share * (goal - EFFORTS) + brake)
    # Where it ends, the command is what was computed; a blend begins at the command itself.
    one.disturb()
    before = got.copy()
    assert near(one.update(goal, 1.0 + PERIOD * 41, lambda tau: tau), before)


def test_a_guard_respects_the_rate_limit():
    one, rate = commands(), 100.0
    one.update(EFFORTS, 1.0)
    one.configure(Settings(effort_rate_limit=rate))
    got = [one.update(EFFORTS, 1.0 + PERIOD * k, lambda tau: 0.0 * tau).copy()
           for k in range(1, 21)]
    assert np.max(np.abs(np.diff([EFFORTS, *got], axis=0))) <= rate * PERIOD + ROUNDING
    assert near(got[-1], np.zeros(2))


@pytest.mark.parametrize('taken', [0.0, 0.1, 3.0])
def test_commands_do_not_rise_in_a_blend_under_a_rate_limit_while_efforts_fall(taken):
    one, k = commands(), 0
    one.update(np.zeros(2), 1.0)
    one.configure(Settings(effort_rate_limit=10.0))
    one.disturb()
    # The blend goes on to 100 N m much faster than the rate limit; then efforts are zero.
    for efforts, steps in ((np.full(2, 100.0), 10), (np.zeros(2), 20)):
        got = []
        for _ in range(steps):
            k += 1
            got.append(one.update(efforts, 1.0 + PERIOD * k, lambda tau: tau - taken).copy())
    assert np.max(np.diff(got, axis=0)) < ROUNDING


def test_commands_are_complete_while_a_guard_acts_and_limits_come_after_it():
    one = commands(limits=np.array([5.0, 5.0]))
    one.configure(Settings(limit_efforts=True))
    got = one.update(EFFORTS, 1.0, lambda tau: 10.0 * tau)
    assert one.complete and near(got, np.array([5.0, -5.0]))


def test_a_subscriber_that_returns_while_commands_are_disabled_is_the_same():
    one, settings = commands(), Settings(blend_time=1.0)
    for t in np.arange(1.0, 4.0, PERIOD):
        last = update(one, EFFORTS, t, settings).copy()
    one.disable()
    one.note_no_subscriber(4.0)
    one.note_subscriber(4.3)
    one.enable()
    assert near(update(one, 0.1 * EFFORTS, 9.0, settings), last)


def test_commands_are_held_while_a_clock_stands_still_after_a_jump_back():
    # Such jumps cannot be represented exactly.
    for earlier in np.random.default_rng(0).uniform(0.5, 30.0, 50):
        one, settings = commands(), Settings(on_stale='hold')
        for k in range(60):
            update(one, EFFORTS, 1000.0 + 0.01 * k, settings)
        for now in (1001.3, earlier, earlier):
            assert near(repeat(one, now, settings), EFFORTS)
