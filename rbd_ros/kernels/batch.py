# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The recursions, one state after the other, as the threads of `rbd_ros.batch` run them.

Each returns the number of the first state that cannot be computed, or -1.

"""

from rbd_ros.kernels.articulated_bodies import articulated_bodies
from rbd_ros.kernels.bodies import end
from rbd_ros.kernels.compiled import long_kernel
from rbd_ros.kernels.composite_bodies import composite_bodies
from rbd_ros.kernels.newton_euler import newton_euler
from rbd_ros.kernels.newton_euler_derivatives import (forward_dynamics_and_derivatives,
                                                      inverse_dynamics_derivatives)
from rbd_ros.kernels.regressors import regressor_columns


@long_kernel
def inverse_dynamics_states(robot, screws, Q, V, A, Tau):
    """Write the torques of every state."""
    for k in range(len(Q)):
        if not newton_euler(robot, screws, Q[k], V[k], A[k]):
            return k
        for i in range(Tau.shape[1]):
            Tau[k, i] = robot[end(robot) + i]
    return -1


@long_kernel
def hybrid_dynamics_states(robot, screws, Q, V, A, Tau):
    """Complete the accelerations and torques of every state."""
    for k in range(len(Q)):
        if not articulated_bodies(robot, screws, Q[k], V[k], A[k], Tau[k]):
            return k
    return -1


@long_kernel
def all_terms_states(robot, screws, Q, V, terms):
    """Write M, C, g, C v, J_CoM and the CoM of every state."""
    for k in range(len(Q)):
        if not composite_bodies(robot, screws, Q[k], V[k], terms[k]):
            return k
    return -1


@long_kernel
def inverse_derivatives_states(robot, screws, Q, V, A, derivatives):
    """Write the derivatives of the torques of every state."""
    for k in range(len(Q)):
        if not inverse_dynamics_derivatives(robot, screws, Q[k], V[k], A[k], derivatives[k]):
            return k
    return -1


@long_kernel
def forward_derivatives_states(robot, screws, Q, V, A, Tau, derivatives, L, solved):
    """Write the accelerations of every state, and their derivatives."""
    for k in range(len(Q)):
        if not forward_dynamics_and_derivatives(robot, screws, Q[k], V[k], A[k], Tau[k],
                                                derivatives, L, solved[k]):
            return k
    return -1


@long_kernel
def torque_regressor_states(robot, screws, Q, V, A, links, Y):
    """Write the regressor of every state."""
    for k in range(len(Q)):
        if not regressor_columns(robot, screws, Q[k], V[k], A[k], links, Y[k]):
            return k
    return -1
