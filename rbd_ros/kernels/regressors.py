# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Torques, momentum and energy as matrices times the inertial parameters pi of the moving bodies.

All are linear in the parameters m, mc (3), Ixx, Iyy, Izz, Ixy, Ixz, Iyz of a body, in the axes and
about the origin of its link. With the body's twist V = (omega, v), that of the reference
V_r = J v_r = (omega_r, v_r), and
A_r = J a_r + (J v_r)' - gravity = (alpha, a), all in these axes, the derivative taken in the
world's, M a_r + C v_r + g is the sum of J^T F with the wrenches

    F = G (A_r - h ad_V V_r) - (1 - h) ad_V^T G V_r - h ad_{V_r}^T G V,

h = 1/2 for the Christoffel form of C and 0 for that of the body. Torques are those of v_r = v and
a_r = a, for any h. F is a 6 x 10 matrix times the parameters of the body; its product with a
column (z, s) of J gives ten entries of a row of Y. With K = (1 - h) omega omega_r^T + h omega_r
omega^T, and with A_r' = A_r - h ad_V V_r = (alpha, a) from here on, these are

    m:   s . d + z . e,   d = a + (1 - h) omega x v_r + h omega_r x v,   e = (1 - 2h) v x v_r
    mc:  P z + Q s,       Q = K - tr(K) 1 - [alpha],
         P = [a] + (1 - h)(v omega_r^T - omega v_r^T) + h (v_r omega^T - omega_r v^T)
             + (1 - 2h)(omega . v_r - omega_r . v) 1
    I:   z . I alpha + (1 - h)(z x omega) . I omega_r + h (z x omega_r) . I omega

Garofalo et al. (8)-(12), (15), (16).

The momentum M v is the sum of J^T G V, the kinetic energy that of 1/2 V^T G V, and the potential
energy that of -gravity . (m r + mc), r the position of the link. These consist of products x^T G y
with, for x = (z, s) and y = (w, u), the `entries`

    m: s . u,   mc: u x z + s x w,   Ixx: z_x w_x,   Ixy: z_x w_y + z_y w_x ...

Lynch and Park (9.41) for the kinetic energy.

Row k of ``links`` has the number of a body and the rotation from the link's axes to the body's;
columns 10 k ... 10 k + 9 of the results belong to its parameters.

