# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of motion seen from one link: matrices in, matrices out."""

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import ModelError
from rbd_ros.kernels.task_space import task_space, UNMOVED
from rbd_ros.model.model import Model
from rbd_ros.workspace import scratch
from rbd_ros.workspace.base import WorkspaceBase

# Share of the way from the root to a link that is the unit of length.
SHARE_OF_WAY = 0.2


def characteristic_length(model: Model, link: str) -> float:
    """
    Return the unit of length in which rotations and translations of a link compare.

    Parameters
    ----------
    model : Model
        The robot.
    link : str
        The link's name.

    Returns
    -------
    float
        A fifth of the way from the root to the link along the joints, m: about the lever of a
        joint in the middle, and where condition numbers of arms are smallest. 1 m where that way
        has no length.

    """
    way, up = 0.0, {joint.child: joint for joint in model.joints}
    while link in up:
        way += float(np.linalg.norm(up[link].placement[:3, 3]))
        link = up[link].parent
    return SHARE_OF_WAY * way if way > 0.0 else 1.0


def task_terms(w: WorkspaceBase, q: ArrayLike, M: np.ndarray, b: np.ndarray, rows: np.ndarray,
               link: str, last: int, length: float,
               limit: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return Lambda, eta and the condition number; J_bar; and the null-space projector.

    Parameters
    ----------
    w : WorkspaceBase
        A workspace of the robot.
    q : array_like, shape (nq,)
        Configuration.
    M, b : ndarray
        Mass matrix and bias torques there.
    rows : ndarray
        Jacobian and Jdot v of the link, as the kernel takes them.
    link : str
        Its name.
    last : int
        The last velocity that moves it.
    length : float
        Unit of length of the condition number, m.
    limit : float
        Condition number beyond which the inverse is damped.

    Raises
    ------
    ModelError
        If no joint moves the link.
    SingularError
        If a joint moves no inertia.

    """
    results = w._kept(scratch.task_results)
    status = task_space(np.ascontiguousarray(M), rows, b, w._kept(w._carriers), last, length,
                        limit, *w._kept(scratch.task_work), *results)
    if status == UNMOVED:
        raise ModelError(f"link '{link}' is part of the root: no joint moves it")
    if status > 0:
        w._refuse(status - 1, q)
    return results
