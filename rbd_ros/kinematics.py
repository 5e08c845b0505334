# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of links, and the centre of mass."""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of


def forward_kinematics(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the poses of all links in the root's frame.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.

    Returns
    -------
    ndarray, shape (len(model.links), 4, 4)
        In the order of ``model.link_names``. T[k] maps coordinates in link k to the root's.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Kim (34); Lynch and Park (9.51); Vlasblom (2.3).

    """
    return workspace_of(model).forward_kinematics(q)


def world_jacobian(model: Model, q: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its origin, in the axes of the root.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        J v is the link's angular velocity, rad/s, and the velocity of its origin, m/s.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Vlasblom (2.13), for any point of the body.

    """
    return workspace_of(model).world_jacobian(q, link)[0].copy()


def body_jacobian(model: Model, q: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its origin, in its own axes.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        J v is the link's twist, angular first, rad/s and m/s.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Vlasblom (2.8); Lynch and Park, text below (9.60); Garofalo et al. (27).

    """
    return workspace_of(model).body_jacobian(q, link)[0].copy()


def center_of_mass(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the centre of mass of the whole robot, root link included.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.

    Returns
    -------
    ndarray, shape (3,)
        In the root's frame, m; the root's origin for a robot without mass.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    """
    return workspace_of(model).center_of_mass(q).copy()


def com_jacobian(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the Jacobian of the centre of mass.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.

    Returns
    -------
    ndarray, shape (3, model.nv)
        J v is the velocity of the centre of mass in the root's frame, m/s.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Garofalo et al. (7), by composite bodies.

    """
    return workspace_of(model).com_jacobian(q).copy()
