# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Torques, momentum and energy as matrices times the inertial parameters pi of the moving bodies.

All are linear in the parameters m, mc (3), Ixx, Iyy, Izz, Ixy, Ixz, Iyz of a body, in the axes and
about the origin of the link that its joint leads to. With the body's twist V = (omega, v) and
acceleration A = (alpha, dv), gravity included, in these axes, the force on it is, with
d = dv + omega x v,

    f = m d + (alpha x + omega x omega x) mc,    n = mc x d + I alpha + omega x I omega.

Column i of the body's Jacobian, (z, s), makes of that the ten entries of row i of Y:

    m: s . d,   mc: d x z + s x alpha + omega (omega . s) - s (omega . omega),
    Ixx: z_x alpha_x + u_x omega_x,   Ixy: z_x alpha_y + z_y alpha_x + u_x omega_y + u_y omega_x,

and so on, with u = z x omega. Garofalo et al. (8)-(12), (16).

For M a_r + C v_r + g the force is, with V_r = J v_r and A_r = J a_r + (J v_r)' - gravity, the
derivative taken in the world's axes,

    G (A_r - h ad_V V_r) - (1 - h) ad_V^T G V_r - h ad_{V_r}^T G V,

h = 1/2 for the Christoffel form of C and 0 for that of the body. The momentum M v is the sum of
J^T G V, the kinetic energy that of 1/2 V^T G V, and the potential energy that of
-gravity . (m r + mc), r the position of the link. All these consist of products x^T G y, with the
`entries`, x = (z, s) and y = (w, u),

    m: s . u,   mc: u x z + s x w,   Ixx: z_x w_x,   Ixy: z_x w_y + z_y w_x ...

Lynch and Park (9.41) for the kinetic energy.

Row k of ``links`` has the number of a body, and the rotation from the link's axes to those of the
body; columns 10 k ... 10 k + 9 of the results are for its parameters. Entries of joints that do
not carry the body are not written: they must be zero already.

"""

import math

from rbd_ros.kernels.bodies import (count, fits, GRAVITY, GROUND, load3, load33, load6, number,
                                    parent, place, R_, r_, store6)
from rbd_ros.kernels.compiled import helper, long_kernel
from rbd_ros.kernels.vectors import (ad, add, add6, compose, cross, dot, row33, scale, scale6, sub,
                                     sub6, to_child, unrotate, write_row3)
from rbd_ros.kernels.world_frame import (A_, against_gravity, move_bodies, S_, V_,
                                         WORLD_COLUMNS, world_joint_motion)

# Column of `robot`: the twist V_r.
VR_, REGRESSOR_COLUMNS = WORLD_COLUMNS, WORLD_COLUMNS + 6


@helper
def link_pose(robot, links, k):
    """Return the body of row k, and the pose of its link in the frame of the recursion."""
    b = place(int(links[k, 0]))
    return b, compose(load33(robot, b, R_), row33(links, k, 1)), load3(robot, b, r_)


@helper
def entries(x, y):
    """Return what each of the ten parameters contributes to x^T G y."""
    (z, s), (w, u) = x, y
    a, b = cross(u, z), cross(s, w)
    return (dot(s, u), a[0] + b[0], a[1] + b[1], a[2] + b[2],
            z[0] * w[0], z[1] * w[1], z[2] * w[2],
            z[0] * w[1] + z[1] * w[0], z[0] * w[2] + z[2] * w[0], z[1] * w[2] + z[2] * w[1])


@long_kernel
def regressor_columns(robot, screws, q, v, a, links, Y):
    """
    Write the regressor of the torques, shape (nv, 10 links), and return whether it is finite.

    Nothing is written, and False returned, if q, v or a has a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    move_bodies(robot, screws, q, v, a, against_gravity(robot))
    # Each body: the axes of its link, and the column of every joint that carries it.
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        omega, slide = to_child(R, r, load6(robot, b, V_))
        alpha, slide_rate = to_child(R, r, load6(robot, b, A_))
        d = add(slide_rate, cross(omega, slide))
        square = dot(omega, omega)
        c = 10 * k
        while b > 0:
            i = number(robot, b)
            z, s = to_child(R, r, load6(robot, b, S_))
            u = cross(z, omega)
            Y[i - 1, c] = dot(s, d)
            write_row3(Y, i - 1, c + 1, add(add(cross(d, z), cross(s, alpha)),
                                            sub(scale(dot(omega, s), omega), scale(square, s))))
            Y[i - 1, c + 4] = z[0] * alpha[0] + u[0] * omega[0]
            Y[i - 1, c + 5] = z[1] * alpha[1] + u[1] * omega[1]
            Y[i - 1, c + 6] = z[2] * alpha[2] + u[2] * omega[2]
            Y[i - 1, c + 7] = (z[0] * alpha[1] + z[1] * alpha[0]
                               + u[0] * omega[1] + u[1] * omega[0])
            Y[i - 1, c + 8] = (z[0] * alpha[2] + z[2] * alpha[0]
                               + u[0] * omega[2] + u[2] * omega[0])
            Y[i - 1, c + 9] = (z[1] * alpha[2] + z[2] * alpha[1]
                               + u[1] * omega[2] + u[2] * omega[1])
            total += Y[i - 1, c] + Y[i - 1, c + 1] + Y[i - 1, c + 4]
            b = parent(robot, b)
    return math.isfinite(total)


