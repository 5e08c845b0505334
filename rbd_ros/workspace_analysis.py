# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The methods of `Workspace` for Jacobians of links and their rates and derivatives."""

import numpy as np
from rbd_ros.kernel_interface import Border, made_at_first_use, NOT_A_VECTOR
from rbd_ros.kernels.centroidal import centroidal_momentum
from rbd_ros.kernels.link_jacobians import (link_bias, link_jacobian_derivatives,
                                            link_jacobian_rates)


class AnalysisMethods(Border):
    """
    What `Workspace` has of `rbd_ros.analysis`: buffers, and the kernels that fill them.

    Shapes, units and errors are documented with the functions of the same names there.

    """

    def __init__(self, model):
        super().__init__(model)
        self._link_rows = {}

    @property
    def _width(self):
        """Return how many velocities the kernels count, those of mimicking joints included."""
        return len(self._places) - 1

    def _link_row(self, link):
        """Return the body of a link and its pose there, as the kernels want them."""
        try:
            return self._link_rows[link]
        except (KeyError, TypeError):
            k, tree = self.model.link_index(link), self.model.tree
            pose = tree.link_pose[k]
            row = np.array([[tree.link_body[k], *pose[:3, :3].T.ravel(), *pose[:3, 3]]])
            self._link_rows[link] = row
            return row

    def _fold_columns(self, *arrays):
        """Return arrays whose last axis is that of the tree's velocities by those of the model."""
        return arrays if self._folding is None else tuple(x @ self._folding.G for x in arrays)

    # -- Jacobians of a link. --------------------------------------------------------------------

    @made_at_first_use
    def _rate_rows(self):
        """Return room for the Jacobian of a link, its rates and its pose, and views of it."""
        n = self._width
        rows = np.zeros((23, max(n, 6)))
        rows[22, 3] = 1.0
        views = rows[:6, :n], rows[6:12, :n], rows[12:18, :n], rows[18, :6], rows[19:23, :4]
        return rows, views

    def body_jacobian(self, q, link):
        """Return the Jacobian of a link about its origin, in its own axes, and its pose."""
        rows, (J, _, _, _, T) = self._rate_rows
        try:
            if self._folding is None and link_jacobian_rates(
                    self.robot, self._screws, q, None, None, self._link_rows[link], False, rows):
                return J, T
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_jacobian_rates, 'q', (q,), None, None, self._link_row(link), False, rows)
        return (*self._fold_columns(J), T)

    def _jacobian_rate(self, q, v, link, aligned):
        rows, views = self._rate_rows
        try:
            if self._folding is None and link_jacobian_rates(
                    self.robot, self._screws, q, v, None, self._link_rows[link], aligned, rows):
                return views[:2]
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_jacobian_rates, 'qv', (q, v), None, self._link_row(link), aligned, rows)
        return self._fold_columns(*views[:2])

    def body_jacobian_dot(self, q, v, link):
        """Return the Jacobian of a link about its origin, in its own axes, and its rate."""
        return self._jacobian_rate(q, v, link, False)

    def world_jacobian_dot(self, q, v, link):
        """Return the Jacobian of a link about its origin, in the root's axes, and its rate."""
        return self._jacobian_rate(q, v, link, True)

    @made_at_first_use
    def _bias(self):
        return np.zeros((1, 6))

    def _rate_times_velocity(self, q, v, link, aligned):
        try:
            if self._folding is None and link_bias(
                    self.robot, self._screws, q, v, self._link_rows[link], aligned, self._bias):
                return self._bias[0]
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_bias, 'qv', (q, v), self._link_row(link), aligned, self._bias)
        return self._bias[0]

    def body_jacobian_dot_v(self, q, v, link):
        """Return Jdot v of a link, in its own axes: its acceleration where a is zero."""
        return self._rate_times_velocity(q, v, link, False)

    def world_jacobian_dot_v(self, q, v, link):
        """Return Jdot v of a link, in the root's axes: its acceleration where a is zero."""
        return self._rate_times_velocity(q, v, link, True)

    def jacobian_ddot(self, q, v, a, link):
        """Return the body Jacobian of a link with its first and second rates."""
        rows, views = self._rate_rows
        self._run(link_jacobian_rates, 'qva', (q, v, a), self._link_row(link), False, rows)
        return self._fold_columns(*views[:3])

    @made_at_first_use
    def _jacobian_derivatives(self):
        n = self._width
        return np.zeros((2, n, 6, n))

    def _fold_derivatives(self, D):
        """Return derivatives by the tree's coordinates, the first axis, by the model's."""
        if self._folding is None:
            return D
        G = self._folding.G
        return np.tensordot(G.T, D @ G, 1)

    def jacobian_derivatives(self, q, link):
        """Return the derivatives of the body Jacobian of a link by q, shape (nv, 6, nv)."""
        of_J, of_rate = self._jacobian_derivatives
        self._run(link_jacobian_derivatives, 'q', (q,), None, self._link_row(link), of_J, of_rate)
        return self._fold_derivatives(of_J)

    def jacobian_dot_derivatives(self, q, v, link):
        """Return the derivatives of the rate of the body Jacobian of a link by q and by v."""
        of_J, of_rate = self._jacobian_derivatives
        self._run(link_jacobian_derivatives, 'qv', (q, v), self._link_row(link), of_J, of_rate)
        return self._fold_derivatives(of_rate), self._fold_derivatives(of_J)

    # -- Momentum of the whole robot. ------------------------------------------------------------

    @made_at_first_use
    def _momentum_rows(self):
        rows = np.zeros((12, self._width))
        return rows, rows[:6], rows[6:]

    def centroidal_momentum_matrix(self, q):
        """Return the matrix that takes v to the robot's momentum about its centre of mass."""
        rows, A, _ = self._momentum_rows
        try:
            if self._folding is None and centroidal_momentum(self.robot, self._screws, q, None,
                                                             rows):
                return A
        except NOT_A_VECTOR:
            pass
        self._run(centroidal_momentum, 'q', (q,), None, rows)
        return self._fold_columns(A)[0]

    def centroidal_momentum_matrix_dot(self, q, v):
        """Return the centroidal momentum matrix and its rate."""
        rows, A, A_rate = self._momentum_rows
        try:
            if self._folding is None and centroidal_momentum(self.robot, self._screws, q, v, rows):
                return A, A_rate
        except NOT_A_VECTOR:
            pass
        self._run(centroidal_momentum, 'qv', (q, v), rows)
        return self._fold_columns(A, A_rate)

    def com_jacobian_dot(self, q, v):
        """Return the rate of the Jacobian of the centre of mass."""
        _, rate = self.centroidal_momentum_matrix_dot(q, v)
        mass = self.model.mass
        return rate[3:] / mass if mass else np.zeros((3, self.model.nv))
