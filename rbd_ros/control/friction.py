# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Friction compensation that never drives a joint.

The velocity available to a controller is wrong because of noise, filter delay, and its change
until the torque acts. As long as its error is at most the dead band, each joint satisfies

    0 <= (tau - effort_offset) v <= (tau_f(v) - effort_offset) v

with the true velocity v and its friction tau_f(v). For any sequence of velocities, the
compensation gives a joint at most the energy that friction takes from it: it cannot keep a joint
moving, and a joint at rest gets only its offset. The torques are continuous in the velocity.
Errors are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_vector, number, one_or_rows, rows
from rbd_ros.model.changes.friction import friction
from rbd_ros.model.model import Model
from rbd_ros.workspace.passive_joints import passive_torques

DEAD_BAND = 0.02    # rad/s or m/s: several times the velocity noise of common encoders


def friction_compensation(model: Model, v: npt.ArrayLike, *, dead_band: float = DEAD_BAND,
                          q: npt.ArrayLike | None = None) -> np.ndarray:
    """
    Return torques that compensate friction, for inexact velocities.

    Parameters
    ----------
    model, v
        Robot; measured velocity (model.nv,) or (states, model.nv), rad/s or m/s.
    dead_band : float
        Largest error of the velocity, rad/s or m/s; 0: exact. Up to this speed the result is
        ``effort_offset``; from twice this speed Coulomb friction is fully compensated.
    q : array_like, optional
        Configuration (model.nq,) or (states, model.nq), rad or m: needed with closed loops, in
        which passive joints have friction, too.

    Returns
    -------
    ndarray, of the shape of v, N m or N
        Viscous friction at the smallest possible speed, Stribeck friction at the largest.

    """
    v, dead_band = one_or_rows(model, 'v', v), number('dead_band', dead_band, 0.0)
    own = _compensation(model, v, np.full_like(v, dead_band))
    if model.loops is None:
        return own
    if q is None:
        raise StateError('friction_compensation of a robot with closed loops needs q: passive '
                         'joints have friction, too')
    # Errors of independent velocities reach the others through G.
    q = (finite_vector(model, 'q', q, positions=True) if v.ndim == 1
         else rows(model, 'q', q, len(v), positions=True))
    return own + passive_torques(model, lambda tree, G, V, A: _compensation(
        tree, V, dead_band * np.abs(G).sum(axis=1)), q, v)


def _compensation(model: Model, v: np.ndarray, dead_band: np.ndarray) -> np.ndarray:
    least = np.sign(v) * np.maximum(np.abs(v) - dead_band, 0.0)
    s = np.divide(np.clip(least, -dead_band, dead_band), dead_band, out=np.sign(v),
                  where=dead_band > 0.0)
    return friction(model, least, s, np.abs(v) + dead_band)
