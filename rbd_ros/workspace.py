# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The library with buffers that are kept, for control loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from threading import get_ident
from typing import Any, NamedTuple, TYPE_CHECKING, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt
from rbd_ros.body_changes import body_changes, check_direction
from rbd_ros.kernel_interface import made_at_first_use, NOT_A_VECTOR
from rbd_ros.kernels.articulated_bodies import (articulated_bodies, articulated_bodies_at_rest,
                                                hybrid_dynamics, PSI_)
from rbd_ros.kernels.bodies import BLOCK, LANES, NUMBER, PARENT, PRESCRIBED
from rbd_ros.kernels.compiled import prepare
from rbd_ros.kernels.composite_bodies import composite_bodies, use_body_factorization
from rbd_ros.kernels.directional_derivatives import hybrid_dynamics_change, inverse_dynamics_change
from rbd_ros.kernels.link_jacobians import jacobian_columns
from rbd_ros.kernels.link_poses import link_poses
from rbd_ros.kernels.mimics import (dense_hybrid_dynamics, expand, fold_rows, fold_side_by_side,
                                    fold_stacked)
from rbd_ros.kernels.newton_euler import newton_euler, newton_euler_at_rest
from rbd_ros.kernels.newton_euler_derivatives import (forward_dynamics_and_jacobians,
                                                      hybrid_dynamics_and_jacobians,
                                                      hybrid_dynamics_jacobians,
                                                      inverse_dynamics_jacobians)
from rbd_ros.kernels.regressors import regressor_columns, slotine_li_columns
from rbd_ros.model.model import Model
from rbd_ros.validation import choice, mask, Wrenches
from rbd_ros.workspace_analysis import AnalysisMethods, Factorization, FACTORIZATIONS

if TYPE_CHECKING:
    from rbd_ros.analysis.variation import Variation

# A named tuple of arrays.
Terms = TypeVar('Terms', 'DynamicsTerms', 'Derivatives')

CHRISTOFFEL = FACTORIZATIONS[0]
BOOL, FLOAT = np.dtype(bool), np.dtype(float)
# What a kernel raises, and what it takes for a mask that is none. That only arrays have a dtype is
# left to this: where it is asked for, the checker of types is told to ignore it.
NOT_A_MASK = (*NOT_A_VECTOR, AttributeError)


class DynamicsTerms(NamedTuple):
    """
    What `all_terms` computes.

    Attributes
    ----------
    M : ndarray, shape (nv, nv)
        Mass matrix; kg m^2, kg m or kg by pair of joints.
    C : ndarray, shape (nv, nv)
        Coriolis matrix, with dM/dt - 2 C skew.
    g : ndarray, shape (nv,)
        Torques that hold the robot still, N m or N.
    coriolis_torques : ndarray, shape (nv,)
        C v, N m or N.
    com_jacobian : ndarray, shape (3, nv)
        Velocity of the centre of mass per velocity, in the root's frame.
    com : ndarray, shape (3,)
        Centre of mass in the root's frame, m.

    """

    M: np.ndarray
    C: np.ndarray
    g: np.ndarray
    coriolis_torques: np.ndarray
    com_jacobian: np.ndarray
    com: np.ndarray


class Derivatives(NamedTuple):
    """
    How the unknowns of a dynamics problem change with all that is given.

    Attributes
    ----------
    by_position, by_velocity, by_input : ndarray, shape (nv, nv)
        Rows: the unknowns. The input of a joint is its acceleration where its torque is unknown,
        and its torque where its acceleration is. Positions of ball and free joints are moved along
        their velocities, in the axes of the moving body.

    """

    by_position: np.ndarray
    by_velocity: np.ndarray
    by_input: np.ndarray


def name_rows(rows: np.ndarray, nv: int) -> DynamicsTerms:
    """Return the rows that `composite_bodies` writes under their names."""
    return DynamicsTerms(rows[:nv, :nv], rows[nv:2 * nv, :nv], rows[2 * nv, :nv],
                         rows[2 * nv + 1, :nv], rows[2 * nv + 2:2 * nv + 5, :nv],
                         rows[2 * nv + 5, :3])