@long_kernel
def slotine_li_columns(robot, screws, q, v, v_r, a_r, links, h, Y):
    """Write the Slotine-Li regressor, as `regressor_columns` does that of the torques."""
    if not (fits(robot, q, v) and fits(robot, q, v_r) and fits(robot, q, a_r)):
        return False
    zero = (0.0, 0.0, 0.0)
    move_bodies(robot, screws, q, v, None, None)
    store6(robot, GROUND, VR_, (zero, zero))
    store6(robot, GROUND, A_, against_gravity(robot))
    for i in range(1, count(robot)):
        b = place(i)
        up = parent(robot, b)
        R, r, S = load33(robot, b, R_), load3(robot, b, r_), load6(robot, b, S_)
        Sv = world_joint_motion(robot, screws, i, R, r, S, v_r)
        Sa = world_joint_motion(robot, screws, i, R, r, S, a_r)
        store6(robot, b, VR_, add6(load6(robot, up, VR_), Sv))
        store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(load6(robot, b, V_), Sv)))
    total = 0.0
    for k in range(len(links)):
        b, R, r = link_pose(robot, links, k)
        V, V_r = to_child(R, r, load6(robot, b, V_)), to_child(R, r, load6(robot, b, VR_))
        A_r = sub6(to_child(R, r, load6(robot, b, A_)), scale6(h, ad(V, V_r)))
        c = 10 * k
        while b > 0:
            i = number(robot, b)
            S = to_child(R, r, load6(robot, b, S_))
            x, y = entries(S, A_r), entries(scale6(1.0 - h, ad(V, S)), V_r)
            z = entries(scale6(h, ad(V_r, S)), V)
            for p in range(10):
                Y[i - 1, c + p] = x[p] - y[p] - z[p]
            total += Y[i - 1, c] + Y[i - 1, c + 1] + Y[i - 1, c + 4]
            b = parent(robot, b)
    return math.isfinite(total)


@long_kernel
def momentum_columns(robot, screws, q, v, links, Y):
    """
    Write the regressor of M v, shape (nv, 10 links), and return whether it is finite.

    Nothing is written, and False returned, if q or v has a wrong length.

    """
    if not fits(robot, q, v):
        return False
    move_bodies(robot, screws, q, v, None, None)
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

    Returns whether they are finite; nothing is written, and False returned, if q or v has a wrong
    length.

    """
    if not fits(robot, q, v):
        return False
    origin = move_bodies(robot, screws, q, v, None, None)
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
        write_row3(rows, 1, c + 1, unrotate(R, up))
        total += rows[0, c] + rows[0, c + 4] + rows[1, c]
    return math.isfinite(total)
