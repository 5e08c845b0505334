# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Torques, momentum and energy as matrices times the inertial parameters pi of the moving bodies.

    Y(q, v, a) pi = tau - (armature) a

with pi in the order of `rbd_ros.model.inertial_parameter_names`. Rotor inertias are not among the
parameters, so their torques are subtracted first; so are those of external wrenches and friction.
Errors are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import regressors
from rbd_ros.kernels.states import batch_dynamics
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import lanes_of, States
from rbd_ros.workspace.memory.maps import rows, same
from rbd_ros.workspace.memory.results import Factorization, is_body_form
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity
from rbd_ros.workspace.workspace import workspace_of

PARAMETERS = ('per inertial parameter: m, mc (3), Ixx, Iyy, Izz, Ixy, Ixz, Iyz of each moving '
              'link')


def number_of_parameters(model: Model) -> int:
    """Return how many inertial parameters the moving bodies have."""
    return 10 * len(workspace_of(model)._kept(scratch.body_table))


def shape_of_regressor(model: Model, n: int) -> list[tuple[int, ...]]:
    """Return the shape of a regressor."""
    return [(n, number_of_parameters(model))]


class RegressorMethods(RobotArrays):
    """Regressors."""

    @quantity(rows, states=States(
        batch_dynamics.torque_regressor_states, shape_of_regressor,
        [lambda w: w._kept(scratch.body_table), lanes_of(shape_of_regressor)]),
        results={'Y': f'torques {PARAMETERS}'})
    def torque_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """
        Return Y(q, v, a) with Y pi = tau - (armature) a.

        Masses and inertias of the robot are not used. Reference: Garofalo et al. (15), (16) with
        v_r = v and a_r = a.

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns in the order of `rbd_ros.model.inertial_parameter_names`.

        """
        Y = self._result(scratch.regressor)
        if not regressors.regressor_columns(self.robot, self._traits, q, v, a,
                                            self._kept(scratch.body_table), Y):
            self._explain(q=q, v=v, a=a)
        return Y

    @quantity(rows)
    def slotine_li_regressor(self, q: ArrayLike, v: ArrayLike, v_r: ArrayLike, a_r: ArrayLike, *,
                             factorization: Factorization = 'christoffel') -> np.ndarray:
        """
        Return Y with Y pi = M a_r + C v_r + g - (armature) a_r, for adaptive control.

        Reference: Garofalo et al. (15), (16).

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for `torque_regressor`.

        """
        Y, h = self._result(scratch.regressor), christoffel_share(factorization)
        if not regressors.slotine_li_columns(self.robot, self._traits, q, v, v_r, a_r,
                                             self._kept(scratch.body_table), h, Y):
            self._explain(q=q, v=v, v_r=v_r, a_r=a_r)
        return Y

    @quantity(rows)
    def momentum_regressor(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return Y with Y pi = M v - (armature) v, the generalized momentum.

        Reference: Garofalo et al. (6a) with (8).

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for `torque_regressor`.

        """
        Y = self._result(scratch.regressor)
        if not regressors.momentum_columns(self.robot, self._traits, q, v,
                                           self._kept(scratch.body_table), Y):
            self._explain(q=q, v=v)
        return Y

    @quantity(same)
    def energy_regressor(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return the rows whose products with pi are the kinetic and the potential energy, J.

        Reference: Lynch and Park (9.41), 1/2 V^T G V, with Garofalo et al. (8).

        Returns
        -------
        ndarray, shape (2, 10 * bodies)
            Kinetic energy without the rotors; potential energy, zero at the root's origin. Columns
            as for `torque_regressor`.

        """
        Y = self._result(scratch.energy_rows)
        if not regressors.energy_columns(self.robot, self._traits, q, v,
                                         self._kept(scratch.body_table), Y):
            self._explain(q=q, v=v)
        return Y


torque_regressor = plain(RegressorMethods.torque_regressor)
slotine_li_regressor = plain(RegressorMethods.slotine_li_regressor)
momentum_regressor = plain(RegressorMethods.momentum_regressor)
energy_regressor = plain(RegressorMethods.energy_regressor)


def christoffel_share(factorization: Factorization) -> float:
    """Return h of the kernels: 1/2 for the Christoffel form of C, 0 for the body form."""
    return 0.0 if is_body_form(factorization) else 0.5
