# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inverse, forward and hybrid dynamics, and the matrices of the equations of motion.

    tau = M(q) a + C(q, v) v + g(q) - sum_i J_i^T f_i

where f_i is the external wrench on link i. Each public function derives from the method of
`Workspace` with its name, whose declaration also names the kernel for many states;
`rbd_ros.workspace.documentation` describes the arguments. All raise StateError for an argument of
the wrong shape or with a non-finite entry, ModelError for a link that does not exist, and
SingularError if the acceleration of a joint that moves no inertia is unknown.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.kernels import articulated_bodies, composite_bodies, newton_euler
from rbd_ros.kernels.states import batch_dynamics
from rbd_ros.model.arguments import (
    number, one_or_rows, real_array, rows, split_motion, Wrenches)
from rbd_ros.model.changes.friction import direction, friction
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import checked
from rbd_ros.workspace.derivative_rules import of_mass_matrix
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import (
    Closed, EQUATIONS, lane_of, lanes_of, shape, States)
from rbd_ros.workspace.memory.maps import matrix, torques
from rbd_ros.workspace.memory.results import (
    ACCELERATIONS, C, CHRISTOFFEL, COM, COM_JACOBIAN, cut_terms, DynamicsTerms, Factorization,
    is_body_form, M, term_layout, TORQUES)
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.passive_joints import all_springs, passive_friction
from rbd_ros.workspace.quantity import of_joints, plain, quantity


def _shapes_of_terms(model: Model, n: int) -> Sequence[tuple[int, ...]]:
    return [term_layout(n).shape]


def _term(part: int, **options: Any) -> States:
    """Return the kernel of one of the `DynamicsTerms`: that of all."""
    return replace(TERMS, cut=lambda rows: cut_terms(rows)[part:part + 1], result=itemgetter(0),
                   **options)


def _turned_terms(found: DynamicsTerms, R: np.ndarray, r: np.ndarray) -> DynamicsTerms:
    return found._replace(com=R @ found.com + r, com_jacobian=R @ found.com_jacobian)


# -- Kernels for many states. -------------------------------------------------------------------
INVERSE = States(batch_dynamics.inverse_dynamics_states, shape(-1),
                 closed=Closed('closed_inverse_states', lambda w: w._table))
FORWARD = States(
    batch_dynamics.forward_dynamics_states, shape(-1), [lane_of('A')],
    closed=Closed('closed_forward_states', lambda w: w._solver),
    coupled={'kernel': batch_dynamics.coupled_forward_states,
             'scratch': [lane_of('A'), *EQUATIONS]})
HYBRID = States(
    batch_dynamics.hybrid_dynamics_states, lambda model, n: [(n,), (n,)], result=tuple,
    coupled={'kernel': batch_dynamics.coupled_hybrid_states, 'scratch': EQUATIONS})
TERMS = States(
    batch_dynamics.all_terms_states, _shapes_of_terms, [lanes_of(_shapes_of_terms)], cut_terms,
    DynamicsTerms._make,
    closed=Closed('closed_terms_states', lambda w: (*w._table, w._tree_terms)))


