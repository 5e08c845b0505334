# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Hybrid and forward dynamics by articulated bodies, in body frames.

Kim table 4, and table 3 where no acceleration is prescribed; seed guide section 4, FD/HD. In these
frames S^T I S is an entry of I rather than a difference of large ones: robots with links that have
hardly any inertia keep their digits.

"""

import math

from rbd_ros.bodies import (ad_joint, along, ARMATURE, BLOCK, count, fits, GRAVITY, INERTIA,
                            is_screw, joint_motion, parent, place, place_in_parents, PRESCRIBED,
                            project, R_, r_, SCRATCH, SLIDE, TURN, WRENCH)
from rbd_ros.compiled import helper, kernel
from rbd_ros.vectors import (ad_transposed, add, add6, cross, dot6, inertia_times, LANES, load,
                             load3, load33, load6, load_inertia, load_symmetric, rotate, scale,
                             scale6, store, store33, store6, store_symmetric, sub, symmetric_times,
                             symmetric_turned, to_child, to_parent, transpose, unrotate)

# Columns of `robot`, in Kim's symbols. IS_ is I S; PSI_ is 1 / S^T I S; U_ is u, or S^T B where
# the acceleration is prescribed.
ETA_, VDOT_, V_, I_, B_, IS_, PSI_, U_, ARTICULATED_COLUMNS = (
    SCRATCH + k for k in (12, 18, 24, 30, 51, 57, 63, 64, 65))

# A joint carries no inertia if S^T I S is smaller than this share of the trace of I: what is left
# is the rounding of the numbers that were subtracted.
SINGULAR = 1e-14


# A symmetric 6x6 matrix [A, B; B^T, D] is kept as A (6), the columns of B (9) and D (6).
@helper
def load_articulated(robot, b):
    """Return the articulated inertia of a body."""
    return (load_symmetric(robot, b, I_), load33(robot, b, I_ + 6),
            load_symmetric(robot, b, I_ + 15))


@helper
def store_articulated(robot, b, I_A):
    """Write the articulated inertia of a body."""
    angular, mixed, linear = I_A
    store_symmetric(robot, b, I_, angular)
    store33(robot, b, I_ + 6, mixed)
    store_symmetric(robot, b, I_ + 15, linear)


@helper
def add_articulated(robot, b, I_A, B):
    """Add to the articulated inertia and bias of a body."""
    angular, mixed, linear = I_A
    A, C, D = load_articulated(robot, b)
    store_articulated(robot, b, (
        (A[0] + angular[0], A[1] + angular[1], A[2] + angular[2],
         A[3] + angular[3], A[4] + angular[4], A[5] + angular[5]),
        (add(C[0], mixed[0]), add(C[1], mixed[1]), add(C[2], mixed[2])),
        (D[0] + linear[0], D[1] + linear[1], D[2] + linear[2],
         D[3] + linear[3], D[4] + linear[4], D[5] + linear[5])))
    store6(robot, b, B_, add6(load6(robot, b, B_), B))


@helper
def articulated_from_rigid(G):
    """Return the inertia of a rigid body as a symmetric 6x6 matrix [K (20)]."""
    sigma, h, m = G
    trace = sigma[0] + sigma[1] + sigma[2]
    return ((trace - sigma[0], trace - sigma[1], trace - sigma[2],
             -sigma[3], -sigma[4], -sigma[5]),
            ((0.0, h[2], -h[1]), (-h[2], 0.0, h[0]), (h[1], -h[0], 0.0)),
            (m, m, m, 0.0, 0.0, 0.0))


@helper
def articulated_times(I_A, V):
    """Return the product of a symmetric 6x6 matrix and a motion."""
    A, B, D = I_A
    return (add(symmetric_times(A, V[0]), rotate(B, V[1])),
            add(unrotate(B, V[0]), symmetric_times(D, V[1])))


@helper
def times_joint(robot, screws, b, I_A, eta):
    """Return I_A times the `ad_joint` of a body; that of a screw has no parts along z."""
    if is_screw(robot, screws, b):
        A, B, D = I_A
        x, y = eta[0][0], eta[0][1]
        u, v = eta[1][0], eta[1][1]
        return ((A[0] * x + A[3] * y + B[0][0] * u + B[1][0] * v,
                 A[3] * x + A[1] * y + B[0][1] * u + B[1][1] * v,
                 A[4] * x + A[5] * y + B[0][2] * u + B[1][2] * v),
                (B[0][0] * x + B[0][1] * y + D[0] * u + D[3] * v,
                 B[1][0] * x + B[1][1] * y + D[3] * u + D[1] * v,
                 B[2][0] * x + B[2][1] * y + D[4] * u + D[5] * v))
    return articulated_times(I_A, eta)


@helper
def articulated_column(robot, screws, b, I_A):
    """Return I S: the columns of I for the axis that a body turns about and slides along."""
    A, B, D = I_A
    turn, slide = load(robot, b, TURN), load(robot, b, SLIDE)
    of_turn = along(robot, screws, b, (A[0], A[3], A[4]), (A[3], A[1], A[5]), (A[4], A[5], A[2]))
    of_slide = along(robot, screws, b, (D[0], D[3], D[4]), (D[3], D[1], D[5]), (D[4], D[5], D[2]))
    X, Y, Z = transpose(B)
    return (add(scale(turn, of_turn), scale(slide, along(robot, screws, b, B[0], B[1], B[2]))),
            add(scale(turn, along(robot, screws, b, X, Y, Z)), scale(slide, of_slide)))


@helper
def column_trace(robot, b, I_A):
    """Return what S^T I S would be if S were along all three axes."""
    A, _, D = I_A
    return (load(robot, b, TURN) ** 2 * (A[0] + A[1] + A[2])
            + load(robot, b, SLIDE) ** 2 * (D[0] + D[1] + D[2]))


@helper
def column_times(robot, screws, b, x):
    """Return S x for the column of a body."""
    axis = along(robot, screws, b, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    return scale(load(robot, b, TURN) * x, axis), scale(load(robot, b, SLIDE) * x, axis)


@helper
def symmetric_minus(D, s, a):
    """Return D - s a a^T."""
    b = scale(s, a)
    return (D[0] - b[0] * a[0], D[1] - b[1] * a[1], D[2] - b[2] * a[2],
            D[3] - b[0] * a[1], D[4] - b[0] * a[2], D[5] - b[1] * a[2])


@helper
def minus_outer(I_A, s, F):
    """Return I_A - s F F^T."""
    A, B, D = I_A
    n, f = F
    sn = scale(s, n)
    return (symmetric_minus(A, s, n),
            (sub(B[0], scale(f[0], sn)), sub(B[1], scale(f[1], sn)), sub(B[2], scale(f[2], sn))),
            symmetric_minus(D, s, f))


@helper
def articulated_to_parent(R, r, I_A):
    """Return A_k^T I_A A_k, I_A in the frame that encloses the body's, at (R, r) [K (48)]."""
    A, B, D = symmetric_turned(R, I_A[0]), I_A[1], symmetric_turned(R, I_A[2])
    x, y, z = transpose((rotate(R, B[0]), rotate(R, B[1]), rotate(R, B[2])))
    B = transpose((rotate(R, x), rotate(R, y), rotate(R, z)))
    # B' = B + [r] D
    mixed = (add(B[0], cross(r, (D[0], D[3], D[4]))), add(B[1], cross(r, (D[3], D[1], D[5]))),
             add(B[2], cross(r, (D[4], D[5], D[2]))))
    # A' = A + [r] B^T - B' [r], symmetric: six of its entries are worked out
    a, b, c = transpose(B)
    x, y, z = cross(r, a), cross(r, b), cross(r, c)
    a, b, c = transpose(mixed)
    u, v, w = cross(a, r), cross(b, r), cross(c, r)
    return ((A[0] + x[0] - u[0], A[1] + y[1] - v[1], A[2] + z[2] - w[2],
             A[3] + y[0] - u[1], A[4] + z[0] - u[2], A[5] + z[1] - v[2]), mixed, D)


