# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Closed loops: the equations of constraints, and the velocities of the tree that fulfil them.

A constraint joins frame a of one body to frame b of another. The motion of b relative to a, in the
axes of a, has components that must vanish:

    J(q) V = 0,    J A + c = 0,    c = dJ/dt V,

with velocities V and accelerations A of the tree. Some of the velocities, v, are independent; the
equations determine the others, the dependent ones. With the columns J_d and J_i of the two kinds,

    V = G v,            G_d = -J_d^+ J_i,
    A = G a + gamma,    gamma_d = -J_d^+ c,

where the rows of the independent velocities are those of the identity in G, and zero in gamma.
There may be more equations than dependent velocities (a planar loop fulfils three of its six
anyway): J_d has full column rank, and a QR factorization solves the equations that are consistent.
On request, where J_d is ill-conditioned, (J_d^T J_d + D)^-1 J_d^T stands for J_d^+, with the D of
`rbd_ros.task_space_dynamics`: the rows of a root of D are further equations of the block.

The arrays are those of `rbd_ros.kernels.loops.arrays`. Loops that have no joints in common
are separate blocks: each is solved on its own.

"""

import math

import numpy as np
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import exceeds, reciprocal
from rbd_ros.kernels.loops.arrays import (
    A, BODY_A, BODY_B, CARRIER, CLOSED, CONSISTENT, cut, DEPENDENT, DIAGONAL, END, EQUATION,
    EXTRA_ROWS, FACTOR, FIRST, FRAME, G, GAMMA, INCONSISTENT, INVOLVED, KIND, LENGTH, LENGTH_M,
    POINT_B, SIDE, SINGULAR, STEP, V)
from rbd_ros.kernels.loops.damping import damp_block
from rbd_ros.kernels.tree.coordinates import coordinate_at
from rbd_ros.kernels.tree.layout import (
    count, fits, GROUND, load3, load33, load6, parent, R_, r_, slot, store6)
from rbd_ros.kernels.tree.traversal import (
    A_, forward_pass, joint_motion_at, minus_gravity, S_, V_, world_pose)
from rbd_ros.kernels.tree.vectors import (
    ad, add6, add_cross, compose, dot, row3, row33, scale, shift, sub, sub6, transpose, unrotate,
    write_row3)

# Values of KIND.
POINT, REVOLUTE, WELD, DISTANCE = 0, 1, 2, 3
ZERO6 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
parts = helper(cut)


# -- Parts of blocks. ---------------------------------------------------------------------------
@helper
def equations_of(p, block):
    """Return the numbers of the equations of a block."""
    return range(p.blocks[block, EQUATION], p.blocks[block, EQUATION + 1])


@helper
def dependent_of(p, block):
    """Return the places in ``order`` of the dependent velocities of a block."""
    return range(p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1])


@helper
def involved_of(p, block):
    """Return the rows of ``involved`` that belong to a block."""
    return range(p.blocks[block, INVOLVED], p.blocks[block, INVOLVED + 1])


# -- Positions. ---------------------------------------------------------------------------------
@helper
def frame(robot, table, k, of_body):
    """Return the pose of frame a or b, in the frame of the recursions."""
    b = np.int64(table[k, of_body])
    return world_pose(load33(robot, b, R_), load3(robot, b, r_),
                      row33(table, k, of_body + 1), row3(table, k, of_body + 10))


@helper
def frame_a(p, k):
    """Return the `frame` a that `write_equations` writes."""
    row = np.int64(p.table[k, FIRST])
    return row33(p.X, row, FRAME), row3(p.X, row, FRAME + 9)


@helper
def point_b(p, k):
    """Return the origin of frame b that `write_equations` writes."""
    return row3(p.X, np.int64(p.table[k, FIRST]), POINT_B)


@helper
def rotation_gap(kind, R):
    """Return the rotation vector of R, or, of a revolute constraint, the turn of its z axis."""
    x, y, z = R
    if kind == REVOLUTE:
        s, c = math.sqrt(z[0] * z[0] + z[1] * z[1]), z[2]
        turn = (-z[1], z[0], 0.0)
    else:
        turn = (0.5 * (y[2] - z[1]), 0.5 * (z[0] - x[2]), 0.5 * (x[1] - y[0]))
        s, c = math.sqrt(dot(turn, turn)), 0.5 * (x[0] + y[1] + z[2] - 1.0)
    if s > 1e-9:
        return scale(math.atan2(s, c) / s, turn)
    return (math.pi, 0.0, 0.0) if c < 0.0 else turn


@helper
def unit(a):
    """Return a / |a| and |a|; the x axis for the vector zero."""
    length = math.sqrt(dot(a, a))
    return scale(1.0 / length, a) if exceeds(length, 0.0) else (1.0, 0.0, 0.0), length


@helper
def add_equations(table, k, J, j, factor, turn, slide, along):
    """Add to column j the components of a motion of b relative to a that must vanish."""
    kind, row = table[k, KIND], np.int64(table[k, FIRST])
    if kind == DISTANCE:
        J[row, j] += factor * along
        return
    if kind != POINT:
        J[row, j] += factor * turn[0]
        J[row + 1, j] += factor * turn[1]
        row += 2
        if kind == WELD:
            J[row, j] += factor * turn[2]
            row += 1
    for i in range(3):
        J[row + i, j] += factor * slide[i]


@helper
def write_equations(robot, p):
    """Write J, zeros and the gaps, side by side; return the size of the gaps, m and rad."""
    table, J, n = p.table, p.J, len(p.order)
    rows = len(J) - EXTRA_ROWS
    for row in range(rows):
        for j in range(n + 2):
            J[row, j] = 0.0
    for k in range(len(table)):
        (R, r), (R_b, r_b) = frame(robot, table, k, BODY_A), frame(robot, table, k, BODY_B)
        kind, shift_b, first = table[k, KIND], unrotate(R, sub(r_b, r)), np.int64(table[k, FIRST])
        for i in range(3):
            write_row3(p.X, first, FRAME + 3 * i, R[i])
        write_row3(p.X, first, FRAME + 9, r)
        write_row3(p.X, first, POINT_B, r_b)
        carrier = np.int64(table[k, CARRIER])
        line, length = unit(shift_b)
        turn = (0.0, 0.0, 0.0)
        if kind == REVOLUTE or kind == WELD:
            turn = rotation_gap(kind, compose(transpose(R), R_b))
        add_equations(table, k, J, n + 1, 1.0, turn, shift_b, length - table[k, LENGTH_M])
        for of_body, sign in ((BODY_A, -1.0), (BODY_B, 1.0)):
            point = r_b if kind == DISTANCE and of_body == BODY_B else r
            b = np.int64(table[k, of_body])
            while b != carrier:
                turn, slide = shift(point, load6(robot, b, S_))
                slide = unrotate(R, slide)
                add_equations(table, k, J, coordinate_at(robot, b), sign, unrotate(R, turn), slide,
                              dot(line, slide))
                b = parent(robot, b)
    square = 0.0
    for row in range(rows):
        square += J[row, n + 1] * J[row, n + 1]
    return math.sqrt(square)


# -- Dependent velocities. ----------------------------------------------------------------------
@helper
def is_regular(size, square):
    """Return whether a column has this much, squared, that the columns before it do not have."""
    return size > SINGULAR * SINGULAR * square


@helper
def is_consistent(left, square, damping):
    """Return whether equations are solved or damped; squares of a rest and a right-hand side."""
    return left <= CONSISTENT * CONSISTENT * square or damping > 0.0


@helper
def is_closed(gap):
    """Return whether the size of the gaps is zero up to the accuracy of the caller's q."""
    return gap <= CLOSED


