# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Velocities that are rates of positions: none is kept over a pause."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.state.joint_states import Differentiator, JointStates
from sensor_msgs.msg import JointState

# s: of the filter, and of the longest pause.
FILTER, TIMEOUT = 0.05, 0.5
BOTH = np.arange(2)


def moving():
    """Return a differentiator of two joints at 1 and -2 rad/s, the last positions at 1 s."""
    one = Differentiator([False, False])
    for t in np.arange(0.0, 1.001, 0.01):
        one.update(BOTH, np.array([t, -2.0 * t]), t, FILTER, TIMEOUT)
    assert one.rates == pytest.approx([1.0, -2.0])
    return one


def test_only_joints_with_a_gap_lose_their_rate():
    one = moving()
    for t in (1.2, 1.4):
        one.update(BOTH[:1], np.array([t]), t, FILTER, TIMEOUT)
    one.update(BOTH, np.array([1.6, 5.0]), 1.6, FILTER, TIMEOUT)
    assert one.rates[0] == pytest.approx(1.0) and np.isnan(one.rates[1])
    one.update(BOTH, np.array([1.7, 5.05]), 1.7, FILTER, TIMEOUT)
    assert one.rates == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize('pause, known', [(0.49, True), (0.51, False), (1e6, False)])
def test_a_pause_is_as_long_as_the_timeout(pause, known):
    one = moving()
    one.update(BOTH, np.array([1.0 + pause, -2.0 - 2.0 * pause]), 1.0 + pause, FILTER, TIMEOUT)
    if known:
        assert one.rates == pytest.approx([1.0, -2.0])
    else:
        assert np.all(np.isnan(one.rates))


def test_forget_discards_all_rates():
    one = moving()
    one.forget()
    assert np.all(np.isnan(one.rates))
    one.update(BOTH, np.zeros(2), 1.01, FILTER, TIMEOUT)
    assert np.all(np.isnan(one.rates))


def test_times_of_receipt_and_of_stamps_are_not_mixed():
    names = ['a']
    robot = (rbd_ros.ModelBuilder('r').link('base').link('arm', 1.0, inertia=(0.1, 0.1, 0.1))
             .joint('a', 'revolute', 'base', 'arm').build())
    states = JointStates(robot)

    def take(position, now, stamp):
        states.update(JointState(name=names, position=[position]), now, stamp, 0.5, FILTER)
    for k in range(50):
        take(0.01 * k, 5.0 + 0.01 * k, 1.7e9 + 0.01 * k)
    assert states.differentiator.rates == pytest.approx([1.0], rel=1e-3)
    for k in range(50):
        take(0.49, 5.5 + 0.01 * k, 0.0)
    assert states.differentiator.rates == pytest.approx([0.0], abs=1e-3)


def test_positions_are_differentiated_with_a_filter():
    one, last = Differentiator([False, True]), 0.0
    for k in range(400):
        t = 0.001 * k
        # The second joint turns on through full turns, and its position leaps.
        leaping = (3.0 + 2.0 * t + np.pi) % (2.0 * np.pi) - np.pi
        one.update(BOTH, np.array([np.sin(t), leaping]), t, 0.01, TIMEOUT)
        # Also where it leaps: the filter would forget that soon.
        assert abs(one.rates[1] - 2.0) < 1e-6 if k else np.all(np.isnan(one.rates))
        last = t
    # The filter lags by its time constant, of a sine that is hardly curved.
    assert abs(one.rates[0] - np.cos(last - 0.01)) < 1e-3
    # What is not newer says nothing.
    before = one.rates.copy()
    one.update(BOTH, np.array([9.0, 9.0]), last, 0.01, TIMEOUT)
    assert np.array_equal(one.rates, before)


@pytest.mark.parametrize('kind, rate', [('continuous', 0.4), ('revolute', 0.4 - 20.0 * np.pi)])
def test_positions_of_continuous_joints_alone_may_leap_by_full_turns(kind, rate):
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0, inertia=(0.1, 0.1, 0.1))
             .joint('j', kind, 'a', 'b').build())
    states = JointStates(model)
    for k, x in enumerate((np.pi - 0.02, 0.02 - np.pi)):
        states.update(JointState(name=['j'], position=[x]), 0.1 * k, filter_time=0.0)
    assert states.velocity_or(None)[0] == pytest.approx(rate)
