# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of robots with closed loops, with the map V = G v of `rbd_ros.kernels.closed_loops`.

    tau = G^T tau_tree(q, G v, G a + gamma),    M = G^T M_tree G,
    C = G^T (C_tree G + M_tree dG/dt)

Only the rows of dependent velocities d and the columns of independent velocities in loops of G
differ from the identity: results of the tree are mapped by adding multiples of columns and rows.
Torques and M of the tree are computed in the frame of the recursions, where `find_motion` leaves
poses, twists and accelerations.

"""

import math

from rbd_ros.kernels.articulated_bodies import copy_given, prescribe_none
from rbd_ros.kernels.closed_loop_arrays import (
    BIAS, DEPENDENT, FOUND_A, G, GAMMA, INVOLVED, JOINTS_A, JOINTS_V, NOT_SOLVED, TAU,
    TORQUES)
from rbd_ros.kernels.closed_loop_changes import write_rate
from rbd_ros.kernels.closed_loops import find_motion, parts, report, write_acceleration, ZERO6
from rbd_ros.kernels.composite_bodies import composite_bodies, write_mass_matrix
from rbd_ros.kernels.coordinates import column, fold_side_by_side, fold_stacked
from rbd_ros.kernels.coupled_dynamics import complete, F_, store_force
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.layout import (
    ARMATURE, BLOCK, constant, count, end, GROUND, LANES, load3, load33, load6, parent, R_, r_,
    slot, store6)
from rbd_ros.kernels.traversal import (
    A_, accumulate_to_root, G_, S_, SDOT_, world_joint_motion)
from rbd_ros.kernels.vectors import (
    add6, dot6)


# -- Maps of results. ---------------------------------------------------------------------------
@helper
def map_columns(X, first, rows, p):
    """Replace X, from column ``first``, by X G, in the columns of independent velocities."""
    for i in range(rows):
        for block in range(len(p.blocks)):
            for e in range(p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1]):
                j, g = first + p.involved[e, 1], p.found[G + p.involved[e, 0]]
                x = X[i, j]
                for k in range(p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]):
                    x += g[p.order[k]] * X[i, first + p.order[k]]
                X[i, j] = x


@helper
def map_rows(X, first, columns, p):
    """Replace X, from row ``first``, by G^T X, in the rows of independent velocities."""
    for block in range(len(p.blocks)):
        for e in range(p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1]):
            i, g = first + p.involved[e, 1], p.found[G + p.involved[e, 0]]
            for k in range(p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]):
                d = p.order[k]
                for j in range(columns):
                    X[i, j] += g[d] * X[first + d, j]


@helper
def fold_squares(velocities, n, X, folded):
    """Write G^T X G for the squares in X with the G of mimics; without these, copy X."""
    if n == len(velocities):
        for i in range(n):
            for j in range(X.shape[1]):
                folded[i, j] = X[i, j]
    else:
        fold_side_by_side(velocities, n, X, folded)


@helper
def write_torques(p, tau):
    """Write G^T x for the torques x of the tree."""
    found, x = p.found, p.found[TORQUES]
    nv = len(found) - G
    for k in range(nv):
        tau[k] = x[p.order[len(p.order) - nv + k]]
    for block in range(len(p.blocks)):
        for e in range(p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1]):
            i = p.involved[e, 0]
            for k in range(p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]):
                tau[i] += found[G + i, p.order[k]] * x[p.order[k]]


@helper
def write_independent(X, first, p, Y, row, column):
    """Copy the rows and columns of independent velocities of a square matrix."""
    nv = len(p.found) - G
    dependent = len(p.order) - nv
    for i in range(nv):
        for j in range(nv):
            Y[row + i, column + j] = X[first + p.order[dependent + i], p.order[dependent + j]]


# -- Inverse, forward and hybrid dynamics. ------------------------------------------------------
@helper
def write_forces(robot, screws, a, with_inertias):
    """Add the accelerations a of joints to A_, and write F_, and G_ if ``with_inertias``."""
    store6(robot, GROUND, SDOT_, ZERO6)
    for i in range(1, count(robot)):
        b = slot(i)
        Sa = world_joint_motion(robot, screws, i, load33(robot, b, R_), load3(robot, b, r_),
                                load6(robot, b, S_), a)
        store6(robot, b, SDOT_, add6(load6(robot, parent(robot, b), SDOT_), Sa))
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            store_force(robot, b, add6(load6(robot, b, A_), load6(robot, b, SDOT_)), with_inertias)


@helper
def tree_torques(robot, screws, p, a, with_inertias):
    """
    Write the torques of the tree for accelerations a of joints; return whether they are finite.

    Needs poses, V_, and A_ without a; if ``with_inertias``, G_ of composite bodies is written.

    """
    x, total = p.found[TORQUES], 0.0
    write_forces(robot, screws, a, with_inertias)
    accumulate_to_root(robot, G_ if with_inertias else F_, F_ + 6)
    for k in range(len(p.order)):
        x[k] = 0.0
    for i in range(1, count(robot)):
        b = slot(i)
        torque = dot6(load6(robot, b, S_), load6(robot, b, F_)) + (
            constant(robot, b, ARMATURE) * a[i - 1])
        x[column(p.velocities, i - 1)] += p.velocities[i - 1, 1] * torque
        total += torque
    return math.isfinite(total)


@kernel
def closed_inverse_dynamics(robot, screws, loops, q, v, a):
    """Write the row TAU of ``found``."""
    p = parts(loops)
    if not find_motion(robot, screws, p, q, v, a):
        return False
    fine = tree_torques(robot, screws, p, p.found[JOINTS_A], False)
    write_torques(p, p.found[TAU])
    return fine


@helper
def write_own_matrix(p, tree_M):
    """Write G^T M G for that of the tree."""
    own, GtM, order, blocks, n = p.M, p.GtM, p.order, p.blocks, len(p.order)
    nv = len(p.found) - G
    write_independent(tree_M, 0, p, own, 0, 0)
    for block in range(len(blocks)):
        for e in range(blocks[block, INVOLVED], blocks[block, INVOLVED + 1]):
            j, g = p.involved[e, 1], p.found[G + p.involved[e, 0]]
            for i in range(n):
                GtM[e, i] = tree_M[j, i]
            for k in range(blocks[block, DEPENDENT], blocks[block, DEPENDENT + 1]):
                d = order[k]
                for i in range(n):
                    GtM[e, i] += g[d] * tree_M[d, i]
    for e in range(len(p.involved)):
        for i in range(nv):
            own[i, p.involved[e, 0]] = GtM[e, order[n - nv + i]]
    for e in range(len(p.involved)):
        for i in range(nv):
            own[p.involved[e, 0], i] = GtM[e, order[n - nv + i]]
    for block in range(len(blocks)):
        for f in range(blocks[block, INVOLVED], blocks[block, INVOLVED + 1]):
            i, g = p.involved[f, 0], p.found[G + p.involved[f, 0]]
            for e in range(len(p.involved)):
                x = 0.0
                for k in range(blocks[block, DEPENDENT], blocks[block, DEPENDENT + 1]):
                    x += GtM[e, order[k]] * g[order[k]]
                own[p.involved[e, 0], i] += x


@helper
def solve_motion(robot, screws, p, factor, q, v, a, tau):
    """
    Complete a and tau, see `complete`, given a with zeros where it is unknown.

    ``factor`` has the elimination table and a buffer for L, as matrix and as lanes.

    """
    found, n, joints, total = p.found, len(p.order), len(p.velocities), 0.0
    nv, (table, L, L_lanes) = len(p.M), factor
    if not (find_motion(robot, screws, p, q, v, None) and write_acceleration(p, a)
            and tree_torques(robot, screws, p, found[JOINTS_A], True)):
        return False
    write_torques(p, found[BIAS])
    if n == joints:
        write_mass_matrix(robot, p.tree_M)
    else:
        write_mass_matrix(robot, p.joints_M)
        fold_side_by_side(p.velocities, n, p.joints_M[:, :joints], p.tree_M[:, :n])
    write_own_matrix(p, p.tree_M)
    status = complete((table, p.M, found[BIAS], L, L_lanes), a, tau)
    if status != 0:
        report(found, 0.0, NOT_SOLVED + status)
        return False
    for k in range(nv):
        total += a[k] + tau[k]
    return math.isfinite(total)


@helper
def solve_given(robot, screws, p, factor, q, v, a, tau, prescribed, all_a, all_tau):
    """Copy a and tau where they are given, and do `solve_motion`."""
    if not copy_given(factor[0], a, tau, prescribed, all_a, all_tau):
        return False
    for k in range(len(all_a)):
        if not prescribed[k]:
            all_a[k] = 0.0
    return solve_motion(robot, screws, p, factor, q, v, all_a, all_tau)


@kernel
def closed_forward_dynamics(robot, screws, loops, table, L, L_lanes, q, v, tau):
    """Solve M a + b = tau for a, the row FOUND_A of ``found``."""
    p = parts(loops)
    if len(tau) != len(p.M):
        return False
    p.found[FOUND_A, :] = 0.0
    return solve_motion(robot, screws, p, (table, L, L_lanes), q, v, p.found[FOUND_A], tau)


@kernel
def closed_hybrid_dynamics(robot, screws, loops, table, L, L_lanes, q, v, a, tau, prescribed,
                           all_a, all_tau):
    """Solve M a + b = tau for the entries of a and tau that are not given."""
    fine = solve_given(robot, screws, parts(loops), (table, L, L_lanes), q, v, a, tau, prescribed,
                       all_a, all_tau)
    prescribe_none(table)
    return fine


# -- Matrices. ----------------------------------------------------------------------------------
@kernel
def closed_terms(robot, screws, loops, q, v, tree_terms, folded, terms):
    """
    Write the `DynamicsTerms`, with the Coriolis matrix of Christoffel, to ``terms``.

    ``tree_terms`` and ``folded`` are buffers for those of all joints and of the unconstrained
    robot.

    """
    p = parts(loops)
    order, found = p.order, p.found
    n, nv, joints = len(order), len(found) - G, len(p.velocities)
    if not find_motion(robot, screws, p, q, v, None):
        return False
    write_rate(robot, p)
    fine = composite_bodies(robot, screws, q, found[JOINTS_V, :joints], tree_terms)
    fold_stacked(p.velocities, n, 2, 5, tree_terms, folded)
    gravity, coriolis = 2 * n, 2 * n + 1
    for i in range(n):
        for k in range(n - nv):
            folded[coriolis, i] += folded[i, order[k]] * found[GAMMA, order[k]]
    map_columns(folded, 0, 2 * n + 5, p)
    for block in range(len(p.blocks)):
        for e in range(p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1]):
            j = p.involved[e, 1]
            for k in range(p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]):
                for i in range(n):
                    folded[n + i, j] += p.rate[k, e] * folded[i, order[k]]
    map_rows(folded, 0, n, p)
    map_rows(folded, n, n, p)
    write_independent(folded, 0, p, terms, 0, 0)
    write_independent(folded, n, p, terms, nv, 0)
    for row in range(5):
        for j in range(nv):
            terms[2 * nv + row, j] = folded[gravity + row, order[n - nv + j]]
    for k in range(3):
        terms[2 * nv + 5, k] = tree_terms[2 * joints + 5, k]
    return fine
