# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
SE(3), se(3) and inertia as NumPy matrices, for use outside control loops.

Motions are (omega, v) and forces (moment, force), angular first, both in a body's frame at its
origin. A pose is a 4x4 matrix; ``T_AB`` maps coordinates in B to coordinates in A. Kernels use the
tuples of `rbd_ros.kernels.tree.vectors` instead.

"""

from collections.abc import Iterable
from math import atan2, copysign, cos, sin, sqrt

import numpy as np
import numpy.typing as npt

# Below this angle, rad, sin(x) / x and similar quotients are replaced by their series.
SMALL_ANGLE = 1e-4


def skew(a: np.ndarray) -> np.ndarray:
    """Return the 3x3 matrix [a] with [a] b = a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def hat(V: np.ndarray) -> np.ndarray:
    """Return the 4x4 matrix of a motion [K (5)]."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = skew(V[:3])
    matrix[:3, 3] = V[3:]
    return matrix


def vee(matrix: np.ndarray) -> np.ndarray:
    """Return the motion of a 4x4 matrix: the inverse of `hat`."""
    return np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0], *matrix[:3, 3]])


def pose(R: np.ndarray, p: npt.ArrayLike) -> np.ndarray:
    """Return the 4x4 matrix of a rotation and a position [K (3)]."""
    T = np.zeros((4, 4))
    T[:3, :3], T[:3, 3], T[3, 3] = R, p, 1.0
    return T


def is_pose(T: np.ndarray, rounding: float) -> bool:
    """Return whether a 4x4 matrix is a pose, up to the rounding of R^T R."""
    R = T[:3, :3]
    return bool(np.abs(R.T @ R - np.eye(3)).max() <= rounding and np.linalg.det(R) > 0.0
                and T[3].tolist() == [0.0, 0.0, 0.0, 1.0])


def inverse(T: np.ndarray) -> np.ndarray:
    """Return the inverse of a pose [K (4)]."""
    return pose(T[:3, :3].T, -T[:3, :3].T @ T[:3, 3])


def rotation_from_rpy(rpy: Iterable[float]) -> np.ndarray:
    """Return the rotation of fixed-axis roll, pitch and yaw angles, rad, as in URDF."""
    (cr, cp, cy), (sr, sp, sy) = map(cos, rpy), map(sin, rpy)
    return np.array([[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                     [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                     [-sp, cp * sr, cp * cr]])


def rpy_from_rotation(R: np.ndarray) -> np.ndarray:
    """Return fixed-axis roll, pitch and yaw, rad; at a pitch of 90 degrees, one of many pairs."""
    yaw = atan2(R[1, 0], R[0, 0])
    c, s = cos(yaw), sin(yaw)
    # From the rotation without the yaw, in which the roll is well defined at any pitch.
    return np.array([atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1]),
                     atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0]), yaw])


def Ad(T: np.ndarray) -> np.ndarray:
    """Return the 6x6 adjoint of a pose [K (7)]."""
    R, p = T[:3, :3], T[:3, 3]
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = R
    matrix[3:, :3] = skew(p) @ R
    return matrix


def ad(V: np.ndarray) -> np.ndarray:
    """Return the 6x6 bracket matrix of a motion [K (27)]."""
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = skew(V[:3])
    matrix[3:, :3] = skew(V[3:])
    return matrix


def _angle_series(angle: float) -> tuple[float, float, float]:
    """Return sin(x)/x, (1 - cos(x))/x^2 and (x - sin(x))/x^3."""
    if angle < SMALL_ANGLE:
        square = angle * angle
        return 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    return (sin(angle) / angle, (1.0 - cos(angle)) / angle ** 2, (angle - sin(angle)) / angle ** 3)


def exp(V: np.ndarray) -> np.ndarray:
    """Return the pose that the motion V reaches in unit time."""
    W = skew(V[:3])
    a, b, c = _angle_series(float(np.linalg.norm(V[:3])))
    W2 = W @ W
    return pose(np.eye(3) + a * W + b * W2, (np.eye(3) + b * W + c * W2) @ V[3:])


def rotation(turn: np.ndarray) -> np.ndarray:
    """Return the rotation of a rotation vector, rad: the inverse of `rotation_vector`."""
    W = skew(turn)
    a, b, _ = _angle_series(sqrt(turn @ turn))
    return np.eye(3) + a * W + b * W @ W


def log(T: np.ndarray) -> np.ndarray:
    """Return the smallest motion V with exp(V) = T: a rotation of at most pi rad, and m."""
    turn = rotation_vector(T[:3, :3])
    _, b, c = _angle_series(float(np.linalg.norm(turn)))
    W = skew(turn)
    return np.concatenate((turn, np.linalg.solve(np.eye(3) + b * W + c * W @ W, T[:3, 3])))


def quaternion_of_matrix(R: np.ndarray) -> np.ndarray:
    """Return the quaternion (x, y, z, w) of a rotation, w >= 0."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    # The products of the quaternion with its largest component, times 4.
    if xx + yy + zz > 0.0:
        x, y, z, w = zy - yz, xz - zx, yx - xy, 1.0 + xx + yy + zz
    elif xx >= yy and xx >= zz:
        x, y, z, w = 1.0 + xx - yy - zz, yx + xy, xz + zx, zy - yz
    elif yy >= zz:
        x, y, z, w = yx + xy, 1.0 - xx + yy - zz, zy + yz, xz - zx
    else:
        x, y, z, w = xz + zx, zy + yz, 1.0 - xx - yy + zz, yx - xy
    scale = copysign(1.0 / sqrt(x * x + y * y + z * z + w * w), w)
    return np.array([scale * x, scale * y, scale * z, scale * w])


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return the rotation vector of a rotation, at most pi rad long."""
    x, y, z, w = quaternion_of_matrix(R).tolist()
    sine = sqrt(x * x + y * y + z * z)
    scale = 2.0 * atan2(sine, w) / sine if sine > 0.0 else 2.0
    return np.array([scale * x, scale * y, scale * z])


def inertia_matrix(mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return the 6x6 inertia [K (22)] about the frame's origin; ``inertia`` is about ``com``."""
    c = skew(com)
    return np.block([[inertia - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]])
