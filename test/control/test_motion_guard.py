# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Soft stops and the guard of velocities: their law written a second time, and late states."""

from dataclasses import replace
from itertools import product
from pathlib import Path
import re
import runpy

from control_robots import bare_arm, POSE
from covering import covering
from guard_loop import DELAYS, PERIODS, robot, ROBOTS, run, STEP
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import with_springs
from rbd_ros.model.constraints import rebuild
from rbd_ros.motions.motion_guard import MotionGuard
from robots import random_tree

# N m, of two formulations of a dozen operations on some hundred N m.
AGREEMENT = 1e-9
LOWER, UPPER, FASTEST, ZONE = -0.8, 1.1, 1.5, 0.1
# kg m^2 and N m
INERTIA, STRONGEST = 0.5, 60.0
MODEL = replace(random_tree(4, 4, kinds=('revolute',)), lower=np.full(4, LOWER),
                upper=np.full(4, UPPER), velocity_limit=np.full(4, FASTEST),
                effort_limit=np.full(4, STRONGEST))


def limited(tau, q, v, q_r, g, m, k, effort_rate):
    """Return the torque of one joint, case by case."""
    start = UPPER - ZONE if q_r is None else max(UPPER - ZONE, min(q_r, UPPER))
    end = LOWER + ZONE if q_r is None else min(LOWER + ZONE, max(q_r, LOWER))
    if end <= q <= start and abs(v) <= FASTEST:
        return tau
    push, held = max(-STRONGEST, min(STRONGEST, tau)) - g, 0.0
    if q > start:
        d = q - start
        if push > 0.0:
            push *= max(0.0, 1.0 - 2.0 * d / ZONE)
        held -= m * k * min(d / ZONE, 1.0) * max(0.0, v + 0.25 * k * d)
    if q < end:
        d = end - q
        if push < 0.0:
            push *= max(0.0, 1.0 - 2.0 * d / ZONE)
        held += m * k * min(d / ZONE, 1.0) * max(0.0, 0.25 * k * d - v)
    if abs(v) > FASTEST:
        e = abs(v) - FASTEST
        if push * v > 0.0:
            push *= max(0.0, 1.0 - e / (0.5 * FASTEST))
        held -= 0.5 * m * k * e * np.sign(v)
    if k > 0.0 and 0.0 < effort_rate < np.inf:
        held = np.clip(held, -effort_rate / k, effort_rate / k)
    # What the law does of it already is not done twice.
    if push * held > 0.0:
        return g + (push if abs(push) > abs(held) else held)
    return g + push + held


def near(q, v, q_r):
    """Return which joints are in a zone or too fast."""
    q, v = np.array(q), np.array(v)
    x = np.full(4, np.nan) if q_r is None else np.array(q_r)
    start = np.fmax(UPPER - ZONE, np.minimum(x, UPPER))
    end = np.fmin(LOWER + ZONE, np.maximum(x, LOWER))
    return (q > start) | (q < end) | (np.abs(v) > FASTEST)


vectors = st.lists(st.floats(-1.3, 1.5), min_size=4, max_size=4)
velocities = st.lists(st.floats(-2.5, 2.5), min_size=4, max_size=4)
torques = st.lists(st.floats(-80.0, 80.0), min_size=4, max_size=4)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(q=vectors, v=velocities, tau=torques, q_r=st.none() | vectors,
       age=st.floats(1e-4, 0.2) | st.just(np.inf), rate=st.sampled_from([0.0, 30.0, np.inf]))
def test_the_guard_follows_its_law(q, v, tau, q_r, age, rate):
    g = rbd_ros.gravity_torques(MODEL, q)
    free = np.linalg.inv(rbd_ros.mass_matrix(MODEL, q))
    m, some = 1.0 / np.diag(free), near(q, v, q_r)
    one = free[np.ix_(some, some)] * np.sqrt(np.outer(m[some], m[some]))
    largest = np.max(np.linalg.eigvalsh(one), initial=1.0)
    k = min(40.0, 0.5 / (largest * age))
    expected = [limited(*one, k, rate) for one in zip(tau, q, v, q_r or [None] * 4, g, m)]
    got = MotionGuard(MODEL, zone=ZONE).limit(np.array(tau), q, v, q_r, age=age,
                                              effort_rate=rate)
    assert np.max(np.abs(got - expected)) < AGREEMENT


def test_torques_are_untouched_away_from_all_limits():
    tau = np.arange(4.0)
    guard = MotionGuard(MODEL)
    assert guard.limit(tau, [0.0, 0.2, -0.5, 0.9], [1.4, -1.4, 0.0, 0.1]) is tau
    assert not guard.stopping.any() and not guard.braking.any()


