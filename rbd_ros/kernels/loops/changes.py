# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the equations of closed loops, J(q) V = 0, by time and along a direction.

Vectors x come with their derivatives: (x, dx/dt, dx/du, d2x/dt/du). The first is at the velocity
V; the second is in a direction u of the configuration, in which V changes by w.

"""

import math

import numpy as np
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.loops.arrays import (
    BLOCK_OF, BODY_A, BODY_B, CARRIER, DEPENDENT, EQUATION, G, GAMMA, INVOLVED,
    KIND, STEP, V)
from rbd_ros.kernels.loops.closed_loops import (
    add_equations, DISTANCE, frame, parts, reflect_all, solve_block, velocity_pass, ZERO6)
from rbd_ros.kernels.tree.coordinates import coordinate_at
from rbd_ros.kernels.tree.layout import (
    count, GROUND, load3, load33, load6, parent, R_, r_, slot, store6)
from rbd_ros.kernels.tree.traversal import forward_pass, G_, S_, SDOT_, V_, world_joint_motion
from rbd_ros.kernels.tree.vectors import ad, add, add6, add_cross, cross, dot, scale, sub, unrotate

# Columns of `robot`: twist of a body in a direction, and the change of V_.
U_, W_ = SDOT_, G_


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
    """Write U_ and W_ of a body, given those of its parent; only U_ if w is None."""
    b = slot(i)
    S, R, r = load6(robot, b, S_), load33(robot, b, R_), load3(robot, b, r_)
    U = add6(U, world_joint_motion(robot, screws, i, R, r, S, u))
    store6(robot, b, U_, U)
    if w is not None:
        Sv, Sw = (world_joint_motion(robot, screws, i, R, r, S, v),
                  world_joint_motion(robot, screws, i, R, r, S, w))
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
def block_change_pass(robot, screws, p, block, u, v, w):
    """Do `change_pass` for the bodies of a block, whose carriers do not move along u."""
    for row in range(len(p.members)):
        if p.members[row, 0] == block:
            i, U, W = p.members[row, 1], ZERO6, ZERO6
            up = parent(robot, slot(i))
            if p.members[row, 2] == 1:
                U, W = load6(robot, up, U_), load6(robot, up, W_)
            else:
                store6(robot, up, U_, ZERO6)
                store6(robot, up, W_, ZERO6)
            change_of_body(robot, screws, i, U, W, u, v, w)


@helper
def loop_jets(robot, p, k):
    """Return the axes of frame a and its origin, that of frame b, and the direction between."""
    (R, r), r_b = frame(robot, p.table, k, BODY_A), frame(robot, p.table, k, BODY_B)[1]
    moved_a = twists(robot, np.int64(p.table[k, BODY_A]))
    axes, origin = moving_axes(R, moved_a), moving_point(r, moved_a)
    origin_b = moving_point(r_b, twists(robot, np.int64(p.table[k, BODY_B])))
    way = product(unrotate, add, axes, sum_of(sub, origin_b, origin))
    if p.table[k, KIND] == DISTANCE:
        return axes, origin, origin_b, product(scale, add, inverse_length(way), way)
    return axes, origin, origin, way


@helper
def relative_jets(axes, point, line, motion):
    """Return turn, slide and slide along the line of a motion that has turn and slide in space."""
    turn, slide = motion
    slide = product(unrotate, add, axes, sum_of(add, slide, product(cross, add, turn, point)))
    return product(unrotate, add, axes, turn), slide, product(dot, plus, line, slide)


@kernel
def equation_changes(robot, screws, loops, q, v, u, w, J_t, J_u, J_tu):
    """
    Write the derivatives of J by time, at the velocity v, and in a direction u, and those of both.

    All velocities are those of the unconstrained robot; v changes by w along u.

    """
    p = parts(loops)
    forward_pass(robot, screws, q, None, None, ZERO6)
    velocity_pass(robot, screws, v, ZERO6)
    change_pass(robot, screws, u, v, w)
    J_t[:], J_u[:], J_tu[:] = 0.0, 0.0, 0.0
    for k in range(len(p.table)):
        axes, origin, origin_b, line = loop_jets(robot, p, k)
        carrier = np.int64(p.table[k, CARRIER])
        for of_body, sign in ((BODY_A, -1.0), (BODY_B, 1.0)):
            point = origin_b if of_body == BODY_B else origin
            b = np.int64(p.table[k, of_body])
            while b != carrier:
                turn, slide, along = relative_jets(
                    axes, point, line, moving_column(load6(robot, b, S_), twists(robot, b)))
                j = coordinate_at(robot, b)
                add_equations(p.table, k, J_t, j, sign, turn[1], slide[1], along[1])
                add_equations(p.table, k, J_u, j, sign, turn[2], slide[2], along[2])
                add_equations(p.table, k, J_tu, j, sign, turn[3], slide[3], along[3])
                b = parent(robot, b)
    return True


# -- Changes of G and of the motion. ------------------------------------------------------------
@helper
def scaled_jets(x, x_t, x_u, Y):
    """Return x Y with its derivatives, but for the part with the second derivative of x."""
    return (scale(x, Y[0]), add(scale(x_t, Y[0]), scale(x, Y[1])),
            add(scale(x_u, Y[0]), scale(x, Y[2])),
            add(add(scale(x_t, Y[2]), scale(x_u, Y[1])), scale(x, Y[3])))


@helper
def write_change(robot, p, block, x, x_t, x_u, X):
    """
    Write to column 0 of X the change along u of J x_t + dJ/dt x, or of J x if x_t is None.

    x changes by x_u, or not if that is None; x_t is held.

    """
    zero = (0.0, 0.0, 0.0)
    for i in range(p.blocks[block, EQUATION], p.blocks[block, EQUATION + 1]):
        X[i, 0] = 0.0
    for k in range(len(p.table)):
        if p.table[k, BLOCK_OF] != block:
            continue
        axes, origin, origin_b, line = loop_jets(robot, p, k)
        carrier = np.int64(p.table[k, CARRIER])
        for of_body, sign in ((BODY_A, -1.0), (BODY_B, 1.0)):
            turn, slide = (zero, zero, zero, zero), (zero, zero, zero, zero)
            b = np.int64(p.table[k, of_body])
            while b != carrier:
                of_turn, of_slide = moving_column(load6(robot, b, S_), twists(robot, b))
                j = coordinate_at(robot, b)
                y_t = 0.0 if x_t is None else sign * x_t[j]
                y_u = 0.0 if x_u is None else sign * x_u[j]
                turn = sum_of(add, turn, scaled_jets(sign * x[j], y_t, y_u, of_turn))
                slide = sum_of(add, slide, scaled_jets(sign * x[j], y_t, y_u, of_slide))
                b = parent(robot, b)
            turn, slide, along = relative_jets(
                axes, origin_b if of_body == BODY_B else origin, line, (turn, slide))
            if x_t is None:
                add_equations(p.table, k, X, 0, 1.0, turn[2], slide[2], along[2])
            else:
                add_equations(p.table, k, X, 0, 1.0, turn[3], slide[3], along[3])


@helper
def write_rate(robot, p):
    """Write the dependent rows of dG/dt; needs V_ and changes U_."""
    order, found = p.order, p.found
    for i in range(count(robot)):
        store6(robot, slot(i), U_, load6(robot, slot(i), V_))
    for block in range(len(p.blocks)):
        for e in range(p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1]):
            write_change(robot, p, block, found[G + p.involved[e, 0]], None, None, p.X)
            reflect_all(p, block, p.X, 0)
            solve_block(p, block, p.X, 0, found[STEP])
            for k in range(p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]):
                p.rate[k, e] = found[STEP, order[k]]


@helper
def write_block_changes(robot, screws, p, block, v, a, of_G):
    """Do `write_map_changes` for a block."""
    found, order, involved = p.found, p.order, p.involved
    e_0, e_1 = p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1]
    d_0, d_1 = p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]
    for k in range(d_0, d_1):
        for e in range(e_0, e_1):
            p.rate[k, e] = 0.0
    for c in range(e_0, e_1):
        block_change_pass(robot, screws, p, block, found[G + involved[c, 0]], found[V], None)
        for e in range(e_0, e_1):
            write_change(robot, p, block, found[G + involved[e, 0]], None, None, p.X)
            reflect_all(p, block, p.X, 0)
            solve_block(p, block, p.X, 0, found[STEP])
            for k in range(d_0, d_1):
                of_G[c, k, e] = found[STEP, order[k]]
        for k in range(d_0, d_1):
            p.of_V[k, c], p.of_A[k, c] = 0.0, 0.0
            for e in range(e_0, e_1):
                p.of_V[k, c] += of_G[c, k, e] * v[involved[e, 0]]
                p.of_A[k, c] += of_G[c, k, e] * a[involved[e, 0]]
                p.rate[k, e] += of_G[c, k, e] * v[involved[c, 0]]
    for c in range(e_0, e_1):
        for j in range(len(order)):
            found[STEP, j] = 0.0
        for k in range(d_0, d_1):
            found[STEP, order[k]] = p.of_V[k, c]
        block_change_pass(robot, screws, p, block, found[G + involved[c, 0]], found[V],
                          found[STEP])
        write_change(robot, p, block, found[V], found[GAMMA], found[STEP], p.X)
        reflect_all(p, block, p.X, 0)
        solve_block(p, block, p.X, 0, found[STEP])
        for k in range(d_0, d_1):
            p.of_A[k, c] += found[STEP, order[k]]


@helper
def write_map_changes(robot, screws, p, v, a, of_G):
    """
    Write how G, V and A change along each independent velocity k that is in a loop.

    The rows of dependent velocities go to of_G (dG), and to the parts of ``p``: of_V (dG v), of_A
    (dG a + d gamma), and rate (dG/dt). Needs poses, V_, and the results of `find_motion`.

    """
    for block in range(len(p.blocks)):
        write_block_changes(robot, screws, p, block, v, a, of_G)
