# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Forward dynamics of a robot whose contacts hold points or links still.

    M a + b = tau + J^T f,    J a = -gamma,    gamma = Jdot v

With M = L^T L, L as sparse as M, X = L^-T J^T, w_0 = L^-T (tau - b) and w = L a,

    w = w_0 + X f,    X^T w = -gamma:

of all w that satisfy the contacts, the nearest to w_0 (Gauss's principle of least constraint). Two
QR factorizations solve this, the first one with column pivots P:

    X P = Q [R; 0],    R^T = U [T; 0]

R has r rows, as many as equations are independent. With the first r columns of Q and of U,

    Q_r^T w = -T^-1 U_r^T P^T gamma,    P^T f = U_r T^-T Q_r^T (w - w_0).

Where equations depend on others, f is the shortest of all solutions, and if these equations also
contradict each other, J a + gamma is as short as possible: proximal iterations would converge to
the same. Condition numbers are not squared.

"""

import math

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import element, set_element, set_entry
from rbd_ros.kernels.task_space import factor_mass_matrix
from rbd_ros.kernels.tree.vectors import add_cross, cross

# An equation depends on others if, without their part, its column of X is shorter than this
# fraction of the longest column. Rounding leaves about 1e-15.
DEPENDENT = 1e-10
# Rows of the frame of a contact: its link's Jacobian, Jdot v and pose.
BIAS, POSE, FRAME_ROWS = 6, 7, 11


@helper
def lever(frame, point):
    """Return a point of a link relative to the link's origin, in the axes of the root."""
    T = frame[POSE:]
    return (T[0, 0] * point[0] + T[0, 1] * point[1] + T[0, 2] * point[2],
            T[1, 0] * point[0] + T[1, 1] * point[1] + T[1, 2] * point[2],
            T[2, 0] * point[0] + T[2, 1] * point[1] + T[2, 2] * point[2])


@helper
def write_jacobian(frames, table, A):
    """Write J^T to the first columns of A."""
    first = 0
    for c in range(len(table)):
        J, r, angular = frames[c], lever(frames[c], table[c]), 3 if table[c, 3] != 0.0 else 0
        for i in range(len(A)):
            turn = (J[0, i], J[1, i], J[2, i])
            slide = add_cross((J[3, i], J[4, i], J[5, i]), turn, r)
            if angular > 0:
                A[i, first], A[i, first + 1], A[i, first + 2] = turn
            linear = first + angular
            A[i, linear], A[i, linear + 1], A[i, linear + 2] = slide
        first += 3 + angular


@helper
def write_rates(frames, table, v, rate):
    """Write -Jdot v."""
    row = 0
    for c in range(len(table)):
        J, bias, r = frames[c], frames[c, BIAS], lever(frames[c], table[c])
        x, y, z = 0.0, 0.0, 0.0
        for i in range(len(v)):
            x, y, z = x + J[0, i] * v[i], y + J[1, i] * v[i], z + J[2, i] * v[i]
        turn, omega = (bias[0], bias[1], bias[2]), (x, y, z)
        slide = add_cross((bias[3], bias[4], bias[5]), turn, r)
        slide = add_cross(slide, omega, cross(omega, r))
        if table[c, 3] != 0.0:
            rate[row], rate[row + 1], rate[row + 2] = -turn[0], -turn[1], -turn[2]
            row += 3
        rate[row], rate[row + 1], rate[row + 2] = -slide[0], -slide[1], -slide[2]
        row += 3


@helper
def whiten(L, ahead, lanes):
    """Replace A by L^-T A."""
    for i in range(len(L) - 1, -1, -1):
        inverse = 1.0 / L[i, i]
        for c in range(lanes.shape[1]):
            x = inverse * element(lanes, i, c)
            set_element(lanes, i, c, x)
            j = ahead[i]
            while j >= 0:
                set_element(lanes, j, c, element(lanes, j, c) - L[i, j] * x)
                j = ahead[j]


@helper
def reflect(A, lanes, k, u, squares):
    """
    Make column k of A zero below the diagonal by a Householder reflection 1 - u u^T.

    Writes u, and the squared lengths of all columns below row k.

    """
    square = 0.0
    for e in range(k, len(A)):
        u[e] = A[e, k]
        square += u[e] * u[e]
    length = math.sqrt(square)
    scale = 1.0 / math.sqrt(length * (length + abs(u[k])))
    u[k] += math.copysign(length, u[k])
    for e in range(k, len(A)):
        u[e] *= scale
    for c in range(lanes.shape[1]):
        along = u[k] * element(lanes, k, c)
        for e in range(k + 1, len(A)):
            along = along + u[e] * element(lanes, e, c)
        set_element(lanes, k, c, element(lanes, k, c) - u[k] * along)
        square = 0.0 * along
        for e in range(k + 1, len(A)):
            x = element(lanes, e, c) - u[e] * along
            set_element(lanes, e, c, x)
            square = square + x * x
        set_entry(squares, c, square)


@helper
def reflect_back(U, rank, x):
    """Replace x by Q x."""
    for k in range(rank - 1, -1, -1):
        along = 0.0
        for e in range(k, len(x)):
            along += U[k, e] * x[e]
        for e in range(k, len(x)):
            x[e] -= along * U[k, e]


@helper
def triangularize(A, lanes, order, U, squares, square_lanes):
    """Factorize the columns in ``order`` of A, with pivots, to Q R; return the rank."""
    most, equations = 0.0, len(order)
    for c in range(lanes.shape[1]):
        square = 0.0 * element(lanes, 0, c)
        for e in range(len(A)):
            square = square + element(lanes, e, c) * element(lanes, e, c)
        set_entry(square_lanes, c, square)
    for c in range(equations):
        order[c] = c
        most = max(most, squares[c])
    for k in range(min(len(A), equations)):
        # The longest of the columns that remain is next.
        best = k
        for c in range(k + 1, equations):
            if squares[c] > squares[best]:
                best = c
        if not squares[best] > DEPENDENT * DEPENDENT * most:
            return k
        if best != k:
            order[k], order[best] = order[best], order[k]
            for e in range(len(A)):
                A[e, k], A[e, best] = A[e, best], A[e, k]
        reflect(A, lanes, k, U[k], square_lanes)
    return min(len(A), equations)


@helper
def solve(A, rank, order, B, B_lanes, V, square_lanes, rate, w, f):
    """Write w and P^T f, given R and Q^T w_0 in A; B and V are buffers."""
    last = len(order)
    for c in range(last):
        for k in range(last):
            B[c, k] = A[k, c] if k < rank and k <= c else 0.0
        B[c, last] = rate[order[c]]
    for k in range(rank):
        reflect(B, B_lanes, k, V[k], square_lanes)
    # Q_r^T w, from the last row of T to the first, and T^-T Q_r^T (w - w_0).
    for i in range(len(A)):
        w[i] = A[i, last]
    for k in range(rank - 1, -1, -1):
        x = B[k, last]
        for c in range(k + 1, rank):
            x -= B[k, c] * w[c]
        w[k] = x / B[k, k]
    for k in range(rank):
        x = w[k] - A[k, last]
        for c in range(k):
            x -= B[c, k] * f[c]
        f[k] = x / B[k, k]
    for c in range(rank, last):
        f[c] = 0.0
    reflect_back(V, rank, f)


@helper
def write_wrenches(table, f, wrenches):
    """Write moment and force at each contact."""
    row = 0
    for c in range(len(table)):
        for e in range(6):
            held = e > 2 or table[c, 3] != 0.0
            wrenches[c, e] = f[row] if held else 0.0
            row += 1 if held else 0


@kernel
def contact_jacobian(frames, table, A):
    """Write J^T."""
    write_jacobian(frames, table, A)


@kernel
def constrained_dynamics(M, b, ahead, frames, table, v, tau, L, A, A_lanes, U, B, B_lanes, V,
                         squares, square_lanes, order, work, a, wrenches):
    """
    Write the accelerations a (nv,) and the wrenches (contacts, 6) on the robot.

    ``frames`` (contacts, FRAME_ROWS, width) are of the contacts' links, in the axes of the root.
    A row of ``table`` has a point of the link, and 1 if its rotation is held too, else 0.
    ``ahead`` is as for `factor_mass_matrix`. The others are buffers for m equations: L (nv, nv), A
    (nv, more than m), U (m, nv), B (m, more than m), V (m, m), squares (as many as A has columns),
    the integers ``order`` (m,), and work (4, the larger of m and nv); arrays ``*_lanes`` are the
    same memory. Returns 1 + the number of independent equations; 0 if a number is not finite; or
    minus 1 + the first velocity that moves no inertia.

    """
    n, last = len(M), len(order)
    w, rate, f, ordered = work[0, :n], work[1, :last], work[2, :last], work[3, :last]
    if len(v) != n or len(tau) != n:
        return 0
    if n == 0:
        return 1
    singular = factor_mass_matrix(M, ahead, L)
    if singular > 0:
        return -singular
    write_jacobian(frames, table, A)
    write_rates(frames, table, v, rate)
    for i in range(n):
        A[i, last] = tau[i] - b[i]
    whiten(L, ahead, A_lanes)
    rank = triangularize(A, A_lanes, order, U, squares, square_lanes)
    solve(A, rank, order, B, B_lanes, V, square_lanes, rate, w, ordered)
    reflect_back(U, rank, w)
    total = 0.0
    for i in range(n):
        x, j = w[i], ahead[i]
        while j >= 0:
            x -= L[i, j] * a[j]
            j = ahead[j]
        a[i] = x / L[i, i]
        total += a[i]
    for c in range(last):
        f[order[c]] = ordered[c]
        total += ordered[c]
    write_wrenches(table, f, wrenches)
    return 1 + rank if math.isfinite(total) else 0
