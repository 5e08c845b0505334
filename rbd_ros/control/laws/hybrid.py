# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid control: some joints follow a motion, the others are free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import listed
from rbd_ros.control.controller import Circumstances, FRICTION_SPEED, Gain
from rbd_ros.control.laws.computed_torque import ComputedTorque
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import mask
from rbd_ros.model.changes.friction import friction
from rbd_ros.model.model import Model
from rbd_ros.motions.references import JointReference
from rbd_ros.simulation.dry_friction import resting_impulses
from rbd_ros.simulation.simulator import DIRECTIONS
from rbd_ros.workspace.passive_joints import passive_friction

REST_WINDOW = 0.01  # s: friction may bring a free joint to rest within this time


def _check_joints(model: Model, names: Sequence[str]) -> None:
    for name in names:
        if name not in model.velocity_names:
            raise ModelError(f"'{name}' is not one of the joints of '{model.name}', "
                             f'{listed(model.velocity_names)}')


class Hybrid(ComputedTorque):
    """
    Let some joints follow a motion; the others have given torques, or zero.

    Hybrid dynamics returns the torques of the joints that follow, for the accelerations

        a = a_r + kd (v_r - v) + kp (q_r - q)

    and the accelerations of the free joints under their torques tau_r less friction and springs:
    the motion of the free joints does not disturb the others. A free joint that its friction can
    bring to rest within `REST_WINDOW`, and hold there, is computed as resting.

    Reference: Kim (33) and his hybrid dynamics; corrected acceleration: Lynch and Park (11.35).

    Parameters
    ----------
    model : Model
    prescribed : array_like of bool, shape (model.nv,)
        True: the joint follows its reference. False: it is free, with the torque of the reference.
    kp, kd : array_like, shape () or (model.nv,)
        1/s^2, and 1/s; default of kd: 2 sqrt(kp).
    friction_speed : float, optional
        See `Controller`, for joints that follow. None: friction of free joints is omitted, too.

    """

    purpose = 'inverse dynamics of some joints; the others are free, or have given efforts'
    gains: ClassVar = {
        **ComputedTorque.gains,
        'free_joints': Gain((), 'Joints that do not follow; their efforts are those of the '
                            'trajectory, or zero.', low=None, entry=str, check=_check_joints)}
    takes_torques = True

    def __init__(self, model: Model, prescribed: npt.ArrayLike, kp: npt.ArrayLike,
                 kd: npt.ArrayLike | None = None, *,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, kp, kd, friction_speed=friction_speed)
        self._prescribed = mask(model, 'prescribed', prescribed)

    @classmethod
    def from_gains(cls, given: Circumstances, **gains: Any) -> Hybrid:
        free = gains.pop('free_joints') or ()
        return cls(given.model, [name not in free for name in given.model.velocity_names],
                   friction_speed=given.friction_speed, **gains)

    @property
    def follows(self) -> np.ndarray:
        return self._prescribed

    def solve(self, q: npt.ArrayLike, v: npt.ArrayLike,
              reference: JointReference) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the expected accelerations and the torques of the rigid-body model, as for `update`.

        Returns
        -------
        a : ndarray, shape (model.nv,), rad/s^2 or m/s^2
            Commanded for joints that follow, resulting for free joints.
        tau : ndarray, shape (model.nv,), N m or N
            Without friction and springs for joints that follow; less these for free joints.

        """
        q, v = self._workspace.check(q=q, v=v)
        a = self._acceleration(q, v, reference)
        tau = reference.tau - self._springs(q)
        if self._friction_speed is None:
            return self._workspace.hybrid_dynamics(q, v, a, tau, self._prescribed)
        flowing, forward, backward = friction(self.model, v, DIRECTIONS, v)
        tau = tau - flowing - passive_friction(self.model, q, v, self._friction_speed)
        free = np.flatnonzero(~self._prescribed)
        if len(free):
            # Dry friction averaged over REST_WINDOW: sliding, or whatever stops the joint.
            M = self._workspace.mass_matrix(q)[np.ix_(free, free)]
            sliding, _ = self._workspace.hybrid_dynamics(q, v, a, tau, self._prescribed)
            impulses, _ = resting_impulses(
                np.linalg.inv(M), (v + REST_WINDOW * sliding)[free],
                REST_WINDOW * (flowing - forward)[free], REST_WINDOW * (flowing - backward)[free])
            tau[free] += impulses / REST_WINDOW
        return self._workspace.hybrid_dynamics(q, v, a, tau, self._prescribed)

    def damping(self, q: np.ndarray) -> np.ndarray:
        # The inertia of joints that follow while the others are free.
        M, follow = self._workspace.mass_matrix(q), self._prescribed
        coupled = np.linalg.solve(M[np.ix_(~follow, ~follow)], M[np.ix_(~follow, follow)])
        D = np.zeros_like(M)
        D[np.ix_(follow, follow)] = self._kd[follow] * (
            M[np.ix_(follow, follow)] - M[np.ix_(follow, ~follow)] @ coupled)
        return D

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        _, tau = self.solve(q, v, reference)
        # `update` adds the torques of springs, but those of free joints are given.
        return np.where(self._prescribed, tau + self._friction(q, reference.v),
                        reference.tau - self._springs(q))
