# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: regressors, and derivatives by inertial parameters."""

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import parameter_matrices, regressors
from rbd_ros.workspace import scratch
from rbd_ros.workspace.dynamics import is_body_form
from rbd_ros.workspace.results import Factorization, ParameterDerivatives
from rbd_ros.workspace.robot_arrays import RobotArrays


def torque_regressor(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
    """Return Y with Y pi = tau - armature a, for the parameters of every moving body."""
    Y = w._result(scratch.regressor)
    if not regressors.regressor_columns(w.robot, w._screws, q, v, a, w._kept(scratch.body_table),
                                        Y):
        w._explain(q=q, v=v, a=a)
    return Y


def slotine_li_regressor(w: RobotArrays, q: ArrayLike, v: ArrayLike, v_r: ArrayLike,
                         a_r: ArrayLike, *,
                         factorization: Factorization = 'christoffel') -> np.ndarray:
    """Return Y with Y pi = M a_r + C v_r + g - armature a_r."""
    Y, h = w._result(scratch.regressor), christoffel_share(factorization)
    if not regressors.slotine_li_columns(w.robot, w._screws, q, v, v_r, a_r,
                                         w._kept(scratch.body_table), h, Y):
        w._explain(q=q, v=v, v_r=v_r, a_r=a_r)
    return Y


def momentum_regressor(w: RobotArrays, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return Y with Y pi = M v - (armature) v."""
    Y = w._result(scratch.regressor)
    if not regressors.momentum_columns(w.robot, w._screws, q, v, w._kept(scratch.body_table), Y):
        w._explain(q=q, v=v)
    return Y


def energy_regressor(w: RobotArrays, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the rows whose products with pi are the kinetic and the potential energy."""
    rows = w._result(scratch.energy_rows)
    if not regressors.energy_columns(w.robot, w._screws, q, v, w._kept(scratch.body_table), rows):
        w._explain(q=q, v=v)
    return rows


def parameter_derivatives(
        w: RobotArrays, q: ArrayLike, v: ArrayLike, *,
        factorization: Factorization = 'christoffel') -> ParameterDerivatives:
    """Return the `ParameterDerivatives`."""
    M, C, g = w._result(scratch.matrices_by_parameters)
    h = christoffel_share(factorization)
    if not parameter_matrices.parameter_matrices(w.robot, w._screws, q, v,
                                                 w._kept(scratch.body_table), h, M, C, g):
        w._explain(q=q, v=v)
    return ParameterDerivatives(M, C, g)


def christoffel_share(factorization: Factorization) -> float:
    """Return h of the kernels: 1/2 for the Christoffel form of C, 0 for that of the body."""
    return 0.0 if is_body_form(factorization) else 0.5
