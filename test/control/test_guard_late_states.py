# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The guard of joint limits with states that are late or rare, in lock-step with a robot."""

from dataclasses import replace
from itertools import product
from pathlib import Path
import re
import runpy

from covering import covering
from guard_loop import DELAYS, PERIODS, robot, ROBOTS, run, STEP
import numpy as np
import pytest
import rbd_ros
from rbd_ros.motions.motion_guard import MotionGuard

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
def test_a_guard_alone_slows_all_joints_down_and_never_turns_them_around(name, period, delay):
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