@helper
def pivots(p, block):
    """Return the ranges of equations and of dependent velocities, of which no more are solved."""
    row, end = p.blocks[block, EQUATION], p.blocks[block, EQUATION + 1]
    first, last = p.blocks[block, DEPENDENT], p.blocks[block, DEPENDENT + 1]
    return row, end, first, min(last, first + end - row)


@helper
def reflect(J, row, end, d, X, j):
    """Apply the reflection of rows ``row`` ... that is kept in column d of J to column j of X."""
    along = 0.0
    for i in range(row, end):
        along += J[i, d] * X[i, j]
    if along != 0.0:
        along *= J[FACTOR, d]
        for i in range(row, end):
            X[i, j] -= along * J[i, d]


@helper
def reflect_all(p, block, X, j):
    """Apply all reflections of a block to column j of X."""
    row, _, first, last = pivots(p, block)
    for k in range(first, last):
        d = p.order[k]
        reflect(p.J, row + k - first, np.int64(p.J[END, d]), d, X, j)


@helper
def factor_block(p, block, damping):
    """
    Factor J_d = Q R by reflections, and apply Q^T to J_i and the gaps.

    Return 0; 1 + the position in ``order`` of a column that the previous ones nearly contain; or
    INCONSISTENT, which damped equations may be.

    """
    J, order, involved, status = p.J, p.order, p.involved, 0
    start, below, first, last = pivots(p, block)
    if last < p.blocks[block, DEPENDENT + 1]:
        status = last + 1
    for k in range(first, last):
        row, end, d, before, size = start + k - first, below, order[k], 0.0, 0.0
        while end > row + 1 and J[end - 1, d] == 0.0:
            end -= 1
        for i in range(start, row):
            before += J[i, d] * J[i, d]
        for i in range(row, end):
            size += J[i, d] * J[i, d]
        if not is_regular(size, before + size) and status == 0:
            status = k + 1
        # |x - s e|^2 / 2 = |x|^2 - s x_0, with s = -|x| sign x_0
        x_0 = J[row, d]
        s = -math.copysign(math.sqrt(size), x_0)
        J[DIAGONAL, d] = s
        J[row, d] -= s
        J[FACTOR, d] = reciprocal(size - s * x_0)
        J[END, d] = end
        for i in range(k + 1, last):
            reflect(J, row, end, d, J, order[i])
        for e in involved_of(p, block):
            reflect(J, row, end, d, J, involved[e, 1])
        reflect(J, row, end, d, J, len(order) + 1)
    for e in involved_of(p, block):
        inside, left, j = 0.0, 0.0, involved[e, 1]
        for i in range(start, below):
            square = J[i, j] * J[i, j]
            inside += square
            if i >= start + last - first:
                left += square
        if not (is_consistent(left, inside, damping) or status != 0):
            status = INCONSISTENT
    return status


