# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Distance of a link from a pose that the robot may be unable to reach."""

from math import sqrt

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rotation_vector
from rbd_ros.workspace import Workspace

REACHED = 0.01  # m: largest error of a position that counts as reached
STARTS = 6  # additional searches from random configurations within the limits
# Steps of one search, its initial and smallest damping, and the factors after a better and a worse
# step.
MAX_STEPS, DAMPING, MIN_DAMPING, BETTER, WORSE = 60, 1e-2, 1e-8, 0.3, 5.0
MAX_DAMPING = 1e6   # damping at which a search ends: no step improves


def reach_error(model: Model, link: str, T: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """Return the smallest pose error of a link, rad and m, that a search within limits finds."""
    # Damped least squares (Levenberg-Marquardt: Nocedal and Wright, "Numerical Optimization",
    # Springer 2006, 10.3) start at q with the rotation. If the position is not reached, the
    # rotation is dropped, and they start at q and at `STARTS` other configurations, the same at
    # every call. Joints at a limit are held there. The model must have no quaternions.
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
    """Return the remaining rotation and distance that minimize some rows of the error."""
    workspace = Workspace(model)

    def error(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J, pose = workspace.body_jacobian(q, link)
        R = pose[:3, :3]
        e = np.concatenate((rotation_vector(T[:3, :3] @ R.T), T[:3, 3] - pose[:3, 3]))
        return e, (R @ J.reshape(2, 3, -1)).reshape(6, -1)
    q = np.clip(q, model.lower, model.upper)
    (e, J), damping = error(q), DAMPING
    for _ in range(MAX_STEPS):
        if damping > MAX_DAMPING or np.linalg.norm(e[rows]) <= 0.1 * REACHED:
            break
        slope = J[rows].T @ e[rows]
        # Exclude joints that the error drives beyond a limit.
        free = ~(((q <= model.lower) & (slope < 0.0)) | ((q >= model.upper) & (slope > 0.0)))
        A, step = J[rows][:, free], np.zeros(model.nv)
        step[free] = A.T @ np.linalg.solve(A @ A.T + damping * np.eye(len(A)), e[rows])
        tried = np.clip(q + step, model.lower, model.upper)
        e_tried, J_tried = error(tried)
        if e_tried[rows] @ e_tried[rows] < e[rows] @ e[rows]:
            q, e, J, damping = tried, e_tried, J_tried, max(BETTER * damping, MIN_DAMPING)
        else:
            damping *= WORSE
    return sqrt(e[:3] @ e[:3]), sqrt(e[3:] @ e[3:])
