# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time derivatives of the Coriolis matrix and of the gravity torques, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. All terms of its sums have rates that
follow from the twist V and the acceleration A = dV/dt of a body, without gravity:

    d(P)/dt = V^ P + (V^ P)^T,  that is  dSigma/dt = K + K^T,  dh/dt = p,
    d(V^ P)/dt = V^ dP/dt + A^ P,  that is  dK/dt and dp/dt,
    dS/dt = ad_V S,  d2S/dt2 = ad_A S + ad_V dS/dt,

and the product rule does the rest. C, of which dM/dt = C + C^T is made, is the Christoffel form.
Garofalo et al. (25).

"""

import math

from rbd_ros.kernels.bodies import (add_columns, BLOCK, constant3, count, end, fits, GRAVITY,
                                    GROUND, LANES, load3, load33, load6, load_inertia, number,
                                    parent, place, SCRATCH, store3, store33, store6)
from rbd_ros.kernels.jit.compiled import kernel
from rbd_ros.kernels.vectors import (ad, add, add6, dot, dot6, inertia_rate, inertia_times,
                                     velocity_inertia, velocity_times, velocity_transposed_times)
from rbd_ros.kernels.world_frame import (A_, composite_forces, G_, K_, move_bodies, p_, S_,
                                         SDOT_, store_moving_inertia, V_)

# Columns of `robot`; KDOT_ and PDOT_ are of the composite bodies, too.
KDOT_, PDOT_, SDDOT_, RATE_COLUMNS = (SCRATCH + k for k in (58, 67, 70, 76))
NO_ACCELERATION = (3 * (0.0,), 3 * (0.0,))


@kernel
def composite_rates(robot, screws, q, v, a, terms):
    """
    Write C, dC/dt and dg/dt to `terms`, and return whether they are finite.

    ``terms`` has the shape (2 nv + 1, nv): nv rows for C and for dC/dt, then one for dg/dt.
    Nothing is written, and False returned, if q, v or a has a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    nv = count(robot) - 1
    D, g = nv, 2 * nv
    move_bodies(robot, screws, q, v, a, NO_ACCELERATION)

    # Each body alone: the rates of its column, its inertia and the rates of that.
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            S, V, A = load6(robot, b, S_), load6(robot, b, V_), load6(robot, b, A_)
            S_rate = ad(V, S)
            store6(robot, b, SDOT_, S_rate)
            store6(robot, b, SDDOT_, add6(ad(A, S), ad(V, S_rate)))
            G = store_moving_inertia(robot, b, V)
            K, p = load33(robot, b, K_), load3(robot, b, p_)
            by_turning, p_by_turning = velocity_inertia(V, inertia_rate(K, p))
            by_rate, p_by_rate = velocity_inertia(A, G)
            store33(robot, b, KDOT_, (
                add(by_turning[0], by_rate[0]), add(by_turning[1], by_rate[1]),
                add(by_turning[2], by_rate[2])))
            store3(robot, b, PDOT_, add(p_by_turning, p_by_rate))

    # Leaves to root: composite bodies, and with each the entries of the matrices.
    gravity, total = constant3(robot, GROUND, GRAVITY), 0.0
    for j in range(nv, 0, -1):
        b = place(j)
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
        terms[j - 1, j - 1] = dot6(S, F1)
        terms[D + j - 1, j - 1] = dot6(S_rate, F1) + dot6(S, F1_rate)
        terms[g, j - 1] = -dot(gravity, F2_rate[1])
        total += terms[j - 1, j - 1] + terms[D + j - 1, j - 1] + terms[g, j - 1]
        add_columns(robot, parent(robot, b), b, G_, SDDOT_)
        b = parent(robot, b)
        while b > 0:
            i = number(robot, b)
            S_i, S_i_rate = load6(robot, b, S_), load6(robot, b, SDOT_)
            terms[i - 1, j - 1] = dot6(S_i, F1)
            terms[j - 1, i - 1] = dot6(S_i_rate, F2) + dot(S_i[0], F3)
            terms[D + i - 1, j - 1] = dot6(S_i_rate, F1) + dot6(S_i, F1_rate)
            terms[D + j - 1, i - 1] = (
                dot6(load6(robot, b, SDDOT_), F2) + dot6(S_i_rate, F2_rate)
                + dot(S_i_rate[0], F3) + dot(S_i[0], F3_rate))
            b = parent(robot, b)
    return math.isfinite(total)
