# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Compare recorded efforts with the torques of the description: units, gains, conventions.

A fit adapts masses to any factor of the efforts, so it cannot tell currents from torques. Instead,
changes of the description compete. Each adds columns times sizes, which are fixed or fitted, to
its torques: the change that leaves least is what the efforts look like.

"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rbd_ros import batch, spring_torques
from rbd_ros._internal.text import listed
from rbd_ros.identification.recording_mistakes import wrong_sign_message
from rbd_ros.model.inertial import inertial_parameters
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples

MAX_ROWS = 1500     # Samples that are compared at most.
# Factors of all joints within 1/FACTOR ... FACTOR may be errors of the masses; those of a single
# joint within the second one, or the third if its torques are less than a share of the largest
# ones of the URDF: errors of light links change them much more.
MAX_FACTOR, MAX_JOINT_FACTOR, MAX_WEAK_FACTOR, WEAK = 1.5, 1.8, 5.0, 0.1
# Largest fraction of a joint's squared efforts, beyond friction and rotors, that a change may
# leave; fraction to which another one must reduce what those with fewer parameters leave.
MAX_LEFT, PRICE = 0.3, 0.9
MAX_PAYLOAD = 0.5   # Largest mass of a payload, as a fraction of that of the robot.
# Largest fraction of the samples in which an effort may exceed its limit, and by which factor.
MAX_BEYOND, BEYOND = 0.01, 1.1
CONFIRM = ('if the efforts are torques and the description is wrong, confirm it with '
           '--efforts-are-torques')


class Terms(NamedTuple):
    """Torques that are compared, one row after another of all joints, each joint of size one."""

    joint: np.ndarray       # (rows,), its number
    torque: np.ndarray      # (rows,), recorded
    urdf: np.ndarray        # (rows,), of the description
    gravity: np.ndarray     # (rows,), those of gravity alone
    payload: np.ndarray     # (rows, 10), per inertial parameter of the last body


class Change(NamedTuple):
    """A change of the description."""

    columns: Callable[[Terms], np.ndarray]  # (rows, sizes), torques that it adds
    size: float | None                      # None: fitted


# In order of the number of their fitted sizes.
CHANGES = {
    'none': Change(lambda one: one.urdf[:, None], 0.0),
    'sign': Change(lambda one: one.urdf[:, None], -2.0),
    'without_gravity': Change(lambda one: one.gravity[:, None], -1.0),
    'common_gain': Change(lambda one: one.urdf[:, None], None),
    'payload': Change(lambda one: one.payload, None),
    'gain': Change(lambda one: np.where(
        one.joint[:, None] == np.arange(one.joint[-1] + 1), one.urdf[:, None], 0.0), None)}


def explain(terms: Terms, most: float) -> tuple[str, np.ndarray, np.ndarray]:
    """
    Return the change that leaves least of the torques, its sizes and what it leaves by joint.

    A payload counts if its mass is positive and less than ``most``, kg.

    """
    found, least = ('none', np.zeros(1), np.zeros(1)), np.inf
    for kind, change in CHANGES.items():
        columns, error = change.columns(terms), terms.torque - terms.urdf
        size = (np.full(1, change.size) if change.size is not None
                else np.linalg.lstsq(columns, error, rcond=None)[0])
        left = np.bincount(terms.joint, (error - columns @ size) ** 2)
        if np.sum(left) < PRICE * least and (kind != 'payload' or 0.0 < size[0] < most):
            found, least = (kind, size, left), np.sum(left)
    return found


