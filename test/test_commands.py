# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller is told at the beginning, at jumps, without states and at the end; no ROS."""

from dataclasses import dataclass

import numpy as np
import pytest
from rbd_ros.ros.commands import Commands, LONGEST_STEP, SMOOTH
from rbd_ros.ros.velocities import Differentiator

# Sums of a few numbers near 10 N m.
ROUNDING = 1e-12
JOINTS = ('a', 'b')
EFFORTS = np.array([4.0, -8.0])
FREE = np.full(2, np.inf)


@dataclass
class Settings:
    """The parameters that matter here, with their defaults."""

    on_stale: str = 'stop'
    state_timeout: float = 0.5
    ramp_time: float = 1.0
    blend_time: float = 0.0
    effort_rate_limit: float = 0.0
    limit_efforts: bool = False


def commands(limits=FREE):
    """Return the commands of a robot with two joints."""
    result = Commands()
    result.follow(JOINTS, limits)
    result.begin()
    return result


def near(got, expected):
    """Return whether commands are what they should be."""
    return got is not None and np.max(np.abs(got - expected)) < ROUNDING


def test_by_default_efforts_are_commanded_as_they_are():
    one, settings = commands(np.array([3.0, 3.0])), Settings()
    for k in range(5):
        assert np.array_equal(one.update(k * EFFORTS, 0.001 * k, settings), k * EFFORTS)


def test_the_first_command_is_blended_in_from_zero():
    one, settings = commands(), Settings(blend_time=2.0)
    for now, share in ((10.0, 0.0), (10.5, 0.25), (11.0, 0.5), (12.0, 1.0), (13.0, 1.0)):
        assert near(one.update(EFFORTS, now, settings), share * EFFORTS)


def test_the_rate_limit_holds_from_zero_and_at_every_step():
    one, settings = commands(), Settings(effort_rate_limit=10.0)
    last = np.zeros(2)
    for k in range(200):
        target = EFFORTS if k < 150 else -EFFORTS
        got = one.update(target, 0.01 * k, settings).copy()
        step = LONGEST_STEP if k == 0 else 0.01
        assert np.all(np.abs(got - last) <= 10.0 * step + ROUNDING)
        last = got
        if k == 149:
            assert near(got, EFFORTS)
    # After a long pause the step is that of a short one.
    got = one.update(10.0 * EFFORTS, 100.0, settings)
    assert np.all(np.abs(got - last) <= 10.0 * LONGEST_STEP + ROUNDING)


def test_fault_49_efforts_beyond_the_limits_are_named_and_clamped_if_so_wanted():
    one = commands(np.array([5.0, 5.0]))
    assert near(one.update(EFFORTS, 0.0, Settings()), EFFORTS)
    assert one.beyond_limits() == ['b']
    assert one.beyond_limits() == []
    assert near(one.update(EFFORTS, 0.1, Settings(limit_efforts=True)), [4.0, -5.0])
    assert one.beyond_limits() == ['b']


def test_fault_20_commands_go_smoothly_to_those_of_a_robot_that_has_changed():
    one, settings = commands(), Settings()
    one.update(EFFORTS, 0.0, settings)
    one.follow(JOINTS, FREE)
    for share in (0.0, 0.5, 1.0):
        expected = (1.0 + share) * EFFORTS
        assert near(one.update(2.0 * EFFORTS, 1.0 + share * SMOOTH, settings), expected)
    # Other joints were not commanded yet: from zero.
    one.follow(('c', 'd', 'e'), np.full(3, np.inf))
    assert one.repeat(9.0, Settings(on_stale='hold')) is None
    assert near(one.update(np.ones(3), 2.0, settings), np.zeros(3))
    assert near(one.update(np.ones(3), 2.0 + SMOOTH, settings), np.ones(3))


def test_fault_13_stop_says_nothing_more():
    one, settings = commands(), Settings()
    one.update(EFFORTS, 0.0, settings)
    assert one.repeat(100.0, settings) is None


