# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the equations of closed loops, J(q) x = 0, and of the map V = G v.

The motion of a body at velocities x of the tree is X, a sum of S_j x_j along its path. Along a
direction u of the configuration, in which x changes by x_u, it changes by

    Y = sum ad_U S_j x_j + S_j x_u,

with the motion U at u. Equations depend on motions relative to the body that carries a block of
loops. By time, at the velocity v, X changes by A, which changes by D along u.

"""

import numpy as np
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.loops.arrays import BLOCK_OF, BODY_A, BODY_B, G, KIND, SIDE, STEP
from rbd_ros.kernels.loops.closed_loops import (
    add_equations, change_of_motion, dependent_of, DISTANCE, equations_of, frame_a,
    involved_of, parts, point_b, point_change, point_velocity, reflect_all, relative, solve_block,
    turned, unit, write_map, ZERO6)
from rbd_ros.kernels.tree.layout import columns_of, load3, load6, parent, slot, store, store6
from rbd_ros.kernels.tree.traversal import A_, forward_pass, G_, joint_motion_at, V_
from rbd_ros.kernels.tree.vectors import (
    ad, add, add6, add_cross, dot, scale, shift, sub, sub6, unrotate)

# Columns of `robot`: motions of bodies at v, which may include that of their carrier, and u, and
# the change of the first along u; X and Y; A and D.
T_ = V_
U_, X_, Y_, W_, D_, CHANGES_END = columns_of(G_, 6, 6, 6, 6, 6)


# -- Motions of the bodies of a block. ----------------------------------------------------------
@helper
def member(p, row, block):
    """Return the number of a body in a block, or 0."""
    return p.members[row, 1] if p.members[row, 0] == block else 0


@helper
def clear_carriers(robot, p, block, first, last):
    """Clear columns first ... last - 1 of the bodies that carry a block."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0 and p.members[row, 2] == 0:
            carrier = parent(robot, slot(i))
            for k in range(first, last):
                store(robot, carrier, k, 0.0)


@helper
def carry(robot, b, X, own):
    """Write the sum of column X of the parent and what a body adds."""
    store6(robot, b, X, add6(load6(robot, parent(robot, b), X), own))


@helper
def write_block_motions(robot, traits, p, block, x, X):
    """Write to column X the motions of the bodies of a block at x."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0:
            carry(robot, slot(i), X, joint_motion_at(robot, traits, i, x))


@helper
def write_changes(robot, traits, p, block, x, x_u, U, X, Y):
    """Write motions at x to X, and to Y their changes along U, where x changes by x_u or not."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0:
            b, Sx = slot(i), joint_motion_at(robot, traits, i, x)
            carry(robot, b, X, Sx)
            change = ad(load6(robot, b, U), Sx)
            if x_u is not None:
                change = add6(change, joint_motion_at(robot, traits, i, x_u))
            carry(robot, b, Y, change)


@helper
def write_rates(robot, traits, p, block, x, x_t, x_u):
    """Write A_ and D_ for x, with the rate x_t that is held along u."""
    for row in range(len(p.members)):
        i = member(p, row, block)
        if i > 0:
            b = slot(i)
            T, U = load6(robot, b, T_), load6(robot, b, U_)
            Sx, Sx_t = joint_motion_at(robot, traits, i, x), joint_motion_at(robot, traits, i, x_t)
            Sx_u = add6(ad(U, Sx), joint_motion_at(robot, traits, i, x_u))
            carry(robot, b, A_, add6(ad(T, Sx), Sx_t))
            carry(robot, b, D_, add6(ad(load6(robot, b, W_), Sx),
                                     add6(ad(T, Sx_u), ad(U, Sx_t))))


# -- Changes of equations. ----------------------------------------------------------------------
@helper
def point_rate(robot, b, point, X, Y):
    """Return velocity X of a point of a body and its rate, and the changes of both along u."""
    x_u, (turn_t, _) = point_change(robot, b, point, U_, X, Y), load6(robot, b, A_)
    change = add_cross(point_velocity(robot, b, point, D_), turn_t,
                       point_velocity(robot, b, point, U_))
    change = add_cross(change, load3(robot, b, Y), point_velocity(robot, b, point, T_))
    change = add_cross(change, load3(robot, b, X), point_change(robot, b, point, U_, T_, W_))
    return (point_velocity(robot, b, point, X), x_u, point_change(robot, b, point, T_, X, A_),
            change)


