# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
All derivatives of inverse, forward and hybrid dynamics by position, velocity and input.

Derivatives by any other scalar (a mass, a placement, a wrench ...) and in one direction only are
in `rbd_ros.analysis.directional_derivatives`.

"""

import numpy.typing as npt
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.results import Derivatives


def inverse_dynamics_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                                 a: npt.ArrayLike, *,
                                 external_wrenches: Wrenches | None = None) -> Derivatives:
    """
    Return the derivatives of the torques by q, v and a.

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
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes, with which they turn.

    Returns
    -------
    Derivatives
        Of tau; ``by_input`` is the mass matrix.

    Raises
    ------
    StateError
        If ``q``, ``v`` or ``a`` has the wrong shape or a non-finite entry.
    ModelError
        If a wrench names a link that is not there.

    References
    ----------
    Kim table 5, for all directions at once; O(n depth).

    """
    return workspace_of(model).inverse_dynamics_derivatives(q, v, a, external_wrenches)


def forward_dynamics_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                                 tau: npt.ArrayLike, *,
                                 external_wrenches: Wrenches | None = None) -> Derivatives:
    """
    Return the derivatives of the accelerations by q, v and tau.

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
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes, with which they turn.

    Returns
    -------
    Derivatives
        Of a; ``by_input`` is the inverse of the mass matrix.

    Raises
    ------
    StateError
        If ``q``, ``v`` or ``tau`` has the wrong shape or a non-finite entry.
    ModelError
        If a wrench names a link that is not there.
    SingularError
        If a joint moves no inertia.

    References
    ----------
    Kim table 6, for all directions at once.

    """
    return workspace_of(model).forward_dynamics_derivatives(q, v, tau, external_wrenches)


def hybrid_dynamics_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                                tau: npt.ArrayLike, prescribed: npt.ArrayLike, *,
                                external_wrenches: Wrenches | None = None) -> Derivatives:
    """
    Return the derivatives of the unknown torques and accelerations by q, v and what is given.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    a, tau : array_like, shape (model.nv,)
        Accelerations and torques; the entries that are not given are ignored.
    prescribed : array_like of bool, shape (model.nv,)
        For each velocity, whether its acceleration is given (true) or its torque (false).
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes, with which they turn.

    Returns
    -------
    Derivatives
        Row k is of ``tau[k]`` where ``prescribed[k]``, of ``a[k]`` elsewhere; column k of
        ``by_input`` is by the other of the two.

    Raises
    ------
    StateError
        If an argument has the wrong shape or a non-finite entry.
    ModelError
        If a wrench names a link that is not there.
    SingularError
        If a joint whose torque is given moves no inertia.

    References
    ----------
    Kim (33) and table 7, for all directions at once.

    """
    return workspace_of(model).hybrid_dynamics_derivatives(
        q, v, a, tau, prescribed, external_wrenches=external_wrenches)[0]
