# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Hybrid and forward dynamics by articulated bodies, each about its own origin in the world's axes.

Kim table 4, and table 3 if no acceleration is given. In the world's axes, 6x6 matrices need no
rotation on the way to the parent; about the origins of the bodies, which lie on the joint axes,
matrices of links far from the world's origin lose no digits.

Accelerations have two parts: VDOT_, that of inverse dynamics with a = 0, which includes eta and
gravity, and W_ = dV/dt - VDOT_ due to the accelerations of the joints. With B the bias force for
VDOT_, Kim's terms in eta vanish.

"""

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import entry, exceeds, finite, set_entry, vectorized
from rbd_ros.kernels.tree.joints import joint_pose, rotated_column, rotated_joint_motion
from rbd_ros.kernels.tree.layout import (
    ARMATURE, BLOCK, columns_of, constant, constant_inertia, count, end, fits, GROUND, INERTIA,
    LANES, load, load3, load33, load6, load_symmetric, parent, POSE_END, PRESCRIBED, R_, r_, SLIDE,
    slot, store, store3, store33, store6, store_symmetric, TURN, WRENCH)
from rbd_ros.kernels.tree.traversal import (
    evaluate_screws, load_pose, minus_gravity, write_ground_pose, write_local_poses)
from rbd_ros.kernels.tree.vectors import (
    ad, ad_transposed, add, add6, add_cross, compose, cross, dot, dot6, inertia_times, rotate,
    scale, scale6, shift, shift_force, sub, sub6, symmetric_times, symmetric_turned, transpose,
    unrotate)

# Columns of `robot`, in Kim's symbols; r_ is relative to the origin of the parent. IS_ is I S;
# PSI_ is 1 / S^T I S; U_ is u, or S^T B where the acceleration is given. TRACES_ are the traces
# of A and D (see `load_articulated`) of the composite body, without the subtractions of Pi.
S_, W_, VDOT_, V_, I_, B_, IS_, PSI_, U_, TRACES_, ARTICULATED_COLUMNS = columns_of(
    POSE_END, 6, 6, 6, 6, 21, 6, 6, 1, 1, 2)

# A joint moves no inertia if S^T I S is below this fraction of the bound from TRACES_: the rest of
# I is then rounding error of the subtractions.
SINGULAR = 1e-14


# A symmetric 6x6 matrix [A, B; B^T, D], such as an articulated inertia, is kept as A (6), the
# columns of B (9) and D (6).
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
    """Return the 6x6 matrix of the inertia of a rigid body [K (20)]."""
    sigma, h, m = G
    trace = sigma[0] + sigma[1] + sigma[2]
    return ((trace - sigma[0], trace - sigma[1], trace - sigma[2],
             -sigma[3], -sigma[4], -sigma[5]),
            ((0.0, h[2], -h[1]), (-h[2], 0.0, h[0]), (h[1], -h[0], 0.0)),
            (m, m, m, 0.0, 0.0, 0.0))


@helper
def articulated_column(robot, b, I_A, S):
    """Return I_A S for the column of a body."""
    A, B, D = I_A
    turn, slide = S
    IS = (symmetric_times(A, turn), unrotate(B, turn))
    if constant(robot, b, SLIDE) != 0.0:
        IS = add6(IS, (rotate(B, slide), symmetric_times(D, slide)))
    return IS


@helper
def column_trace(robot, b):
    """Return an upper bound of S^T I S from TRACES_."""
    return (constant(robot, b, TURN) ** 2 * load(robot, b, TRACES_)
            + constant(robot, b, SLIDE) ** 2 * load(robot, b, TRACES_ + 1))


@helper
def add_traces(robot, up, b, r):
    """Add upper bounds of the traces of a body, moved by r, to those of its parent."""
    angular, linear = load(robot, b, TRACES_), load(robot, b, TRACES_ + 1)
    store(robot, up, TRACES_, load(robot, up, TRACES_) + angular + 2.0 * linear * dot(r, r))
    store(robot, up, TRACES_ + 1, load(robot, up, TRACES_ + 1) + linear)


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
def articulated_to_parent(r, I_A):
    """Return A_k^T I_A A_k, I_A about a point at r from the parent's origin [K (48)]."""
    A, B, D = I_A
    # B' = B + [r] D
    mixed = (add_cross(B[0], r, (D[0], D[3], D[4])), add_cross(B[1], r, (D[3], D[1], D[5])),
             add_cross(B[2], r, (D[4], D[5], D[2])))
    # A' = A + [r] B^T - B' [r], symmetric: six entries suffice.
    a, b, c = transpose(B)
    x, y, z = cross(r, a), cross(r, b), cross(r, c)
    a, b, c = transpose(mixed)
    u, v, w = cross(a, r), cross(b, r), cross(c, r)
    return ((A[0] + x[0] - u[0], A[1] + y[1] - v[1], A[2] + z[2] - w[2],
             A[3] + y[0] - u[1], A[4] + z[0] - u[2], A[5] + z[1] - v[2]), mixed, D)


