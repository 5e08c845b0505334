# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from declarations of quantities, for checkers of types.

# ruff: noqa: E501

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.threads import Progress
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.results import Derivatives
from rbd_ros.workspace.results import DynamicsTerms


def all_terms(model: Model, Q: ArrayLike, V: ArrayLike, *, out: DynamicsTerms | None = None,
        threads: int | None = None, progress: Progress | None = None) -> DynamicsTerms:
    """
    Return M, C, g, C v, the centre of mass and its Jacobian, all in one pass of composite bodies, for each of many states.

    Parameters
    ----------
    model, Q, V
        Robot; states in rows, (states, nq), (states, nv), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    DynamicsTerms
        With the fields ``M C g coriolis_torques com_jacobian com``.

    """

def body_jacobian(model: Model, Q: ArrayLike, link: str, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the Jacobian of a link about its origin, in its own axes, for each of many states.

    Reference: Vlasblom (2.8); Lynch and Park, text below (9.60); Garofalo et al. (27).

    Parameters
    ----------
    model, Q, link
        Robot; states in rows, (states, nq), units as of one state; name of the link.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        J v is the link's twist, angular first, rad/s and m/s.

    """

def center_of_mass(model: Model, Q: ArrayLike, *, out: np.ndarray | None = None, threads: int |
        None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the centre of mass of the whole robot, root link included, for each of many states.

    Parameters
    ----------
    model, Q
        Robot; states in rows, (states, nq), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 3)
        In the root's frame, m; the root's origin for a robot without mass.

    """

def centroidal_momentum_matrix(model: Model, Q: ArrayLike, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the matrix A that maps v to the robot's momentum about its centre of mass, for each of many states.

    Reference: Kim (23), (24), summed over all links; linear rows, m J_CoM: Garofalo et al. (7).

    Parameters
    ----------
    model, Q
        Robot; states in rows, (states, nq), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        Angular first, in the axes of the root: kg m^2/s and kg m/s per rad/s or m/s.

    """

def centroidal_momentum_matrix_dot(model: Model, Q: ArrayLike, V: ArrayLike, *, out: np.ndarray
        | None = None, threads: int | None = None, progress: Progress | None =
        None) -> np.ndarray:
    """
    Return the time derivative of `centroidal_momentum_matrix`, for each of many states.

    Reference: the sum of Kim (28), (30) over all links.

    Parameters
    ----------
    model, Q, V
        Robot; states in rows, (states, nq), (states, nv), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        A a + Adot v is the external moment about the centre of mass, N m, and the external force,
        N, weight and ground reactions included.

    """

def com_jacobian(model: Model, Q: ArrayLike, *, out: np.ndarray | None = None, threads: int |
        None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the Jacobian of the centre of mass, for each of many states.

    Reference: Garofalo et al. (7), by composite bodies.

    Parameters
    ----------
    model, Q
        Robot; states in rows, (states, nq), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 3, nv)
        J v is the velocity of the centre of mass in the root's frame, m/s.

    """

def com_jacobian_dot(model: Model, Q: ArrayLike, V: ArrayLike, *, out: np.ndarray | None =
        None, threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the time derivative of `com_jacobian`, for each of many states.

    Reference: the derivative of Garofalo et al. (7), 1/m sum P^T (G Jdot - ad_V^T G J).

    Parameters
    ----------
    model, Q, V
        Robot; states in rows, (states, nq), (states, nv), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 3, nv)
        J a + Jdot v is the acceleration of the centre of mass in the root's frame, m/s^2; zeros
        for a robot without mass.

    """

def forward_kinematics(model: Model, Q: ArrayLike, *, out: np.ndarray | None = None, threads:
        int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the poses of all links in the root's frame, for each of many states.

    Reference: Kim (34); Lynch and Park (9.51); Vlasblom (2.3).

    Parameters
    ----------
    model, Q
        Robot; states in rows, (states, nq), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (len(model.links), 4, 4)
        In the order of ``model.link_names``; each maps coordinates in the link to the root's.

    """

def gravity_torques(model: Model, Q: ArrayLike, *, out: np.ndarray | None = None, threads: int
        | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return g(q), the torques that hold the robot still, for each of many states.

    Reference: Lynch and Park (9.84); Garofalo et al. (6c); recursive Newton-Euler, O(n).

    Parameters
    ----------
    model, Q
        Robot; states in rows, (states, nq), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv), N m or N

    """

def inverse_dynamics(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: np.ndarray | None = None, threads: int
        | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the torques that produce the accelerations a, for each of many states.

    Reference: Kim table 2; Lynch and Park (9.53)-(9.57); recursive Newton-Euler, O(n).

    Parameters
    ----------
    model, Q, V, A
        Robot; states in rows, (states, nq), (states, nv), (states, nv), units as of one state.
    external_wrenches : mapping of str to array_like, optional
        Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv), N m or N

    """

def inverse_dynamics_derivatives(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: Derivatives | None = None, threads: int
        | None = None, progress: Progress | None = None) -> Derivatives:
    """
    Return the derivatives of the torques with respect to q, v and a, for each of many states.

    Reference: Kim table 5, all directions at once; O(n depth). ``by_input`` is the mass matrix.

    Parameters
    ----------
    model, Q, V, A
        Robot; states in rows, (states, nq), (states, nv), (states, nv), units as of one state.
    external_wrenches : mapping of str to array_like, optional
        Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.
    out, threads, progress
        See `rbd_ros.batch`.

    """

def jacobian_dot(model: Model, Q: ArrayLike, V: ArrayLike, link: str, *, out: np.ndarray | None
        = None, threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the time derivative of the body Jacobian of a link, for each of many states.

    Reference: Garofalo et al. (28), with dS/dt.

    Parameters
    ----------
    model, Q, V, link
        Robot; states in rows, (states, nq), (states, nv), units as of one state; name of the link.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        Angular first, in the link's axes: J a + Jdot v is the rate of the twist's components.

    """

def torque_regressor(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *, out: np.ndarray
        | None = None, threads: int | None = None, progress: Progress | None =
        None) -> np.ndarray:
    """
    Return Y(q, v, a) with Y pi = tau - (armature) a, for each of many states.

    Masses and inertias of the robot are not used. Reference: Garofalo et al. (15), (16) with v_r =
    v and a_r = a.

    Parameters
    ----------
    model, Q, V, A
        Robot; states in rows, (states, nq), (states, nv), (states, nv), units as of one state.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv, 10 * bodies)
        Columns in the order of `rbd_ros.model.inertial_parameter_names`.

    """

def world_jacobian(model: Model, Q: ArrayLike, link: str, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the Jacobian of a link about its origin, in the axes of the root, for each of many states.

    Reference: Vlasblom (2.13), for any point of the body.

    Parameters
    ----------
    model, Q, link
        Robot; states in rows, (states, nq), units as of one state; name of the link.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        J v is the link's angular velocity, rad/s, and the velocity of its origin, m/s.

    """

def world_jacobian_dot(model: Model, Q: ArrayLike, V: ArrayLike, link: str, *, out: np.ndarray
        | None = None, threads: int | None = None, progress: Progress | None =
        None) -> np.ndarray:
    """
    Return the time derivative of `world_jacobian`, Ad_R (Jdot + blockdiag([omega], [omega]) J), for each of many states.

    Parameters
    ----------
    model, Q, V, link
        Robot; states in rows, (states, nq), (states, nv), units as of one state; name of the link.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        J a + Jdot v is the angular acceleration and the acceleration of the link's origin, in the
        root's axes, rad/s^2 and m/s^2.

    """
