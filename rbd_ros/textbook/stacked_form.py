# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of all links stacked into matrices [L (9.62)-(9.84)], for trees and all joints.

Body i = 1..N is link i of the model; the root is Lynch and Park's {0}. Gamma has A_i in block
(i, parent of i), L = (1 - Gamma)^-1; A has S_i, and G the inertias G_i, on the diagonal.
Corrected: the sign of ad in (9.73), (9.78) and (9.83), the base in (9.83), and dS/dt, which is not
zero where S depends on q. All functions raise StateError if an argument is invalid.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import finite_vector, Wrenches, wrenches
from rbd_ros.model.changes.inertial import inertia_matrices
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, ad, inverse
from rbd_ros.textbook.screw_chains import six
from rbd_ros.textbook.sums_over_links import check_state, each_joint, tree_coordinates


class StackedMatrices(NamedTuple):
    """The matrices of the stacked equations, see `stacked_matrices`."""

    Gamma: np.ndarray   # (6 N, 6 N): Ad(T)^-1 of link i in block (i, parent of i) [L (9.68)]
    # (6 N, 6 N): (1 - Gamma)^-1; block (i, j) maps twists of link j to link i below it [L (9.76)].
    L: np.ndarray
    A: np.ndarray       # (6 N, nv): motion subspaces of the joints [L (9.64)]
    A_rate: np.ndarray  # their rates
    G: np.ndarray   # (6 N, 6 N): inertias of the links [L (9.65)]
    base: np.ndarray    # (6 N, 6): maps twists of the root to its child links [L (9.69), (9.70)]


class StackedDynamics(NamedTuple):
    """Motion, transmitted wrenches and torques, see `stacked_inverse_dynamics`."""

    # (N, 6): twists, and the derivatives of their components relative to free fall, that is, with
    # minus gravity in the linear part.
    V: np.ndarray
    V_rate: np.ndarray
    F: np.ndarray   # (N, 6): wrenches transmitted by the joints to the links, moment first
    tau: np.ndarray     # (nv,)


class StackedTerms(NamedTuple):
    """Mass matrix, Coriolis matrix and gravity torques, see `stacked_terms`."""

    # (nv, nv): C is the matrix in (9.83): C v is the Coriolis torque, but dM/dt - 2 C is not skew.
    M: np.ndarray
    C: np.ndarray
    g: np.ndarray   # (nv,): torques that hold the robot still


def stacked_matrices(model: Model, q: npt.ArrayLike,
                     v: npt.ArrayLike | None = None) -> StackedMatrices:
    """
    Return the matrices of the stacked equations [L (9.64), (9.65), (9.68), (9.76)].

    Parameters
    ----------
    model, q, v
        Robot with N links besides the root; configuration (nq,), rad and m; velocity (nv,), rad/s
        and m/s, on which A_rate depends; default: at rest.

    """
    q, = check_state(model, q)
    v = np.zeros(model.nv) if v is None else finite_vector(model, 'v', v)
    q, v = tree_coordinates(model, q, v)
    N = len(model.links) - 1
    Gamma, base = np.zeros((6 * N, 6 * N)), np.zeros((6 * N, 6))
    A, A_rate = np.zeros((2, 6 * N, len(v)))
    for k, (_, _, parent, T, columns, S, S_rate) in enumerate(each_joint(model, q, v), 1):
        rows = slice(6 * k - 6, 6 * k)
        if parent:
            Gamma[rows, 6 * parent - 6:6 * parent] = Ad(inverse(T))
        else:
            base[rows] = Ad(inverse(T))
        A[rows, columns], A_rate[rows, columns] = S, S_rate
    A, A_rate = A @ model.coordinates.G, A_rate @ model.coordinates.G
    G = _block_diagonal(inertia_matrices(model)[1:])
    return StackedMatrices(Gamma, np.linalg.inv(np.eye(6 * N) - Gamma), A, A_rate, G, base)


def stacked_inverse_dynamics(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, *,
                             base_twist: npt.ArrayLike | None = None,
                             base_acceleration: npt.ArrayLike | None = None,
                             external_wrenches: Wrenches | None = None) -> StackedDynamics:
    """
    Return twists, accelerations, transmitted wrenches and torques by the stacked equations.

    Reference: Lynch and Park (9.62), (9.63), (9.66), (9.67), (9.69)-(9.75), (9.77)-(9.80).

    Parameters
    ----------
    model, q, v, a
        Robot; configuration (nq,), rad and m; velocity and acceleration (nv,), per s and s^2.
    base_twist, base_acceleration : array_like, shape (6,), optional
        V_0 of the root link in its own axes, rad/s and m/s, and the derivative of its components;
        default: at rest. Gravity, in the current axes of the root, is added.
    external_wrenches : dict of str to array_like of shape (6,), optional
        Wrenches on links, at their origins and in their axes, moment first, N m and N. Lynch and
        Park's F_tip is exerted by the robot: minus the wrench on the last link.

    Returns
    -------
    StackedDynamics
        tau includes the torques of the armature.

    """
    q, v, a = check_state(model, q, v=v, a=a)
    Gamma, L, A, A_rate, G, base = stacked_matrices(model, q, v)
    V_base = base @ six('base_twist', base_twist)
    lift = np.concatenate((np.zeros(3), -model.gravity))
    V_rate_base = base @ (six('base_acceleration', base_acceleration) + lift)
    V = L @ (A @ v + V_base)                                                     # L (9.77)
    V_rate = L @ (A @ a + A_rate @ v - _stacked_ad(A @ v) @ (Gamma @ V + V_base)
                  + V_rate_base)                                                 # L (9.78)
    F_out = np.zeros_like(V)
    for k, wrench in wrenches(model, external_wrenches).items():
        if k:
            F_out[6 * k - 6:6 * k] -= wrench
    F = L.T @ (G @ V_rate - _stacked_ad(V).T @ G @ V + F_out)                    # L (9.79)
    tau = A.T @ F + model.armature * a                                           # L (9.80)
    return StackedDynamics(V.reshape(-1, 6), V_rate.reshape(-1, 6), F.reshape(-1, 6), tau)


def stacked_terms(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> StackedTerms:
    """Return M, C and g, root at rest [L (9.82)-(9.84)]; arguments as for `stacked_matrices`."""
    q, v = check_state(model, q, v=v)
    Gamma, L, A, A_rate, G, base = stacked_matrices(model, q, v)
    to_torques = A.T @ L.T
    ad_V, ad_Av = _stacked_ad(L @ A @ v), _stacked_ad(A @ v)
    M = to_torques @ G @ L @ A + np.diag(model.armature)                         # L (9.82)
    C = to_torques @ (G @ L @ A_rate
                      - (G @ L @ ad_Av @ Gamma + ad_V.T @ G) @ L @ A)            # L (9.83)
    g = to_torques @ G @ L @ base @ np.concatenate((np.zeros(3), -model.gravity))    # L (9.84)
    return StackedTerms(M, C, g)


def _stacked_ad(V: np.ndarray) -> np.ndarray:
    """Return the block-diagonal matrix of ad of stacked twists [L (9.66), (9.67)]."""
    return _block_diagonal(np.array([ad(V_i) for V_i in V.reshape(-1, 6)]).reshape(-1, 6, 6))


def _block_diagonal(blocks: np.ndarray) -> np.ndarray:
    size = 6 * len(blocks)
    return np.einsum('ij,iab->iajb', np.eye(len(blocks)), blocks).reshape(size, size)
