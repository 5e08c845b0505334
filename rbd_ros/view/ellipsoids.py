# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Ellipsoids and boxes that stand for inertias, and ellipsoids of what a link can do."""

from typing import NamedTuple

import numpy as np
from rbd_ros.model.description import Link

# m, of an ellipsoid or box that can be drawn
THINNEST = 1e-3
# Second moments along an axis are m a^2 / 5 of an ellipsoid with semi-axes a, and m a^2 / 3 of a
# box with sides 2 a.
ELLIPSOID, BOX = 5.0, 3.0
# Semi-axes of ellipsoids of a link that is nearly singular, as a share of the largest.
LEAST_SHARE = 1e-3
# kg m^2 or kg, added to the inertia of joints: those that move no mass have none.
LEAST_INERTIA = 1e-12


class Ellipsoid(NamedTuple):
    """
    An ellipsoid about the origin of a frame.

    Attributes
    ----------
    axes : ndarray, shape (3, 3)
        A rotation, whose columns are the principal axes.
    semi_axes : ndarray, shape (3,)
        In the unit of what it shows.

    """

    axes: np.ndarray
    semi_axes: np.ndarray


def inertia_solid(link: Link, share: float = ELLIPSOID) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the ellipsoid or box of uniform density that has the mass and inertia of a link.

    Parameters
    ----------
    link : Link
        The link, with a positive mass.
    share : float
        `ELLIPSOID` or `BOX`.

    Returns
    -------
    axes : ndarray, shape (3, 3)
        A rotation: its principal axes in the link's axes.
    size : ndarray, shape (3,)
        Diameters or sides, m.

    """
    second = 0.5 * np.trace(link.inertia) * np.eye(3) - link.inertia
    moments, axes = np.linalg.eigh(second)
    axes[:, 0] *= np.linalg.det(axes)
    size = 2.0 * np.sqrt(share / link.mass * np.maximum(moments, 0.0))
    return axes, np.maximum(size, THINNEST)


def manipulability(J: np.ndarray) -> Ellipsoid:
    """
    Return the velocities of a point when the velocities of the joints have norm 1.

    Parameters
    ----------
    J : ndarray, shape (3, nv)
        Jacobian of the point, m/rad or 1.

    Returns
    -------
    Ellipsoid
        Semi-axes in m/s; the singular values of J, the smallest first.

    """
    return _ellipsoid(J @ J.T, 0.5)


def force_ellipsoid(J: np.ndarray) -> Ellipsoid:
    """
    Return the forces at a point that torques of norm 1 hold in balance.

    Parameters
    ----------
    J : ndarray, shape (3, nv)
        Jacobian of the point, m/rad or 1.

    Returns
    -------
    Ellipsoid
        Semi-axes in N, 1 over those of `manipulability`; at most 1 / `LEAST_SHARE` times the
        smallest near singularities.

    """
    return _ellipsoid(J @ J.T, -0.5)


def effective_masses(J: np.ndarray, M: np.ndarray) -> Ellipsoid:
    """
    Return what mass a point seems to have when it is pushed along each principal axis.

    Parameters
    ----------
    J : ndarray, shape (3, nv)
        Jacobian of the point, m/rad or 1.
    M : ndarray, shape (nv, nv)
        Mass matrix.

    Returns
    -------
    Ellipsoid
        Semi-axes in kg; at most 1 / `LEAST_SHARE` times the smallest near singularities.

    References
    ----------
    Lynch and Park (9.94): the task inertia is the inverse of J M^-1 J^T.

    """
    return _ellipsoid(J @ np.linalg.solve(M + LEAST_INERTIA * np.eye(len(M)), J.T), -1.0)


def _ellipsoid(A: np.ndarray, power: float) -> Ellipsoid:
    """Return the ellipsoid whose semi-axes are a power of the eigenvalues of a matrix."""
    values, axes = np.linalg.eigh(A)
    axes[:, 0] *= np.linalg.det(axes)
    least = max(values[-1], 1e-12) * LEAST_SHARE ** (1.0 / abs(power))
    return Ellipsoid(axes, np.maximum(values, least) ** power)
