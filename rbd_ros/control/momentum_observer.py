# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
External torques on a robot, estimated from its momentum.

The generalised momentum p = M v obeys

    dp/dt = tau + C^T v - g - tau_f - tau_s + tau_ext

since dM/dt = C + C^T; tau_f and tau_s are the torques of friction and springs. The observer r is a
first-order filter of tau_ext that needs no measured or differentiated accelerations:

    r = K (p - p(0) - integral of (tau + C^T v - g - tau_f - tau_s + r) dt)
    dr/dt = K (tau_ext - r)

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.control.friction import DEAD_BAND
from rbd_ros.dynamics import friction_torques, spring_torques
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, finite_vector, number, shown
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace

GAIN = 25.0     # 1/s


class MomentumObserver:
    """
    Estimate the external torques of a robot, sample by sample.

    Between two samples, r follows the exact solution of its differential equation for the mean
    external torque of that time,

        r <- e + (r - e) exp(-K h)
        e = (p_2 - p_1) / h - mean of (tau + C^T v - g - tau_f - tau_s)

    which is stable for every gain and step h. The mean is that of both samples, since efforts are
    measured together with positions.

    Reference: De Luca and Mattone, ICRA 2005, the observer of generalised momentum; dM/dt = C +
    C^T: Lynch and Park, prop. 8.1 (dM/dt - 2 C is skew).

    Parameters
    ----------
    model : Model
    gain : array_like, shape () or (model.nv,)
        K, 1/s; the time constant is 1/K. Larger gains are faster, but pass more noise.
    smooth : float
        As for `friction_torques`, rad/s or m/s, so that velocity noise does not switch the
        friction of resting joints.
    friction : bool
        Whether to subtract the friction of the model; if not, the given torques must exclude it.
    longest_gap : float
        s. Over longer pauses between samples r is kept.

    """

    def __init__(self, model: Model, gain: ArrayLike = GAIN, *, smooth: float = DEAD_BAND,
                 friction: bool = True, longest_gap: float = 0.1) -> None:
        self._workspace = Workspace(model)
        self._model = model
        self._gain = np.broadcast_to(finite_array('gain', gain, (), (model.nv,)), (model.nv,))
        if np.any(self._gain <= 0.0):
            raise StateError(f'gain must be positive, 1/s, got {shown(gain)}')
        self._smooth = number('smooth', smooth, 0.0)
        self._friction = friction
        self._longest_gap = number('longest_gap', longest_gap, 0.0)
        self.reset()

    def reset(self) -> None:
        """Discard all samples: r is zero until the second sample."""
        self._time: float | None = None
        self._r = np.zeros(self._model.nv)
        self._momentum = self._rate = self._r

    def update(self, t: float, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """
        Process a sample and return the external torques.

        A sample with the time of the last one is ignored; one with an earlier time resets the
        observer. After a StateError the observer is unchanged.

        Parameters
        ----------
        t, q, v
            Time, s; configuration (model.nq,), rad or m, and velocity (model.nv,), rad/s or m/s.
        tau : array_like, shape (model.nv,)
            Motor torques, N m or N.

        Returns
        -------
        ndarray, shape (model.nv,), N m or N
            Torques J^T f of external wrenches.

        """
        t, tau = number('t', t), finite_vector(self._model, 'tau', tau)
        terms = self._workspace.all_terms(q, v)
        if self._time is not None and t < self._time:
            self.reset()
        v = np.asarray(v, float)
        momentum = terms.M @ v
        rate = tau + v @ terms.C - terms.g
        if self._model.unconstrained.stiffness.any():
            rate -= spring_torques(self._model, q)
        if self._friction:
            rate -= friction_torques(self._model, v, smooth=self._smooth, q=q)
        step = np.inf if self._time is None else t - self._time
        if 0.0 < step <= self._longest_gap:
            gained = momentum - self._momentum - 0.5 * step * (rate + self._rate)
            share = -np.expm1(-self._gain * step)
            self._r = self._r + share * (gained / step - self._r)
        if step != 0.0:
            self._time, self._momentum, self._rate = t, momentum, rate
        return self._r.copy()
