# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics with respect to any scalar p, in O(n).

`rbd_ros.kernels.derivatives.directional_derivatives` explains the recursions; Kim's tables as
printed are in `rbd_ros.textbook.directional_tables`. Errors are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels.derivatives import directional_derivatives as kernels
from rbd_ros.model.arguments import Wrenches
from rbd_ros.workspace.body_changes import body_changes, check_directions
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity
from rbd_ros.workspace.variation import check_variation, Variation

OF_VARIATION = 'a variation is not a vector'


class DirectionalDerivativeMethods(RobotArrays):
    """Derivatives in one direction."""

    def _directions(self, variation: Variation) -> tuple[ArrayLike, ...]:
        """Return the derivatives of q, v, a and tau, zeros where none is given."""
        dq, dv, da, dtau = variation.dq, variation.dv, variation.da, variation.dtau
        zeros = self._zeros
        return (zeros if dq is None else dq, zeros if dv is None else dv,
                zeros if da is None else da, zeros if dtau is None else dtau)

    def _inverse_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, variation: Variation,
                            external_wrenches: Wrenches | None) -> np.ndarray:
        """Return the derivative of tau, with wrenches that are already applied."""
        directions = self._directions(variation)[:3]
        if not kernels.inverse_dynamics_change(
                self.robot, self._traits, q, v, a, *directions,
                *body_changes(self.model, variation, external_wrenches), self._tau):
            check_directions(self.model, variation, 'dq', 'dv', 'da')
            self._explain(q=q, v=v, a=a)
        return self._tau

    @quantity(kept=True, check={'variation': check_variation}, untraced=OF_VARIATION)
    def inverse_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        """
        Return d tau / dp, where the torques tau produce the accelerations a.

        Reference: Kim table 5 and (64). The ``dtau`` of the variation is not used.

        Returns
        -------
        ndarray, shape (nv,), N m or N per unit of p

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self._inverse_derivative(q, v, a, variation, external_wrenches)
        return self._inverse_derivative(q, v, a, variation, None)

    @quantity(kept=True, check={'variation': check_variation}, untraced=OF_VARIATION)
    def forward_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        """
        Return d a / dp, where a are the accelerations that the torques tau produce.

        Reference: Kim table 6 and (64). Where joints mimic others: Kim (33), differentiated. The
        ``da`` of the variation is not used.

        Returns
        -------
        ndarray, shape (nv,), rad/s^2 or m/s^2 per unit of p

        """
        return self.hybrid_dynamics_derivative(
            q, v, self._zeros, tau, self._kept(scratch.none_prescribed), variation,
            external_wrenches=external_wrenches)[0]

    def _hybrid_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                           tau: ArrayLike, prescribed: ArrayLike, variation: Variation,
                           external_wrenches: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
        found, da, dtau = self._kept(scratch.directions_found)
        if not kernels.hybrid_dynamics_change(
                self.robot, self._traits, q, v, a, tau, self._mask(prescribed),
                *self._directions(variation),
                *body_changes(self.model, variation, external_wrenches), found):
            check_directions(self.model, variation, 'dq', 'dv', 'da', 'dtau')
            self._explain_accelerations(q, v, a, tau, prescribed)
        return da, dtau

    @quantity(kept=True, check={'variation': check_variation}, untraced=OF_VARIATION)
    def hybrid_dynamics_derivative(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            variation: Variation, *, external_wrenches: Wrenches | None = None
            ) -> tuple[np.ndarray, np.ndarray]:
        """
        Return d a / dp and d tau / dp, given one of the two for every joint.

        Reference: Kim table 7 and (64). Where joints mimic others: Kim (33), differentiated. The
        ``da`` of the variation is used where ``prescribed``, ``dtau`` elsewhere.

        Returns
        -------
        da, dtau : ndarray, shape (nv,), rad/s^2 or m/s^2, and N m or N, per unit of p

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self._hybrid_derivative(q, v, a, tau, prescribed, variation,
                                               external_wrenches)
        return self._hybrid_derivative(q, v, a, tau, prescribed, variation, None)


inverse_dynamics_derivative = plain(DirectionalDerivativeMethods.inverse_dynamics_derivative)
forward_dynamics_derivative = plain(DirectionalDerivativeMethods.forward_dynamics_derivative)
hybrid_dynamics_derivative = plain(DirectionalDerivativeMethods.hybrid_dynamics_derivative)
