# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Friction of joints and their drives: the torques of motors beyond rigid-body dynamics.

For each velocity v, with s = sign(v) or a smooth tanh(v / smooth),

    tau_f = damping v + damping_asymmetry |v|
            + (friction + stribeck_friction exp(-(v / stribeck_velocity)^2)) s
            + friction_asymmetry |s| + effort_offset.

All terms but the last take energy from the robot at any velocity, since damping >=
|damping_asymmetry|, friction >= |friction_asymmetry| and stribeck_friction >= 0. The offset, an
error of the drive at zero or a spring, may add energy. [Armstrong-Helouvry et al. (1994) for the
Stribeck term.]

"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np
from rbd_ros.errors import ModelError
from rbd_ros.model.joints import DRIVE, Joint

if TYPE_CHECKING:
    from rbd_ros.model.model import Model

# Coefficients that may have either sign, and the one that each must not exceed.
_SIGNED = {'damping_asymmetry': 'damping', 'friction_asymmetry': 'friction', 'effort_offset': None}
# Share by which the Stribeck velocities of joints that mimic each other may differ: rounding.
_SAME_SPEED = 1e-9
# Squares of greater ratios of velocities overflow, and exp(-40^2) is zero.
_FASTEST = 40.0


def check_drive(where: str, values: dict[str, tuple[float, ...]]) -> None:
    """
    Refuse coefficients of a joint that no drive can have.

    Parameters
    ----------
    where : str
        The joint, for the error.
    values : dict of str to tuple of float
        Every one of `DRIVE`, one number for each velocity.

    Raises
    ------
    ModelError
        If one is not finite or, where it must not be, negative; or if friction would drive the
        joint.

    """
    for label in DRIVE:
        if label not in _SIGNED and not all(0.0 <= x < inf for x in values[label]):
            raise ModelError(f'{where}: its {label} must be finite and not negative, '
                             f'got {values[label]}')
    for label, most in _SIGNED.items():
        if not all(map(isfinite, values[label])):
            raise ModelError(f'{where}: its {label} must be finite, got {values[label]}')
        if most and any(abs(x) > y for x, y in zip(values[label], values[most])):
            raise ModelError(f'{where}: its {label}, {values[label]}, is greater than its {most}, '
                             f'{values[most]}: such friction would drive the joint')
    if any(x and not y for x, y in zip(values['stribeck_friction'], values['stribeck_velocity'])):
        raise ModelError(f'{where}: its stribeck_friction needs a stribeck_velocity: set that too')


def fold_drives(joints: tuple[Joint, ...], G: np.ndarray | None) -> dict[str, np.ndarray]:
    """
    Return the coefficients of all drives, for the coordinates of a robot.

    A joint that turns m times as fast as the one that it mimics has m times the power per torque
    of its own: tau = m tau_mimic(m v).

    Parameters
    ----------
    joints : tuple of Joint
        All of them, those that mimic others included.
    G : ndarray, shape (tree velocities, nv), or None
        Maps the velocities of the robot to theirs; None: they are the same.

    Returns
    -------
    dict of str to ndarray, shape (nv,)
        Every one of `DRIVE`.

    Raises
    ------
    ModelError
        If joints that mimic each other have Stribeck velocities that do not give a single curve.

    """
    own = {label: np.array([x for joint in joints for x in getattr(joint, label)], float)
           for label in DRIVE}
    if G is None:
        return own
    size, square = np.abs(G), np.square(G)
    result = {label: weight.T @ own[label] for label, weight in (
        ('damping', square), ('damping_asymmetry', G * size), ('friction', size),
        ('friction_asymmetry', G), ('stribeck_friction', size), ('effort_offset', G),
        ('armature', square))}
    speed = np.zeros(G.shape[1])
    names = [joint.name for joint in joints for _ in range(joint.nv)]
    of_column: dict[int, str] = {}
    for row, column in zip(*np.nonzero(size * own['stribeck_friction'][:, None])):
        felt = own['stribeck_velocity'][row] / size[row, column]
        first = of_column.setdefault(column, names[row])
        if first == names[row]:
            speed[column] = felt
        elif abs(felt - speed[column]) > _SAME_SPEED * felt:
            raise ModelError(f"joints '{first}' and '{names[row]}' move together, but their "
                             'stribeck_velocity is reached at different speeds: set one in '
                             'proportion to the other, or the stribeck_friction of one to 0')
    return {**result, 'stribeck_velocity': speed}


def friction_terms(model: Model, v: np.ndarray, s: np.ndarray,
                   speed: np.ndarray) -> dict[str, np.ndarray]:
    """
    Return what the coefficients of friction are multiplied by: the law.

    Parameters
    ----------
    model : Model
        The robot. Its Stribeck velocities are read.
    v : ndarray, shape (..., nv)
        Velocities, rad/s or m/s.
    s : ndarray, shape (..., nv), or one that broadcasts with it
        Their directions, -1 to 1.
    speed : ndarray, shape (..., nv)
        Whose Stribeck friction it is: v, for the law.

    Returns
    -------
    dict of str to ndarray, shape (..., nv)
        By the name of the coefficient.

    """
    with np.errstate(over='ignore'):
        ratio = np.divide(speed, model.stribeck_velocity, out=np.zeros_like(v),
                          where=model.stribeck_velocity > 0.0)
    return {'damping': v, 'damping_asymmetry': np.abs(v), 'friction': s,
            'friction_asymmetry': np.abs(s), 'effort_offset': np.ones_like(v),
            'stribeck_friction': np.exp(-np.square(np.minimum(np.abs(ratio), _FASTEST))) * s}


def friction(model: Model, v: np.ndarray, s: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Return the torques of friction, shape (..., nv); arguments as for `friction_terms`."""
    return sum((getattr(model, label) * term
                for label, term in friction_terms(model, v, s, speed).items()), np.zeros_like(v))


def direction(v: np.ndarray, smooth: float | np.ndarray) -> np.ndarray:
    """Return s: the sign of each velocity, or tanh(v / smooth) if no ``smooth`` is zero."""
    return np.tanh(v / smooth) if np.all(smooth) else np.sign(v)
