# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Jacobians of links in further frames, and the derivatives of the body Jacobian of a link."""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import finite_vector
from rbd_ros.model.configurations import normalize
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import skew
from rbd_ros.workspace import workspace_of


def check_state(model: Model, q: npt.ArrayLike, **velocities: npt.ArrayLike) -> list[np.ndarray]:
    """
    Return copies of q and of velocities given by name, checked.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.
    **velocities
        Arrays of shape (model.nv,), by name.

    Returns
    -------
    list of ndarray
        q and the velocities.

    Raises
    ------
    StateError
        If one has the wrong shape or a non-finite entry, or a quaternion is zero.

    """
    return [normalize(model, q),
            *(finite_vector(model, label, x) for label, x in velocities.items())]


def jacobian_dot(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the time derivative of the body Jacobian of a link.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        Angular first, in the link's axes: J a + Jdot v is the derivative of the twist's
        components.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Garofalo et al. (28), with dS/dt.

    """
    return workspace_of(model).jacobian_dot(q, v, link)[1].copy()


def jacobian_ddot(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                  link: str) -> np.ndarray:
    """
    Return the second time derivative of the body Jacobian of a link.

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
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        Angular first, in the link's axes.

    Raises
    ------
    StateError
        If ``q``, ``v`` or ``a`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Garofalo et al. (29), with dS/dt and its rate.

    """
    return workspace_of(model).jacobian_ddot(q, v, a, link)[2].copy()


def jacobian_derivatives(model: Model, q: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the derivatives of the body Jacobian of a link by the coordinates.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv, model.nv)
        ``dJ[:, :, h]`` by coordinate h, per rad or m; along the direction of v_h for ball and free
        joints. It also is the derivative of Jdot by v_h.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Vlasblom (1.13), (2.21); Garofalo et al. (30), (31), (33).

    """
    return workspace_of(model).jacobian_derivatives(q, link)


def jacobian_dot_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                             link: str) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the derivatives of Jdot of a link by coordinates and by velocities.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    link : str
        The link's name.

    Returns
    -------
    by_q, by_v : ndarray, shape (6, model.nv, model.nv)
        Entry h of the last axis is the derivative by coordinate h, with v held, or by v_h.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Garofalo et al. (30), (32), (33).

    """
    return workspace_of(model).jacobian_dot_derivatives(q, v, link)


def world_jacobian_dot(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the time derivative of `world_jacobian`.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        J a + Jdot v is the angular acceleration and the acceleration of the link's origin, in the
        root's axes, rad/s^2 and m/s^2.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Ad_R (Jdot + blockdiag([omega], [omega]) J).

    """
    return workspace_of(model).world_jacobian_dot(q, v, link)[1].copy()


def link_com_jacobian(model: Model, q: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its own centre of mass, in the link's axes.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        J v is the angular velocity and the velocity of the link's centre of mass, rad/s and m/s.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Vlasblom (2.4), (2.9).

    """
    J, _ = workspace_of(model).body_jacobian(q, link)
    return np.vstack((J[:3], J[3:] - skew(model.links[model.link_index(link)].com) @ J[:3]))


def link_com_world_jacobian(model: Model, q: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its own centre of mass, in the axes of the root.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (6, model.nv)
        J v is the angular velocity and the velocity of the link's centre of mass, rad/s and m/s.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Vlasblom's J^g, (2.13), (2.14).

    """
    J, T = workspace_of(model).world_jacobian(q, link)
    com = T[:3, :3] @ model.links[model.link_index(link)].com
    return np.vstack((J[:3], J[3:] - skew(com) @ J[:3]))


def analytic_jacobian(model: Model, q: npt.ArrayLike, link: str) -> np.ndarray:
    """
    Return the derivatives of the position of a link's centre of mass by the coordinates.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    link : str
        The link's name.

    Returns
    -------
    ndarray, shape (3, model.nv)
        In the root's frame, m/rad and m/m.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name.

    References
    ----------
    Vlasblom's J^a, (2.10), (2.15), (2.16).

    """
    return link_com_world_jacobian(model, q, link)[3:]
