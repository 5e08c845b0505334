# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The momentum observer, on motions whose external torques are known."""

from dataclasses import replace
from itertools import pairwise

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import MomentumObserver
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import KINDS
from robots import example_urdf, load_quietly, random_tree, relative_error

# Both sides are exact: what rounding leaves of differences of momenta over a millisecond.
EXACT = 1e-9
# The mean over a step by both of its ends is wrong by h^2: half the step, a quarter of the error.
QUARTER = 4.0
GAIN = np.array([5.0, 10.0, 20.0, 40.0, 30.0, 15.0])


@pytest.fixture(scope='module')
def arm():
    """Return a UR5 with rotors and friction."""
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    moving = [joint.name for joint in model.joints if joint.nv]
    return rebuild(model, joints=[
        replace(joint, armature=(0.1,), damping=(2.0,), friction=(1.0,))
        if joint.name in moving else joint for joint in model.joints])


def swing(t):
    """Return q, v, a of six joints that swing."""
    omega, phase = np.array([2.0, 3.0, 1.7, 4.1, 2.9, 3.3]), np.arange(6.0)
    return (0.7 * np.sin(omega * t + phase), 0.7 * omega * np.cos(omega * t + phase),
            -0.7 * omega ** 2 * np.sin(omega * t + phase))


def push(t):
    """Return the wrench on the tool."""
    return {'tool0': np.array([1.0, -2.0, 0.5, 30.0 * np.sin(5.0 * t), 20.0, -10.0 * t])}


def external_torques(model, q, wrenches):
    """Return J^T f."""
    return rbd_ros.inverse_dynamics(model, q, np.zeros(model.nv), np.zeros(model.nv)) - (
        rbd_ros.inverse_dynamics(model, q, np.zeros(model.nv), np.zeros(model.nv),
                                 external_wrenches=wrenches))


def observe(model, times, motion, torques, **options):
    """Return what the observer says at each time."""
    observer = MomentumObserver(model, **options)
    return np.array([observer.update(t, *motion(t)[:2], torques(t)) for t in times])


def test_a_constant_wrench_on_a_robot_at_rest_is_estimated_with_the_time_constants(arm):
    q, still = np.array([0.3, -1.0, 1.2, 0.4, -0.6, 0.2]), np.zeros(6)
    expected = external_torques(arm, q, push(1.0))
    tau = rbd_ros.gravity_torques(arm, q) - expected
    assert np.all(np.abs(expected) > 0.1)
    times = np.concatenate(([0.0], np.cumsum(np.random.default_rng(1).uniform(0.0005, 0.09, 80))))
    r = observe(arm, times, lambda t: (q, still), lambda t: tau, gain=GAIN)
    assert relative_error(r, expected * -np.expm1(-np.outer(times, GAIN))) < EXACT


@pytest.mark.parametrize('smooth', [0.0, 0.05])
def test_a_motion_of_a_perfect_model_gives_no_findings(arm, smooth):
    def torques(t):
        q, v, a = swing(t)
        return rbd_ros.inverse_dynamics(arm, q, v, a) + rbd_ros.friction_torques(
            arm, v, smooth=smooth)

    errors, largest = [], 0.0
    for step in (1e-3, 5e-4):
        times = np.arange(0.0, 0.25, step)
        largest = np.max(np.abs([torques(t) for t in times]))
        errors.append(np.max(np.abs(observe(arm, times, swing, torques, gain=GAIN,
                                            smooth=smooth))))
    assert errors[0] < 1e-4 * largest
    if smooth:
        # Without jumps, where Coulomb friction changes its sign, the error is of second order.
        assert errors[0] / errors[1] == pytest.approx(QUARTER, rel=0.1)


def test_noise_does_not_switch_the_friction_of_a_robot_at_rest(arm):
    q, tau = np.zeros(6), rbd_ros.gravity_torques(arm, np.zeros(6))
    rng = np.random.default_rng(1)
    assert np.all(arm.friction > 0.0)
    observer = MomentumObserver(arm)
    for t in np.arange(0.0, 1.0, 1e-3):
        r = observer.update(t, q, 1e-5 * rng.normal(size=6), tau)
        # Coulomb friction of either sign would come through the filter as a tenth of it.
        assert np.all(np.abs(r) < 0.01 * arm.friction)


def test_torques_may_come_without_friction(arm):
    def torques(t):
        return rbd_ros.inverse_dynamics(arm, *swing(t))

    def all_torques(t):
        return torques(t) + rbd_ros.friction_torques(arm, swing(t)[1])

    times = np.arange(0.0, 0.1, 1e-3)
    without = observe(arm, times, swing, torques, friction=False)
    assert relative_error(without, observe(arm, times, swing, all_torques)) < 1e-6
    assert np.max(np.abs(observe(arm, times, swing, torques))) > 1.0


def test_the_observer_filters_a_wrench_on_a_moving_robot_by_a_first_order_lag(arm):
    def torques(t):
        q, v, a = swing(t)
        return (rbd_ros.inverse_dynamics(arm, q, v, a, external_wrenches=push(t))
                + rbd_ros.friction_torques(arm, v, smooth=0.1))

    errors = []
    for step in (2e-3, 1e-3):
        times = np.arange(0.0, 0.2, step)
        r = observe(arm, times, swing, torques, gain=GAIN, smooth=0.1)
        # dr/dt = K (tau_ext - r), in steps a hundred times as fine.
        fine = np.arange(0.0, 0.2, step / 100)
        exact, x = np.zeros((len(fine), 6)), np.zeros(6)
        truth = np.array([external_torques(arm, swing(t)[0], push(t)) for t in fine[::50]])
        truth = np.array([np.interp(fine, fine[::50], column) for column in truth.T]).T
        for k in range(1, len(fine)):
            x = x + (fine[1] - fine[0]) * GAIN * (0.5 * (truth[k] + truth[k - 1]) - x)
            exact[k] = x
        errors.append(relative_error(r, exact[::100]))
    assert errors[1] < 2e-3
    assert errors[0] > 1.8 * errors[1]          # the rest is of the steps, here and above


