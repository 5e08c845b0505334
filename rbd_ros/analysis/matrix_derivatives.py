# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The matrices M, C and g differentiated by state, by time and by inertial parameters.

Garofalo et al., propositions 2, 5 and 6, as sums over links with the Jacobians of
`textbook.jacobian_recursions`, for both factorizations of C: B(V) is `coriolis_factor`, linear in
the twist V and in the inertia G. Where joints mimic others, everything is by the coordinates of
the model.

"""

from typing import NamedTuple

import numpy as np
from rbd_ros.analysis.jacobians import check_state
from rbd_ros.dynamics import forward_dynamics, mass_matrix
from rbd_ros.model.inertial import inertia_of_parameters
from rbd_ros.model.se3 import Ad, ad, inverse
from rbd_ros.textbook.jacobian_recursions import (body_jacobian_derivatives,
                                                  body_jacobian_rate_derivatives,
                                                  body_jacobian_second_rates)
from rbd_ros.textbook.sums_over_links import (body_jacobian_rates, coriolis_factor,
                                              inertia_matrices, poses)


class MatrixRates(NamedTuple):
    """
    What `matrix_rates` computes.

    Attributes
    ----------
    M, C : ndarray, shape (nv, nv)
        dM/dt and dC/dt.
    g : ndarray, shape (nv,)
        dg/dt, N m/s or N/s.

    """

    M: np.ndarray
    C: np.ndarray
    g: np.ndarray


class ParameterDerivatives(NamedTuple):
    """
    What `parameter_derivatives` computes.

    ``M[k, p]`` is the derivative of M by parameter p of link k, of the ten parameters m, m cx,
    m cy, m cz, Ixx, Iyy, Izz, Ixy, Ixz, Iyz; the moments are about the origin of the link's frame.

    Attributes
    ----------
    M, C : ndarray, shape (links, 10, nv, nv)
        In the order of ``model.link_names``.
    g : ndarray, shape (links, 10, nv)
        Likewise.

    """

    M: np.ndarray
    C: np.ndarray
    g: np.ndarray


def _gravity(model, q):
    """Return Ad_0k^-1 a_0 of every link, with a_0 minus gravity."""
    a_0 = np.concatenate((np.zeros(3), -model.gravity))
    return np.array([Ad(inverse(T)) @ a_0 for T in poses(model, q)])


def mass_matrix_derivatives(model, q):
    """
    Return the derivatives of the mass matrix by the coordinates.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.

    Returns
    -------
    ndarray, shape (model.nv, model.nv, model.nv)
        ``dM[h]`` is that of M by coordinate h, per rad or m; along the direction of v_h for ball
        and free joints.

    Raises
    ------
    StateError
        If ``q`` has another shape or holds a non-finite number.

    References
    ----------
    Vlasblom (1.14), (2.22), summed over all bodies; Garofalo et al. (24a).

    """
    J, dJ = body_jacobian_derivatives(model, *check_state(model, q))
    half = np.einsum('khai,kaj->hij', dJ, inertia_matrices(model) @ J)
    return half + half.transpose(0, 2, 1)


def coriolis_matrix_derivatives(model, q, v, *, factorization='christoffel'):
    """
    Return the derivatives of the Coriolis matrix by coordinates and by velocities.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    factorization : {'christoffel', 'body'}
        As for `coriolis_matrix`.

    Returns
    -------
    by_q, by_v : ndarray, shape (model.nv, model.nv, model.nv)
        Entry h is the derivative by coordinate h, with v held, or by v_h. Along the direction of
        v_h for ball and free joints.

    Raises
    ------
    StateError
        If a vector has another shape or holds a non-finite number, or the factorization is not
        one of the two.

    References
    ----------
    Garofalo et al. (24b), (24c), with dS/dq.

    """
    q, v = check_state(model, q, v=v)
    by_q, by_v = np.zeros((2, model.nv, model.nv, model.nv))
    for G, J, J_rate, dJ, dJ_rate in zip(inertia_matrices(model),
                                         *body_jacobian_rate_derivatives(model, q, v)):
        B = coriolis_factor(G, J @ v, factorization)
        for h in range(model.nv):
            B_q = coriolis_factor(G, dJ[h] @ v, factorization)
            B_v = coriolis_factor(G, J[:, h], factorization)
            by_q[h] += (dJ[h].T @ (B @ J + G @ J_rate)
                        + J.T @ (B_q @ J + B @ dJ[h] + G @ dJ_rate[h]))          # G (24b)
            by_v[h] += J.T @ (B_v @ J + G @ dJ[h])                               # G (24c)
    return by_q, by_v


def gravity_torques_derivatives(model, q):
    """
    Return the derivatives of the gravity torques by the coordinates.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        Column h is the derivative by coordinate h, N m or N per rad or m; along the direction of
        v_h for ball and free joints. Symmetric where v = dq/dt.

    Raises
    ------
    StateError
        If ``q`` has another shape or holds a non-finite number.

    References
    ----------
    Garofalo et al. (24d).

    """
    q, = check_state(model, q)
    dg = np.zeros((model.nv, model.nv))
    for G, a, J, dJ in zip(inertia_matrices(model), _gravity(model, q),
                           *body_jacobian_derivatives(model, q)):
        for h in range(model.nv):
            dg[:, h] += dJ[h].T @ G @ a - J.T @ G @ ad(J[:, h]) @ a
    return dg


def matrix_rates(model, q, v, a, *, factorization='christoffel'):
    """
    Return the time derivatives of M, C and g.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    a : array_like, shape (model.nv,)
        Acceleration, rad/s^2 and m/s^2.
    factorization : {'christoffel', 'body'}
        As for `coriolis_matrix`.

    Returns
    -------
    MatrixRates
        dM/dt, dC/dt and dg/dt.

    Raises
    ------
    StateError
        If a vector has another shape or holds a non-finite number, or the factorization is not
        one of the two.

    References
    ----------
    Garofalo et al. (25), with Jddot and the rate of Psi where (25b) has lost their dots.

    """
    q, v, a = check_state(model, q, v=v, a=a)
    M, C = np.zeros((2, model.nv, model.nv))
    g = np.zeros(model.nv)
    for G, a_0, J, J_rate, J_second in zip(inertia_matrices(model), _gravity(model, q),
                                           *body_jacobian_second_rates(model, q, v, a)):
        V, V_rate = J @ v, J @ a + J_rate @ v
        B = coriolis_factor(G, V, factorization)
        B_rate = coriolis_factor(G, V_rate, factorization)
        half = J_rate.T @ G @ J
        M += half + half.T                                                       # G (25a)
        C += (J_rate.T @ (B @ J + G @ J_rate)
              + J.T @ (B_rate @ J + B @ J_rate + G @ J_second))                  # G (25b)
        g += (J_rate.T @ G - J.T @ G @ ad(V)) @ a_0                              # G (25c)
    return MatrixRates(M, C, g)


def inertia_basis():
    """Return how the 6x6 inertia of a link depends on its ten parameters, shape (10, 6, 6)."""
    return np.array([inertia_of_parameters(unit) for unit in np.eye(10)])


def parameter_derivatives(model, q, v, *, factorization='christoffel'):
    """
    Return the derivatives of M, C and g by the ten inertial parameters of every link.

    M, C and g are linear in them: they are the sums of these, each times its parameter, and for M
    the armature.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    factorization : {'christoffel', 'body'}
        As for `coriolis_matrix`.

    Returns
    -------
    ParameterDerivatives
        dM/dpi, dC/dpi and dg/dpi.

    Raises
    ------
    StateError
        If a vector has another shape or holds a non-finite number, or the factorization is not
        one of the two.

    References
    ----------
    Garofalo et al. (13), with Jdot where (13b) has lost its dot.

    """
    q, v = check_state(model, q, v=v)
    M, C = np.zeros((2, len(model.links), 10, model.nv, model.nv))
    g = np.zeros((len(model.links), 10, model.nv))
    basis = inertia_basis()
    J, J_rate = body_jacobian_rates(model, q, v)
    for k, a_0 in enumerate(_gravity(model, q)):
        for p, G in enumerate(basis):
            B = coriolis_factor(G, J[k] @ v, factorization)
            M[k, p] = J[k].T @ G @ J[k]                                          # G (13a)
            C[k, p] = J[k].T @ (B @ J[k] + G @ J_rate[k])                        # G (13b)
            g[k, p] = J[k].T @ G @ a_0                                           # G (13c)
    return ParameterDerivatives(M, C, g)


def acceleration_parameter_derivatives(model, q, v, tau, *, external_wrenches=None):
    """
    Return the derivatives of the accelerations by the inertial parameters of every link.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    tau : array_like, shape (model.nv,)
        Torques, N m or N.
    external_wrenches : dict of str to array_like of shape (6,), optional
        As for `forward_dynamics`.

    Returns
    -------
    ndarray, shape (links, 10, model.nv)
        Entry k, p is that of the acceleration by parameter p of link k, in the order of
        `ParameterDerivatives`.

    Raises
    ------
    StateError
        If a vector has another shape or holds a non-finite number.
    SingularError
        If a joint moves no inertia.

    References
    ----------
    -M^-1 Y, Y with the columns dM/dpi a + dC/dpi v + dg/dpi.

    """
    q, v, tau = check_state(model, q, v=v, tau=tau)
    a = forward_dynamics(model, q, v, tau, external_wrenches=external_wrenches)
    dM, dC, dg = parameter_derivatives(model, q, v)
    Y = dM @ a + dC @ v + dg
    return -np.linalg.solve(mass_matrix(model, q), Y.reshape(-1, model.nv).T).T.reshape(Y.shape)