class Workspace(AnalysisMethods):
    """
    Buffers for one robot, and the recursions that use them.

    The methods are the functions of the same names in `rbd_ros`, where shapes, units and errors
    are documented; what they return may be overwritten by the next call of any method. Vectors
    are taken as they are if they are contiguous float64 arrays, and are converted otherwise, which
    costs time. A workspace serves one thread.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        n = len(self._places) - 1
        self._a, self._no_acceleration = np.zeros(n), np.zeros(model.nv)

    # Buffers that not every user needs are made at their first use.
    @made_at_first_use
    def _rows(self) -> np.ndarray:
        n = len(self._places) - 1
        return np.zeros((2 * n + 6, max(n, 3)))

    @made_at_first_use
    def _tree_terms(self) -> DynamicsTerms:
        return name_rows(self._rows, len(self._places) - 1)

    @made_at_first_use
    def terms(self) -> DynamicsTerms:
        """Return what `all_terms` writes."""
        return self._tree_terms if self._folding is None else name_rows(self._folded_rows,
                                                                        self.model.nv)

    @made_at_first_use
    def _folded_rows(self) -> np.ndarray:
        nv = self.model.nv
        return np.zeros((2 * nv + 6, max(nv, 3)))

    # -- Recursions ------------------------------------------------------------------------------

    def all_terms(self, q: npt.ArrayLike, v: npt.ArrayLike, *,
                  factorization: Factorization = 'christoffel') -> DynamicsTerms:
        """Compute the `DynamicsTerms`."""
        if v is None:
            self.check(v=v)
        tree_q, tree_v = (q, v) if self._folding is None else self._expand(q=q, v=v)
        try:
            fine = composite_bodies(self.robot, self._screws, tree_q, tree_v, self._rows)
        except NOT_A_VECTOR:
            tree_q, tree_v = self._ready(composite_bodies, {'q': tree_q, 'v': tree_v}, self._rows)
            fine = composite_bodies(self.robot, self._screws, tree_q, tree_v, self._rows)
        if not fine:
            self._explain(q=q, v=v)
        if (factorization is not CHRISTOFFEL and CHRISTOFFEL != choice(
                'factorization', factorization, FACTORIZATIONS)):
            self._use_factorization(factorization)
        if self._folding is not None:
            self._fold_terms()
        return self.terms

    def configuration_terms(self, q: npt.ArrayLike) -> DynamicsTerms:
        """Compute the `DynamicsTerms` that need no velocity; C and C v are left as they are."""
        tree_q, = (q,) if self._folding is None else self._expand(q=q)
        try:
            fine = composite_bodies(self.robot, self._screws, tree_q, None, self._rows)
        except NOT_A_VECTOR:
            tree_q, = self._ready(composite_bodies, {'q': tree_q}, None, self._rows)
            fine = composite_bodies(self.robot, self._screws, tree_q, None, self._rows)
        if not fine:
            self._explain(q=q)
        if self._folding is not None:
            self._fold_terms()
        return self.terms

    # Inverse and forward dynamics, gravity torques and the Jacobian of a link take so little time
    # that every check and call would be felt: the kernel is tried with hardly anything around it.
    # To fill in an argument that must be named takes Python longer.
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

    def _torques(self, kernel: Callable[..., Any], **vectors: npt.ArrayLike) -> np.ndarray:
        self._run(kernel, vectors, vectors.values())
        return self._tau if self._folding is None else self._fold_vector(self._tau)

    def bias_torques(self, q: npt.ArrayLike, v: npt.ArrayLike, *,
                     external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return C v + g - sum J^T f."""
        return self.inverse_dynamics(q, v, self._zeros,
                                     external_wrenches=external_wrenches)

    def gravity_torques(self, q: npt.ArrayLike) -> np.ndarray:
        """Return g."""
        try:
            if self._folding is None and newton_euler_at_rest(self.robot, self._screws, q):
                return self._tau
        except NOT_A_VECTOR:
            pass
        return self._torques(newton_euler_at_rest, q=q)

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
        return self._dense_hybrid(q, v, self._zeros, tau, self._none)[0]

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
        all_a, all_tau = np.empty(self.model.nv), np.empty(self.model.nv)
        known = True
        try:
            if prescribed.dtype is BOOL and (           # type: ignore[union-attr]
                    hybrid_dynamics(self.robot, self._screws, q, v, a, tau, prescribed, all_a,
                                    all_tau)):
                return all_a, all_tau
        except NOT_A_MASK:
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
        """Return what is given of a and tau, zeros elsewhere, and where a is; or refuse it."""
        prescribed = mask(self.model, 'prescribed', prescribed)
        a, tau = self._convert(a=a, tau=tau)
        a[~prescribed], tau[prescribed] = 0.0, 0.0
        if not isfinite(a.sum() + tau.sum()):
            self.check(a=a, tau=tau)
        return a, tau, prescribed

    @made_at_first_use
    def _prescribed_places(self) -> np.ndarray:
        """Return where it is said which accelerations are given."""
        return self._places[1:] + LANES * PRESCRIBED

    def prescribe(self, prescribed: npt.ArrayLike) -> None:
        """Say to the articulated bodies which accelerations are given."""
        self.robot[self._prescribed_places] = prescribed

    # -- Derivatives. ----------------------------------------------------------------------------

    # For a robot of thousands of joints these are large.
    @made_at_first_use
    def jacobians(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return room for the derivatives of tau, for those of the unknowns, and a factor of M."""
        n = len(self._places) - 1
        return np.zeros((n, 3 * n)), np.zeros((n, 3 * n)), np.zeros((n, n))

    @made_at_first_use
    def _model_jacobians(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the same for the coordinates of the model."""
        nv = self.model.nv
        if self._folding is None:
            return self.jacobians
        return np.zeros((nv, 3 * nv)), np.zeros((nv, 3 * nv)), np.zeros((nv, nv))

    @made_at_first_use
    def _derivatives(self) -> tuple[Derivatives, Derivatives]:
        """Return the views of that room that are handed out."""
        of_tau, of_unknowns, _ = self._model_jacobians
        return (Derivatives(*np.split(of_tau, 3, axis=1)),
                Derivatives(*np.split(of_unknowns, 3, axis=1)))

    @made_at_first_use
    def regressor(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which body each link of the parameters is, and room for the regressor."""
        return self._moving_links, np.zeros((self._width, self._parameters))

    def inverse_dynamics_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, *,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        """Return the `Derivatives` of tau; by_input is M."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.inverse_dynamics_derivatives(q, v, a)
        self._run(inverse_dynamics_jacobians, 'qva', (q, v, a), self.jacobians[0])
        if self._folding is not None:
            self._call(fold_side_by_side, self._folding.columns, self.model.nv,
                       self.jacobians[0], self._model_jacobians[0])
        return self._derivatives[0]

    def forward_dynamics_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike,
                                     *, external_wrenches: Wrenches | None = None) -> Derivatives:
        """Return the `Derivatives` of a; by_input is the inverse of M."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.forward_dynamics_derivatives(q, v, tau)
        if self._folding is not None:
            return self.hybrid_dynamics_derivatives(q, v, self._zeros, tau, self._none)[0]
        jacobians, solved, L = self.jacobians
        try:
            fine = forward_dynamics_and_jacobians(self.robot, self._screws, q, v, self._a, tau,
                                                  jacobians, L, solved)
        except NOT_A_VECTOR:
            q, v, tau = self._convert(q=q, v=v, tau=tau)
            self._articulated(q, v, self._a, tau)
            self._prepare_jacobians(q, v, self._a)
            arguments = self._screws, q, v, self._a, tau, jacobians, L, solved
            prepare(forward_dynamics_and_jacobians, self.robot, *arguments)
            fine = forward_dynamics_and_jacobians(self.robot, *arguments)
        if not fine:
            self._articulated(q, v, self._a, tau)
            self._explain(q=q, v=v, tau=tau)
        return self._derivatives[1]

    def _prepare_jacobians(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike) -> None:
        """Compile the kernels that others call, which must be there before these are."""
        jacobians, solved, L = self.jacobians
        self._run(inverse_dynamics_jacobians, 'qva', (q, v, a), jacobians)
        prepare(hybrid_dynamics_jacobians, self.robot, jacobians, L, solved)

    def hybrid_dynamics_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, *, external_wrenches: Wrenches | None = None
            ) -> tuple[Derivatives, np.ndarray, np.ndarray]:
        """Return the `Derivatives` of the unknown torques and accelerations, and a and tau."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        jacobians, solved, L = self._model_jacobians
        if self._folding is not None:
            a, tau = self._dense_hybrid(q, v, a, tau, prescribed)
            self.inverse_dynamics_derivatives(q, v, a)
            table, places = self._everyone_carried
            table[places] = prescribed
            if not self._call(hybrid_dynamics_jacobians, table, jacobians, L, solved):
                self._explain(q=q, v=v, a=a, tau=tau)
            return self._derivatives[1], a, tau
        found = np.empty(self.model.nv), np.empty(self.model.nv)
        try:
            fine = prescribed.dtype is BOOL and (       # type: ignore[union-attr]
                hybrid_dynamics_and_jacobians(self.robot, self._screws, q, v, a, tau, prescribed,
                                              *found, jacobians, L, solved))
        except NOT_A_MASK:
            fine = False
            self.prescribe(False)
        if not fine:
            a, tau, prescribed = self._given(a, tau, prescribed)
            found = self.hybrid_dynamics(q, v, a, tau, prescribed)
            q, v = self._convert(q=q, v=v)
            self._prepare_jacobians(q, v, found[0])
            arguments = (self._screws, q, v, a, tau, prescribed, *found, jacobians, L, solved)
            prepare(hybrid_dynamics_and_jacobians, self.robot, *arguments)
            fine = hybrid_dynamics_and_jacobians(self.robot, *arguments)
            if not fine:
                self._explain(q=q, v=v, a=a, tau=tau)
        return self._derivatives[1], *found

    # -- Derivatives by one scalar. --------------------------------------------------------------

    @made_at_first_use
    def _directions(
            self) -> tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray, tuple[np.ndarray, ...]]:
        """Return room for dq, dv, da and dtau, and for what is found, and the rows of both."""
        room, found = np.zeros((2, 4, self.model.nv))
        return room, tuple(room), found, tuple(found)

    def _read_directions(self, variation: Variation,
                         labels: Iterable[str] = ('dq', 'dv', 'da', 'dtau')) -> None:
        """Write derivatives of q, v, a and tau to their room, zeros for what is not there."""
        rows = self._directions[1]
        for label, row in zip(labels, rows):
            x = getattr(variation, label)
            if type(x) is np.ndarray and x.dtype is FLOAT and x.shape == row.shape:
                row[:] = x
            else:
                row[:] = check_direction(self.model, label, x)

    def _check_directions(self, variation: Variation,
                          labels: Iterable[str] = ('dq', 'dv', 'da', 'dtau')) -> None:
        """Refuse what is no direction."""
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
        dq, dv, da, _ = self._directions[1]
        state = q, v, a
        try:
            if self._folding is not None:
                state = self._expand(q=q, v=v, a=a)
                zeros, room, parts = self._expanded_directions
                self._call(expand, *self._mimics, zeros, dq, dv, da, room)
                dq, dv, da = parts
            fine = inverse_dynamics_change(self.robot, self._screws, *state, dq, dv, da, *changes,
                                           self._tau)
        except NOT_A_VECTOR:
            fine = False
        if not fine:
            self._check_directions(variation, ('dq', 'dv', 'da'))
            self._run(inverse_dynamics_change, 'qva', (q, v, a), dq, dv, da, *changes, self._tau)
        return self._tau if self._folding is None else self._fold_vector(self._tau)

    @made_at_first_use
    def _expanded_directions(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Return a q that nobody reads, room to expand three directions, and these in it."""
        nq, n = len(self._fold.source), len(self._tau)
        room = np.zeros(nq + 3 * n)
        return np.zeros(self.model.nq), room, tuple(room[nq:].reshape(3, n))

    @made_at_first_use
    def _none(self) -> np.ndarray:
        return np.zeros(self.model.nv, bool)

    def forward_dynamics_derivative(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike,
                                    variation: Variation, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivative of a."""
        return self.hybrid_dynamics_derivative(q, v, self._zeros, tau, self._none, variation,
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
        directions, _, found, results = self._directions
        if self._folding is not None:
            if not isfinite(directions.sum()):
                self._check_directions(variation)
            return self._dense_hybrid_derivative(q, v, a, tau, prescribed, variation, changes)
        try:
            fine = prescribed.dtype is BOOL and (       # type: ignore[union-attr]
                hybrid_dynamics_change(self.robot, self._screws, q, v, a, tau, prescribed,
                                       directions, *changes, found))
        except NOT_A_MASK:
            fine = False
            self.prescribe(False)
        if not fine:
            a, tau, prescribed = self._given(a, tau, prescribed)
            # It refuses what is wrong.
            self.hybrid_dynamics(q, v, a, tau, prescribed)
            self._check_directions(variation)
            q, v = self._convert(q=q, v=v)
            prepare(inverse_dynamics_change, self.robot, self._screws, q, v, a, *directions[:3],
                    *changes, found[3])
            prepare(articulated_bodies_at_rest, self.robot, self._screws, q, *found[:2])
            arguments = (self._screws, q, v, a, tau, prescribed, directions, *changes, found)
            prepare(hybrid_dynamics_change, self.robot, *arguments)
            if not hybrid_dynamics_change(self.robot, *arguments):
                self._explain(q=q, v=v, a=a, tau=tau)
        return results[2], results[3]

    def _dense_hybrid_derivative(
            self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, variation: Variation,
            changes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Differentiate M a + b = tau as it stands [K (33)]: mimics close loops."""
        prescribed = mask(self.model, 'prescribed', prescribed)
        a, _ = self._dense_hybrid(q, v, a, tau, prescribed)
        _, (_, _, given, dtau), _, (_, _, da, all_dtau) = self._directions
        given[~prescribed] = 0.0
        b = self._change_of_torques(q, v, a, variation, changes)
        self.configuration_terms(q)
        if self._call(dense_hybrid_dynamics, self._folded_rows, b, self._zeros, dtau, prescribed,
                      da, all_dtau, self._factor):
            self._explain(q=q, v=v, a=a)
        da += given
        return da, all_dtau

    @made_at_first_use
    def _everyone_carried(self) -> tuple[np.ndarray, np.ndarray]:
        """
        Return a table of bodies each of which carries all that follow, one for each velocity.

        To the kernel of the derivatives the mass matrix is then a full one, as mimics make it.
        With it comes where it is said which accelerations are given.

        """
        n = self.model.nv + 1
        places = np.arange(n) // LANES * BLOCK + np.arange(n) % LANES
        table = np.zeros(-(-n // LANES) * BLOCK)
        whole = table.view(np.int64)
        whole[places + LANES * NUMBER] = np.arange(n)
        whole[places[1:] + LANES * PARENT] = places[:-1]
        whole[LANES * PARENT] = n
        return table, places[1:] + LANES * PRESCRIBED

    def torque_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike) -> np.ndarray:
        """Return Y with Y pi = tau - armature a, for the parameters of every moving body."""
        links, Y = self.regressor
        self._run(regressor_columns, 'qva', (q, v, a), links, Y)
        return Y if self._folding is None else self._fold_regressor(Y)

    def slotine_li_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike, v_r: npt.ArrayLike,
                             a_r: npt.ArrayLike, *,
                             factorization: Factorization = 'christoffel') -> np.ndarray:
        """Return Y with Y pi = M a_r + C v_r + g - armature a_r."""
        choice('factorization', factorization, FACTORIZATIONS)
        links, Y = self.regressor
        self._run(slotine_li_columns, ('q', 'v', 'v_r', 'a_r'), (q, v, v_r, a_r), links,
                  0.5 if factorization == 'christoffel' else 0.0, Y)
        return Y if self._folding is None else self._fold_regressor(Y)

    @made_at_first_use
    def _folded_regressor(self) -> np.ndarray:
        return np.zeros((self.model.nv, self.regressor[1].shape[1]))

    def _fold_regressor(self, Y: np.ndarray) -> np.ndarray:
        self._call(fold_rows, self._fold.columns, Y, self._folded_regressor)
        return self._folded_regressor

    # -- Kinematics. -----------------------------------------------------------------------------

    @made_at_first_use
    def _all_links(self) -> tuple[np.ndarray, np.ndarray]:
        """Return for each link its body and its pose there, and room for its pose."""
        tree = self.model.tree
        rotations = tree.link_pose[:, :3, :3].transpose(0, 2, 1).reshape(-1, 9)
        links = np.column_stack((tree.link_body, rotations, tree.link_pose[:, :3, 3]))
        return links, np.zeros((len(links), 4, 4))

    def forward_kinematics(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the poses of all links in the root's frame, shape (links, 4, 4)."""
        links, T = self._all_links
        self._run(link_poses, 'q', (q,), links, T)
        return T

    def world_jacobian(self, q: npt.ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link about its origin, in the root's axes, and its pose."""
        try:
            if (self._folding is None
                    and jacobian_columns(self.robot, self._screws, q, self._link_rows[link],
                                         self._jacobian_rows)):
                return self._jacobian_and_pose
        except (KeyError, *NOT_A_VECTOR):
            pass
        return self._jacobian(q, self._link_row(link))

    def body_jacobian(self, q: npt.ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link about its origin, in its own axes, and its pose."""
        try:
            if (self._folding is None
                    and jacobian_columns(self.robot, self._screws, q, self._body_rows[link],
                                         self._jacobian_rows)):
                return self._jacobian_and_pose
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._link_row(link)
        return self._jacobian(q, self._body_rows[link])

    def _jacobian(self, q: npt.ArrayLike, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._run(jacobian_columns, 'q', (q,), row, self._jacobian_rows)
        J, T = self._jacobian_and_pose
        return (J if self._folding is None else J @ self._folding.G), T

    @made_at_first_use
    def _jacobian_rows(self) -> np.ndarray:
        """Return room for the Jacobian of a link and its pose."""
        n = len(self._places) - 1
        return np.zeros((10, max(n, 4)))

    @made_at_first_use
    def _jacobian_and_pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the views of that room that are handed out."""
        return self._jacobian_rows[:6, :len(self._places) - 1], self._jacobian_rows[6:, :4]

    def _articulated(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                     tau: npt.ArrayLike) -> tuple[Any, Any]:
        try:
            fine = articulated_bodies(self.robot, self._screws, q, v, a, tau)
        except NOT_A_VECTOR:
            q, v, a, tau = self._ready(articulated_bodies, {'q': q, 'v': v, 'a': a, 'tau': tau})
            fine = articulated_bodies(self.robot, self._screws, q, v, a, tau)
        if not fine:
            self.check(q=q, v=v, tau=tau)
            column = int(self.robot[LANES * PSI_])
            if column > 0:
                self._refuse(column - 1, q)
            self._explain(a=a, tau=tau)
        return a, tau

    def _use_factorization(self, factorization: Factorization) -> None:
        choice('factorization', factorization, FACTORIZATIONS)
        arguments = (self.robot, self._rows)
        try:
            use_body_factorization(*arguments)
        except NOT_A_VECTOR:
            prepare(use_body_factorization, *arguments)
            use_body_factorization(*arguments)

    # -- Mimicking joints: coordinates of the model to and from those of the tree. ---------------

    def _fold_terms(self) -> None:
        # M and C; g, C v and the Jacobian of the centre of mass, which itself stays.
        self._call(fold_stacked, self._fold.columns, self.model.nv, 2, 5, self._rows,
                   self._folded_rows)
        self.terms.com[:] = self._tree_terms.com

    @made_at_first_use
    def _factor(self) -> np.ndarray:
        return np.zeros((self.model.nv, self.model.nv))

    def _dense_hybrid(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                      tau: npt.ArrayLike,
                      prescribed: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Solve the equations of motion as they stand [K (33)]: mimics close loops."""
        all_a, all_tau = np.empty(self.model.nv), np.empty(self.model.nv)
        b, _ = self.bias_torques(q, v), self.configuration_terms(q)
        rest = all_a, all_tau, self._factor
        try:
            if prescribed.dtype is BOOL and not (       # type: ignore[union-attr]
                    dense_hybrid_dynamics(self._folded_rows, b, a, tau, prescribed, *rest)):
                return all_a, all_tau
        except NOT_A_MASK:
            pass
        a, tau, prescribed = self._given(a, tau, prescribed)
        column = self._call(dense_hybrid_dynamics, self._folded_rows, b, a, tau, prescribed, *rest)
        if column > 0:
            self._refuse(column - 1, q)
        if column:
            self._explain(q=q, v=v, a=a, tau=tau)
        return all_a, all_tau


def workspace_of(model: Model) -> Workspace:
    """
    Return the workspace that plain functions of a robot use in this thread.

    It is made at the first call, belongs to the robot and ends with it. What its methods return is
    overwritten by the next function that is called: functions hand out copies.

    Parameters
    ----------
    model : Model
        The robot.

    """
    try:
        return model._workspaces[get_ident()]
    except (AttributeError, KeyError):
        workspace = Workspace(model)
    # The robot keeps the workspace: this must not keep the robot in turn.
    workspace._model_of = ref(model)    # type: ignore[assignment]  # it outlives the workspace
    model._workspaces[get_ident()] = workspace
    return workspace


def fresh(result: Terms) -> Terms:
    """Return a named tuple of arrays whose arrays are copies."""
    return type(result)(*[part.copy() for part in result])