@helper
def move_body(robot, traits, i, v, pose):
    """Write R_, r_, S_, V_ and VDOT_ of body i, given its pose in its parent; VDOT_ has a = 0."""
    b = slot(i)
    up = parent(robot, b)
    R_p = load33(robot, up, R_)
    R, r = compose(R_p, pose[0]), rotate(R_p, pose[1])
    S = rotated_column(robot, traits, b, R)
    store33(robot, b, R_, R)
    store3(robot, b, r_, r)
    store6(robot, b, S_, S)
    if v is not None:
        Sv = rotated_joint_motion(robot, traits, i, R, S, v)
        V = add6(shift(r, load6(robot, up, V_)), Sv)
        store6(robot, b, V_, V)
        store6(robot, b, VDOT_, add6(shift(r, load6(robot, up, VDOT_)), ad(V, Sv)))


# Loads and stores live in separate helpers; otherwise LLVM does not vectorize over the bodies.
@helper
def rigid_body(robot, b, v):
    """Return inertia G and bias force B = G dV/dt - ad_V^T G V - f_ext of a single body."""
    R = load33(robot, b, R_)
    sigma, h, m = constant_inertia(robot, b, INERTIA)
    G = (symmetric_turned(R, sigma), rotate(R, h), m)
    if v is None:
        return G, ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    V, Vdot = load6(robot, b, V_), load6(robot, b, VDOT_)
    moment, force = load6(robot, b, WRENCH)
    F = sub6(inertia_times(G, Vdot), ad_transposed(V, inertia_times(G, V)))
    return G, sub6(F, (rotate(R, moment), rotate(R, force)))


@helper
def store_rigid_body(robot, b, G, B):
    """Write I_, TRACES_ and B_ of a single body."""
    sigma, _, m = G
    store_articulated(robot, b, articulated_from_rigid(G))
    # Traces do not depend on the axes.
    store(robot, b, TRACES_, 2.0 * (sigma[0] + sigma[1] + sigma[2]))
    store(robot, b, TRACES_ + 1, 3.0 * m)
    store6(robot, b, B_, B)


@helper
def move_bodies(robot, traits, q, v):
    """Write motion, inertia and bias force of every body alone, from the root to the leaves."""
    zero = (0.0, 0.0, 0.0)
    store6(robot, GROUND, V_, (zero, zero))
    store6(robot, GROUND, VDOT_, minus_gravity(robot))
    if vectorized(robot):
        evaluate_screws(robot, traits, q)
        write_ground_pose(robot, zero)
        for i in range(1, count(robot)):
            move_body(robot, traits, i, v, joint_pose(robot, traits, i, q))
            G, B = rigid_body(robot, slot(i), v)
            store_rigid_body(robot, slot(i), G, B)
        return
    write_local_poses(robot, traits, q)
    write_ground_pose(robot, zero)
    for i in range(1, count(robot)):
        move_body(robot, traits, i, v, load_pose(robot, traits, slot(i)))
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            G, B = rigid_body(robot, b, v)
            store_rigid_body(robot, b, G, B)


