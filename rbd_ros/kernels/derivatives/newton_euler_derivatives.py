# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics with respect to state and input.

By composite bodies; world axes and origin, symbols as in `composite_bodies`. A step of q_j moves
everything that joint j carries rigidly along S_j, but not the body on which it is mounted, with
twist V_p and acceleration A_p (gravity included). Beyond joint j,

    dV = ad_Sj V + S'_j,    dA = ad_Sj A + S''_j - ad_V S'_j,
    S'_j = ad_Vp S_j,       S''_j = ad_Ap S_j + ad_Vp S'_j,

With 2 B x = -G ad_V x - ad_V^T G x + N(G V) x, sums over composite bodies as there, and F_j the
force on the composite body of j, this gives, for joints i and j of which one carries the other,

    dtau_i/dq_j = S_i^T (I S''_j + 2 B S'_j)  - S_i^T ad_Sj^T F_j  if j does not carry i
    dtau_i/dv_j = S_i^T (I (S'_j + dS_j/dt) + 2 B S_j)
    dtau_i/da_j = S_i^T I S_j = M_ij

with I and B of the joint farther from the root. Columns of one ball or free joint carry each
other. External wrenches rotate with their bodies. Tested against Kim (table 5).

"""

from rbd_ros.kernels.articulated_bodies import articulated_recursion, copy_given, prescribe_none
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import element, finite, set_element
from rbd_ros.kernels.mass_matrix_factor import (factorize, find_carriers, is_given,
                                                solve_from_leaves, solve_from_root)
from rbd_ros.kernels.tree.coordinates import clear_matrix, coordinate, coordinate_at, put_element
from rbd_ros.kernels.tree.joints import follows
from rbd_ros.kernels.tree.layout import (
    add_columns, ARMATURE, BLOCK, block_end, columns_of, constant, count, end, fits, load3, load33,
    load6, load_inertia, number, parent, R_, r_, slot, store6, WRENCH)
from rbd_ros.kernels.tree.traversal import (
    A_, copy_from_mounts, forward_pass, G_, K_, minus_gravity, p_, S_, SDOT_, store_moving_inertia,
    V_, WORLD_COLUMNS)
from rbd_ros.kernels.tree.vectors import (
    ad, ad_transposed, add6, dot, dot6, inertia_times, scale, scale6, sub6, to_parent,
    velocity_times, velocity_transposed_times)

# Columns of `robot`. VP_ and AP_ are the motion of the body on which the joint is mounted; FIRST_,
# SECOND_ and RATE_ are S', S'' and S' + dS/dt; F_ first of the body, then of the composite body.
F_, VP_, AP_, FIRST_, SECOND_, DERIVATIVE_COLUMNS = columns_of(WORLD_COLUMNS, 6, 6, 6, 6, 6)
RATE_ = SDOT_


@helper
def store_variations(robot, b):
    """Write S', S'', S' + dS/dt, inertia and force of a single body."""
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


@helper
def write_derivatives(traits, derivatives, i, j, by_q, by_v, by_a):
    """Write the derivatives of tau_i with respect to q_j, v_j and a_j."""
    nv = len(derivatives)
    put_element(traits, derivatives, i, j, by_q)
    put_element(traits, derivatives, i, nv + j, by_v)
    put_element(traits, derivatives, i, 2 * nv + j, by_a)


@helper
def derivatives_of_motion(robot, traits, derivatives):
    """Do `inverse_dynamics_derivatives`, given the results of `forward_pass`; return a sum."""
    clear_matrix(traits, derivatives)
    # Each body alone: S', S'' and F.
    copy_from_mounts(robot, traits, V_, VP_)
    copy_from_mounts(robot, traits, A_, AP_)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            store_variations(robot, b)
    # Leaves to root: composite bodies, and of each joint j the entries with its ancestors i.
    total = 0.0
    for body in range(count(robot) - 1, 0, -1):
        b, j = slot(body), coordinate(robot, traits, body)
        S, F = load6(robot, b, S_), load6(robot, b, F_)
        G, K, p = load_inertia(robot, b, G_), load33(robot, b, K_), load3(robot, b, p_)
        by_q = add6(inertia_times(G, load6(robot, b, SECOND_)),
                    scale6(2.0, velocity_times(K, p, load6(robot, b, FIRST_))))
        by_v = add6(inertia_times(G, load6(robot, b, RATE_)),
                    scale6(2.0, velocity_times(K, p, S)))
        by_a = inertia_times(G, S)
        BtS = scale(2.0, velocity_transposed_times(K, p, S))
        own_q, own_v = dot6(S, by_q), dot6(S, by_v)
        own_a = dot6(S, by_a) + constant(robot, b, ARMATURE)
        total += own_q + own_v + own_a + dot6(S, F)
        write_derivatives(traits, derivatives, j, j, own_q, own_v, own_a)
        turned_force, same_joint = ad_transposed(S, F), follows(robot, traits, b)
        if not same_joint:
            by_q = sub6(by_q, turned_force)
        add_columns(robot, parent(robot, b), b, G_, VP_)
        b = parent(robot, b)
        while b > 0:
            i, S_i = coordinate_at(robot, b), load6(robot, b, S_)
            first, M_ij = load6(robot, b, FIRST_), dot6(S_i, by_a)
            write_derivatives(traits, derivatives, i, j, dot6(S_i, by_q), dot6(S_i, by_v), M_ij)
            write_derivatives(traits, derivatives, j, i,
                              dot6(load6(robot, b, SECOND_), by_a) + dot(first[0], BtS),
                              dot6(load6(robot, b, RATE_), by_a) + dot(S_i[0], BtS), M_ij)
            if same_joint and not follows(robot, traits, b):
                by_q, same_joint = sub6(by_q, turned_force), False
            b = parent(robot, b)
    return total


@kernel
def inverse_dynamics_derivatives(robot, traits, q, v, a, derivatives):
    """Write dtau/dq, dtau/dv and M side by side to `derivatives`, shape (nv, 3 nv)."""
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    forward_pass(robot, traits, q, v, a, minus_gravity(robot))
    return finite(derivatives_of_motion(robot, traits, derivatives))


@helper
def add_row(X, i, factor, j):
    """Add a multiple of row j to row i."""
    for c in range(X.shape[1]):
        set_element(X, i, c, element(X, i, c) + factor * element(X, j, c))


@helper
def set_up_solve(robot, derivatives, some_given, L, X):
    """Write M to L, and the right-hand sides of hybrid dynamics to X."""
    nv = count(robot) - 1
    by_a = 2 * nv
    for i in range(nv):
        for j in range(i + 1):
            set_element(L, i, j, element(derivatives, i, by_a + j))
        # The rest of the lanes that contain the diagonal.
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


@helper
def complete_torques(robot, derivatives, X):
    """Turn the rows of given accelerations into derivatives of their torques."""
    nv = count(robot) - 1
    for i in range(nv):
        if is_given(robot, i):
            for j in range(3 * nv):
                set_element(X, i, j, -element(X, i, j))
    # M_ap da_p, of joints that carry each other.
    for i in range(nv):
        b = parent(robot, slot(i + 1))
        while b > 0:
            j = number(robot, b) - 1
            if is_given(robot, i) and not is_given(robot, j):
                add_row(X, i, element(derivatives, i, 2 * nv + j), j)
            elif is_given(robot, j) and not is_given(robot, i):
                add_row(X, j, element(derivatives, j, 2 * nv + i), i)
            b = parent(robot, b)


@kernel
def hybrid_dynamics_derivatives(robot, derivatives, L, L_lanes, path, X, X_lanes):
    """
    Write the derivatives of the unknowns with respect to q, v and input side by side to `X`.

    Let a be the velocities whose acceleration is given, by PRESCRIBED of the robot, and p the
    others. With D = dtau/d(q, v) at the accelerations of the solution, Kim (33) changes by

        M_pp da_p = dtau_p - M_pa da_a - D_p d(q, v),
        dtau_a = M_ap da_p + M_aa da_a + D_a d(q, v).

    ``derivatives`` comes from `inverse_dynamics_derivatives`; L and path are buffers. L and X,
    shape (nv, 3 nv or more), are passed as matrices and as lanes (`mass_matrix_factor`).

    """
    nv = count(robot) - 1
    some_given = find_carriers(robot)
    set_up_solve(robot, derivatives, some_given, L, X)
    factorize(robot, L, L_lanes, some_given)
    solve_from_leaves(robot, L, X_lanes, some_given, path)
    solve_from_root(robot, L, X_lanes, some_given, path)
    if some_given:
        complete_torques(robot, derivatives, X)
    total = 0.0
    for i in range(nv):
        # A pivot that is NaN affects its whole row.
        total += element(X, i, 0) + element(X, i, nv) + element(X, i, 2 * nv)
    return finite(total)


@kernel
def forward_dynamics_and_derivatives(robot, traits, q, v, a, tau, derivatives, L, L_lanes,
                                     path, X, X_lanes):
    """Write the accelerations to `a`, and da/dq, da/dv and da/dtau side by side to `X`."""
    return (articulated_recursion(robot, traits, q, v, a, tau)
            and inverse_dynamics_derivatives(robot, traits, q, v, a, derivatives)
            and hybrid_dynamics_derivatives(robot, derivatives, L, L_lanes, path, X, X_lanes))


@kernel
def hybrid_dynamics_and_derivatives(robot, traits, q, v, a, tau, prescribed, all_a, all_tau,
                                    derivatives, L, L_lanes, path, X, X_lanes):
    """Do `hybrid_dynamics`, and write the derivatives of the unknowns side by side to `X`."""
    fine = (copy_given(robot, a, tau, prescribed, all_a, all_tau)
            and articulated_recursion(robot, traits, q, v, all_a, all_tau)
            and inverse_dynamics_derivatives(robot, traits, q, v, all_a, derivatives)
            and hybrid_dynamics_derivatives(robot, derivatives, L, L_lanes, path, X, X_lanes))
    prescribe_none(robot)
    return fine