@helper
def solve_block(p, block, X, j, x):
    """Write the dependent entries of x, -R^-1 of column j of X."""
    J, order = p.J, p.order
    row, _, first, last = pivots(p, block)
    for k in range(last - 1, first - 1, -1):
        y = -X[row + k - first, j]
        for i in range(k + 1, last):
            y -= J[row + k - first, order[i]] * x[order[i]]
        x[order[k]] = y / J[DIAGONAL, order[k]]


@helper
def report(vectors, gap, status):
    """Write the size of the gaps, and what is wrong."""
    last = vectors.shape[1] - 1
    vectors[0, last], vectors[1, last] = gap, status


@helper
def write_map(robot, p):
    """Write the Newton step and G; return whether the loops are closed and regular."""
    gap, status = write_equations(robot, p), 0
    for block in range(len(p.blocks)):
        wrong = factor_block(p, block, damp_block(p, block))
        if status == 0:
            status = wrong
        solve_block(p, block, p.J, len(p.order) + 1, p.vectors[STEP])
        for e in involved_of(p, block):
            solve_block(p, block, p.J, p.involved[e, 1], p.vectors[G + p.involved[e, 0]])
    report(p.vectors, gap, status)
    return is_closed(gap) and status == 0


@kernel
def loop_map(robot, traits, loops, q):
    """Write the rows STEP and G of ``vectors``."""
    p = parts(loops)
    if not fits(robot, q, None):
        report(p.vectors, 0.0, LENGTH)
        return False
    forward_pass(robot, traits, q, None, None, ZERO6)
    return write_map(robot, p)


# -- Velocities and accelerations. --------------------------------------------------------------
@helper
def velocity_pass(robot, traits, x, A_0):
    """Write V_ and A_: the motion of every body at the velocity x without accelerations."""
    store6(robot, GROUND, V_, ZERO6)
    store6(robot, GROUND, A_, A_0)
    for i in range(1, count(robot)):
        b = slot(i)
        up = parent(robot, b)
        Sx = joint_motion_at(robot, traits, i, x)
        twist = add6(load6(robot, up, V_), Sx)
        store6(robot, b, V_, twist)
        store6(robot, b, A_, add6(load6(robot, up, A_), ad(twist, Sx)))


@helper
def point_velocity(robot, b, point, X):
    """Return the velocity in column X of the point of a body that is at ``point``."""
    return shift(point, load6(robot, b, X))[1]


@helper
def point_change(robot, b, point, U, X, Y):
    """Return the change Y along U of the velocity X of a point of a body."""
    return add_cross(point_velocity(robot, b, point, Y), load3(robot, b, X),
                     point_velocity(robot, b, point, U))


@helper
def turned(line, length, velocity):
    """Return the change of a unit vector between points at this relative velocity."""
    return scale(1.0 / length, sub(velocity, scale(dot(line, velocity), line)))


@helper
def relative(robot, a, b, X):
    """Return the motion in column X of body b relative to body a."""
    return sub6(load6(robot, b, X), load6(robot, a, X))


