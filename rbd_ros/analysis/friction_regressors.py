# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Torques of friction and rotors as a matrix times the parameters of the drives."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, one_or_rows
from rbd_ros.model.drives import check_columns, COLUMNS, USUAL
from rbd_ros.model.friction import direction, friction_terms
from rbd_ros.model.model import Model


def friction_regressor(model: Model, v: npt.ArrayLike, a: npt.ArrayLike | None = None, *,
                       columns: Sequence[str] = USUAL, smooth: float = 0.0) -> np.ndarray:
    """
    Return Y(v, a) whose product with the parameters of the drives is their torque.

    With every column but ``'rotor'``, that is `rbd_ros.friction_torques`.

    Parameters
    ----------
    model : Model
        The robot. Of its drives, only the Stribeck velocities are used.
    v : array_like, shape (model.nv,) or (states, model.nv)
        Velocity, rad/s or m/s, of one state or of several.
    a : array_like, of the shape of v, optional
        Acceleration, rad/s^2 or m/s^2; for the column ``'rotor'``.
    columns : sequence of str
        Which columns there are for each velocity, in this order: ``'viscous'``,
        ``'viscous_asymmetry'``, ``'coulomb'``, ``'coulomb_asymmetry'``, ``'stribeck'``,
        ``'offset'``, ``'rotor'``.
    smooth : float
        As for `rbd_ros.friction_torques`.

    Returns
    -------
    ndarray, shape (model.nv, nv * columns) or (states, model.nv, nv * columns)
        Columns in the order of `rbd_ros.model.drive_parameter_names`.

    Raises
    ------
    StateError
        If ``v`` or ``a`` has the wrong shape or a non-finite entry, ``smooth`` is negative,
        there is no such column, or ``a`` is missing for ``'rotor'``.

    """
    v, smooth = one_or_rows(model, 'v', v), number('smooth', smooth, 0.0)
    columns = check_columns(columns)
    terms = friction_terms(model, v, direction(v, smooth), v)
    if a is not None or 'rotor' in columns:
        terms['armature'] = one_or_rows(model, 'a', a)
        if terms['armature'].shape != v.shape:
            raise StateError(f"a has the shape {terms['armature'].shape}, v {v.shape}: they must "
                             'be of the same states')
    nv, count = model.nv, len(columns)
    Y = np.zeros((*v.shape, nv, count))
    joint = np.arange(nv)
    for k, one in enumerate(columns):
        Y[..., joint, joint, k] = terms[COLUMNS[one]]
    return Y.reshape(*v.shape, nv * count)