def test_fault_13_hold_repeats_the_last_command_until_states_come():
    one, settings = commands(), Settings(on_stale='hold')
    assert one.repeat(0.0, settings) is None
    one.update(EFFORTS, 0.0, settings)
    assert one.repeat(0.4, settings) is None
    for now in (0.6, 5.0, 500.0):
        assert near(one.repeat(now, settings), EFFORTS)
    assert near(one.update(3.0 * EFFORTS, 600.0, settings), EFFORTS)
    assert near(one.update(3.0 * EFFORTS, 600.0 + SMOOTH, settings), 3.0 * EFFORTS)


def test_fault_13_ramp_down_goes_straight_to_zero_and_stays_there():
    one, settings = commands(), Settings(on_stale='ramp_down', ramp_time=2.0)
    one.update(EFFORTS, 0.0, settings)
    for now, share in ((0.6, 1.0), (1.1, 0.75), (2.6, 0.0), (50.0, 0.0)):
        assert near(one.repeat(now, settings), share * EFFORTS)
    assert near(one.update(EFFORTS, 60.0, settings), np.zeros(2))
    assert near(one.update(EFFORTS, 60.0 + 0.5 * SMOOTH, settings), 0.5 * EFFORTS)
    assert near(one.update(EFFORTS, 61.0, settings), EFFORTS)
    # The next ramp is another one.
    assert near(one.repeat(62.0, settings), EFFORTS)


@pytest.mark.parametrize('on_stale, expected', [
    ('stop', []), ('hold', []), ('ramp_down', [1.0, 0.5, 0.0])])
def test_fault_46_the_end_is_what_on_stale_says(on_stale, expected):
    one, settings = commands(), Settings(on_stale=on_stale)
    one.update(EFFORTS, 0.0, settings)
    one.end()
    got = []
    for now in (0.01, 0.51, 1.01, 1.02, 1.03):
        command = one.repeat(now, settings)
        if command is not None:
            got.append(command.copy())
    assert len(got) == len(expected)
    for command, share in zip(got, expected):
        assert near(command, share * EFFORTS)
    one.begin()
    start = got[-1] if got else EFFORTS
    assert near(one.update(EFFORTS, 2.0, settings), start)
    assert near(one.update(EFFORTS, 2.0 + SMOOTH, settings), EFFORTS)


def test_commands_that_nobody_heard_are_not_repeated():
    one, settings = commands(), Settings(on_stale='hold')
    one.update(EFFORTS, 0.0, settings)
    one.forget()
    assert one.repeat(10.0, settings) is None
    assert near(one.update(EFFORTS, 11.0, settings), EFFORTS)


def test_positions_are_differentiated_with_a_filter():
    one = Differentiator([False, True])
    both, last = np.arange(2), 0.0
    for k in range(400):
        t = 0.001 * k
        # The second joint turns on through full turns, and its position leaps.
        angle = 3.0 + 2.0 * t
        leaping = (angle + np.pi) % (2.0 * np.pi) - np.pi
        one.update(both, np.array([np.sin(t), leaping]), t, 0.01, 0.5)
        if k == 0:
            assert np.all(np.isnan(one.rates))
        last = t
    # The filter lags by its time constant, of a sine that is hardly curved.
    assert abs(one.rates[0] - np.cos(last - 0.01)) < 1e-3
    assert abs(one.rates[1] - 2.0) < 1e-6
    # What is not newer says nothing; after a pause the rate is not known.
    before = one.rates.copy()
    one.update(both, np.array([9.0, 9.0]), last, 0.01, 0.5)
    assert np.array_equal(one.rates, before)
    one.update(both[:1], np.array([9.0]), last + 0.6, 0.01, 0.5)
    assert np.isnan(one.rates[0])
    assert one.rates[1] == before[1]
    one.update(both[:1], np.array([9.5]), last + 1.0, 0.01, 0.5)
    assert one.rates[0] == pytest.approx(1.25)
