# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The library with buffers that are kept, for control loops."""

from math import isfinite
from typing import NamedTuple

import numpy as np
from rbd_ros.kernel_interface import made_at_first_use, NOT_A_VECTOR
from rbd_ros.kernels.articulated_bodies import articulated_bodies, PSI_, SINGULAR
from rbd_ros.kernels.bodies import LANES, PRESCRIBED, R_, r_
from rbd_ros.kernels.compiled import prepare
from rbd_ros.kernels.composite_bodies import composite_bodies, use_body_factorization
from rbd_ros.kernels.composite_body_rates import composite_rates
from rbd_ros.kernels.link_kinematics import jacobian_columns, place_bodies
from rbd_ros.kernels.newton_euler import newton_euler, newton_euler_at_rest
from rbd_ros.kernels.newton_euler_derivatives import (forward_dynamics_and_jacobians,
                                                      forward_dynamics_jacobians,
                                                      inverse_dynamics_jacobians)
from rbd_ros.kernels.regressors import regressor_columns, slotine_li_columns
from rbd_ros.validation import choice, mask
from rbd_ros.workspace_analysis import AnalysisMethods, FACTORIZATIONS


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


class TermsAndRates(NamedTuple):
    """
    What `terms_and_rates` computes.

    Attributes
    ----------
    M, C, C_rate : ndarray, shape (nv, nv)
        Mass matrix, Coriolis matrix (the Christoffel form) and its time derivative.
    g, g_rate : ndarray, shape (nv,)
        Gravity torques and their time derivative, N m/s or N/s.

    """

    M: np.ndarray
    C: np.ndarray
    C_rate: np.ndarray
    g: np.ndarray
    g_rate: np.ndarray

    @property
    def M_rate(self):
        """Return dM/dt = C + C^T."""
        return self.C + self.C.T


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


