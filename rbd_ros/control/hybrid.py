# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid control: some joints follow a motion, the others are left to themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import Controller, FRICTION_SPEED
from rbd_ros.control.references import JointReference
from rbd_ros.model.arguments import mask
from rbd_ros.model.friction import friction
from rbd_ros.model.model import Model
from rbd_ros.simulation.dry_friction import resting_impulses
from rbd_ros.simulation.simulator import DIRECTIONS

# s, within which friction may bring a free joint to rest
WHILE = 0.01


class Hybrid(Controller):
    """
    Let some joints follow a motion, while the others have given torques or none.

    Hybrid dynamics returns the torques of those that follow, for the accelerations

        a = a_r + kd (v_r - v) + kp (q_r - q)

    and the accelerations that the others have under their torques tau_r, less their friction: the
    motion of the free joints is no disturbance for the others. A free joint that its friction can
    bring to rest within 10 ms, and hold there, does not move for the others.

    Parameters
    ----------
    model : Model
        The robot.
    prescribed : array_like of bool, shape (model.nv,)
        True: the joint follows its reference. False: it is free, and gets the torque of the
        reference, as it is.
    kp : array_like, shape () or (model.nv,)
        1/s^2.
    kd : array_like, shape () or (model.nv,), optional
        1/s; default: 2 sqrt(kp).
    friction_speed : float, optional
        See `Controller`, for the joints that follow. None: that of free joints is left out, too.

    References
    ----------
    Kim (33) and his hybrid dynamics; the corrected acceleration: Lynch and Park (11.35).

    """

    def __init__(self, model: Model, prescribed: npt.ArrayLike, kp: npt.ArrayLike,
                 kd: npt.ArrayLike | None = None, *,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._prescribed = mask(model, 'prescribed', prescribed)
        self._kp = self._gain('kp', kp)
        self._kd = 2.0 * np.sqrt(self._kp) if kd is None else self._gain('kd', kd)

    def solve(self, q: npt.ArrayLike, v: npt.ArrayLike,
              reference: JointReference) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the accelerations that are expected, and the torques that rigid bodies need.

        Parameters
        ----------
        q, v, reference
            As for `update`.

        Returns
        -------
        a : ndarray, shape (model.nv,)
            rad/s^2 or m/s^2: for joints that follow, as commanded; for free ones, what follows.
        tau : ndarray, shape (model.nv,)
            N m or N, without the friction of the joints that follow, and less that of free ones.

        """
        q, v = self._workspace.check(q=q, v=v)
        a = reference.a + self._kd * (reference.v - v) + self._kp * self._error(q, reference)
        if self._friction_speed is None:
            return self._workspace.hybrid_dynamics(q, v, a, reference.tau, self._prescribed)
        flowing, forward, backward = friction(self.model, v, DIRECTIONS, v)
        tau = reference.tau - flowing
        free = np.flatnonzero(~self._prescribed)
        if len(free):
            # Dry friction at the end of a while: of one direction, or what brings joints to rest.
            M = self._workspace.mass_matrix(q)[np.ix_(free, free)]
            sliding, _ = self._workspace.hybrid_dynamics(q, v, a, tau, self._prescribed)
            impulses, _ = resting_impulses(
                np.linalg.inv(M), (v + WHILE * sliding)[free],
                WHILE * (flowing - forward)[free], WHILE * (flowing - backward)[free])
            tau[free] += impulses / WHILE
        return self._workspace.hybrid_dynamics(q, v, a, tau, self._prescribed)

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        _, tau = self.solve(q, v, reference)
        return np.where(self._prescribed, tau + self._friction(reference.v), reference.tau)
