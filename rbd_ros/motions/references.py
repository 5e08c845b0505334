# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""References of control laws: positions of the joints, or the pose of a link."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, finite_vector
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import normalize
from rbd_ros.model.se3 import is_pose

ROUNDED = 1e-5  # largest deviation of R^T R from the unit matrix: poses in text have six digits


class JointReference:
    """
    Desired motion of the joints at one time; the attributes are the parameters.

    Parameters
    ----------
    model, q
        Robot; configuration (model.nq,), rad or m.
    v, a, tau : array_like, shape (model.nv,), optional
        Velocity, rad/s or m/s, acceleration, rad/s^2 or m/s^2, and for `Hybrid` the torques of
        free joints, N m or N; default: zero.

    """

    __slots__ = ('a', 'q', 'tau', 'v')

    def __init__(self, model: Model, q: npt.ArrayLike, v: npt.ArrayLike | None = None,
                 a: npt.ArrayLike | None = None, tau: npt.ArrayLike | None = None) -> None:
        self.q = normalize(model, q)
        self.v, self.a, self.tau = (
            np.zeros(model.nv) if x is None else finite_vector(model, label, x)
            for label, x in (('v', v), ('a', a), ('tau', tau)))


class PoseReference:
    """
    Desired motion of a link at one time; the attributes are the parameters.

    Parameters
    ----------
    T : array_like, shape (4, 4)
        Pose of the link in the root's frame, m.
    V, V_dot : array_like, shape (6,), optional
        Angular velocity, rad/s, and velocity of the link's origin, m/s, in the root's axes, and
        its derivative with respect to time; default: at rest.

    """

    __slots__ = ('T', 'V', 'V_dot')

    def __init__(self, T: npt.ArrayLike, V: npt.ArrayLike | None = None,
                 V_dot: npt.ArrayLike | None = None) -> None:
        self.T = checked_pose('T', T)
        self.V, self.V_dot = (np.zeros(6) if x is None else finite_array(label, x, (6,))
                              for label, x in (('V', V), ('V_dot', V_dot)))


def checked_pose(label: str, T: npt.ArrayLike) -> np.ndarray:
    """Return a pose with an orthonormal rotation; raise if it is not one up to `ROUNDED`."""
    T = finite_array(label, T, (4, 4))
    if not is_pose(T, ROUNDED):
        raise StateError(f'{label} must be a pose: a rotation and a position above the row '
                         f'(0, 0, 0, 1), got {T.tolist()}')
    U, _, W = np.linalg.svd(T[:3, :3])
    T[:3, :3] = U @ W
    return T