def name_rows(rows, nv):
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

    def __init__(self, model):
        super().__init__(model)
        n = len(self._places) - 1
        self._a, self._no_acceleration = np.zeros(n), np.zeros(model.nv)

    # Buffers that not every user needs are made at their first use.
    @made_at_first_use
    def _rows(self):
        n = len(self._places) - 1
        return np.zeros((2 * n + 6, max(n, 3)))

    @made_at_first_use
    def _tree_terms(self):
        return name_rows(self._rows, len(self._places) - 1)

    @made_at_first_use
    def terms(self):
        """Return what `all_terms` writes."""
        if self._folding is None:
            return self._tree_terms
        nv = self.model.nv
        return name_rows(np.zeros((2 * nv + 6, max(nv, 3))), nv)

    # -- Recursions ------------------------------------------------------------------------------

    def all_terms(self, q, v, *, factorization='christoffel'):
        """Compute the `DynamicsTerms`."""
        if v is None:
            self.check(v=v)
        if self._folding is not None:
            q, v = self._expand(q=q, v=v)
        try:
            fine = composite_bodies(self.robot, self._screws, q, v, self._rows)
        except NOT_A_VECTOR:
            q, v = self._ready(composite_bodies, {'q': q, 'v': v}, self._rows)
            fine = composite_bodies(self.robot, self._screws, q, v, self._rows)
        if not fine:
            self._explain(q=q, v=v)
        if factorization != 'christoffel':
            self._use_factorization(factorization)
        if self._folding is not None:
            self._fold_terms()
        return self.terms

    def configuration_terms(self, q):
        """Compute the `DynamicsTerms` that need no velocity; C and C v are left as they are."""
        if self._folding is not None:
            q, = self._expand(q=q)
        try:
            fine = composite_bodies(self.robot, self._screws, q, None, self._rows)
        except NOT_A_VECTOR:
            q, = self._ready(composite_bodies, {'q': q}, None, self._rows)
            fine = composite_bodies(self.robot, self._screws, q, None, self._rows)
        if not fine:
            self._explain(q=q)
        if self._folding is not None:
            self._fold_terms()
        return self.terms

    # Inverse and forward dynamics, gravity torques and the Jacobian of a link take so little time
    # that every check and call would be felt: the kernel is tried with hardly anything around it.
    # To fill in an argument that must be named takes Python longer.
    def inverse_dynamics(self, q, v, a, external_wrenches=None):
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

    def _torques(self, kernel, **vectors):
        self._run(kernel, vectors, vectors.values())
        return self._tau if self._folding is None else self._folding.G.T @ self._tau

    def bias_torques(self, q, v, *, external_wrenches=None):
        """Return C v + g - sum J^T f."""
        return self.inverse_dynamics(q, v, self._no_acceleration,
                                     external_wrenches=external_wrenches)

    def gravity_torques(self, q):
        """Return g."""
        try:
            if self._folding is None and newton_euler_at_rest(self.robot, self._screws, q):
                return self._tau
        except NOT_A_VECTOR:
            pass
        return self._torques(newton_euler_at_rest, q=q)

    def forward_dynamics(self, q, v, tau, external_wrenches=None):
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
        return self._dense_hybrid(q, v, np.zeros(self.model.nv), tau,
                                  np.zeros(self.model.nv, bool))[0]

    def hybrid_dynamics(self, q, v, a, tau, prescribed, *, external_wrenches=None):
        """Return a and tau."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.hybrid_dynamics(q, v, a, tau, prescribed)
        prescribed = mask(self.model, 'prescribed', prescribed)
        a, tau = self._convert(a=a, tau=tau)
        a[~prescribed], tau[prescribed] = 0.0, 0.0
        if not isfinite(a.sum() + tau.sum()):
            self.check(a=a, tau=tau)
        if self._folding is not None:
            return self._dense_hybrid(q, v, a, tau, prescribed)
        self.prescribe(prescribed)
        try:
            return self._articulated(q, v, a, tau)
        finally:
            self.prescribe(False)

    @made_at_first_use
    def _prescribed_places(self):
        """Return where it is said which accelerations are given."""
        return self._places[1:] + LANES * PRESCRIBED

    def prescribe(self, prescribed):
        """Say to the articulated bodies which accelerations are given."""
        self.robot[self._prescribed_places] = prescribed

    # -- Derivatives. ----------------------------------------------------------------------------

    # For a robot of thousands of joints these are large.
    @made_at_first_use
    def jacobians(self):
        """Return room for the derivatives of tau and of a, and for a factor of M."""
        n = len(self._places) - 1
        return np.zeros((n, 3 * n)), np.zeros((n, 3 * n)), np.zeros((n, n))

    @made_at_first_use
    def _derivatives(self):
        """Return the views of that room that are handed out."""
        of_tau, of_a, _ = self.jacobians
        return (Derivatives(*np.split(of_tau, 3, axis=1)), Derivatives(*np.split(of_a, 3, axis=1)))

    @made_at_first_use
    def _rates(self):
        n = len(self._places) - 1
        rows = np.zeros((3 * n + 2, n))
        return rows, TermsAndRates(rows[:n], rows[n:2 * n], rows[2 * n:3 * n], rows[-2], rows[-1])

    @made_at_first_use
    def regressor(self):
        """Return which body each link of the parameters is, and room for the regressor."""
        tree = self.model.tree
        links = [k for k, joint in enumerate(self.model.joints, 1) if joint.nv]
        rows = [[tree.link_body[k], *tree.link_pose[k][:3, :3].T.ravel()] for k in links]
        return (np.array(rows, float).reshape(-1, 10),
                np.zeros((len(self._places) - 1, 10 * len(links))))

    def terms_and_rates(self, q, v, a):
        """Compute the `TermsAndRates`."""
        rows, result = self._rates
        self._run(composite_rates, 'qva', (q, v, a), rows)
        if self._folding is None:
            return result
        G, (M, C, C_rate, g, g_rate) = self._folding.G, result
        return TermsAndRates(*(G.T @ x @ G for x in (M, C, C_rate)), G.T @ g, G.T @ g_rate)

    def inverse_dynamics_derivatives(self, q, v, a, *, external_wrenches=None):
        """Return the `Derivatives` of tau; by_input is M."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.inverse_dynamics_derivatives(q, v, a)
        self._run(inverse_dynamics_jacobians, 'qva', (q, v, a), self.jacobians[0])
        if self._folding is None:
            return self._derivatives[0]
        G = self._folding.G
        return Derivatives(*(G.T @ part @ G for part in self._derivatives[0]))

    def forward_dynamics_derivatives(self, q, v, tau, *, external_wrenches=None):
        """Return the `Derivatives` of a; by_input is the inverse of M."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.forward_dynamics_derivatives(q, v, tau)
        if self._folding is not None:
            a = self.forward_dynamics(q, v, tau)
            D_q, D_v, M = self.inverse_dynamics_derivatives(q, v, a)
            inverse = np.linalg.inv(M)
            return Derivatives(-inverse @ D_q, -inverse @ D_v, inverse)
        jacobians, solved, L = self.jacobians
        try:
            fine = forward_dynamics_and_jacobians(self.robot, self._screws, q, v, self._a, tau,
                                                  jacobians, L, solved)
        except NOT_A_VECTOR:
            q, v, tau = self._convert(q=q, v=v, tau=tau)
            # The kernels that this one calls are compiled before it.
            self._articulated(q, v, self._a, tau)
            self._run(inverse_dynamics_jacobians, 'qva', (q, v, self._a), jacobians)
            prepare(forward_dynamics_jacobians, self.robot, jacobians, L, solved)
            arguments = self._screws, q, v, self._a, tau, jacobians, L, solved
            prepare(forward_dynamics_and_jacobians, self.robot, *arguments)
            fine = forward_dynamics_and_jacobians(self.robot, *arguments)
        if not fine:
            self._articulated(q, v, self._a, tau)
            self._explain(q=q, v=v, tau=tau)
        return self._derivatives[1]

    def hybrid_dynamics_derivatives(self, q, v, a, tau, prescribed, *, external_wrenches=None):
        """Return the `Derivatives` of the unknown torques and accelerations, and a and tau."""
        if external_wrenches is not None:
            with self._pushed(external_wrenches):
                return self.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        prescribed = mask(self.model, 'prescribed', prescribed)
        a, tau = self.hybrid_dynamics(q, v, a, tau, prescribed)
        D_q, D_v, M = self.inverse_dynamics_derivatives(q, v, a)
        given, free = np.flatnonzero(prescribed), np.flatnonzero(~prescribed)
        # M_pp da_p = dtau_p - D dx - M_pa da_a; the torques follow.             [d of K (33)]
        inverse = np.linalg.inv(M[np.ix_(free, free)])
        parts = []
        for D in (D_q, D_v):
            part = D.copy()
            part[free] = -inverse @ D[free]
            part[given] += M[np.ix_(given, free)] @ part[free]
            parts.append(part)
        by_input = np.zeros_like(M)
        by_input[np.ix_(free, free)] = inverse
        by_input[np.ix_(free, given)] = -inverse @ M[np.ix_(free, given)]
        by_input[np.ix_(given, given)] = M[np.ix_(given, given)]
        by_input[given] += M[np.ix_(given, free)] @ by_input[free]
        return Derivatives(*parts, by_input), a, tau

    def torque_regressor(self, q, v, a):
        """Return Y with Y pi = tau - armature a, for the parameters of every moving body."""
        links, Y = self.regressor
        self._run(regressor_columns, 'qva', (q, v, a), links, Y)
        return Y if self._folding is None else self._folding.G.T @ Y

    def slotine_li_regressor(self, q, v, v_r, a_r, *, factorization='christoffel'):
        """Return Y with Y pi = M a_r + C v_r + g - armature a_r."""
        choice('factorization', factorization, FACTORIZATIONS)
        links, Y = self.regressor
        self._run(slotine_li_columns, ('q', 'v', 'v_r', 'a_r'), (q, v, v_r, a_r), links,
                  0.5 if factorization == 'christoffel' else 0.0, Y)
        return Y if self._folding is None else self._folding.G.T @ Y

    # -- Kinematics. -----------------------------------------------------------------------------

    def place_links(self, q):
        """Return the poses of all links in the root's frame, shape (links, 4, 4)."""
        self._run(place_bodies, 'q', (q,))
        tree = self.model.tree
        bodies = np.zeros((len(self._places), 4, 4))
        bodies[:, :3, :3] = self.robot[self._columns(R_, 9)].reshape(-1, 3, 3).transpose(0, 2, 1)
        bodies[:, :3, 3] = self.robot[self._columns(r_, 3)]
        bodies[:, 3, 3] = 1.0
        return bodies[tree.link_body] @ tree.link_pose

    def world_jacobian(self, q, link):
        """Return the Jacobian of a link about its origin, in the root's axes, and its pose."""
        try:
            if (self._folding is None
                    and jacobian_columns(self.robot, self._screws, q, self._link_rows[link],
                                         self._jacobian_rows)):
                return self._jacobian_and_pose
        except (KeyError, *NOT_A_VECTOR):
            pass
        return self._jacobian(q, self._link_row(link))

    def body_jacobian(self, q, link):
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

    def _jacobian(self, q, row):
        self._run(jacobian_columns, 'q', (q,), row, self._jacobian_rows)
        J, T = self._jacobian_and_pose
        return (J if self._folding is None else J @ self._folding.G), T

    @made_at_first_use
    def _jacobian_rows(self):
        """Return room for the Jacobian of a link and its pose."""
        n = len(self._places) - 1
        rows = np.zeros((10, max(n, 4)))
        rows[9, 3] = 1.0
        return rows

    @made_at_first_use
    def _jacobian_and_pose(self):
        """Return the views of that room that are handed out."""
        return self._jacobian_rows[:6, :len(self._places) - 1], self._jacobian_rows[6:, :4]

    def _articulated(self, q, v, a, tau):
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

    def _use_factorization(self, factorization):
        choice('factorization', factorization, FACTORIZATIONS)
        arguments = (self.robot, self._rows)
        try:
            use_body_factorization(*arguments)
        except NOT_A_VECTOR:
            prepare(use_body_factorization, *arguments)
            use_body_factorization(*arguments)

    # -- Mimicking joints: coordinates of the model to and from those of the tree. ---------------

    def _fold_terms(self):
        G, tree, terms = self._folding.G, self._tree_terms, self.terms
        terms.M[:] = G.T @ (tree.M @ G)
        terms.C[:] = G.T @ (tree.C @ G)
        terms.g[:] = G.T @ tree.g
        terms.coriolis_torques[:] = G.T @ tree.coriolis_torques
        terms.com_jacobian[:] = tree.com_jacobian @ G
        terms.com[:] = tree.com

    def _dense_hybrid(self, q, v, a, tau, prescribed):
        """Solve the equations of motion as they stand [K (33)]: mimics close loops."""
        # Imported here: a node need not wait for SciPy when it starts.
        from scipy.linalg.lapack import dposv
        tau, = self.check(tau=tau)
        b = self.bias_torques(q, v).copy()
        M = self.configuration_terms(q).M
        p = ~prescribed
        if p.any():
            M_pp = M[np.ix_(p, p)]
            factor, a_p, failed = dposv(M_pp, (tau - b - M @ a)[p])
            pivots = np.square(np.diag(factor))
            lost = np.flatnonzero(pivots <= SINGULAR * np.diag(M_pp))
            if failed or len(lost):
                column = np.flatnonzero(p)[failed - 1 if failed else lost[0]]
                self._refuse(column, q)
            a[p] = a_p
        return a, np.where(p, tau, M @ a + b)
