# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The regressors Y with Y pi = tau and Y pi = M a_r + C v_r + g, body by body.

With a body's twist V = (omega, v) and acceleration A = (alpha, dv), gravity included, in its own
axes, the force on it is linear in its parameters: with d = dv + omega x v,

    f = m d + (alpha x + omega x omega x) mc,    n = mc x d + I alpha + omega x I omega.

Column i of the body's Jacobian, (z, s), makes of that the ten entries of row i of Y:

    m: s . d,   mc: d x z + s x alpha + omega (omega . s) - s (omega . omega),
    Ixx: z_x alpha_x + u_x omega_x,   Ixy: z_x alpha_y + z_y alpha_x + u_x omega_y + u_y omega_x,

and so on, with u = z x omega. Garofalo et al. (8)-(12), (16).

For M a_r + C v_r + g the force is, with V_r = J v_r and A_r = J a_r + (J v_r)' - gravity, the
derivative taken in the world's axes,

    G (A_r - h ad_V V_r) - (1 - h) ad_V^T G V_r - h ad_{V_r}^T G V,

h = 1/2 for the Christoffel form of C and 0 for that of the body; and (z, s)^T G X has the entries

    m: s . x,   mc: x x z + s x w,   Ixx: z_x w_x,   Ixy: z_x w_y + z_y w_x ...  for X = (w, x).

"""

import math

from rbd_ros.kernels.bodies import (count, fits, GRAVITY, GROUND, ground_origin, load3, load33,
                                    load6, number, parent, place, place_ground, place_in_parents,
                                    place_in_world, R_, r_, SCRATCH, store6, world_column,
                                    world_joint_motion)
from rbd_ros.kernels.compiled import helper, long_kernel
from rbd_ros.kernels.vectors import (ad, add, add6, compose, cross, dot, row33, scale, scale6,
                                     sub, sub6, to_child, write_row3)

# Columns of `robot`.
S_, V_, A_, VR_, REGRESSOR_COLUMNS = (SCRATCH + k for k in (12, 18, 24, 30, 36))


@long_kernel
def regressor_columns(robot, screws, q, v, a, links, Y):
    """
    Write the regressor and return whether it is finite.

    Row k of ``links`` holds the body that link k is, and the rotation from the link's frame to the
    body's; columns 10 k ... 10 k + 9 of ``Y`` are for its m, mc (3), Ixx, Iyy, Izz, Ixy, Ixz, Iyz
    about the origin of the link. Nothing is written, and False returned, if q, v or a has a wrong
    length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    zero = (0.0, 0.0, 0.0)
    place_in_parents(robot, screws, q)
    place_ground(robot, ground_origin(robot, screws))
    store6(robot, GROUND, V_, (zero, zero))
    store6(robot, GROUND, A_, (zero, scale(-1.0, load3(robot, GROUND, GRAVITY))))
    # Root to leaves: pose, column of the Jacobian, twist and acceleration, in the world's axes.
    for i in range(1, count(robot)):
        b = place(i)
        up = parent(robot, b)
        R, r = place_in_world(robot, b, up)
        S = world_column(robot, screws, b, R, r)
        Sv = world_joint_motion(robot, screws, i, R, r, S, v)
        V = add6(load6(robot, up, V_), Sv)
        Sa = world_joint_motion(robot, screws, i, R, r, S, a)
        store6(robot, b, S_, S)
        store6(robot, b, V_, V)
        store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(V, Sv)))
    # Each link: its own axes, and the column of every joint that carries it.
    total = 0.0
    for k in range(len(links)):
        b = place(int(links[k, 0]))
        R, r = compose(load33(robot, b, R_), row33(links, k, 1)), load3(robot, b, r_)
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


@helper
def add_force(Y, i, c, S, X):
    """Add (z, s)^T G X to columns c ... c + 9 of row i."""
    (z, s), (w, x) = S, X
    mc = add(cross(x, z), cross(s, w))
    Y[i, c] += dot(s, x)
    Y[i, c + 1] += mc[0]
    Y[i, c + 2] += mc[1]
    Y[i, c + 3] += mc[2]
    Y[i, c + 4] += z[0] * w[0]
    Y[i, c + 5] += z[1] * w[1]
    Y[i, c + 6] += z[2] * w[2]
    Y[i, c + 7] += z[0] * w[1] + z[1] * w[0]
    Y[i, c + 8] += z[0] * w[2] + z[2] * w[0]
    Y[i, c + 9] += z[1] * w[2] + z[2] * w[1]


@long_kernel
def slotine_li_columns(robot, screws, q, v, v_r, a_r, links, christoffel, Y):
    """
    Write the Slotine-Li regressor, as `regressor_columns` does that of the torques.

    ``christoffel`` is h: 1/2 or 0.

    """
    if not (fits(robot, q, v) and fits(robot, q, v_r) and fits(robot, q, a_r)):
        return False
    zero = (0.0, 0.0, 0.0)
    place_in_parents(robot, screws, q)
    place_ground(robot, ground_origin(robot, screws))
    store6(robot, GROUND, V_, (zero, zero))
    store6(robot, GROUND, VR_, (zero, zero))
    store6(robot, GROUND, A_, (zero, scale(-1.0, load3(robot, GROUND, GRAVITY))))
    # Root to leaves: pose, column of the Jacobian, V, V_r and A_r, in the world's axes.
    for i in range(1, count(robot)):
        b = place(i)
        up = parent(robot, b)
        R, r = place_in_world(robot, b, up)
        S = world_column(robot, screws, b, R, r)
        V = add6(load6(robot, up, V_), world_joint_motion(robot, screws, i, R, r, S, v))
        Sv_r = world_joint_motion(robot, screws, i, R, r, S, v_r)
        Sa_r = world_joint_motion(robot, screws, i, R, r, S, a_r)
        store6(robot, b, S_, S)
        store6(robot, b, V_, V)
        store6(robot, b, VR_, add6(load6(robot, up, VR_), Sv_r))
        store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa_r), ad(V, Sv_r)))
    # Each link: its own axes, and the column of every joint that carries it.
    total = 0.0
    for k in range(len(links)):
        b = place(int(links[k, 0]))
        R, r = compose(load33(robot, b, R_), row33(links, k, 1)), load3(robot, b, r_)
        V, V_r = to_child(R, r, load6(robot, b, V_)), to_child(R, r, load6(robot, b, VR_))
        A_r = sub6(to_child(R, r, load6(robot, b, A_)), scale6(christoffel, ad(V, V_r)))
        c = 10 * k
        while b > 0:
            i = number(robot, b)
            S = to_child(R, r, load6(robot, b, S_))
            Y[i - 1, c:c + 10] = 0.0
            add_force(Y, i - 1, c, S, A_r)
            add_force(Y, i - 1, c, scale6(christoffel - 1.0, ad(V, S)), V_r)
            add_force(Y, i - 1, c, scale6(-christoffel, ad(V_r, S)), V)
            total += Y[i - 1, c] + Y[i - 1, c + 1] + Y[i - 1, c + 4]
            b = parent(robot, b)
    return math.isfinite(total)
