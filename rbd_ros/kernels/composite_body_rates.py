# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Mass and Coriolis matrix, gravity torques, and their time derivatives, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. Everything that it sums has a rate that
follows from the twist V and the acceleration A = dV/dt of a body, gravity apart:

    d(P)/dt = V^ P + (V^ P)^T,  that is  dSigma/dt = K + K^T,  dh/dt = p,
    d(V^ P)/dt = V^ dP/dt + A^ P,  that is  dK/dt and dp/dt,
    dS/dt = ad_V S,  d2S/dt2 = ad_A S + ad_V dS/dt,

and the product rule does the rest. dM/dt = C + C^T. Garofalo et al. (25); C is the Christoffel
form.

"""

import math

from rbd_ros.kernels.bodies import (add_columns, ARMATURE, BLOCK, count, end, fits, GRAVITY,
                                    GROUND, ground_origin, INERTIA, LANES, load, load3, load33,
                                    load6, load_inertia, number, parent, place, place_ground,
                                    place_in_parents, place_in_world, R_, r_, SCRATCH, store3,
                                    store33, store6, store_inertia, world_column,
                                    world_joint_motion)
from rbd_ros.kernels.compiled import kernel
from rbd_ros.kernels.vectors import (ad, add, add6, dot, dot6, inertia_from_child, inertia_rate,
                                     inertia_times, velocity_inertia, velocity_times,
                                     velocity_transposed_times)

# Columns of `robot`. G_ ... PDOT_ are the composite body: what is added to the parent.
S_, SDOT_, SDDOT_, V_, A_, G_, K_, p_, KDOT_, PDOT_, RATE_COLUMNS = (
    SCRATCH + k for k in (12, 18, 24, 30, 36, 42, 52, 61, 64, 73, 76))


@kernel
def composite_rates(robot, screws, q, v, a, terms):
    """
    Write M, C, dC/dt, g and dg/dt to `terms`, and return whether they are finite.

    ``terms`` has the shape (3 nv + 2, nv): nv rows for M, for C and for dC/dt, then one each for g
    and dg/dt. Nothing is written, and False returned, if q, v or a has a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    nv = count(robot) - 1
    C, D, g = nv, 2 * nv, 3 * nv
    zero = (0.0, 0.0, 0.0)
    place_in_parents(robot, screws, q)
    place_ground(robot, ground_origin(robot, screws))
    store6(robot, GROUND, V_, (zero, zero))
    store6(robot, GROUND, A_, (zero, zero))

    # Root to leaves: pose, column of the Jacobian, twist and its rate.
    for i in range(1, nv + 1):
        b = place(i)
        up = parent(robot, b)
        R, r = place_in_world(robot, b, up)
        S = world_column(robot, screws, b, R, r)
        Sv = world_joint_motion(robot, screws, i, R, r, S, v)
        Sa = world_joint_motion(robot, screws, i, R, r, S, a)
        V = add6(load6(robot, up, V_), Sv)
        store6(robot, b, S_, S)
        store6(robot, b, V_, V)
        store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(V, Sv)))

    # Each body alone: the rates of its column, its inertia and the rates of that.
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            S, V, A = load6(robot, b, S_), load6(robot, b, V_), load6(robot, b, A_)
            S_rate = ad(V, S)
            store6(robot, b, SDOT_, S_rate)
            store6(robot, b, SDDOT_, add6(ad(A, S), ad(V, S_rate)))
            G = inertia_from_child(load33(robot, b, R_), load3(robot, b, r_),
                                   load_inertia(robot, b, INERTIA))
            K, p = velocity_inertia(V, G)
            by_turning, p_by_turning = velocity_inertia(V, inertia_rate(K, p))
            by_rate, p_by_rate = velocity_inertia(A, G)
            store_inertia(robot, b, G_, G)
            store33(robot, b, K_, K)
            store3(robot, b, p_, p)
            store33(robot, b, KDOT_, (
                add(by_turning[0], by_rate[0]), add(by_turning[1], by_rate[1]),
                add(by_turning[2], by_rate[2])))
            store3(robot, b, PDOT_, add(p_by_turning, p_by_rate))

    # Leaves to root: composite bodies, and with each the entries of the matrices.
    gravity, total = load3(robot, GROUND, GRAVITY), 0.0
    for j in range(nv, 0, -1):
        b = place(j)
        S, S_rate, S_second = load6(robot, b, S_), load6(robot, b, SDOT_), load6(robot, b, SDDOT_)
        G, K, p = load_inertia(robot, b, G_), load33(robot, b, K_), load3(robot, b, p_)
        K_rate, p_rate = load33(robot, b, KDOT_), load3(robot, b, PDOT_)
        G_rate = inertia_rate(K, p)
        F1 = add6(inertia_times(G, S_rate), velocity_times(K, p, S))
        F1_rate = add6(add6(inertia_times(G_rate, S_rate), inertia_times(G, S_second)),
                       add6(velocity_times(K_rate, p_rate, S), velocity_times(K, p, S_rate)))
        F2 = inertia_times(G, S)
        F2_rate = add6(inertia_times(G_rate, S), inertia_times(G, S_rate))
        F3 = velocity_transposed_times(K, p, S)
        F3_rate = add(velocity_transposed_times(K_rate, p_rate, S),
                      velocity_transposed_times(K, p, S_rate))
        terms[j - 1, j - 1] = dot6(S, F2) + load(robot, b, ARMATURE)
        terms[C + j - 1, j - 1] = dot6(S, F1)
        terms[D + j - 1, j - 1] = dot6(S_rate, F1) + dot6(S, F1_rate)
        terms[g, j - 1] = -dot(gravity, F2[1])
        terms[g + 1, j - 1] = -dot(gravity, F2_rate[1])
        total += terms[j - 1, j - 1] + terms[D + j - 1, j - 1] + terms[g + 1, j - 1]
        add_columns(robot, parent(robot, b), b, G_, RATE_COLUMNS)
        b = parent(robot, b)
        while b > 0:
            i = number(robot, b)
            S_i, S_i_rate = load6(robot, b, S_), load6(robot, b, SDOT_)
            terms[i - 1, j - 1] = terms[j - 1, i - 1] = dot6(S_i, F2)
            terms[C + i - 1, j - 1] = dot6(S_i, F1)
            terms[C + j - 1, i - 1] = dot6(S_i_rate, F2) + dot(S_i[0], F3)
            terms[D + i - 1, j - 1] = dot6(S_i_rate, F1) + dot6(S_i, F1_rate)
            terms[D + j - 1, i - 1] = (
                dot6(load6(robot, b, SDDOT_), F2) + dot6(S_i_rate, F2_rate)
                + dot(S_i_rate[0], F3) + dot(S_i[0], F3_rate))
            b = parent(robot, b)
    return math.isfinite(total)
