# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot's momentum, and the rate of its CoM Jacobian; errors are as in `rbd_ros.dynamics`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import centroidal
from rbd_ros.kernels.states import batch_kinematics
from rbd_ros.kinematics import COM_JACOBIANS, JACOBIANS
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import lanes_of, shape, States
from rbd_ros.workspace.memory.maps import columns, rates
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity


class CentroidalMethods(RobotArrays):
    """The momentum of the whole robot."""

    @quantity(columns, kept=True, states=States(
        batch_kinematics.momentum_states, JACOBIANS, [lanes_of(JACOBIANS)]))
    def centroidal_momentum_matrix(self, q: ArrayLike) -> np.ndarray:
        """
        Return the matrix A that maps v to the robot's momentum about its centre of mass.

        Reference: Kim (23), (24), summed over links; linear rows, m J_CoM: Garofalo et al. (7).

        Returns
        -------
        ndarray, shape (6, nv)
            Angular first, in the axes of the root: kg m^2/s and kg m/s per rad/s or m/s.

        """
        rows, A, _ = self._kept(scratch.momentum_rows)
        if not centroidal.centroidal_momentum(self.robot, self._traits, q, rows):
            self._explain(q=q)
        return A

    @quantity(rates, part=1, returns='A, A_dot : ndarray, shape (6, nv)', kept=True,
              states=States(batch_kinematics.momentum_rate_states, JACOBIANS,
                            [lanes_of(shape(12, -1))]))
    def centroidal_momentum_matrix_dot(self, q: ArrayLike,
                                       v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the time derivative of `centroidal_momentum_matrix`.

        Reference: the sum of Kim (28), (30) over all links.

        Returns
        -------
        ndarray, shape (6, nv)
            A a + Adot v is the external moment about the centre of mass, N m, and the external
            force, N, weight and ground reactions included.

        """
        rows, A, A_dot = self._kept(scratch.momentum_rows)
        if not centroidal.centroidal_momentum_rate(self.robot, self._traits, q, v, rows):
            self._explain(q=q, v=v)
        return A, A_dot

    @quantity(states=States(
        batch_kinematics.com_jacobian_rate_states, COM_JACOBIANS, [lanes_of(shape(12, -1))]))
    def com_jacobian_dot(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return the time derivative of `com_jacobian`.

        Reference: the derivative of Garofalo et al. (7), 1/m sum P^T (G Jdot - ad_V^T G J).

        Returns
        -------
        ndarray, shape (3, nv)
            J a + Jdot v is the acceleration of the centre of mass in the root's frame, m/s^2;
            zeros for a robot without mass.

        """
        _, rate = self.centroidal_momentum_matrix_dot(q, v)
        mass = self.model.mass
        return rate[3:] / mass if mass else np.zeros((3, self._nv))


centroidal_momentum_matrix = plain(CentroidalMethods.centroidal_momentum_matrix)
centroidal_momentum_matrix_dot = plain(
    CentroidalMethods.centroidal_momentum_matrix_dot, np.ndarray)
com_jacobian_dot = plain(CentroidalMethods.com_jacobian_dot)
