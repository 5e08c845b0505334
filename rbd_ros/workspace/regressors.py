# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: regressors, and derivatives by inertial parameters."""

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.mimics import fold_rows
from rbd_ros.kernels.parameter_matrices import parameter_matrices
from rbd_ros.kernels.regressors import (energy_columns, momentum_columns, regressor_columns,
                                        slotine_li_columns)
from rbd_ros.model.model import Model
from rbd_ros.validation import choice, Wrenches
from rbd_ros.workspace.dynamics import DynamicsMethods
from rbd_ros.workspace.kernel_interface import KernelInterface
from rbd_ros.workspace.results import (CHRISTOFFEL, Factorization, FACTORIZATIONS,
                                       ParameterDerivatives)

__all__ = ['moving_links', 'RegressorMethods']


class RegressorMethods(DynamicsMethods):
    """
    What each inertial parameter of the moving bodies contributes.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def _fold_rows(self, A: np.ndarray) -> np.ndarray:
        """Return an array whose first axis is that of the tree's velocities by the model's."""
        return A if self._folding is None else np.tensordot(self._folding.G.T, A, 1)

    def torque_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike) -> np.ndarray:
        """Return Y with Y pi = tau - armature a, for the parameters of every moving body."""
        Y, links = self._result(regressor), self._kept(body_table)
        tree = Y if self._folding is None else self._kept(tree_regressor)
        self._run(regressor_columns, 'qva', (q, v, a), links, tree)
        return self._folded_regressor(tree, Y)

    def slotine_li_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike, v_r: npt.ArrayLike,
                             a_r: npt.ArrayLike, *,
                             factorization: Factorization = 'christoffel') -> np.ndarray:
        """Return Y with Y pi = M a_r + C v_r + g - armature a_r."""
        h = christoffel_share(factorization)
        Y, links = self._result(regressor), self._kept(body_table)
        tree = Y if self._folding is None else self._kept(tree_regressor)
        self._run(slotine_li_columns, ('q', 'v', 'v_r', 'a_r'), (q, v, v_r, a_r), links, h,
                  tree)
        return self._folded_regressor(tree, Y)

    def _folded_regressor(self, tree: np.ndarray, Y: np.ndarray) -> np.ndarray:
        if self._folding is not None:
            self._call(fold_rows, self._folding.columns, tree, Y)
        return Y

    def momentum_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
        """Return Y with Y pi = M v - (armature) v."""
        Y = self._result(tree_regressor)
        self._run(momentum_columns, 'qv', (q, v), self._kept(body_table), Y)
        return self._fold_rows(Y)

    def energy_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
        """Return the rows whose products with pi are the kinetic and the potential energy."""
        rows = self._result(energy_rows)
        self._run(energy_columns, 'qv', (q, v), self._kept(body_table), rows)
        return rows

    def parameter_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, *,
            factorization: Factorization = 'christoffel') -> ParameterDerivatives:
        """Return the `ParameterDerivatives`."""
        h = christoffel_share(factorization)
        M, C, g = self._result(matrices_by_parameters)
        self._run(parameter_matrices, 'qv', (q, v), self._kept(body_table), h, M, C, g)
        if self._folding is not None:
            # Once along the first axis, once along the second.
            M, C = (self._folding.G.T @ self._fold_rows(x) for x in (M, C))
        return ParameterDerivatives(M, C, self._fold_rows(g))

    def acceleration_parameter_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, *,
            external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivatives of a by the parameters, shape (nv, 10 bodies)."""
        a = self.forward_dynamics(q, v, tau, external_wrenches)
        Y = self.torque_regressor(q, v, a)
        return -np.linalg.solve(self.mass_matrix(q), Y)


def christoffel_share(factorization: Factorization) -> float:
    """Return h of the kernels: 1/2 for the Christoffel form of C, 0 for that of the body."""
    return 0.5 if choice('factorization', factorization, FACTORIZATIONS) == CHRISTOFFEL else 0.0


# -- What `RegressorMethods` keeps and hands out. -------------------------------------------------

def moving_links(model: Model) -> np.ndarray:
    """Return the body of each link that a joint moves, and its rotation to that."""
    tree, links = model.tree, [k for k, joint in enumerate(model.joints, 1) if joint.nv]
    rotations = tree.link_pose[links, :3, :3].transpose(0, 2, 1).reshape(-1, 9)
    return np.column_stack((tree.link_body[links], rotations))


def body_table(w: KernelInterface) -> np.ndarray:
    """Return the `moving_links`."""
    return moving_links(w.model)


# Entries of joints that do not carry a body are never written: they stay zero.
def regressor(w: KernelInterface) -> np.ndarray:
    """Return a buffer for a regressor."""
    return np.zeros((w._nv, 10 * len(w._kept(body_table))))


def tree_regressor(w: KernelInterface) -> np.ndarray:
    """Return a buffer for one by the coordinates of the tree."""
    return np.zeros((w._n, 10 * len(w._kept(body_table))))


def energy_rows(w: KernelInterface) -> np.ndarray:
    """Return a buffer for the regressors of both energies."""
    return np.zeros((2, 10 * len(w._kept(body_table))))


def matrices_by_parameters(w: KernelInterface) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a buffer for the derivatives of M, C and g."""
    n, parameters = w._n, 10 * len(w._kept(body_table))
    return (np.zeros((n, n, parameters)), np.zeros((n, n, parameters)), np.zeros((n, parameters)))
