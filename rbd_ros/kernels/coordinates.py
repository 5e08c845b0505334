# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Mimic joints: from the coordinates of the model to those of the tree, and back.

The tree has coordinates for every joint. Row k of ``positions`` is source, multiplier and offset
of the tree's position k,

    q_tree[k] = multiplier q[source] + offset,

and row k of ``velocities`` column and value of the only entry in row k of G, v_tree = G v. Torques
map back as G^T tau, matrices as G^T M G.

"""

import numpy as np
from rbd_ros.kernels.jit.compiled import helper, kernel


@helper
def column(velocities, k):
    """Return the model's velocity that determines the tree's velocity k."""
    return np.int64(velocities[k, 0])


@kernel
def expand(positions, velocities, nq, nv, q, x, y, z, tree):
    """Write the tree's q, x, y and z (velocities or accelerations) one after the other."""
    if len(q) != nq or len(x) != nv or len(y) != nv or len(z) != nv:
        return False
    end_q, n = len(positions), len(velocities)
    for k in range(end_q):
        tree[k] = positions[k, 1] * q[np.int64(positions[k, 0])] + positions[k, 2]
    for k in range(n):
        c, m = column(velocities, k), velocities[k, 1]
        tree[end_q + k] = m * x[c]
        tree[end_q + n + k] = m * y[c]
        tree[end_q + 2 * n + k] = m * z[c]
    return True


@kernel
def fold_vector(velocities, x, folded):
    """Write G^T x."""
    for c in range(len(folded)):
        folded[c] = 0.0
    for k in range(len(velocities)):
        folded[column(velocities, k)] += velocities[k, 1] * x[k]


@kernel
def fold_rows(velocities, A, folded):
    """Write G^T A."""
    width = A.shape[1]
    for i in range(len(folded)):
        for j in range(width):
            folded[i, j] = 0.0
    for k in range(len(velocities)):
        i, m = column(velocities, k), velocities[k, 1]
        for j in range(width):
            folded[i, j] += m * A[k, j]


@kernel
def fold_side_by_side(velocities, nv, A, folded):
    """Write G^T X G for each of the square matrices X side by side in A."""
    n = len(velocities)
    parts = A.shape[1] // n
    for i in range(nv):
        for j in range(parts * nv):
            folded[i, j] = 0.0
    for k in range(n):
        i, m = column(velocities, k), velocities[k, 1]
        for part in range(parts):
            for j in range(n):
                folded[i, part * nv + column(velocities, j)] += (
                    m * velocities[j, 1] * A[k, part * n + j])


@kernel
def fold_stacked(velocities, nv, squares, rows, A, folded):
    """Write G^T X G for each of the `squares` matrices X at the top of A, and x G for the rows."""
    n = len(velocities)
    for i in range(squares * nv + rows):
        for j in range(nv):
            folded[i, j] = 0.0
    for part in range(squares):
        for k in range(n):
            i, m = part * nv + column(velocities, k), velocities[k, 1]
            for j in range(n):
                folded[i, column(velocities, j)] += m * velocities[j, 1] * A[part * n + k, j]
    for k in range(rows):
        for j in range(n):
            folded[squares * nv + k, column(velocities, j)] += (
                velocities[j, 1] * A[squares * n + k, j])
