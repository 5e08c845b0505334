# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The momentum of the whole robot about its centre of mass, as a matrix times v, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. Joint j moves what it carries rigidly,
which has the momentum I S_j = (l, p) about the origin and (l - c x p, p) about the centre of mass
c: these are the columns of the matrix. Their rates follow from

    (I S)' = I' S + I S',    I' from V^ P + (V^ P)^T,    S' = ad_V S,    m c' = p of the robot.

Kim (23), (24), (28), (30), summed over all bodies; Garofalo et al. (7).

"""

import math

from rbd_ros.kernels.bodies import (add_columns, BLOCK, count, end, fits, GROUND, ground_origin,
                                    INERTIA, LANES, load3, load33, load6, load_inertia, parent,
                                    place, place_ground, place_in_parents, place_in_world, R_, r_,
                                    SCRATCH, store3, store33, store6, store_inertia, world_column,
                                    world_joint_motion)
from rbd_ros.kernels.compiled import kernel
from rbd_ros.kernels.vectors import (ad, add, add6, cross, inertia_from_child, inertia_rate,
                                     inertia_times, scale, sub, velocity_inertia)

# Columns of `robot`. G_ ... p_ are first the body, then the composite body: what is added to the
# parent. A_ and ADOT_ are the columns of the matrix and of its rate.
S_, SDOT_, V_, G_, K_, p_, A_, ADOT_ = (SCRATCH + k for k in (12, 18, 24, 30, 40, 49, 52, 58))


@kernel
def centroidal_momentum(robot, screws, q, v, rows):
    """
    Write the centroidal momentum matrix to six rows, and its rate to six more unless v is None.

    ``rows`` has the shape (12, nv). Returns whether the results are finite; nothing is written,
    and False returned, if q or v has a wrong length.

    """
    if not fits(robot, q, v):
        return False
    nv = count(robot) - 1
    zero = (0.0, 0.0, 0.0)
    place_in_parents(robot, screws, q)
    place_ground(robot, ground_origin(robot, screws))
    store6(robot, GROUND, V_, (zero, zero))

    # Root to leaves: pose, column of the Jacobian, twist.                        [K (34)-(36)]
    for i in range(1, nv + 1):
        b = place(i)
        up = parent(robot, b)
        R, r = place_in_world(robot, b, up)
        S = world_column(robot, screws, b, R, r)
        store6(robot, b, S_, S)
        if v is not None:
            Sv = world_joint_motion(robot, screws, i, R, r, S, v)
            store6(robot, b, V_, add6(load6(robot, up, V_), Sv))

    # Each body alone, in the world's axes.
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            G = inertia_from_child(load33(robot, b, R_), load3(robot, b, r_),
                                   load_inertia(robot, b, INERTIA))
            store_inertia(robot, b, G_, G)
            if v is not None:
                V = load6(robot, b, V_)
                K, p = velocity_inertia(V, G)
                store6(robot, b, SDOT_, ad(V, load6(robot, b, S_)))
                store33(robot, b, K_, K)
                store3(robot, b, p_, p)

    # Leaves to root: composite bodies.
    for j in range(nv, 0, -1):
        b = place(j)
        add_columns(robot, parent(robot, b), b, G_, K_ if v is None else A_)

    # The whole robot is the composite body of the ground.
    _, h, mass = load_inertia(robot, GROUND, G_)
    per_mass = 1.0 / mass if mass > 0.0 else 0.0
    com, com_rate = scale(per_mass, h), zero
    if v is not None:
        com_rate = scale(per_mass, load3(robot, GROUND, p_))

    # Each composite body with the column of its joint, about the centre of mass.
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            S, G = load6(robot, b, S_), load_inertia(robot, b, G_)
            spin, push = inertia_times(G, S)
            store6(robot, b, A_, (sub(spin, cross(com, push)), push))
            if v is not None:
                G_rate = inertia_rate(load33(robot, b, K_), load3(robot, b, p_))
                spin_rate, push_rate = add6(inertia_times(G_rate, S),
                                            inertia_times(G, load6(robot, b, SDOT_)))
                shift = add(cross(com, push_rate), cross(com_rate, push))
                store6(robot, b, ADOT_, (sub(spin_rate, shift), push_rate))
    total = 0.0
    for j in range(nv):
        b = place(j + 1)
        spin, push = load6(robot, b, A_)
        for row in range(3):
            rows[row, j], rows[3 + row, j] = spin[row], push[row]
        total += spin[0] + push[0]
        if v is not None:
            spin, push = load6(robot, b, ADOT_)
            for row in range(3):
                rows[6 + row, j], rows[9 + row, j] = spin[row], push[row]
            total += spin[0] + push[0]
    return math.isfinite(total)
