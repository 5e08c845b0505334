# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The matrices M, C and g differentiated with respect to state, time and inertial parameters.

Garofalo et al., propositions 2, 5 and 6, for both factorizations of C. The last index is that of
the coordinate or parameter; coordinates are those of the robot also where joints mimic others,
and for ball and free joints the derivative is taken along the direction of the velocity. Errors
are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.analysis.regressors import christoffel_share, PARAMETERS, RegressorMethods
from rbd_ros.derivatives import DerivativeMethods
from rbd_ros.dynamics import DynamicsMethods
from rbd_ros.kernels.derivatives import (
    composite_body_rates, matrix_derivatives, parameter_matrices)
from rbd_ros.model.arguments import Wrenches
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.maps import (
    by_coordinates, coriolis, matrix, matrix_rates, parameters_of_terms, rates_by_coordinates)
from rbd_ros.workspace.memory.results import (
    Factorization, is_body_form, MatricesDot, ParameterDerivatives)
from rbd_ros.workspace.quantity import of_joints, plain, quantity

__all__ = ['acceleration_parameter_derivatives', 'coriolis_matrix_derivatives',
           'gravity_torques_derivatives', 'mass_matrix_derivatives', 'matrices_dot', 'MatricesDot',
           'parameter_derivatives', 'ParameterDerivatives']


class MatrixDerivativeMethods(DynamicsMethods, DerivativeMethods, RegressorMethods):
    """Derivatives of the matrices M, C and g."""

    @quantity(by_coordinates(matrix, 'mass_matrix'), in_root=of_joints)
    def mass_matrix_derivatives(self, q: ArrayLike) -> np.ndarray:
        """
        Return the derivatives of the mass matrix with respect to the coordinates.

        Reference: Vlasblom (1.14), (2.22), summed over all bodies; Garofalo et al. (24a).

        Returns
        -------
        ndarray, shape (nv, nv, nv)
            ``dM[:, :, h]`` is taken with respect to coordinate h, per rad or m.

        """
        D = self._result(scratch.cube)
        if not matrix_derivatives.mass_matrix_derivatives(self.robot, self._traits, q, D):
            self._explain(q=q)
        return D.transpose(1, 2, 0)

    @quantity(rates_by_coordinates(coriolis, lambda tree, given, found: (
        tree.mass_matrix(given['q']), tree.coriolis_matrix(**given),
        tree.mass_matrix_derivatives(given['q']))), in_root=of_joints, results={
            'by_q': 'of C, with respect to q; the last index', 'by_v': 'of C, with respect to v'})
    def coriolis_matrix_derivatives(
            self, q: ArrayLike, v: ArrayLike, *,
            factorization: Factorization = 'christoffel') -> tuple[np.ndarray, np.ndarray]:
        """
        Return the derivatives of the Coriolis matrix with respect to coordinates and velocities.

        Reference: Garofalo et al. (24b), (24c), with dS/dq.

        Returns
        -------
        by_q, by_v : ndarray, shape (nv, nv, nv)
            Entry h of the last axis: with respect to coordinate h, with v held, or to v_h.

        """
        skew = 1 if is_body_form(factorization) else None
        by_q, by_v = self._result(scratch.cubes)
        if not matrix_derivatives.coriolis_matrix_derivatives(
                self.robot, self._traits, q, v, skew, by_q, by_v):
            self._explain(q=q, v=v)
        return by_q.transpose(1, 2, 0), by_v.transpose(1, 2, 0)

    @quantity(in_root=of_joints)
    def gravity_torques_derivatives(self, q: ArrayLike) -> np.ndarray:
        """
        Return the derivatives of the gravity torques with respect to the coordinates.

        Reference: Garofalo et al. (24d).

        Returns
        -------
        ndarray, shape (nv, nv)
            Column h: with respect to coordinate h, N m or N per rad or m; symmetric if v = dq/dt.

        """
        # Where nothing moves, all torques are those of gravity.
        return self.inverse_dynamics_derivatives(q, self._zeros, self._zeros).by_position

    @quantity(matrix_rates, in_root=of_joints,
              results={'M_dot': 'dM/dt', 'C_dot': 'dC/dt', 'g_dot': 'dg/dt'})
    def matrices_dot(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *,
                     factorization: Factorization = 'christoffel') -> MatricesDot:
        """
        Return the time derivatives dM/dt, dC/dt and dg/dt.

        Reference: Garofalo et al. (25), with Jddot and the rate of Psi, whose dots (25b) lacks.

        """
        body_form = is_body_form(factorization)
        n, rates = self._nv, self._result(scratch.matrix_rates)
        if not composite_body_rates.composite_rates(self.robot, self._traits, q, v, a, rates):
            self._explain(q=q, v=v, a=a)
        if body_form:
            matrix_derivatives.add_factorization_rate(self.robot, rates)
        C = rates[:n]
        return MatricesDot(C + C.T, rates[n:2 * n], rates[2 * n])

    @quantity(parameters_of_terms, in_root=of_joints,
              results={name: f'{name} {PARAMETERS}' for name in 'MCg'})
    def parameter_derivatives(self, q: ArrayLike, v: ArrayLike, *,
                              factorization: Factorization = 'christoffel'
                              ) -> ParameterDerivatives:
        """
        Return the derivatives of M, C and g with respect to the inertial parameters pi.

        C and g, and M without the armature, are linear in pi: each is the sum of its derivatives
        times the parameters. The last axis is that of the columns of the regressors:
        ``np.einsum('ijk,j', M, a) + np.einsum('ijk,j', C, v) + g`` is `torque_regressor`.

        Reference: Garofalo et al. (13), with Jdot, whose dot (13b) lacks.

        """
        M, C, g = self._result(scratch.matrices_by_parameters)
        h = christoffel_share(factorization)
        if not parameter_matrices.parameter_matrices(self.robot, self._traits, q, v,
                                                     self._kept(scratch.body_table), h, M, C, g):
            self._explain(q=q, v=v)
        return ParameterDerivatives(M, C, g)

    @quantity(untraced='NumPy solves its equations')
    def acceleration_parameter_derivatives(
            self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *,
            external_wrenches: Wrenches | None = None) -> np.ndarray:
        """
        Return the derivatives of accelerations with respect to inertial parameters, -M^-1 Y.

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for Y, the `torque_regressor`.

        """
        a = self.forward_dynamics(q, v, tau, external_wrenches)
        Y = self.torque_regressor(q, v, a)
        return -np.linalg.solve(self.mass_matrix(q), Y)


mass_matrix_derivatives = plain(MatrixDerivativeMethods.mass_matrix_derivatives)
coriolis_matrix_derivatives = plain(MatrixDerivativeMethods.coriolis_matrix_derivatives)
gravity_torques_derivatives = plain(MatrixDerivativeMethods.gravity_torques_derivatives)
matrices_dot = plain(MatrixDerivativeMethods.matrices_dot)
parameter_derivatives = plain(MatrixDerivativeMethods.parameter_derivatives)
acceleration_parameter_derivatives = plain(
    MatrixDerivativeMethods.acceleration_parameter_derivatives)
