# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots for the tests of control laws, and the motion of one under a law."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import rbd_ros
from rbd_ros.control import JointReference
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import KINDS
from rbd_ros.model.positions.configurations import integrate
from robots import random_tree

ARM = Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf'
LINK = 'tool'
POSE = np.array([0.2, 0.6, -0.3, 1.0, 0.4, 0.5, -0.2])


def with_drives(model, **drives):
    """Return a robot all of whose joints have the same coefficients of drives."""
    return rebuild(model, joints=[
        replace(joint, **{name: (x,) * joint.nv for name, x in drives.items()})
        for joint in model.joints])


def bare_arm():
    """Return the demo arm with rotors and without friction."""
    return with_drives(rbd_ros.load_urdf(ARM), armature=0.1, damping=0.0, friction=0.0)


def trees():
    """Return random trees of all kinds of joints, without friction."""
    return [random_tree(seed, 4, kinds=[*KINDS]) for seed in range(6)]


def random_reference(model, rng, q):
    """Return a reference near a configuration, that moves."""
    near = integrate(model, q, 0.3 * rng.normal(size=model.nv), 1.0)
    return JointReference(model, near, *rng.normal(size=(3, model.nv)))


def run(model, controller, reference, q, v, seconds, step, wrenches=None, begin=0.0):
    """
    Return the times, configurations and velocities of a robot under a controller.

    Reference and external wrenches are functions of time. Control and integration, by Runge and
    Kutta and without friction, have the same step.

    """
    workspace = rbd_ros.Workspace(model)
    states = [(begin, q, v)]

    def rates(t, q, v, tau):
        return workspace.forward_dynamics(q, v, tau, None if wrenches is None else wrenches(t))

    for k in range(round(seconds / step)):
        t, q, v = states[-1]
        tau = controller.update(t, q, v, reference(t))
        a1 = rates(t, q, v, tau).copy()
        v2 = v + 0.5 * step * a1
        a2 = rates(t + 0.5 * step, q + 0.5 * step * v, v2, tau).copy()
        v3 = v + 0.5 * step * a2
        a3 = rates(t + 0.5 * step, q + 0.5 * step * v2, v3, tau).copy()
        v4 = v + step * a3
        a4 = rates(t + step, q + step * v3, v4, tau)
        states.append((begin + (k + 1) * step, q + step / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4),
                       v + step / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)))
    return tuple(np.array(x) for x in zip(*states))
