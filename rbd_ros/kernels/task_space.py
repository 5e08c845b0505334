# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of one link in task space, with the damping of `rbd_ros.task_space_dynamics`.

With M = L^T L, L as sparse as M, and X = L^-T J^T,

    J M^-1 J^T = X^T X,    Lambda = (X^T X + D)^-1 = R^-1 R^-T,    J_bar = L^-1 X Lambda,

where Q R is the QR factorization of X stacked on a square root of D: condition numbers are not
squared. Rows of J^T and X are nonzero only for joints between root and link. The six singular
values of J are those of R_J in J^T = Q_J R_J, by one-sided Jacobi rotations: once its columns are
orthogonal, their lengths are the singular values, and the product of the rotations gives the left
singular vectors of J [Hestenes (1958)].

Lynch and Park (9.90)-(9.99).

"""

import math

from rbd_ros.kernels.articulated_bodies import SINGULAR
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import exceeds, reciprocal

# Singular values below this fraction of the largest count as zero.
RANK_TOLERANCE = 1e-14
# Cosine below which two columns count as orthogonal, and the maximum number of sweeps.
ORTHOGONAL = 1e-15
SWEEPS = 30
# Returned by `task_space` if no joint moves the link.
UNMOVED = -1


@helper
def factor_mass_matrix(M, ahead, L):
    """
    Write L with M = L^T L; return 1 + the first velocity that moves no inertia, or 0.

    ``ahead[i]`` is the last velocity before i coupled with it in M, or -1; it must be coupled with
    all earlier ones with which i is coupled.

    """
    n = len(ahead)
    for i in range(n):
        j = i
        while j >= 0:
            L[i, j] = M[i, j]
            j = ahead[j]
    for k in range(n - 1, -1, -1):
        if not exceeds(L[k, k], SINGULAR * M[k, k]):
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
    """Replace the first rows of A, six numbers each, by R of A = Q R (Householder)."""
    for k in range(min(rows, 6)):
        square = 0.0
        for e in range(k, rows):
            square += A[e, k] * A[e, k]
        if square == 0.0:
            continue
        length = math.sqrt(square)
        pivot = A[k, k]
        # The reflection is 1 - factor u u^T, with u in column k.
        factor = reciprocal(length * (length + abs(pivot)))
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
def orthogonalize(rows, width, vectors, n):
    """Turn n rows by rotations until they are orthogonal; apply these to the rows of vectors."""
    for _ in range(SWEEPS):
        done = True
        for a in range(n - 1):
            for b in range(a + 1, n):
                aa = bb = ab = 0.0
                for e in range(width):
                    aa += rows[a, e] * rows[a, e]
                    bb += rows[b, e] * rows[b, e]
                    ab += rows[a, e] * rows[b, e]
                if ab == 0.0 or abs(ab) <= ORTHOGONAL * math.sqrt(aa) * math.sqrt(bb):
                    continue
                done = False
                zeta = (bb - aa) / (2.0 * ab)
                t = math.copysign(1.0 / (abs(zeta) + math.sqrt(1.0 + zeta * zeta)), zeta)
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = c * t
                for e in range(width):
                    x, y = rows[a, e], rows[b, e]
                    rows[a, e], rows[b, e] = c * x - s * y, s * x + c * y
                for e in range(n):
                    x, y = vectors[a, e], vectors[b, e]
                    vectors[a, e], vectors[b, e] = c * x - s * y, s * x + c * y
        if done:
            break


@helper
def singular_values(R, columns, vectors, values):
    """Write the singular values of R (6, 6), and to rows of `vectors` the left vectors of R^T."""
    for k in range(6):
        for e in range(6):
            columns[k, e] = R[e, k]
            vectors[k, e] = 1.0 if e == k else 0.0
    orthogonalize(columns, 6, vectors, 6)
    for k in range(6):
        square = 0.0
        for e in range(6):
            square += columns[k, e] * columns[k, e]
        values[k] = math.sqrt(square)


@helper
def extremes(values):
    """Return the largest and the smallest of six numbers."""
    most = least = values[0]
    for k in range(1, 6):
        most, least = max(most, values[k]), min(least, values[k])
    return most, least


@helper
def may_be_damped(most, least, limit):
    """Return whether a condition number exceeds the limit; code for all states: it may."""
    return least < most / limit


@helper
def positive_root(x):
    """Return the square root of a positive number, else zero."""
    return math.sqrt(x) if x > 0.0 else 0.0


@helper
def condition_number(most, least):
    """Return the condition number of J."""
    return most / least if least > RANK_TOLERANCE * most else math.inf


@helper
def invert_triangular(R, inverse):
    """Write the inverse of an upper triangular matrix, 6 x 6."""
    for c in range(6):
        for i in range(5, -1, -1):
            x = 1.0 if i == c else 0.0
            for k in range(i + 1, c + 1):
                x -= R[i, k] * inverse[k, c]
            inverse[i, c] = x / R[i, i] if i <= c else 0.0


@helper
def copy_columns(J, ahead, last, unit, X, Y):
    """Write J^T to X and Y, a row for each joint between link and root; return their number."""
    rows, i = 0, last
    while i >= 0:
        for c in range(3):
            X[rows, c] = Y[rows, c] = J[c, i]
            X[rows, 3 + c] = Y[rows, 3 + c] = unit * J[3 + c, i]
        rows += 1
        i = ahead[i]
    for e in range(rows, 6):
        Y[e] = 0.0
    return rows


@helper
def solve_transposed(L, ahead, last, X):
    """Replace J^T in X by L^-T J^T."""
    row, i = 0, last
    while i >= 0:
        for c in range(6):
            X[row, c] /= L[i, i]
        other, j = row + 1, ahead[i]
        while j >= 0:
            for c in range(6):
                X[other, c] -= L[i, j] * X[row, c]
            other, j = other + 1, ahead[j]
        row, i = row + 1, ahead[i]


@helper
def damped_factor(X, rows, most, least, limit, Y, columns, vectors, work, values, roots):
    """
    Write R to the first rows of Y: of X, and of a root of D below it.

    D = mu sum (sigma_0^2 - sigma_i^2) u_i u_i^T over the singular values sigma_i of J below
    sigma_0 = most / limit, in `values`, with the singular vectors u_i in `vectors`.

    """
    for e in range(max(rows, 6)):
        for c in range(6):
            Y[e, c] = X[e, c] if e < rows else 0.0
    triangularize(Y, rows)
    bound = most / limit
    if may_be_damped(most, least, limit):
        for k in range(6):
            roots[k] = positive_root(bound * bound - values[k] * values[k])
        for e in range(6):
            for c in range(6):
                Y[6 + e, c] = roots[e] * vectors[e, c]
        singular_values(Y, columns, work, values)       # of X
        largest, _ = extremes(values)
        for e in range(6):
            for c in range(6):
                Y[6 + e, c] *= largest / most
        triangularize(Y, 12)


@helper
def write_inertia(inverse, unit, Lambda):
    """Write Lambda = R^-1 R^-T in the units of the caller [L (9.98)]."""
    for e in range(6):
        for c in range(6):
            x = 0.0
            for k in range(6):
                x += inverse[e, k] * inverse[c, k]
            Lambda[e, c] = x * (unit if e > 2 else 1.0) * (unit if c > 2 else 1.0)


@helper
def write_inverse(L, ahead, last, X, inverse, unit, row_buffer, J_bar):
    """Write J_bar = L^-1 X R^-1 R^-T."""
    for i in range(len(ahead)):
        for c in range(6):
            J_bar[i, c] = 0.0
    row, i = 0, last
    while i >= 0:
        for c in range(6):
            x = 0.0
            for k in range(6):
                x += X[row, k] * inverse[k, c]
            row_buffer[c] = x
        for c in range(6):
            x = 0.0
            for k in range(6):
                x += row_buffer[k] * inverse[c, k]
            J_bar[i, c] = x * (unit if c > 2 else 1.0)
        row, i = row + 1, ahead[i]
    for i in range(len(ahead)):
        j = ahead[i]
        while j >= 0:
            for c in range(6):
                J_bar[i, c] -= L[i, j] * J_bar[j, c]
            j = ahead[j]
        for c in range(6):
            J_bar[i, c] /= L[i, i]


@helper
def write_bias_and_projector(J, b, J_bar, out, N):
    """Write eta = J_bar^T b - Lambda Jdot v and N = 1 - J_bar J [L (9.99)]."""
    n = len(b)
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


@kernel
def task_space(M, J, b, ahead, last, length, limit, L, work, out, J_bar, N):
    """
    Write Lambda, eta, J_bar (nv, 6), N = 1 - J_bar J (nv, nv) and the condition number of J.

    J has the rows of `link_jacobian_rate`, of which J and Jdot v are read; b are the bias torques.
    ``ahead`` is as for `factor_mass_matrix`; ``last`` is the last velocity that moves the link, or
    -1; ``length`` the unit of length, m; ``limit`` the condition number beyond which the inverse
    is damped. L (nv, nv) and work (46 + 2 nv, 6) are buffers. ``out`` has rows of six: Lambda, eta
    and a last one that begins with the condition number. Returns 0; 1 + the first velocity that
    moves no inertia; or UNMOVED.

    """
    singular = factor_mass_matrix(M, ahead, L)
    if singular > 0:
        return singular
    triangle, columns, vectors, inverse = work[:6], work[6:12], work[12:18], work[18:24]
    values, X, Y = work[24], work[28:34 + len(ahead)], work[34 + len(ahead):]
    unit = 1.0 / length
    # Singular values of J.
    rows = copy_columns(J, ahead, last, unit, X, Y)
    triangularize(Y, rows)
    singular_values(Y, columns, vectors, values)
    most, least = extremes(values)
    if not exceeds(most, 0.0):
        return UNMOVED
    out[7, 0] = condition_number(most, least)
    # X = L^-T J^T and the damped R.
    solve_transposed(L, ahead, last, X)
    damped_factor(X, rows, most, least, limit, Y, columns, vectors, triangle, values, work[25])
    invert_triangular(Y, inverse)
    # Results.
    write_inertia(inverse, unit, out)
    write_inverse(L, ahead, last, X, inverse, unit, values, J_bar)
    write_bias_and_projector(J, b, J_bar, out, N)
    return 0
