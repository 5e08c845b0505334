# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of links, and the centre of mass; errors are those of `rbd_ros.dynamics`."""

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import batch_kinematics, centroidal, link_jacobians, link_poses
from rbd_ros.model.model import Model
from rbd_ros.workspace import scratch
from rbd_ros.workspace.lanes import lanes_of, shape, States
from rbd_ros.workspace.maps import columns, same
from rbd_ros.workspace.quantity import quantity
from rbd_ros.workspace.robot_arrays import RobotArrays
from rbd_ros.workspace.workspace import Workspace, workspace_of


def _forward_kinematics(w: RobotArrays, q: ArrayLike) -> np.ndarray:
    T = w._result(scratch.link_matrices)
    if not link_poses.link_poses(w.robot, w._screws, q, w._kept(scratch.link_table), T):
        w._explain(q=q)
    return T


def shape_of_poses(model: Model, n: int) -> list[tuple[int, ...]]:
    """Return the shape of the poses of all links."""
    return [(len(model.links), 4, 4)]


@quantity(_forward_kinematics, same, states=States(
    batch_kinematics.link_poses_states, shape_of_poses,
    [lambda w: w._kept(scratch.link_table), lanes_of(shape_of_poses)]))
def forward_kinematics(model: Model, q: ArrayLike) -> np.ndarray:
    """
    Return the poses of all links in the root's frame.

    Reference: Kim (34); Lynch and Park (9.51); Vlasblom (2.3).

    Parameters
    ----------
    model, q
        Robot; configuration (nq,), rad or m.

    Returns
    -------
    ndarray, shape (len(model.links), 4, 4)
        In the order of ``model.link_names``; each maps coordinates in the link to the root's.

    """
    return workspace_of(model).forward_kinematics(q)


def _world_jacobian(w: RobotArrays, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of a link about its origin, in the root's axes, and its pose."""
    try:
        row = w._world_rows[link]
    except (KeyError, TypeError):
        row = w._link_row(link)
    if not link_jacobians.jacobian_columns(w.robot, w._screws, q, row, w._jacobian_rows):
        w._explain(q=q)
    return w._jacobian_and_pose


JACOBIANS = shape(6, -1)
JACOBIAN_SCRATCH = lanes_of(JACOBIANS), lanes_of(shape(4, 4))


@quantity(_world_jacobian, columns, same, part=0, states=States(
    batch_kinematics.jacobian_states, JACOBIANS, JACOBIAN_SCRATCH,
    of_link=lambda w, link: (w._link_row(link),)))
def world_jacobian(model: Model, q: ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its origin, in the axes of the root.

    Reference: Vlasblom (2.13), for any point of the body.

    Parameters
    ----------
    model, q, link
        Robot; configuration (nq,), rad or m; name of the link.

    Returns
    -------
    ndarray, shape (6, nv)
        J v is the link's angular velocity, rad/s, and the velocity of its origin, m/s.

    """
    return workspace_of(model).world_jacobian(q, link)[0].copy()


def _body_jacobian(w: RobotArrays, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of a link about its origin, in its own axes, and its pose."""
    try:
        row = w._body_rows[link]
    except (KeyError, TypeError):
        row = w._own_row(link)
    if not link_jacobians.jacobian_columns(w.robot, w._screws, q, row, w._jacobian_rows):
        w._explain(q=q)
    return w._jacobian_and_pose


@quantity(_body_jacobian, columns, same, part=0, states=States(
    batch_kinematics.jacobian_states, JACOBIANS, JACOBIAN_SCRATCH,
    of_link=lambda w, link: (w._own_row(link),)))
def body_jacobian(model: Model, q: ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its origin, in its own axes.

    Reference: Vlasblom (2.8); Lynch and Park, text below (9.60); Garofalo et al. (27).

    Parameters
    ----------
    model, q, link
        Robot; configuration (nq,), rad or m; name of the link.

    Returns
    -------
    ndarray, shape (6, nv)
        J v is the link's twist, angular first, rad/s and m/s.

    """
    return workspace_of(model).body_jacobian(q, link)[0].copy()


def _com_and_jacobian(w: RobotArrays, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    J, com = w._kept(scratch.com_rows)
    if not centroidal.center_of_mass(w.robot, w._screws, q, J, com):
        w._explain(q=q)
    return J, com


def _center_of_mass(w: Workspace, q: ArrayLike) -> np.ndarray:
    return _com_and_jacobian(w, q)[1]


COM = shape(3)
COM_JACOBIANS = shape(3, -1)
COM_SCRATCH = lanes_of(COM_JACOBIANS), lanes_of(COM)


@quantity(_center_of_mass, same, states=States(
    batch_kinematics.center_of_mass_states, COM, COM_SCRATCH))
def center_of_mass(model: Model, q: ArrayLike) -> np.ndarray:
    """
    Return the centre of mass of the whole robot, root link included.

    Parameters
    ----------
    model, q
        Robot; configuration (nq,), rad or m.

    Returns
    -------
    ndarray, shape (3,)
        In the root's frame, m; the root's origin for a robot without mass.

    """
    return workspace_of(model).center_of_mass(q).copy()


def _com_jacobian(w: Workspace, q: ArrayLike) -> np.ndarray:
    return _com_and_jacobian(w, q)[0]


@quantity(_com_jacobian, columns, states=States(
    batch_kinematics.com_jacobian_states, COM_JACOBIANS, COM_SCRATCH))
def com_jacobian(model: Model, q: ArrayLike) -> np.ndarray:
    """
    Return the Jacobian of the centre of mass.

    Reference: Garofalo et al. (7), by composite bodies.

    Parameters
    ----------
    model, q
        Robot; configuration (nq,), rad or m.

    Returns
    -------
    ndarray, shape (3, nv)
        J v is the velocity of the centre of mass in the root's frame, m/s.

    """
    return workspace_of(model).com_jacobian(q).copy()
