# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Springs and dampers at the joints, with gravity compensated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import Controller, FRICTION_SPEED
from rbd_ros.control.references import JointReference
from rbd_ros.model.model import Model


class PdGravity(Controller):
    """
    Pull each joint to its reference by a spring and a damper.

        tau = K (q_r - q) + D (v_r - v) + g(q)

    It holds any pose, is stable for all gains, and knows nothing of the robot but its gravity
    torques; what moves is late by D and by inertia.

    Parameters
    ----------
    model : Model
        The robot.
    stiffness : array_like, shape () or (model.nv,)
        K, N m/rad or N/m.
    damping : array_like, shape () or (model.nv,)
        D, N m s/rad or N s/m.
    friction_speed : float, optional
        See `Controller`.

    References
    ----------
    Takegaki and Arimoto, J. Dyn. Sys. Meas. Control 103 (1981); Lynch and Park (11.38).

    """

    def __init__(self, model: Model, stiffness: npt.ArrayLike, damping: npt.ArrayLike, *,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._stiffness = self._gain('stiffness', stiffness)
        self._damping = self._gain('damping', damping)

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        return (self._stiffness * self._error(q, reference)
                + self._damping * (reference.v - v)
                + self._workspace.gravity_torques(q) + self._friction(reference.v))
