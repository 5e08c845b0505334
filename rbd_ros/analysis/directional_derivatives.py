# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics by any scalar p, in O(n).

`rbd_ros.kernels.directional_derivatives` explains the recursions;
`rbd_ros.textbook.directional_tables` has the tables of Kim as they are printed.

"""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.variation import check_variation, Variation


def inverse_dynamics_derivative(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                                variation: Variation, *,
                                external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return d tau / dp, where the torques tau produce the accelerations a.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    a : array_like, shape (model.nv,)
        Acceleration, rad/s^2 or m/s^2.
    variation : Variation
        What changes with p; its ``dtau`` is not read.
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes.

    Returns
    -------
    ndarray, shape (model.nv,)
        N m or N, per unit of p.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry.
    ModelError
        If a link or joint is named that is not there.

    References
    ----------
    Kim table 5 and (64).

    """
    check_variation(variation)
    return workspace_of(model).inverse_dynamics_derivative(
        q, v, a, variation, external_wrenches=external_wrenches).copy()


def forward_dynamics_derivative(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                                tau: npt.ArrayLike, variation: Variation, *,
                                external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return d a / dp, where a are the accelerations that the torques tau produce.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    tau : array_like, shape (model.nv,)
        N m for revolute, N for prismatic joints.
    variation : Variation
        What changes with p; its ``da`` is not read.
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes.

    Returns
    -------
    ndarray, shape (model.nv,)
        rad/s^2 or m/s^2, per unit of p.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry.
    ModelError
        If a link or joint is named that is not there.
    SingularError
        If a joint moves no inertia.

    References
    ----------
    Kim table 6 and (64). Where joints mimic others: Kim (33), differentiated.

    """
    check_variation(variation)
    return workspace_of(model).forward_dynamics_derivative(
        q, v, tau, variation, external_wrenches=external_wrenches).copy()


def hybrid_dynamics_derivative(
        model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
        prescribed: npt.ArrayLike, variation: Variation, *,
        external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return d a / dp and d tau / dp, given one of the two for every joint.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    a : array_like, shape (model.nv,)
        Acceleration where it is prescribed, rad/s^2 or m/s^2; other entries are ignored.
    tau : array_like, shape (model.nv,)
        Torque where none is prescribed, N m or N; other entries are ignored.
    prescribed : array_like of bool, shape (model.nv,)
        True where the acceleration is given, False where the torque is.
    variation : Variation
        What changes with p; ``da`` is read where ``prescribed`` is True, ``dtau`` elsewhere.
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes.

    Returns
    -------
    da : ndarray, shape (model.nv,)
        rad/s^2 or m/s^2, per unit of p.
    dtau : ndarray, shape (model.nv,)
        N m or N, per unit of p.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry.
    ModelError
        If a link or joint is named that is not there.
    SingularError
        If a joint moves no inertia.

    References
    ----------
    Kim table 7 and (64). Where joints mimic others: Kim (33), differentiated.

    """
    check_variation(variation)
    da, dtau = workspace_of(model).hybrid_dynamics_derivative(
        q, v, a, tau, prescribed, variation, external_wrenches=external_wrenches)
    return da.copy(), dtau.copy()
