# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inverse, forward and hybrid dynamics, and the matrices of the equations of motion.

    tau = M(q) a + C(q, v) v + g(q) - sum_i J_i^T f_i

where f_i is the external force on link i.

"""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import number, one_or_rows, Wrenches
from rbd_ros.model.friction import direction, friction
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.results import DynamicsTerms, Factorization


def inverse_dynamics(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, *,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return the torques that produce the accelerations a.

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
        its axes.

    Returns
    -------
    ndarray, shape (model.nv,)
        N m for revolute, N for prismatic joints.

    Raises
    ------
    StateError
        If ``q``, ``v`` or ``a`` has the wrong shape or a non-finite entry.
    ModelError
        If a wrench names a link that is not there.

    References
    ----------
    Kim table 2; Lynch and Park (9.53)-(9.57); recursive Newton-Euler, O(n).

    """
    return workspace_of(model).inverse_dynamics(q, v, a, external_wrenches).copy()


def bias_torques(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
                 external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return the torques at zero acceleration, C v + g - sum J^T f.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes.

    Returns
    -------
    ndarray, shape (model.nv,)
        N m for revolute, N for prismatic joints.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.
    ModelError
        If a wrench names a link that is not there.

    References
    ----------
    Lynch and Park (9.1), b; recursive Newton-Euler, O(n).

    """
    return workspace_of(model).bias_torques(q, v, external_wrenches).copy()


def gravity_torques(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return g(q), the torques that hold the robot still.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.

    Returns
    -------
    ndarray, shape (model.nv,)
        N m for revolute, N for prismatic joints.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Lynch and Park (9.84); Garofalo et al. (6c); recursive Newton-Euler, O(n).

    """
    return workspace_of(model).gravity_torques(q).copy()


def forward_dynamics(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, *,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return the accelerations that the torques tau produce.

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
        its axes.

    Returns
    -------
    ndarray, shape (model.nv,)
        rad/s^2 or m/s^2.

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
    Kim table 3; articulated bodies, O(n). Where joints mimic others: Lynch and Park (9.2).

    """
    return workspace_of(model).forward_dynamics(q, v, tau, external_wrenches).copy()


def hybrid_dynamics(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                    tau: npt.ArrayLike, prescribed: npt.ArrayLike, *,
                    external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return all accelerations and torques, given one of the two for every joint.

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
    external_wrenches : mapping of str to array_like, optional
        External wrenches by link: the moment, N m, and force, N, that act on it at its origin, in
        its axes.

    Returns
    -------
    a : ndarray, shape (model.nv,)
        All accelerations, rad/s^2 or m/s^2.
    tau : ndarray, shape (model.nv,)
        All torques, N m or N.

    Raises
    ------
    StateError
        If ``q``, ``v``, ``a`` or ``tau`` has the wrong shape or a non-finite entry.
    ModelError
        If a wrench names a link that is not there.
    SingularError
        If a joint moves no inertia.

    References
    ----------
    Kim table 4; articulated bodies, O(n). Where joints mimic others: Kim (33).

    """
    return workspace_of(model).hybrid_dynamics(q, v, a, tau, prescribed,
                                               external_wrenches=external_wrenches)


def mass_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the joint-space mass matrix M(q).

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        Symmetric positive definite; kg m^2, kg m or kg by pair of joints.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Lynch and Park (9.61); Vlasblom (2.17); computed by composite bodies.

    """
    return workspace_of(model).mass_matrix(q)


def coriolis_matrix(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
                    factorization: Factorization = 'christoffel') -> np.ndarray:
    """
    Return the Coriolis matrix C(q, v), with dM/dt - 2 C skew.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    factorization : {'christoffel', 'body'}
        Which matrix: by Christoffel symbols, or by body twists as in Garofalo et al. C v is the
        same for both, and dM/dt - 2 C is skew for both.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        C v is in N m or N.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    References
    ----------
    Lynch and Park (9.87), Vlasblom (1.16); ``'body'``: Garofalo et al. (6b). By composite bodies.

    """
    return workspace_of(model).coriolis_matrix(q, v, factorization).copy()


def all_terms(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
              factorization: Factorization = 'christoffel') -> DynamicsTerms:
    """
    Return M, C, g, C v, the centre of mass and its Jacobian, in one pass.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    factorization : {'christoffel', 'body'}
        Which matrix: by Christoffel symbols, or by body twists as in Garofalo et al. C v is the
        same for both, and dM/dt - 2 C is skew for both.

    Returns
    -------
    DynamicsTerms
        With the fields ``M C g coriolis_torques com_jacobian com``.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    References
    ----------
    See `rbd_ros.kernels.composite_bodies`.

    """
    return workspace_of(model).all_terms(q, v, factorization)


def friction_torques(model: Model, v: npt.ArrayLike, *, smooth: float = 0.0) -> np.ndarray:
    """
    Return the torques of friction in the joints, which motors must exert in addition.

    Parameters
    ----------
    model : Model
        The robot, with its ``damping``, ``damping_asymmetry``, ``friction``,
        ``friction_asymmetry``, ``stribeck_friction``, ``stribeck_velocity`` and
        ``effort_offset``.
    v : array_like, shape (model.nv,) or (states, model.nv)
        Velocity, rad/s or m/s, of one state or of several.
    smooth : float
        Speed at which Coulomb friction has risen to three quarters, rad/s or m/s: s is
        tanh(v / smooth). 0: s is sign(v).

    Returns
    -------
    ndarray, of the shape of v
        damping v + damping_asymmetry abs(v) + (friction + stribeck_friction
        exp(-(v / stribeck_velocity)^2)) s + friction_asymmetry abs(s) + effort_offset, N m or N.

    Raises
    ------
    StateError
        If ``v`` has the wrong shape or a non-finite entry, or ``smooth`` is negative.

    """
    v, smooth = one_or_rows(model, 'v', v), number('smooth', smooth, 0.0)
    return friction(model, v, direction(v, smooth), v)
