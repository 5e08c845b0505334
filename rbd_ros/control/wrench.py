# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The wrench at a link that explains external torques."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.analysis.task_space import characteristic_length
from rbd_ros.model.arguments import choice, finite_vector, number
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.results import Frame, FRAMES


def external_wrench(model: Model, q: npt.ArrayLike, tau_ext: npt.ArrayLike, link: str, *,
                    frame: Frame = 'world-aligned', condition_limit: float = 100.0) -> np.ndarray:
    """
    Return the wrench on a link whose torques J^T f are nearest to external torques.

    Lengths are measured in units of `rbd_ros.analysis.task_space.characteristic_length`. With the
    singular values sigma_i of J there, and its singular vectors u_i and v_i,

        f = sum u_i (v_i^T tau_ext) sigma_i / max(sigma_i, sigma_max / condition_limit)^2:

    the pseudo-inverse of J^T, but in directions in which the link can hardly be moved, of which
    the torques say next to nothing, f goes to zero.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    tau_ext : array_like, shape (model.nv,)
        External torques, as `MomentumObserver` finds them, N m or N.
    link : str
        The link that is touched. Where something touches cannot be told from torques alone.
    frame : {'body', 'world-aligned'}
        Axes of the wrench: the link's, or the root's; both at the link's origin.
    condition_limit : float
        Condition number of J beyond which the inverse is damped, at least 1: how many times larger
        than their smallest share the errors of the torques may become.

    Returns
    -------
    ndarray, shape (6,)
        Moment, N m, and force, N, on the link.

    Raises
    ------
    StateError
        If a vector has the wrong shape or a non-finite entry, or an option is none of those above.
    ModelError
        If no link has that name.

    References
    ----------
    Haddadin, De Luca and Albu-Schaeffer, IEEE T-RO 33 (2017), section VI; the damping: Nakamura
    and Hanafusa, J. Dyn. Sys. Meas. Control 108 (1986), here for small singular values alone.

    """
    tau_ext = finite_vector(model, 'tau_ext', tau_ext)
    limit = number('condition_limit', condition_limit, 1.0)
    aligned = choice('frame', frame, FRAMES) == 'world-aligned'
    workspace = workspace_of(model)
    J, _ = (workspace.world_jacobian if aligned else workspace.body_jacobian)(q, link)
    size = np.ones(6)
    size[3:] = characteristic_length(model, link)
    U, sigma, W = np.linalg.svd(J / size[:, None], full_matrices=False)
    if not sigma.any():
        return np.zeros(6)
    gain = sigma / np.maximum(sigma, sigma[0] / limit) ** 2
    return (U @ (gain * (W @ tau_ext))) / size
