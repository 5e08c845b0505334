# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The algorithms of dynamics for many states, as the threads of `rbd_ros.batch` run them.

WIDTH states are computed at a time, in lanes; the last state fills up the last group. Each kernel
returns DONE, REJECTED if arrays have wrong lengths, or the number of the first state of a group
that cannot be computed: no result of this group and later ones is written.

``places`` has the slots of the bodies on which wrenches act, and ``wrenches``, for each of them,
one row per state: moment and force in the axes of the body. ``work`` is the robot's table of
lanes; lower-case arguments are lanes for one group of states.

"""

import numpy as np
from rbd_ros.kernels import newton_euler
from rbd_ros.kernels.articulated_bodies import articulated_recursion
from rbd_ros.kernels.composite_bodies import composite_recursion
from rbd_ros.kernels.coupled_dynamics import coupled_recursion, derivatives_recursion
from rbd_ros.kernels.derivatives.newton_euler_derivatives import (
    forward_dynamics_and_derivatives, inverse_dynamics_derivatives)
from rbd_ros.kernels.jit.compiled import helper, states_kernel
from rbd_ros.kernels.lanes.lanes import gather, scatter, WIDTH, work_of
from rbd_ros.kernels.regressors import regressor_columns, transposed_product
from rbd_ros.kernels.tree.layout import torques, work_offset, WRENCH

# Returned instead of the number of a state.
DONE, REJECTED = -1, -2


@helper
def fit(states, lanes):
    """Return whether all arrays have the same number of states, with the lengths of the lanes."""
    for k in range(len(states)):
        if len(states[k]) != len(states[0]) or states[k].shape[1] != len(lanes[k]):
            return False
    return True


@helper
def load_states(robot, states, first, lanes, places, wrenches):
    """Copy a group of states, and wrenches unless ``places`` is None, to lanes."""
    for k in range(len(states)):
        gather(states[k], first, lanes[k])
    if places is not None:
        for k in range(len(places)):
            offset = np.int64(work_offset(robot, places[k], WRENCH))
            gather(wrenches[k], first, work_of(robot)[offset:offset + 6])


@helper
def run_pushed(algorithm, robot, traits, states, lanes, places, wrenches, arguments, found, Found):
    """Run an algorithm with wrenches for each group of states; copy the lanes it writes."""
    if not fit(states, lanes):
        return REJECTED
    for first in range(0, len(states[0]), WIDTH):
        load_states(robot, states, first, lanes, places, wrenches)
        if not algorithm(robot, traits, *arguments):
            return first
        for k in range(len(Found)):
            scatter(found[k], first, Found[k])
    return DONE


@helper
def run(algorithm, robot, traits, states, lanes, arguments, x, X):
    """Do `run_pushed` without wrenches, for one result."""
    return run_pushed(algorithm, robot, traits, states, lanes, None, None, arguments, (x,), (X,))


@states_kernel
def inverse_dynamics_states(robot, traits, Q, V, A, places, wrenches, work, q, v, a, Tau):
    """Write the torques of every state."""
    first, last = torques((robot, work))
    return run_pushed(newton_euler.recursion, (robot, work), traits, (Q, V, A), (q, v, a), places,
                      wrenches, (q, v, a), (work[first:last],), (Tau,))


@states_kernel
def gravity_torques_states(robot, traits, Q, work, q, G):
    """Write the gravity torques of every state."""
    first, last = torques((robot, work))
    return run(newton_euler.recursion, (robot, work), traits, (Q,), (q,), (q, None, None),
               work[first:last], G)


@states_kernel
def forward_dynamics_states(robot, traits, Q, V, Tau, places, wrenches, work, q, v, tau, a, A):
    """Write the accelerations of every state; none may be prescribed."""
    return run_pushed(articulated_recursion, (robot, work), traits, (Q, V, Tau), (q, v, tau),
                      places, wrenches, (q, v, a, tau), (a,), (A,))


@states_kernel
def hybrid_dynamics_states(robot, traits, Q, V, A, Tau, places, wrenches, work, q, v, a, tau,
                           all_A, all_Tau):
    """Write all accelerations and torques of every state; entries not given are not read."""
    return run_pushed(
        articulated_recursion, (robot, work), traits, (Q, V, A, Tau), (q, v, a, tau), places,
        wrenches, (q, v, a, tau), (a, tau), (all_A, all_Tau))


@states_kernel
def coupled_forward_states(robot, traits, Q, V, Tau, places, wrenches, work, q, v, tau, a,
                           table, M, b, L, A):
    """Do `forward_dynamics_states` for a robot whose joints share coordinates."""
    return run_pushed(
        coupled_recursion, (robot, work), traits, (Q, V, Tau), (q, v, tau), places, wrenches,
        (((table, table), M, b, L, L), q, v, a, tau), (a,), (A,))


@states_kernel
def coupled_hybrid_states(robot, traits, Q, V, A, Tau, places, wrenches, work, q, v, a, tau,
                          table, M, b, L, all_A, all_Tau):
    """Do `hybrid_dynamics_states` for a robot whose joints share coordinates."""
    return run_pushed(
        coupled_recursion, (robot, work), traits, (Q, V, A, Tau), (q, v, a, tau), places, wrenches,
        (((table, table), M, b, L, L), q, v, a, tau), (a, tau), (all_A, all_Tau))


@states_kernel
def coupled_derivatives_states(robot, traits, Q, V, Tau, places, wrenches, work, q, v, tau, a,
                               table, M, b, L, rows, path, X, Solved):
    """Do `forward_derivatives_states` for a robot whose joints share coordinates."""
    return run_pushed(
        derivatives_recursion, (robot, work), traits, (Q, V, Tau), (q, v, tau), places, wrenches,
        (((table, table), M, b, L, L), q, v, a, tau, rows, path, X, X), (X,), (Solved,))


@states_kernel
def all_terms_states(robot, traits, Q, V, work, q, v, terms, Terms):
    """Write M, C, g, C v, J_CoM and the CoM of every state."""
    return run(composite_recursion, (robot, work), traits, (Q, V), (q, v), (q, v, terms),
               terms, Terms)


@states_kernel
def inverse_derivatives_states(robot, traits, Q, V, A, places, wrenches, work, q, v, a,
                               derivatives, Derivatives):
    """Write the derivatives of the torques of every state."""
    return run_pushed(inverse_dynamics_derivatives, (robot, work), traits, (Q, V, A), (q, v, a),
                      places, wrenches, (q, v, a, derivatives), (derivatives,), (Derivatives,))


@states_kernel
def forward_derivatives_states(robot, traits, Q, V, Tau, places, wrenches, work, q, v, tau, a,
                               derivatives, L, path, solved, Solved):
    """Write the derivatives of the accelerations of every state."""
    return run_pushed(forward_dynamics_and_derivatives, (robot, work), traits, (Q, V, Tau),
                      (q, v, tau), places, wrenches,
                      (q, v, a, tau, derivatives, L, L, path, solved, solved), (solved,),
                      (Solved,))


@states_kernel
def torque_regressor_states(robot, traits, Q, V, A, work, q, v, a, links, y, Y):
    """Write the torque regressor of every state."""
    return run(regressor_columns, (robot, work), traits, (Q, V, A), (q, v, a),
               (q, v, a, links, y), y, Y)


@states_kernel
def transposed_product_states(robot, traits, Q, V, A, X, work, q, v, a, x, links, y, Y):
    """Write the product of the transposed torque regressor and a vector of every state."""
    return run(transposed_product, (robot, work), traits, (Q, V, A, X), (q, v, a, x),
               (q, v, a, x, links, y), y, Y)
