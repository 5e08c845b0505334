# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
M = L^T D L, and M X = B with many columns: Featherstone (2008), section 6.5.

L has other entries only where one joint carries the other; in place of the ones on its diagonal,
1 / D is stored. Velocities whose acceleration is given (PRESCRIBED of the robot) are left out of
M; their rows of X do not change.

For one state, lanes (`rbd_ros.kernels.lanes.lanes`) hold several columns: L and X are matrices,
and L_lanes and X_lanes, shape (nv, ..., WIDTH), the same memory. For several states, both are the
same arrays of lanes of states, and columns are computed one by one.

"""

from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import (
    element, entry, set_element, set_entry, vectorized, WIDTH, zeros_for_lanes)
from rbd_ros.kernels.tree.layout import (
    columns_of, constant, count, load_integer, number, parent, PRESCRIBED, SCRATCH, slot,
    store_integer)

# Columns of `robot`, which overwrite those of the kernels that ran before: the nearest velocity
# that carries the body and is not given, or -1, and the last one that it carries.
CARRIER_, LAST_, _ = columns_of(SCRATCH, 1, 1)
# Number of lanes of a row of X that `solve_row` keeps in registers.
TOGETHER = 5
# Bytes of X that one pass over L works on, so that they stay in a cache.
CACHED = 2 ** 18


def lanes_of_columns(rows, columns, together=1):
    """Return a matrix of zeros, padded with columns to whole lanes, and the same as lanes."""
    lanes = -(-columns // (WIDTH * together)) * together
    both = zeros_for_lanes((rows, lanes, WIDTH))
    return both.reshape(rows, lanes * WIDTH), both


@helper
def is_given(robot, i):
    """Return whether the acceleration of velocity i is given instead of its torque."""
    return constant(robot, slot(i + 1), PRESCRIBED) != 0.0


@helper
def find_carriers(robot):
    """Write CARRIER_ and LAST_; return whether any acceleration is given."""
    some_given = False
    for i in range(count(robot) - 1, 0, -1):
        store_integer(robot, slot(i), LAST_, i - 1)
    for i in range(count(robot) - 1, 0, -1):
        b = slot(i)
        some_given |= constant(robot, b, PRESCRIBED) != 0.0
        up = parent(robot, b)
        if up > 0:
            store_integer(robot, up, LAST_, max(load_integer(robot, up, LAST_),
                                                load_integer(robot, b, LAST_)))
        while constant(robot, up, PRESCRIBED) != 0.0:
            up = parent(robot, up)
        store_integer(robot, b, CARRIER_, number(robot, up) - 1)
    return some_given


@helper
def carrier(robot, i):
    """Return the nearest velocity that carries velocity i and is not given, or -1."""
    return load_integer(robot, slot(i + 1), CARRIER_)


@helper
def last_carried(robot, i):
    """Return the last velocity that velocity i carries."""
    return load_integer(robot, slot(i + 1), LAST_)


@helper
def lanes_up_to(robot, j):
    """Return how many lanes of a row hold columns 0 ... j."""
    return j + 1 if vectorized(robot) else j // WIDTH + 1


@helper
def factorize(robot, L, L_lanes, some_given):
    """Replace the lower triangle of M by that of L, and its diagonal by 1 / D."""
    for k in range(len(L) - 1, -1, -1):
        if some_given and is_given(robot, k):
            continue
        inverse = 1.0 / element(L, k, k)
        i = carrier(robot, k)
        while i >= 0:
            factor = inverse * element(L, k, i)
            for c in range(lanes_up_to(robot, i)):
                set_element(L_lanes, i, c,
                            element(L_lanes, i, c) - factor * element(L_lanes, k, c))
            i = carrier(robot, i)
        for c in range(lanes_up_to(robot, k)):
            set_element(L_lanes, k, c, inverse * element(L_lanes, k, c))
        set_element(L, k, k, inverse)


@helper
def lanes_of_a_pass(robot, X):
    """Return how many lanes of the rows of X one pass over L works on."""
    if vectorized(robot):
        return X.shape[1]
    return max(CACHED // (8 * WIDTH * TOGETHER * max(len(X), 1)), 1) * TOGETHER


@helper
def solve_row(robot, L, X, i, path, length, upper, begin, end):
    """
    Subtract multiples of the rows in ``path`` from row i of X.

    Only lanes ``begin`` ... ``end`` - 1 of the rows change. The factors are in column i of L if
    ``upper``, else in row i, and row i is first divided by D_ii.

    """
    inverse = element(L, i, i)
    if vectorized(robot):
        for c in range(begin, end):
            x = element(X, i, c)
            if not upper:
                x = inverse * x
            for e in range(length):
                k = path[e]
                factor = element(L, k, i) if upper else element(L, i, k)
                x = x - factor * element(X, k, c)
            set_element(X, i, c, x)
        return
    for c in range(begin, end, TOGETHER):
        x0, x1, x2 = element(X, i, c), element(X, i, c + 1), element(X, i, c + 2)
        x3, x4 = element(X, i, c + 3), element(X, i, c + 4)
        if not upper:
            x0, x1, x2, x3, x4 = (inverse * x0, inverse * x1, inverse * x2, inverse * x3,
                                  inverse * x4)
        for e in range(length):
            k = path[e]
            factor = element(L, k, i) if upper else element(L, i, k)
            x0 = x0 - factor * element(X, k, c)
            x1 = x1 - factor * element(X, k, c + 1)
            x2 = x2 - factor * element(X, k, c + 2)
            x3 = x3 - factor * element(X, k, c + 3)
            x4 = x4 - factor * element(X, k, c + 4)
        set_element(X, i, c, x0)
        set_element(X, i, c + 1, x1)
        set_element(X, i, c + 2, x2)
        set_element(X, i, c + 3, x3)
        set_element(X, i, c + 4, x4)


@helper
def solve_from_leaves(robot, L, X, some_given, path):
    """Solve L^T X = B in place; ``path`` is a buffer (nv,); given rows of L must be zero."""
    step = lanes_of_a_pass(robot, X)
    for begin in range(0, X.shape[1], step):
        for i in range(len(L) - 1, -1, -1):
            if some_given and is_given(robot, i):
                continue
            length = last_carried(robot, i) - i
            for e in range(length):
                path[e] = i + 1 + e
            solve_row(robot, L, X, i, path, length, True, begin, min(begin + step, X.shape[1]))


@helper
def solve_from_root(robot, L, X, some_given, path):
    """Solve D L X = B in place, as `solve_from_leaves`."""
    step = lanes_of_a_pass(robot, X)
    for begin in range(0, X.shape[1], step):
        for i in range(len(L)):
            if some_given and is_given(robot, i):
                continue
            length, k = 0, carrier(robot, i)
            while k >= 0:
                path[length] = k
                length += 1
                k = carrier(robot, k)
            solve_row(robot, L, X, i, path, length, False, begin, min(begin + step, X.shape[1]))


@helper
def solve_vector(robot, L, x, some_given):
    """Solve L^T D L x = b in place for a vector."""
    for i in range(len(L) - 1, -1, -1):
        if some_given and is_given(robot, i):
            continue
        y, k = entry(x, i), carrier(robot, i)
        while k >= 0:
            set_entry(x, k, entry(x, k) - element(L, i, k) * y)
            k = carrier(robot, k)
    for i in range(len(L)):
        if some_given and is_given(robot, i):
            continue
        y, k = element(L, i, i) * entry(x, i), carrier(robot, i)
        while k >= 0:
            y = y - element(L, i, k) * entry(x, k)
            k = carrier(robot, k)
        set_entry(x, i, y)
