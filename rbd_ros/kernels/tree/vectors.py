# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Spatial algebra on tuples, without allocations.

==============  ===================================================================
vector          ``(x, y, z)``
rotation R      its three columns ``(x, y, z)``, the axes of the rotated frame
motion V        ``(omega, v)``, angular first, about the origin of the frame in use
force F         ``(moment, force)``, about the same origin
symmetric       ``(xx, yy, zz, xy, xz, yz)``
inertia G       ``(Sigma, h, m)``: the integrals of r r^T, of r and of 1 over the mass
==============  ===================================================================

Inertias are these ten numbers because they need few products to change frames, and inertias of
several bodies in one frame are simply added.

"""

from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import element, set_element


# Vectors and rotations.
@helper
def dot(a, b):
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@helper
def cross(a, b):
    """Return a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@helper
def add(a, b):
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@helper
def sub(a, b):
    """Return a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@helper
def scale(s, a):
    """Return s a."""
    return (s * a[0], s * a[1], s * a[2])


@helper
def add_cross(c, a, b):
    """Return c + a x b."""
    return (c[0] + a[1] * b[2] - a[2] * b[1], c[1] + a[2] * b[0] - a[0] * b[2],
            c[2] + a[0] * b[1] - a[1] * b[0])


@helper
def rotate(R, a):
    """Return R a, a vector of the rotated frame in the axes of the fixed one."""
    x, y, z = R
    return (x[0] * a[0] + y[0] * a[1] + z[0] * a[2],
            x[1] * a[0] + y[1] * a[1] + z[1] * a[2],
            x[2] * a[0] + y[2] * a[1] + z[2] * a[2])


@helper
def add_rotated(c, R, a):
    """Return c + R a."""
    x, y, z = R
    return (c[0] + x[0] * a[0] + y[0] * a[1] + z[0] * a[2],
            c[1] + x[1] * a[0] + y[1] * a[1] + z[1] * a[2],
            c[2] + x[2] * a[0] + y[2] * a[1] + z[2] * a[2])


@helper
def unrotate(R, a):
    """Return R^T a."""
    return (dot(R[0], a), dot(R[1], a), dot(R[2], a))


@helper
def compose(A, B):
    """Return the rotation A B."""
    return (rotate(A, B[0]), rotate(A, B[1]), rotate(A, B[2]))


@helper
def transpose(A):
    """Return the transpose of a matrix, both by their columns."""
    x, y, z = A
    return ((x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2]))


@helper
def turn_z(R, c, s):
    """Return R rotated about its own z axis by the angle with cosine c and sine s."""
    x, y, z = R
    return (add(scale(c, x), scale(s, y)), sub(scale(c, y), scale(s, x)), z)


@helper
def quaternion_rotation(x, y, z, w):
    """Return the rotation of a quaternion of any nonzero length."""
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return ((1.0 - s * (y * y + z * z), s * (x * y + z * w), s * (x * z - y * w)),
            (s * (x * y - z * w), 1.0 - s * (x * x + z * z), s * (y * z + x * w)),
            (s * (x * z + y * w), s * (y * z - x * w), 1.0 - s * (x * x + y * y)))


@helper
def symmetric_times(s, a):
    """Return the product of a symmetric matrix and a vector."""
    return (s[0] * a[0] + s[3] * a[1] + s[4] * a[2],
            s[3] * a[0] + s[1] * a[1] + s[5] * a[2],
            s[4] * a[0] + s[5] * a[1] + s[2] * a[2])


# Motions and forces, se(3) and its dual.
@helper
def add6(V, W):
    """Return V + W."""
    return (add(V[0], W[0]), add(V[1], W[1]))


@helper
def sub6(V, W):
    """Return V - W."""
    return (sub(V[0], W[0]), sub(V[1], W[1]))


@helper
def scale6(s, V):
    """Return s V."""
    return (scale(s, V[0]), scale(s, V[1]))


@helper
def dot6(V, F):
    """Return V^T F, the power of a force."""
    return dot(V[0], F[0]) + dot(V[1], F[1])


@helper
def ad(V, W):
    """Return ad_V W, the bracket of two motions [K (27)]."""
    return (cross(V[0], W[0]), add(cross(V[0], W[1]), cross(V[1], W[0])))


@helper
def ad_transposed(V, F):
    """Return ad_V^T F [K (29)]."""
    return (add(cross(F[0], V[0]), cross(F[1], V[1])), cross(F[1], V[0]))


@helper
def to_child(R, r, V):
    """Return Ad_T^-1 V, a motion in the frame at T = (R, r) [K (11)]."""
    return (unrotate(R, V[0]), unrotate(R, add_cross(V[1], V[0], r)))


@helper
def to_parent(R, r, F):
    """Return Ad_{T^-1}^T F, a force of the frame at T = (R, r) in the outer frame [K (13)]."""
    f = rotate(R, F[1])
    return (add_cross(rotate(R, F[0]), r, f), f)


@helper
def add_to_parent(F_p, R, r, F):
    """Return F_p + Ad_{T^-1}^T F."""
    f = rotate(R, F[1])
    return (add_cross(add_rotated(F_p[0], R, F[0]), r, f), add(F_p[1], f))


@helper
def shift(r, V):
    """Return a motion about the point at r, in the same axes."""
    return (V[0], add_cross(V[1], V[0], r))


@helper
def shift_force(r, F):
    """Return about the origin a force given about the point at r, in the same axes."""
    return (add_cross(F[0], r, F[1]), F[1])


# Inertias.
@helper
def inertia_times(G, V):
    """Return the momentum G V = (h x v + tr(Sigma) omega - Sigma omega, m v + omega x h)."""
    sigma, h, m = G
    omega, v = V
    trace = sigma[0] + sigma[1] + sigma[2]
    return (add(cross(h, v), sub(scale(trace, omega), symmetric_times(sigma, omega))),
            add(scale(m, v), cross(omega, h)))


@helper
def acceleration_of_points(omega, alpha):
    """Return the columns of A = [alpha] + [omega]^2; the point at r accelerates by A r."""
    x, y, z = omega
    xx, yy, zz = x * x, y * y, z * z
    return ((-yy - zz, x * y + alpha[2], x * z - alpha[1]),
            (x * y - alpha[2], -xx - zz, y * z + alpha[0]),
            (x * z + alpha[1], y * z - alpha[0], -xx - yy))


@helper
def inertial_force(G, A, a):
    """Return the integrals of r x u and of u over the mass of G, where u = A r + a."""
    sigma, h, m = G
    # The integrals of u times one coordinate of r each.
    x = add(rotate(A, (sigma[0], sigma[3], sigma[4])), scale(h[0], a))
    y = add(rotate(A, (sigma[3], sigma[1], sigma[5])), scale(h[1], a))
    z = add(rotate(A, (sigma[4], sigma[5], sigma[2])), scale(h[2], a))
    return ((y[2] - z[1], z[0] - x[2], x[1] - y[0]), add(rotate(A, h), scale(m, a)))


@helper
def symmetric_turned(R, s):
    """Return R s R^T."""
    x, y, z = R
    a = rotate(R, (s[0], s[3], s[4]))
    b = rotate(R, (s[3], s[1], s[5]))
    c = rotate(R, (s[4], s[5], s[2]))
    return (a[0] * x[0] + b[0] * y[0] + c[0] * z[0],
            a[1] * x[1] + b[1] * y[1] + c[1] * z[1],
            a[2] * x[2] + b[2] * y[2] + c[2] * z[2],
            a[0] * x[1] + b[0] * y[1] + c[0] * z[1],
            a[0] * x[2] + b[0] * y[2] + c[0] * z[2],
            a[1] * x[2] + b[1] * y[2] + c[1] * z[2])


@helper
def inertia_from_child(R, r, G):
    """Return the inertia G of the frame at (R, r) in the outer frame [K (21)]."""
    m = G[2]
    s, f = symmetric_turned(R, G[0]), rotate(R, G[1])
    h = add(f, scale(m, r))
    # Sigma + f r^T + r f^T + m r r^T
    return ((s[0] + h[0] * r[0] + r[0] * f[0],
             s[1] + h[1] * r[1] + r[1] * f[1],
             s[2] + h[2] * r[2] + r[2] * f[2],
             s[3] + h[0] * r[1] + r[0] * f[1],
             s[4] + h[0] * r[2] + r[0] * f[2],
             s[5] + h[1] * r[2] + r[1] * f[2]), h, m)


# The product V^ P of the 4x4 forms of a motion and an inertia: (K, p), K by its columns.
@helper
def velocity_inertia(V, G):
    """Return K = [omega]x Sigma + v h^T and p = m v + omega x h."""
    omega, v = V
    sigma, h, m = G
    return ((add(cross(omega, (sigma[0], sigma[3], sigma[4])), scale(h[0], v)),
             add(cross(omega, (sigma[3], sigma[1], sigma[5])), scale(h[1], v)),
             add(cross(omega, (sigma[4], sigma[5], sigma[2])), scale(h[2], v))),
            add(scale(m, v), cross(omega, h)))


@helper
def inertia_rate(K, p):
    """Return V^ P + (V^ P)^T, the rate of a moving inertia P."""
    return ((2.0 * K[0][0], 2.0 * K[1][1], 2.0 * K[2][2],
             K[1][0] + K[0][1], K[2][0] + K[0][2], K[2][1] + K[1][2]), p, 0.0)


@helper
def velocity_times(K, p, S):
    """Return B S = (tr(K) z - K z, z x p) of a motion S = (z, s)."""
    z = S[0]
    return (sub(scale(K[0][0] + K[1][1] + K[2][2], z), rotate(K, z)), cross(z, p))


@helper
def velocity_transposed_times(K, p, S):
    """Return the moment of B^T S = (p x s + tr(K) z - K^T z, 0)."""
    z, s = S
    return add(cross(p, s), sub(scale(K[0][0] + K[1][1] + K[2][2], z), unrotate(K, z)))


# The skew difference between B of the two factorizations of C: E = 1/2 (Psi - N).
@helper
def skew_part(V, G):
    """Return Q = h omega^T by its columns, a = tr(Sigma) omega + h x v, u = m v, w = m omega."""
    omega, v = V
    sigma, h, m = G
    return ((scale(omega[0], h), scale(omega[1], h), scale(omega[2], h)),
            add(scale(sigma[0] + sigma[1] + sigma[2], omega), cross(h, v)),
            scale(m, v), scale(m, omega))


@helper
def skew_part_times(E, S):
    """Return (a x z + Q s - tr(Q) s + u x s, tr(Q) z - Q^T z + u x z + w x s), S = (z, s)."""
    Q, a, u, w = E
    z, s = S
    trace = Q[0][0] + Q[1][1] + Q[2][2]
    return (add(add(cross(a, z), sub(rotate(Q, s), scale(trace, s))), cross(u, s)),
            add(add(sub(scale(trace, z), unrotate(Q, z)), cross(u, z)), cross(w, s)))


# Rows of an array.
@helper
def row3(A, i, k):
    """Return the vector in columns k ... k + 2 of row i."""
    return (A[i, k], A[i, k + 1], A[i, k + 2])


@helper
def row33(A, i, k):
    """Return the rotation in columns k ... k + 8 of row i."""
    return (row3(A, i, k), row3(A, i, k + 3), row3(A, i, k + 6))


@helper
def write_row3(A, i, k, a):
    """Write a vector to columns k ... k + 2 of row i."""
    set_element(A, i, k, a[0])
    set_element(A, i, k + 1, a[1])
    set_element(A, i, k + 2, a[2])


@helper
def write_column(A, i, j, V):
    """Write a motion to rows i ... i + 5 of column j."""
    (x, y, z), (u, v, w) = V
    set_element(A, i, j, x)
    set_element(A, i + 1, j, y)
    set_element(A, i + 2, j, z)
    set_element(A, i + 3, j, u)
    set_element(A, i + 4, j, v)
    set_element(A, i + 5, j, w)


@helper
def read_column(A, i, j):
    """Return the motion in rows i ... i + 5 of column j."""
    return ((element(A, i, j), element(A, i + 1, j), element(A, i + 2, j)),
            (element(A, i + 3, j), element(A, i + 4, j), element(A, i + 5, j)))
