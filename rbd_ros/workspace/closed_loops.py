# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Workspaces of robots with closed loops.

Most methods run that of the tree and map its results as their declarations say; those written out
here have kernels of their own, or solve for accelerations.

All joints move with V = G(q) v and A = G a + gamma. With J(q) V = 0 and P = -J_d^+ in the rows of
dependent joints, zero in the others, the derivative of G in any direction is P dJ G. See
`rbd_ros.kernels.loops.closed_loops`.

"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from inspect import signature
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import SingularError, StateError
from rbd_ros.kernels.loops import (
    arrays, changes, closed_loops, derivatives as loop_derivatives, dynamics)
from rbd_ros.kernels.tree.columns import VELOCITY
from rbd_ros.model.arguments import split_motion, Wrenches
from rbd_ros.model.loops import equation_rows
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import equations_and_gaps, open_loops
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.body_changes import check_directions
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.maps import columns_dot, coriolis, Map, mapped_by, MotionMap
from rbd_ros.workspace.memory.results import (
    Derivatives, DynamicsTerms, Factorization, is_body_form, term_layout)
from rbd_ros.workspace.quantity import function_of
from rbd_ros.workspace.variation import Variation

# Share of a joint in a singular motion from which it is named.
NAMED = 0.1
# Arguments of the tree's methods, which also stand for a_r.
IN_TREE = {'v': 'self._V', 'a': 'self._A', 'v_r': '*self._references(q, v_r, a_r)'}


