# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics with respect to position, velocity and input.

Errors are those of `rbd_ros.dynamics`. `rbd_ros.analysis.directional_derivatives` has derivatives
in a single direction and with respect to any scalar (a mass, a placement, a wrench ...).

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels.derivatives import newton_euler_derivatives
from rbd_ros.kernels.states import batch_dynamics
from rbd_ros.model.arguments import Wrenches
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import (
    Closed, EQUATIONS, lane_of, lanes_of, shape, States)
from rbd_ros.workspace.memory.maps import matrix
from rbd_ros.workspace.memory.results import (
    ACCELERATIONS, by_state, cut_derivatives, Derivatives, M, TORQUES)
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import of_joints, plain, quantity


SHAPE = shape(-1, -3)   # of the derivatives side by side
DERIVATIVES = lanes_of(SHAPE)


class DerivativeMethods(RobotArrays):
    """Derivatives of inverse, forward and hybrid dynamics."""

    @quantity(matrix, matrix, matrix, in_root=of_joints,
              states=States(batch_dynamics.inverse_derivatives_states, SHAPE,
                            [DERIVATIVES], cut_derivatives, Derivatives._make,
                            closed=Closed('closed_inverse_derivatives_states',
                                          lambda w: w._tree_derivatives)),
              results={**by_state(TORQUES), **M})
    def inverse_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        """
        Return the derivatives of the torques with respect to q, v and a.

        Reference: Kim table 5, all directions at once; O(n depth). ``by_input`` is M.

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.inverse_dynamics_derivatives(q, v, a)
        rows, derivatives = self._result(scratch.torque_derivatives)
        if not newton_euler_derivatives.inverse_dynamics_derivatives(
                self.robot, self._traits, q, v, a, rows):
            self._explain(q=q, v=v, a=a)
        return derivatives

    @quantity(
        in_root=of_joints, states=States(
            batch_dynamics.forward_derivatives_states, SHAPE,
            [lane_of('A'), DERIVATIVES, lanes_of(shape(-1, -1)), scratch.path, DERIVATIVES],
            cut_derivatives, Derivatives._make, closed=Closed(
                'closed_forward_derivatives_states',
                lambda w: (*w._differentiation, *w._kept(scratch.unknown_derivatives)[:2])),
            coupled={'kernel': batch_dynamics.coupled_derivatives_states, 'scratch': [
                lane_of('A'), *EQUATIONS, DERIVATIVES, scratch.path, DERIVATIVES]}),
        results={**by_state(ACCELERATIONS), 'by_torque': 'inverse of the mass matrix'})
    def forward_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                     external_wrenches: Wrenches | None = None) -> Derivatives:
        """
        Return the derivatives of the accelerations with respect to q, v and tau.

        Reference: Kim table 6, all directions at once. ``by_input`` is the inverse of M.

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.forward_dynamics_derivatives(q, v, tau)
        X, lanes, derivatives = self._result(scratch.unknown_derivatives)
        if not newton_euler_derivatives.forward_dynamics_and_derivatives(
                self.robot, self._traits, q, v, self._a, tau,
                *self._kept(scratch.derivatives_and_factor), X, lanes):
            self._explain_forward(q, v, tau)
        return derivatives

    @quantity(part=0, in_root=of_joints, results={
        **by_state('unknown torques and accelerations'),
        'by_input': 'of unknown torques and accelerations, with respect to those given'
    }, returns="""\
    derivatives : Derivatives
        Of the unknown torques and accelerations.
    a, tau : ndarray, shape (nv,)
        All accelerations and torques.""")
    def hybrid_dynamics_derivatives(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
            *, external_wrenches: Wrenches | None = None
            ) -> tuple[Derivatives, np.ndarray, np.ndarray]:
        """
        Return the derivatives of the unknown torques and accelerations.

        They are taken with respect to q, v and the given torque or acceleration of each joint.
        Reference: Kim (33) and table 7, for all directions at once.

        Returns
        -------
        Derivatives
            Row k is that of ``tau[k]`` where ``prescribed[k]``, of ``a[k]`` elsewhere; column k of
            ``by_input`` is taken with respect to the other of the two.

        """
        if external_wrenches is not None:
            with self._wrenches(external_wrenches):
                return self.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        X, lanes, derivatives = self._result(scratch.unknown_derivatives)
        found = np.empty(self._nv), np.empty(self._nv)
        if not newton_euler_derivatives.hybrid_dynamics_and_derivatives(
                self.robot, self._traits, q, v, a, tau, self._mask(prescribed), *found,
                *self._kept(scratch.derivatives_and_factor), X, lanes):
            self._explain_accelerations(q, v, a, tau, prescribed)
        return derivatives, *found


inverse_dynamics_derivatives = plain(DerivativeMethods.inverse_dynamics_derivatives)
forward_dynamics_derivatives = plain(DerivativeMethods.forward_dynamics_derivatives)
hybrid_dynamics_derivatives = plain(DerivativeMethods.hybrid_dynamics_derivatives, Derivatives)
