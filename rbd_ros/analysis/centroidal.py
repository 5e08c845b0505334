# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The momentum of the whole robot, and the rates of its centre of mass's Jacobian."""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of


def com_jacobian_dot(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
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
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    References
    ----------
    The derivative of Garofalo et al. (7), 1/m sum P^T (G Jdot - ad_V^T G J).

    """
    return workspace_of(model).com_jacobian_dot(q, v)


def centroidal_momentum_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
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
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    The sum of Kim (23), (24) over all links; its linear rows are m J_CoM [Garofalo et al. (7)].

    """
    return workspace_of(model).centroidal_momentum_matrix(q).copy()


def centroidal_momentum_matrix_dot(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
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
        A a + Adot v is the moment about the centre of mass and the force that all of the robot's
        surroundings exert on it, the ground included, N m and N.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    References
    ----------
    The sum of Kim (28), (30) over all links.

    """
    return workspace_of(model).centroidal_momentum_matrix_dot(q, v)[1].copy()
