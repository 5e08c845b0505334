# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The dynamics of robots with closed loops for many states, one after the other.

Each kernel returns DONE, or the number of the first state that cannot be computed; results of
earlier ones have been written. The arguments before Q are those of the kernel for one state.

"""

from rbd_ros.kernels.jit.compiled import states_kernel
from rbd_ros.kernels.loops.arrays import TAU
from rbd_ros.kernels.loops.closed_loops import parts
from rbd_ros.kernels.loops.derivatives import (
    closed_forward_derivatives, closed_inverse_dynamics_derivatives)
from rbd_ros.kernels.loops.dynamics import (
    closed_inverse_dynamics, closed_terms, solve_forward)
from rbd_ros.kernels.states.batch_dynamics import DONE


@states_kernel
def closed_inverse_states(robot, traits, loops, Q, V, A, Tau):
    """Write the torques of every state."""
    vectors = parts(loops).vectors
    for k in range(len(Q)):
        if not closed_inverse_dynamics(robot, traits, loops, Q[k], V[k], A[k]):
            return k
        for i in range(Tau.shape[1]):
            Tau[k, i] = vectors[TAU, i]
    return DONE


@states_kernel
def closed_forward_states(robot, traits, loops, table, L, L_lanes, Q, V, Tau, A):
    """Write the accelerations of every state."""
    p, factor = parts(loops), (table, L, L_lanes)
    for k in range(len(Q)):
        if not solve_forward(robot, traits, p, factor, Q[k], V[k], A[k], Tau[k]):
            return k
    return DONE


@states_kernel
def closed_terms_states(robot, traits, loops, tree_terms, Q, V, Terms):
    """Write the `DynamicsTerms` of every state."""
    for k in range(len(Q)):
        if not closed_terms(robot, traits, loops, Q[k], V[k], tree_terms, Terms[k]):
            return k
    return DONE


@states_kernel
def closed_inverse_derivatives_states(robot, traits, loops, D, Q, V, A, Derivatives):
    """Write the derivatives of the torques of every state."""
    for k in range(len(Q)):
        if not closed_inverse_dynamics_derivatives(robot, traits, loops, D, Q[k], V[k], A[k],
                                                   Derivatives[k]):
            return k
    return DONE


@states_kernel
def closed_forward_derivatives_states(robot, traits, loops, table, L, L_lanes, D, derivatives,
                                      path, X, X_lanes, Q, V, Tau, Solved):
    """Write the derivatives of the accelerations of every state."""
    for k in range(len(Q)):
        if not closed_forward_derivatives(robot, traits, loops, table, L, L_lanes, D, derivatives,
                                          path, Q[k], V[k], Tau[k], X, X_lanes):
            return k
        for i in range(Solved.shape[1]):
            for j in range(Solved.shape[2]):
                Solved[k, i, j] = X[i, j]
    return DONE
