# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Computed torque: the error of every joint obeys the same linear equation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import Controller, FRICTION_SPEED, joint_gain, MAX_KD, MAX_KP
from rbd_ros.model.model import Model
from rbd_ros.motions.references import JointReference


class ComputedTorque(Controller):
    """
    Follow a motion by inverse dynamics of a corrected acceleration.

        tau = M(q) (a_r + kd (v_r - v) + kp (q_r - q)) + C(q, v) v + g(q)

    With an exact model the error e = q_r - q of each joint obeys e'' + kd e' + kp e = 0; for
    critical damping with the rate w, rad/s, choose kp = w^2 and kd = 2 w. Joints with light links
    get small torques, so unmodelled friction moves them far from their reference.

    Reference: Lynch and Park (11.35)-(11.37), without the integral.

    Parameters
    ----------
    model, friction_speed
        As for `Controller`.
    kp, kd : array_like, shape () or (model.nv,)
        1/s^2, and 1/s; default of kd: 2 sqrt(kp).

    """

    purpose = 'inverse dynamics'
    gains: ClassVar = {
        'kp': joint_gain((100.0,), 'Acceleration per error of position.', '1/s^2', MAX_KP),
        'kd': joint_gain((), 'Acceleration per error of velocity; empty: 2 sqrt(kp), critical '
                         'damping.', '1/s', MAX_KD, damps=True)}

    def __init__(self, model: Model, kp: npt.ArrayLike, kd: npt.ArrayLike | None = None, *,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._kp = self._gain('kp', kp)
        self._kd = 2.0 * np.sqrt(self._kp) if kd is None else self._gain('kd', kd)

    def _acceleration(self, q: np.ndarray, v: np.ndarray,
                      reference: JointReference) -> np.ndarray:
        return reference.a + self._kd * (reference.v - v) + self._kp * self.error(q, reference)

    def damping(self, q: np.ndarray) -> np.ndarray:
        return self._workspace.mass_matrix(q) * self._kd

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        a = self._acceleration(q, v, reference)
        return self._workspace.inverse_dynamics(q, v, a) + self._friction(q, reference.v)
