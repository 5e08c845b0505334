# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the equations of closed loops, J(q) V = 0, by time and along a direction.

Vectors x come with their derivatives: (x, dx/dt, dx/du, d2x/dt/du). The first is at the velocity
V; the second is in a direction u of the configuration, in which V changes by w.

"""

import math

import numpy as np
from rbd_ros.kernels.closed_loops import (
    add_equations, BODY_A, BODY_B, CARRIER, DISTANCE, frame, GROUP, KIND, velocity_pass, ZERO6)
from rbd_ros.kernels.coordinates import column
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.layout import (
    count, GROUND, load3, load33, load6, number, parent, R_, r_, slot, store6)
from rbd_ros.kernels.traversal import forward_pass, G_, S_, SDOT_, V_, world_joint_motion
from rbd_ros.kernels.vectors import ad, add, add6, add_cross, cross, dot, scale, sub, unrotate

# Columns of `robot`: twist of a body in a direction, and the change of V_.
U_, W_ = SDOT_, G_
ALL_GROUPS = -1


@helper
def product(times, plus, X, Y):
    """Return a product that is linear in both factors, with its derivatives."""
    (x, x_t, x_u, x_tu), (y, y_t, y_u, y_tu) = X, Y
    return (times(x, y), plus(times(x_t, y), times(x, y_t)), plus(times(x_u, y), times(x, y_u)),
            plus(plus(times(x_tu, y), times(x_t, y_u)), plus(times(x_u, y_t), times(x, y_tu))))


@helper
def sum_of(plus, X, Y):
    """Return a sum or difference with its derivatives."""
    return (plus(X[0], Y[0]), plus(X[1], Y[1]), plus(X[2], Y[2]), plus(X[3], Y[3]))


@helper
def plus(x, y):
    """Return x + y."""
    return x + y


@helper
def inverse_length(X):
    """Return 1 / |x| with its derivatives."""
    s, s_t, s_u, s_tu = product(dot, plus, X, X)
    f = 1.0 / math.sqrt(s)
    f_s = -0.5 * f / s
    return f, f_s * s_t, f_s * s_u, -1.5 * f_s / s * s_t * s_u + f_s * s_tu


@helper
def twists(robot, b):
    """Return the twists of a body at V and at u, and the change of the first."""
    return load6(robot, b, V_), load6(robot, b, U_), load6(robot, b, W_)


@helper
def moving_axis(c, moved):
    """Return an axis that is fixed to a body, with its derivatives."""
    by_t, by_u, change = moved
    c_u = cross(by_u[0], c)
    return c, cross(by_t[0], c), c_u, add_cross(cross(change[0], c), by_t[0], c_u)


@helper
def moving_axes(R, moved):
    """Return the columns of a rotation that is fixed to a body, with their derivatives."""
    x, y, z = (moving_axis(R[0], moved), moving_axis(R[1], moved), moving_axis(R[2], moved))
    return ((x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2]), (x[3], y[3], z[3]))


@helper
def moving_point(p, moved):
    """Return a point that is fixed to a body, with its derivatives."""
    by_t, by_u, change = moved
    p_u = add_cross(by_u[1], by_u[0], p)
    return (p, add_cross(by_t[1], by_t[0], p), p_u,
            add_cross(add_cross(change[1], change[0], p), by_t[0], p_u))


@helper
def moving_column(S, moved):
    """Return turn and slide of a column that is fixed to a body, each with its derivatives."""
    by_t, by_u, change = moved
    S_t, S_u = ad(by_t, S), ad(by_u, S)
    S_tu = add6(ad(change, S), ad(by_t, S_u))
    return (S[0], S_t[0], S_u[0], S_tu[0]), (S[1], S_t[1], S_u[1], S_tu[1])


@helper
def change_of_body(robot, screws, i, U, W, u, v, w):
    """Write U_ and W_ of a body, given those of its parent."""
    b = slot(i)
    S, R, r = load6(robot, b, S_), load33(robot, b, R_), load3(robot, b, r_)
    U = add6(U, world_joint_motion(robot, screws, i, R, r, S, u))
    Sv, Sw = (world_joint_motion(robot, screws, i, R, r, S, v),
              world_joint_motion(robot, screws, i, R, r, S, w))
    store6(robot, b, U_, U)
    store6(robot, b, W_, add6(add6(W, ad(U, Sv)), Sw))


@helper
def change_pass(robot, screws, u, v, w):
    """Write U_ and W_: the twist of every body at u, and the change of V_."""
    store6(robot, GROUND, U_, ZERO6)
    store6(robot, GROUND, W_, ZERO6)
    for i in range(1, count(robot)):
        up = parent(robot, slot(i))
        change_of_body(robot, screws, i, load6(robot, up, U_), load6(robot, up, W_), u, v, w)


@helper
def write_changes(robot, loops, velocities, group, J_t, J_u, J_tu):
    """Write the derivatives of J; those of other groups, unless ALL_GROUPS, are zero."""
    J_t[:], J_u[:], J_tu[:] = 0.0, 0.0, 0.0
    for k in range(len(loops)):
        if group != ALL_GROUPS and loops[k, GROUP] != group:
            continue
        (R, p), p_b = frame(robot, loops, k, BODY_A), frame(robot, loops, k, BODY_B)[1]
        moved_a = twists(robot, np.int64(loops[k, BODY_A]))
        axes, P = moving_axes(R, moved_a), moving_point(p, moved_a)
        P_b = moving_point(p_b, twists(robot, np.int64(loops[k, BODY_B])))
        apart, carrier = loops[k, KIND] == DISTANCE, np.int64(loops[k, CARRIER])
        way = product(unrotate, add, axes, sum_of(sub, P_b, P))
        line = product(scale, add, inverse_length(way), way) if apart else way
        for of_body, sign in ((BODY_A, -1.0), (BODY_B, 1.0)):
            point = P_b if apart and of_body == BODY_B else P
            b = np.int64(loops[k, of_body])
            while b != carrier:
                turn, slide = moving_column(load6(robot, b, S_), twists(robot, b))
                slide = product(unrotate, add, axes,
                                sum_of(add, slide, product(cross, add, turn, point)))
                turn, along = product(unrotate, add, axes, turn), product(dot, plus, line, slide)
                i = number(robot, b) - 1
                j, factor = column(velocities, i), sign * velocities[i, 1]
                add_equations(J_t, loops, k, j, factor, turn[1], slide[1], along[1])
                add_equations(J_u, loops, k, j, factor, turn[2], slide[2], along[2])
                add_equations(J_tu, loops, k, j, factor, turn[3], slide[3], along[3])
                b = parent(robot, b)


@kernel
def equation_changes(robot, screws, loops, velocities, q, v, u, w, J_t, J_u, J_tu):
    """
    Write the derivatives of J by time, at the velocity v, and in a direction u, and those of both.

    All velocities are those of the joints, mimics included; v changes by w along u.

    """
    forward_pass(robot, screws, q, None, None, ZERO6)
    velocity_pass(robot, screws, v, V_)
    change_pass(robot, screws, u, v, w)
    write_changes(robot, loops, velocities, ALL_GROUPS, J_t, J_u, J_tu)
    return True
