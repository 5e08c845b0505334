# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The momentum of the whole robot, and the rates of its centre of mass's Jacobian."""

import numpy as np
from rbd_ros.analysis.jacobians import check_state
from rbd_ros.kinematics import center_of_mass
from rbd_ros.model.se3 import Ad, ad, inverse, skew
from rbd_ros.textbook.sums_over_links import body_jacobian_rates, inertia_matrices, poses


def com_jacobian_dot(model, q, v):
    """
    Return the time derivative of `com_jacobian`.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.

    Returns
    -------
    ndarray, shape (3, model.nv)
        J a + Jdot v is the acceleration of the centre of mass in the root's frame, m/s^2; zeros
        for a robot without mass.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has another shape or holds a non-finite number.

    References
    ----------
    The derivative of Garofalo et al. (7), 1/m sum P^T (G Jdot - ad_V^T G J).

    """
    _, rate = _momentum_about_the_root(model, *check_state(model, q, v=v))
    return rate[3:] / model.mass if model.mass else np.zeros((3, model.nv))


def centroidal_momentum_matrix(model, q):
    """
    Return the matrix that takes v to the robot's momentum about its centre of mass.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.

    Returns
    -------
    ndarray, shape (6, model.nv)
        Angular first, in the axes of the root: kg m^2/s and kg m/s per rad/s or m/s.

    Raises
    ------
    StateError
        If ``q`` has another shape or holds a non-finite number.

    References
    ----------
    The sum of Kim (23), (24) over all links; its linear rows are m J_CoM [Garofalo et al. (7)].

    """
    q, = check_state(model, q)
    H, _ = _momentum_about_the_root(model, q, np.zeros(model.nv))
    H[:3] -= skew(center_of_mass(model, q)) @ H[3:]
    return H


def centroidal_momentum_matrix_dot(model, q, v):
    """
    Return the time derivative of `centroidal_momentum_matrix`.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.

    Returns
    -------
    ndarray, shape (6, model.nv)
        A a + Adot v is the moment about the centre of mass and the force that everything outside
        the robot exerts on it, the ground included, N m and N.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has another shape or holds a non-finite number.

    References
    ----------
    The sum of Kim (28), (30) over all links.

    """
    q, v = check_state(model, q, v=v)
    H, rate = _momentum_about_the_root(model, q, v)
    com_rate = H[3:] @ v / model.mass if model.mass else np.zeros(3)
    rate[:3] -= skew(center_of_mass(model, q)) @ rate[3:] + skew(com_rate) @ H[3:]
    return rate


def _momentum_about_the_root(model, q, v):
    """Return sum Ad_0k^-T G_k J_k and its rate, sum Ad_0k^-T (G Jdot - ad_V^T G J)."""
    H, rate = np.zeros((2, 6, model.nv))
    for T, G, J, J_rate in zip(poses(model, q), inertia_matrices(model),
                               *body_jacobian_rates(model, q, v)):
        to_root = Ad(inverse(T)).T
        H += to_root @ G @ J
        rate += to_root @ (G @ J_rate - ad(J @ v).T @ G @ J)
    return H, rate
