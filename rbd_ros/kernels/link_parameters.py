# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What the ten inertial parameters of each link contribute, link by link.

All are linear in the parameters m, mc (3), Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the origin of the
link. In the axes of the link, with its twist V, its Jacobian's columns J_i and the rate A_j of a
column or A of the twist, as seen from the world, x^T G y has the `entries`

    m: s . u,   mc: u x z + s x w,   Ixx: z_x w_x,   Ixy: z_x w_y + z_y w_x ...

for x = (z, s) and y = (w, u), and these are made of them:

    M_ij = J_i^T G J_j,    g_i = J_i^T G (0, -gravity),
    C_ij = J_i^T (G (A_j - h ad_V J_j) - (1 - h) ad_V^T G J_j - h ad_Jj^T G V),
    tau_i = J_i^T (G A - ad_V^T G V) with A_root = (0, -gravity),
    (M v)_i = J_i^T G V,    kinetic energy 1/2 V^T G V,    potential energy -gravity . (m r + mc),

h = 1/2 for the Christoffel form of C and 0 for that of the body, r the position of the link.
Garofalo et al. (8)-(13), (16); Lynch and Park (9.41).

Row k of ``links`` holds the body that link k is, and its pose in the frame of that body, rotation
(9) and position (3).

"""

import math

from rbd_ros.kernels.bodies import (count, fits, GRAVITY, GROUND, ground_origin, load3, load33,
                                    load6, number, parent, place, place_ground, place_in_parents,
                                    place_in_world, R_, r_, SCRATCH, store6, world_column,
                                    world_joint_motion, world_pose)
from rbd_ros.kernels.compiled import helper, long_kernel
from rbd_ros.kernels.vectors import (ad, add6, cross, dot, row3, row33, scale, scale6, sub, sub6,
                                     to_child, unrotate)

# Columns of `robot`, in the world: of each body; and in the axes of the link at hand: of each
# joint that carries it, its column J_i, ad_V J_i, and A_i - h ad_V J_i.
S_, V_, A_, J_, TURNED_, RATE_ = (SCRATCH + k for k in (12, 18, 24, 30, 36, 42))


@helper
def entries(x, y):
    """Return what each of the ten parameters contributes to x^T G y."""
    (z, s), (w, u) = x, y
    a, b = cross(u, z), cross(s, w)
    return (dot(s, u), a[0] + b[0], a[1] + b[1], a[2] + b[2],
            z[0] * w[0], z[1] * w[1], z[2] * w[2],
            z[0] * w[1] + z[1] * w[0], z[0] * w[2] + z[2] * w[0], z[1] * w[2] + z[2] * w[1])


@helper
def move_bodies(robot, screws, q, v, a):
    """
    Write S_, V_ and, unless a is None, A_ of every body; return the origin of the frame.

    A_ has gravity in it.

    """
    zero = (0.0, 0.0, 0.0)
    place_in_parents(robot, screws, q)
    origin = ground_origin(robot, screws)
    place_ground(robot, origin)
    store6(robot, GROUND, V_, (zero, zero))
    store6(robot, GROUND, A_, (zero, scale(-1.0, load3(robot, GROUND, GRAVITY))))
    for i in range(1, count(robot)):
        b = place(i)
        up = parent(robot, b)
        R, r = place_in_world(robot, b, up)
        S = world_column(robot, screws, b, R, r)
        Sv = world_joint_motion(robot, screws, i, R, r, S, v)
        V = add6(load6(robot, up, V_), Sv)
        store6(robot, b, S_, S)
        store6(robot, b, V_, V)
        if a is not None:
            Sa = world_joint_motion(robot, screws, i, R, r, S, a)
            store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(V, Sv)))
    return origin


@helper
def link_pose(robot, links, k):
    """Return the body of a link and the pose of the link in the frame of the recursion."""
    b = place(int(links[k, 0]))
    R, r = world_pose(load33(robot, b, R_), load3(robot, b, r_),
                      row33(links, k, 1), row3(links, k, 10))
    return b, R, r


@long_kernel
def parameter_matrices(robot, screws, q, v, links, h, M, C, g):
    """
    Write the derivatives of M, C and g by the parameters of each link.

    ``M`` and ``C`` have the shape (nv, nv, links, 10), ``g`` (nv, links, 10): what is zero for all
    links lies together. Only the entries of joints that carry the link are written: all others
    must be zero already. Returns whether the results are finite; nothing is written, and False
    returned, if q or v has a wrong length.

    """
    if not fits(robot, q, v):
        return False
    move_bodies(robot, screws, q, v, None)
    gravity, total = load3(robot, GROUND, GRAVITY), 0.0
    for k in range(len(links)):
        body, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, body, V_))
        up = ((0.0, 0.0, 0.0), scale(-1.0, unrotate(R, gravity)))
        total += r[0] + R[0][0] + V[0][0] + V[1][0]
        b = body
        while b > 0:
            S = load6(robot, b, S_)
            J = to_child(R, r, S)
            turned = ad(V, J)
            rate = to_child(R, r, ad(load6(robot, b, V_), S))
            store6(robot, b, J_, J)
            store6(robot, b, TURNED_, turned)
            store6(robot, b, RATE_, sub6(rate, scale6(h, turned)))
            x = entries(J, up)
            i = number(robot, b) - 1
            for p in range(10):
                g[i, k, p] = x[p]
            b = parent(robot, b)
        one = body
        while one > 0:
            i = number(robot, one) - 1
            J_i, turned = load6(robot, one, J_), load6(robot, one, TURNED_)
            b = body
            while b > 0:
                j = number(robot, b) - 1
                J = load6(robot, b, J_)
                x = entries(J_i, load6(robot, b, RATE_))
                y = entries(turned, J)
                z = entries(ad(J, J_i), V)
                for p in range(10):
                    C[i, j, k, p] = x[p] - (1.0 - h) * y[p] - h * z[p]
                if j <= i:
                    x = entries(J_i, J)
                    for p in range(10):
                        M[i, j, k, p] = M[j, i, k, p] = x[p]
                b = parent(robot, b)
            one = parent(robot, one)
    return math.isfinite(total)


@long_kernel
def torque_columns(robot, screws, q, v, a, links, Y):
    """
    Write dtau/dpi of each link, shape (links, 10, nv), zero where no joint carries it already.

    Returns whether the results are finite; nothing is written, and False returned, if q, v or a
    has a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    move_bodies(robot, screws, q, v, a)
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V, A = to_child(R, r, load6(robot, b, V_)), to_child(R, r, load6(robot, b, A_))
        total += V[0][0] + A[0][0] + A[1][0]
        while b > 0:
            i = number(robot, b) - 1
            J = to_child(R, r, load6(robot, b, S_))
            x, y = entries(J, A), entries(ad(V, J), V)
            for p in range(10):
                Y[k, p, i] = x[p] - y[p]
            b = parent(robot, b)
    return math.isfinite(total)


