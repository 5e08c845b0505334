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

from rbd_ros.bodies import (ARMATURE, fits, GRAVITY, ground_origin, INERTIA, joint_pose, parent,
                            world_column, world_joint_motion, world_pose)
from rbd_ros.compiled import kernel
from rbd_ros.vectors import (ad, add, add6, cross, dot, dot6, inertia_from_child, inertia_times,
                             load3, load33, load6, load_inertia, rotate, scale, store3, store33,
                             store6, store_inertia, sub, unrotate, velocity_inertia,
                             velocity_times, velocity_transposed_times)

# Columns of `work`. G_ ... p_ are the composite body: what is added to the parent.
R_, r_, S_, SDOT_, V_ = 0, 9, 12, 18, 24
G_, K_, p_ = 30, 40, 49
SHARED_COLUMNS = 52
# Those of the difference between the two forms of C, see `use_body_factorization`.
Q_, a_, u_, w_ = 52, 61, 64, 67
COMPOSITE_COLUMNS = 70


@kernel
def composite_bodies(robot, joints, q, v, work, terms):
    """
    Write M, C, g, C v, J_CoM and the CoM to `terms`; return a number that is finite if they are.

    ``terms`` has the shape (2 nv + 6, max(nv, 3)): nv rows for M, nv for C, then one each for g
    and C v, three for J_CoM and one for the centre of mass. Where ``v`` is None, M, g, J_CoM and
    the CoM alone are written. NaN is returned, and nothing is written, if q or v has a wrong
    length.

    """
    if not fits(robot, joints, q, v):
        return math.nan
    nv = len(robot) - 1
    C, g, Cv, J_com, com = nv, 2 * nv, 2 * nv + 1, 2 * nv + 2, 2 * nv + 5
    zero = (0.0, 0.0, 0.0)
    origin = ground_origin(robot, joints, q)
    unit = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    store33(work, 0, R_, unit)
    store3(work, 0, r_, origin)
    store6(work, 0, V_, (zero, zero))
    store_inertia(work, 0, G_, inertia_from_child(unit, origin, load_inertia(robot, 0, INERTIA)))

    # Root to leaves: pose, column of the Jacobian, twist, inertia.               [K (34)-(36)]
    for i in range(1, nv + 1):
        up = parent(robot, i)
        R, r = joint_pose(robot, joints, i, q)
        R, r = world_pose(load33(work, up, R_), load3(work, up, r_), R, r)
        S = world_column(robot, joints, i, R, r)
        G = inertia_from_child(R, r, load_inertia(robot, i, INERTIA))
        store33(work, i, R_, R)
        store3(work, i, r_, r)
        store6(work, i, S_, S)
        store_inertia(work, i, G_, G)
        if v is not None:
            V = add6(load6(work, up, V_), world_joint_motion(joints, i, R, r, S, v))
            K, p = velocity_inertia(V, G)
            store6(work, i, V_, V)
            store6(work, i, SDOT_, ad(V, S))
            store33(work, i, K_, K)
            store3(work, i, p_, p)

    # Leaves to root: composite bodies, and with each the entries of M and C.
    gravity, total = load3(robot, 0, GRAVITY), 0.0
    for j in range(nv, 0, -1):
        up = parent(robot, j)
        S = load6(work, j, S_)
        G = load_inertia(work, j, G_)
        F2 = inertia_times(G, S)
        terms[j - 1, j - 1] = dot6(S, F2) + robot[j, ARMATURE]
        terms[g, j - 1] = -dot(gravity, F2[1])
        total += terms[j - 1, j - 1] + terms[g, j - 1]
        terms[J_com, j - 1], terms[J_com + 1, j - 1], terms[J_com + 2, j - 1] = F2[1]
        if v is None:
            i = up
            while i > 0:
                terms[i - 1, j - 1] = terms[j - 1, i - 1] = dot6(load6(work, i, S_), F2)
                i = parent(robot, i)
        else:
            K, p = load33(work, j, K_), load3(work, j, p_)
            F1 = add6(inertia_times(G, load6(work, j, SDOT_)), velocity_times(K, p, S))
            F3 = velocity_transposed_times(K, p, S)
            terms[C + j - 1, j - 1] = dot6(S, F1)
            i = up
            while i > 0:
                S_i = load6(work, i, S_)
                terms[i - 1, j - 1] = terms[j - 1, i - 1] = dot6(S_i, F2)
                terms[C + i - 1, j - 1] = dot6(S_i, F1)
                terms[C + j - 1, i - 1] = dot6(load6(work, i, SDOT_), F2) + dot(S_i[0], F3)
                i = parent(robot, i)
        for k in range(G_, SHARED_COLUMNS if up > 0 else K_):
            work[up, k] += work[j, k]

    # The whole robot is the composite body of the ground.                        [G (7)]
    h, m = load3(work, 0, G_ + 6), work[0, G_ + 9]
    per_mass = 1.0 / m if m > 0.0 else 0.0
    store3(terms, com, 0, sub(scale(per_mass, h), origin))
    total += terms[com, 0] + terms[com, 1] + terms[com, 2]
    for i in range(nv):
        for k in range(3):
            terms[J_com + k, i] *= per_mass
        if v is not None:
            coriolis = 0.0
            for j in range(nv):
                coriolis += terms[C + i, j] * v[j]
            terms[Cv, i] = coriolis
            total += coriolis
    return total


@kernel
def use_body_factorization(robot, work, terms):
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
        G = inertia_from_child(load33(work, i, R_), load3(work, i, r_),
                               load_inertia(robot, i, INERTIA))
        sigma, h, m = G
        omega, slide = load6(work, i, V_)
        store33(work, i, Q_, (scale(omega[0], h), scale(omega[1], h), scale(omega[2], h)))
        store3(work, i, a_, add(scale(sigma[0] + sigma[1] + sigma[2], omega), cross(h, slide)))
        store3(work, i, u_, scale(m, slide))
        store3(work, i, w_, scale(m, omega))
    for j in range(nv, 0, -1):
        up = parent(robot, j)
        z, s = load6(work, j, S_)
        Q, u = load33(work, j, Q_), load3(work, j, u_)
        trace = Q[0][0] + Q[1][1] + Q[2][2]
        F = (add(add(cross(load3(work, j, a_), z), sub(rotate(Q, s), scale(trace, s))),
                 cross(u, s)),
             add(add(sub(scale(trace, z), unrotate(Q, z)), cross(u, z)),
                 cross(load3(work, j, w_), s)))
        i = up
        while i > 0:
            difference = dot6(load6(work, i, S_), F)
            terms[C + i - 1, j - 1] += difference
            terms[C + j - 1, i - 1] -= difference
            i = parent(robot, i)
        for k in range(Q_, COMPOSITE_COLUMNS if up > 0 else Q_):
            work[up, k] += work[j, k]