@kernel
def articulated_recursion(robot, traits, q, v, a, tau):
    """
    Complete the accelerations a and the torques tau: where PRESCRIBED is 1, a is given, else tau.

    If ``v`` is None, M a = tau is solved, as if at rest without gravity and wrenches. Returns
    False, too, if a column of S moves no inertia; PSI_ of the ground is that body's number, or 0.

    """
    store(robot, GROUND, PSI_, 0.0)
    if not (fits(robot, q, v) and fits(robot, q, a) and fits(robot, q, tau)):
        return False
    n = count(robot)
    # Root to leaves: V, eta, and G and B of each body alone.                      [K (34)-(40)]
    move_bodies(robot, traits, q, v)
    # Leaves to root: articulated inertia I and bias B, Pi and beta.               [K (48)-(52)]
    for i in range(n - 1, 0, -1):
        b = slot(i)
        I_A, B, S = load_articulated(robot, b), load6(robot, b, B_), load6(robot, b, S_)
        IS = articulated_column(robot, b, I_A, S)
        if constant(robot, b, PRESCRIBED) != 0.0:
            Pi, beta = I_A, add6(B, scale6(entry(a, i - 1), IS))
            store(robot, b, U_, dot6(S, B))
        else:
            SIS = dot6(S, IS) + constant(robot, b, ARMATURE)
            if not exceeds(SIS, SINGULAR * column_trace(robot, b)):
                store(robot, GROUND, PSI_, i)
                return False
            psi, u = 1.0 / SIS, entry(tau, i - 1) - dot6(S, B)
            Pi, beta = minus_outer(I_A, psi, IS), add6(B, scale6(psi * u, IS))
            store(robot, b, PSI_, psi)
            store(robot, b, U_, u)
        store6(robot, b, IS_, IS)
        up = parent(robot, b)
        if up > 0:
            r = load3(robot, b, r_)
            add_articulated(robot, up, articulated_to_parent(r, Pi), shift_force(r, beta))
            add_traces(robot, up, b, r)
    # Root to leaves: accelerations, and torques where accelerations are given.        [K T3, T4]
    total = 0.0
    store6(robot, GROUND, W_, ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    for i in range(1, n):
        b = slot(i)
        w = shift(load3(robot, b, r_), load6(robot, parent(robot, b), W_))
        IS = load6(robot, b, IS_)
        if constant(robot, b, PRESCRIBED) == 0.0:
            set_entry(a, i - 1, load(robot, b, PSI_) * (load(robot, b, U_) - dot6(w, IS)))
        acceleration = entry(a, i - 1)
        w = add6(w, scale6(acceleration, load6(robot, b, S_)))
        if constant(robot, b, PRESCRIBED) != 0.0:
            set_entry(tau, i - 1, dot6(w, IS) + load(robot, b, U_)
                      + constant(robot, b, ARMATURE) * acceleration)
        store6(robot, b, W_, w)
        total += acceleration + entry(tau, i - 1)
    return finite(total)


# A kernel that another one calls with None would, once compiled, take None from users, too.
@kernel
def articulated_bodies(robot, traits, q, v, a, tau):
    """Do the `articulated_recursion`."""
    return articulated_recursion(robot, traits, q, v, a, tau)


@kernel
def articulated_bodies_at_rest(robot, traits, q, a, tau):
    """Do the `articulated_recursion` for M a = tau."""
    return articulated_recursion(robot, traits, q, None, a, tau)


@helper
def prescribe_none(robot):
    """Record that no acceleration is given."""
    for i in range(1, count(robot)):
        store(robot, slot(i), PRESCRIBED, 0.0)


@helper
def copy_given(robot, a, tau, prescribed, all_a, all_tau):
    """Record which accelerations are given, and copy a and tau; False for wrong lengths."""
    nv = count(robot) - 1
    if len(a) != nv or len(tau) != nv or len(prescribed) != nv:
        return False
    for i in range(nv):
        store(robot, slot(i + 1), PRESCRIBED, 1.0 if prescribed[i] else 0.0)
        all_a[i], all_tau[i] = a[i], tau[i]
    return True


@kernel
def hybrid_dynamics(robot, traits, q, v, a, tau, prescribed, all_a, all_tau):
    """Write all accelerations and torques; entries of ``a`` and ``tau`` not given are not read."""
    fine = (copy_given(robot, a, tau, prescribed, all_a, all_tau)
            and articulated_recursion(robot, traits, q, v, all_a, all_tau))
    prescribe_none(robot)
    return fine