@kernel
def articulated_bodies(robot, screws, q, v, a, tau):
    """
    Complete the accelerations a and the torques tau.

    Where a body's PRESCRIBED is 1 its a is given and its tau is written, elsewhere the other way
    round. Returns whether a and tau are finite; False too if q, v, a or tau have a wrong length or
    a column of S carries no inertia. The PSI_ of the ground is the number of that body, or 0.

    """
    store(robot, 0, PSI_, 0.0)
    if not (fits(robot, q, v) and fits(robot, q, a) and fits(robot, q, tau)):
        return False
    n = count(robot)
    zero = (0.0, 0.0, 0.0)
    place_in_parents(robot, screws, q)
    store6(robot, 0, V_, (zero, zero))
    store6(robot, 0, VDOT_, (zero, scale(-1.0, load3(robot, 0, GRAVITY))))
    # Root to leaves: twist.
    for i in range(1, n):
        b = place(i)
        Sv = joint_motion(robot, screws, i, v)
        V = add6(to_child(load33(robot, b, R_), load3(robot, b, r_),
                          load6(robot, parent(robot, b), V_)), Sv)
        store6(robot, b, V_, V)
        store6(robot, b, ETA_, ad_joint(robot, screws, b, V, Sv))
    # Each body alone.
    for block in range(0, len(robot), BLOCK):
        for b in range(block, block + LANES):
            V, G = load6(robot, b, V_), load_inertia(robot, b, INERTIA)
            store_articulated(robot, b, articulated_from_rigid(G))
            store6(robot, b, B_, scale6(-1.0, add6(ad_transposed(V, inertia_times(G, V)),
                                                   load6(robot, b, WRENCH))))
    # Leaves to root: articulated inertia I and bias B, and what the parent feels of them.
    for i in range(n - 1, 0, -1):
        b = place(i)
        I_A, B = load_articulated(robot, b), load6(robot, b, B_)
        IS = articulated_column(robot, screws, b, I_A)
        B_eta = add6(B, times_joint(robot, screws, b, I_A, load6(robot, b, ETA_)))
        if load(robot, b, PRESCRIBED) != 0.0:
            Pi = I_A
            beta = add6(B_eta, scale6(a[i - 1], IS))
            store(robot, b, U_, project(robot, screws, b, B))
        else:
            SIS = project(robot, screws, b, IS) + load(robot, b, ARMATURE)
            if not SIS > SINGULAR * column_trace(robot, b, I_A):
                store(robot, 0, PSI_, i)
                return False
            psi = 1.0 / SIS
            u = tau[i - 1] - project(robot, screws, b, B_eta)
            Pi = minus_outer(I_A, psi, IS)
            beta = add6(B_eta, scale6(psi * u, IS))
            store(robot, b, PSI_, psi)
            store(robot, b, U_, u)
        store6(robot, b, IS_, IS)
        up = parent(robot, b)
        if up > 0:
            R, r = load33(robot, b, R_), load3(robot, b, r_)
            add_articulated(robot, up, articulated_to_parent(R, r, Pi),
                            to_parent(R, r, beta))
    # Root to leaves: accelerations, and torques where those are prescribed.
    total = 0.0
    for i in range(1, n):
        b = place(i)
        w = to_child(load33(robot, b, R_), load3(robot, b, r_),
                     load6(robot, parent(robot, b), VDOT_))
        IS = load6(robot, b, IS_)
        if load(robot, b, PRESCRIBED) == 0.0:
            a[i - 1] = load(robot, b, PSI_) * (load(robot, b, U_) - dot6(w, IS))
        Vdot = add6(add6(w, load6(robot, b, ETA_)), column_times(robot, screws, b, a[i - 1]))
        if load(robot, b, PRESCRIBED) != 0.0:
            tau[i - 1] = (dot6(Vdot, IS) + load(robot, b, U_)
                          + load(robot, b, ARMATURE) * a[i - 1])
        store6(robot, b, VDOT_, Vdot)
        total += a[i - 1] + tau[i - 1]
    return math.isfinite(total)
