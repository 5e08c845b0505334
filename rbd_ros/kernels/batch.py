# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The recursions of dynamics for many states, as the threads of `rbd_ros.batch` run them.

States are computed side by side, in lanes, WIDTH of them at a time; fewer at the end have the last
one several times. Each function returns DONE, or REFUSED if arrays have wrong lengths, or, where
one of WIDTH states cannot be computed, the number of the first of them: nothing of these and of
those behind them is written.

``places`` has where the bodies are that wrenches act on, and ``wrenches`` for each of these bodies
one row for each state: a moment and a force in the axes of the body. Inverse dynamics leaves its
torques in ``work``, behind the bodies; for all other results there are further lanes.

"""

import numpy as np
from rbd_ros.kernels import articulated_bodies as articulated, newton_euler as newton
from rbd_ros.kernels.bodies import end, work_offset, WRENCH
from rbd_ros.kernels.composite_bodies import composite_recursion
from rbd_ros.kernels.coordinates import solve_dense
from rbd_ros.kernels.jit.compiled import helper, states_kernel
from rbd_ros.kernels.lanes.lanes import gather, scatter, WIDTH, work_of
from rbd_ros.kernels.newton_euler_derivatives import (differentiate_inverse_dynamics,
                                                      solve_for_unknowns)
from rbd_ros.kernels.regressors import write_regressor, write_transposed_product


# What kernels return where they do not return the number of a state.
DONE, REFUSED = -1, -2


@helper
def fit(states, lanes):
    """Return whether arrays have one state in each row, as many as the first has."""
    for k in range(len(states)):
        if len(states[k]) != len(states[0]) or states[k].shape[1] != len(lanes[k]):
            return False
    return True


@helper
def take(states, first, lanes):
    """Write states from the first on to lanes: of each array to the vector of the same place."""
    for k in range(len(states)):
        gather(states[k], first, lanes[k])


@helper
def take_pushed(robot, states, first, lanes, places, wrenches):
    """Do `take`, and let the wrenches of these states act on bodies."""
    take(states, first, lanes)
    for k in range(len(places)):
        there = np.int64(work_offset(robot, places[k], WRENCH))
        gather(wrenches[k], first, work_of(robot)[there:there + 6])


@states_kernel
def inverse_dynamics_states(robot, screws, Q, V, A, places, wrenches, work, q, v, a, Tau):
    """Write the torques of every state."""
    if not fit((Q, V, A), (q, v, a)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take_pushed(several, (Q, V, A), first, (q, v, a), places, wrenches)
        if not newton.recursion(several, screws, q, v, a):
            return first
        scatter(work[end(several):], first, Tau)
    return DONE


@states_kernel
def gravity_torques_states(robot, screws, Q, work, q, G):
    """Write the torques that hold every state still."""
    if not fit((Q,), (q,)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        gather(Q, first, q)
        if not newton.recursion(several, screws, q, None, None):
            return first
        scatter(work[end(several):], first, G)
    return DONE


@states_kernel
def forward_dynamics_states(robot, screws, Q, V, Tau, places, wrenches, work, q, v, a, tau, A):
    """Write the accelerations of every state; none may be prescribed."""
    if not fit((Q, V, Tau), (q, v, tau)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take_pushed(several, (Q, V, Tau), first, (q, v, tau), places, wrenches)
        if not articulated.recursion(several, screws, q, v, a, tau):
            return first
        scatter(a, first, A)
    return DONE


@states_kernel
def hybrid_dynamics_states(robot, screws, Q, V, A, Tau, places, wrenches, work, q, v, a, tau,
                           all_A, all_Tau):
    """Write all accelerations and torques of every state; entries not given are not read."""
    if not fit((Q, V, A, Tau), (q, v, a, tau)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take_pushed(several, (Q, V, A, Tau), first, (q, v, a, tau), places, wrenches)
        if not articulated.recursion(several, screws, q, v, a, tau):
            return first
        scatter(a, first, all_A)
        scatter(tau, first, all_Tau)
    return DONE


@states_kernel
def dense_hybrid_dynamics_states(M, b, A, Tau, prescribed, L, all_A, all_Tau):
    """Do `solve_dense` for every state, one after the other."""
    for k in range(len(b)):
        if solve_dense(M[k], b[k], A[k], Tau[k], prescribed, all_A[k], all_Tau[k], L):
            return k
    return DONE


@states_kernel
def all_terms_states(robot, screws, Q, V, work, q, v, terms, Terms):
    """Write M, C, g, C v, J_CoM and the CoM of every state."""
    if not fit((Q, V), (q, v)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q, V), first, (q, v))
        if not composite_recursion(several, screws, q, v, terms):
            return first
        scatter(terms, first, Terms)
    return DONE


@states_kernel
def inverse_derivatives_states(robot, screws, Q, V, A, places, wrenches, work, q, v, a,
                               derivatives, Derivatives):
    """Write the derivatives of the torques of every state."""
    if not fit((Q, V, A), (q, v, a)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take_pushed(several, (Q, V, A), first, (q, v, a), places, wrenches)
        if not differentiate_inverse_dynamics(several, screws, q, v, a, derivatives):
            return first
        scatter(derivatives, first, Derivatives)
    return DONE


@states_kernel
def forward_derivatives_states(robot, screws, Q, V, Tau, places, wrenches, work, q, v, a, tau,
                               derivatives, L, path, solved, Solved):
    """Write the derivatives of the accelerations of every state."""
    if not fit((Q, V, Tau), (q, v, tau)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take_pushed(several, (Q, V, Tau), first, (q, v, tau), places, wrenches)
        if not (articulated.recursion(several, screws, q, v, a, tau)
                and differentiate_inverse_dynamics(several, screws, q, v, a, derivatives)
                and solve_for_unknowns(several, derivatives, L, L, path, solved, solved)):
            return first
        scatter(solved, first, Solved)
    return DONE


@states_kernel
def torque_regressor_states(robot, screws, Q, V, A, work, q, v, a, links, y, Y):
    """Write the regressor of every state."""
    if not fit((Q, V, A), (q, v, a)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q, V, A), first, (q, v, a))
        if not write_regressor(several, screws, q, v, a, links, y):
            return first
        scatter(y, first, Y)
    return DONE


@states_kernel
def transposed_product_states(robot, screws, Q, V, A, X, work, q, v, a, x, links, y, Y):
    """Write the product of the transposed regressor and a vector of every state."""
    if not fit((Q, V, A, X), (q, v, a, x)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q, V, A, X), first, (q, v, a, x))
        if not write_transposed_product(several, screws, q, v, a, x, links, y):
            return first
        scatter(y, first, Y)
    return DONE