@helper
def change_of_rate(robot, p, k, X, Y):
    """Return the change along u of `change_of_motion` by time, for the motions in X."""
    a, b = np.int64(p.table[k, BODY_A]), np.int64(p.table[k, BODY_B])
    R, r = frame_a(p, k)
    T, U = load6(robot, a, T_), load6(robot, a, U_)
    motion = relative(robot, a, b, X)
    rate = sub6(relative(robot, a, b, A_), ad(T, motion))
    change = sub6(sub6(relative(robot, a, b, D_), ad(load6(robot, a, W_), motion)),
                  add6(ad(T, relative(robot, a, b, Y)), ad(U, rate)))
    turn, slide = shift(r, change)
    along = 0.0
    if p.table[k, KIND] == DISTANCE:
        r_b = point_b(p, k)
        line, length = unit(sub(r_b, r))
        v = sub(point_velocity(robot, b, r_b, T_), point_velocity(robot, a, r, T_))
        u = sub(point_velocity(robot, b, r_b, U_), point_velocity(robot, a, r, U_))
        v_u = sub(point_change(robot, b, r_b, U_, T_, W_), point_change(robot, a, r, U_, T_, W_))
        line_t, line_u = turned(line, length, v), turned(line, length, u)
        line_tu = sub(turned(line, length, v_u), scale(1.0 / length, add(
            add(scale(dot(line_u, v), line), scale(dot(line, v), line_u)),
            scale(dot(line, u), line_t))))
        (x_a, y_a, t_a, c_a), (x_b, y_b, t_b, c_b) = (point_rate(robot, a, r, X, Y),
                                                      point_rate(robot, b, r_b, X, Y))
        along = (dot(line, sub(c_b, c_a)) + dot(line_u, sub(t_b, t_a))
                 + dot(line_tu, sub(x_b, x_a)) + dot(line_t, sub(y_b, y_a)))
    return unrotate(R, turn), unrotate(R, slide), along


@helper
def solve_change(robot, p, block, rate, U, X, Y):
    """
    Write to the row STEP the change that cancels that of J x, where X are the motions at x.

    The latter is along U, or along u and by time if ``rate``.

    """
    for i in equations_of(p, block):
        p.X[i, SIDE] = 0.0
    for k in range(len(p.table)):
        if p.table[k, BLOCK_OF] == block:
            turn, slide, along = (change_of_rate(robot, p, k, X, Y) if rate
                                  else change_of_motion(robot, p, k, U, X, Y))
            add_equations(p.table, k, p.X, SIDE, 1.0, turn, slide, along)
    reflect_all(p, block, p.X, SIDE)
    solve_block(p, block, p.X, SIDE, p.vectors[STEP])


@helper
def change_along(robot, traits, p, block, x, U):
    """Write to the row STEP the change along U of a column x of G."""
    write_changes(robot, traits, p, block, x, None, U, X_, Y_)
    solve_change(robot, p, block, False, U, X_, Y_)


# -- Changes of G. ------------------------------------------------------------------------------
@helper
def write_rate(robot, traits, p):
    """Write the dependent rows of dG/dt at the velocity V; needs the results of `find_motion`."""
    order, vectors = p.order, p.vectors
    for block in range(len(p.blocks)):
        clear_carriers(robot, p, block, X_, Y_ + 6)
        for e in involved_of(p, block):
            change_along(robot, traits, p, block, vectors[G + p.involved[e, 0]], T_)
            for k in dependent_of(p, block):
                p.rate[k, e] = vectors[STEP, order[k]]


@kernel
def map_changes(robot, traits, loops, q, v, u, w, of_t, of_u, of_tu):
    """
    Write the derivatives of G by time, at the velocity v, in a direction u, and those of both.

    All velocities are those of the unconstrained robot; v changes by w along u. Results have a row
    for each column of G.

    """
    p = parts(loops)
    forward_pass(robot, traits, q, None, None, ZERO6)
    write_map(robot, p)
    vectors, involved = p.vectors, p.involved
    for block in range(len(p.blocks)):
        clear_carriers(robot, p, block, T_, A_ + 6)
        clear_carriers(robot, p, block, U_, CHANGES_END)
        write_block_motions(robot, traits, p, block, u, U_)
        write_changes(robot, traits, p, block, v, w, U_, T_, W_)
        for e in involved_of(p, block):
            i = involved[e, 0]
            x, x_t, x_u = vectors[G + i], of_t[i], of_u[i]
            change_along(robot, traits, p, block, x, T_)
            take_step(p, block, x_t)
            change_along(robot, traits, p, block, x, U_)
            take_step(p, block, x_u)
            write_changes(robot, traits, p, block, x, x_u, U_, X_, Y_)
            write_rates(robot, traits, p, block, x, x_t, x_u)
            solve_change(robot, p, block, True, U_, X_, Y_)
            take_step(p, block, of_tu[i])
    return True


@helper
def take_step(p, block, x):
    """Copy the dependent entries of the row STEP."""
    for k in dependent_of(p, block):
        x[p.order[k]] = p.vectors[STEP, p.order[k]]
