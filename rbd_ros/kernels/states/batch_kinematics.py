# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses, Jacobians and momentum of many states; as `rbd_ros.kernels.states.batch_dynamics`."""

from rbd_ros.kernels.centroidal import center_of_mass, MASS, write_momentum
from rbd_ros.kernels.jit.compiled import helper, states_kernel
from rbd_ros.kernels.lanes.lanes import element, reciprocal, set_element
from rbd_ros.kernels.link_jacobians import write_jacobian, write_jacobian_rates
from rbd_ros.kernels.states.batch_dynamics import run
from rbd_ros.kernels.tree.layout import GROUND, load
from rbd_ros.kernels.tree.link_poses import link_poses


@states_kernel
def link_poses_states(robot, traits, Q, work, q, links, t, T):
    """Write the poses of all links of every state."""
    return run(link_poses, (robot, work), traits, (Q,), (q,), (q, links, t), t, T)


@states_kernel
def jacobian_states(robot, traits, Q, link_row, work, q, j, t, J):
    """Write the Jacobian of a link in every state."""
    return run(write_jacobian, (robot, work), traits, (Q,), (q,), (q, link_row, j, t), j, J)


@helper
def jacobian_rate(robot, traits, q, v, link_row, aligned, rows):
    """Write the Jacobian of a link and its rate in a group of states."""
    return write_jacobian_rates(robot, traits, q, v, None, link_row, aligned, rows)[1]


@states_kernel
def jacobian_rate_states(robot, traits, Q, V, link_row, aligned, work, q, v, rows, J_dot):
    """Write the rate of the Jacobian of a link in every state; ``rows`` begins with J."""
    return run(jacobian_rate, (robot, work), traits, (Q, V), (q, v),
               (q, v, link_row, aligned, rows), rows[6:], J_dot)


@states_kernel
def center_of_mass_states(robot, traits, Q, work, q, j, com, Com):
    """Write the centre of mass of every state."""
    return run(center_of_mass, (robot, work), traits, (Q,), (q,), (q, j, com), com, Com)


@states_kernel
def com_jacobian_states(robot, traits, Q, work, q, j, com, J):
    """Write the Jacobian of the centre of mass in every state."""
    return run(center_of_mass, (robot, work), traits, (Q,), (q,), (q, j, com), j, J)


@helper
def com_jacobian_rate(robot, traits, q, v, rows):
    """Write the rate of the Jacobian of the centre of mass to rows 9 ... 11."""
    fine = write_momentum(robot, traits, q, v, rows)
    per_mass = reciprocal(load(robot, GROUND, MASS))
    for row in range(9, 12):
        for j in range(rows.shape[1]):
            set_element(rows, row, j, per_mass * element(rows, row, j))
    return fine


@states_kernel
def com_jacobian_rate_states(robot, traits, Q, V, work, q, v, rows, J_dot):
    """Write the rate of the Jacobian of the centre of mass in every state."""
    return run(com_jacobian_rate, (robot, work), traits, (Q, V), (q, v), (q, v, rows), rows[9:],
               J_dot)


@states_kernel
def momentum_states(robot, traits, Q, work, q, rows, A):
    """Write the centroidal momentum matrix of every state."""
    return run(write_momentum, (robot, work), traits, (Q,), (q,), (q, None, rows),
               rows, A)


@states_kernel
def momentum_rate_states(robot, traits, Q, V, work, q, v, rows, A_dot):
    """Write the rate of that matrix in every state; ``rows`` begins with the matrix."""
    return run(write_momentum, (robot, work), traits, (Q, V), (q, v), (q, v, rows),
               rows[6:], A_dot)
