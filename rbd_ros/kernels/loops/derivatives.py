# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the dynamics of robots with closed loops, along the closure.

With D_k for the derivative along column k of G, U = G e_k, those of the tree give

    D_k tau = (D_k G)^T tau_tree + G^T (dtau_tree/dq U + dtau_tree/dV D_k V + M_tree D_k A).

D_k V and D_k A cancel the changes of J V and of its rate. Beyond a joint j, motions change by
S'_j U_j and S''_j U_j (`rbd_ros.kernels.derivatives.newton_euler_derivatives`), so that

    D_k V = ad_U V + X,                    X = sum S'_j U_j + S_j (D_k V)_j,
    D_k A = ad_U A - ad_V X + Y,           Y = sum S''_j U_j + (S'_j + dS_j/dt) (D_k V)_j,

for the motions of a body, before D_k A of the joints. The forces f of the equations that balance
tau_tree, J_d^T f = -tau_d, give (D_k G)^T tau_tree = G^T (D_k J)^T f: the change of the torques of
f, which is that of forces that are fixed to frame a or act along the line between two points.

"""

import math

import numpy as np
from rbd_ros.kernels.articulated_bodies import prescribe_none
from rbd_ros.kernels.derivatives.newton_euler_derivatives import (
    derivatives_of_motion, F_, FIRST_, hybrid_dynamics_derivatives, RATE_, SECOND_)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import only_screws
from rbd_ros.kernels.loops.arrays import (
    A, BLOCK_OF, BODY_A, BODY_B, FIRST, FORCES, G, KIND, LIMIT, OWN_A, STEP, TORQUES, WRENCHES)
from rbd_ros.kernels.loops.changes import (
    carry, CHANGES_END, clear_carriers, D_, member, solve_change, U_, W_, X_, Y_)
from rbd_ros.kernels.loops.closed_loops import (
    dependent_of, DISTANCE, find_motion, frame_a, involved_of, parts, POINT, point_b,
    point_velocity, solve_forces, turned, unit, WELD, write_acceleration, ZERO6)
from rbd_ros.kernels.loops.dynamics import (
    map_rows, project_forces, solve_forward, solve_given)
from rbd_ros.kernels.tree.coordinates import coordinate
from rbd_ros.kernels.tree.layout import BLOCK, block_end, end, load6, parent, slot, store6
from rbd_ros.kernels.tree.traversal import A_, joint_motion_at, S_, SDOT_, V_, write_motions
from rbd_ros.kernels.tree.vectors import (
    ad, ad_transposed, add6, add_cross, cross, dot, dot6, rotate, row3, scale, scale6, shift_force,
    sub, sub6, write_row3)

# Column of `robot`: the force of equations on what a body carries.
H_ = CHANGES_END


# -- Changes of V and A. ------------------------------------------------------------------------
@helper
def write_direction(robot, traits, p, block, u, symmetric):
    """Write U at u, the sum X of S'_j u_j, and unless ``symmetric`` the sum Y of dS_j/dt u_j."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0:
            b, x = slot(i), u[coordinate(robot, traits, i)]
            first = load6(robot, b, FIRST_)
            carry(robot, b, U_, joint_motion_at(robot, traits, i, u))
            carry(robot, b, X_, scale6(x, first))
            if not symmetric:
                carry(robot, b, Y_, scale6(x, sub6(load6(robot, b, RATE_), first)))


@helper
def write_sums(robot, traits, p, block, u, x):
    """Write X and Y at u, where V changes by x."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0:
            b, k = slot(i), coordinate(robot, traits, i)
            carry(robot, b, X_, add6(scale6(u[k], load6(robot, b, FIRST_)),
                                     scale6(x[k], load6(robot, b, S_))))
            carry(robot, b, Y_, add6(scale6(u[k], load6(robot, b, SECOND_)),
                                     scale6(x[k], load6(robot, b, RATE_))))


@helper
def write_ends(robot, p, block, with_rate):
    """Write for the bodies that constraints join the change W of V and, if asked, D of A."""
    for k in range(len(p.table)):
        if p.table[k, BLOCK_OF] == block:
            for of_body in (BODY_A, BODY_B):
                b = np.int64(p.table[k, of_body])
                U, V, X = load6(robot, b, U_), load6(robot, b, V_), load6(robot, b, X_)
                store6(robot, b, W_, add6(ad(U, V), X))
                if with_rate:
                    store6(robot, b, D_, add6(sub6(ad(U, load6(robot, b, A_)), ad(V, X)),
                                              load6(robot, b, Y_)))


@helper
def write_motion_changes(robot, traits, p, block, c):
    """Write U for column c of G, and the dependent rows of D_c V, D_c A and column c of dG/dt."""
    vectors, order = p.vectors, p.order
    u = vectors[G + p.involved[c, 0]]
    # Then D_c V and column c of dG/dt are the same second derivatives of dependent coordinates.
    symmetric = only_screws(traits) and p.table[0, LIMIT] == math.inf
    write_direction(robot, traits, p, block, u, symmetric)
    if not symmetric:
        solve_change(robot, p, block, False, V_, U_, Y_)
        for k in dependent_of(p, block):
            p.rate[k, c] = vectors[STEP, order[k]]
    write_ends(robot, p, block, False)
    solve_change(robot, p, block, False, U_, V_, W_)
    for k in dependent_of(p, block):
        p.of_V[k, c] = vectors[STEP, order[k]]
        if symmetric:
            p.rate[k, c] = p.of_V[k, c]
    write_sums(robot, traits, p, block, u, vectors[STEP])
    write_ends(robot, p, block, True)
    solve_change(robot, p, block, True, U_, V_, W_)
    for k in dependent_of(p, block):
        p.of_A[k, c] = vectors[STEP, order[k]]


# -- Changes of the torques of the equations' forces. -------------------------------------------
@helper
def wrench(p, k):
    """Return moment and force of a constraint on body b, about the origin."""
    kind, row, f = p.table[k, KIND], np.int64(p.table[k, FIRST]), p.X
    R, r = frame_a(p, k)
    if kind == DISTANCE:
        line, _ = unit(sub(point_b(p, k), r))
        return shift_force(r, ((0.0, 0.0, 0.0), scale(f[row, FORCES], line)))
    x, y, z = 0.0, 0.0, 0.0
    if kind != POINT:
        x, y = f[row, FORCES], f[row + 1, FORCES]
        row += 2
        if kind == WELD:
            z = f[row, FORCES]
            row += 1
    force = (f[row, FORCES], f[row + 1, FORCES], f[row + 2, FORCES])
    return shift_force(r, (rotate(R, (x, y, z)), rotate(R, force)))


@helper
def wrench_change(robot, p, k, F):
    """Return the change along U of a `wrench` F."""
    a = np.int64(p.table[k, BODY_A])
    if p.table[k, KIND] == DISTANCE:
        b, r, r_b = np.int64(p.table[k, BODY_B]), frame_a(p, k)[1], point_b(p, k)
        line, length = unit(sub(r_b, r))
        u = point_velocity(robot, a, r, U_)
        force = scale(dot(line, F[1]),
                      turned(line, length, sub(point_velocity(robot, b, r_b, U_), u)))
        return (add_cross(cross(u, F[1]), r, force), force)
    return scale6(-1.0, ad_transposed(load6(robot, a, U_), F))


@helper
def write_wrenches(robot, p, block, H, changes):
    """Write to column H of the bodies that constraints join the wrenches, or their changes."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0:
            store6(robot, slot(i), H, ZERO6)
    for k in range(len(p.table)):
        if p.table[k, BLOCK_OF] == block:
            a, b = np.int64(p.table[k, BODY_A]), np.int64(p.table[k, BODY_B])
            first = np.int64(p.table[k, FIRST])
            if changes:
                F = wrench_change(robot, p, k, (row3(p.X, first, WRENCHES),
                                                row3(p.X, first, WRENCHES + 3)))
            else:
                F = wrench(p, k)
                write_row3(p.X, first, WRENCHES, F[0])
                write_row3(p.X, first, WRENCHES + 3, F[1])
            store6(robot, b, H, add6(load6(robot, b, H), F))
            store6(robot, a, H, sub6(load6(robot, a, H), F))


@helper
def carry_to_root(robot, p, row, b, H):
    """Add column H of the body of a row of ``members`` to its parent in the block; return it."""
    F = load6(robot, b, H)
    if p.members[row, 2] != 0:
        up = parent(robot, b)
        store6(robot, up, H, add6(load6(robot, up, H), F))
    return F


@helper
def write_forces(robot, p, block):
    """Write H for the torques of the tree."""
    solve_forces(p, block, p.vectors[TORQUES], FORCES)
    write_wrenches(robot, p, block, H_, False)
    for row in range(len(p.members) - 1, -1, -1):
        i = member(p, row, block)
        if i > 0:
            carry_to_root(robot, p, row, slot(i), H_)


@helper
def add_force_changes(robot, traits, p, block, c, derivatives):
    """Add G^T D_c (J^T f) to a column of the derivatives; return a sum."""
    total, j = 0.0, p.involved[c, 0]
    write_wrenches(robot, p, block, W_, True)
    for row in range(len(p.members) - 1, -1, -1):
        i = member(p, row, block)
        if i > 0:
            b, k = slot(i), coordinate(robot, traits, i)
            S = load6(robot, b, S_)
            x = (dot6(S, carry_to_root(robot, p, row, b, W_))
                 + dot6(ad(load6(robot, b, U_), S), load6(robot, b, H_)))
            for e in involved_of(p, block):
                derivatives[p.involved[e, 0], j] += x * p.vectors[G + p.involved[e, 0], k]
            total += x
    return total


@helper
def write_map_changes(robot, traits, p, derivatives):
    """
    Write how V and A change along each independent velocity that is in a loop, and dG/dt.

    The rows of dependent velocities go to of_V, of_A and rate of ``p``; (D_k G)^T tau_tree is
    added to the derivatives by q. Needs the results of `derivatives_of_motion`. Returns a sum.

    """
    total = 0.0
    for block in range(len(p.blocks)):
        clear_carriers(robot, p, block, U_, CHANGES_END)
        write_forces(robot, p, block)
        for c in involved_of(p, block):
            write_motion_changes(robot, traits, p, block, c)
            total += add_force_changes(robot, traits, p, block, c, derivatives)
    return total


# -- Derivatives. -------------------------------------------------------------------------------
@helper
def add_row(p, D, row, derivatives, i):
    """Add to a row of the derivatives D_k of torques: by q, V and A of the tree, in a row of D."""
    n, nv = len(p.order), len(p.own)
    for part in range(3):
        for j in range(nv):
            derivatives[i, part * nv + j] += D[row, part * n + p.own[j]]
    for block in range(len(p.blocks)):
        for e in involved_of(p, block):
            j, by_q, by_v, by_a = p.involved[e, 0], 0.0, 0.0, 0.0
            for k in dependent_of(p, block):
                d, of_V = p.order[k], p.of_V[k, e]
                g, x, y, z = p.vectors[G + j, d], D[row, d], D[row, n + d], D[row, 2 * n + d]
                by_q += g * x + of_V * y + p.of_A[k, e] * z
                by_v += g * y + (p.rate[k, e] + of_V) * z
                by_a += g * z
            derivatives[i, j] += by_q
            derivatives[i, nv + j] += by_v
            derivatives[i, 2 * nv + j] += by_a


@helper
def write_torque_derivatives(robot, traits, p, D, derivatives):
    """
    Write dtau/dq, dtau/dv and M side by side to ``derivatives``, shape (nv, 3 nv).

    Needs the results of `find_motion`, and A. D is a buffer for the derivatives of the tree.

    """
    a = p.vectors[A]
    # Entries that the map has written are not zero any more.
    D[:] = 0.0
    derivatives[:] = 0.0
    write_motions(robot, traits, a, SDOT_)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            store6(robot, b, A_, add6(load6(robot, b, A_), load6(robot, b, SDOT_)))
    total = derivatives_of_motion(robot, traits, D)
    total += project_forces(robot, traits, p, a, F_)
    total += write_map_changes(robot, traits, p, derivatives)
    map_rows(D, 0, 3 * len(p.order), p)
    for i in range(len(p.own)):
        add_row(p, D, p.own[i], derivatives, i)
    return math.isfinite(total)


@kernel
def closed_inverse_dynamics_derivatives(robot, traits, loops, D, q, v, a, derivatives):
    """Write dtau/dq, dtau/dv and M side by side; D is a buffer."""
    p = parts(loops)
    return (find_motion(robot, traits, p, q, v, a)
            and write_torque_derivatives(robot, traits, p, D, derivatives))


@kernel
def closed_forward_derivatives(robot, traits, loops, table, L, L_lanes, D, derivatives, path, q, v,
                               tau, X, X_lanes):
    """Do `closed_forward_dynamics`, and write the derivatives of the accelerations to X."""
    p = parts(loops)
    a = p.vectors[OWN_A]
    return (solve_forward(robot, traits, p, (table, L, L_lanes), q, v, a, tau)
            and write_acceleration(p, a)
            and write_torque_derivatives(robot, traits, p, D, derivatives)
            and hybrid_dynamics_derivatives(table, derivatives, L, L_lanes, path, X, X_lanes))


@kernel
def closed_hybrid_derivatives(robot, traits, loops, table, L, L_lanes, D, derivatives, path, q, v,
                              a, tau, prescribed, all_a, all_tau, X, X_lanes):
    """Do `closed_hybrid_dynamics`, and write the derivatives of the unknowns to X."""
    p = parts(loops)
    fine = (solve_given(robot, traits, p, (table, L, L_lanes), q, v, a, tau, prescribed, all_a,
                        all_tau)
            and write_acceleration(p, all_a)
            and write_torque_derivatives(robot, traits, p, D, derivatives)
            and hybrid_dynamics_derivatives(table, derivatives, L, L_lanes, path, X, X_lanes))
    prescribe_none(table)
    return fine
