# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Mass and Coriolis matrix, gravity torques and centre of mass by composite bodies.

All quantities have the world's axes and origin, where those of the bodies beyond a joint are
simply added. With the 4x4 forms of a twist, V^ = [[omega]x, v; 0, 0], and of an inertia,
P = [Sigma, h; h^T, m], the velocity enters through V^ P = [K, p; 0, 0]:

    K = [omega]x Sigma + v h^T,    p = m v + omega x h.

A joint i that carries a joint j (i = j included) and the composite body beyond j then give

    M_ij = S_i^T F2_j,    C_ij = S_i^T F1_j,    C_ji = Sdot_i^T F2_j + S_i^T F3_j,

    F2 = I S,    F1 = I Sdot + B S,    F3 = B^T S,
    B S = (tr(K) z - K z, z x p),   B^T S = (p x s + tr(K) z - K^T z, 0),   S = (z, s),

which is sum_k J_k^T (1/2 (Psi_k + N_k) J_k + G_k Jdot_k), the Christoffel form of C, added up in
another order. Vlasblom (2.17), (1.16), (2.24); Lynch and Park (9.61), (9.87), (9.84); seed guide
section 4, Matrices.

"""

import math

from rbd_ros.bodies import (ARMATURE, fits, GRAVITY, ground_origin, INERTIA, parent, place_ground,
                            place_in_world, R_, r_, SCRATCH, turn_screws, world_column,
                            world_joint_motion)
from rbd_ros.compiled import kernel
from rbd_ros.vectors import (ad, add, add6, cross, dot, dot6, inertia_from_child, inertia_times,
                             load3, load33, load6, load_inertia, rotate, scale, store3, store33,
                             store6, store_inertia, sub, unrotate, velocity_inertia,
                             velocity_times, velocity_transposed_times)

# Columns of `robot`. G_ ... p_ are the composite body: what is added to the parent.
S_, SDOT_, V_, G_, K_, p_, SHARED_COLUMNS = (
    SCRATCH + k for k in (12, 18, 24, 30, 40, 49, 52))
# Those of the difference between the two forms of C, see `use_body_factorization`.
Q_, a_, u_, w_, COMPOSITE_COLUMNS = (SCRATCH + k for k in (52, 61, 64, 67, 70))


@kernel
def composite_bodies(robot, joints, q, v, terms):
    """
    Write M, C, g, C v, J_CoM and the CoM to `terms`, and return whether they are finite.

    ``terms`` has the shape (2 nv + 6, max(nv, 3)): nv rows for M, nv for C, then one each for g
    and C v, three for J_CoM and one for the centre of mass. Where ``v`` is None, M, g, J_CoM and
    the CoM alone are written. Nothing is written, and False returned, if q or v has a wrong
    length.

    """
    if not fits(robot, joints, q, v):
        return False
    nv = len(robot) - 1
    C, g, Cv, J_com, com = nv, 2 * nv, 2 * nv + 1, 2 * nv + 2, 2 * nv + 5
    zero = (0.0, 0.0, 0.0)
    turn_screws(robot, joints, q)
    origin = ground_origin(robot, joints, q)
    place_ground(robot, origin)
    store6(robot, 0, V_, (zero, zero))
    store_inertia(robot, 0, G_, inertia_from_child(
        load33(robot, 0, R_), origin, load_inertia(robot, 0, INERTIA)))

    mass = robot[0, INERTIA + 9]
    # Root to leaves: pose, column of the Jacobian, twist, inertia.               [K (34)-(36)]
    for i in range(1, nv + 1):
        up = parent(robot, i)
        R, r = place_in_world(robot, joints, i, q)
        S = world_column(robot, joints, i, R, r)
        G = inertia_from_child(R, r, load_inertia(robot, i, INERTIA))
        store6(robot, i, S_, S)
        store_inertia(robot, i, G_, G)
        mass += G[2]
        if v is not None:
            V = add6(load6(robot, up, V_), world_joint_motion(joints, i, R, r, S, v))
            K, p = velocity_inertia(V, G)
            store6(robot, i, V_, V)
            store6(robot, i, SDOT_, ad(V, S))
            terms[Cv, i - 1] = 0.0
            store33(robot, i, K_, K)
            store3(robot, i, p_, p)

    per_mass = 1.0 / mass if mass > 0.0 else 0.0
    # Leaves to root: composite bodies, and with each the entries of M and C.
    gravity, total = load3(robot, 0, GRAVITY), 0.0
    for j in range(nv, 0, -1):
        up = parent(robot, j)
        S = load6(robot, j, S_)
        G = load_inertia(robot, j, G_)
        F2 = inertia_times(G, S)
        terms[j - 1, j - 1] = dot6(S, F2) + robot[j, ARMATURE]
        terms[g, j - 1] = -dot(gravity, F2[1])
        total += terms[j - 1, j - 1] + terms[g, j - 1]
        for k in range(3):
            terms[J_com + k, j - 1] = per_mass * F2[1][k]
        i = up
        if v is None:
            while i > 0:
                terms[i - 1, j - 1] = terms[j - 1, i - 1] = dot6(load6(robot, i, S_), F2)
                i = parent(robot, i)
        else:
            K, p = load33(robot, j, K_), load3(robot, j, p_)
            F1 = add6(inertia_times(G, load6(robot, j, SDOT_)), velocity_times(K, p, S))
            F3 = velocity_transposed_times(K, p, S)
            terms[C + j - 1, j - 1] = dot6(S, F1)
            coriolis = terms[C + j - 1, j - 1] * v[j - 1]
            while i > 0:
                S_i = load6(robot, i, S_)
                upper = dot6(S_i, F1)
                lower = dot6(load6(robot, i, SDOT_), F2) + dot(S_i[0], F3)
                terms[i - 1, j - 1] = terms[j - 1, i - 1] = dot6(S_i, F2)
                terms[C + i - 1, j - 1] = upper
                terms[C + j - 1, i - 1] = lower
                terms[Cv, i - 1] += upper * v[j - 1]
                coriolis += lower * v[i - 1]
                i = parent(robot, i)
            terms[Cv, j - 1] += coriolis
            total += terms[Cv, j - 1]
        for k in range(G_, K_):
            robot[up, k] += robot[j, k]
        if up > 0 and v is not None:
            for k in range(K_, SHARED_COLUMNS):
                robot[up, k] += robot[j, k]

    # The whole robot is the composite body of the ground.                        [G (7)]
    store3(terms, com, 0, sub(scale(per_mass, load3(robot, 0, G_ + 6)), origin))
    total += terms[com, 0] + terms[com, 1] + terms[com, 2]
    return math.isfinite(total)


@kernel
def use_body_factorization(robot, terms):
    """
    Turn the Christoffel form of C in `terms` into Garofalo's, right after `composite_bodies`.

    C_G - C_Chr = 1/2 sum_k J_k^T (Psi_k - N_k) J_k (seed guide section 5), whose matrices, about
    the world's origin, hold a = tr(Sigma) omega + h x v, Q = h omega^T, u = m v and w = m omega:

        1/2 (Psi - N) (z, s) = (a x z + Q s - tr(Q) s + u x s,  tr(Q) z - Q^T z + u x z + w x s).

    They are skew, and leave C v as it is.

    """
    nv = len(robot) - 1
    C = nv
    for i in range(1, nv + 1):
        G = inertia_from_child(load33(robot, i, R_), load3(robot, i, r_),
                               load_inertia(robot, i, INERTIA))
        sigma, h, m = G
        omega, slide = load6(robot, i, V_)
        store33(robot, i, Q_, (scale(omega[0], h), scale(omega[1], h), scale(omega[2], h)))
        store3(robot, i, a_, add(scale(sigma[0] + sigma[1] + sigma[2], omega), cross(h, slide)))
        store3(robot, i, u_, scale(m, slide))
        store3(robot, i, w_, scale(m, omega))
    for j in range(nv, 0, -1):
        up = parent(robot, j)
        z, s = load6(robot, j, S_)
        Q, u = load33(robot, j, Q_), load3(robot, j, u_)
        trace = Q[0][0] + Q[1][1] + Q[2][2]
        F = (add(add(cross(load3(robot, j, a_), z), sub(rotate(Q, s), scale(trace, s))),
                 cross(u, s)),
             add(add(sub(scale(trace, z), unrotate(Q, z)), cross(u, z)),
                 cross(load3(robot, j, w_), s)))
        i = up
        while i > 0:
            difference = dot6(load6(robot, i, S_), F)
            terms[C + i - 1, j - 1] += difference
            terms[C + j - 1, i - 1] -= difference
            i = parent(robot, i)
        for k in range(Q_, COMPOSITE_COLUMNS if up > 0 else Q_):
            robot[up, k] += robot[j, k]
