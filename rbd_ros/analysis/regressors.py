# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Torques, momentum and energy as matrices times the inertial parameters pi of the moving bodies.

    Y(q, v, a) pi = tau - (armature) a

with pi and its order as in `inertial_parameters`. Rotor inertias are not among the parameters, so
their torques are subtracted first; so are those of external wrenches and friction.

"""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import ad, skew
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.results import Factorization


def twist_regressor(V: np.ndarray) -> np.ndarray:
    """
    Return A(V) with A(V) pi = G V [Garofalo et al. (8)-(12)].

    Parameters
    ----------
    V : ndarray, shape (6,)
        A twist or an acceleration, angular first.

    Returns
    -------
    ndarray, shape (6, 10)
        [0, -[v], bar(omega); v, [omega], 0].

    """
    (x, y, z), v = V[:3], V[3:]
    A = np.zeros((6, 10))
    A[:3, 1:4] = -skew(v)
    A[:3, 4:] = [[x, 0.0, 0.0, y, z, 0.0], [0.0, y, 0.0, x, 0.0, z], [0.0, 0.0, z, 0.0, x, y]]
    A[3:, 0] = v
    A[3:, 1:4] = skew(V[:3])
    return A


def link_regressor(J: np.ndarray, J_rate: np.ndarray, gravity: np.ndarray, v: np.ndarray,
                   v_r: np.ndarray, a_r: np.ndarray,
                   factorization: Factorization = 'christoffel') -> np.ndarray:
    """
    Return the columns of the Slotine-Li regressor for a body that moves with a link.

    Parameters
    ----------
    J, J_rate : ndarray, shape (6, nv)
        Body Jacobian of the link and its rate of change.
    gravity : ndarray, shape (3,)
        Acceleration of gravity in the link's axes, m/s^2.
    v, v_r, a_r : ndarray, shape (nv,)
        As for `slotine_li_regressor`.
    factorization : {'christoffel', 'body'}
        As for `slotine_li_regressor`.

    Returns
    -------
    ndarray, shape (nv, 10)
        J^T (A(alpha) - ad_V^T A(J v_r)), alpha = J a_r + ad_V J v_r + Jdot v_r + (0, -gravity),
        for ``'body'`` [G (15), (16)]. For ``'christoffel'`` the terms with ad_V are halved and
        -1/2 ad_{J v_r}^T A(V) is added.

    """
    V, V_r = J @ v, J @ v_r
    alpha = J @ a_r + J_rate @ v_r
    alpha[3:] -= gravity
    if factorization == 'body':
        return J.T @ (twist_regressor(alpha + ad(V) @ V_r) - ad(V).T @ twist_regressor(V_r))
    return J.T @ (twist_regressor(alpha + 0.5 * ad(V) @ V_r)
                  - 0.5 * ad(V).T @ twist_regressor(V_r) - 0.5 * ad(V_r).T @ twist_regressor(V))


def torque_regressor(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                     a: npt.ArrayLike) -> np.ndarray:
    """
    Return Y(q, v, a) with Y pi = tau - (armature) a.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    a : array_like, shape (model.nv,)
        Acceleration, rad/s^2 or m/s^2.

    Returns
    -------
    ndarray, shape (model.nv, 10 * bodies)
        Columns in the order of `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    StateError
        If ``q``, ``v`` or ``a`` has the wrong shape or a non-finite entry.

    References
    ----------
    Garofalo et al. (15), (16) with v_r = v and a_r = a; computed by `rbd_ros.kernels.regressors`.

    """
    return workspace_of(model).torque_regressor(q, v, a)


def slotine_li_regressor(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, v_r: npt.ArrayLike,
                         a_r: npt.ArrayLike, *,
                         factorization: Factorization = 'christoffel') -> np.ndarray:
    """
    Return Y with Y pi = M a_r + C v_r + g - (armature) a_r, for adaptive control.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v, v_r : array_like, shape (model.nv,)
        Velocity, of which C is a function, and reference velocity, rad/s or m/s.
    a_r : array_like, shape (model.nv,)
        Reference acceleration, rad/s^2 or m/s^2.
    factorization : {'christoffel', 'body'}
        Which Coriolis matrix, as for `rbd_ros.coriolis_matrix`; they differ where v_r is not v.

    Returns
    -------
    ndarray, shape (model.nv, 10 * bodies)
        Columns in the order of `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry, or there is no such
        factorization.

    References
    ----------
    Garofalo et al. (15), (16); computed by `rbd_ros.kernels.regressors`.

    """
    return workspace_of(model).slotine_li_regressor(q, v, v_r, a_r, factorization=factorization)


def momentum_regressor(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """
    Return Y with Y pi = M v - (armature) v, the generalized momentum.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.

    Returns
    -------
    ndarray, shape (model.nv, 10 * bodies)
        Columns in the order of `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    References
    ----------
    Garofalo et al. (6a) with (8).

    """
    return workspace_of(model).momentum_regressor(q, v)


def energy_regressor(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """
    Return the rows whose products with pi are the kinetic and the potential energy.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.

    Returns
    -------
    ndarray, shape (2, 10 * bodies)
        Kinetic energy without that of the rotors, and potential energy of the moving bodies, zero
        at the origin of the root; both in J. Columns in the order of
        `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    References
    ----------
    Lynch and Park (9.41) for the kinetic energy, 1/2 V^T G V, with Garofalo et al. (8).

    """
    return workspace_of(model).energy_regressor(q, v)
