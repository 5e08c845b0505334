# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: derivatives by state, input and time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.bodies import BLOCK, LANES, NUMBER, PARENT, PRESCRIBED
from rbd_ros.kernels.compiled import NOT_A_VECTOR, prepare
from rbd_ros.kernels.composite_body_rates import composite_rates
from rbd_ros.kernels.mass_matrix_factor import lanes_of_columns, TOGETHER
from rbd_ros.kernels.matrix_derivatives import (add_factorization_rate,
                                                coriolis_matrix_derivatives,
                                                mass_matrix_derivatives)
from rbd_ros.kernels.mimics import fold_side_by_side, fold_stacked
from rbd_ros.kernels.newton_euler_derivatives import (forward_dynamics_and_derivatives,
                                                      hybrid_dynamics_and_derivatives,
                                                      hybrid_dynamics_derivatives,
                                                      inverse_dynamics_derivatives)
from rbd_ros.model.model import Model
from rbd_ros.validation import choice, Wrenches
from rbd_ros.workspace.dynamics import DynamicsMethods, is_mask, none_prescribed
from rbd_ros.workspace.kernel_interface import KernelInterface
from rbd_ros.workspace.results import (derivative_layout, Derivatives, Factorization,
                                       FACTORIZATIONS, MatricesDot)

__all__ = ['DerivativeMethods']


