# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Hybrid and forward dynamics by articulated bodies, in body frames.

Kim table 4, and table 3 where no acceleration is prescribed; seed guide section 4, FD/HD. In these
frames S^T I S is an entry of I rather than a difference of large ones: robots with links that have
hardly any inertia keep their digits.

"""

import math

from rbd_ros.bodies import (ad_joint, ARMATURE, AXIS, fits, GRAVITY, INERTIA, is_screw,
                            joint_motion, parent, place_in_parent, PRESCRIBED, project, R_, r_,
                            SCRATCH, SLIDE, TURN, turn_screws, WRENCH)
from rbd_ros.compiled import helper, kernel
from rbd_ros.vectors import (ad_transposed, add, add6, cross, dot6, inertia_times, load3, load33,
                             load6, load_inertia, rotate, scale, scale6, store33, store6, sub,
                             symmetric_times, symmetric_turned, to_child, to_parent, transpose,
                             unrotate)

# Columns of `robot`, in Kim's symbols. IS_ is I S; PSI_ is 1 / S^T I S; U_ is u, or S^T B where
# the acceleration is prescribed.
ETA_, VDOT_, V_, I_, B_, IS_, PSI_, U_, ARTICULATED_COLUMNS = (
    SCRATCH + k for k in (12, 18, 24, 30, 51, 57, 63, 64, 65))

# A joint carries no inertia if S^T I S is smaller than this share of the trace of I: what is left
# is the rounding of the numbers that were subtracted.
SINGULAR = 1e-14


# A symmetric 6x6 matrix [A, B; B^T, D] is kept as A (6), the columns of B (9) and D (6).
@helper
def load_articulated(robot, i):
    """Return the articulated inertia of body i."""
    k = I_
    return ((robot[i, k], robot[i, k + 1], robot[i, k + 2],
             robot[i, k + 3], robot[i, k + 4], robot[i, k + 5]),
            load33(robot, i, k + 6),
            (robot[i, k + 15], robot[i, k + 16], robot[i, k + 17],
             robot[i, k + 18], robot[i, k + 19], robot[i, k + 20]))


@helper
def store_articulated(robot, i, I_A):
    """Write the articulated inertia of body i."""
    angular, mixed, linear = I_A
    for k in range(6):
        robot[i, I_ + k] = angular[k]
        robot[i, I_ + 15 + k] = linear[k]
    store33(robot, i, I_ + 6, mixed)


@helper
def add_articulated(robot, i, I_A, B):
    """Add to the articulated inertia and bias of body i."""
    angular, mixed, linear = I_A
    for k in range(6):
        robot[i, I_ + k] += angular[k]
        robot[i, I_ + 15 + k] += linear[k]
    for k in range(3):
        robot[i, I_ + 6 + k] += mixed[0][k]
        robot[i, I_ + 9 + k] += mixed[1][k]
        robot[i, I_ + 12 + k] += mixed[2][k]
        robot[i, B_ + k] += B[0][k]
        robot[i, B_ + 3 + k] += B[1][k]


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
def times_joint(joints, i, I_A, eta):
    """Return I_A times the `ad_joint` of body i; that of a screw has no parts along z."""
    if is_screw(joints, i):
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
def articulated_column(robot, joints, i, I_A):
    """Return I S: the columns of I for the axis that body i turns about and slides along."""
    A, B, D = I_A
    turn, slide = robot[i, TURN], robot[i, SLIDE]
    if joints is not None and joints[i, AXIS] == 0:
        return (add(scale(turn, (A[0], A[3], A[4])), scale(slide, B[0])),
                add(scale(turn, (B[0][0], B[1][0], B[2][0])), scale(slide, (D[0], D[3], D[4]))))
    if joints is not None and joints[i, AXIS] == 1:
        return (add(scale(turn, (A[3], A[1], A[5])), scale(slide, B[1])),
                add(scale(turn, (B[0][1], B[1][1], B[2][1])), scale(slide, (D[3], D[1], D[5]))))
    return (add(scale(turn, (A[4], A[5], A[2])), scale(slide, B[2])),
            add(scale(turn, (B[0][2], B[1][2], B[2][2])), scale(slide, (D[4], D[5], D[2]))))


@helper
def column_trace(robot, i, I_A):
    """Return what S^T I S would be if S were along all three axes."""
    A, _, D = I_A
    return (robot[i, TURN] ** 2 * (A[0] + A[1] + A[2])
            + robot[i, SLIDE] ** 2 * (D[0] + D[1] + D[2]))


@helper
def column_times(robot, joints, i, x):
    """Return S x for the column of body i."""
    turn, slide = robot[i, TURN] * x, robot[i, SLIDE] * x
    if joints is not None and joints[i, AXIS] == 0:
        return ((turn, 0.0, 0.0), (slide, 0.0, 0.0))
    if joints is not None and joints[i, AXIS] == 1:
        return ((0.0, turn, 0.0), (0.0, slide, 0.0))
    return ((0.0, 0.0, turn), (0.0, 0.0, slide))


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
def articulated_bodies(robot, joints, q, v, a, tau):
    """
    Complete the accelerations a and the torques tau.

    Where a body's PRESCRIBED is 1 its a is given and its tau is written, elsewhere the other way
    round. Returns whether a and tau are finite; False too if q, v, a or tau have a wrong length or
    a column of S carries no inertia. ``robot[0, PSI_]`` is the row of that column, or 0.

    """
    robot[0, PSI_] = 0.0
    if not (fits(robot, joints, q, v) and fits(robot, joints, q, a)
            and fits(robot, joints, q, tau)):
        return False
    nv = len(robot) - 1
    zero = (0.0, 0.0, 0.0)
    store6(robot, 0, V_, (zero, zero))
    store6(robot, 0, VDOT_, (zero, scale(-1.0, load3(robot, 0, GRAVITY))))

    turn_screws(robot, joints, q)
    # Root to leaves: twist, and the body alone.
    for i in range(1, nv + 1):
        R, r = place_in_parent(robot, joints, i, q)
        Sv = joint_motion(robot, joints, i, v)
        V = add6(to_child(R, r, load6(robot, parent(robot, i), V_)), Sv)
        G = load_inertia(robot, i, INERTIA)
        B = scale6(-1.0, add6(ad_transposed(V, inertia_times(G, V)), load6(robot, i, WRENCH)))
        store6(robot, i, V_, V)
        store6(robot, i, ETA_, ad_joint(joints, i, V, Sv))
        store_articulated(robot, i, articulated_from_rigid(G))
        store6(robot, i, B_, B)

    # Leaves to root: articulated inertia I and bias B, and what the parent feels of them.
    for i in range(nv, 0, -1):
        I_A, B = load_articulated(robot, i), load6(robot, i, B_)
        IS = articulated_column(robot, joints, i, I_A)
        B_eta = add6(B, times_joint(joints, i, I_A, load6(robot, i, ETA_)))
        if robot[i, PRESCRIBED] != 0.0:
            Pi = I_A
            beta = add6(B_eta, scale6(a[i - 1], IS))
            robot[i, U_] = project(robot, joints, i, B)
        else:
            SIS = project(robot, joints, i, IS) + robot[i, ARMATURE]
            if not SIS > SINGULAR * column_trace(robot, i, I_A):
                robot[0, PSI_] = i
                return False
            psi = 1.0 / SIS
            u = tau[i - 1] - project(robot, joints, i, B_eta)
            Pi = minus_outer(I_A, psi, IS)
            beta = add6(B_eta, scale6(psi * u, IS))
            robot[i, PSI_] = psi
            robot[i, U_] = u
        store6(robot, i, IS_, IS)
        up = parent(robot, i)
        if up > 0:
            R, r = load33(robot, i, R_), load3(robot, i, r_)
            add_articulated(robot, up, articulated_to_parent(R, r, Pi), to_parent(R, r, beta))

    # Root to leaves: accelerations, and torques where those are prescribed.
    total = 0.0
    for i in range(1, nv + 1):
        w = to_child(load33(robot, i, R_), load3(robot, i, r_),
                     load6(robot, parent(robot, i), VDOT_))
        IS = load6(robot, i, IS_)
        if robot[i, PRESCRIBED] == 0.0:
            a[i - 1] = robot[i, PSI_] * (robot[i, U_] - dot6(w, IS))
        Vdot = add6(add6(w, load6(robot, i, ETA_)), column_times(robot, joints, i, a[i - 1]))
        if robot[i, PRESCRIBED] != 0.0:
            tau[i - 1] = dot6(Vdot, IS) + robot[i, U_] + robot[i, ARMATURE] * a[i - 1]
        store6(robot, i, VDOT_, Vdot)
        total += a[i - 1] + tau[i - 1]
    return math.isfinite(total)
