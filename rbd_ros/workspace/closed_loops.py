# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Workspaces of robots with closed loops.

Most methods run that of the tree and map its results as their declarations say; those written out
here have kernels of their own, or solve for accelerations.

"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from inspect import signature
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.kernels.loops import (
    arrays, closed_loops, derivatives as loop_derivatives, dynamics)
from rbd_ros.model.arguments import split_motion, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.body_changes import check_directions
from rbd_ros.workspace.joint_motion import JointMotion
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.maps import columns_dot, coriolis, Map, mapped_by, MotionMap
from rbd_ros.workspace.memory.results import (
    Derivatives, DynamicsTerms, Factorization, is_body_form, term_layout)
from rbd_ros.workspace.quantity import function_of
from rbd_ros.workspace.variation import Variation

# Arguments of the tree's methods, which also stand for a_r.
IN_TREE = {'v': 'self._V', 'a': 'self._A', 'v_r': '*self._references(q, v_r, a_r)'}


class ClosedMethods(JointMotion):
    """The methods of `rbd_ros.Workspace` for closed loops; each runs that of the open ``tree``."""

    def __init__(self, model: Model, tree: Any, *, fresh: bool = False) -> None:
        super().__init__(model, tree, fresh=fresh)
        self._tau, self._a = (self._vectors[k, :model.nv] for k in (arrays.TAU, arrays.OWN_A))
        self._solver = *self._table, *self._kept(scratch.factor)
        # Buffers for the terms and the derivatives of the tree.
        n = len(self._loops.order)
        self._tree_terms, D = np.zeros(term_layout(n).shape), np.zeros((n, 3 * n))
        self._tree_derivatives = *self._table, D
        self._differentiation = *self._solver, D, *scratch.torque_derivatives_and_path(self)
        self._forward = partial(dynamics.closed_forward_dynamics, *self._solver)
        self._hybrid = partial(dynamics.closed_hybrid_dynamics, *self._solver)
        self._forward_derivatives = partial(
            loop_derivatives.closed_forward_derivatives, *self._differentiation)
        self._hybrid_derivatives = partial(
            loop_derivatives.closed_hybrid_derivatives, *self._differentiation)

    def _derivative_arrays(self) -> tuple[np.ndarray, ...]:
        """Return the buffers of `closed_forward_derivatives_states`."""
        X, lanes, _ = self._kept(scratch.unknown_derivatives)
        return *self._differentiation, X, lanes

    @classmethod
    def add_mapped(cls, name: str, method: Callable[..., Any],
                   maps: Sequence[Map | MotionMap]) -> None:
        """Add a method that maps the results of a method of the tree."""
        form = signature(method)
        given = list(form.parameters.values())[1:]
        motion = [x.name for x in given if x.name in ('q', 'v', 'a')]
        move = f"self.{'_at' if motion == ['q'] else '_move'}({', '.join(motion)})"
        of_tree = ', '.join(f'{x.name}={x.name}' if x.kind is x.KEYWORD_ONLY
                            else IN_TREE.get(x.name, x.name) for x in given if x.name != 'a_r')
        arguments = ', '.join(f'{x.name!r}: {x.name}' for x in given)
        mapped = function_of(
            name, str(form), f'{move} or run(self, self._tree.{name}({of_tree}), {{{arguments}}})',
            {'run': mapped_by(maps)})
        setattr(cls, name, update_wrapper(mapped, method))

    # -- Dynamics. ------------------------------------------------------------------------------
    def _write_terms(self, q: ArrayLike, v: ArrayLike, factorization: Factorization,
                     rows: np.ndarray) -> None:
        if not dynamics.closed_terms(*self._table, q, v, self._tree_terms, rows):
            self._explain(q=q, v=v)
        if is_body_form(factorization):
            self._move(q, v)
            tree = self._tree.all_terms(q, self._V, 'body')
            term_layout(self._nv).cut(rows)[1][:] = coriolis(
                *self._rates_of_G(q)[:2], tree.M, tree.C)

    def configuration_terms(self, q: ArrayLike) -> DynamicsTerms:
        self._at(q)
        G, tree, terms = self._G, self._tree.configuration_terms(q), self._kept(scratch.terms)[1]
        terms.M[:], terms.g[:] = G.T @ tree.M @ G, tree.g @ G
        terms.com_jacobian[:], terms.com[:] = tree.com_jacobian @ G, tree.com
        return terms

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.inverse_dynamics(q, v, a)
        if not dynamics.closed_inverse_dynamics(*self._table, q, v, a):
            self._explain(q=q, v=v, a=a)
        return self._tau

    def inverse_dynamics_packed(self, motion: ArrayLike) -> np.ndarray:
        q, v, a = split_motion(self.model, motion)
        return self.inverse_dynamics(q, v, a)

    def _explain_accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                               tau: ArrayLike, prescribed: ArrayLike) -> NoReturn:
        """Raise the error for accelerations that could not be computed."""
        status = int(self._vectors[1, -1]) - arrays.NOT_SOLVED
        self._vectors[1, -1] = 0.0    # Arguments that cannot be converted leave it as it is.
        if status > 0:
            self._refuse(status - 1, q)
        a, tau, _ = self._given(a, tau, prescribed)
        self._explain(q=q, v=v, a=a, tau=tau)

    def constraint_forces(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Return the forces of the equations, of least norm where they are redundant."""
        self._move(q, v, a)
        # J_d^T f balances the torques of the dependent joints, which have no motors.
        forces = np.zeros(self._loops.rows)
        closed_loops.constraint_forces(
            self._table[2], self._tree.inverse_dynamics(q, self._V, self._A), forces)
        return forces[self._held]

    def inverse_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.inverse_dynamics_derivatives(q, v, a)
        rows, derivatives = self._result(scratch.torque_derivatives)
        if not loop_derivatives.closed_inverse_dynamics_derivatives(
                *self._tree_derivatives, q, v, a, rows):
            self._explain(q=q, v=v, a=a)
        return derivatives

    def inverse_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        if variation.dplacement:
            raise StateError('dplacement is not available for robots with closed loops, whose '
                             'configuration would have to change with it')
        self._move(q, v, a)
        v, a = self.check(v=v, a=a)
        G = self._G
        dq, dv, da = check_directions(self.model, variation, 'dq', 'dv', 'da')
        u = G @ dq
        rate, dG, _ = self._derivatives_of_G(q, self._V, u, self._zeros_of_tree)
        V_change = dG @ v
        A_change = (dG @ a + self._derivatives_of_G(q, self._V, u, V_change)[2] @ v
                    + rate @ dv + self._rate_of_G(q, G @ dv) @ v)
        changes = {'dq': u, 'dv': V_change + G @ dv, 'da': A_change + G @ da}
        tau = self._tree.inverse_dynamics(q, self._V, self._A, external_wrenches) @ dG
        return tau + self._tree.inverse_dynamics_derivative(
            q, self._V, self._A, replace(variation, **changes),
            external_wrenches=external_wrenches) @ G

    def _jacobian_and_bias(self, q: ArrayLike, v: ArrayLike, link: str,
                           aligned: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        self._move(q, v)
        found, J, J_dot, _ = self._tree._jacobian_and_bias(q, self._V, link, aligned)
        rows = self._kept(scratch.jacobian_rates)[0]
        rows[18, :6] = found[18, :6] + J @ self._gamma
        J, J_dot = J @ self._G, columns_dot(*self._rates_of_G(q)[:2], J, J_dot)
        rows[:6, :self._nv] = J
        return rows, J, J_dot, self._nv - 1