@long_kernel
def momentum_columns(robot, screws, q, v, links, Y):
    """
    Write the regressor of M v, shape (nv, 10 links), zero where no joint carries a link already.

    Returns whether the results are finite; nothing is written, and False returned, if q or v has
    a wrong length.

    """
    if not fits(robot, q, v):
        return False
    move_bodies(robot, screws, q, v, None)
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, b, V_))
        total += V[0][0] + V[1][0]
        while b > 0:
            x = entries(to_child(R, r, load6(robot, b, S_)), V)
            i = number(robot, b) - 1
            for p in range(10):
                Y[i, 10 * k + p] = x[p]
            b = parent(robot, b)
    return math.isfinite(total)


@long_kernel
def energy_columns(robot, screws, q, v, links, rows):
    """
    Write the regressors of the kinetic and the potential energy, shape (2, 10 links).

    Returns whether the results are finite; nothing is written, and False returned, if q or v has
    a wrong length.

    """
    if not fits(robot, q, v):
        return False
    origin = move_bodies(robot, screws, q, v, None)
    up, total = scale(-1.0, load3(robot, GROUND, GRAVITY)), 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, b, V_))
        x, c = entries(V, V), 10 * k
        for p in range(10):
            rows[0, c + p] = 0.5 * x[p]
            rows[1, c + p] = 0.0
        # `origin` is that of the root in the frame of the recursion.
        rows[1, c] = dot(up, sub(r, origin))
        along = unrotate(R, up)
        for p in range(3):
            rows[1, c + 1 + p] = along[p]
        total += rows[0, c] + rows[0, c + 4] + rows[1, c]
    return math.isfinite(total)
