# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: derivatives by one scalar."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.articulated_bodies import articulated_bodies_at_rest
from rbd_ros.kernels.compiled import prepare
from rbd_ros.kernels.directional_derivatives import hybrid_dynamics_change, inverse_dynamics_change
from rbd_ros.kernels.mimics import dense_hybrid_dynamics, expand
from rbd_ros.validation import mask, Wrenches
from rbd_ros.workspace.body_changes import body_changes, check_direction
from rbd_ros.workspace.dynamics import (DynamicsMethods, factor, is_mask, model_terms,
                                        none_prescribed)
from rbd_ros.workspace.kernel_interface import KernelInterface, mimic_table, NOT_A_VECTOR

if TYPE_CHECKING:
    from rbd_ros.analysis.variation import Variation

__all__ = ['DirectionalMethods']

FLOAT = np.dtype(float)


class DirectionalMethods(DynamicsMethods):
    """
    Derivatives of the dynamics by any scalar.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def _read_directions(self, variation: Variation,
                         labels: Iterable[str] = ('dq', 'dv', 'da', 'dtau')) -> None:
        """Write derivatives of q, v, a and tau to their buffer, zeros where none is given."""
        for label, row in zip(labels, self._kept(directions)[1]):
            x = getattr(variation, label)
            if type(x) is np.ndarray and x.dtype is FLOAT and x.shape == row.shape:
                row[:] = x
            else:
                row[:] = check_direction(self.model, label, x)

    def _check_directions(self, variation: Variation,
                          labels: Iterable[str] = ('dq', 'dv', 'da', 'dtau')) -> None:
        """Raise if a derivative that was given is not valid."""
        for label in labels:
            check_direction(self.model, label, getattr(variation, label))

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
        changes = body_changes(self.model, variation, external_wrenches)
        self._read_directions(variation, ('dq', 'dv', 'da'))
        return self._change_of_torques(q, v, a, variation, changes)

    def _change_of_torques(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                           variation: Variation,
                           changes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the derivative of tau by what changes and by the directions that were read."""
        dq, dv, da, _ = self._kept(directions)[1]
        state: tuple[npt.ArrayLike, ...] = q, v, a
        try:
            if self._folding is not None:
                state = self._expand(q=q, v=v, a=a)
                zeros, room, parts = self._kept(expanded_directions)
                self._call(expand, *self._kept(mimic_table), zeros, dq, dv, da, room)
                dq, dv, da = parts
            fine = inverse_dynamics_change(self.robot, self._screws, *state, dq, dv, da, *changes,
                                           self._tau)
        except NOT_A_VECTOR:
            fine = False
        if not fine:
            self._check_directions(variation, ('dq', 'dv', 'da'))
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
        changes = body_changes(self.model, variation, external_wrenches)
        self._read_directions(variation)
        given, _ = self._kept(directions)
        found, (_, _, da, dtau) = self._kept(directions_found)
        if self._folding is not None:
            if not isfinite(given.sum()):
                self._check_directions(variation)
            return self._dense_hybrid_derivative(q, v, a, tau, prescribed, variation, changes)
        try:
            fine = is_mask(prescribed) and hybrid_dynamics_change(
                self.robot, self._screws, q, v, a, tau, prescribed, given, *changes, found)
        except NOT_A_VECTOR:
            fine = False
            self.prescribe(False)
        if not fine:
            a, tau, prescribed = self._given(a, tau, prescribed)
            # It raises if an argument is wrong.
            self.hybrid_dynamics(q, v, a, tau, prescribed)
            self._check_directions(variation)
            q, v = self._convert(q=q, v=v)
            prepare(inverse_dynamics_change, self.robot, self._screws, q, v, a, *given[:3],
                    *changes, found[3])
            prepare(articulated_bodies_at_rest, self.robot, self._screws, q, *found[:2])
            arguments = (self._screws, q, v, a, tau, prescribed, given, *changes, found)
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
        a, _ = self._dense_hybrid(q, v, a, tau, prescribed)
        _, (_, _, da_given, dtau_given) = self._kept(directions)
        _, (_, _, da, dtau) = self._kept(directions_found)
        da_given[~prescribed] = 0.0
        b = self._change_of_torques(q, v, a, variation, changes)
        self.configuration_terms(q)
        if self._call(dense_hybrid_dynamics, self._kept(model_terms)[0], b, self._zeros,
                      dtau_given, prescribed, da, dtau, self._kept(factor)):
            self._explain(q=q, v=v, a=a)
        da += da_given
        return da, dtau


# -- What `DirectionalMethods` keeps. -------------------------------------------------------------

def directions(w: KernelInterface) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return a buffer for dq, dv, da and dtau, and its rows."""
    room = np.zeros((4, w._nv))
    return room, tuple(room)


def directions_found(w: KernelInterface) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return a buffer with two rows to work in, da and dtau, and its rows."""
    room = np.zeros((4, w._nv))
    return room, tuple(room)


def expanded_directions(
        w: KernelInterface) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Return a q that is not used, a buffer for three expanded directions, and its parts."""
    nq, n = len(w._fold.source), w._n
    room = np.zeros(nq + 3 * n)
    return np.zeros(w.model.nq), room, tuple(room[nq:].reshape(3, n))
