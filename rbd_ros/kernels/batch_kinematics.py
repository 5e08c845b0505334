# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses, Jacobians and momentum of many states, as `rbd_ros.kernels.batch` has their dynamics."""

from rbd_ros.kernels.batch import DONE, fit, REFUSED, take
from rbd_ros.kernels.bodies import GROUND, load
from rbd_ros.kernels.centroidal import MASS, write_center_of_mass, write_momentum
from rbd_ros.kernels.jit.compiled import states_kernel
from rbd_ros.kernels.lanes.lanes import element, reciprocal, scatter, set_element, WIDTH
from rbd_ros.kernels.link_jacobians import write_jacobian, write_jacobian_rates
from rbd_ros.kernels.link_poses import write_link_poses


@states_kernel
def link_poses_states(robot, screws, Q, work, q, links, t, T):
    """Write the poses of all links of every state."""
    if not fit((Q,), (q,)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q,), first, (q,))
        if not write_link_poses(several, screws, q, links, t):
            return first
        scatter(t, first, T)
    return DONE


@states_kernel
def jacobian_states(robot, screws, Q, link_row, work, q, j, t, J):
    """Write the Jacobian of a link in every state."""
    if not fit((Q,), (q,)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q,), first, (q,))
        if not write_jacobian(several, screws, q, link_row, j, t):
            return first
        scatter(j, first, J)
    return DONE


@states_kernel
def jacobian_rate_states(robot, screws, Q, V, link_row, aligned, work, q, v, rows, J_dot):
    """Write the rate of the Jacobian of a link in every state; ``rows`` has J before it."""
    if not fit((Q, V), (q, v)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q, V), first, (q, v))
        if not write_jacobian_rates(several, screws, q, v, None, link_row, aligned, rows)[1]:
            return first
        scatter(rows[6:], first, J_dot)
    return DONE


@states_kernel
def center_of_mass_states(robot, screws, Q, work, q, j, com, Com):
    """Write the centre of mass of every state."""
    if not fit((Q,), (q,)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q,), first, (q,))
        if not write_center_of_mass(several, screws, q, j, com):
            return first
        scatter(com, first, Com)
    return DONE


@states_kernel
def com_jacobian_states(robot, screws, Q, work, q, j, com, J):
    """Write the Jacobian of the centre of mass in every state."""
    if not fit((Q,), (q,)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q,), first, (q,))
        if not write_center_of_mass(several, screws, q, j, com):
            return first
        scatter(j, first, J)
    return DONE


@states_kernel
def com_jacobian_rate_states(robot, screws, Q, V, work, q, v, rows, J_dot):
    """Write the rate of the Jacobian of the centre of mass in every state."""
    if not fit((Q, V), (q, v)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q, V), first, (q, v))
        if not write_momentum(several, screws, q, v, rows):
            return first
        per_mass = reciprocal(load(several, GROUND, MASS))
        for row in range(9, 12):
            for j in range(rows.shape[1]):
                set_element(rows, row, j, per_mass * element(rows, row, j))
        scatter(rows[9:], first, J_dot)
    return DONE


@states_kernel
def momentum_states(robot, screws, Q, work, q, rows, A):
    """Write the centroidal momentum matrix of every state."""
    if not fit((Q,), (q,)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q,), first, (q,))
        if not write_momentum(several, screws, q, None, rows):
            return first
        scatter(rows, first, A)
    return DONE


@states_kernel
def momentum_rate_states(robot, screws, Q, V, work, q, v, rows, A_dot):
    """Write the rate of that matrix in every state; ``rows`` has the matrix before it."""
    if not fit((Q, V), (q, v)):
        return REFUSED
    several = robot, work
    for first in range(0, len(Q), WIDTH):
        take((Q, V), first, (q, v))
        if not write_momentum(several, screws, q, v, rows):
            return first
        scatter(rows[6:], first, A_dot)
    return DONE
