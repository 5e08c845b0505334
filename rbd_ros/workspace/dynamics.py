# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: inverse, forward and hybrid dynamics, and their matrices."""

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import articulated_bodies, composite_bodies, newton_euler
from rbd_ros.model.arguments import choice, split_motion, Wrenches
from rbd_ros.workspace import scratch
from rbd_ros.workspace.results import CHRISTOFFEL, DynamicsTerms, Factorization, FACTORIZATIONS
from rbd_ros.workspace.robot_arrays import RobotArrays


def is_body_form(factorization: Factorization) -> bool:
    """Return whether C is that of Garofalo et al., rather than that of Christoffel."""
    return choice('factorization', factorization, FACTORIZATIONS) != CHRISTOFFEL


# -- Mass and Coriolis matrix, gravity torques, centre of mass. ---------------------------------

def all_terms(w: RobotArrays, q: ArrayLike, v: ArrayLike,
              factorization: Factorization = 'christoffel') -> DynamicsTerms:
    """Compute the `DynamicsTerms`."""
    rows, terms = w._result(scratch.terms)
    _write_terms(w, q, v, factorization, rows)
    return terms


def _write_terms(w: RobotArrays, q: ArrayLike, v: ArrayLike, factorization: Factorization,
                 rows: np.ndarray) -> None:
    if not composite_bodies.composite_bodies(w.robot, w._screws, q, v, rows):
        w._explain(q=q, v=v)
    if factorization is not CHRISTOFFEL and is_body_form(factorization):
        composite_bodies.use_body_factorization(w.robot, rows)


def configuration_terms(w: RobotArrays, q: ArrayLike) -> DynamicsTerms:
    """Compute the `DynamicsTerms` that need no velocity; C and C v are left as they are."""
    rows, terms = w._kept(scratch.terms)
    if not composite_bodies.composite_bodies_at_rest(w.robot, w._screws, q, rows):
        w._explain(q=q)
    return terms


def mass_matrix(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return M."""
    M = w._result(scratch.square)
    if not composite_bodies.mass_matrix(w.robot, w._screws, q, M):
        w._explain(q=q)
    return M


def coriolis_matrix(w: RobotArrays, q: ArrayLike, v: ArrayLike,
                    factorization: Factorization = 'christoffel') -> np.ndarray:
    """Return C."""
    rows, terms = w._kept(scratch.terms)
    _write_terms(w, q, v, factorization, rows)
    return terms.C


# -- Inverse dynamics. --------------------------------------------------------------------------

def inverse_dynamics(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
    """Return tau."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return inverse_dynamics(w, q, v, a)
    if not newton_euler.newton_euler(w.robot, w._screws, q, v, a):
        w._explain(q=q, v=v, a=a)
    return w._tau


def inverse_dynamics_packed(w: RobotArrays, motion: ArrayLike) -> np.ndarray:
    """
    Compute inverse dynamics of q, v and a in one array, which Python passes on faster.

    Kim table 2, as `inverse_dynamics` does. Let q, v and a be views of the array.

    Parameters
    ----------
    w : RobotArrays
        The workspace.
    motion : array_like, shape (nq + 2 nv,)
        Position, velocity and acceleration, one behind the other, in the units of
        `rbd_ros.inverse_dynamics`.

    Returns
    -------
    ndarray, shape (nv,)
        Torques, N m or N; overwritten by the next call.

    Raises
    ------
    StateError
        If the array has another shape, or an entry that is not finite.

    """
    if not newton_euler.newton_euler_packed(w.robot, w._screws, motion):
        q, v, a = split_motion(w.model, motion)
        w._explain(q=q, v=v, a=a)
    return w._tau


def bias_torques(w: RobotArrays, q: ArrayLike, v: ArrayLike,
                 external_wrenches: Wrenches | None = None) -> np.ndarray:
    """Return C v + g - sum J^T f."""
    return inverse_dynamics(w, q, v, w._zeros, external_wrenches)


def gravity_torques(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return g."""
    if not newton_euler.newton_euler_at_rest(w.robot, w._screws, q):
        w._explain(q=q)
    return w._tau


# -- Forward and hybrid dynamics. ---------------------------------------------------------------

def forward_dynamics(w: RobotArrays, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
    """Return a."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return forward_dynamics(w, q, v, tau)
    if not articulated_bodies.articulated_bodies(w.robot, w._screws, q, v, w._a, tau):
        w._explain_accelerations(q, v, w._zeros, tau, w._kept(scratch.none_prescribed))
    return w._a


def hybrid_dynamics(
        w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
        prescribed: ArrayLike, *,
        external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a and tau, in new arrays."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return hybrid_dynamics(w, q, v, a, tau, prescribed)
    found = np.empty(w._nv), np.empty(w._nv)
    if not articulated_bodies.hybrid_dynamics(w.robot, w._screws, q, v, a, tau,
                                              w._mask(prescribed), *found):
        w._explain_accelerations(q, v, a, tau, prescribed)
    return found