class DerivativeMethods(DynamicsMethods):
    """
    Derivatives of the dynamics and their matrices by state, input and time.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._derivative_layout = derivative_layout(self._nv)

    # -- By position, velocity and input. --------------------------------------------------------

    def inverse_dynamics_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        """Return the `Derivatives` of tau; by_input is M."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.inverse_dynamics_derivatives(q, v, a)
        rows, derivatives = self._result(of_torques)
        self._differentiate(q, v, a, rows)
        return derivatives

    def _differentiate(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                       rows: np.ndarray) -> None:
        """Write the derivatives of the torques by the coordinates of the model."""
        try:
            if self._folding is None and inverse_dynamics_derivatives(self.robot, self._screws,
                                                                      q, v, a, rows):
                return
        except NOT_A_VECTOR:
            pass
        tree = rows if self._folding is None else self._kept(tree_derivatives)
        self._run(inverse_dynamics_derivatives, 'qva', (q, v, a), tree)
        if self._folding is not None:
            self._call(fold_side_by_side, self._folding.columns, self._nv, tree, rows)

    def forward_dynamics_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        """Return the `Derivatives` of a; by_input is the inverse of M."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.forward_dynamics_derivatives(q, v, tau)
        if self._folding is not None:
            return self.hybrid_dynamics_derivatives(q, v, self._zeros, tau,
                                                    self._kept(none_prescribed))[0]
        X, lanes, derivatives = self._result(of_unknowns)
        work = self._kept(derivatives_and_factor)
        try:
            fine = forward_dynamics_and_derivatives(self.robot, self._screws, q, v, self._a, tau,
                                                    *work, X, lanes)
        except NOT_A_VECTOR:
            q, v, tau = self._convert(q=q, v=v, tau=tau)
            self._articulated(q, v, self._a, tau)
            self._prepare_derivatives(q, v, self._a, X, lanes)
            arguments = self._screws, q, v, self._a, tau, *work, X, lanes
            prepare(forward_dynamics_and_derivatives, self.robot, *arguments)
            fine = forward_dynamics_and_derivatives(self.robot, *arguments)
        if not fine:
            self._articulated(q, v, self._a, tau)
            self._explain(q=q, v=v, tau=tau)
        return derivatives

    def _prepare_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                             X: np.ndarray, lanes: np.ndarray) -> None:
        """Compile the kernels that others call, which must be there before these are."""
        work = self._kept(derivatives_and_factor)
        self._run(inverse_dynamics_derivatives, 'qva', (q, v, a), work[0])
        prepare(hybrid_dynamics_derivatives, self.robot, *work, X, lanes)

    def hybrid_dynamics_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, *, external_wrenches: Wrenches | None = None
            ) -> tuple[Derivatives, np.ndarray, np.ndarray]:
        """Return the `Derivatives` of the unknown torques and accelerations, and a and tau."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        X, lanes, derivatives = self._result(of_unknowns)
        work = self._kept(derivatives_and_factor)
        if self._folding is not None:
            a, tau = self._dense_hybrid(q, v, a, tau, prescribed)
            self._differentiate(q, v, a, work[0])
            table, places = self._kept(everyone_carried)
            table[places] = prescribed
            if not self._call(hybrid_dynamics_derivatives, table, *work, X, lanes):
                self._explain(q=q, v=v, a=a, tau=tau)
            return derivatives, a, tau
        found = np.empty(self._nv), np.empty(self._nv)
        try:
            fine = is_mask(prescribed) and hybrid_dynamics_and_derivatives(
                self.robot, self._screws, q, v, a, tau, prescribed, *found, *work, X, lanes)
        except NOT_A_VECTOR:
            fine = False
            self.prescribe(False)
        if not fine:
            a, tau, prescribed = self._given(a, tau, prescribed)
            found = self.hybrid_dynamics(q, v, a, tau, prescribed)
            q, v = self._convert(q=q, v=v)
            self._prepare_derivatives(q, v, found[0], X, lanes)
            arguments = (self._screws, q, v, a, tau, prescribed, *found, *work, X, lanes)
            prepare(hybrid_dynamics_and_derivatives, self.robot, *arguments)
            if not hybrid_dynamics_and_derivatives(self.robot, *arguments):
                self._explain(q=q, v=v, a=a, tau=tau)
        return derivatives, *found

    # -- Of M, C and g. --------------------------------------------------------------------------

    def _skew(self, factorization: Factorization) -> int | None:
        """Return the argument of the kernels for a factorization of C."""
        return 1 if choice('factorization', factorization, FACTORIZATIONS) == 'body' else None

    def _fold_all(self, D: np.ndarray) -> np.ndarray:
        """Return derivatives of a matrix by the tree's coordinates, the first axis, by ours."""
        return self._fold_derivatives(D if self._folding is None else self._folding.G.T @ D)

    def mass_matrix_derivatives(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the derivatives of M by the coordinates, shape (nv, nv, nv)."""
        D = self._result(cube)
        self._run(mass_matrix_derivatives, 'q', (q,), D)
        return self._fold_all(D)

    def coriolis_matrix_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, *,
            factorization: Factorization = 'christoffel') -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of C by the coordinates and by the velocities."""
        by_q, by_v = self._result(cubes)
        self._run(coriolis_matrix_derivatives, 'qv', (q, v), self._skew(factorization), by_q, by_v)
        return self._fold_all(by_q), self._fold_all(by_v)

    def gravity_torques_derivatives(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the derivatives of g: of the torques by q, where nothing moves."""
        return self.inverse_dynamics_derivatives(q, self._zeros, self._zeros).by_position

    def matrices_dot(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, *,
                     factorization: Factorization = 'christoffel') -> MatricesDot:
        """Return the `MatricesDot`."""
        skew, n, rows = self._skew(factorization), self._nv, self._result(rates)
        tree = rows if self._folding is None else self._kept(tree_rates)
        self._run(composite_rates, 'qva', (q, v, a), tree)
        if skew is not None:
            self._call(add_factorization_rate, self.robot, tree)
        if self._folding is not None:
            self._call(fold_stacked, self._folding.columns, n, 2, 1, tree, rows)
        C = rows[:n]
        return MatricesDot(C + C.T, rows[n:2 * n], rows[2 * n])


# -- What `DerivativeMethods` keeps and hands out. ------------------------------------------------

# For a robot of thousands of joints these are large.
def of_torques(w: DerivativeMethods) -> tuple[np.ndarray, Derivatives]:
    """Return a buffer for the derivatives of tau, and its parts."""
    rows = np.zeros(w._derivative_layout.shape)
    return rows, tuple.__new__(Derivatives, w._derivative_layout.cut(rows))


def of_unknowns(w: DerivativeMethods) -> tuple[np.ndarray, np.ndarray, Derivatives]:
    """
    Return a buffer for the derivatives of what is not given of a and tau, and its parts.

    The buffer comes as a matrix and in lanes.

    """
    X, lanes = lanes_of_columns(w._nv, 3 * w._nv, TOGETHER)
    return X, lanes, tuple.__new__(Derivatives, w._derivative_layout.cut(X))


def tree_derivatives(w: KernelInterface) -> np.ndarray:
    """Return a buffer for the derivatives of tau by the coordinates of the tree."""
    return np.zeros((w._n, 3 * w._n))


def derivatives_and_factor(w: KernelInterface) -> tuple[np.ndarray, ...]:
    """Return buffers for derivatives of tau on the way to others, and to factorize M."""
    n = w._nv
    return np.zeros((n, 3 * n)), *lanes_of_columns(n, n), np.zeros(n, np.int64)


def everyone_carried(w: KernelInterface) -> tuple[np.ndarray, np.ndarray]:
    """
    Return a table of bodies each of which carries all that follow, one for each velocity.

    With this table the kernel of the derivatives treats the mass matrix as a full one, as mimics
    make it. With it comes the place of the marks for the accelerations that are given.

    """
    n = w._nv + 1
    places = np.arange(n) // LANES * BLOCK + np.arange(n) % LANES
    table = np.zeros(-(-n // LANES) * BLOCK)
    whole = table.view(np.int64)
    whole[places + LANES * NUMBER] = np.arange(n)
    whole[places[1:] + LANES * PARENT] = places[:-1]
    whole[LANES * PARENT] = n
    return table, places[1:] + LANES * PRESCRIBED


# Entries of joints that do not carry each other are never written: they stay zero.
def cube(w: KernelInterface) -> np.ndarray:
    """Return a buffer for the derivatives of M by the coordinates of the tree."""
    return np.zeros(3 * (w._n,))


def cubes(w: KernelInterface) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer for the derivatives of C."""
    return np.zeros(3 * (w._n,)), np.zeros(3 * (w._n,))


def rates(w: KernelInterface) -> np.ndarray:
    """Return a buffer for C and the rates of C and g."""
    return np.zeros((2 * w._nv + 1, w._nv))


def tree_rates(w: KernelInterface) -> np.ndarray:
    """Return the same by the coordinates of the tree."""
    return np.zeros((2 * w._n + 1, w._n))
