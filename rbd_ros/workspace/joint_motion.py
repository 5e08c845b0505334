# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The motion of all joints of a robot with closed loops, V = G(q) v and A = G a + gamma.

With J(q) V = 0 and P = -J_d^+ in the rows of dependent joints, zero in the others, the derivative
of G in any direction is P dJ G. See `rbd_ros.kernels.loops.closed_loops`.

"""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import SingularError
from rbd_ros.kernels.loops import arrays, changes, closed_loops
from rbd_ros.kernels.tree.columns import VELOCITY
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.loops import equation_rows
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import equations_and_gaps, open_loops
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.coupled import CoupledMethods

# Share of a joint in a singular motion from which it is named.
NAMED = 0.1


class JointMotion(CoupledMethods):
    """The velocities and accelerations of all joints, G, and its rate and derivatives."""

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