"""

import math

from rbd_ros.kernels.jit.compiled import helper, long_kernel
from rbd_ros.kernels.lanes.lanes import finite
from rbd_ros.kernels.tree.coordinates import clear_matrix, coordinate_at, put_element, put_row3
from rbd_ros.kernels.tree.layout import (
    columns_of, constant3, count, fits, GRAVITY, GROUND, load3, load33, load6, ONLY_SCREWS, parent,
    R_, r_, slot, store6)
from rbd_ros.kernels.tree.traversal import (
    A_, forward_pass, joint_motion_at, minus_gravity, S_, V_, WORLD_COLUMNS, write_motions)
from rbd_ros.kernels.tree.vectors import (
    ad, add, add6, compose, cross, dot, row33, scale, scale6, sub, sub6, to_child, unrotate,
    write_row3)

# Column of `robot`: the twist V_r.
VR_, REGRESSOR_COLUMNS = columns_of(WORLD_COLUMNS, 6)


@helper
def link_pose(robot, links, k):
    """Return the body of row k, and the pose of its link in the frame of `forward_pass`."""
    b = slot(int(links[k, 0]))
    return b, compose(load33(robot, b, R_), row33(links, k, 1)), load3(robot, b, r_)


@helper
def entries(x, y):
    """Return the coefficients of the ten parameters in x^T G y."""
    (z, s), (w, u) = x, y
    a, b = cross(u, z), cross(s, w)
    return (dot(s, u), a[0] + b[0], a[1] + b[1], a[2] + b[2],
            z[0] * w[0], z[1] * w[1], z[2] * w[2],
            z[0] * w[1] + z[1] * w[0], z[0] * w[2] + z[2] * w[0], z[1] * w[2] + z[2] * w[1])


@helper
def wrench_columns(V, V_r, A_r, h):
    """
    Return the rows of the 6 x 10 matrix of the wrench on a body.

    For m, (e, d); for mc, P and Q; for moments and products of inertia, their angular parts. There
    K holds the products of z x omega with omega_r: for Ixx, z_x alpha_x + z_y K_zx - z_z K_yx.

    """
    (w, v), (w_r, v_r), (alpha, a) = V, V_r, A_r
    k, rest = 1.0 - h, 1.0 - 2.0 * h
    K = (add(scale(k * w[0], w_r), scale(h * w_r[0], w)),
         add(scale(k * w[1], w_r), scale(h * w_r[1], w)),
         add(scale(k * w[2], w_r), scale(h * w_r[2], w)))
    d = add(a, add(scale(k, cross(w, v_r)), scale(h, cross(w_r, v))))
    e = scale(rest, cross(v, v_r))
    trace, more = K[0][0] + K[1][1] + K[2][2], rest * (dot(w, v_r) - dot(w_r, v))
    # Rows of v omega_r^T - omega v_r^T and the like.
    P0 = add(sub(scale(k * v[0], w_r), scale(k * w[0], v_r)),
             sub(scale(h * v_r[0], w), scale(h * w_r[0], v)))
    P1 = add(sub(scale(k * v[1], w_r), scale(k * w[1], v_r)),
             sub(scale(h * v_r[1], w), scale(h * w_r[1], v)))
    P2 = add(sub(scale(k * v[2], w_r), scale(k * w[2], v_r)),
             sub(scale(h * v_r[2], w), scale(h * w_r[2], v)))
    P = ((P0[0] + more, P0[1] - a[2], P0[2] + a[1]),
         (P1[0] + a[2], P1[1] + more, P1[2] - a[0]),
         (P2[0] - a[1], P2[1] + a[0], P2[2] + more))
    Q = ((K[0][0] - trace, K[0][1] + alpha[2], K[0][2] - alpha[1]),
         (K[1][0] - alpha[2], K[1][1] - trace, K[1][2] + alpha[0]),
         (K[2][0] + alpha[1], K[2][1] - alpha[0], K[2][2] - trace))
    moments = ((alpha[0], K[2][0], -K[1][0]),
               (-K[2][1], alpha[1], K[0][1]),
               (K[1][2], -K[0][2], alpha[2]))
    products = ((alpha[1] - K[2][0], alpha[0] + K[2][1], K[0][0] - K[1][1]),
                (alpha[2] + K[1][0], K[2][2] - K[0][0], alpha[0] - K[1][2]),
                (K[1][1] - K[2][2], alpha[2] - K[0][1], alpha[1] + K[0][2]))
    return e, d, P, Q, moments, products


@helper
def row_entries(columns, V):
    """Return the coefficients in V^T F of m, mc, and the moments and products of inertia."""
    e, d, P, Q, moments, products = columns
    z, s = V
    return (dot(s, d) + dot(z, e),
            (dot(P[0], z) + dot(Q[0], s), dot(P[1], z) + dot(Q[1], s),
             dot(P[2], z) + dot(Q[2], s)),
            unrotate(moments, z), unrotate(products, z))


@helper
def write_entries(traits, Y, i, c, x):
    """Write ten entries, as `row_entries` returns them, to row i; return a checksum."""
    mass, mc, moments, products = x
    put_element(traits, Y, i, c, mass)
    put_row3(traits, Y, i, c + 1, mc)
    put_row3(traits, Y, i, c + 4, moments)
    put_row3(traits, Y, i, c + 7, products)
    return mass + mc[0] + moments[0]


@helper
def write_rows(robot, traits, b, R, r, columns, Y, c):
    """Write the entries of a body for all joints that carry it; return a checksum."""
    total = 0.0
    while b > 0:
        entries_of_row = row_entries(columns, to_child(R, r, load6(robot, b, S_)))
        total += write_entries(traits, Y, coordinate_at(robot, b), c, entries_of_row)
        b = parent(robot, b)
    return total


@long_kernel
def regressor_columns(robot, traits, q, v, a, links, Y):
    """Write the regressor of the torques, shape (nv, 10 links)."""
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    clear_matrix(traits, Y)
    forward_pass(robot, traits, q, v, a, minus_gravity(robot))
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, b, V_))
        A = to_child(R, r, load6(robot, b, A_))
        total += write_rows(robot, traits, b, R, r, wrench_columns(V, V, A, 0.0), Y, 10 * k)
    return finite(total)


@helper
def transposed_product(robot, traits, q, v, a, x, links, y):
    """Write Y^T x (links, 10): the parameter gradient of the torques' power at velocities x."""
    if not (fits(robot, q, v) and fits(robot, q, a) and fits(robot, q, x)):
        return False
    forward_pass(robot, traits, q, v, a, minus_gravity(robot))
    write_motions(robot, traits, x, VR_)
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, b, V_))
        A = to_child(R, r, load6(robot, b, A_))
        # Rows are of links, not of coordinates: nothing is added.
        total += write_entries(ONLY_SCREWS, y, k, 0, row_entries(
            wrench_columns(V, V, A, 0.0), to_child(R, r, load6(robot, b, VR_))))
    return finite(total)


