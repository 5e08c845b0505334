# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions with known derivatives, and recordings of robots that follow them."""

import numpy as np
from rbd_ros import batch
from rbd_ros.identification import Recording


class SineSum:
    """Sums of sines, one for each joint: frequencies in Hz, the largest speed in rad/s."""

    def __init__(self, joints, rng, frequencies=(0.1, 0.23, 0.41, 0.7), speed=1.5):
        self.w = 2.0 * np.pi * np.array(frequencies)
        share = rng.dirichlet(np.ones(len(self.w)), joints)
        self.amplitude = speed * share / self.w
        self.phase = rng.uniform(0.0, 2.0 * np.pi, share.shape)

    def __call__(self, time, derivative=0):
        """Return a derivative at some times, shape (times, joints)."""
        angle = np.asarray(time)[:, None, None] * self.w + self.phase
        return np.sum(self.amplitude * self.w ** derivative
                      * np.sin(angle + 0.5 * np.pi * derivative), axis=2)


def recorded(model, motion, time, *, viscous=0.0, coulomb=0.0, offset=0.0, delay=0.0, noise=0.0,
             rng=None, velocity=True):
    """
    Return a recording of a robot with friction that follows a motion such as a SineSum.

    Efforts are late by ``delay``; ``noise`` is the standard deviation of positions, velocities and
    efforts, relative to their usual size.

    """
    q, v = motion(time), motion(time, 1)
    late = time - delay
    rates = motion(late, 1)
    effort = (batch.inverse_dynamics(model, motion(late), rates, motion(late, 2))
              + viscous * rates + coulomb * np.sign(rates) + offset)
    if noise:
        q, v, effort = (x + noise * x.std() * rng.normal(size=x.shape) for x in (q, v, effort))
    return Recording('simulated', model.velocity_names, time, q, v if velocity else None, effort)
