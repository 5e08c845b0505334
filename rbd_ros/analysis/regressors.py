# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Torques, momentum and energy as matrices times the inertial parameters pi of the moving bodies.

    Y(q, v, a) pi = tau - (armature) a

with pi in the order of `rbd_ros.model.inertial_parameter_names`. Rotor inertias are not among the
parameters, so their torques are subtracted first; so are those of external wrenches and friction,
which has matrices of its own.
Errors are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.kernels import regressors
from rbd_ros.kernels.states import batch_dynamics
from rbd_ros.model.arguments import number, one_or_rows
from rbd_ros.model.changes.drives import check_columns, COLUMNS, USUAL
from rbd_ros.model.changes.friction import direction, friction_terms
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import lanes_of, States
from rbd_ros.workspace.memory.maps import rows, same
from rbd_ros.workspace.memory.results import Factorization, is_body_form
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import of_joints, plain, quantity
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
        results={'Y': f'torques {PARAMETERS}'}, in_root=of_joints)
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
        Y, = self._result(scratch.regressor)
        if not regressors.regressor_columns(self.robot, self._traits, q, v, a,
                                            self._kept(scratch.body_table), Y):
            self._explain(q=q, v=v, a=a)
        return Y

    @quantity(rows, in_root=of_joints)
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
        Y, = self._result(scratch.regressor)
        h = christoffel_share(factorization)
        if not regressors.slotine_li_columns(self.robot, self._traits, q, v, v_r, a_r,
                                             self._kept(scratch.body_table), h, Y):
            self._explain(q=q, v=v, v_r=v_r, a_r=a_r)
        return Y

    @quantity(rows, in_root=of_joints)
    def momentum_regressor(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return Y with Y pi = M v - (armature) v, the generalized momentum.

        Reference: Garofalo et al. (6a) with (8).

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for `torque_regressor`.

        """
        Y, = self._result(scratch.regressor)
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
        Y, = self._result(scratch.energy_rows)
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


def friction_regressor(model: Model, v: ArrayLike, a: ArrayLike | None = None, *,
                       columns: Sequence[str] = USUAL, smooth: float = 0.0) -> np.ndarray:
    """
    Return Y(v, a) whose product with the drive parameters is the torque of the drives.

    Without the column ``'rotor'``, that torque is `rbd_ros.friction_torques`. Of the robot's own
    drive parameters, only the Stribeck velocities are used. With closed loops these are the drives
    of the independent joints, without those of dependent ones.

    Parameters
    ----------
    model, v, a
        Robot; velocity, rad/s or m/s, (nv,) or (states, nv); acceleration of the same shape,
        needed for the column ``'rotor'``.
    columns : sequence of str
        The columns of each velocity, in this order: ``'viscous'``, ``'viscous_asymmetry'``,
        ``'coulomb'``, ``'coulomb_asymmetry'``, ``'stribeck'``, ``'offset'``, ``'rotor'``.
    smooth : float
        As for `rbd_ros.friction_torques`.

    Returns
    -------
    ndarray, shape (nv, nv * columns) or (states, nv, nv * columns)
        Columns in the order of `rbd_ros.model.drive_parameter_names`.

    """
    v, smooth = one_or_rows(model, 'v', v), number('smooth', smooth, 0.0)
    columns = check_columns(columns)
    terms = friction_terms(model, v, direction(v, smooth), v)
    if a is not None or 'rotor' in columns:
        terms['armature'] = one_or_rows(model, 'a', a)
        if terms['armature'].shape != v.shape:
            raise StateError(f"a has the shape {terms['armature'].shape}, v {v.shape}: they must "
                             'be of the same states')
    return drive_columns(terms, columns, v.shape)


def drive_columns(terms: Mapping[str, np.ndarray], columns: Sequence[str],
                  shape: tuple[int, ...]) -> np.ndarray:
    """Return the regressor of drives, given the factors (..., nv) of their coefficients."""
    Y, joint = np.zeros((*shape, shape[-1], len(columns))), np.arange(shape[-1])
    for k, one in enumerate(columns):
        Y[..., joint, joint, k] = terms[COLUMNS[one]]
    return Y.reshape(*shape, shape[-1] * len(columns))