def test_a_motion_up_to_the_limit_is_not_hindered():
    tau, q = np.full(4, 30.0), [UPPER - 0.01, UPPER, LOWER, 0.0]
    guard = MotionGuard(MODEL, zone=ZONE)
    assert guard.limit(tau, q, np.zeros(4), q) is tau
    held = guard.limit(tau, q, np.zeros(4))
    assert held[0] < 30.0 and held[1] < 30.0 and held[2] >= 30.0 and guard.stopping[:3].all()


@pytest.mark.parametrize('options', [{'zone': 0.0, 'velocity': 0.0}, {}])
def test_without_limits_or_with_zeros_nothing_is_guarded(options):
    none = np.full(4, np.inf)
    model = MODEL if options else replace(MODEL, lower=-none, upper=none, velocity_limit=none)
    tau = np.full(4, 30.0)
    assert MotionGuard(model, **options).limit(tau, np.full(4, 5.0), np.full(4, 9.0)) is tau


def test_a_joint_that_must_not_move_is_braked_at_any_speed_and_not_accelerated():
    # Grippers are often described with a velocity limit of zero.
    still = replace(MODEL, velocity_limit=np.zeros(4))
    q, v = [0.0, 0.2, -0.5, 0.9], np.array([0.3, -0.3, 1e-4, 0.0])
    g = rbd_ros.gravity_torques(MODEL, q)
    tau = MotionGuard(still, zone=0.0).limit(g + [5.0, -5.0, 5.0, 5.0], q, v)
    k = tau - g
    assert k[0] < 0.0 < k[1] and k[2] < 0.0 and k[3] == 5.0


def test_a_robot_without_inertia_is_not_guarded_by_invented_numbers():
    bare = rebuild(MODEL, links=[replace(link, mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3)))
                                 for link in MODEL.links])
    fast = replace(bare, velocity_limit=np.full(4, FASTEST))
    with pytest.raises(np.linalg.LinAlgError):
        MotionGuard(fast).limit(np.zeros(4), np.zeros(4), np.full(4, 2.0 * FASTEST))


def test_the_guard_limits_joints_after_a_quaternion():
    tree = random_tree(4, 3, kinds=('revolute',))
    model = rbd_ros.with_floating_base(rebuild(tree, joints=[
        replace(joint, lower=(LOWER,) * joint.nv, upper=(UPPER,) * joint.nv)
        for joint in tree.joints]))
    q = rbd_ros.neutral(model)
    q[-1] = UPPER - 0.02
    guard = MotionGuard(model, zone=ZONE)
    guard.limit(np.zeros(model.nv), q, np.zeros(model.nv))
    assert guard.stopping.tolist() == [False] * (model.nv - 1) + [True]


@pytest.mark.parametrize('speed, push', [(1.4, 0.0), (0.5, 60.0), (0.0, 200.0)])
def test_a_joint_that_is_driven_towards_its_limit_stays_inside(speed, push):
    # One joint about the vertical axis: only the guard is against the push.
    model = (rbd_ros.ModelBuilder('bar').link('base').link('bar', 2.0, inertia=(INERTIA,) * 3)
             .joint('pivot', 'revolute', 'base', 'bar', axis=(0.0, 0.0, 1.0), lower=LOWER,
                    upper=UPPER, velocity=FASTEST).build())
    guard, step = MotionGuard(model, zone=ZONE), 1e-3
    q, v = np.array([UPPER - 0.3]), np.array([speed])
    for _ in range(1000):
        tau = guard.limit(np.array([push]), q, v)
        v += step * rbd_ros.forward_dynamics(model, q, v, tau)
        q += step * v
        # In one step nothing can be done about an acceleration that has begun.
        assert q[0] < UPPER and abs(v[0]) < 1.5 * FASTEST + step * push / INERTIA


def test_the_guard_lets_springs_hold_joints_in_their_zones():
    stiffness, rest = np.linspace(5.0, 40.0, 7), np.linspace(-1.0, 1.0, 7)
    arm = with_springs(bare_arm(), stiffness=stiffness, spring_reference=rest)
    narrow = replace(arm, lower=POSE - 1.0, upper=POSE + 0.01, velocity_limit=np.ones(7),
                     effort_limit=np.full(7, np.inf))
    guard, still = MotionGuard(narrow, zone=0.1), np.zeros(7)
    balanced = rbd_ros.gravity_torques(arm, POSE) + stiffness * (POSE - rest)
    # More than half into the zone outward torques are limited to those that hold the joint.
    tau = guard.limit(balanced + 5.0, POSE, still, None)
    depth, free = 0.09, np.linalg.inv(rbd_ros.mass_matrix(arm, POSE))
    assert np.all(guard.stopping)
    assert np.allclose(tau, balanced - 4000.0 * depth ** 2 / np.diag(free), rtol=0, atol=1e-8)


