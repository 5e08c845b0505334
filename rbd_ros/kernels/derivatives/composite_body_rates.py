# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time derivatives of the Coriolis matrix and of the gravity torques, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. The rates of the terms of its sums follow
from the twist V and the acceleration A = dV/dt of a body, without gravity:

    d(P)/dt = V^ P + (V^ P)^T,  that is  dSigma/dt = K + K^T,  dh/dt = p,
    d(V^ P)/dt = V^ dP/dt + A^ P,  that is  dK/dt and dp/dt,
    dS/dt = ad_V S,  d2S/dt2 = ad_A S + ad_V dS/dt,

and the product rule. C is the Christoffel form, and dM/dt = C + C^T. Garofalo et al. (25).

"""

import math

from rbd_ros.kernels.jit.compiled import kernel
from rbd_ros.kernels.tree.coordinates import clear_matrix, coordinate, coordinate_at, put_element
from rbd_ros.kernels.tree.layout import (
    add_columns, BLOCK, columns_of, constant3, count, end, fits, GRAVITY, GROUND, LANES, load3,
    load33, load6, load_inertia, parent, slot, store3, store33, store6, velocities)
from rbd_ros.kernels.tree.traversal import (
    A_, composite_forces, forward_pass, G_, K_, p_, S_, SDOT_, store_moving_inertia, V_,
    WORLD_COLUMNS)
from rbd_ros.kernels.tree.vectors import (
    ad, add, add6, dot, dot6, inertia_rate, inertia_times, velocity_inertia, velocity_times,
    velocity_transposed_times)

# Columns of `robot`; KDOT_ and PDOT_ first of the body, then of the composite body.
KDOT_, PDOT_, SDDOT_, RATE_COLUMNS = columns_of(WORLD_COLUMNS, 9, 3, 6)
NO_ACCELERATION = (3 * (0.0,), 3 * (0.0,))


@kernel
def composite_rates(robot, traits, q, v, a, terms):
    """Write C, dC/dt (nv rows each) and dg/dt (one row) to `terms`, shape (2 nv + 1, nv)."""
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    nv = velocities(robot)
    D, g = nv, 2 * nv
    clear_matrix(traits, terms)
    forward_pass(robot, traits, q, v, a, NO_ACCELERATION)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            S, V, A = load6(robot, b, S_), load6(robot, b, V_), load6(robot, b, A_)
            S_rate = ad(V, S)
            store6(robot, b, SDOT_, S_rate)
            store6(robot, b, SDDOT_, add6(ad(A, S), ad(V, S_rate)))
            G = store_moving_inertia(robot, b, V)
            K, p = load33(robot, b, K_), load3(robot, b, p_)
            K_1, p_1 = velocity_inertia(V, inertia_rate(K, p))
            K_2, p_2 = velocity_inertia(A, G)
            store33(robot, b, KDOT_, (
                add(K_1[0], K_2[0]), add(K_1[1], K_2[1]), add(K_1[2], K_2[2])))
            store3(robot, b, PDOT_, add(p_1, p_2))

    # Leaves to root: composite bodies, and the entries of each with its ancestors.      [G (25)]
    gravity, total = constant3(robot, GROUND, GRAVITY), 0.0
    for body in range(count(robot) - 1, 0, -1):
        b, j = slot(body), coordinate(robot, traits, body)
        S, S_rate, S_second = load6(robot, b, S_), load6(robot, b, SDOT_), load6(robot, b, SDDOT_)
        G, K, p = load_inertia(robot, b, G_), load33(robot, b, K_), load3(robot, b, p_)
        K_rate, p_rate = load33(robot, b, KDOT_), load3(robot, b, PDOT_)
        G_rate = inertia_rate(K, p)
        F1, F2, F3 = composite_forces(G, K, p, S, S_rate)
        F1_rate = add6(add6(inertia_times(G_rate, S_rate), inertia_times(G, S_second)),
                       add6(velocity_times(K_rate, p_rate, S), velocity_times(K, p, S_rate)))
        F2_rate = add6(inertia_times(G_rate, S), inertia_times(G, S_rate))
        F3_rate = add(velocity_transposed_times(K_rate, p_rate, S),
                      velocity_transposed_times(K, p, S_rate))
        own, own_rate = dot6(S, F1), dot6(S_rate, F1) + dot6(S, F1_rate)
        weight_rate = -dot(gravity, F2_rate[1])
        put_element(traits, terms, j, j, own)
        put_element(traits, terms, D + j, j, own_rate)
        put_element(traits, terms, g, j, weight_rate)
        total += own + own_rate + weight_rate
        add_columns(robot, parent(robot, b), b, G_, SDDOT_)
        b = parent(robot, b)
        while b > 0:
            i = coordinate_at(robot, b)
            S_i, S_i_rate = load6(robot, b, S_), load6(robot, b, SDOT_)
            put_element(traits, terms, i, j, dot6(S_i, F1))
            put_element(traits, terms, j, i, dot6(S_i_rate, F2) + dot(S_i[0], F3))
            put_element(traits, terms, D + i, j, dot6(S_i_rate, F1) + dot6(S_i, F1_rate))
            put_element(traits, terms, D + j, i, (
                dot6(load6(robot, b, SDDOT_), F2) + dot6(S_i_rate, F2_rate)
                + dot(S_i_rate[0], F3) + dot(S_i[0], F3_rate)))
            b = parent(robot, b)
    return math.isfinite(total)
