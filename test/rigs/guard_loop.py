# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Three robots in lock-step with a law and its guard, whose states are late or rare."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import rbd_ros
from rbd_ros.control import PdGravity
from rbd_ros.motions.motion_guard import MotionGuard
from rbd_ros.motions.references import JointReference
from rbd_ros.ros.commands.effort_commands import CommandSettings, EffortCommands
from rbd_ros.ros.nodes.simulated_control import gains, with_rotors
from robots import example_urdf, load_quietly, random_tree

ROBOTS = {'demo_arm': [0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0],
          'ur5': [0.0, -1.2, 1.5, -1.0, -1.5, 0.0], 'tree': [0.1] * 6}
PERIODS, DELAYS = (0.02, 0.01, 0.005, 0.002, 0.001), (0.0, 0.005, 0.01, 0.02, 0.04)
STEP, TOO_FAST = 1e-3, 1.3


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


@cache
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
