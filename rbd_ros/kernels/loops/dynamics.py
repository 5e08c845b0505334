# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of robots with closed loops, with the map V = G v of `rbd_ros.kernels.loops.closed_loops`.

    tau = G^T tau_tree(q, G v, G a + gamma),    M = G^T M_tree G,
    C = G^T (C_tree G + M_tree dG/dt)

Only the rows of dependent velocities d and the columns of independent velocities in loops of G
differ from the identity: results of the tree are mapped by adding multiples of columns and rows.
Torques and M of the tree are computed in the frame of the recursions, where `find_motion` leaves
poses, twists and accelerations.

"""

import math

from rbd_ros.kernels.articulated_bodies import copy_given, prescribe_none
from rbd_ros.kernels.composite_bodies import composite_bodies, write_mass_matrix
from rbd_ros.kernels.coupled_dynamics import complete, F_, store_force
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.loops.arrays import (
    A, BIAS, G, GAMMA, NOT_SOLVED, OWN_A, TAU, TORQUES, V)
from rbd_ros.kernels.loops.changes import write_rate
from rbd_ros.kernels.loops.closed_loops import (
    dependent_of, find_motion, involved_of, parts, report, write_acceleration)
from rbd_ros.kernels.tree.coordinates import coordinate
from rbd_ros.kernels.tree.layout import (
    ARMATURE, BLOCK, constant, count, end, LANES, load6, rows_of_terms, slot)
from rbd_ros.kernels.tree.traversal import (
    A_, accumulate_to_root, G_, S_, SDOT_, write_motions)
from rbd_ros.kernels.tree.vectors import add6, dot6


# -- Maps of results. ---------------------------------------------------------------------------
@helper
def map_columns(X, first, rows, p):
    """Replace X, from column ``first``, by X G, in the columns of independent velocities."""
    for i in range(rows):
        for block in range(len(p.blocks)):
            for e in involved_of(p, block):
                j, g = first + p.involved[e, 1], p.vectors[G + p.involved[e, 0]]
                x = X[i, j]
                for k in dependent_of(p, block):
                    x += g[p.order[k]] * X[i, first + p.order[k]]
                X[i, j] = x


@helper
def map_rows(X, first, columns, p):
    """Replace X, from row ``first``, by G^T X, in the rows of independent velocities."""
    for block in range(len(p.blocks)):
        for e in involved_of(p, block):
            i, g = first + p.involved[e, 1], p.vectors[G + p.involved[e, 0]]
            for k in dependent_of(p, block):
                d = p.order[k]
                for j in range(columns):
                    X[i, j] += g[d] * X[first + d, j]


@helper
def write_torques(p, tau):
    """Write G^T x for the torques x of the tree."""
    x = p.vectors[TORQUES]
    for k in range(len(p.own)):
        tau[k] = x[p.own[k]]
    for block in range(len(p.blocks)):
        for e in involved_of(p, block):
            i = p.involved[e, 0]
            for k in dependent_of(p, block):
                tau[i] += p.vectors[G + i, p.order[k]] * x[p.order[k]]


@helper
def write_independent(X, first, p, Y, row, column):
    """Copy the rows and columns of independent velocities of a square matrix."""
    for i in range(len(p.own)):
        for j in range(len(p.own)):
            Y[row + i, column + j] = X[first + p.own[i], p.own[j]]


# -- Inverse, forward and hybrid dynamics. ------------------------------------------------------
@helper
def write_forces(robot, traits, a, with_inertias):
    """Add the accelerations a to A_, and write F_, and G_ if ``with_inertias``."""
    write_motions(robot, traits, a, SDOT_)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            store_force(robot, b, add6(load6(robot, b, A_), load6(robot, b, SDOT_)), with_inertias)


@helper
def tree_torques(robot, traits, p, a, with_inertias):
    """
    Write the torques of the tree for accelerations a; return whether they are finite.

    Needs poses, V_, and A_ without a; if ``with_inertias``, G_ of composite bodies is written.

    """
    write_forces(robot, traits, a, with_inertias)
    accumulate_to_root(robot, G_ if with_inertias else F_, F_ + 6)
    return math.isfinite(project_forces(robot, traits, p, a, F_))


@helper
def project_forces(robot, traits, p, a, F):
    """Write the torques of the forces F on composite bodies and of rotors; return their sum."""
    x, total = p.vectors[TORQUES], 0.0
    for k in range(len(p.order)):
        x[k] = 0.0
    for i in range(1, count(robot)):
        b = slot(i)
        k = coordinate(robot, traits, i)
        torque = (dot6(load6(robot, b, S_), load6(robot, b, F))
                  + constant(robot, b, ARMATURE) * a[k])
        x[k] += torque
        total += torque
    return total


@kernel
def closed_inverse_dynamics(robot, traits, loops, q, v, a):
    """Write the row TAU of ``vectors``."""
    p = parts(loops)
    if not find_motion(robot, traits, p, q, v, a):
        return False
    fine = tree_torques(robot, traits, p, p.vectors[A], False)
    write_torques(p, p.vectors[TAU])
    return fine


@helper
def write_own_matrix(p, tree_M):
    """Write G^T M G for that of the tree."""
    own, GtM, order = p.M, p.GtM, p.order
    write_independent(tree_M, 0, p, own, 0, 0)
    for block in range(len(p.blocks)):
        for e in involved_of(p, block):
            j, g = p.involved[e, 1], p.vectors[G + p.involved[e, 0]]
            for i in range(len(order)):
                GtM[e, i] = tree_M[j, i]
            for k in dependent_of(p, block):
                d = order[k]
                for i in range(len(order)):
                    GtM[e, i] += g[d] * tree_M[d, i]
    for e in range(len(p.involved)):
        for i in range(len(p.own)):
            own[i, p.involved[e, 0]] = GtM[e, p.own[i]]
    for e in range(len(p.involved)):
        for i in range(len(p.own)):
            own[p.involved[e, 0], i] = GtM[e, p.own[i]]
    for block in range(len(p.blocks)):
        for f in involved_of(p, block):
            i, g = p.involved[f, 0], p.vectors[G + p.involved[f, 0]]
            for e in range(len(p.involved)):
                x = 0.0
                for k in dependent_of(p, block):
                    x += GtM[e, order[k]] * g[order[k]]
                own[p.involved[e, 0], i] += x


@helper
def solve_motion(robot, traits, p, factor, q, v, a, tau):
    """
    Complete a and tau, see `complete`, given a with zeros where it is unknown.

    ``factor`` has the elimination table and a buffer for L, as matrix and as lanes.

    """
    vectors, (table, L, L_lanes), total = p.vectors, factor, 0.0
    if not (find_motion(robot, traits, p, q, v, None) and write_acceleration(p, a)
            and tree_torques(robot, traits, p, vectors[A], True)):
        return False
    write_torques(p, vectors[BIAS])
    write_mass_matrix(robot, traits, p.tree_M)
    write_own_matrix(p, p.tree_M)
    status = complete((table, p.M, vectors[BIAS], L, L_lanes), a, tau)
    if status != 0:
        report(vectors, 0.0, NOT_SOLVED + status)
        return False
    for k in range(len(p.own)):
        total += a[k] + tau[k]
    return math.isfinite(total)


@helper
def solve_given(robot, traits, p, factor, q, v, a, tau, prescribed, all_a, all_tau):
    """Copy a and tau where they are given, and do `solve_motion`."""
    if not copy_given(factor[0], a, tau, prescribed, all_a, all_tau):
        return False
    for k in range(len(all_a)):
        if not prescribed[k]:
            all_a[k] = 0.0
    return solve_motion(robot, traits, p, factor, q, v, all_a, all_tau)


@helper
def solve_forward(robot, traits, p, factor, q, v, a, tau):
    """Write the accelerations to a."""
    if len(tau) != len(p.own):
        return False
    for k in range(len(p.own)):
        a[k] = 0.0
    return solve_motion(robot, traits, p, factor, q, v, a, tau)


@kernel
def closed_forward_dynamics(robot, traits, loops, table, L, L_lanes, q, v, tau):
    """Solve M a + b = tau for a, the row OWN_A of ``vectors``."""
    p = parts(loops)
    return solve_forward(robot, traits, p, (table, L, L_lanes), q, v, p.vectors[OWN_A], tau)


@kernel
def closed_hybrid_dynamics(robot, traits, loops, table, L, L_lanes, q, v, a, tau, prescribed,
                           all_a, all_tau):
    """Solve M a + b = tau for the entries of a and tau that are not given."""
    fine = solve_given(robot, traits, parts(loops), (table, L, L_lanes), q, v, a, tau, prescribed,
                       all_a, all_tau)
    prescribe_none(table)
    return fine


# -- Matrices. ----------------------------------------------------------------------------------
@kernel
def closed_terms(robot, traits, loops, q, v, tree_terms, terms):
    """
    Write the `DynamicsTerms`, with the Coriolis matrix of Christoffel, to ``terms``.

    ``tree_terms`` is a buffer for those of the unconstrained robot.

    """
    p = parts(loops)
    order, vectors = p.order, p.vectors
    n, nv = len(order), len(p.own)
    if not find_motion(robot, traits, p, q, v, None):
        return False
    write_rate(robot, traits, p)
    # Entries that the map has written are not zero any more.
    tree_terms[:] = 0.0
    fine = composite_bodies(robot, traits, q, vectors[V, :n], tree_terms)
    C, g, Cv, _, com = rows_of_terms(n)
    own_C, own_g, _, _, own_com = rows_of_terms(nv)
    for i in range(n):
        for k in range(n - nv):
            tree_terms[Cv, i] += tree_terms[i, order[k]] * vectors[GAMMA, order[k]]
    map_columns(tree_terms, 0, com, p)
    for block in range(len(p.blocks)):
        for e in involved_of(p, block):
            j = p.involved[e, 1]
            for k in dependent_of(p, block):
                for i in range(n):
                    tree_terms[C + i, j] += p.rate[k, e] * tree_terms[i, order[k]]
    map_rows(tree_terms, 0, n, p)
    map_rows(tree_terms, C, n, p)
    write_independent(tree_terms, 0, p, terms, 0, 0)
    write_independent(tree_terms, C, p, terms, own_C, 0)
    for row in range(own_com - own_g):
        for j in range(nv):
            terms[own_g + row, j] = tree_terms[g + row, p.own[j]]
    for k in range(3):
        terms[own_com, k] = tree_terms[com, k]
    return fine
