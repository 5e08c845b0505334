# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint impedance: a passive law with springs and dampers at the joints."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import (Controller, critical_damping, FRICTION_SPEED, Gain,
                                        joint_gain, MAX_STIFFNESS, STIFFNESS)
from rbd_ros.model.arguments import number
from rbd_ros.model.model import Model
from rbd_ros.motions.references import JointReference


class JointImpedance(Controller):
    """
    Follow a motion with springs and dampers at the joints.

        tau = M(q) a_r + C(q, v) v_r + g(q) + K (q_r - q) + D(q) (v_r - v)

    The apparent inertia is the robot's own. With the error e = q_r - q and dM/dt - 2 C skew,

        M e'' + (C + D) e' + K e = -tau_ext,

    so only external torques increase the energy e'^T M e' / 2 + e^T K e / 2: the robot is passive
    with respect to its environment.

    Reference: Paden and Panja, Int. J. Control 47 (1988), "PD+"; D: Albu-Schaeffer et al., ICRA
    2003.

    Parameters
    ----------
    model, friction_speed
        As for `Controller`.
    stiffness : array_like, shape () or (model.nv,)
        K, N m/rad or N/m. Joints without stiffness are undamped, too.
    damping_ratio : float
        Of all modes; it determines D, see `critical_damping`.

    """

    purpose = "springs at the joints, damped by the robot's inertia"
    gains: ClassVar = {
        'stiffness': joint_gain((50.0,), 'Stiffness K.', STIFFNESS, MAX_STIFFNESS),
        'damping_ratio': Gain(1.0, 'Damping ratio of all modes.', high=10.0, damps=True)}

    def __init__(self, model: Model, stiffness: npt.ArrayLike, *, damping_ratio: float = 1.0,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._stiffness = self._gain('stiffness', stiffness)
        self._ratio = number('damping_ratio', damping_ratio, 0.0)

    def damping(self, q: np.ndarray) -> np.ndarray:
        return critical_damping(self._workspace.mass_matrix(q), self._stiffness, self._ratio)

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        terms = self._workspace.all_terms(q, v)
        D = critical_damping(terms.M, self._stiffness, self._ratio)
        return (terms.M @ reference.a + terms.C @ reference.v + terms.g
                + self._stiffness * self.error(q, reference) + D @ (reference.v - v)
                + self._friction(q, reference.v))