def effort_doubts(model: Model, samples: Samples) -> list[str]:
    """Return why efforts look like other quantities than the torques of the joints."""
    rows = np.flatnonzero(np.any(samples.usable, axis=1))
    rows = rows[::max(1, len(rows) // MAX_ROWS)]
    if not len(rows):
        return []
    terms, strength = _terms(model, samples, rows)
    kind, size, left = explain(terms, MAX_PAYLOAD * np.sum(inertial_parameters(model)[::10]))
    factor = np.broadcast_to(1.0 + size if kind in ('sign', 'common_gain', 'gain') else 1.0,
                             model.nv)
    counts = left < MAX_LEFT
    most = np.where(strength < WEAK * np.max(strength), MAX_WEAK_FACTOR, MAX_JOINT_FACTOR)
    limits = _limit_doubts(model, np.abs(samples.tau))
    if not np.any(counts):
        return limits
    # A change of one size is one of all joints, whether or not each shows it.
    counts |= kind != 'gain'
    if kind == 'without_gravity':
        return ['efforts are without gravity: the torques of the URDF fit much better without '
                'those of gravity (effort_convention.states: without_gravity); record efforts '
                'that contain them, or add them', *limits]
    names = model.velocity_names
    wrong = [name for name, x in zip(names, counts & (factor < 0.0)) if x]
    if wrong:
        return [wrong_sign_message(wrong), *limits]
    return _factor_doubts({name: x for name, x, one in zip(names, factor, counts) if one},
                          most[counts], listed(np.array(names)[~counts])) + limits


def _terms(model: Model, samples: Samples, rows: np.ndarray) -> tuple[Terms, np.ndarray]:
    """Return terms without what friction, rotors and offsets explain, and torques of the URDF."""
    q, v, a, tau = (getattr(samples, label)[rows] for label in ('q', 'v', 'a', 'tau'))
    direction = samples.low_pass(np.sign(samples.v))[rows]
    urdf = batch.inverse_dynamics(model, q, v, a) + spring_torques(model, q)
    x = np.concatenate([np.stack((tau, urdf, batch.gravity_torques(model, q)), axis=2),
                        batch.torque_regressor(model, q, v, a)[:, :, -10:]], axis=2)
    joints = []
    for j, use in enumerate(samples.usable[rows].T):
        drive = np.stack((v[use, j], direction[use, j], a[use, j], np.ones(np.sum(use))), axis=1)
        rest = x[use, j] - drive @ np.linalg.lstsq(drive, x[use, j], rcond=None)[0]
        size = np.linalg.norm(rest[:, 0])
        joints.append(rest / size if size > 0.0 else np.zeros_like(rest))
    one = np.concatenate(joints)
    return Terms(np.repeat(np.arange(model.nv), [len(x) for x in joints]), one[:, 0], one[:, 1],
                 one[:, 2], one[:, 3:]), np.std(urdf, axis=0)


def _factor_doubts(factors: dict[str, float], most: np.ndarray, unknown: str) -> list[str]:
    """Return a doubt if efforts are a multiple of the torques of the URDF."""
    known = np.array([*factors.values()])
    size = np.abs(np.log(known))
    if np.median(size) <= np.log(MAX_FACTOR) and np.all(size <= np.log(most)):
        return []
    scale = ' '.join(f'{name}={1.0 / x:.4g}' for name, x in factors.items())
    if unknown:
        scale += f' (the factors of {unknown} are not known)'
    if np.ptp(known) == 0.0:
        return [f'efforts are {known[0]:.3g} times the torques of the URDF, by one factor for all '
                f'joints: was a gain or gear ratio forgotten, or applied twice? Apply it with '
                f'--scale {scale}; {CONFIRM}']
    times = listed(f'{name} {x:.3g}' for name, x in factors.items())
    return [f'efforts are multiples of the torques of the URDF, {times}: they look like currents '
            'or have wrong gains. Find the gains (rbd_ros gains), or apply these with '
            f'--scale {scale}; {CONFIRM}']


def _limit_doubts(model: Model, size: np.ndarray) -> list[str]:
    """Return a doubt if efforts exceed the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    names = [f'{name} ({np.max(x):.3g}, limit {most:.3g})' for name, x, most in zip(
        model.velocity_names, size.T, limit) if np.mean(x > BEYOND * most) > MAX_BEYOND]
    return [f'efforts exceed the effort limits of the URDF: {listed(names)}; are they torques in '
            f'N m, or currents? Find the gains (rbd_ros gains, --scale); {CONFIRM}'
            ] if names else []
