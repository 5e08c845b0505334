# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Newton's method for closed loops, along samples of the independent joints."""

import math

from rbd_ros.kernels.jit.compiled import helper, long_kernel
from rbd_ros.kernels.loops.arrays import (
    ACCEPTED, ACCURACY, G, ITERATIONS, LONGEST_STEP, STALLED, STEP)
from rbd_ros.kernels.loops.closed_loops import parts, write_map, ZERO6
from rbd_ros.kernels.tree.traversal import forward_pass


@helper
def close_by_newton(robot, traits, p, x):
    """Solve the dependent coordinates in x; return whether the loops are closed."""
    vectors, best = p.vectors, math.inf
    last = vectors.shape[1] - 1
    for _ in range(ITERATIONS):
        forward_pass(robot, traits, x, None, None, ZERO6)
        write_map(robot, p)
        gap = vectors[0, last]
        if gap <= ACCURACY or (best <= ACCEPTED and gap >= STALLED * best):
            return True
        best, size = min(best, gap), LONGEST_STEP
        for i in range(len(x)):
            size = max(size, abs(vectors[STEP, i]))
        if vectors[1, last] > 0.0 or not math.isfinite(gap + size):
            return False
        for i in range(len(x)):
            x[i] += LONGEST_STEP / size * vectors[STEP, i]
    return False


@long_kernel
def close_samples(robot, traits, loops, first, stride, samples):
    """
    Solve the dependent coordinates of samples, each from the one before, for joints of one angle.

    ``samples`` has all coordinates by sample, of which those before row ``first`` are solved.
    Return the first row that is not, because the independent joints move by more than a stride, or
    the method fails there.

    """
    p = parts(loops)
    order, dependent = p.order, len(p.order) - len(p.own)
    for row in range(first, len(samples)):
        x, before = samples[row], samples[row - 1]
        for k in range(dependent, len(order)):
            if not abs(x[order[k]] - before[order[k]]) <= stride:
                return row
        for k in range(dependent):
            i = order[k]
            x[i] = before[i]
            if row > first:
                for m in range(len(p.own)):
                    x[i] += p.vectors[G + m, i] * (x[p.own[m]] - before[p.own[m]])
        if not close_by_newton(robot, traits, p, x):
            return row
    return len(samples)
