# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots that differ from their URDF, and measurements of their motions."""

from dataclasses import replace

from known_motions import SineSum
import numpy as np
import rbd_ros
from rbd_ros import batch
from rbd_ros.identification import Recording
from rbd_ros.identification.reduction import samples_of
from rbd_ros.model import with_friction
from rbd_ros.model.constraints import rebuild

# Friction and offsets relative to a joint's largest gravity torque, and rotors relative to its
# inertia: typical of geared arms.
VISCOUS, COULOMB, OFFSET, ROTOR = 0.1, 0.1, 0.02, 0.3
# Standard deviations of encoder positions and of the velocities derived from them.
ENCODER, SPEED = 1e-4, 1e-3


def changed(model, rng, share=0.3):
    """Return the robot with other masses, centres of mass and consistent inertias."""
    return rebuild(model, links=[
        replace(link, mass=link.mass * rng.uniform(1.0 - share, 1.0 + share),
                com=link.com + 0.1 * share * rng.normal(size=3),
                inertia=link.inertia * rng.uniform(1.0 - share, 1.0 + share))
        for link in model.links])


def with_drives(model, rng):
    """Return the robot with friction and rotor inertias."""
    M = np.diag(rbd_ros.mass_matrix(model, rbd_ros.neutral(model)))
    states = [rbd_ros.random_configuration(model, rng) for _ in range(20)]
    size = np.max(np.abs([rbd_ros.gravity_torques(model, q) for q in states]), axis=0) + 3.0 * M

    def some(scale):
        return scale * rng.uniform(0.5, 2.0, model.nv)

    geared = with_friction(model, damping=some(VISCOUS * size), friction=some(COULOMB * size),
                           effort_offset=OFFSET * size * rng.normal(size=model.nv))
    return rbd_ros.with_armature(geared, some(ROTOR * M))


def swing(model, rng, seconds, rate, speed=1.5):
    """Return t, and q, v and a of a motion around the middle of the joint ranges."""
    t, motion = np.arange(0.0, seconds, 1.0 / rate), SineSum(model.nv, rng, speed=speed)
    limited = np.isfinite(model.lower) & np.isfinite(model.upper)
    middle = 0.5 * (np.where(limited, model.lower, 0.0) + np.where(limited, model.upper, 0.0))
    return t, motion(t) + np.clip(middle, -2.0, 2.0), motion(t, 1), motion(t, 2)


def efforts(model, q, v, a):
    """Return the torques of the motors."""
    return batch.inverse_dynamics(model, q, v, a) + rbd_ros.friction_torques(model, v)


def coloured(rng, count, width, memory):
    """Return noise of variance one with a correlation time in samples; 0: white."""
    noise = rng.normal(size=(count, width))
    keep = np.exp(-1.0 / memory) if memory else 0.0
    for k in range(1, count):
        noise[k] = keep * noise[k - 1] + np.sqrt(1.0 - keep ** 2) * noise[k]
    return noise


def samples(model, seed, seconds=20.0, *, noise=0.0, memory=0.0, rate=50.0, speed=1.5):
    """Return samples of a motion; noise is relative to the torque of each joint."""
    rng = np.random.default_rng(seed)
    t, q, v, a = swing(model, rng, seconds, rate, speed)
    tau = efforts(model, q, v, a)
    size = noise * np.sqrt(np.mean(tau ** 2, axis=0))
    return samples_of(model, q, v, a, tau + size * coloured(rng, *tau.shape, memory), t)


def recording(model, seed, seconds=20.0, *, noise=0.01, rate=200.0, speed=1.5):
    """Return a recording of a motion; noise is relative to the torque of each joint."""
    rng = np.random.default_rng(seed)
    t, q, v, a = swing(model, rng, seconds, rate, speed)
    tau = efforts(model, q, v, a)
    size = noise * np.sqrt(np.mean(tau ** 2, axis=0))
    return Recording('motion', model.velocity_names, t, q + ENCODER * rng.normal(size=q.shape),
                     v + SPEED * rng.normal(size=v.shape),
                     tau + size * rng.normal(size=tau.shape))
