# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Ellipsoids and boxes of inertia, and ellipsoids of a point with Jacobian J (3, nv)."""

from typing import NamedTuple

import numpy as np
from rbd_ros.model.description import Link

THINNEST = 1e-3     # m: smallest diameter or side of a drawn ellipsoid or box
# The second moment along an axis is m a^2 / 5 for an ellipsoid with semi-axis a, and m a^2 / 3
# for a box with side 2 a.
ELLIPSOID, BOX = 5.0, 3.0
LEAST_SHARE = 1e-3  # smallest semi-axis near singularities, as a share of the largest
LEAST_INERTIA = 1e-12    # kg m^2 or kg, added to the diagonal of M: a joint may move no mass


class Ellipsoid(NamedTuple):
    """An ellipsoid about the origin of a frame."""

    axes: np.ndarray    # (3, 3): rotation whose columns are the principal axes
    semi_axes: np.ndarray   # (3,): in the unit of the displayed quantity


def inertia_solid(link: Link, share: float = ELLIPSOID) -> tuple[np.ndarray, np.ndarray]:
    """Return principal axes and sizes, m, of the uniform solid with the inertia of a link."""
    # `share` is `ELLIPSOID` or `BOX`, of diameters or sides; the axes are columns in those of the
    # link.
    second = 0.5 * np.trace(link.inertia) * np.eye(3) - link.inertia
    moments, axes = np.linalg.eigh(second)
    axes[:, 0] *= np.linalg.det(axes)
    size = 2.0 * np.sqrt(share / link.mass * np.maximum(moments, 0.0))
    return axes, np.maximum(size, THINNEST)


def manipulability(J: np.ndarray) -> Ellipsoid:
    """Return the velocities, m/s, for joint velocities of norm 1: singular values of J."""
    return _ellipsoid(J @ J.T, 0.5)


def force_ellipsoid(J: np.ndarray) -> Ellipsoid:
    """Return the forces, N, balanced by torques of norm 1: inverse singular values of J."""
    return _ellipsoid(J @ J.T, -0.5)


def effective_masses(J: np.ndarray, M: np.ndarray) -> Ellipsoid:
    """Return the effective masses, kg, along principal axes: (J M^-1 J^T)^-1 [L (9.94)]."""
    return _ellipsoid(J @ np.linalg.solve(M + LEAST_INERTIA * np.eye(len(M)), J.T), -1.0)


def _ellipsoid(A: np.ndarray, power: float) -> Ellipsoid:
    """Return the ellipsoid whose semi-axes are a power of the eigenvalues of A."""
    values, axes = np.linalg.eigh(A)
    axes[:, 0] *= np.linalg.det(axes)
    least = max(values[-1], 1e-12) * LEAST_SHARE ** (1.0 / abs(power))
    return Ellipsoid(axes, np.maximum(values, least) ** power)