class DynamicsMethods(RobotArrays):
    """Dynamics, and the matrices of the equations of motion."""

    @quantity(torques, kept=True, results={'tau': TORQUES}, states=INVERSE,
              derivatives='inverse_dynamics_derivatives')
    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        """
        Return the torques that produce the accelerations a.

        Reference: Kim table 2; Lynch and Park (9.53)-(9.57); recursive Newton-Euler, O(n).

        Returns
        -------
        ndarray, shape (nv,), N m or N

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.inverse_dynamics(q, v, a)
        if not newton_euler.newton_euler(self.robot, self._traits, q, v, a):
            self._explain(q=q, v=v, a=a)
        return self._tau

    def inverse_dynamics_packed(self, motion: ArrayLike) -> np.ndarray:
        """Return the torques for q, v and a in one array (nq + 2 nv,), which is faster to pass."""
        if not newton_euler.newton_euler_packed(self.robot, self._traits, motion):
            q, v, a = split_motion(self.model, motion)
            self._explain(q=q, v=v, a=a)
        return self._tau

    @quantity(kept=True, results={'b': TORQUES}, states=replace(INVERSE, zeros=['A']),
              derivatives='inverse_dynamics_derivatives')
    def bias_torques(self, q: ArrayLike, v: ArrayLike,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
        """
        Return the torques at zero acceleration, C v + g - sum J^T f.

        Reference: Lynch and Park (9.1), b; recursive Newton-Euler, O(n).

        Returns
        -------
        ndarray, shape (nv,), N m or N

        """
        return self.inverse_dynamics(q, v, self._zeros, external_wrenches)

    @quantity(torques, kept=True, results={'g': TORQUES}, states=States(
        batch_dynamics.gravity_torques_states, shape(-1)),
        derivatives='inverse_dynamics_derivatives')
    def gravity_torques(self, q: ArrayLike) -> np.ndarray:
        """
        Return g(q), the torques that hold the robot still.

        Reference: Lynch and Park (9.84); Garofalo et al. (6c); recursive Newton-Euler, O(n).

        Returns
        -------
        ndarray, shape (nv,), N m or N

        """
        if not newton_euler.newton_euler_at_rest(self.robot, self._traits, q):
            self._explain(q=q)
        return self._tau

    @quantity(kept=True, results={'a': ACCELERATIONS}, states=FORWARD, in_root=of_joints,
              derivatives='forward_dynamics_derivatives')
    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                         external_wrenches: Wrenches | None = None) -> np.ndarray:
        """
        Return the accelerations that the torques tau produce.

        Reference: Kim table 3; articulated bodies, O(n). With mimic joints: Lynch and Park (9.2).

        Returns
        -------
        ndarray, shape (nv,), rad/s^2 or m/s^2

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.forward_dynamics(q, v, tau)
        if not articulated_bodies.articulated_bodies(self.robot, self._traits, q, v, self._a, tau):
            self._explain_forward(q, v, tau)
        return self._a

    @quantity(results={'all_a': ACCELERATIONS, 'all_tau': TORQUES}, states=HYBRID,
              in_root=of_joints)
    def hybrid_dynamics(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            *, external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        """
        Return all accelerations and torques, given one of the two for every joint.

        Accelerations are read where they are prescribed, torques elsewhere. Reference: Kim table
        4; articulated bodies, O(n). Where joints mimic others: Kim (33).

        Returns
        -------
        a, tau : ndarray, shape (nv,)
            rad/s^2 or m/s^2, and N m or N.

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.hybrid_dynamics(q, v, a, tau, prescribed)
        found = np.empty(self._nv), np.empty(self._nv)
        if not articulated_bodies.hybrid_dynamics(self.robot, self._traits, q, v, a, tau,
                                                  self._mask(prescribed), *found):
            self._explain_accelerations(q, v, a, tau, prescribed)
        return found

    @quantity(matrix, results=M, states=_term(0, zeros=['V']), derivatives=of_mass_matrix,
              in_root=of_joints)
    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """
        Return the joint-space mass matrix M(q), symmetric positive definite.

        Reference: Lynch and Park (9.61); Vlasblom (2.17); composite bodies.

        Returns
        -------
        ndarray, shape (nv, nv), kg m^2, kg m or kg by pair of joints

        """
        M = self._result(scratch.square)
        if not composite_bodies.mass_matrix(self.robot, self._traits, q, M):
            self._explain(q=q)
        return M

    def _write_terms(self, q: ArrayLike, v: ArrayLike, factorization: Factorization,
                     rows: np.ndarray) -> None:
        if not composite_bodies.composite_bodies(self.robot, self._traits, q, v, rows):
            self._explain(q=q, v=v)
        if factorization is not CHRISTOFFEL and is_body_form(factorization):
            composite_bodies.use_body_factorization(self.robot, rows)

    @quantity(kept=True, results=C, states=_term(1), in_root=of_joints)
    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike,
                        factorization: Factorization = 'christoffel') -> np.ndarray:
        """
        Return the Coriolis matrix C(q, v), with dM/dt - 2 C skew.

        Reference: Lynch and Park (9.87), Vlasblom (1.16); ``'body'``: Garofalo et al. (6b).

        Returns
        -------
        ndarray, shape (nv, nv), with C v in N m or N

        """
        rows, terms = self._kept(scratch.terms)
        self._write_terms(q, v, factorization, rows)
        return terms.C

    @quantity(states=TERMS, in_root=_turned_terms, results={
        **M, **C, 'g': f'gravity: {TORQUES}', 'coriolis_torques': f'C v: {TORQUES}',
        **COM_JACOBIAN, **COM})
    def all_terms(self, q: ArrayLike, v: ArrayLike,
                  factorization: Factorization = 'christoffel') -> DynamicsTerms:
        """
        Return M, C, g, C v, the centre of mass and its Jacobian, in one pass of composite bodies.

        Returns
        -------
        DynamicsTerms
            With the fields ``M C g coriolis_torques com_jacobian com``.

        """
        rows, terms = self._result(scratch.terms)
        self._write_terms(q, v, factorization, rows)
        return terms

    def configuration_terms(self, q: ArrayLike) -> DynamicsTerms:
        """Compute the `DynamicsTerms` that need no velocity; C and C v are not updated."""
        rows, terms = self._kept(scratch.terms)
        if not composite_bodies.composite_bodies_at_rest(self.robot, self._traits, q, rows):
            self._explain(q=q)
        return terms


inverse_dynamics = plain(DynamicsMethods.inverse_dynamics)
bias_torques = plain(DynamicsMethods.bias_torques)
gravity_torques = plain(DynamicsMethods.gravity_torques)
forward_dynamics = plain(DynamicsMethods.forward_dynamics)
hybrid_dynamics = plain(DynamicsMethods.hybrid_dynamics)
mass_matrix = plain(DynamicsMethods.mass_matrix)
coriolis_matrix = plain(DynamicsMethods.coriolis_matrix)
all_terms = plain(DynamicsMethods.all_terms)


@quantity(results={'friction': TORQUES})
def friction_torques(model: Model, v: ArrayLike, *, smooth: float = 0.0,
                     q: ArrayLike | None = None) -> np.ndarray:
    """
    Return the friction torques of the joints, which motors must exert in addition.

    Parameters
    ----------
    model, v
        Robot; velocity (nv,) or (states, nv), rad/s or m/s.
    smooth : float
        Speed at which Coulomb friction has risen to three quarters, rad/s or m/s: s is
        tanh(v / smooth). 0: s is sign(v).
    q : array_like, optional
        Configuration (nq,) or (states, nq), rad or m: needed with closed loops, in which passive
        joints have friction, too.

    Returns
    -------
    ndarray, of the shape of v
        damping v + damping_asymmetry abs(v) + (friction + stribeck_friction
        exp(-(v / stribeck_velocity)^2)) s + friction_asymmetry abs(s) + effort_offset, N m or N,
        with the attributes of the model of these names.

    """
    v, smooth = one_or_rows(model, 'v', v), number('smooth', smooth, 0.0)
    own = friction(model, v, direction(v, smooth), v)
    if model.loops is None:
        return own
    if q is None:
        raise StateError('friction_torques of a robot with closed loops needs q: passive joints '
                         'have friction, too')
    if v.ndim == 2:
        q = rows(model, 'q', q, len(v), positions=True)
    return own + passive_friction(model, np.asarray(q), v, smooth)


@quantity(results={'springs': TORQUES})
def spring_torques(model: Model, q: ArrayLike) -> np.ndarray:
    """
    Return the torques that hold the springs of the joints; they are not part of g(q).

    Parameters
    ----------
    model : Model
        With its ``stiffness`` and ``spring_reference``.
    q : array_like, shape (nq,) or (states, nq)
        Configuration, rad or m, of one state or of several.

    Returns
    -------
    ndarray, shape (nv,) or (states, nv)
        stiffness (q - spring_reference), N m or N. Of ball joints: stiffness times the rotation
        vector from the reference, in the child's axes; of free joints also stiffness times the
        displacement, in the same axes.

    """
    array = real_array(q)
    if array is None or array.ndim != 2:
        return all_springs(model, checked(model, q))
    Q = rows(model, 'q', array, positions=True)
    return all_springs(model, Q if model.nq == model.nv else
                       np.reshape([checked(model, one) for one in Q], Q.shape))
