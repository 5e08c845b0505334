# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The recursions for many states, as the threads of `rbd_ros.batch` run them.

States are computed side by side, in lanes, WIDTH of them at a time; fewer at the end have the last
one several times. Each function returns -1 or, where one of WIDTH states cannot be computed, the
number of the first of them: nothing of these and of those behind them is written.

``places`` has where the bodies are that wrenches act on, and ``wrenches`` for each of these bodies
one row for each state: a moment and a force in the axes of the body. Inverse dynamics leaves its
torques in ``work``, behind the bodies; for all other results there are further lanes.

"""

import numpy as np
from rbd_ros.kernels import articulated_bodies as articulated, newton_euler as newton
from rbd_ros.kernels.bodies import end, work_offset, WRENCH
from rbd_ros.kernels.compiled import helper, long_kernel
from rbd_ros.kernels.composite_bodies import composite_recursion
from rbd_ros.kernels.lanes import gather, scatter, WIDTH, work_of
from rbd_ros.kernels.mimics import solve_dense
from rbd_ros.kernels.newton_euler_derivatives import (differentiate_inverse_dynamics,
                                                      solve_for_unknowns)
from rbd_ros.kernels.regressors import write_regressor


@helper
def push(robot, places, wrenches, first):
    """Let the wrenches of several states act on bodies."""
    for k in range(len(places)):
        there = np.int64(work_offset(robot, places[k], WRENCH))
        gather(wrenches[k], first, work_of(robot)[there:there + 6])


@long_kernel
def inverse_dynamics_states(robot, screws, Q, V, A, places, wrenches, work, q, v, a, Tau):
    """Write the torques of every state."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        gather(A, first, a)
        push(several, places, wrenches, first)
        if not newton.recursion(several, screws, q, v, a):
            return first
        scatter(work[end(several):], first, Tau)
    return -1


@long_kernel
def forward_dynamics_states(robot, screws, Q, V, Tau, places, wrenches, work, q, v, a, tau, A):
    """Write the accelerations of every state; none may be prescribed."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        gather(Tau, first, tau)
        push(several, places, wrenches, first)
        if not articulated.recursion(several, screws, q, v, a, tau):
            return first
        scatter(a, first, A)
    return -1


@long_kernel
def hybrid_dynamics_states(robot, screws, Q, V, A, Tau, places, wrenches, work, q, v, a, tau,
                           all_A, all_Tau):
    """Write all accelerations and torques of every state; entries not given are not read."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        gather(A, first, a)
        gather(Tau, first, tau)
        push(several, places, wrenches, first)
        if not articulated.recursion(several, screws, q, v, a, tau):
            return first
        scatter(a, first, all_A)
        scatter(tau, first, all_Tau)
    return -1


@long_kernel
def dense_hybrid_dynamics_states(M, b, A, Tau, prescribed, L, all_A, all_Tau):
    """Do `solve_dense` for every state, one after the other."""
    for k in range(len(b)):
        if solve_dense(M[k], b[k], A[k], Tau[k], prescribed, all_A[k], all_Tau[k], L):
            return k
    return -1


@long_kernel
def all_terms_states(robot, screws, Q, V, work, q, v, terms, Terms):
    """Write M, C, g, C v, J_CoM and the CoM of every state."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        if not composite_recursion(several, screws, q, v, terms):
            return first
        scatter(terms, first, Terms)
    return -1


@long_kernel
def inverse_derivatives_states(robot, screws, Q, V, A, places, wrenches, work, q, v, a,
                               derivatives, Derivatives):
    """Write the derivatives of the torques of every state."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        gather(A, first, a)
        push(several, places, wrenches, first)
        if not differentiate_inverse_dynamics(several, screws, q, v, a, derivatives):
            return first
        scatter(derivatives, first, Derivatives)
    return -1


@long_kernel
def forward_derivatives_states(robot, screws, Q, V, Tau, places, wrenches, work, q, v, a, tau,
                               derivatives, L, path, solved, Solved):
    """Write the derivatives of the accelerations of every state."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        gather(Tau, first, tau)
        push(several, places, wrenches, first)
        if not (articulated.recursion(several, screws, q, v, a, tau)
                and differentiate_inverse_dynamics(several, screws, q, v, a, derivatives)
                and solve_for_unknowns(several, derivatives, L, L, path, solved, solved)):
            return first
        scatter(solved, first, Solved)
    return -1


@long_kernel
def torque_regressor_states(robot, screws, Q, V, A, links, work, q, v, a, y, Y):
    """Write the regressor of every state."""
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        gather(V, first, v)
        gather(A, first, a)
        if not write_regressor(several, screws, q, v, a, links, y):
            return first
        scatter(y, first, Y)
    return -1
