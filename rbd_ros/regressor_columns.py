# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The regressor Y with Y pi = tau, body by body.

With a body's twist V = (omega, v) and acceleration A = (alpha, dv), gravity included, in its own
axes, the force on it is linear in its parameters: with d = dv + omega x v,

    f = m d + (alpha x + omega x omega x) mc,    n = mc x d + I alpha + omega x I omega.

Column i of the body's Jacobian, (z, s), makes of that the ten entries of row i of Y:

    m: s . d,   mc: d x z + s x alpha + omega (omega . s) - s (omega . omega),
    Ixx: z_x alpha_x + u_x omega_x,   Ixy: z_x alpha_y + z_y alpha_x + u_x omega_y + u_y omega_x,

and so on, with u = z x omega. Garofalo et al. (8)-(12), (16); seed guide section 4, Regressor.

"""

import math

from rbd_ros.bodies import (count, fits, GRAVITY, GROUND, ground_origin, load3, load33, load6,
                            number, parent, place, place_ground, place_in_parents, place_in_world,
                            R_, r_, SCRATCH, store6, world_column, world_joint_motion)
from rbd_ros.compiled import kernel
from rbd_ros.vectors import (ad, add, add6, compose, cross, dot, row33, scale, sub, to_child,
                             write_row3)

# Columns of `robot`.
S_, V_, A_ = (SCRATCH + k for k in (12, 18, 24))


@kernel
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
