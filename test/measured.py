# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots as they are, rather than as their URDF says, and what is measured of their motions."""

from dataclasses import replace

from motions import SineSum
import numpy as np
import rbd_ros
from rbd_ros import batch
from rbd_ros.identification import Recording
from rbd_ros.identification.reduction import samples_of
from rbd_ros.model import with_friction
from rbd_ros.model.model import rebuild

# Friction, rotors and offsets as shares of a joint's largest torque under gravity, and of its
# inertia: those of geared arms.
VISCOUS, COULOMB, OFFSET, ROTOR = 0.1, 0.1, 0.02, 0.3
# Standard deviations of encoders and of the velocities that drivers make of them.
ENCODER, SPEED = 1e-4, 1e-3


def changed(model, rng, share=0.3):
    """Return the robot with other masses, centres of mass and inertias that bodies can have."""
    return rebuild(model, links=[
        replace(link, mass=link.mass * rng.uniform(1.0 - share, 1.0 + share),
                com=link.com + 0.1 * share * rng.normal(size=3),
                inertia=link.inertia * rng.uniform(1.0 - share, 1.0 + share))
        for link in model.links])


def with_drives(model, rng):
    """Return the robot with friction and rotors."""
    M = np.diag(rbd_ros.mass_matrix(model, rbd_ros.neutral(model)))
    states = [rbd_ros.random_configuration(model, rng) for _ in range(20)]
    size = np.max(np.abs([rbd_ros.gravity_torques(model, q) for q in states]), axis=0) + 3.0 * M

    def some(scale):
        return scale * rng.uniform(0.5, 2.0, model.nv)

    geared = with_friction(model, damping=some(VISCOUS * size), friction=some(COULOMB * size),
                           effort_offset=OFFSET * size * rng.normal(size=model.nv))
    return rbd_ros.with_armature(geared, some(ROTOR * M))


def swing(model, rng, seconds, rate, speed=1.5):
    """Return t, and q, v and a of a motion around the middle of the joints."""
    t, motion = np.arange(0.0, seconds, 1.0 / rate), SineSum(model.nv, rng, speed=speed)
    limited = np.isfinite(model.lower) & np.isfinite(model.upper)
    middle = 0.5 * (np.where(limited, model.lower, 0.0) + np.where(limited, model.upper, 0.0))
    return t, motion(t) + np.clip(middle, -2.0, 2.0), motion(t, 1), motion(t, 2)


def efforts(model, q, v, a):
    """Return the torques that motors bring up."""
    return batch.inverse_dynamics(model, q, v, a) + rbd_ros.friction_torques(model, v)


def coloured(rng, count, width, memory):
    """Return noise of variance one that is forgotten after so many samples, 0: white."""
    noise = rng.normal(size=(count, width))
    keep = np.exp(-1.0 / memory) if memory else 0.0
    for k in range(1, count):
        noise[k] = keep * noise[k - 1] + np.sqrt(1.0 - keep ** 2) * noise[k]
    return noise


def samples(model, seed, seconds=20.0, *, noise=0.0, memory=0.0, rate=50.0, speed=1.5):
    """Return what is known of a motion; noise is a share of each joint's torque."""
    rng = np.random.default_rng(seed)
    t, q, v, a = swing(model, rng, seconds, rate, speed)
    tau = efforts(model, q, v, a)
    size = noise * np.sqrt(np.mean(tau ** 2, axis=0))
    return samples_of(model, q, v, a, tau + size * coloured(rng, *tau.shape, memory), t)


def recording(model, seed, seconds=20.0, *, noise=0.01, rate=200.0, speed=1.5):
    """Return what sensors record of a motion; noise is a share of each joint's torque."""
    rng = np.random.default_rng(seed)
    t, q, v, a = swing(model, rng, seconds, rate, speed)
    tau = efforts(model, q, v, a)
    size = noise * np.sqrt(np.mean(tau ** 2, axis=0))
    return Recording('motion', model.velocity_names, t, q + ENCODER * rng.normal(size=q.shape),
                     v + SPEED * rng.normal(size=v.shape),
                     tau + size * rng.normal(size=tau.shape))