# -- States that are late or rare, in lock-step with a robot. -------------------------------------
# Joints share energy: one may gain a little of what another has lost.
TOLERANCE = 1.01
RATE = 1000.0   # N m/s
# While commands lag behind the law, in a blend or at a rate limit, joints share more of it.
LAGGING = 1.1
DOC = Path(__file__).parents[2] / 'doc'
# px, of a picture that is drawn on another machine: motions that diverge are chaotic.
APART = 3.0


@pytest.mark.parametrize('name, period, delay', covering(
    product(ROBOTS, PERIODS, DELAYS),
    *product(ROBOTS, (PERIODS[0], PERIODS[-1]), (DELAYS[0], DELAYS[-1]))))
def test_late_and_rare_states_make_no_guarded_robot_faster(name, period, delay):
    # pd_gravity, then a law that brakes nothing, so that only the guard does.
    for damping in (1.0, 0.0):
        alone, guarded = (run(name, period, delay, one, damping)[0] for one in (False, True))
        assert np.max(guarded) <= TOLERANCE * np.max(alone)


@pytest.mark.long
def test_the_picture_of_the_guard_is_that_of_these_motions():
    drawn = runpy.run_path(str(DOC / 'draw_guard.py'))['draw']()
    picture, number = (DOC / 'images/guard.svg').read_text(encoding='utf-8'), r'-?\d+(?:\.\d+)?'
    assert re.sub(number, '', picture) == re.sub(number, '', drawn), 'run python doc/draw_guard.py'
    apart = np.subtract(*(np.array(re.findall(number, text), float) for text in (picture, drawn)))
    assert np.max(np.abs(apart)) <= APART, 'run python doc/draw_guard.py'


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('period, delay', [(0.01, 0.01), (0.002, 0.0), (0.02, 0.04)])
def test_under_a_rate_limit_and_in_a_blend_the_guard_steps_and_accelerates_no_more(
        name, period, delay):
    for options in ({'rate': RATE}, {'rate': RATE, 'blend': 0.3}):
        alone, (top, sent) = (
            run(name, period, delay, one, 0.1, **options) for one in (False, True))
        assert np.max(top) <= LAGGING * np.max(alone[0])
        assert np.max(np.abs(np.diff(sent, axis=0))) <= options['rate'] * period + 1e-9


def energies(model, guard, q, v, period, delay, seconds):
    """Yield the energy of a motion without gravity, under the guard alone, after each period."""
    late = round(delay / STEP)
    past = [(q.copy(), v.copy())] * (late + 1)
    yield 0.5 * v @ rbd_ros.mass_matrix(model, q) @ v
    for _ in range(round(seconds / period)):
        tau = guard.limit(np.zeros(model.nv), *past[-1 - late], age=period + delay)
        for _ in range(round(period / STEP)):
            v = v + STEP * rbd_ros.forward_dynamics(model, q, v, tau)
            q = q + STEP * v
            past.append((q.copy(), v.copy()))
        yield 0.5 * v @ rbd_ros.mass_matrix(model, q) @ v


def alone(name, **limits):
    """Return a robot without gravity and friction, with other limits."""
    model = rbd_ros.with_gravity(robot(name)[0], np.zeros(3))
    return replace(model, damping=np.zeros(model.nv), friction=np.zeros(model.nv), **limits)


@pytest.mark.parametrize('period, delay', [(0.001, 0.0), (0.01, 0.0), (0.01, 0.01), (0.02, 0.04)])
@pytest.mark.parametrize('name', ROBOTS)
def test_a_guard_without_a_law_slows_all_joints_down_and_never_reverses_them(name, period, delay):
    start = robot(name)[1]
    model = alone(name, velocity_limit=np.full(len(start), 0.2))
    before, *after = energies(model, MotionGuard(model, zone=0.0), start,
                              np.full(model.nv, 0.6), period, delay, 0.5)
    assert max(after) <= TOLERANCE * before
    assert after[-1] < (0.9 if period + delay < 0.03 else 1.0) * before


@pytest.mark.parametrize('period, delay', [(0.001, 0.0), (0.01, 0.01), (0.02, 0.02)])
@pytest.mark.parametrize('name', ROBOTS)
def test_soft_stops_return_less_than_they_took(name, period, delay):
    # One joint enters its zone; only its stop acts.
    start = robot(name)[1]
    n = len(start)
    model = alone(name, velocity_limit=np.full(n, np.inf), lower=start - 9.0,
                  upper=start + np.array([0.15] + [9.0] * (n - 1)))
    before, *after = energies(model, MotionGuard(model), start, 0.5 * np.eye(n)[0], period, delay,
                              1.0)
    assert max(after) <= TOLERANCE * before