@pytest.mark.parametrize('seed', seeds(6, few=3))
def test_motions_of_trees_of_all_kinds_of_joints_give_no_findings(seed):
    model = random_tree(seed, 5, kinds=list(KINDS))
    rng = np.random.default_rng(seed)
    q, v = rbd_ros.random_configuration(model, rng), rng.normal(size=model.nv)
    tau = rng.normal(size=model.nv)
    errors = []
    for step in (4e-4, 2e-4):
        motion = rbd_ros.simulate(model, q, v, tau, np.arange(0.0, 0.06, step))
        observer = MomentumObserver(model, 20.0)
        r = np.array([observer.update(*state, tau)
                      for state in zip(motion.t, motion.q, motion.v)])
        errors.append(np.max(np.abs(r)))
    assert errors[0] / errors[1] == pytest.approx(QUARTER, rel=0.2) or errors[0] < EXACT


@pytest.mark.parametrize('gain', [1e-3, 1e3, 1e9])
def test_every_gain_and_step_is_stable(arm, gain):
    rng = np.random.default_rng(2)
    observer = MomentumObserver(arm, gain, longest_gap=1.0)
    q, still, t = np.zeros(6), np.zeros(6), 0.0
    gravity = rbd_ros.gravity_torques(arm, q)
    pushes = rng.uniform(-1.0, 1.0, (200, 6))
    r = observer.update(t, q, still, gravity - pushes[0])
    for before, now in pairwise(pushes):
        t += rng.uniform(1e-6, 0.9)
        mean, last = 0.5 * (before + now), r
        r = observer.update(t, q, still, gravity - now)
        # It comes nearer to the mean push of the step, and never goes beyond.
        assert np.all(np.abs(r - mean) <= np.abs(last - mean) + 1e-9)
        assert np.all(np.abs(r) <= 1.0 + 1e-9)
    if gain == 1e9:
        assert np.allclose(r, mean)


def test_after_a_gap_the_observer_continues_from_its_estimate_and_the_new_sample(arm):
    q, still, tau = np.zeros(6), np.zeros(6), rbd_ros.gravity_torques(arm, np.zeros(6))
    observer = MomentumObserver(arm, 8.0, longest_gap=0.125)
    for t in (0.0, 0.125):
        before = observer.update(t, q, still, tau - 1.0)
    assert np.allclose(before, -np.expm1(-1.0))
    # The robot has moved meanwhile, and is fast now: none of that is a push.
    q, v = np.full(6, 0.5), np.full(6, 3.0)
    tau = (rbd_ros.gravity_torques(arm, q) + rbd_ros.friction_torques(arm, v)
           - rbd_ros.coriolis_matrix(arm, q, v).T @ v)      # under these its momentum stays
    assert np.array_equal(observer.update(0.375, q, v, tau - 7.0), before)
    # An eighth of a second is no gap yet.
    after = observer.update(0.5, q, v, tau - 7.0)
    assert np.allclose(after, before + (7.0 - before) * -np.expm1(-1.0))


def test_repeated_samples_change_nothing_and_earlier_samples_reset_the_observer(arm):
    q, still, tau = np.zeros(6), np.zeros(6), rbd_ros.gravity_torques(arm, np.zeros(6))
    observer = MomentumObserver(arm, 10.0)
    assert np.array_equal(observer.update(5.0, q, still, tau - 1.0), still)
    found = observer.update(5.05, q, still, tau - 1.0)
    assert np.all(found > 0.1)
    assert np.array_equal(observer.update(5.05, q, still + 1.0, tau + 9.0), found)
    # The repeated sample was not kept either.
    expected = found + (1.0 - found) * -np.expm1(-10.0 * 0.05)
    assert np.allclose(observer.update(5.1, q, still, tau - 1.0), expected)
    assert np.array_equal(observer.update(1.0, q, still, tau - 1.0), still)
    assert np.allclose(observer.update(1.05, q, still, tau - 1.0), found)
    observer.reset()
    assert np.array_equal(observer.update(1.06, q, still, tau - 1.0), still)


def test_results_belong_to_the_caller(arm):
    q, still, tau = np.zeros(6), np.zeros(6), rbd_ros.gravity_torques(arm, np.zeros(6))
    observer = MomentumObserver(arm, 10.0)
    first = observer.update(0.0, q, still, tau - 1.0)
    first += 100.0
    found = observer.update(0.05, q, still, tau - 1.0)
    assert np.all(np.abs(found) < 1.0)


@pytest.mark.parametrize('label, value', [
    ('q', np.zeros(5)), ('v', [0, 0, 0, 0, 0, np.nan]), ('tau', 'up'), ('t', np.inf)])
def test_a_refused_sample_leaves_the_observer_as_it_was(arm, label, value):
    good = {'t': 0.1, 'q': np.zeros(6), 'v': np.zeros(6), 'tau': np.ones(6)}
    one, other = MomentumObserver(arm), MomentumObserver(arm)
    for observer in (one, other):
        observer.update(0.05, *list(good.values())[1:])
    with pytest.raises(rbd_ros.StateError, match=rf'^{label}\b'):
        one.update(*{**good, label: value}.values())
    assert np.array_equal(one.update(*good.values()), other.update(*good.values()))
