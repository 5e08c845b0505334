# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: inverse, forward and hybrid dynamics, and their matrices."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.articulated_bodies import articulated_bodies, hybrid_dynamics, PSI_
from rbd_ros.kernels.bodies import LANES, PRESCRIBED
from rbd_ros.kernels.compiled import NOT_A_VECTOR, prepare
from rbd_ros.kernels.composite_bodies import (composite_bodies, mass_matrix,
                                              use_body_factorization)
from rbd_ros.kernels.mimics import dense_hybrid_dynamics, fold_side_by_side, fold_stacked
from rbd_ros.kernels.newton_euler import (newton_euler, newton_euler_at_rest,
                                          newton_euler_packed)
from rbd_ros.model.model import Model
from rbd_ros.validation import choice, mask, packed_motion, Wrenches
from rbd_ros.workspace.kernel_interface import KernelInterface
from rbd_ros.workspace.kinematics import KinematicsMethods
from rbd_ros.workspace.results import (CHRISTOFFEL, DynamicsTerms, Factorization, FACTORIZATIONS,
                                       term_layout)

__all__ = ['DynamicsMethods']

BOOL = np.dtype(bool)


class DynamicsMethods(KinematicsMethods):
    """
    The equations of motion.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._a, self._term_layout = np.zeros(self._n), term_layout(self._nv)

    # -- Mass and Coriolis matrix, gravity torques, centre of mass. ------------------------------

    def all_terms(self, q: npt.ArrayLike, v: npt.ArrayLike,
                  factorization: Factorization = 'christoffel') -> DynamicsTerms:
        """Compute the `DynamicsTerms`."""
        rows, terms = self._result(model_terms)
        self._write_terms(q, v, factorization, rows, terms)
        return terms

    def _write_terms(self, q: npt.ArrayLike, v: npt.ArrayLike, factorization: Factorization,
                     rows: np.ndarray, terms: DynamicsTerms) -> None:
        try:
            if (self._folding is None and v is not None and composite_bodies(
                    self.robot, self._screws, q, v, rows) and factorization is CHRISTOFFEL):
                return
        except NOT_A_VECTOR:
            pass
        if v is None:
            self.check(v=v)         # for the kernel None has a meaning
        tree = rows if self._folding is None else self._kept(tree_terms)[0]
        self._run(composite_bodies, 'qv', (q, v), tree)
        if choice('factorization', factorization, FACTORIZATIONS) != CHRISTOFFEL:
            self._call(use_body_factorization, self.robot, tree)
        self._fold_terms(rows, terms)

    def configuration_terms(self, q: npt.ArrayLike) -> DynamicsTerms:
        """Compute the `DynamicsTerms` that need no velocity; C and C v are left as they are."""
        rows, terms = self._kept(model_terms)
        try:
            if self._folding is None and composite_bodies(self.robot, self._screws, q, None, rows):
                return terms
        except NOT_A_VECTOR:
            pass
        tree = rows if self._folding is None else self._kept(tree_terms)[0]
        self._run(composite_bodies, 'q', (q,), None, tree)
        self._fold_terms(rows, terms)
        return terms

    def _fold_terms(self, rows: np.ndarray, terms: DynamicsTerms) -> None:
        """Write the terms of a robot whose joints mimic others from those of its tree."""
        if self._folding is not None:
            tree_rows, tree = self._kept(tree_terms)
            # M and C; g, C v and the Jacobian of the centre of mass, which itself stays.
            self._call(fold_stacked, self._folding.columns, self._nv, 2, 5, tree_rows, rows)
            terms.com[:] = tree.com

    def mass_matrix(self, q: npt.ArrayLike) -> np.ndarray:
        """Return M."""
        M = self._result(square)
        try:
            if self._folding is None and mass_matrix(self.robot, self._screws, q, M):
                return M
        except NOT_A_VECTOR:
            pass
        tree = M if self._folding is None else self._kept(tree_square)
        self._run(mass_matrix, 'q', (q,), tree)
        if self._folding is not None:
            self._call(fold_side_by_side, self._folding.columns, self._nv, tree, M)
        return M

    def coriolis_matrix(self, q: npt.ArrayLike, v: npt.ArrayLike,
                        factorization: Factorization = 'christoffel') -> np.ndarray:
        """Return C."""
        rows, terms = self._kept(model_terms)
        self._write_terms(q, v, factorization, rows, terms)
        return terms.C

    # -- Inverse dynamics. -----------------------------------------------------------------------

    # Inverse and forward dynamics, gravity torques and the Jacobian of a link take so little time
    # that every check and call counts: the kernel is tried first, with hardly anything around it,
    # and arguments need not be named, which takes Python longer.
    def inverse_dynamics(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return tau."""
        try:
            if (external_wrenches is None and self._folding is None
                    and newton_euler(self.robot, self._screws, q, v, a)):
                return self._tau
        except NOT_A_VECTOR:
            pass
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.inverse_dynamics(q, v, a)
        return self._torques(newton_euler, q=q, v=v, a=a)

    def inverse_dynamics_packed(self, motion: npt.ArrayLike) -> np.ndarray:
        """
        Compute inverse dynamics of q, v and a in one array, which Python passes on faster.

        Kim table 2, as `inverse_dynamics` does. Let q, v and a be views of the array.

        Parameters
        ----------
        motion : array_like, shape (nq + 2 nv,)
            Position, velocity and acceleration, one behind the other, in the units of
            `rbd_ros.inverse_dynamics`.

        Returns
        -------
        ndarray, shape (nv,)
            Torques, N m or N; overwritten by the next call.

        Raises
        ------
        StateError
            If the array has another shape, or an entry that is not finite.

        """
        try:
            if self._folding is None and newton_euler_packed(self.robot, self._screws, motion):
                return self._tau
        except NOT_A_VECTOR:
            pass
        motion = packed_motion(self.model, motion)
        if self._folding is None:
            prepare(newton_euler_packed, self.robot, self._screws, motion)
        q, v, a = np.split(motion, [len(motion) - 2 * self._nv, len(motion) - self._nv])
        return self.inverse_dynamics(q, v, a)

    def _torques(self, kernel: Callable[..., Any], **vectors: npt.ArrayLike) -> np.ndarray:
        self._run(kernel, vectors, vectors.values())
        return self._tau if self._folding is None else self._fold_vector(self._tau)

    def bias_torques(self, q: npt.ArrayLike, v: npt.ArrayLike,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return C v + g - sum J^T f."""
        return self.inverse_dynamics(q, v, self._zeros, external_wrenches)

    def gravity_torques(self, q: npt.ArrayLike) -> np.ndarray:
        """Return g."""
        try:
            if self._folding is None and newton_euler_at_rest(self.robot, self._screws, q):
                return self._tau
        except NOT_A_VECTOR:
            pass
        return self._torques(newton_euler_at_rest, q=q)

    # -- Forward and hybrid dynamics. ------------------------------------------------------------

    def forward_dynamics(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return a."""
        try:
            if (external_wrenches is None and self._folding is None
                    and articulated_bodies(self.robot, self._screws, q, v, self._a, tau)):
                return self._a
        except NOT_A_VECTOR:
            pass
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.forward_dynamics(q, v, tau)
        if self._folding is None:
            return self._articulated(q, v, self._a, tau)[0]
        return self._dense_hybrid(q, v, self._zeros, tau, self._kept(none_prescribed))[0]

    def hybrid_dynamics(
            self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, *,
            external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return a and tau, in new arrays."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.hybrid_dynamics(q, v, a, tau, prescribed)
        if self._folding is not None:
            return self._dense_hybrid(q, v, a, tau, prescribed)
        all_a, all_tau = np.empty(self._nv), np.empty(self._nv)
        known = True
        try:
            if is_mask(prescribed) and hybrid_dynamics(
                    self.robot, self._screws, q, v, a, tau, prescribed, all_a, all_tau):
                return all_a, all_tau
        except NOT_A_VECTOR:
            known = False
            # Interpreted, the kernel may have begun.
            self.prescribe(False)
        a, tau, prescribed = self._given(a, tau, prescribed)
        self.prescribe(prescribed)
        try:
            a, tau = self._articulated(q, v, a, tau)
        finally:
            self.prescribe(False)
        if not known:
            q, v = self._convert(q=q, v=v)
            prepare(hybrid_dynamics, self.robot, self._screws, q, v, a, tau, prescribed, all_a,
                    all_tau)
        return a, tau

    def _given(self, a: npt.ArrayLike, tau: npt.ArrayLike,
               prescribed: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what is given of a and tau, zeros elsewhere, and the mask, all checked."""
        prescribed = mask(self.model, 'prescribed', prescribed)
        a, tau = self._convert(a=a, tau=tau)
        a[~prescribed], tau[prescribed] = 0.0, 0.0
        if not isfinite(a.sum() + tau.sum()):
            self.check(a=a, tau=tau)
        return a, tau, prescribed

    def prescribe(self, prescribed: npt.ArrayLike) -> None:
        """Tell the kernels of articulated bodies which accelerations are given."""
        self.robot[self._places[1:] + LANES * PRESCRIBED] = prescribed

    def _articulated(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                     tau: npt.ArrayLike) -> tuple[Any, Any]:
        try:
            fine = articulated_bodies(self.robot, self._screws, q, v, a, tau)
        except NOT_A_VECTOR:
            q, v, a, tau = self._convert(q=q, v=v, a=a, tau=tau)
            fine = self._call(articulated_bodies, self.robot, self._screws, q, v, a, tau)
        if not fine:
            self.check(q=q, v=v, tau=tau)
            column = int(self.robot[LANES * PSI_])
            if column > 0:
                self._refuse(column - 1, q)
            self._explain(a=a, tau=tau)
        return a, tau

    def _dense_hybrid(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                      tau: npt.ArrayLike,
                      prescribed: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Solve the equations of motion as they stand [K (33)]: mimics close loops."""
        all_a, all_tau = np.empty(self._nv), np.empty(self._nv)
        b, _ = self.bias_torques(q, v), self.configuration_terms(q)
        M, rest = self._kept(model_terms)[0], (all_a, all_tau, self._kept(factor))
        try:
            if is_mask(prescribed) and not dense_hybrid_dynamics(M, b, a, tau, prescribed, *rest):
                return all_a, all_tau
        except NOT_A_VECTOR:
            pass
        a, tau, prescribed = self._given(a, tau, prescribed)
        column = self._call(dense_hybrid_dynamics, M, b, a, tau, prescribed, *rest)
        if column > 0:
            self._refuse(column - 1, q)
        if column:
            self._explain(q=q, v=v, a=a, tau=tau)
        return all_a, all_tau


def is_mask(x: object) -> bool:
    """Return whether kernels take something for an array of truth values."""
    return type(x) is np.ndarray and x.dtype is BOOL


# -- What `DynamicsMethods` keeps and hands out. --------------------------------------------------

def model_terms(w: DynamicsMethods) -> tuple[np.ndarray, DynamicsTerms]:
    """Return a buffer for the terms by the coordinates of the model, and the terms."""
    rows = np.zeros(w._term_layout.shape)
    return rows, tuple.__new__(DynamicsTerms, w._term_layout.cut(rows))


def tree_terms(w: KernelInterface) -> tuple[np.ndarray, DynamicsTerms]:
    """Return the same by those of the tree."""
    layout = term_layout(w._n)
    rows = np.zeros(layout.shape)
    return rows, DynamicsTerms(*layout.cut(rows))


# Entries of joints that do not carry each other are never written: they stay zero.
def square(w: KernelInterface) -> np.ndarray:
    """Return a buffer for the mass matrix."""
    return np.zeros((w._nv, w._nv))


def tree_square(w: KernelInterface) -> np.ndarray:
    """Return a buffer for that of the tree."""
    return np.zeros((w._n, w._n))


def factor(w: KernelInterface) -> np.ndarray:
    """Return a buffer for a factor of the mass matrix."""
    return np.zeros((w._nv, w._nv))


def none_prescribed(w: KernelInterface) -> np.ndarray:
    """Return the mask that says that no acceleration is given."""
    return np.zeros(w._nv, bool)
