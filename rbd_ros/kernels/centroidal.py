# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The momentum of the whole robot about its centre of mass, as a matrix times v, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. Joint j moves what it carries rigidly,
which has the momentum I S_j = (l, p) about the origin and (l - c x p, p) about the centre of mass
c: these are the columns of the matrix. Their rates follow from

    (I S)' = I' S + I S',    I' from V^ P + (V^ P)^T,    S' = ad_V S,    m c' = p of the robot.

Kim (23), (24), (28), (30), summed over all bodies; Garofalo et al. (7). For the centre of mass and
its Jacobian alone, p over the mass, the first moments of the bodies will do.

"""

from rbd_ros.kernels.bodies import (BLOCK, block_end, constant_inertia, count, end, fits, GROUND,
                                    INERTIA, load, load3, load33, load6, load_inertia, place, R_,
                                    r_, SCRATCH, store, store3, store6)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import finite, reciprocal, set_element, set_entry
from rbd_ros.kernels.vectors import (add, add6, add_rotated, cross, inertia_rate, inertia_times,
                                     scale, sub, write_column)
from rbd_ros.kernels.world_frame import (add_to_parents, compose_bodies, G_, K_, move_bodies, p_,
                                         S_, SDOT_)

# Columns of `robot`: those of the matrix and of its rate.
M_, MDOT_, MOMENTUM_COLUMNS = (SCRATCH + k for k in (58, 64, 70))
# Of the inertia.
h_, MASS = G_ + 6, G_ + 9


@helper
def write_momentum(robot, screws, q, v, rows):
    """
    Write the centroidal momentum matrix to six rows, and its rate to six more unless v is None.

    ``rows`` has the shape (12, nv), or at least (6, nv) if v is None. Returns whether the results
    are finite; nothing is written, and False returned, if q or v has a wrong length.

    """
    if not fits(robot, q, v):
        return False
    nv = count(robot) - 1
    move_bodies(robot, screws, q, v, None, None)

    compose_bodies(robot, v)

    # The whole robot is the composite body of the ground.
    _, h, mass = load_inertia(robot, GROUND, G_)
    per_mass = reciprocal(mass)
    com, com_rate = scale(per_mass, h), (0.0, 0.0, 0.0)
    if v is not None:
        com_rate = scale(per_mass, load3(robot, GROUND, p_))

    # Each composite body with the column of its joint, about the centre of mass.
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            S, G = load6(robot, b, S_), load_inertia(robot, b, G_)
            spin, push = inertia_times(G, S)
            store6(robot, b, M_, (sub(spin, cross(com, push)), push))
            if v is not None:
                G_rate = inertia_rate(load33(robot, b, K_), load3(robot, b, p_))
                spin_rate, push_rate = add6(inertia_times(G_rate, S),
                                            inertia_times(G, load6(robot, b, SDOT_)))
                shift = add(cross(com, push_rate), cross(com_rate, push))
                store6(robot, b, MDOT_, (sub(spin_rate, shift), push_rate))
    total = 0.0
    for j in range(nv):
        b = place(j + 1)
        spin, push = load6(robot, b, M_)
        write_column(rows, 0, j, (spin, push))
        total += spin[0] + push[0]
        if v is not None:
            spin, push = load6(robot, b, MDOT_)
            write_column(rows, 6, j, (spin, push))
            total += spin[0] + push[0]
    return finite(total)


@kernel
def centroidal_momentum(robot, screws, q, rows):
    """Do `write_momentum` without the rate, and return whether all is finite."""
    return write_momentum(robot, screws, q, None, rows)


@kernel
def centroidal_momentum_rate(robot, screws, q, v, rows):
    """Do `write_momentum`, and return whether all is finite."""
    return write_momentum(robot, screws, q, v, rows)


@helper
def write_center_of_mass(robot, screws, q, J, com):
    """
    Write the centre of mass and its Jacobian, shape (3, nv), and return whether it is finite.

    Nothing is written, and False returned, if q has a wrong length.

    """
    if not fits(robot, q, None):
        return False
    origin = move_bodies(robot, screws, q, None, None, None)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            _, h, m = constant_inertia(robot, b, INERTIA)
            store3(robot, b, h_, add_rotated(scale(m, load3(robot, b, r_)),
                                             load33(robot, b, R_), h))
            store(robot, b, MASS, m)
    add_to_parents(robot, h_, K_)
    mass = load(robot, GROUND, MASS)
    per_mass = reciprocal(mass)
    for j in range(count(robot) - 1):
        b = place(j + 1)
        z, s = load6(robot, b, S_)
        push = add(scale(load(robot, b, MASS), s), cross(z, load3(robot, b, h_)))
        for row in range(3):
            set_element(J, row, j, per_mass * push[row])
    moment = load3(robot, GROUND, h_)
    for row in range(3):
        set_entry(com, row, per_mass * moment[row] - origin[row])
    return finite(moment[0] + moment[1] + moment[2])


@kernel
def center_of_mass(robot, screws, q, J, com):
    """Do `write_center_of_mass`, and return whether it is finite."""
    return write_center_of_mass(robot, screws, q, J, com)
