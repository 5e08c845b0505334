# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""PD control with gravity compensation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import (
    Controller, DAMPING, FRICTION_SPEED, joint_gain, MAX_DAMPING, MAX_STIFFNESS, STIFFNESS)
from rbd_ros.model.model import Model
from rbd_ros.motions.references import JointReference


class PdGravity(Controller):
    """
    Pull each joint to its reference by a spring and a damper.

        tau = K (q_r - q) + D (v_r - v) + g(q)

    Any pose is held, stably for all gains, and only the gravity model is needed; moving joints lag
    behind their reference because of D and inertia.

    Reference: Takegaki and Arimoto, J. Dyn. Sys. Meas. Control 103 (1981); Lynch and Park (11.38).

    Parameters
    ----------
    model, friction_speed
        As for `Controller`.
    stiffness, damping : array_like, shape () or (model.nv,)
        K, N m/rad or N/m, and D, N m s/rad or N s/m.

    """

    purpose = 'springs and dampers at the joints'
    gains: ClassVar = {
        'stiffness': joint_gain((50.0,), 'Stiffness K.', STIFFNESS, MAX_STIFFNESS),
        'damping': joint_gain((5.0,), 'Damping D.', DAMPING, MAX_DAMPING, damps=True)}
    contains_coriolis = False
    floating_base = True

    def __init__(self, model: Model, stiffness: npt.ArrayLike, damping: npt.ArrayLike, *,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._stiffness = self._gain('stiffness', stiffness)
        self._damping = self._gain('damping', damping)

    def damping(self, q: np.ndarray) -> np.ndarray:
        return np.diag(self._damping)

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        return (self._stiffness * self.error(q, reference) + self._damping * (reference.v - v)
                + self._workspace.gravity_torques(q) + self._friction(q, reference.v))
