# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Workspaces of robots whose coordinates are not those of their tree, v_tree = G v.

Arguments are mapped to the tree's coordinates here, and in `rbd_ros.batch.tasks` for many states;
`rbd_ros.workspace.quantity` has the maps of results. The methods that are not derived from those
of the tree use kernels for these maps, or solve the equations of motion in coupled coordinates.

"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.kernels.coordinates import (
    expand, fold_rows, fold_side_by_side, fold_stacked, fold_vector)
from rbd_ros.kernels.coupled_dynamics import (
    coupled_hybrid_derivatives, coupled_hybrid_dynamics, solve_equations)
from rbd_ros.model.arguments import mask, split_motion, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import scratch
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.body_changes import check_direction
from rbd_ros.workspace.maps import Map, rows, same
from rbd_ros.workspace.results import Derivatives, DynamicsTerms, Factorization, MatricesDot
from rbd_ros.workspace.variation import Variation

VECTORS = ('q', 'v', 'a', 'v_r', 'a_r')    # arguments mapped to the tree's coordinates


class CoupledMethods(WorkspaceBase):
    """The methods of `rbd_ros.Workspace` for coupled coordinates; each runs that of ``tree``."""

    _carriers = staticmethod(scratch.all_before)

    def __init__(self, model: Model, tree: Any, *, fresh: bool = False) -> None:
        WorkspaceBase.__init__(self, model, fresh=fresh)
        self._tree = self._bodies = tree
        to_tree = model.coordinates
        self._G, self._entries = to_tree.G, to_tree.columns
        nq, n = len(to_tree.source), len(to_tree.columns)
        self._expanded = np.zeros(nq + 3 * n)
        self._parts = np.split(self._expanded, [nq, nq + n, nq + 2 * n])
        self._map = (np.column_stack((to_tree.source, to_tree.multiplier, to_tree.offset)),
                     to_tree.columns, model.nq, model.nv)
        self._tau = np.zeros(model.nv)
        # The arrays of the tree, and what maps states to it, as kernels take them.
        self.robot, self._screws = tree.robot, tree._screws
        self._mimics = (*self._map[:2], *self._parts[:3])

    def _prescribe(self, prescribed: ArrayLike) -> None:
        table, marks = self._kept(scratch.elimination_table)
        table[marks] = prescribed

    @classmethod
    def add_mapped(cls, name: str, method: Callable[..., Any], maps: Sequence[Map]) -> None:
        """Add a method that maps the results of a method of the tree."""
        arguments = signature(method)
        # Torques have accelerations only in the coordinates of the robot.
        assert 'tau' not in arguments.parameters, f'{name} must be written out'
        labels = [label for label in arguments.parameters if label in VECTORS]
        count = len(labels)
        first, second = maps[0], maps[-1]
        # One result or a pair of them: written out, because the loop below takes longer.
        single, simple = len(maps) == 1, len(maps) <= 2 and rows not in maps

        @wraps(method)
        def mapped(self: CoupledMethods, *given: Any, **options: Any) -> Any:
            if len(given) < count:
                bound = arguments.bind(self, *given, **options)
                given, options = bound.args[1:], bound.kwargs
            zeros, tree = self._zeros, self._tree
            if not expand(*self._map, *(*given[:count], zeros, zeros, zeros)[:4], self._expanded):
                self.check(**dict(zip(labels, given)))
            try:
                found = getattr(tree, name)(*self._parts[:count], *given[count:], **options)
            except StateError:
                self._explain(**dict(zip(labels, given)))
            if simple and not self._fresh:
                if single:
                    return first(self._G, found)
                x, y = found
                return first(self._G, x), second(self._G, y)
            if single:
                return self._mapped(first, found)
            results = [self._mapped(one, x) for one, x in zip(maps, found)]
            return tuple(results) if type(found) is tuple else type(found)(*results)
        setattr(cls, name, mapped)

    def _mapped(self, to_robot: Map, x: np.ndarray) -> np.ndarray:
        if to_robot is same:
            return x.copy() if self._fresh else x
        if to_robot is rows:
            result = self._result(scratch.regressor)
            fold_rows(self._entries, x, result)
            return result
        return to_robot(self._G, x)

    def _expand(self, vectors: dict[str, ArrayLike]) -> Sequence[np.ndarray]:
        """Return q and up to three velocities or accelerations of the tree."""
        zeros = self._zeros
        if not expand(*self._map, *(*vectors.values(), zeros, zeros, zeros)[:4], self._expanded):
            self.check(**vectors)
        return self._parts[:len(vectors)]

    def _of_tree(self, method: Callable[..., Any], vectors: dict[str, ArrayLike], *rest: Any,
                 **options: Any) -> Any:
        """Run a method of the tree; errors name the coordinates of the robot."""
        try:
            return method(*self._expand(vectors), *rest, **options)
        except StateError:
            self._explain(**vectors)

    def _acting(self, external_wrenches: Wrenches | None) -> AbstractContextManager[None]:
        """Apply external wrenches to the bodies, and clear them on exit."""
        return (nullcontext() if external_wrenches is None
                else self._bodies._wrenches(external_wrenches))

    def _torques(self, tau: np.ndarray) -> np.ndarray:
        """Return G^T tau, in a buffer that is kept."""
        fold_vector(self._entries, tau, self._tau)
        return self._tau

    def all_terms(self, q: ArrayLike, v: ArrayLike,
                  factorization: Factorization = 'christoffel') -> DynamicsTerms:
        self._of_tree(self._tree.all_terms, {'q': q, 'v': v}, factorization)
        return self._fold_terms(*self._result(scratch.terms))

    def configuration_terms(self, q: ArrayLike) -> DynamicsTerms:
        self._of_tree(self._tree.configuration_terms, {'q': q})
        return self._fold_terms(*self._kept(scratch.terms))

    def _fold_terms(self, rows: np.ndarray, terms: DynamicsTerms) -> DynamicsTerms:
        tree_rows, tree = self._tree._kept(scratch.terms)
        # M and C; g, C v and the Jacobian of the centre of mass.
        fold_stacked(self._entries, self._nv, 2, 5, tree_rows, rows)
        terms.com[:] = tree.com
        return terms

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        M = self._result(scratch.square)
        fold_side_by_side(self._entries, self._nv,
                          self._of_tree(self._tree.mass_matrix, {'q': q}), M)
        return M

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        with self._acting(external_wrenches):
            return self._torques(self._of_tree(self._tree.inverse_dynamics,
                                               {'q': q, 'v': v, 'a': a}))

    def inverse_dynamics_packed(self, motion: ArrayLike) -> np.ndarray:
        q, v, a = split_motion(self.model, motion)
        return self.inverse_dynamics(q, v, a)

    def gravity_torques(self, q: ArrayLike) -> np.ndarray:
        return self._torques(self._of_tree(self._tree.gravity_torques, {'q': q}))

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        return self.hybrid_dynamics(q, v, self._zeros, tau, self._kept(scratch.none_prescribed),
                                    external_wrenches=external_wrenches)[0]

    def hybrid_dynamics(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            *, external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        if external_wrenches is not None:
            with self._acting(external_wrenches):
                return self.hybrid_dynamics(q, v, a, tau, prescribed)
        found = np.empty(self._nv), np.empty(self._nv)
        if not coupled_hybrid_dynamics(
                self.robot, self._screws, *self._mimics,
                *self._kept(scratch.equations_of_motion), q, v, a, tau, self._mask(prescribed),
                *found):
            self._explain_accelerations(q, v, a, tau, prescribed)
        return found

    def inverse_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        rows, derivatives = self._result(scratch.torque_derivatives)
        with self._acting(external_wrenches):
            self._differentiate(q, v, a, rows)
        return derivatives

    def _differentiate(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, rows: np.ndarray) -> None:
        self._of_tree(self._tree.inverse_dynamics_derivatives, {'q': q, 'v': v, 'a': a})
        fold_side_by_side(self._entries, self._nv,
                          self._tree._kept(scratch.torque_derivatives)[0], rows)

    def forward_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        return self.hybrid_dynamics_derivatives(
            q, v, self._zeros, tau, self._kept(scratch.none_prescribed),
            external_wrenches=external_wrenches)[0]

    def hybrid_dynamics_derivatives(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            *, external_wrenches: Wrenches | None = None
            ) -> tuple[Derivatives, np.ndarray, np.ndarray]:
        if external_wrenches is not None:
            with self._acting(external_wrenches):
                return self.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        X, lanes, derivatives = self._result(scratch.unknown_derivatives)
        found = np.empty(self._nv), np.empty(self._nv)
        if not coupled_hybrid_derivatives(
                self.robot, self._screws, *self._mimics,
                *self._kept(scratch.equations_of_motion), *self._kept(scratch.coupled_derivatives),
                q, v, a, tau, self._mask(prescribed), *found, X, lanes):
            self._explain_accelerations(q, v, a, tau, prescribed)
        return derivatives, *found

    def matrices_dot(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *,
                     factorization: Factorization = 'christoffel') -> MatricesDot:
        n, rows = self._nv, self._result(scratch.matrix_rates)
        tree = self._tree._kept(scratch.matrix_rates)
        self._of_tree(self._tree._write_rates, {'q': q, 'v': v, 'a': a}, factorization, tree)
        fold_stacked(self._entries, n, 2, 1, tree, rows)
        C = rows[:n]
        return MatricesDot(C + C.T, rows[n:2 * n], rows[2 * n])

    def inverse_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        changes = {label: self._G @ check_direction(self.model, label, getattr(variation, label))
                   for label in ('dq', 'dv', 'da')}
        with self._acting(external_wrenches):
            return self._torques(self._of_tree(
                self._tree._inverse_derivative, {'q': q, 'v': v, 'a': a},
                replace(variation, **changes), external_wrenches))

    def hybrid_dynamics_derivative(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            variation: Variation, *, external_wrenches: Wrenches | None = None
            ) -> tuple[np.ndarray, np.ndarray]:
        # The same equations, differentiated.
        prescribed = mask(self.model, 'prescribed', prescribed)
        dtau = check_direction(self.model, 'dtau', variation.dtau)
        da = np.where(prescribed, check_direction(self.model, 'da', variation.da), 0.0)
        a, _ = self.hybrid_dynamics(q, v, a, tau, prescribed, external_wrenches=external_wrenches)
        b = self.inverse_dynamics_derivative(q, v, a, replace(variation, da=da),
                                             external_wrenches=external_wrenches)
        self.configuration_terms(q)
        _, *found = self._kept(scratch.directions_found)
        table, *L = self._kept(scratch.factor)
        M = self._kept(scratch.terms)[0][:self._nv]
        if not solve_equations(table, M, b, *L, self._zeros, dtau, prescribed, *found):
            self._explain(q=q, v=v, a=a)
        found[0] += da
        return found[0], found[1]

    def _jacobian_and_bias(self, q: ArrayLike, v: ArrayLike, link: str,
                           aligned: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        tree, *matrices, _ = self._of_tree(self._tree._jacobian_and_bias, {'q': q, 'v': v}, link,
                                           aligned)
        J, J_dot = (X @ self._G for X in matrices)
        rows = self._kept(scratch.jacobian_rates)[0]
        rows[:6, :self._nv], rows[18, :6] = J, tree[18, :6]
        return rows, J, J_dot, self._nv - 1
