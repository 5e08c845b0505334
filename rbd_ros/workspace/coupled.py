# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Methods of `rbd_ros.Workspace` that solve for accelerations, for robots with mimic joints.

All other methods are the same for them: kernels add up what joints with one coordinate contribute.

"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels.coupled_dynamics import (
    coupled_forward_derivatives, coupled_forward_dynamics, coupled_hybrid_derivatives,
    coupled_hybrid_dynamics, solve_equations)
from rbd_ros.model.arguments import mask, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.body_changes import check_directions
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.results import Derivatives
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.variation import Variation


class CoupledMethods(RobotArrays):
    """The methods of `rbd_ros.Workspace` that solve M a + b = tau for coupled coordinates."""

    _carriers = staticmethod(scratch.all_before)
    # Kernels, with the robot, its equations and buffers. Forward dynamics writes to ``_a``.
    _forward: Callable[..., bool]
    _hybrid: Callable[..., bool]
    _forward_derivatives: Callable[..., bool]
    _hybrid_derivatives: Callable[..., bool]

    def __init__(self, model: Model, *, fresh: bool = False) -> None:
        super().__init__(model, fresh=fresh)
        equations = self.robot, self._traits, *self._kept(scratch.equations_of_motion)
        buffers = scratch.torque_derivatives_and_path(self)
        self._forward = partial(coupled_forward_dynamics, *equations, self._a)
        self._hybrid = partial(coupled_hybrid_dynamics, *equations)
        self._forward_derivatives = partial(
            coupled_forward_derivatives, *equations, *buffers, self._a)
        self._hybrid_derivatives = partial(coupled_hybrid_derivatives, *equations, *buffers)

    def _prescribe(self, prescribed: ArrayLike) -> None:
        table, marks = self._kept(scratch.elimination_table)
        table[marks] = prescribed

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.forward_dynamics(q, v, tau)
        if not self._forward(q, v, tau):
            self._explain_forward(q, v, tau)
        return self._a

    def hybrid_dynamics(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            *, external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.hybrid_dynamics(q, v, a, tau, prescribed)
        found = np.empty(self._nv), np.empty(self._nv)
        if not self._hybrid(q, v, a, tau, self._mask(prescribed), *found):
            self._explain_accelerations(q, v, a, tau, prescribed)
        return found

    def forward_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.forward_dynamics_derivatives(q, v, tau)
        X, lanes, derivatives = self._result(scratch.unknown_derivatives)
        if not self._forward_derivatives(q, v, tau, X, lanes):
            self._explain_forward(q, v, tau)
        return derivatives

    def hybrid_dynamics_derivatives(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            *, external_wrenches: Wrenches | None = None
            ) -> tuple[Derivatives, np.ndarray, np.ndarray]:
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        found = np.empty(self._nv), np.empty(self._nv)
        X, lanes, derivatives = self._result(scratch.unknown_derivatives)
        if not self._hybrid_derivatives(
                q, v, a, tau, self._mask(prescribed), *found, X, lanes):
            self._explain_accelerations(q, v, a, tau, prescribed)
        return derivatives, *found

    def hybrid_dynamics_derivative(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            variation: Variation, *, external_wrenches: Wrenches | None = None
            ) -> tuple[np.ndarray, np.ndarray]:
        # The same equations, differentiated.
        w: Any = self       # methods that `rbd_ros.workspace.quantity` adds
        prescribed = mask(self.model, 'prescribed', prescribed)
        da, dtau = check_directions(self.model, variation, 'da', 'dtau')
        da[~prescribed] = 0.0
        a, _ = w.hybrid_dynamics(q, v, a, tau, prescribed, external_wrenches=external_wrenches)
        b = w.inverse_dynamics_derivative(q, v, a, replace(variation, da=da),
                                          external_wrenches=external_wrenches)
        w.configuration_terms(q)
        _, *found = self._kept(scratch.directions_found)
        table, *L = self._kept(scratch.factor)
        M = self._kept(scratch.terms)[0][:self._nv]
        if not solve_equations(table, M, b, *L, self._zeros, dtau, prescribed, *found):
            self._explain(q=q, v=v, a=a)
        found[0] += da
        return found[0], found[1]

    def _jacobian_and_bias(self, q: ArrayLike, v: ArrayLike, link: str,
                           aligned: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        # Coordinates after that of the last joint may move the link, too.
        w: Any = super()
        rows, J, J_dot, _ = w._jacobian_and_bias(q, v, link, aligned)
        return rows, J, J_dot, self._nv - 1