class ClosedMethods(CoupledMethods):
    """The methods of `rbd_ros.Workspace` for closed loops; each runs that of the open ``tree``."""

    def __init__(self, model: Model, tree: Any, *, fresh: bool = False) -> None:
        WorkspaceBase.__init__(self, model, fresh=fresh)
        assert model.loops is not None
        self._tree, self._loops = tree, model.loops
        loops, n = model.loops, len(model.loops.order)
        array = self._loop_arrays(model)
        parts = arrays.cut(array)
        self._vectors = parts.vectors
        self._held = np.concatenate([
            np.arange(one.equations) + int(first) for one, first in zip(
                loops.constraints, parts.table[:, arrays.FIRST])])
        self._V, self._A, self._gamma = self._vectors[arrays.V:arrays.GAMMA + 1, :n]
        self._G = self._vectors[arrays.G:, :n].T
        self._zeros_of_tree = np.zeros(n)
        self._table = tree.robot, tree._traits, array
        self._tau, self._a = (self._vectors[k, :model.nv] for k in (arrays.TAU, arrays.OWN_A))
        self._solver = *self._table, *self._kept(scratch.factor)
        # Buffers for the terms and the derivatives of the tree.
        self._tree_terms, D = np.zeros(term_layout(n).shape), np.zeros((n, 3 * n))
        self._tree_derivatives = *self._table, D
        self._differentiation = *self._solver, D, *scratch.torque_derivatives_and_path(self)
        self._forward = partial(dynamics.closed_forward_dynamics, *self._solver)
        self._hybrid = partial(dynamics.closed_hybrid_dynamics, *self._solver)
        self._forward_derivatives = partial(
            loop_derivatives.closed_forward_derivatives, *self._differentiation)
        self._hybrid_derivatives = partial(
            loop_derivatives.closed_hybrid_derivatives, *self._differentiation)

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

    # -- The motion of all joints. ----------------------------------------------------------------
    def _loop_arrays(self, model: Model) -> np.ndarray:
        """Return the array of the kernels for closed loops."""
        assert model.loops is not None
        return model.loops.array(damped=True)

    def _moved_joints(self) -> np.ndarray:
        loops = self._loops
        own, moved = len(loops.order) - loops.nv, np.zeros((len(loops.order), loops.nv))
        moved[loops.order[own:], np.arange(loops.nv)] = 1.0
        blocks, involved, _ = loops.numbers
        for _, _, first, last, *columns in blocks:
            independent = np.array([i for i, _ in involved[slice(*columns)]], int)
            moved[np.ix_(loops.order[first:last], independent)] = 1.0
        return moved[self.model.tree.robot[1:, VELOCITY].astype(int)]

    def _at(self, q: ArrayLike) -> None:
        """Find G."""
        if not closed_loops.loop_map(*self._table, q):
            self._explain(q=q)

    def _move(self, q: ArrayLike, v: ArrayLike, *a: ArrayLike) -> None:
        """Find G, V, A, where a is zero unless it is given, and gamma."""
        if not closed_loops.loop_motion(*self._table, q, v, *(a or (self._zeros,))):
            self._explain(**dict(zip(('q', 'v', 'a'), (q, v, *a))))

    def _references(self, q: ArrayLike, v_r: ArrayLike,
                    a_r: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return reference velocity and acceleration of the tree; needs V and G."""
        v_r, a_r = self.check(v_r=v_r, a_r=a_r)
        return self._G @ v_r, self._G @ a_r + self._rate_of_G(q, self._V) @ v_r

    def _wrenches(self, external_wrenches: Wrenches) -> Any:
        return self._tree._wrenches(external_wrenches)

    def _torques(self, tau: np.ndarray) -> np.ndarray:
        return tau @ self._G

    def _explain(self, **vectors: ArrayLike) -> NoReturn:
        """Raise the error for open or singular loops, or for what is not finite."""
        self.check(**vectors)
        q = np.asarray(vectors['q'], float)
        if not closed_loops.loop_map(*self._table, q):
            gap, status = self._vectors[:2, -1]
            if gap > arrays.CLOSED:
                raise open_loops(self._loops, self.model.name, q)
            if status:
                self._singular(q)
        super()._explain(**vectors)

    def _singular(self, q: np.ndarray) -> NoReturn:
        loops, names = self._loops, self._tree.model.velocity_names
        dependent = loops.order[:len(loops.order) - loops.nv]
        J = equations_and_gaps(loops, q)[0]
        motion = np.linalg.svd(J[:, dependent])[2][-1]
        moving = dependent[np.abs(motion) > NAMED]
        named = [f"'{one.name}'" for one, rows in equation_rows(loops.constraints)
                 if J[rows, moving].any()]
        raise SingularError(
            f"the loop of {' and '.join(named)} is singular here: its independent joints do not "
            f"determine {', '.join(repr(names[k]) for k in moving)}; keep away from this "
            'position, or choose other independent joints')

    def _refuse(self, column: int, q: ArrayLike) -> NoReturn:
        name = self.model.velocity_names[column]
        raise SingularError(
            f"'{name}' moves no inertia, so its acceleration is not defined: give the links that "
            'it carries a mass and an inertia, or prescribe its acceleration')

    # -- Rates of G. ----------------------------------------------------------------------------
    def _derivatives_of_G(self, q: ArrayLike, v: np.ndarray, u: np.ndarray,
                          w: np.ndarray) -> np.ndarray:
        """Return the derivatives of G by time, along u, and both, all for the tree."""
        rates = np.zeros((3, *self._G.T.shape))
        changes.map_changes(*self._table, np.asarray(q, float), v, u, w, *rates)
        return rates.transpose(0, 2, 1)

    def _rate_of_G(self, q: ArrayLike, direction: np.ndarray) -> np.ndarray:
        """Return the derivative of G in a direction of the tree's velocities."""
        return self._derivatives_of_G(q, direction, direction, self._zeros_of_tree)[0]

    def _rates_of_G(self, q: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return G and its first and second derivative by time."""
        rate, _, second = self._derivatives_of_G(q, self._V, self._V, self._A)
        return self._G, rate, second

    def _changes_of_G(self, q: ArrayLike) -> np.ndarray:
        """Return the derivatives of G along independent velocities, the direction first."""
        return np.array([self._rate_of_G(q, u) for u in self._G.T])

    def _changes(self, q: ArrayLike, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return dG/dt, and the derivatives of G and of it, with v held, the direction first."""
        of_G = self._changes_of_G(q)
        of_rate = [self._derivatives_of_G(q, self._V, u, dG @ v)[2]
                   for u, dG in zip(self._G.T, of_G)]
        return np.tensordot(v, of_G, 1), of_G, np.array(of_rate)

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
