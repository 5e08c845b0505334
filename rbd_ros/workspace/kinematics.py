# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: poses, Jacobians with their rates and derivatives, and momentum."""

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.centroidal import center_of_mass, centroidal_momentum
from rbd_ros.kernels.compiled import NOT_A_VECTOR
from rbd_ros.kernels.link_jacobians import (jacobian_columns, link_bias, link_jacobian_derivatives,
                                            link_jacobian_rates)
from rbd_ros.kernels.link_poses import link_poses
from rbd_ros.model.model import Model
from rbd_ros.workspace.kernel_interface import KernelInterface

__all__ = ['KinematicsMethods']


class KinematicsMethods(KernelInterface):
    """
    Poses, Jacobians and momentum.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._link_rows: dict[str, np.ndarray] = {}
        self._body_rows: dict[str, np.ndarray] = {}
        # The Jacobian of a link and its pose, and the views of them that are handed out.
        self._jacobian_rows = np.zeros((10, max(self._n, 4)))
        self._jacobian_and_pose = self._jacobian_rows[:6, :self._n], self._jacobian_rows[6:, :4]

    def _link_row(self, link: str) -> np.ndarray:
        """Return the body of a link and its pose there, as the kernels want them."""
        try:
            return self._link_rows[link]
        except (KeyError, TypeError):
            k, tree = self.model.link_index(link), self.model.tree
            pose = tree.link_pose[k]
            here = [tree.link_body[k], *pose[:3, :3].T.ravel(), *pose[:3, 3]]
            self._body_rows[link] = np.array([[*here, 0.0]])
            self._link_rows[link] = np.array([[*here, 1.0]])
            return self._link_rows[link]

    def _fold_columns(self, A: np.ndarray) -> np.ndarray:
        """Return an array whose last axis is that of the tree's velocities by the model's."""
        return A if self._folding is None else A @ self._folding.G

    def _fold_derivatives(self, D: np.ndarray) -> np.ndarray:
        """Return derivatives by the tree's coordinates, the first axis, by ours, the last."""
        if self._folding is not None:
            D = np.tensordot(self._folding.G.T, D @ self._folding.G, 1)
        return D.transpose(1, 2, 0)

    def forward_kinematics(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the poses of all links in the root's frame, shape (links, 4, 4)."""
        links, T = self._kept(link_table), self._result(link_matrices)
        try:
            if self._folding is None and link_poses(self.robot, self._screws, q, links, T):
                return T
        except NOT_A_VECTOR:
            pass
        self._run(link_poses, 'q', (q,), links, T)
        return T

    # -- The centre of mass. ---------------------------------------------------------------------

    def _center_of_mass(self, q: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        J, com = self._kept(com_rows)
        try:
            if self._folding is None and center_of_mass(self.robot, self._screws, q, J, com):
                return J, com
        except NOT_A_VECTOR:
            pass
        self._run(center_of_mass, 'q', (q,), J, com)
        return self._fold_columns(J), com

    def center_of_mass(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the centre of mass in the root's frame."""
        return self._center_of_mass(q)[1]

    def com_jacobian(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the Jacobian of the centre of mass."""
        return self._center_of_mass(q)[0]

    def com_jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
        """Return the rate of the Jacobian of the centre of mass."""
        _, rate = self.centroidal_momentum_matrix_dot(q, v)
        mass = self.model.mass
        return rate[3:] / mass if mass else np.zeros((3, self._nv))

    # -- Jacobians of a link. --------------------------------------------------------------------

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
        return self._fold_columns(J), T

    def _jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str,
                      aligned: bool) -> tuple[np.ndarray, np.ndarray]:
        rows, J, J_dot, _ = self._kept(jacobian_rates)
        try:
            if self._folding is None and link_jacobian_rates(
                    self.robot, self._screws, q, v, None, self._link_rows[link], aligned, rows):
                return J, J_dot
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_jacobian_rates, 'qv', (q, v), None, self._link_row(link), aligned, rows)
        return self._fold_columns(J), self._fold_columns(J_dot)

    def jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike,
                     link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link about its origin, in its own axes, and its rate."""
        return self._jacobian_dot(q, v, link, False)

    def world_jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike,
                           link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link about its origin, in the root's axes, and its rate."""
        return self._jacobian_dot(q, v, link, True)

    def _jacobian_dot_v(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str,
                        aligned: bool) -> np.ndarray:
        bias = self._kept(link_acceleration)
        try:
            if self._folding is None and link_bias(
                    self.robot, self._screws, q, v, self._link_rows[link], aligned, bias):
                return bias[0]
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_bias, 'qv', (q, v), self._link_row(link), aligned, bias)
        return bias[0]

    def jacobian_dot_v(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v of a link, in its own axes: its acceleration where a is zero."""
        return self._jacobian_dot_v(q, v, link, False)

    def world_jacobian_dot_v(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v of a link, in the root's axes: its acceleration where a is zero."""
        return self._jacobian_dot_v(q, v, link, True)

    def jacobian_ddot(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                      link: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the body Jacobian of a link with its first and second rates."""
        rows, *rates = self._kept(jacobian_rates)
        if a is None:
            self.check(a=a)         # for the kernel None has a meaning
        self._run(link_jacobian_rates, 'qva', (q, v, a), self._link_row(link), False, rows)
        J, J_dot, J_second = (self._fold_columns(x) for x in rates)
        return J, J_dot, J_second

    def jacobian_derivatives(self, q: npt.ArrayLike, link: str) -> np.ndarray:
        """Return the derivatives of the body Jacobian of a link by q, shape (6, nv, nv)."""
        of_J, of_rate = self._result(jacobian_changes)
        self._run(link_jacobian_derivatives, 'q', (q,), None, self._link_row(link), of_J, of_rate)
        return self._fold_derivatives(of_J)

    def jacobian_dot_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike,
                                 link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the rate of the body Jacobian of a link by q and by v."""
        of_J, of_rate = self._result(jacobian_changes)
        if v is None:
            self.check(v=v)
        self._run(link_jacobian_derivatives, 'qv', (q, v), self._link_row(link), of_J, of_rate)
        return self._fold_derivatives(of_rate), self._fold_derivatives(of_J)

    # -- Momentum of the whole robot. ------------------------------------------------------------

    def centroidal_momentum_matrix(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the matrix that takes v to the robot's momentum about its centre of mass."""
        rows, A, _ = self._kept(momentum_rows)
        try:
            if self._folding is None and centroidal_momentum(self.robot, self._screws, q, None,
                                                             rows):
                return A
        except NOT_A_VECTOR:
            pass
        self._run(centroidal_momentum, 'q', (q,), None, rows)
        return self._fold_columns(A)

    def centroidal_momentum_matrix_dot(self, q: npt.ArrayLike,
                                       v: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the centroidal momentum matrix and its rate."""
        rows, A, A_rate = self._kept(momentum_rows)
        if v is None:
            self.check(v=v)
        try:
            if self._folding is None and centroidal_momentum(self.robot, self._screws, q, v, rows):
                return A, A_rate
        except NOT_A_VECTOR:
            pass
        self._run(centroidal_momentum, 'qv', (q, v), rows)
        return self._fold_columns(A), self._fold_columns(A_rate)


# -- What `KinematicsMethods` keeps and hands out. ------------------------------------------------

def link_table(w: KernelInterface) -> np.ndarray:
    """Return for each link its body and its pose there, rotation and position."""
    tree = w.model.tree
    rotations = tree.link_pose[:, :3, :3].transpose(0, 2, 1).reshape(-1, 9)
    return np.column_stack((tree.link_body, rotations, tree.link_pose[:, :3, 3]))


def link_matrices(w: KernelInterface) -> np.ndarray:
    """Return a buffer for the poses of all links."""
    return np.empty((len(w._kept(link_table)), 4, 4))


def com_rows(w: KernelInterface) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer for the Jacobian of the centre of mass, and for that itself."""
    return np.zeros((3, w._n)), np.zeros(3)


def jacobian_rates(w: KernelInterface) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a buffer for the Jacobian of a link, two rates and Jdot v; and the first three."""
    rows, n = np.zeros((19, max(w._n, 6))), w._n
    return rows, rows[:6, :n], rows[6:12, :n], rows[12:18, :n]


def link_acceleration(w: KernelInterface) -> np.ndarray:
    """Return a buffer for Jdot v of a link."""
    return np.zeros((1, 6))


def jacobian_changes(w: KernelInterface) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer for the derivatives of a Jacobian and of its rate, the coordinate first."""
    return np.empty((w._n, 6, w._n)), np.empty((w._n, 6, w._n))


def momentum_rows(w: KernelInterface) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a buffer for the centroidal momentum matrix and its rate, and both."""
    rows = np.zeros((12, w._n))
    return rows, rows[:6], rows[6:]
