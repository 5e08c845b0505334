# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The centroidal momentum matrix by composite bodies, and the centre of mass.

World axes and origin, symbols as in `composite_bodies`. Unit velocity of joint j gives the
composite body the momentum I S_j = (l, p) about the origin, and (l - c x p, p) about the robot's
centre of mass c: the columns of the matrix. Their rates follow from

    (I S)' = I' S + I S',    I' from V^ P + (V^ P)^T,    S' = ad_V S,    m c' = p of the robot.

Kim (23), (24), (28), (30), summed over all bodies; Garofalo et al. (7). The centre of mass and its
Jacobian, p over the mass, need the first moments of the bodies only.

"""

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import finite, reciprocal, set_entry
from rbd_ros.kernels.tree.coordinates import clear_matrix, coordinate, put_column, put_element
from rbd_ros.kernels.tree.layout import (
    BLOCK, block_end, columns_of, constant_inertia, count, end, fits, GROUND, INERTIA, load, load3,
    load33, load6, load_inertia, R_, r_, slot, store, store3, store6)
from rbd_ros.kernels.tree.traversal import (
    accumulate_to_root, compose_inertias, forward_pass, G_, K_, p_, S_, SDOT_, WORLD_COLUMNS)
from rbd_ros.kernels.tree.vectors import (
    add, add6, add_rotated, cross, inertia_rate, inertia_times, scale, sub)

# Columns of `robot`: columns of the matrix and of its rate.
M_, MDOT_, MOMENTUM_COLUMNS = columns_of(WORLD_COLUMNS, 6, 6)
# First moment and mass in the inertia.
h_, MASS = G_ + 6, G_ + 9


@helper
def store_momentum(robot, b, v, com, com_rate):
    """Write the column of a joint, and its rate unless v is None."""
    S, G = load6(robot, b, S_), load_inertia(robot, b, G_)
    spin, push = inertia_times(G, S)
    store6(robot, b, M_, (sub(spin, cross(com, push)), push))
    if v is not None:
        G_rate = inertia_rate(load33(robot, b, K_), load3(robot, b, p_))
        spin_rate, push_rate = add6(inertia_times(G_rate, S),
                                    inertia_times(G, load6(robot, b, SDOT_)))
        shift = add(cross(com, push_rate), cross(com_rate, push))
        store6(robot, b, MDOT_, (sub(spin_rate, shift), push_rate))


@helper
def write_momentum(robot, traits, q, v, rows):
    """Write the momentum matrix to six rows, and its rate to six more unless v is None."""
    if not fits(robot, q, v):
        return False
    forward_pass(robot, traits, q, v, None, None)
    compose_inertias(robot, v)
    # The composite body of the ground is the whole robot.
    _, h, mass = load_inertia(robot, GROUND, G_)
    per_mass = reciprocal(mass)
    com, com_rate = scale(per_mass, h), (0.0, 0.0, 0.0)
    if v is not None:
        com_rate = scale(per_mass, load3(robot, GROUND, p_))
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            store_momentum(robot, b, v, com, com_rate)
    total = 0.0
    clear_matrix(traits, rows)
    for i in range(1, count(robot)):
        b, j = slot(i), coordinate(robot, traits, i)
        spin, push = load6(robot, b, M_)
        put_column(traits, rows, 0, j, (spin, push))
        total += spin[0] + push[0]
        if v is not None:
            spin, push = load6(robot, b, MDOT_)
            put_column(traits, rows, 6, j, (spin, push))
            total += spin[0] + push[0]
    return finite(total)


@kernel
def centroidal_momentum(robot, traits, q, rows):
    """Do `write_momentum` without the rate."""
    return write_momentum(robot, traits, q, None, rows)


@kernel
def centroidal_momentum_rate(robot, traits, q, v, rows):
    """Do `write_momentum` with the rate."""
    return write_momentum(robot, traits, q, v, rows)


@kernel
def center_of_mass(robot, traits, q, J, com):
    """Write the centre of mass and its Jacobian, shape (3, nv)."""
    if not fits(robot, q, None):
        return False
    origin = forward_pass(robot, traits, q, None, None, None)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            _, h, m = constant_inertia(robot, b, INERTIA)
            store3(robot, b, h_, add_rotated(scale(m, load3(robot, b, r_)),
                                             load33(robot, b, R_), h))
            store(robot, b, MASS, m)
    accumulate_to_root(robot, h_, K_)
    mass = load(robot, GROUND, MASS)
    per_mass = reciprocal(mass)
    clear_matrix(traits, J)
    for i in range(1, count(robot)):
        b, j = slot(i), coordinate(robot, traits, i)
        z, s = load6(robot, b, S_)
        push = add(scale(load(robot, b, MASS), s), cross(z, load3(robot, b, h_)))
        for row in range(3):
            put_element(traits, J, row, j, per_mass * push[row])
    moment = load3(robot, GROUND, h_)
    for row in range(3):
        set_entry(com, row, per_mass * moment[row] - origin[row])
    return finite(moment[0] + moment[1] + moment[2])
