# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: poses, Jacobians with their rates and derivatives, and momentum."""

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import centroidal, link_jacobians, link_poses
from rbd_ros.workspace import scratch
from rbd_ros.workspace.robot_arrays import RobotArrays


def forward_kinematics(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return the poses of all links in the root's frame, shape (links, 4, 4)."""
    T = w._result(scratch.link_matrices)
    if not link_poses.link_poses(w.robot, w._screws, q, w._kept(scratch.link_table), T):
        w._explain(q=q)
    return T


# -- The centre of mass. -------------------------------------------------------------------------

def _center_of_mass(w: RobotArrays, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    J, com = w._kept(scratch.com_rows)
    if not centroidal.center_of_mass(w.robot, w._screws, q, J, com):
        w._explain(q=q)
    return J, com


def center_of_mass(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return the centre of mass in the root's frame."""
    return _center_of_mass(w, q)[1]


def com_jacobian(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return the Jacobian of the centre of mass."""
    return _center_of_mass(w, q)[0]


def com_jacobian_dot(w: RobotArrays, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the rate of the Jacobian of the centre of mass."""
    _, rate = centroidal_momentum_matrix_dot(w, q, v)
    mass = w.model.mass
    return rate[3:] / mass if mass else np.zeros((3, w._nv))


# -- Jacobians of a link. ------------------------------------------------------------------------

def world_jacobian(w: RobotArrays, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of a link about its origin, in the root's axes, and its pose."""
    try:
        row = w._world_rows[link]
    except (KeyError, TypeError):
        row = w._link_row(link)
    if not link_jacobians.jacobian_columns(w.robot, w._screws, q, row, w._jacobian_rows):
        w._explain(q=q)
    return w._jacobian_and_pose


def body_jacobian(w: RobotArrays, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of a link about its origin, in its own axes, and its pose."""
    try:
        row = w._body_rows[link]
    except (KeyError, TypeError):
        w._add_link(link)
        row = w._body_rows[link]
    if not link_jacobians.jacobian_columns(w.robot, w._screws, q, row, w._jacobian_rows):
        w._explain(q=q)
    return w._jacobian_and_pose


def _jacobian_dot(w: RobotArrays, q: ArrayLike, v: ArrayLike, link: str,
                  aligned: bool) -> tuple[np.ndarray, np.ndarray]:
    rows, J, J_dot, _ = w._kept(scratch.jacobian_rates)
    if not link_jacobians.link_jacobian_rate(w.robot, w._screws, q, v, w._link_row(link), aligned,
                                             rows):
        w._explain(q=q, v=v)
    return J, J_dot


def jacobian_dot(w: RobotArrays, q: ArrayLike, v: ArrayLike,
                 link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of a link about its origin, in its own axes, and its rate."""
    return _jacobian_dot(w, q, v, link, False)


def world_jacobian_dot(w: RobotArrays, q: ArrayLike, v: ArrayLike,
                       link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of a link about its origin, in the root's axes, and its rate."""
    return _jacobian_dot(w, q, v, link, True)


def _jacobian_dot_v(w: RobotArrays, q: ArrayLike, v: ArrayLike, link: str,
                    aligned: bool) -> np.ndarray:
    bias = w._kept(scratch.link_acceleration)
    if not link_jacobians.link_bias(w.robot, w._screws, q, v, w._link_row(link), aligned, bias):
        w._explain(q=q, v=v)
    return bias[0]


def jacobian_dot_v(w: RobotArrays, q: ArrayLike, v: ArrayLike, link: str) -> np.ndarray:
    """Return Jdot v of a link, in its own axes: its acceleration where a is zero."""
    return _jacobian_dot_v(w, q, v, link, False)


def world_jacobian_dot_v(w: RobotArrays, q: ArrayLike, v: ArrayLike, link: str) -> np.ndarray:
    """Return Jdot v of a link, in the root's axes: its acceleration where a is zero."""
    return _jacobian_dot_v(w, q, v, link, True)


def jacobian_ddot(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                  link: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the body Jacobian of a link with its first and second rates."""
    rows, *rates = w._kept(scratch.jacobian_rates)
    if not link_jacobians.link_jacobian_rates(w.robot, w._screws, q, v, a, w._link_row(link),
                                              rows):
        w._explain(q=q, v=v, a=a)
    J, J_dot, J_second = rates
    return J, J_dot, J_second


def jacobian_derivatives(w: RobotArrays, q: ArrayLike, link: str) -> np.ndarray:
    """Return the derivatives of the body Jacobian of a link by q, shape (6, nv, nv)."""
    of_J = w._result(scratch.jacobian_change)
    if not link_jacobians.link_jacobian_derivatives(w.robot, w._screws, q, w._link_row(link),
                                                    of_J):
        w._explain(q=q)
    return of_J.transpose(1, 2, 0)


def jacobian_dot_derivatives(w: RobotArrays, q: ArrayLike, v: ArrayLike,
                             link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the rate of the body Jacobian of a link by q and by v."""
    of_J, of_rate = w._result(scratch.jacobian_changes)
    if not link_jacobians.link_jacobian_rate_derivatives(w.robot, w._screws, q, v,
                                                         w._link_row(link), of_J, of_rate):
        w._explain(q=q, v=v)
    return of_rate.transpose(1, 2, 0), of_J.transpose(1, 2, 0)


# -- Momentum of the whole robot. ----------------------------------------------------------------

def centroidal_momentum_matrix(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    """Return the matrix that takes v to the robot's momentum about its centre of mass."""
    rows, A, _ = w._kept(scratch.momentum_rows)
    if not centroidal.centroidal_momentum(w.robot, w._screws, q, rows):
        w._explain(q=q)
    return A


def centroidal_momentum_matrix_dot(w: RobotArrays, q: ArrayLike,
                                   v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the centroidal momentum matrix and its rate."""
    rows, A, A_dot = w._kept(scratch.momentum_rows)
    if not centroidal.centroidal_momentum_rate(w.robot, w._screws, q, v, rows):
        w._explain(q=q, v=v)
    return A, A_dot


def jacobian_and_bias(w: RobotArrays, q: ArrayLike, v: ArrayLike, link: str,
                      aligned: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return rows with J and Jdot v of a link for `task_terms`, J, Jdot, and the last velocity."""
    J, J_dot = _jacobian_dot(w, q, v, link, aligned)
    return w._kept(scratch.jacobian_rates)[0], J, J_dot, int(w._link_row(link)[0, 0]) - 1
