# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How near to a pose a robot can bring a link, within the limits of its joints."""

from __future__ import annotations

from math import sqrt

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rotation_vector
from rbd_ros.workspace import Workspace

# m, from which on a position counts as reached.
REACHED = 0.01
# Searches that begin elsewhere, each at its own configuration within the limits.
STARTS = 6
# Steps of one attempt, and its damping: at first, at least, and how it changes with each step.
MOST_STEPS, DAMPING, LEAST_DAMPING, EASE, TIGHTEN = 60, 1e-2, 1e-8, 0.3, 5.0
# Damping beyond which no step comes nearer.
STUCK = 1e6


def reach_error(model: Model, link: str, T: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """
    Return how far a link stays from a pose, at best as far as a search finds.

    Damped least squares, begun at q with the rotation, and then without it there and at `STARTS`
    other configurations, always the same; joints that reach a limit are held there.

    Parameters
    ----------
    model : Model
        The robot, without quaternions.
    link : str
        The link's name.
    T : ndarray, shape (4, 4)
        The pose in the root's frame, m.
    q : ndarray, shape (model.nq,)
        Where the search begins, rad or m.

    Returns
    -------
    angle, distance : float
        What is left of the rotation, rad, where the position is reached with it, and of the
        position, m, for any rotation.

    References
    ----------
    Levenberg-Marquardt: Nocedal and Wright, "Numerical Optimization", Springer 2006, 10.3.

    """
    angle, distance = _search(model, link, T, q, slice(0, 6))
    if distance <= REACHED:
        return angle, distance
    lower, upper = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    others = np.random.default_rng(0).uniform(lower, upper, (STARTS, model.nv))
    for start in (q, 0.5 * (lower + upper), *others):
        distance = min(distance, _search(model, link, T, start, slice(3, 6))[1])
        if distance <= REACHED:
            break
    return angle, distance


def _search(model: Model, link: str, T: np.ndarray, q: np.ndarray,
            rows: slice) -> tuple[float, float]:
    """Return the rotation and position that are left where some rows of the error are least."""
    workspace = Workspace(model)

    def error(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J, pose = workspace.body_jacobian(q, link)
        R = pose[:3, :3]
        e = np.concatenate((rotation_vector(T[:3, :3] @ R.T), T[:3, 3] - pose[:3, 3]))
        return e, (R @ J.reshape(2, 3, -1)).reshape(6, -1)

    q = np.clip(q, model.lower, model.upper)
    (e, J), damping = error(q), DAMPING
    for _ in range(MOST_STEPS):
        if damping > STUCK or np.linalg.norm(e[rows]) <= 0.1 * REACHED:
            break
        slope = J[rows].T @ e[rows]
        # Not the joints that the error pushes beyond a limit.
        free = ~(((q <= model.lower) & (slope < 0.0)) | ((q >= model.upper) & (slope > 0.0)))
        A, step = J[rows][:, free], np.zeros(model.nv)
        step[free] = A.T @ np.linalg.solve(A @ A.T + damping * np.eye(len(A)), e[rows])
        tried = np.clip(q + step, model.lower, model.upper)
        e_tried, J_tried = error(tried)
        if e_tried[rows] @ e_tried[rows] < e[rows] @ e[rows]:
            q, e, J, damping = tried, e_tried, J_tried, max(EASE * damping, LEAST_DAMPING)
        else:
            damping *= TIGHTEN
    return sqrt(e[:3] @ e[:3]), sqrt(e[3:] @ e[3:])
