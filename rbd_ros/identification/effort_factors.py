# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Compare recorded efforts with the torques of the description: units, gains, conventions.

A fit adapts masses to any factor of the efforts, so it cannot tell currents from torques. For each
joint, the factor k of tau = k tau_urdf + drive, with friction, rotor and offset in `drive`, shows
whether the efforts are a multiple of the torques of the URDF.

"""

from __future__ import annotations

import numpy as np
from rbd_ros import batch, spring_torques
from rbd_ros._internal.text import listed
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples

MAX_ROWS = 3000     # Samples that are compared at most.
# Factors of all joints within 1/FACTOR ... FACTOR may be errors of the masses; those of a single
# joint within the second one, such as a payload that only the wrist feels.
MAX_FACTOR, MAX_JOINT_FACTOR = 1.5, 5.0
# Largest fraction of the squared torques, beyond friction and rotors, that the URDF times a factor
# may leave unexplained if the factor counts; largest ratio of two factors that are called equal.
MAX_LEFT, SAME_FACTOR = 0.3, 1.25
# Largest fraction of the samples in which an effort may exceed its limit, and by which factor.
MAX_BEYOND, BEYOND = 0.01, 1.1
CONFIRM = ('if the efforts are torques and the description is wrong, confirm it with '
           '--efforts-are-torques')


def effort_doubts(model: Model, samples: Samples) -> list[str]:
    """Return why efforts look like other quantities than the torques of the joints."""
    rows = np.flatnonzero(np.any(samples.usable, axis=1))
    rows = rows[::max(1, len(rows) // MAX_ROWS)]
    if not len(rows):
        return []
    q, v, a, tau = (getattr(samples, label)[rows] for label in ('q', 'v', 'a', 'tau'))
    direction = samples.low_pass(np.sign(samples.v))[rows]
    gravity = batch.gravity_torques(model, q)
    urdf = batch.inverse_dynamics(model, q, v, a) + spring_torques(model, q)
    factor, left = np.full((2, model.nv), np.nan)
    omitted = np.zeros(2)   # Relative squared errors with and without the torques of gravity.
    for j in range(model.nv):
        use = samples.usable[rows, j]
        drive = np.stack([v[use, j], direction[use, j], a[use, j], np.ones(np.sum(use))], axis=1)
        torque, full, still = (_residual(drive, x[use, j]) for x in (tau, urdf, gravity))
        if not torque @ torque * (full @ full) > 0.0:
            continue
        factor[j] = full @ torque / (full @ full)
        left[j] = 1.0 - (full @ torque) ** 2 / (full @ full * (torque @ torque))
        omitted += [np.sum((torque - x) ** 2) / (full @ full + torque @ torque) 
                    for x in (full, full - still)]
    counts = (left < MAX_LEFT) & (factor > 0.0)
    if omitted[1] < MAX_LEFT * omitted[0] and not np.sum(counts) > model.nv / 2:
        return ['efforts are without gravity: the torques of the URDF fit much better without '
                'those of gravity (effort_convention.states: without_gravity); record efforts '
                'that contain them, or add them']
    return (_factor_doubts(model, factor, counts)
            or _limit_doubts(model, np.abs(samples.tau)))


def _residual(columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return what no combination of the columns explains."""
    return np.asarray(x - columns @ np.linalg.lstsq(columns, x, rcond=None)[0])


def _factor_doubts(model: Model, factor: np.ndarray, counts: np.ndarray) -> list[str]:
    """Return a doubt if efforts are a multiple of the torques of the URDF."""
    if not np.any(counts):
        return []
    size = np.abs(np.log(np.where(counts, factor, 1.0)))
    if (np.median(size[counts]) <= np.log(MAX_FACTOR)
            and np.max(size) <= np.log(MAX_JOINT_FACTOR)):
        return []
    known, middle = factor[counts], float(np.median(factor[counts]))
    names = [name for name, there in zip(model.velocity_names, counts) if there]
    if np.ptp(np.log(known)) <= np.log(SAME_FACTOR):
        scale = ' '.join(f'{name}={1.0 / middle:.4g}' for name in model.velocity_names)
        return [f'efforts are {middle:.3g} times the torques of the URDF, by one factor for all '
                f'joints: was a gain or gear ratio forgotten, or applied twice? Apply it with '
                f'--scale {scale}; {CONFIRM}']
    times = listed(f'{name} {x:.3g}' for name, x in zip(names, known))
    scale = ' '.join(f'{name}={1.0 / x:.4g}' for name, x in zip(names, known))
    return [f'efforts are multiples of the torques of the URDF, {times}: they look like currents '
            'or have wrong gains. Find the gains (identify_drive_gains), or apply these with '
            f'--scale {scale}; {CONFIRM}']


def _limit_doubts(model: Model, size: np.ndarray) -> list[str]:
    """Return a doubt if efforts exceed the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    names = [f'{name} ({np.max(x):.3g}, limit {most:.3g})' for name, x, most in zip(
        model.velocity_names, size.T, limit) if np.mean(x > BEYOND * most) > MAX_BEYOND]
    return [f'efforts exceed the effort limits of the URDF: {listed(names)}; are they torques in '
            f'N m, or currents? Find the gains (identify_drive_gains, --scale); {CONFIRM}'
            ] if names else []
