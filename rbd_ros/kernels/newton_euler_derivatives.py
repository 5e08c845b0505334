# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
All derivatives of inverse, forward and hybrid dynamics by state and input, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. A step of q_j moves what joint j carries
rigidly along S_j, while the body it is mounted on, with twist V_p and acceleration A_p (gravity
included), stays. Beyond j that is the rigid motion of everything, less that of V_p and A_p:

    dV = ad_Sj V + S'_j,    dA = ad_Sj A + S''_j - ad_V S'_j,
    S'_j = ad_Vp S_j,       S''_j = ad_Ap S_j + ad_Vp S'_j,

and so, with 2 B x = -G ad_V x - ad_V^T G x + N(G V) x, with sums as in `composite_bodies`, and F
the force on all that j carries, for joints i and j of which one carries the other:

    dtau_i/dq_j = S_i^T (I S''_j + 2 B S'_j)  - S_i^T ad_Sj^T F_j  if i carries j, not j carries i
    dtau_i/dv_j = S_i^T (I (S'_j + dS_j/dt) + 2 B S_j)
    dtau_i/da_j = S_i^T I S_j = M_ij

with I and B of the farther of the two. The columns of a ball or a free joint carry each other.
Checked against Kim (table 5) applied to every unit vector.

"""

from rbd_ros.kernels.articulated_bodies import (articulated_bodies, prescribe_none,
                                                take_what_is_given)
from rbd_ros.kernels.bodies import (add_columns, ARMATURE, BLOCK, block_end, constant, count, end,
                                    fits, follows, load3, load33, load6, load_inertia,
                                    number, parent, place, R_, r_,
                                    SCRATCH, store6, WRENCH)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import element, finite, set_element
from rbd_ros.kernels.mass_matrix_factor import (factorize, find_carriers, is_given,
                                                solve_from_leaves, solve_from_root)
from rbd_ros.kernels.vectors import (ad, ad_transposed, add6, dot, dot6, inertia_times, scale,
                                     scale6, sub6, to_parent, velocity_times,
                                     velocity_transposed_times)
from rbd_ros.kernels.world_frame import (A_, against_gravity, copy_from_carriers, G_, K_,
                                         move_bodies, p_, S_, SDOT_, store_moving_inertia, V_)

# Columns of `robot`. VP_ and AP_ are the motion of the body the joint is mounted on; FIRST_,
# SECOND_ and RATE_ are S', S'' and S' + dS/dt; F_ is of the composite body, too.
F_, VP_, AP_, FIRST_, SECOND_, DERIVATIVE_COLUMNS = (SCRATCH + k for k in (58, 64, 70, 76, 82, 88))
RATE_ = SDOT_


@helper
def differentiate_inverse_dynamics(robot, screws, q, v, a, derivatives):
    """
    Write dtau/dq, dtau/dv and M side by side to `derivatives`, shape (nv, 3 nv).

    External forces turn with the bodies that they act on. Returns whether the results are finite;
    nothing is written, and False returned, if q, v or a has a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    nv = count(robot) - 1
    move_bodies(robot, screws, q, v, a, against_gravity(robot))
    copy_from_carriers(robot, screws, V_, VP_)
    copy_from_carriers(robot, screws, A_, AP_)

    # Each body alone: how its column changes, its inertia, and the force on it.
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            R, r = load33(robot, b, R_), load3(robot, b, r_)
            S, V, A = load6(robot, b, S_), load6(robot, b, V_), load6(robot, b, A_)
            V_p, A_p = load6(robot, b, VP_), load6(robot, b, AP_)
            first = ad(V_p, S)
            store6(robot, b, FIRST_, first)
            store6(robot, b, SECOND_, add6(ad(A_p, S), ad(V_p, first)))
            store6(robot, b, RATE_, add6(first, ad(V, S)))
            G = store_moving_inertia(robot, b, V)
            F = sub6(inertia_times(G, A), ad_transposed(V, inertia_times(G, V)))
            store6(robot, b, F_, sub6(F, to_parent(R, r, load6(robot, b, WRENCH))))

    # Leaves to root: composite bodies, and with each the columns and rows of its joint.
    total = 0.0
    for j in range(nv, 0, -1):
        b = place(j)
        S, first = load6(robot, b, S_), load6(robot, b, FIRST_)
        G, K, p = load_inertia(robot, b, G_), load33(robot, b, K_), load3(robot, b, p_)
        by_q = add6(inertia_times(G, load6(robot, b, SECOND_)),
                    scale6(2.0, velocity_times(K, p, first)))
        by_v = add6(inertia_times(G, load6(robot, b, RATE_)),
                    scale6(2.0, velocity_times(K, p, S)))
        by_a = inertia_times(G, S)
        turning = scale(2.0, velocity_transposed_times(K, p, S))
        one, two, three = j - 1, nv + j - 1, 2 * nv + j - 1
        own_q, own_v = dot6(S, by_q), dot6(S, by_v)
        own_a = dot6(S, by_a) + constant(robot, b, ARMATURE)
        set_element(derivatives, j - 1, one, own_q)
        set_element(derivatives, j - 1, two, own_v)
        set_element(derivatives, j - 1, three, own_a)
        total += own_q + own_v + own_a
        F = load6(robot, b, F_)
        total += dot6(S, F)
        turned_force = ad_transposed(S, F)
        same_joint = follows(robot, screws, b)
        if not same_joint:
            by_q = sub6(by_q, turned_force)
        add_columns(robot, parent(robot, b), b, G_, VP_)
        b = parent(robot, b)
        while b > 0:
            i = number(robot, b)
            S_i, first_i = load6(robot, b, S_), load6(robot, b, FIRST_)
            inertia = dot6(S_i, by_a)
            set_element(derivatives, i - 1, one, dot6(S_i, by_q))
            set_element(derivatives, i - 1, two, dot6(S_i, by_v))
            set_element(derivatives, i - 1, three, inertia)
            set_element(derivatives, j - 1, 2 * nv + i - 1, inertia)
            set_element(derivatives, j - 1, i - 1,
                        dot6(load6(robot, b, SECOND_), by_a) + dot(first_i[0], turning))
            set_element(derivatives, j - 1, nv + i - 1,
                        dot6(load6(robot, b, RATE_), by_a) + dot(S_i[0], turning))
            if same_joint and not follows(robot, screws, b):
                by_q = sub6(by_q, turned_force)
                same_joint = False
            b = parent(robot, b)
    return finite(total)


@kernel
def inverse_dynamics_derivatives(robot, screws, q, v, a, derivatives):
    """Do `differentiate_inverse_dynamics`, and return whether all is finite."""
    return differentiate_inverse_dynamics(robot, screws, q, v, a, derivatives)


@helper
def add_row(X, i, factor, j):
    """Add a multiple of row j to row i."""
    for c in range(X.shape[1]):
        set_element(X, i, c, element(X, i, c) + factor * element(X, j, c))


@helper
def solve_for_unknowns(robot, derivatives, L, L_lanes, path, X, X_lanes):
    """
    Write the derivatives of the unknowns by q, v and input side by side to `X`.

    Let a be the velocities whose acceleration is given, by PRESCRIBED of the robot, and p the
    others. With D = dtau/d(q, v) at the accelerations that solve the problem, Kim (33) changes by

        M_pp da_p = dtau_p - M_pa da_a - D_p d(q, v),
        dtau_a = M_ap da_p + M_aa da_a + D_a d(q, v).

    ``derivatives`` is as `inverse_dynamics_derivatives` left it. ``L`` and ``path`` are buffers to
    work in; ``L`` and ``X``, shape (nv, 3 nv or more), are given as matrices and in lanes, see
    `rbd_ros.kernels.mass_matrix_factor`. Returns whether the results are finite.

    """
    nv = count(robot) - 1
    by_a = 2 * nv
    some_given = find_carriers(robot)
    for i in range(nv):
        for j in range(i + 1):
            set_element(L, i, j, element(derivatives, i, by_a + j))
        # What is in the same lanes as the diagonal.
        for j in range(i + 1, L.shape[1]):
            set_element(L, i, j, 0.0)
        for j in range(by_a):
            set_element(X, i, j, -element(derivatives, i, j))
        for j in range(by_a, 3 * nv):
            set_element(X, i, j, 0.0)
        set_element(X, i, by_a + i, 1.0)
    if some_given:
        for j in range(nv):
            if is_given(robot, j):
                for i in range(nv):
                    set_element(L, j, i, 0.0)
                    set_element(X, i, by_a + j, -element(derivatives, i, by_a + j))
    factorize(robot, L, L_lanes, some_given)
    solve_from_leaves(robot, L, X_lanes, some_given, path)
    solve_from_root(robot, L, X_lanes, some_given, path)
    if some_given:
        for i in range(nv):
            if is_given(robot, i):
                for j in range(3 * nv):
                    set_element(X, i, j, -element(X, i, j))
        # The torques depend on the computed accelerations of joints that carry, or are carried.
        for i in range(nv):
            b = parent(robot, place(i + 1))
            while b > 0:
                j = number(robot, b) - 1
                if is_given(robot, i) and not is_given(robot, j):
                    add_row(X, i, element(derivatives, i, by_a + j), j)
                elif is_given(robot, j) and not is_given(robot, i):
                    add_row(X, j, element(derivatives, j, by_a + i), i)
                b = parent(robot, b)
    total = 0.0
    for i in range(nv):
        # A pivot that is NaN spoils its whole row.
        total += element(X, i, 0) + element(X, i, nv) + element(X, i, by_a)
    return finite(total)


@kernel
def hybrid_dynamics_derivatives(robot, derivatives, L, L_lanes, path, X, X_lanes):
    """Do `solve_for_unknowns`, and return whether all is finite."""
    return solve_for_unknowns(robot, derivatives, L, L_lanes, path, X, X_lanes)


@kernel
def forward_dynamics_and_derivatives(robot, screws, q, v, a, tau, derivatives, L, L_lanes,
                                     path, X, X_lanes):
    """
    Write the accelerations to `a`, and da/dq, da/dv and da/dtau side by side to `X`.

    What is between the state and X are buffers to work in. Returns whether the results are finite.

    """
    return (articulated_bodies(robot, screws, q, v, a, tau)
            and inverse_dynamics_derivatives(robot, screws, q, v, a, derivatives)
            and hybrid_dynamics_derivatives(robot, derivatives, L, L_lanes, path, X, X_lanes))


@kernel
def hybrid_dynamics_and_derivatives(robot, screws, q, v, a, tau, prescribed, all_a, all_tau,
                                    derivatives, L, L_lanes, path, X, X_lanes):
    """
    Do `hybrid_dynamics`, and write the derivatives of the unknowns side by side to `X`.

    What is between the state and X are buffers to work in. Returns whether the results are finite.

    """
    fine = (take_what_is_given(robot, a, tau, prescribed, all_a, all_tau)
            and articulated_bodies(robot, screws, q, v, all_a, all_tau)
            and inverse_dynamics_derivatives(robot, screws, q, v, all_a, derivatives)
            and hybrid_dynamics_derivatives(robot, derivatives, L, L_lanes, path, X, X_lanes))
    prescribe_none(robot)
    return fine
