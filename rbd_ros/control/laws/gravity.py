# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation: the robot holds its pose and may be guided by hand."""

from __future__ import annotations

from types import NoneType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import Circumstances, Controller, DAMPING, joint_gain, MAX_DAMPING
from rbd_ros.control.friction import DEAD_BAND, friction_compensation
from rbd_ros.model.arguments import number
from rbd_ros.model.model import Model


class Gravity(Controller):
    """
    Compensate gravity and damp motion.

        tau = g(q) - D v

    Reference: Lynch and Park (8.101); Takegaki and Arimoto, J. Dyn. Sys. Meas. Control 103 (1981).

    Parameters
    ----------
    model : Model
    damping : array_like, shape () or (model.nv,)
        D, N m s/rad or N s/m.
    friction, dead_band : bool, float
        Whether to compensate friction at the measured velocity, and the largest error of that
        velocity, rad/s or m/s; see `friction_compensation`.

    """

    reference_type: ClassVar[type] = NoneType
    purpose = 'gravity torques and damping; the robot may be guided by hand'
    # A dot would clash with the parameter `gravity`.
    gains: ClassVar = {'damping': joint_gain((0.0,), 'Damping D.', DAMPING, MAX_DAMPING,
                                             damps=True, parameter='gravity_damping')}
    contains_coriolis = False
    floating_base = True

    def __init__(self, model: Model, damping: npt.ArrayLike = 0.0, *, friction: bool = False,
                 dead_band: float = DEAD_BAND) -> None:
        super().__init__(model)
        self._damping = self._gain('damping', damping)
        self._compensate, self._dead_band = friction, number('dead_band', dead_band, 0.0)

    @classmethod
    def from_gains(cls, given: Circumstances, **gains: Any) -> Gravity:
        return cls(given.model, friction=given.friction, dead_band=given.dead_band, **gains)

    def damping(self, q: np.ndarray) -> np.ndarray:
        return np.diag(self._damping)

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray, reference: None) -> np.ndarray:
        tau = self._workspace.gravity_torques(q) - self._damping * v
        if self._compensate:
            tau += friction_compensation(self.model, v, dead_band=self._dead_band, q=q)
        return tau
