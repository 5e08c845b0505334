# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: derivatives by one scalar."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.articulated_bodies import articulated_bodies_at_rest
from rbd_ros.kernels.compiled import NOT_A_VECTOR, prepare
from rbd_ros.kernels.directional_derivatives import hybrid_dynamics_change, inverse_dynamics_change
from rbd_ros.kernels.mimics import dense_hybrid_dynamics, expand
from rbd_ros.validation import mask, Wrenches
from rbd_ros.workspace.body_changes import (
    body_changes, check_direction, leaves_bodies, NOTHING)
from rbd_ros.workspace.dynamics import (DynamicsMethods, factor, is_mask, model_terms,
                                        none_prescribed)
from rbd_ros.workspace.kernel_interface import KernelInterface, mimic_table

if TYPE_CHECKING:
    from rbd_ros.analysis.variation import Variation

__all__ = ['DirectionalMethods']

DIRECTIONS = 'dq', 'dv', 'da', 'dtau'


class DirectionalMethods(DynamicsMethods):
    """
    Derivatives of the dynamics by any scalar.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def _directions(self, variation: Variation) -> tuple[npt.ArrayLike, ...]:
        """Return the derivatives of q, v, a and tau, zeros where none is given."""
        dq, dv, da, dtau = variation.dq, variation.dv, variation.da, variation.dtau
        zeros = self._zeros
        return (zeros if dq is None else dq, zeros if dv is None else dv,
                zeros if da is None else da, zeros if dtau is None else dtau)

    def _checked_directions(self, variation: Variation,
                            labels: Iterable[str] = DIRECTIONS) -> list[np.ndarray]:
        """Return copies of them, or refuse one."""
        return [check_direction(self.model, label, getattr(variation, label)) for label in labels]

    def inverse_dynamics_derivative(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivative of tau."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self._inverse_derivative(q, v, a, variation, external_wrenches)
        return self._inverse_derivative(q, v, a, variation, None)

    def _inverse_derivative(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                            variation: Variation,
                            external_wrenches: Wrenches | None) -> np.ndarray:
        changes = (NOTHING if leaves_bodies(variation)
                   else body_changes(self.model, variation, external_wrenches))
        if self._folding is None:
            dq, dv, da, _ = self._directions(variation)
            try:
                if inverse_dynamics_change(self.robot, self._screws, q, v, a, dq, dv, da, *changes,
                                           self._tau):
                    return self._tau
            except NOT_A_VECTOR:
                pass
        dq, dv, da = self._checked_directions(variation, DIRECTIONS[:3])
        return self._change_of_torques(q, v, a, dq, dv, da, changes)

    def _change_of_torques(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                           dq: np.ndarray, dv: np.ndarray, da: np.ndarray,
                           changes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the derivative of tau by what changes and by directions that were checked."""
        if self._folding is not None:
            zeros, room, parts = self._kept(expanded_directions)
            self._call(expand, *self._kept(mimic_table), zeros, dq, dv, da, room)
            dq, dv, da = parts
        self._run(inverse_dynamics_change, 'qva', (q, v, a), dq, dv, da, *changes, self._tau)
        return self._tau if self._folding is None else self._fold_vector(self._tau)

    def forward_dynamics_derivative(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivative of a."""
        return self.hybrid_dynamics_derivative(
            q, v, self._zeros, tau, self._kept(none_prescribed), variation,
            external_wrenches=external_wrenches)[0]

    def hybrid_dynamics_derivative(
            self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, variation: Variation, *,
            external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of a and tau."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self._hybrid_derivative(q, v, a, tau, prescribed, variation,
                                               external_wrenches)
        return self._hybrid_derivative(q, v, a, tau, prescribed, variation, None)

    def _hybrid_derivative(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                           tau: npt.ArrayLike, prescribed: npt.ArrayLike, variation: Variation,
                           external_wrenches: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
        changes = (NOTHING if leaves_bodies(variation)
                   else body_changes(self.model, variation, external_wrenches))
        if self._folding is not None:
            return self._dense_hybrid_derivative(q, v, a, tau, prescribed, variation, changes)
        found, da, dtau = self._kept(directions_found)
        try:
            if is_mask(prescribed) and hybrid_dynamics_change(
                    self.robot, self._screws, q, v, a, tau, prescribed,
                    *self._directions(variation), *changes, found):
                return da, dtau
        except NOT_A_VECTOR:
            # Interpreted, the kernel may have begun.
            self.prescribe(False)
        a, tau, prescribed = self._given(a, tau, prescribed)
        # It raises if an argument is wrong.
        self.hybrid_dynamics(q, v, a, tau, prescribed)
        directions = self._checked_directions(variation)
        q, v = self._convert(q=q, v=v)
        prepare(inverse_dynamics_change, self.robot, self._screws, q, v, a, *directions[:3],
                *changes, dtau)
        prepare(articulated_bodies_at_rest, self.robot, self._screws, q, da, dtau)
        arguments = (self._screws, q, v, a, tau, prescribed, *directions, *changes, found)
        prepare(hybrid_dynamics_change, self.robot, *arguments)
        if not hybrid_dynamics_change(self.robot, *arguments):
            self._explain(q=q, v=v, a=a, tau=tau)
        return da, dtau

    def _dense_hybrid_derivative(
            self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, variation: Variation,
            changes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Differentiate M a + b = tau as it stands [K (33)]: mimics close loops."""
        prescribed = mask(self.model, 'prescribed', prescribed)
        dq, dv, given_da, given_dtau = self._checked_directions(variation)
        a, _ = self._dense_hybrid(q, v, a, tau, prescribed)
        given_da[~prescribed] = 0.0
        b = self._change_of_torques(q, v, a, dq, dv, given_da, changes)
        self.configuration_terms(q)
        _, da, dtau = self._kept(directions_found)
        if self._call(dense_hybrid_dynamics, self._kept(model_terms)[0], b, self._zeros,
                      given_dtau, prescribed, da, dtau, self._kept(factor)):
            self._explain(q=q, v=v, a=a)
        da += given_da
        return da, dtau


# -- What `DirectionalMethods` keeps. -------------------------------------------------------------

def directions_found(w: KernelInterface) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a buffer with two rows to work in, da and dtau, and these two."""
    room = np.zeros((4, w._nv))
    return room, room[2], room[3]


def expanded_directions(
        w: KernelInterface) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Return a q that is not used, a buffer for three expanded directions, and its parts."""
    nq, n = len(w._fold.source), w._n
    room = np.zeros(nq + 3 * n)
    return np.zeros(w.model.nq), room, tuple(room[nq:].reshape(3, n))
