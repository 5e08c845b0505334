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
from rbd_ros.workspace.memory.results import Frame, FRAMES


def external_wrench(model: Model, q: npt.ArrayLike, tau_ext: npt.ArrayLike, link: str, *,
                    frame: Frame = 'world-aligned', condition_limit: float = 100.0) -> np.ndarray:
    """
    Return the wrench on a link whose torques J^T f are nearest to external torques.

    Lengths are in units of `rbd_ros.analysis.task_space.characteristic_length`. With the singular
    values sigma_i of J, and its singular vectors u_i and v_i,

        f = sum u_i (v_i^T tau_ext) sigma_i / max(sigma_i, sigma_max / condition_limit)^2:

    the pseudo-inverse of J^T, except that f fades in directions in which the link can hardly move,
    for which the torques contain almost no information.

    Reference: Haddadin, De Luca and Albu-Schaeffer, IEEE T-RO 33 (2017), section VI; the damping:
    Nakamura and Hanafusa, J. Dyn. Sys. Meas. Control 108 (1986), for small singular values only.

    Parameters
    ----------
    model, q, tau_ext
        Robot; configuration (model.nq,), rad or m; external torques (model.nv,) as from
        `MomentumObserver`, N m or N.
    link : str
        The link in contact; torques do not reveal the location of a contact.
    frame : {'body', 'world-aligned'}
        Axes of the wrench, of the link or of the root; both at the link's origin.
    condition_limit : float
        Condition number of J beyond which the inverse is damped, at least 1; it bounds the
        amplification of torque errors.

    Returns
    -------
    ndarray, shape (6,), moment, N m, and force, N, on the link

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
