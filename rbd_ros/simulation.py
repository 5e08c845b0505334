# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that moves by itself: forward dynamics, integrated over time."""

from dataclasses import replace

import numpy as np

from rbd_ros.configurations import integrate
from rbd_ros.errors import StateError
from rbd_ros.model import rebuild
from rbd_ros.workspace import Workspace


class Simulator:
    """
    A robot under torques, with viscous damping and the limits of its joints as stops.

    Semi-implicit Euler steps: v from forward dynamics, then q from the new v. Damping is taken at
    the end of the step, M a = tau - b - D (v + dt a): added to the armature, dt D makes that the
    same recursion, stable for any D. A joint that pushes against its stop is held there by hybrid
    dynamics, with the others feeling its reaction.

    Parameters
    ----------
    model : Model
        The robot. Its damping is used, its friction is not.
    q : array_like, shape (model.nq,)
        Where it begins, at rest.
    step : float
        Of the integration, s.

    Attributes
    ----------
    q, v : ndarray
        The present state.
    time : float
        s since the beginning.

    """

    def __init__(self, model, q, *, step=1e-3):
        self.model, self.step = model, step
        self.q, self.v, self.time = np.array(q, float), np.zeros(model.nv), 0.0
        if self.q.shape != (model.nq,):
            raise StateError(f'{model.nq} positions expected, got {self.q.shape}')
        damped = rebuild(model, joints=[
            replace(joint, armature=tuple(np.add(joint.armature,
                                                 step * np.array(joint.damping))))
            for joint in model.joints])
        self._workspace = Workspace(damped)
        # Stops are only for joints whose limits are those of entries of q.
        limited = model.nq == model.nv
        self._lower = model.lower if limited else np.full(model.nv, -np.inf)
        self._upper = model.upper if limited else np.full(model.nv, np.inf)

    def advance(self, tau, steps=1):
        """
        Move on under constant torques.

        Parameters
        ----------
        tau : array_like, shape (model.nv,)
            N m or N.
        steps : int
            How many.

        Raises
        ------
        StateError
            If ``tau`` has another shape or is not finite, or the motion has become so.
        SingularError
            If a joint moves no inertia.

        """
        tau = np.asarray(tau, float)
        for _ in range(steps):
            effort = tau - self.model.damping * self.v
            a = self._workspace.forward_dynamics(self.q, self.v, effort)
            low, high = self.q[:len(a)] <= self._lower, self.q[:len(a)] >= self._upper
            held = (low & (a < 0.0) & (self.v <= 0.0)) | (high & (a > 0.0) & (self.v >= 0.0))
            if held.any():
                self.v[held] = 0.0
                a, _ = self._workspace.hybrid_dynamics(self.q, self.v, np.zeros_like(a), effort,
                                                       held)
            self.v = self.v + self.step * a
            self.q = integrate(self.model, self.q, self.v, self.step)
            self._stop()
            self.time += self.step

    def _stop(self):
        """Keep the joints within their limits, where they lose their speed."""
        if self.model.nq == self.model.nv:
            beyond = (self.q < self._lower) | (self.q > self._upper)
            if beyond.any():
                self.q = np.clip(self.q, self._lower, self._upper)
                self.v[beyond] = 0.0
