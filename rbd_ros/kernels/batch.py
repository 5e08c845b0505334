# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The recursions for many states, as the threads of `rbd_ros.batch` run them.

Several states at a time are computed side by side, in lanes. Where that fails one of them is at
fault: they are then computed one by one, as the last few states are. Each function returns the
number of the first state that cannot be computed, or -1.

"""

from rbd_ros.kernels import articulated_bodies as articulated, newton_euler as newton
from rbd_ros.kernels.bodies import end
from rbd_ros.kernels.compiled import helper, long_kernel
from rbd_ros.kernels.composite_bodies import composite_bodies, composite_recursion
from rbd_ros.kernels.lanes import load_column, set_entry, WIDTH
from rbd_ros.kernels.newton_euler_derivatives import (forward_dynamics_and_derivatives,
                                                      inverse_dynamics_derivatives)
from rbd_ros.kernels.regressors import regressor_columns

# So many states take longer side by side than one by one.
FEW = 2


@helper
def gather(X, first, x):
    """Write states to lanes; the last state fills the lanes that are left."""
    for i in range(X.shape[1]):
        set_entry(x, i, load_column(X, first, i))


@helper
def scatter(x, first, X):
    """Write lanes to states."""
    for lane in range(min(WIDTH, len(X) - first)):
        for i in range(X.shape[1]):
            X[first + lane, i] = x[i, lane]


@long_kernel
def inverse_dynamics_states(robot, screws, Q, V, A, work, q, v, a, Tau):
    """Write the torques of every state."""
    several, nv = (robot, work), Tau.shape[1]
    for first in range(0, len(Q), WIDTH):
        fine = len(Q) - first > FEW
        if fine:
            gather(Q, first, q)
            gather(V, first, v)
            gather(A, first, a)
            fine = newton.recursion(several, screws, q, v, a)
        if fine:
            scatter(work[end(several):], first, Tau)
        else:
            for k in range(first, min(first + WIDTH, len(Q))):
                if not newton.newton_euler(robot, screws, Q[k], V[k], A[k]):
                    return k
                for i in range(nv):
                    Tau[k, i] = robot[end(robot) + i]
    return -1


@long_kernel
def hybrid_dynamics_states(robot, screws, Q, V, A, Tau, work, q, v, a, tau):
    """Complete the accelerations and torques of every state."""
    several = (robot, work)
    for first in range(0, len(Q), WIDTH):
        fine = len(Q) - first > FEW
        if fine:
            gather(Q, first, q)
            gather(V, first, v)
            gather(A, first, a)
            gather(Tau, first, tau)
            fine = articulated.recursion(several, screws, q, v, a, tau)
        if fine:
            scatter(a, first, A)
            scatter(tau, first, Tau)
        else:
            for k in range(first, min(first + WIDTH, len(Q))):
                if not articulated.articulated_bodies(robot, screws, Q[k], V[k], A[k], Tau[k]):
                    return k
    return -1


@long_kernel
def all_terms_states(robot, screws, Q, V, work, q, v, side_by_side, terms):
    """Write M, C, g, C v, J_CoM and the CoM of every state."""
    for first in range(0, len(Q), WIDTH):
        fine = len(Q) - first > FEW
        if fine:
            gather(Q, first, q)
            gather(V, first, v)
            fine = composite_recursion((robot, work), screws, q, v, side_by_side)
        if fine:
            for i in range(terms.shape[1]):
                for j in range(terms.shape[2]):
                    for lane in range(min(WIDTH, len(Q) - first)):
                        terms[first + lane, i, j] = side_by_side[i, j, lane]
        else:
            for k in range(first, min(first + WIDTH, len(Q))):
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
def forward_derivatives_states(robot, screws, Q, V, A, Tau, derivatives, L, L_lanes, path, X,
                               X_lanes, solved):
    """Write the accelerations of every state, and their derivatives."""
    for k in range(len(Q)):
        if not forward_dynamics_and_derivatives(robot, screws, Q[k], V[k], A[k], Tau[k],
                                                derivatives, L, L_lanes, path, X, X_lanes):
            return k
        for i in range(solved.shape[1]):
            for j in range(solved.shape[2]):
                solved[k, i, j] = X[i, j]
    return -1


@long_kernel
def torque_regressor_states(robot, screws, Q, V, A, links, Y):
    """Write the regressor of every state."""
    for k in range(len(Q)):
        if not regressor_columns(robot, screws, Q[k], V[k], A[k], links, Y[k]):
            return k
    return -1
