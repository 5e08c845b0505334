# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The matrices M, C and g differentiated by state, by time and by inertial parameters.

Garofalo et al., propositions 2, 5 and 6, for both factorizations of C. The index of the coordinate
or parameter is the last. Where joints mimic others, everything is by the coordinates of the model.

"""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.results import Factorization, MatricesDot, ParameterDerivatives

__all__ = ['acceleration_parameter_derivatives', 'coriolis_matrix_derivatives',
           'gravity_torques_derivatives', 'mass_matrix_derivatives', 'matrices_dot', 'MatricesDot',
           'parameter_derivatives', 'ParameterDerivatives']


def mass_matrix_derivatives(model: Model, q: npt.ArrayLike) -> np.ndarray:
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
        ``dM[:, :, h]`` is that of M by coordinate h, per rad or m; along the direction of v_h for
        ball and free joints.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Vlasblom (1.14), (2.22), summed over all bodies; Garofalo et al. (24a).

    """
    return workspace_of(model).mass_matrix_derivatives(q)


def coriolis_matrix_derivatives(
        model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
        factorization: Factorization = 'christoffel') -> tuple[np.ndarray, np.ndarray]:
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
        Entry h of the last axis is the derivative by coordinate h, with v held, or by v_h. Along
        the direction of v_h for ball and free joints.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry, or the factorization is not
        one of the two.

    References
    ----------
    Garofalo et al. (24b), (24c), with dS/dq.

    """
    return workspace_of(model).coriolis_matrix_derivatives(q, v, factorization=factorization)


def gravity_torques_derivatives(model: Model, q: npt.ArrayLike) -> np.ndarray:
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
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Garofalo et al. (24d).

    """
    return workspace_of(model).gravity_torques_derivatives(q)


def matrices_dot(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, *,
                 factorization: Factorization = 'christoffel') -> MatricesDot:
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
    MatricesDot
        dM/dt, dC/dt and dg/dt.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry, or the factorization is not
        one of the two.

    References
    ----------
    Garofalo et al. (25), with Jddot and the rate of Psi where (25b) has lost their dots.

    """
    return workspace_of(model).matrices_dot(q, v, a, factorization=factorization)


def parameter_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
                          factorization: Factorization = 'christoffel') -> ParameterDerivatives:
    """
    Return the derivatives of M, C and g by the inertial parameters of the moving bodies.

    M, C and g are linear in the parameters pi: they are the sums of these, each times its
    parameter, and for M the armature. The last axis is that of the columns of the regressors:
    ``np.einsum('ijk,j', M, a) + np.einsum('ijk,j', C, v) + g`` is `torque_regressor`.

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
        If a vector has the wrong shape or a non-finite entry, or the factorization is not
        one of the two.

    References
    ----------
    Garofalo et al. (13), with Jdot where (13b) has lost its dot.

    """
    return workspace_of(model).parameter_derivatives(q, v, factorization=factorization)


def acceleration_parameter_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                                       tau: npt.ArrayLike, *,
                                       external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return the derivatives of the accelerations by the inertial parameters of the moving bodies.

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
    ndarray, shape (model.nv, 10 * bodies)
        Column k is the derivative by parameter k, in the order of
        `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry.
    SingularError
        If a joint moves no inertia.

    References
    ----------
    -M^-1 Y with the regressor Y of the torques.

    """
    return workspace_of(model).acceleration_parameter_derivatives(
        q, v, tau, external_wrenches=external_wrenches)
