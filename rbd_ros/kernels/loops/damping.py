# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Equations that damp the dependent velocities of a block of loops, on request."""

import math

from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.loops.arrays import DEPENDENT, EQUATION, LIMIT
from rbd_ros.kernels.task_space import orthogonalize, positive_root


@helper
def damp_block(p, block):
    """
    Write a root of D to the last equations of a block, one for each dependent velocity.

    D = sum (sigma_0^2 - sigma_i^2) v_i v_i^T over the singular values sigma_i of J_d below
    sigma_0, the largest one over the condition limit, with the right singular vectors v_i. Return
    the sum of the roots of the factors, zero where nothing is damped.

    """
    J, limit, damping = p.J, p.table[0, LIMIT], 0.0
    start, first, last = (p.blocks[block, EQUATION], p.blocks[block, DEPENDENT],
                          p.blocks[block, DEPENDENT + 1])
    dependent = last - first
    rows = p.blocks[block, EQUATION + 1] - start - dependent
    if limit == math.inf or rows <= 0:
        return 0.0
    columns, vectors = p.damping[first:last, :rows], p.damping[first:last, rows:]
    for c in range(dependent):
        for i in range(rows):
            columns[c, i] = J[start + i, p.order[first + c]]
        for i in range(dependent):
            vectors[c, i] = 1.0 if i == c else 0.0
    orthogonalize(columns, rows, vectors, dependent)
    most = 0.0
    for c in range(dependent):
        square = 0.0
        for i in range(rows):
            square += columns[c, i] * columns[c, i]
        vectors[c, dependent], most = square, max(most, square)
    for c in range(dependent):
        root = positive_root(most / (limit * limit) - vectors[c, dependent])
        damping += root
        for i in range(dependent):
            J[start + rows + c, p.order[first + i]] = root * vectors[c, i]
    return damping
