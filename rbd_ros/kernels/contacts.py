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
from rbd_ros.kernels.task_space import factor_mass_matrix
from rbd_ros.kernels.vectors import add_cross, cross

# An equation depends on others if, without their part, its column of X is shorter than this
# fraction of the longest column. Rounding leaves about 1e-15.
DEPENDENT = 1e-10
# Rows of the frame of a contact: its link's Jacobian, Jdot v and pose. Rows of `work`.
BIAS, POSE, FRAME_ROWS = 6, 7, 11
ALONG, FACTORS, DIAGONAL, FACTORS_OF_T, DIAGONAL_OF_T, RATE, WORK_ROWS = range(7)


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
def whiten(L, ahead, A):
    """Replace A by L^-T A."""
    for i in range(len(L) - 1, -1, -1):
        inverse = 1.0 / L[i, i]
        for c in range(A.shape[1]):
            A[i, c] *= inverse
        j = ahead[i]
        while j >= 0:
            factor = L[i, j]
            for c in range(A.shape[1]):
                A[j, c] -= factor * A[i, c]
            j = ahead[j]


@helper
def reflect(A, k, columns, along, factors, diagonal):
    """
    Make column k of A zero below the diagonal by a Householder reflection.

    The reflection 1 - factor u u^T is applied to the columns after k; u replaces column k.

    """
    square = 0.0
    for e in range(k, len(A)):
        square += A[e, k] * A[e, k]
    length, pivot = math.sqrt(square), A[k, k]
    factors[k] = 1.0 / (length * (length + abs(pivot)))
    diagonal[k] = -math.copysign(length, pivot)
    A[k, k] = pivot + math.copysign(length, pivot)
    for c in range(k + 1, columns):
        along[c] = 0.0
    for e in range(k, len(A)):
        u = A[e, k]
        for c in range(k + 1, columns):
            along[c] += u * A[e, c]
    for e in range(k, len(A)):
        u = factors[k] * A[e, k]
        for c in range(k + 1, columns):
            A[e, c] -= u * along[c]


@helper
def reflect_back(A, rank, factors, last):
    """Replace column ``last`` of A by Q times that column."""
    for k in range(rank - 1, -1, -1):
        along = 0.0
        for e in range(k, len(A)):
            along += A[e, k] * A[e, last]
        along *= factors[k]
        for e in range(k, len(A)):
            A[e, last] -= along * A[e, k]


@helper
def triangularize(A, order, work):
    """Factorize all columns of A but the last, with pivots, to Q R; return the rank."""
    along, equations, most = work[ALONG], len(order), 0.0
    for c in range(equations):
        order[c] = c
    for k in range(min(len(A), equations)):
        # The longest of the columns that remain is next.
        for c in range(k, equations):
            along[c] = 0.0
        for e in range(k, len(A)):
            for c in range(k, equations):
                along[c] += A[e, c] * A[e, c]
        best = k
        for c in range(k + 1, equations):
            if along[c] > along[best]:
                best = c
        most = max(most, along[best])
        if not along[best] > DEPENDENT * DEPENDENT * most:
            return k
        if best != k:
            order[k], order[best] = order[best], order[k]
            for e in range(len(A)):
                A[e, k], A[e, best] = A[e, best], A[e, k]
        reflect(A, k, equations + 1, along, work[FACTORS], work[DIAGONAL])
    return min(len(A), equations)


@helper
def solve(A, rank, order, work, B):
    """Replace the last column of A, Q^T w_0, by Q^T w, and column ``rank`` of B by P^T f."""
    last, diagonal = len(order), work[DIAGONAL]
    for c in range(last):
        for k in range(rank):
            B[c, k] = A[k, c] if c > k else diagonal[k] if c == k else 0.0
        B[c, rank] = work[RATE, order[c]]
    for k in range(rank):
        reflect(B, k, rank + 1, work[ALONG], work[FACTORS_OF_T], work[DIAGONAL_OF_T])
    # Q_r^T w, from the last row of T to the first.
    T = work[DIAGONAL_OF_T]
    for k in range(rank - 1, -1, -1):
        x = B[k, rank]
        for c in range(k + 1, rank):
            x -= B[k, c] * B[c, rank]
        B[k, rank] = x / T[k]
    # f
    for k in range(rank):
        x, A[k, last] = B[k, rank] - A[k, last], B[k, rank]
        for c in range(k):
            x -= B[c, k] * B[c, rank]
        B[k, rank] = x / T[k]
    for c in range(rank, last):
        B[c, rank] = 0.0
    reflect_back(B, rank, work[FACTORS_OF_T], rank)


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
def constrained_dynamics(M, b, ahead, frames, table, v, tau, L, A, B, order, work, a, wrenches):
    """
    Write the accelerations a (nv,) and the wrenches (contacts, 6) on the robot.

    ``frames`` (contacts, FRAME_ROWS, width) are of the contacts' links, in the axes of the root.
    A row of ``table`` has a point of the link and 1 if its rotation is held, too, else 0. ``ahead``
    is as for `factor_mass_matrix`. L (nv, nv), A (nv, m + 1), B (m, m + 1), the integers ``order``
    (m,) and ``work`` (WORK_ROWS, m + 1) are buffers, for m equations. Returns 1 + the number of
    independent equations; 0 if a number is not finite; or minus 1 + the first velocity that moves
    no inertia.

    """
    n, last = len(M), len(order)
    if len(v) != n or len(tau) != n:
        return 0
    singular = factor_mass_matrix(M, ahead, L)
    if singular > 0:
        return -singular
    write_jacobian(frames, table, A)
    write_rates(frames, table, v, work[RATE])
    for i in range(n):
        A[i, last] = tau[i] - b[i]
    whiten(L, ahead, A)
    rank = triangularize(A, order, work)
    solve(A, rank, order, work, B)
    reflect_back(A, rank, work[FACTORS], last)
    total = 0.0
    for i in range(n):
        x, j = A[i, last], ahead[i]
        while j >= 0:
            x -= L[i, j] * a[j]
            j = ahead[j]
        a[i] = x / L[i, i]
        total += a[i]
    for c in range(last):
        work[RATE, order[c]] = B[c, rank]
        total += B[c, rank]
    write_wrenches(table, work[RATE], wrenches)
    return 1 + rank if math.isfinite(total) else 0
