# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The guard of joint limits with states that are late or rare, in lock-step with a robot."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import PdGravity
from rbd_ros.control.motion_guard import MotionGuard
from rbd_ros.control.references import JointReference
from rbd_ros.ros.commands.effort_commands import CommandSettings, EffortCommands
from rbd_ros.ros.nodes.simulated_control import gains, with_rotors
from robots import example_urdf, load_quietly, random_tree

ROBOTS = {'demo_arm': [0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0],
          'ur5': [0.0, -1.2, 1.5, -1.0, -1.5, 0.0], 'tree': [0.1] * 6}
PERIODS, DELAYS = (0.02, 0.01, 0.005, 0.002, 0.001), (0.0, 0.005, 0.01, 0.02, 0.04)
STEP, TOO_FAST = 1e-3, 1.3
# Joints share energy: one may gain a little of what another has lost.
TOLERANCE = 1.01
RATE = 1000.0   # N m/s
# While commands lag behind the law, in a blend or at a rate limit, joints share more of it.
LAGGING = 1.1


@cache
def robot(name):
    """Return a robot with rotors, its start, velocity limits and the gains of pd_gravity."""
    if name == 'tree':
        model = replace(with_rotors(random_tree(4, 6, kinds=('revolute',))),
                        lower=np.full(6, -2.0), upper=np.full(6, 2.0),
                        velocity_limit=np.full(6, 2.0), effort_limit=np.full(6, 150.0))
    else:
        path = (Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf' if name == 'demo_arm'
                else example_urdf('ur5_robot.urdf'))
        model = with_rotors(load_quietly(path))
    start = np.array(ROBOTS[name])
    found = gains(model, start)
    return (model, start, np.array(found['pd_gravity.stiffness']),
            np.array(found['pd_gravity.damping']))


def run(name, period, delay, guarded, damping=1.0, rate=0.0, blend=0.0, seconds=0.4):
    """Return the largest speed of each joint, and the commands."""
    model, q, stiffness, D = robot(name)
    q = np.array(q, float)
    v = TOO_FAST * model.velocity_limit
    law = PdGravity(model, stiffness if damping else 0.0 * D, damping * D, friction_speed=None)
    reference, guard, plant = (JointReference(model, q.copy()), MotionGuard(model),
                               rbd_ros.Workspace(model))
    commands = EffortCommands(CommandSettings('hold', 10.0, 0.0, 1.0, blend, rate, True))
    commands.set_joints(model.velocity_names, model.effort_limit)
    steps, past = round(period / STEP), [(q.copy(), v.copy())] * (round(delay / STEP) + 1)
    top, sent = np.abs(v), []
    for k in range(round(seconds / period)):
        late = past[-1 - round(delay / STEP)]

        def limit(tau, late=late):
            return guard.limit(tau, *late, reference.q, age=delay + period,
                               effort_rate=rate or np.inf)
        tau = law.update(0.0, *late, reference)
        sent.append(commands.update(tau, 1.0 + k * period, limit if guarded else None).copy())
        for _ in range(steps):
            v = v + STEP * plant.forward_dynamics(q, v, sent[-1])
            q = q + STEP * v
            past.append((q.copy(), v.copy()))
            top = np.maximum(top, np.abs(v))
    return top, np.array(sent)


@pytest.mark.parametrize('delay', DELAYS)
@pytest.mark.parametrize('period', PERIODS)
@pytest.mark.parametrize('name', ROBOTS)
def test_late_and_rare_states_make_no_guarded_robot_faster(name, period, delay):
    # pd_gravity, then a law that brakes nothing, so that only the guard does.
    for damping in (1.0, 0.0):
        alone, guarded = (run(name, period, delay, one, damping)[0] for one in (False, True))
        assert np.max(guarded) <= TOLERANCE * np.max(alone)


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('period, delay', [(0.01, 0.01), (0.002, 0.0), (0.02, 0.04)])
def test_under_a_rate_limit_and_in_a_blend_the_guard_steps_and_accelerates_no_more(
        name, period, delay):
    for options in ({'rate': RATE}, {'rate': RATE, 'blend': 0.3}):
        alone, (top, sent) = (
            run(name, period, delay, one, 0.1, **options) for one in (False, True))
        assert np.max(top) <= LAGGING * np.max(alone[0])
        assert np.max(np.abs(np.diff(sent, axis=0))) <= options['rate'] * period + 1e-9


@pytest.mark.parametrize('period, delay', [(0.001, 0.0), (0.01, 0.0), (0.01, 0.01), (0.02, 0.04)])
@pytest.mark.parametrize('name', ROBOTS)
def test_a_guard_alone_slows_all_joints_down_and_never_turns_them_around(name, period, delay):
    # Without gravity or a law, the energy is that of the motion.
    model, start, *_ = robot(name)
    model = replace(rbd_ros.with_gravity(model, np.zeros(3)), damping=np.zeros(model.nv),
                    friction=np.zeros(model.nv), velocity_limit=np.full(model.nv, 0.2))
    guard, q, v = MotionGuard(model, zone=0.0), start.copy(), np.full(model.nv, 0.6)

    def energy():
        return 0.5 * v @ rbd_ros.mass_matrix(model, q) @ v
    before, late = energy(), round(delay / STEP)
    past = [(q.copy(), v.copy())] * (late + 1)
    for _ in range(round(0.5 / period)):
        tau = guard.limit(np.zeros(model.nv), *past[-1 - late], age=period + delay)
        for _ in range(round(period / STEP)):
            v = v + STEP * rbd_ros.forward_dynamics(model, q, v, tau)
            q = q + STEP * v
            past.append((q.copy(), v.copy()))
        assert energy() <= TOLERANCE * before
    assert energy() < (0.9 if period + delay < 0.03 else 1.0) * before


@pytest.mark.parametrize('period, delay', [(0.001, 0.0), (0.01, 0.01), (0.02, 0.02)])
@pytest.mark.parametrize('name', ROBOTS)
def test_soft_stops_return_less_than_they_took(name, period, delay):
    # One joint enters its zone; only its stop and gravity compensation act.
    model, start, *_ = robot(name)
    model = replace(rbd_ros.with_gravity(model, np.zeros(3)), damping=np.zeros(model.nv),
                    friction=np.zeros(model.nv), velocity_limit=np.zeros(model.nv),
                    upper=start + np.array([0.15] + [9.0] * (model.nv - 1)),
                    lower=start - 9.0)
    guard, q, v = MotionGuard(model), start.copy(), np.zeros(model.nv)
    v[0] = 0.5
    before, late = 0.5 * v @ rbd_ros.mass_matrix(model, q) @ v, round(delay / STEP)
    past = [(q.copy(), v.copy())] * (late + 1)
    for _ in range(round(1.5 / period)):
        tau = guard.limit(np.zeros(model.nv), *past[-1 - late], age=period + delay)
        for _ in range(round(period / STEP)):
            v = v + STEP * rbd_ros.forward_dynamics(model, q, v, tau)
            q = q + STEP * v
            past.append((q.copy(), v.copy()))
        assert 0.5 * v @ rbd_ros.mass_matrix(model, q) @ v <= TOLERANCE * before
