# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Torques of friction and rotors as a matrix times the parameters of the drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, one_or_rows
from rbd_ros.model.changes.drives import check_columns, COLUMNS, USUAL
from rbd_ros.model.changes.friction import direction, friction_terms
from rbd_ros.model.model import Model


def friction_regressor(model: Model, v: ArrayLike, a: ArrayLike | None = None, *,
                       columns: Sequence[str] = USUAL, smooth: float = 0.0) -> np.ndarray:
    """
    Return Y(v, a) whose product with the drive parameters is the torque of the drives.

    Without the column ``'rotor'``, that torque is `rbd_ros.friction_torques`. Of the robot's own
    drive parameters, only the Stribeck velocities are used. With closed loops these are the drives
    of the independent joints, without those of dependent ones.

    Parameters
    ----------
    model, v, a
        Robot; velocity, rad/s or m/s, (nv,) or (states, nv); acceleration of the same shape,
        needed for the column ``'rotor'``.
    columns : sequence of str
        The columns of each velocity, in this order: ``'viscous'``, ``'viscous_asymmetry'``,
        ``'coulomb'``, ``'coulomb_asymmetry'``, ``'stribeck'``, ``'offset'``, ``'rotor'``.
    smooth : float
        As for `rbd_ros.friction_torques`.

    Returns
    -------
    ndarray, shape (nv, nv * columns) or (states, nv, nv * columns)
        Columns in the order of `rbd_ros.model.drive_parameter_names`.

    """
    v, smooth = one_or_rows(model, 'v', v), number('smooth', smooth, 0.0)
    columns = check_columns(columns)
    terms = friction_terms(model, v, direction(v, smooth), v)
    if a is not None or 'rotor' in columns:
        terms['armature'] = one_or_rows(model, 'a', a)
        if terms['armature'].shape != v.shape:
            raise StateError(f"a has the shape {terms['armature'].shape}, v {v.shape}: they must "
                             'be of the same states')
    return drive_columns(terms, columns, v.shape)


def drive_columns(terms: Mapping[str, np.ndarray], columns: Sequence[str],
                  shape: tuple[int, ...]) -> np.ndarray:
    """Return the regressor of drives, given the factors (..., nv) of their coefficients."""
    Y, joint = np.zeros((*shape, shape[-1], len(columns))), np.arange(shape[-1])
    for k, one in enumerate(columns):
        Y[..., joint, joint, k] = terms[COLUMNS[one]]
    return Y.reshape(*shape, shape[-1] * len(columns))
