# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of robots with closed loops, with the map V = G v of `rbd_ros.kernels.closed_loops`.

    tau = G^T tau_tree(q, G v, G a + gamma),    M = G^T M_tree G,
    C = G^T (C_tree G + M_tree dG/dt)

Only the rows of dependent velocities d and the columns of independent velocities in loops of G
differ from the identity: results of the tree are mapped by adding multiples of columns and rows,
in place.

"""

import math

from rbd_ros.kernels.closed_loop_changes import (
    ALL_GROUPS, change_of_body, change_pass, U_, W_, write_changes)
from rbd_ros.kernels.closed_loops import (
    expand_velocity, find_motion, G, GAMMA, JOINTS_A, JOINTS_V, reflect, report, solve_equations,
    V, velocity_pass, ZERO6)
from rbd_ros.kernels.composite_bodies import composite_bodies, mass_matrix
from rbd_ros.kernels.coordinates import (
    dense_hybrid_status, fold_side_by_side, fold_stacked, fold_vector)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.layout import end, load6, parent, slot, store6
from rbd_ros.kernels.newton_euler import newton_euler
from rbd_ros.kernels.newton_euler_derivatives import inverse_dynamics_derivatives
from rbd_ros.kernels.traversal import forward_pass, V_

NOT_SOLVED = 100    # status of a dense solve in ``found``, added to the velocity


# -- Maps of results. ---------------------------------------------------------------------------
@helper
def map_columns(X, first, rows, order, involved, found):
    """Replace X, from column ``first``, by X G, in the columns of independent velocities."""
    dependent = len(order) - (len(found) - G)
    for e in range(len(involved)):
        j = first + order[dependent + involved[e, 0]]
        for k in range(dependent):
            d = order[k]
            g = found[G + involved[e, 0], d]
            if g != 0.0:
                for i in range(rows):
                    X[i, j] += g * X[i, first + d]


@helper
def map_rows(X, first, columns, order, involved, found):
    """Replace X, from row ``first``, by G^T X, in the rows of independent velocities."""
    dependent = len(order) - (len(found) - G)
    for e in range(len(involved)):
        i = first + order[dependent + involved[e, 0]]
        for k in range(dependent):
            d = order[k]
            g = found[G + involved[e, 0], d]
            if g != 0.0:
                for j in range(columns):
                    X[i, j] += g * X[first + d, j]


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
def write_torques(x, order, involved, found, tau):
    """Write G^T x."""
    nv = len(found) - G
    dependent = len(order) - nv
    for k in range(nv):
        tau[k] = x[order[dependent + k]]
    for e in range(len(involved)):
        k = involved[e, 0]
        for i in range(dependent):
            tau[k] += found[G + k, order[i]] * x[order[i]]


@helper
def write_independent(X, first, order, nv, Y, row, column):
    """Copy the rows and columns of independent velocities of a square matrix."""
    dependent = len(order) - nv
    for i in range(nv):
        for j in range(nv):
            Y[row + i, column + j] = X[first + order[dependent + i], order[dependent + j]]


# -- Inverse, forward and hybrid dynamics. ------------------------------------------------------
@helper
def tree_torques(robot, screws, velocities, q, found, folded):
    """Write the torques of the tree at V and A; return whether they are finite."""
    n = len(velocities)
    fine = newton_euler(robot, screws, q, found[JOINTS_V, :n], found[JOINTS_A, :n])
    fold_vector(velocities, robot[end(robot):], folded)
    return fine


@kernel
def closed_inverse_dynamics(robot, screws, loops, velocities, order, involved, q, v, a, equations,
                            found, folded, tau):
    """Write tau."""
    if not find_motion(robot, screws, loops, velocities, order, involved, q, v, a, equations,
                       found):
        return False
    fine = tree_torques(robot, screws, velocities, q, found, folded)
    write_torques(folded, order, involved, found, tau)
    return fine


@kernel
def closed_hybrid_dynamics(robot, screws, loops, velocities, order, involved, q, v, a, tau,
                           prescribed, equations, found, folded, tree_M, M, all_a, all_tau):
    """
    Solve M a + b = tau for the entries of a and tau that are not given, `dense_hybrid_status`.

    M is a buffer for the matrix of the unconstrained robot, one for that of the independent
    velocities, one for its factor, and b.

    """
    n, nv = len(order), len(found) - G
    if not find_motion(robot, screws, loops, velocities, order, involved, q, v, None, equations,
                       found):
        return False
    whole, own, factor, b = M[:n], M[n:n + nv], M[n + nv:n + 2 * nv], M[n + 2 * nv, :nv]
    if not tree_torques(robot, screws, velocities, q, found, folded):
        return False
    write_torques(folded, order, involved, found, b)
    mass_matrix(robot, screws, q, tree_M)
    fold_squares(velocities, n, tree_M, whole)
    map_columns(whole, 0, n, order, involved, found)
    map_rows(whole, 0, n, order, involved, found)
    write_independent(whole, 0, order, nv, own, 0, 0)
    status = dense_hybrid_status(own, b, a, tau, prescribed, all_a, all_tau, factor)
    if status != 0:
        report(found, 0.0, NOT_SOLVED + status)
    return status == 0


# -- Matrices. ----------------------------------------------------------------------------------
@helper
def solve_change(dJ, order, involved, group, equations, found, X, x, change):
    """Write the dependent rows of P dJ G, the change of G for that of J in a group of loops."""
    rows, dependent = len(X), len(order) - (len(found) - G)
    change[:] = 0.0
    for e in range(len(involved)):
        if group != ALL_GROUPS and involved[e, 1] != group:
            continue
        j = order[dependent + involved[e, 0]]
        for i in range(rows):
            X[i, e] = dJ[i, j]
            for k in range(dependent):
                X[i, e] += dJ[i, order[k]] * found[G + involved[e, 0], order[k]]
        for k in range(dependent):
            reflect(equations, k, order[k], X, e)
        solve_equations(equations, order, dependent, X, e, x)
        for k in range(dependent):
            change[k, e] = x[order[k]]


@kernel
def closed_terms(robot, screws, loops, velocities, order, involved, q, v, equations, found, J_t,
                 J_u, J_tu, X, x, rate, tree_terms, folded, terms):
    """
    Write the `DynamicsTerms`, with the Coriolis matrix of Christoffel, to ``terms``.

    ``tree_terms`` and ``folded`` are buffers for those of all joints and of the unconstrained
    robot, ``rate`` for the rows of dependent velocities of dG/dt.

    """
    n, nv, joints = len(order), len(found) - G, len(velocities)
    dependent = n - nv
    if not find_motion(robot, screws, loops, velocities, order, involved, q, v, None, equations,
                       found):
        return False
    for k in range(joints):
        found[JOINTS_A, k] = 0.0
    change_pass(robot, screws, found[JOINTS_A], found[JOINTS_V], found[JOINTS_A])
    write_changes(robot, loops, velocities, ALL_GROUPS, J_t, J_u, J_tu)
    solve_change(J_t, order, involved, ALL_GROUPS, equations, found, X, x, rate)
    fine = composite_bodies(robot, screws, q, found[JOINTS_V, :joints], tree_terms)
    fold_stacked(velocities, n, 2, 5, tree_terms, folded)
    gravity, coriolis = 2 * n, 2 * n + 1
    for i in range(n):
        for k in range(dependent):
            folded[coriolis, i] += folded[i, order[k]] * found[GAMMA, order[k]]
    map_columns(folded, 0, 2 * n + 5, order, involved, found)
    for e in range(len(involved)):
        j = order[dependent + involved[e, 0]]
        for k in range(dependent):
            for i in range(n):
                folded[n + i, j] += rate[k, e] * folded[i, order[k]]
    map_rows(folded, 0, n, order, involved, found)
    map_rows(folded, n, n, order, involved, found)
    write_independent(folded, 0, order, nv, terms, 0, 0)
    write_independent(folded, n, order, nv, terms, nv, 0)
    for row in range(5):
        for j in range(nv):
            terms[2 * nv + row, j] = folded[gravity + row, order[dependent + j]]
    for k in range(3):
        terms[2 * nv + 5, k] = tree_terms[2 * joints + 5, k]
    return fine


# -- Derivatives. -------------------------------------------------------------------------------
@helper
def write_direction(velocities, order, dependent, values, k, x, joints):
    """Write the velocities of joints whose dependent entries are row k of ``values``."""
    for i in range(len(order)):
        x[i] = 0.0
    for i in range(dependent):
        x[order[i]] = values[i, k]
    expand_velocity(velocities, x, joints)


@helper
def loop_change_pass(robot, screws, members, group, u, v, w):
    """Do `change_pass` for the bodies of a group of loops, whose carriers do not move along u."""
    for row in range(len(members)):
        if members[row, 0] == group:
            i, U, W = members[row, 1], ZERO6, ZERO6
            up = parent(robot, slot(i))
            if members[row, 2] == 1:
                U, W = load6(robot, up, U_), load6(robot, up, W_)
            else:
                store6(robot, up, U_, ZERO6)
                store6(robot, up, W_, ZERO6)
            change_of_body(robot, screws, i, U, W, u, v, w)


@helper
def write_map_changes(robot, screws, loops, velocities, order, involved, q, v, a, equations, found,
                      work):
    """
    Write how G, V and A change along each independent velocity k that is in a loop.

    The rows of dependent velocities go to the arrays of ``work``: those of dG (``of_G``), of
    dG v (``of_V``), of dG a + d gamma (``of_A``), and of dG/dt (``rate``).

    """
    J_t, J_u, J_tu, X, x, u, w, of_G, of_V, of_A, rate, members = work
    n, nv, width = len(order), len(found) - G, len(involved)
    dependent = n - nv
    forward_pass(robot, screws, q, None, None, ZERO6)
    velocity_pass(robot, screws, found[JOINTS_V], V_)
    w[:], rate[:] = 0.0, 0.0
    for c in range(width):
        expand_velocity(velocities, found[G + involved[c, 0]], u)
        loop_change_pass(robot, screws, members, involved[c, 1], u, found[JOINTS_V], w)
        write_changes(robot, loops, velocities, involved[c, 1], J_t, J_u, J_tu)
        solve_change(J_u, order, involved, involved[c, 1], equations, found, X, x, of_G[c])
        for k in range(dependent):
            of_V[k, c], of_A[k, c] = 0.0, 0.0
            for e in range(width):
                of_V[k, c] += of_G[c, k, e] * v[involved[e, 0]]
                of_A[k, c] += of_G[c, k, e] * a[involved[e, 0]]
                rate[k, e] += of_G[c, k, e] * v[involved[c, 0]]
    for c in range(width):
        expand_velocity(velocities, found[G + involved[c, 0]], u)
        write_direction(velocities, order, dependent, of_V, c, x, w)
        loop_change_pass(robot, screws, members, involved[c, 1], u, found[JOINTS_V], w)
        write_changes(robot, loops, velocities, involved[c, 1], J_t, J_u, J_tu)
        for i in range(len(X)):
            X[i, 0] = 0.0
            for j in range(n):
                X[i, 0] += J_tu[i, j] * found[V, j] + J_u[i, j] * found[GAMMA, j]
            for k in range(dependent):
                X[i, 0] += J_t[i, order[k]] * of_V[k, c]
        for k in range(dependent):
            reflect(equations, k, order[k], X, 0)
        solve_equations(equations, order, dependent, X, 0, x)
        for k in range(dependent):
            of_A[k, c] += x[order[k]]


@kernel
def closed_inverse_dynamics_derivatives(
        robot, screws, loops, velocities, order, involved, q, v, a, equations, found, folded,
        tree_D, D, J_t, J_u, J_tu, X, x, u, w, of_G, of_V, of_A, rate, members, derivatives):
    """
    Write dtau/dq, dtau/dv and M side by side to ``derivatives``, shape (nv, 3 nv).

    ``tree_D`` and D are buffers for those of all joints and of the unconstrained robot.

    """
    n, nv, joints = len(order), len(found) - G, len(velocities)
    dependent = n - nv
    if not find_motion(robot, screws, loops, velocities, order, involved, q, v, a, equations,
                       found):
        return False
    fine = (tree_torques(robot, screws, velocities, q, found, folded)
            and inverse_dynamics_derivatives(robot, screws, q, found[JOINTS_V, :joints],
                                             found[JOINTS_A, :joints], tree_D))
    fold_squares(velocities, n, tree_D, D)
    write_map_changes(robot, screws, loops, velocities, order, involved, q, v, a, equations,
                      found, (J_t, J_u, J_tu, X, x, u, w, of_G, of_V, of_A, rate, members))
    for e in range(len(involved)):
        j = order[dependent + involved[e, 0]]
        for k in range(dependent):
            d = order[k]
            for i in range(n):
                D[i, j] += of_V[k, e] * D[i, n + d] + of_A[k, e] * D[i, 2 * n + d]
                D[i, n + j] += (rate[k, e] + of_V[k, e]) * D[i, 2 * n + d]
    for part in range(3):
        map_columns(D, part * n, n, order, involved, found)
    map_rows(D, 0, 3 * n, order, involved, found)
    for part in range(3):
        for i in range(nv):
            for j in range(nv):
                derivatives[i, part * nv + j] = D[order[dependent + i],
                                                  part * n + order[dependent + j]]
    total = 0.0
    for c in range(len(involved)):
        for e in range(len(involved)):
            for k in range(dependent):
                derivatives[involved[c, 0], involved[e, 0]] += of_G[e, k, c] * folded[order[k]]
            total += derivatives[involved[c, 0], involved[e, 0]]
    return fine and math.isfinite(total)
