# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of motion seen from one link, with the damping of `rbd_ros.task_space_dynamics`.

With M = L^T L, which has entries in L only where M has some, and X = L^-T J^T,

    J M^-1 J^T = X^T X,    Lambda = (X^T X + D)^-1 = R^-1 R^-T,    J_bar = L^-1 X Lambda,

where Q R is the QR factorization of X with a root of D below it: nothing is squared on the way.
Rows of J^T and X are zero but for the joints on the way from the root to the link. The singular
values of J, which has six, are those of the factor R_J of J^T = Q_J R_J, by Jacobi's rotations of
its columns until they are at right angles: then their lengths are the singular values, and the
rotations give the left singular vectors of J [Hestenes (1958)].

Lynch and Park (9.90)-(9.99).

"""

import math

from rbd_ros.kernels.articulated_bodies import SINGULAR
from rbd_ros.kernels.jit.compiled import helper, kernel

# A singular value that is a smaller share of the largest is taken for rounding of zero.
ROUNDING = 1e-14
# Cosine at which two columns count as orthogonal, and the largest number of sweeps.
RIGHT_ANGLE = 1e-15
SWEEPS = 30
# What `task_space` returns where the link does not move.
UNMOVED = -1


@helper
def factor_mass_matrix(M, ahead, L):
    """
    Write L with M = L^T L; return 1 + the first velocity that moves no inertia, or 0.

    ``ahead[i]`` is the last velocity before i that has entries with it in M, or -1; that one has
    entries with all previous ones with which i has entries.

    """
    n = len(ahead)
    for i in range(n):
        j = i
        while j >= 0:
            L[i, j] = M[i, j]
            j = ahead[j]
    for k in range(n - 1, -1, -1):
        if not L[k, k] > SINGULAR * M[k, k]:
            return k + 1
        L[k, k] = math.sqrt(L[k, k])
        inverse = 1.0 / L[k, k]
        i = ahead[k]
        while i >= 0:
            L[k, i] *= inverse
            i = ahead[i]
        i = ahead[k]
        while i >= 0:
            j = i
            while j >= 0:
                L[i, j] -= L[k, i] * L[k, j]
                j = ahead[j]
            i = ahead[i]
    return 0


@helper
def triangularize(A, rows):
    """Replace the first rows of A, six numbers each, by R of A = Q R, by reflections."""
    for k in range(min(rows, 6)):
        square = 0.0
        for e in range(k, rows):
            square += A[e, k] * A[e, k]
        if square == 0.0:
            continue
        length = math.sqrt(square)
        pivot = A[k, k]
        # The reflection is 1 - factor u u^T, with u in column k.
        factor = 1.0 / (length * (length + abs(pivot)))
        A[k, k] = pivot + math.copysign(length, pivot)
        for c in range(k + 1, 6):
            along = 0.0
            for e in range(k, rows):
                along += A[e, k] * A[e, c]
            along *= factor
            for e in range(k, rows):
                A[e, c] -= along * A[e, k]
        A[k, k] = -math.copysign(length, pivot)
        for e in range(k + 1, rows):
            A[e, k] = 0.0


@helper
def singular_values(R, turned, vectors, values):
    """
    Write the singular values of R, 6 x 6, and in each row of `vectors` one of R^T's left ones.

    ``turned`` is a buffer for the columns of R, each in a row.

    """
    for k in range(6):
        for e in range(6):
            turned[k, e] = R[e, k]
            vectors[k, e] = 1.0 if e == k else 0.0
    for _ in range(SWEEPS):
        done = True
        for a in range(5):
            for b in range(a + 1, 6):
                aa = bb = ab = 0.0
                for e in range(6):
                    aa += turned[a, e] * turned[a, e]
                    bb += turned[b, e] * turned[b, e]
                    ab += turned[a, e] * turned[b, e]
                if ab == 0.0 or abs(ab) <= RIGHT_ANGLE * math.sqrt(aa) * math.sqrt(bb):
                    continue
                done = False
                zeta = (bb - aa) / (2.0 * ab)
                t = math.copysign(1.0 / (abs(zeta) + math.sqrt(1.0 + zeta * zeta)), zeta)
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = c * t
                for e in range(6):
                    x, y = turned[a, e], turned[b, e]
                    turned[a, e], turned[b, e] = c * x - s * y, s * x + c * y
                    x, y = vectors[a, e], vectors[b, e]
                    vectors[a, e], vectors[b, e] = c * x - s * y, s * x + c * y
        if done:
            break
    for k in range(6):
        square = 0.0
        for e in range(6):
            square += turned[k, e] * turned[k, e]
        values[k] = math.sqrt(square)


@helper
def extremes(values):
    """Return the largest and the smallest of six numbers."""
    most = least = values[0]
    for k in range(1, 6):
        most, least = max(most, values[k]), min(least, values[k])
    return most, least


@helper
def invert_triangular(R, inverse):
    """Write the inverse of an upper triangular matrix, 6 x 6."""
    for c in range(6):
        for i in range(5, -1, -1):
            x = 1.0 if i == c else 0.0
            for k in range(i + 1, c + 1):
                x -= R[i, k] * inverse[k, c]
            inverse[i, c] = x / R[i, i] if i <= c else 0.0


@kernel
def task_space(M, J, b, ahead, last, length, limit, L, work, out, J_bar, N):
    """
    Write Lambda, eta, J_bar, N = 1 - J_bar J and the condition of J.

    Parameters
    ----------
    M, J, b
        Mass matrix, rows as `link_jacobian_rates` leaves them, of which those of J and of Jdot v
        are read, and the bias torques.
    ahead, last
        As for `factor_mass_matrix`, and the last velocity that moves the link, or -1.
    length, limit
        Unit of length, m, and the condition beyond which the inverse is damped.
    L, work
        Room: (nv, nv) and (46 + 2 nv, 6).
    out
        Eight rows of six: Lambda, eta, and first of the last the condition.
    J_bar, N
        (nv, 6) and (nv, nv).

    Returns
    -------
    int
        0; 1 + the first velocity that moves no inertia; or UNMOVED.

    """
    n = len(ahead)
    lost = factor_mass_matrix(M, ahead, L)
    if lost > 0:
        return lost
    triangle, turned, vectors, inverse = work[:6], work[6:12], work[12:18], work[18:24]
    values, X, Y = work[24], work[28:34 + n], work[34 + n:]
    unit = 1.0 / length

    # J^T and X, a row for each joint on the way to the root.
    rows = 0
    i = last
    while i >= 0:
        for c in range(3):
            X[rows, c] = Y[rows, c] = J[c, i]
            X[rows, 3 + c] = Y[rows, 3 + c] = unit * J[3 + c, i]
        rows += 1
        i = ahead[i]
    for e in range(rows, 6):
        Y[e] = 0.0
    triangularize(Y, rows)
    singular_values(Y, turned, vectors, values)
    most, least = extremes(values)
    if not most > 0.0:
        return UNMOVED
    out[7, 0] = most / least if least > ROUNDING * most else math.inf
    row = 0
    i = last
    while i >= 0:
        for c in range(6):
            X[row, c] /= L[i, i]
        other, j = row + 1, ahead[i]
        while j >= 0:
            for c in range(6):
                X[other, c] -= L[i, j] * X[row, c]
            other, j = other + 1, ahead[j]
        row, i = row + 1, ahead[i]

    # R of X, and with a root of D = mu sum (sigma_0^2 - sigma_i^2) u_i u_i^T below it.
    for e in range(max(rows, 6)):
        for c in range(6):
            Y[e, c] = X[e, c] if e < rows else 0.0
    triangularize(Y, rows)
    bound = most / limit
    if least < bound:
        # The vectors are those of J still; the values here are those of X.
        roots = work[25]
        for k in range(6):
            missing = bound * bound - values[k] * values[k]
            roots[k] = math.sqrt(missing) if missing > 0.0 else 0.0
        for e in range(6):
            for c in range(6):
                Y[6 + e, c] = roots[e] * vectors[e, c]
        singular_values(Y, turned, triangle, values)
        largest, _ = extremes(values)
        for e in range(6):
            for c in range(6):
                Y[6 + e, c] *= largest / most
        triangularize(Y, 12)
    invert_triangular(Y, inverse)

    # Lambda = R^-1 R^-T, in the units of the caller.                             [L (9.98)]
    for e in range(6):
        for c in range(6):
            x = 0.0
            for k in range(6):
                x += inverse[e, k] * inverse[c, k]
            out[e, c] = x * (unit if e > 2 else 1.0) * (unit if c > 2 else 1.0)

    # J_bar = L^-1 X R^-1 R^-T.
    for i in range(n):
        for c in range(6):
            J_bar[i, c] = 0.0
    row, i = 0, last
    while i >= 0:
        for c in range(6):
            x = 0.0
            for k in range(6):
                x += X[row, k] * inverse[k, c]
            values[c] = x
        for c in range(6):
            x = 0.0
            for k in range(6):
                x += values[k] * inverse[c, k]
            J_bar[i, c] = x * (unit if c > 2 else 1.0)
        row, i = row + 1, ahead[i]
    for i in range(n):
        j = ahead[i]
        while j >= 0:
            for c in range(6):
                J_bar[i, c] -= L[i, j] * J_bar[j, c]
            j = ahead[j]
        for c in range(6):
            J_bar[i, c] /= L[i, i]

    # eta = J_bar^T b - Lambda Jdot v, and N = 1 - J_bar J.                       [L (9.99)]
    for e in range(6):
        x = 0.0
        for i in range(n):
            x += J_bar[i, e] * b[i]
        for c in range(6):
            x -= out[e, c] * J[18, c]
        out[6, e] = x
    for i in range(n):
        for j in range(n):
            N[i, j] = 0.0
        N[i, i] = 1.0
        for c in range(6):
            for j in range(n):
                N[i, j] -= J_bar[i, c] * J[c, j]
    return 0
