# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The allocation-free form of the library, for control loops."""

from math import isfinite
from typing import NamedTuple

import numpy as np
from rbd_ros.articulated_bodies import articulated_bodies, ARTICULATED_COLUMNS, PSI_, SINGULAR
from rbd_ros.compiled import prepare
from rbd_ros.composite_bodies import composite_bodies, COMPOSITE_COLUMNS, use_body_factorization
from rbd_ros.configurations import normalize
from rbd_ros.errors import SingularError, StateError
from rbd_ros.newton_euler import newton_euler
from rbd_ros.poses import place_bodies, world_jacobian_columns
from rbd_ros.spatial import Ad, inverse
from scipy.linalg.lapack import dposv

# What a kernel raises on a type that it was not compiled for, and on an empty list.
NOT_A_VECTOR = (TypeError, ValueError)


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


def _name_rows(rows, nv):
    """Return the rows that `composite_bodies` writes under their names."""
    return DynamicsTerms(rows[:nv, :nv], rows[nv:2 * nv, :nv], rows[2 * nv, :nv],
                         rows[2 * nv + 1, :nv], rows[2 * nv + 2:2 * nv + 5, :nv],
                         rows[2 * nv + 5, :3])


class Workspace:
    """
    Buffers for one robot, and the recursions that use them.

    The methods are the functions of the same names in `rbd_ros`, where shapes, units and errors
    are documented; what they return is overwritten by the next call of the same method. Vectors
    are taken as they are if they are contiguous float64 arrays, and are converted otherwise, which
    costs time. A workspace serves one thread.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model):
        self.model = model
        self._robot, self._joints = model.tree.robot, model.tree.joints
        self._folding = model.folding
        n, nv = len(self._robot) - 1, model.nv
        self._work = np.zeros((n + 1, max(COMPOSITE_COLUMNS, ARTICULATED_COLUMNS)))
        self._rows = np.zeros((2 * n + 6, max(n, 3)))
        self._tree_terms = _name_rows(self._rows, n)
        self.terms = self._tree_terms
        if self._folding is not None:
            self.terms = _name_rows(np.zeros((2 * nv + 6, max(nv, 3))), nv)
        self._tau, self._a = np.zeros(n), np.zeros(n)
        self._no_acceleration, self._none_prescribed = np.zeros(nv), np.zeros(n, bool)
        self._wrenches, self._wrenches_set = np.zeros((n + 1, 6)), False

    # -- Recursions ------------------------------------------------------------------------------

    def all_terms(self, q, v, *, factorization='christoffel'):
        """Compute the `DynamicsTerms`."""
        if self._folding is not None:
            q, v = self._expand(q=q, v=v)
        try:
            total = composite_bodies(self._robot, self._joints, q, v, self._work, self._rows)
        except NOT_A_VECTOR:
            q, v = self._ready(composite_bodies, {'q': q, 'v': v}, self._work, self._rows)
            total = composite_bodies(self._robot, self._joints, q, v, self._work, self._rows)
        if not isfinite(total):
            self._explain(q=q, v=v)
        if factorization != 'christoffel':
            self._use_factorization(factorization)
        if self._folding is not None:
            self._fold_terms()
        return self.terms

    def configuration_terms(self, q):
        """Compute the `DynamicsTerms` that need no velocity; C and C v are left as they are."""
        return self.all_terms(q, None)

    def inverse_dynamics(self, q, v, a, *, external_wrenches=None):
        """Return tau."""
        return self._inverse(external_wrenches, q, v, a)

    def bias_torques(self, q, v, *, external_wrenches=None):
        """Return C v + g - sum J^T f."""
        return self._inverse(external_wrenches, q, v, self._no_acceleration)

    def gravity_torques(self, q):
        """Return g."""
        return self._inverse(None, q, None, None)

    def forward_dynamics(self, q, v, tau, *, external_wrenches=None):
        """Return a."""
        if self._folding is not None:
            none_prescribed = np.zeros(self.model.nv, bool)
            return self._dense_hybrid(q, v, np.zeros(self.model.nv), tau, none_prescribed,
                                      external_wrenches)[0]
        return self._articulated(q, v, self._a, tau, self._none_prescribed,
                                 self._wrench_rows(external_wrenches))[0]

    def hybrid_dynamics(self, q, v, a, tau, prescribed, *, external_wrenches=None):
        """Return a and tau."""
        prescribed = np.array(prescribed, bool)
        if prescribed.shape != (self.model.nv,):
            raise StateError(f"robot '{self.model.name}' has {self.model.nv} velocities, got "
                             f'prescribed of the shape {prescribed.shape}')
        a, tau = self._convert(a=a, tau=tau)
        a[~prescribed], tau[prescribed] = 0.0, 0.0
        if self._folding is not None:
            return self._dense_hybrid(q, v, a, tau, prescribed, external_wrenches)
        return self._articulated(q, v, a, tau, prescribed, self._wrench_rows(external_wrenches))

    def place_links(self, q):
        """Return the poses of all links in the root's frame, shape (links, 4, 4)."""
        if self._folding is not None:
            q, = self._expand(q=q)
        try:
            total = place_bodies(self._robot, self._joints, q, self._work)
        except NOT_A_VECTOR:
            q, = self._ready(place_bodies, {'q': q}, self._work)
            total = place_bodies(self._robot, self._joints, q, self._work)
        if not isfinite(total):
            self._explain(q=q)
        tree = self.model.tree
        bodies = np.zeros((len(self._robot), 4, 4))
        bodies[:, :3, :3] = self._work[:, :9].reshape(-1, 3, 3).transpose(0, 2, 1)
        bodies[:, :3, 3] = self._work[:, 9:12]
        bodies[:, 3, 3] = 1.0
        return bodies[tree.link_body] @ tree.link_pose

    def world_jacobian(self, q, link):
        """Return the Jacobian of a link about its origin, in the root's axes, and its pose."""
        k = self.model.link_index(link)
        T = self.place_links(q)[k]
        J = np.zeros((6, len(self._robot) - 1))
        arguments = (self._robot, self._joints, int(self.model.tree.link_body[k]),
                     T[None, :3, 3].copy(), self._work, J)
        prepare(world_jacobian_columns, *arguments)
        world_jacobian_columns(*arguments)
        return (J if self._folding is None else J @ self._folding.G), T

    # -- Kernels. They take float64 vectors only and raise on anything else, and on the first call
    # -- of all: then the vectors are converted and the kernel is made ready for them.

    def _inverse(self, external_wrenches, q, v, a):
        wrenches = self._wrench_rows(external_wrenches)
        if self._folding is not None:
            q, v, a = self._expand(q=q, v=v, a=a)
        try:
            total = newton_euler(self._robot, self._joints, q, v, a, wrenches, self._work,
                                 self._tau)
        except NOT_A_VECTOR:
            q, v, a = self._ready(newton_euler, {'q': q, 'v': v, 'a': a}, wrenches, self._work,
                                  self._tau)
            total = newton_euler(self._robot, self._joints, q, v, a, wrenches, self._work,
                                 self._tau)
        if not isfinite(total):
            self._explain(q=q, v=v, a=a)
        return self._tau if self._folding is None else self._folding.G.T @ self._tau

    def _articulated(self, q, v, a, tau, prescribed, wrenches):
        try:
            total = articulated_bodies(self._robot, self._joints, q, v, a, tau, prescribed,
                                       wrenches, self._work)
        except NOT_A_VECTOR:
            q, v, a, tau = self._ready(
                articulated_bodies, {'q': q, 'v': v, 'a': a, 'tau': tau}, prescribed, wrenches,
                self._work)
            total = articulated_bodies(self._robot, self._joints, q, v, a, tau, prescribed,
                                       wrenches, self._work)
        if not isfinite(total):
            self.check(q=q, v=v, tau=tau)
            column = int(self._work[0, PSI_])
            if column > 0:
                self._refuse(self.model.velocity_names[column - 1])
            self._explain(a=a, tau=tau)
        return a, tau

    def _use_factorization(self, factorization):
        if factorization != 'body':
            raise StateError("factorization must be 'christoffel' or 'body', "
                             f"got '{factorization}'")
        arguments = (self._robot, self._work, self._rows)
        try:
            use_body_factorization(*arguments)
        except NOT_A_VECTOR:
            prepare(use_body_factorization, *arguments)
            use_body_factorization(*arguments)

    # -- Mimicking joints: coordinates of the model to and from those of the tree. ---------------

    def _expand(self, q, **velocities):
        fold = self._folding
        q, *velocities = self.check(q=q, **velocities)
        return (fold.multiplier * q[fold.source] + fold.offset,
                *(None if x is None else fold.G @ x for x in velocities))

    def _fold_terms(self):
        G, tree, terms = self._folding.G, self._tree_terms, self.terms
        terms.M[:] = G.T @ (tree.M @ G)
        terms.C[:] = G.T @ (tree.C @ G)
        terms.g[:] = G.T @ tree.g
        terms.coriolis_torques[:] = G.T @ tree.coriolis_torques
        terms.com_jacobian[:] = tree.com_jacobian @ G
        terms.com[:] = tree.com

    def _dense_hybrid(self, q, v, a, tau, prescribed, external_wrenches):
        """Solve the equations of motion as they stand [K (33)]: mimics close loops."""
        tau, = self.check(tau=tau)
        b = self.bias_torques(q, v, external_wrenches=external_wrenches).copy()
        M = self.configuration_terms(q).M
        p = ~prescribed
        if p.any():
            M_pp = M[np.ix_(p, p)]
            factor, a_p, failed = dposv(M_pp, (tau - b - M @ a)[p])
            pivots = np.square(np.diag(factor))
            lost = np.flatnonzero(pivots <= SINGULAR * np.diag(M_pp))
            if failed or len(lost):
                column = np.flatnonzero(p)[failed - 1 if failed else lost[0]]
                self._refuse(self.model.velocity_names[column])
            a[p] = a_p
        return a, np.where(p, tau, M @ a + b)

    # -- The border: what the user gave, and what was wrong with it. -----------------------------

    def _names(self, label):
        return self.model.position_names if label == 'q' else self.model.velocity_names

    def _convert(self, **vectors):
        converted = []
        for label, x in vectors.items():
            if x is not None:
                names = self._names(label)
                try:
                    x = np.array(x, dtype=float)
                except (TypeError, ValueError):
                    raise StateError(f'{label} must be numbers, got {x!r}') from None
                if x.shape != (len(names),):
                    raise StateError(
                        f"{label} has the shape {x.shape}, robot '{self.model.name}' needs "
                        f'({len(names)},): ' + ', '.join(names))
            converted.append(x)
        return converted

    def check(self, **vectors):
        """Return copies of ``q``, ``v``, ``a`` or ``tau``, given by name, or refuse them."""
        converted = self._convert(**vectors)
        for label, x in zip(vectors, converted):
            if x is not None and not np.all(np.isfinite(x)):
                k = np.flatnonzero(~np.isfinite(x))[0]
                raise StateError(f"{label} of '{self._names(label)[k]}' is {x[k]}")
        return converted

    def _explain(self, **vectors):
        """Raise the error for a result that is not finite."""
        if self._folding is None:
            self.check(**vectors)
            if 'q' in vectors:
                normalize(self.model, vectors['q'])
        raise StateError(f"the dynamics of robot '{self.model.name}' are not finite here: "
                         + ', '.join(f'{label} = {x}' for label, x in vectors.items()))

    def _ready(self, kernel, vectors, *rest):
        if self._folding is None:
            converted = self._convert(**vectors)
        else:
            converted = list(vectors.values())
        prepare(kernel, self._robot, self._joints, *converted, *rest)
        return converted

    def _refuse(self, name):
        raise SingularError(
            f"'{name}' moves no inertia, so its acceleration is not defined: give the links that "
            'it carries a mass and an inertia, lock it, or prescribe its acceleration')

    def _wrench_rows(self, external_wrenches):
        """Return the wrenches on links as one force per body, in its frame."""
        if self._wrenches_set:
            self._wrenches[:] = 0.0
            self._wrenches_set = False
        for link, wrench in (external_wrenches or {}).items():
            k = self.model.link_index(link)
            wrench = np.array(wrench, float)
            if wrench.shape != (6,) or not np.all(np.isfinite(wrench)):
                raise StateError(f"the external wrench on link '{link}' must be six finite "
                                 f'numbers (moment, force), got {wrench}')
            tree = self.model.tree
            self._wrenches[tree.link_body[k]] += Ad(inverse(tree.link_pose[k])).T @ wrench
            self._wrenches_set = True
        return self._wrenches
