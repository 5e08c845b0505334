# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the dynamics of robots with closed loops, along the closure.

With D_k for the derivative along column k of G, those of the tree give

    D_k tau = (D_k G)^T tau_tree + G^T (dtau_tree/dq G e_k + dtau_tree/dV D_k V + M_tree D_k A).

"""

import math

from rbd_ros.kernels.articulated_bodies import prescribe_none
from rbd_ros.kernels.derivatives.newton_euler_derivatives import (
    hybrid_dynamics_derivatives, inverse_dynamics_derivatives)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.loops.arrays import A, TORQUES, V
from rbd_ros.kernels.loops.changes import write_map_changes
from rbd_ros.kernels.loops.closed_loops import (
    dependent_of, find_motion, involved_of, parts, write_acceleration)
from rbd_ros.kernels.loops.dynamics import (
    map_columns, map_rows, solve_given, tree_torques)


@helper
def add_changes_of_motion(p, D):
    """Add to the derivatives those by V and A times the changes of these."""
    n = len(p.order)
    for i in range(n):
        for block in range(len(p.blocks)):
            for e in involved_of(p, block):
                j = p.involved[e, 1]
                x, y = D[i, j], D[i, n + j]
                for k in dependent_of(p, block):
                    d, of_V = p.order[k], p.of_V[k, e]
                    x += of_V * D[i, n + d] + p.of_A[k, e] * D[i, 2 * n + d]
                    y += (p.rate[k, e] + of_V) * D[i, 2 * n + d]
                D[i, j], D[i, n + j] = x, y


@helper
def write_torque_derivatives(robot, screws, p, q, v, a, D, of_G, derivatives):
    """
    Write dtau/dq, dtau/dv and M side by side to ``derivatives``, shape (nv, 3 nv).

    Needs the results of `find_motion` and `tree_torques`. D is a buffer for those of the
    unconstrained robot.

    """
    found, order = p.found, p.order
    n, nv, total = len(order), len(p.own), 0.0
    write_map_changes(robot, screws, p, v, a, of_G)
    # Entries that the map has written are not zero any more.
    D[:] = 0.0
    fine = inverse_dynamics_derivatives(robot, screws, q, found[V, :n], found[A, :n], D)
    add_changes_of_motion(p, D)
    for part in range(3):
        map_columns(D, part * n, n, p)
    map_rows(D, 0, 3 * n, p)
    for part in range(3):
        for i in range(nv):
            for j in range(nv):
                derivatives[i, part * nv + j] = D[p.own[i], part * n + p.own[j]]
    for block in range(len(p.blocks)):
        for c in involved_of(p, block):
            for e in involved_of(p, block):
                i, j = p.involved[c, 0], p.involved[e, 0]
                for k in dependent_of(p, block):
                    derivatives[i, j] += of_G[e, k, c] * found[TORQUES, order[k]]
                total += derivatives[i, j]
    return fine and math.isfinite(total)


@kernel
def closed_inverse_dynamics_derivatives(robot, screws, loops, q, v, a, D, of_G, derivatives):
    """Write dtau/dq, dtau/dv and M side by side; the arrays after ``a`` are buffers."""
    p = parts(loops)
    return (find_motion(robot, screws, p, q, v, a)
            and tree_torques(robot, screws, p, p.found[A], False)
            and write_torque_derivatives(robot, screws, p, q, v, a, D, of_G, derivatives))


@kernel
def closed_hybrid_derivatives(robot, screws, loops, table, L, L_lanes, D, of_G, derivatives, path,
                              q, v, a, tau, prescribed, all_a, all_tau, X, X_lanes):
    """Do `closed_hybrid_dynamics`, and write the derivatives of the unknowns to X."""
    p = parts(loops)
    # A_ is without a still.
    fine = (solve_given(robot, screws, p, (table, L, L_lanes), q, v, a, tau, prescribed, all_a,
                        all_tau)
            and write_acceleration(p, all_a)
            and tree_torques(robot, screws, p, p.found[A], False)
            and write_torque_derivatives(robot, screws, p, q, v, all_a, D, of_G, derivatives)
            and hybrid_dynamics_derivatives(table, derivatives, L, L_lanes, path, X, X_lanes))
    prescribe_none(table)
    return fine
