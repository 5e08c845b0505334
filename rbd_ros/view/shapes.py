# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Shapes: inertia, ellipsoids of a point with Jacobian J (3, nv), and arcs at joints."""

from typing import NamedTuple

import numpy as np
from rbd_ros.model.description import Link
from rbd_ros.model.model import Model

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


PIECES = 24     # line segments of an arc
# rad: arc of the largest torque, and of the smallest one that is drawn.
LARGEST_TURN, LEAST_TURN = 1.75 * np.pi, 0.02


class JointAxes:
    """The joints of a robot that have one axis and mimic no other joint."""

    def __init__(self, model: Model) -> None:
        shown = [(k + 1, joint) for k, joint in enumerate(model.joints)
                 if joint.name in model.velocity_names]
        self.columns = np.array(
            [model.velocity_names.index(joint.name) for _, joint in shown], int)
        self.links = np.array([k for k, _ in shown], int)
        self._axes = np.array([joint.axis for _, joint in shown]).reshape(-1, 3)
        across = np.cross(self._axes, np.eye(3)[np.argmin(np.abs(self._axes), axis=1)])
        self._across = across / np.linalg.norm(across, axis=1, keepdims=True)

    def directions(self, poses: np.ndarray, drawn: np.ndarray | slice = slice(None)
                   ) -> list[np.ndarray]:
        """Return the axes of the drawn joints, and perpendicular unit vectors, by link poses."""
        turns = poses[self.links[drawn], :3, :3]
        return [(turns @ vectors[drawn, :, None])[:, :, 0]
                for vectors in (self._axes, self._across)]


class JointArcs(JointAxes):
    """Arrows at joints, bent around their axes; those of prismatic joints are straight."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._angular = model.angular[self.columns]

    def lines(self, poses: np.ndarray, efforts: np.ndarray, full: np.ndarray, radius: float
              ) -> np.ndarray:
        """Return a polyline (PIECES + 2, 3) per arrow: the joint, then the arc to its tip."""
        # Efforts are relative to `full`, and clipped to it; small and unknown ones are left out.
        # The radius, m, is that of arcs; the largest straight arrow is twice as long.
        share = np.clip(efforts[self.columns] / full[self.columns], -1.0, 1.0)
        drawn = np.abs(share) * LARGEST_TURN >= LEAST_TURN      # False for NaN
        links, (axes, across) = self.links[drawn], self.directions(poses, drawn)
        part = np.linspace(0.0, 1.0, PIECES + 1)[:, None] * share[drawn, None, None]
        angle = LARGEST_TURN * part
        bent = radius * (np.cos(angle) * across[:, None]
                         + np.sin(angle) * np.cross(axes, across)[:, None])
        straight = 2.0 * radius * part * axes[:, None]
        places = np.where(self._angular[drawn, None, None], bent, straight)
        spokes = np.zeros((len(links), 1, 3))    # a spoke connects each arc to its joint
        return poses[links, None, :3, 3] + np.concatenate((spokes, places), axis=1)