@long_kernel
def slotine_li_columns(robot, traits, q, v, v_r, a_r, links, h, Y):
    """Write the Slotine-Li regressor, shape (nv, 10 links)."""
    if not (fits(robot, q, v) and fits(robot, q, v_r) and fits(robot, q, a_r)):
        return False
    zero = (0.0, 0.0, 0.0)
    clear_matrix(traits, Y)
    forward_pass(robot, traits, q, v, None, None)
    store6(robot, GROUND, VR_, (zero, zero))
    store6(robot, GROUND, A_, minus_gravity(robot))
    for i in range(1, count(robot)):
        b = slot(i)
        up = parent(robot, b)
        Sv, Sa = (joint_motion_at(robot, traits, i, v_r), joint_motion_at(robot, traits, i, a_r))
        store6(robot, b, VR_, add6(load6(robot, up, VR_), Sv))
        store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(load6(robot, b, V_), Sv)))
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V, V_r = to_child(R, r, load6(robot, b, V_)), to_child(R, r, load6(robot, b, VR_))
        A_r = sub6(to_child(R, r, load6(robot, b, A_)), scale6(h, ad(V, V_r)))
        total += write_rows(robot, traits, b, R, r, wrench_columns(V, V_r, A_r, h), Y, 10 * k)
    return math.isfinite(total)


@long_kernel
def momentum_columns(robot, traits, q, v, links, Y):
    """Write the regressor of M v, shape (nv, 10 links)."""
    if not fits(robot, q, v):
        return False
    clear_matrix(traits, Y)
    forward_pass(robot, traits, q, v, None, None)
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, b, V_))
        total += V[0][0] + V[1][0]
        while b > 0:
            x = entries(to_child(R, r, load6(robot, b, S_)), V)
            i = coordinate_at(robot, b)
            for p in range(10):
                put_element(traits, Y, i, 10 * k + p, x[p])
            b = parent(robot, b)
    return math.isfinite(total)


@long_kernel
def energy_columns(robot, traits, q, v, links, rows):
    """Write the regressors of the kinetic and the potential energy, shape (2, 10 links)."""
    if not fits(robot, q, v):
        return False
    origin = forward_pass(robot, traits, q, v, None, None)
    up, total = scale(-1.0, constant3(robot, GROUND, GRAVITY)), 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, b, V_))
        x, c = entries(V, V), 10 * k
        for p in range(10):
            rows[0, c + p] = 0.5 * x[p]
            rows[1, c + p] = 0.0
        # `origin` is the position of the ground in the frame of `forward_pass`.
        rows[1, c] = dot(up, sub(r, origin))
        write_row3(rows, 1, c + 1, unrotate(R, up))
        total += rows[0, c] + rows[0, c + 4] + rows[1, c]
    return math.isfinite(total)