@helper
def change_of_motion(robot, p, k, U, X, Y):
    """
    Return turn, slide and slide along the line: the change of the motion of b relative to a.

    Columns U and X have motions of the bodies, Y the changes of the second along the first.

    """
    a, b = np.int64(p.table[k, BODY_A]), np.int64(p.table[k, BODY_B])
    R, r = frame_a(p, k)
    along = 0.0
    if p.table[k, KIND] == DISTANCE:
        r_b = point_b(p, k)
        line, length = unit(sub(r_b, r))
        u = sub(point_velocity(robot, b, r_b, U), point_velocity(robot, a, r, U))
        x = sub(point_velocity(robot, b, r_b, X), point_velocity(robot, a, r, X))
        change = sub(point_change(robot, b, r_b, U, X, Y), point_change(robot, a, r, U, X, Y))
        along = dot(line, change) + dot(turned(line, length, u), x)
    turn, slide = shift(r, sub6(relative(robot, a, b, Y),
                                ad(load6(robot, a, U), relative(robot, a, b, X))))
    return unrotate(R, turn), unrotate(R, slide), along


@helper
def write_bias(robot, p):
    """Write c to the column behind J."""
    J, n = p.J, len(p.order)
    for row in range(len(J) - EXTRA_ROWS):
        J[row, n] = 0.0
    for k in range(len(p.table)):
        turn, slide, along = change_of_motion(robot, p, k, V_, V_, A_)
        add_equations(p.table, k, J, n, 1.0, turn, slide, along)


@helper
def map_velocity(p, block, x, X):
    """Write the dependent entries of G x to X."""
    for k in dependent_of(p, block):
        d, y = p.order[k], 0.0
        for e in involved_of(p, block):
            y += p.vectors[G + p.involved[e, 0], d] * x[p.involved[e, 0]]
        X[d] = y


@helper
def write_acceleration(p, a):
    """Write A from gamma and a; return whether it is finite."""
    vectors, total = p.vectors, 0.0
    for k in range(len(p.own)):
        vectors[A, p.own[k]] = a[k]
    for block in range(len(p.blocks)):
        map_velocity(p, block, a, vectors[A])
    for j in range(len(p.order)):
        vectors[A, j] += vectors[GAMMA, j]
        total += vectors[A, j]
    return math.isfinite(total)


@helper
def write_motion(robot, traits, p, v):
    """Write V and gamma; needs G and the factors of the equations."""
    vectors, order = p.vectors, p.order
    for k in range(len(p.own)):
        vectors[V, p.own[k]] = v[k]
    for block in range(len(p.blocks)):
        map_velocity(p, block, v, vectors[V])
    velocity_pass(robot, traits, vectors[V], minus_gravity(robot))
    write_bias(robot, p)
    for block in range(len(p.blocks)):
        reflect_all(p, block, p.J, len(order))
        solve_block(p, block, p.J, len(order), vectors[GAMMA])


@helper
def find_motion(robot, traits, p, q, v, a):
    """Do `loop_motion`; a may be None for zero."""
    nv = len(p.own)
    if not (fits(robot, q, None) and len(v) == nv and (a is None or len(a) == nv)):
        report(p.vectors, 0.0, LENGTH)
        return False
    forward_pass(robot, traits, q, None, None, ZERO6)
    closed = write_map(robot, p)
    write_motion(robot, traits, p, v)
    if a is not None:
        return write_acceleration(p, a) and closed
    total = 0.0
    for j in range(len(p.order)):
        total += p.vectors[GAMMA, j]
    return math.isfinite(total) and closed


@kernel
def loop_motion(robot, traits, loops, q, v, a):
    """Write V, A and gamma."""
    return find_motion(robot, traits, parts(loops), q, v, a)


# -- Forces of the equations. -------------------------------------------------------------------
@helper
def solve_forces(p, block, tau, j):
    """Write to column j of X the least f with J_d^T f = -tau."""
    J, X, order = p.J, p.X, p.order
    row, end, first, last = pivots(p, block)
    for i in range(row, end):
        X[i, j] = 0.0
    for k in range(first, last):
        f = -tau[order[k]]
        for i in range(first, k):
            f -= J[row + i - first, order[k]] * X[row + i - first, j]
        X[row + k - first, j] = f / J[DIAGONAL, order[k]]
    for k in range(last - 1, first - 1, -1):
        d = order[k]
        reflect(J, row + k - first, np.int64(J[END, d]), d, X, j)


@kernel
def constraint_forces(loops, tau, forces):
    """Write the forces that balance torques of the tree; needs the factors of the equations."""
    p = parts(loops)
    for block in range(len(p.blocks)):
        solve_forces(p, block, tau, SIDE)
    for i in range(len(forces)):
        forces[i] = -p.X[i, SIDE]
    return True
