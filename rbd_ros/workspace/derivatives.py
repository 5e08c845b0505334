# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: derivatives by state, input and time."""

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import composite_body_rates, matrix_derivatives, newton_euler_derivatives
from rbd_ros.model.arguments import Wrenches
from rbd_ros.workspace import scratch
from rbd_ros.workspace.dynamics import is_body_form
from rbd_ros.workspace.results import Derivatives, Factorization, MatricesDot
from rbd_ros.workspace.robot_arrays import RobotArrays


# -- By position, velocity and input. -----------------------------------------------------------

def inverse_dynamics_derivatives(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                 external_wrenches: Wrenches | None = None) -> Derivatives:
    """Return the `Derivatives` of tau; by_input is M."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return inverse_dynamics_derivatives(w, q, v, a)
    rows, derivatives = w._result(scratch.torque_derivatives)
    if not newton_euler_derivatives.inverse_dynamics_derivatives(w.robot, w._screws, q, v, a,
                                                                 rows):
        w._explain(q=q, v=v, a=a)
    return derivatives


def forward_dynamics_derivatives(w: RobotArrays, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 external_wrenches: Wrenches | None = None) -> Derivatives:
    """Return the `Derivatives` of a; by_input is the inverse of M."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return forward_dynamics_derivatives(w, q, v, tau)
    X, lanes, derivatives = w._result(scratch.unknown_derivatives)
    if not newton_euler_derivatives.forward_dynamics_and_derivatives(
            w.robot, w._screws, q, v, w._a, tau,
            *w._kept(scratch.derivatives_and_factor), X, lanes):
        w._explain_accelerations(q, v, w._zeros, tau, w._kept(scratch.none_prescribed))
    return derivatives


def hybrid_dynamics_derivatives(
        w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
        prescribed: ArrayLike, *, external_wrenches: Wrenches | None = None
        ) -> tuple[Derivatives, np.ndarray, np.ndarray]:
    """Return the `Derivatives` of the unknown torques and accelerations, and a and tau."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return hybrid_dynamics_derivatives(w, q, v, a, tau, prescribed)
    X, lanes, derivatives = w._result(scratch.unknown_derivatives)
    found = np.empty(w._nv), np.empty(w._nv)
    if not newton_euler_derivatives.hybrid_dynamics_and_derivatives(
            w.robot, w._screws, q, v, a, tau, w._mask(prescribed), *found,
            *w._kept(scratch.derivatives_and_factor), X, lanes):
        w._explain_accelerations(q, v, a, tau, prescribed)
    return derivatives, *found


# -- Of M, C and g. -----------------------------------------------------------------------------

def mass_matrix_derivatives(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return the derivatives of M by the coordinates, shape (nv, nv, nv)."""
    D = w._result(scratch.cube)
    if not matrix_derivatives.mass_matrix_derivatives(w.robot, w._screws, q, D):
        w._explain(q=q)
    return D.transpose(1, 2, 0)


def coriolis_matrix_derivatives(
        w: RobotArrays, q: ArrayLike, v: ArrayLike, *,
        factorization: Factorization = 'christoffel') -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of C by the coordinates and by the velocities."""
    skew = 1 if is_body_form(factorization) else None
    by_q, by_v = w._result(scratch.cubes)
    if not matrix_derivatives.coriolis_matrix_derivatives(w.robot, w._screws, q, v, skew, by_q,
                                                          by_v):
        w._explain(q=q, v=v)
    return by_q.transpose(1, 2, 0), by_v.transpose(1, 2, 0)


def write_rates(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                factorization: Factorization, rows: np.ndarray) -> None:
    """Write C and the rates of C and g."""
    body_form = is_body_form(factorization)
    if not composite_body_rates.composite_rates(w.robot, w._screws, q, v, a, rows):
        w._explain(q=q, v=v, a=a)
    if body_form:
        matrix_derivatives.add_factorization_rate(w.robot, rows)


def matrices_dot(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike, *,
                 factorization: Factorization = 'christoffel') -> MatricesDot:
    """Return the `MatricesDot`."""
    n, rows = w._nv, w._result(scratch.matrix_rates)
    write_rates(w, q, v, a, factorization, rows)
    C = rows[:n]
    return MatricesDot(C + C.T, rows[n:2 * n], rows[2 * n])
