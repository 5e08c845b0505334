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

A row of ``loops`` is one constraint, see the columns below; ``velocities`` maps from the
coordinates of a robot with mimics, as in `rbd_ros.kernels.coordinates`; ``order`` has the numbers
of the dependent velocities, followed by those of the independent ones; ``involved`` has, for each
of the latter that is in a loop, its number among them and the group of the loop. The other columns
of J are zero.

"""

import math

import numpy as np
from rbd_ros.kernels.coordinates import column
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.layout import (count, fits, GROUND, load3, load33, load6, number, parent, R_,
                                    r_, slot, store6)
from rbd_ros.kernels.traversal import (A_, forward_pass, S_, V_, world_joint_motion,
                                       world_pose)
from rbd_ros.kernels.vectors import (ad, add6, add_cross, compose, dot, row3, row33,
                                     scale, shift, sub, sub6, transpose, unrotate)

# Columns of `loops`: kind, slots of the bodies, poses of the frames there (rotation by columns,
# position), distance, m, the first of its equations, the slot of the body that carries both, and
# the group of loops that have joints in common.
KIND, BODY_A, FRAME_A, BODY_B, FRAME_B, LENGTH_M = 0, 1, 2, 14, 15, 27
FIRST, CARRIER, GROUP = 28, 29, 30
ROW_LENGTH = 31
# Values of KIND, and the number of equations of each.
POINT, REVOLUTE, WELD, DISTANCE = 0, 1, 2, 3
EQUATIONS = (3, 5, 6, 1)
ZERO6 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
# Part of a dependent column that may be a combination of the others before that counts as
# singular, gap of closed loops, m and rad, and relative error of consistent equations.
SINGULAR, CLOSED, CONSISTENT = 1e-6, 1e-6, 1e-5
# Rows of ``found``: V, A, gamma, a Newton step, V and A of all joints, mimics included, followed
# by the columns of G. In the last column: the size of the gaps, and what is wrong: nothing (0), a
# dependent velocity 1 ... that is singular, inconsistent equations, or the length of a vector.
V, A, GAMMA, STEP, JOINTS_V, JOINTS_A, G = 0, 1, 2, 3, 4, 5, 6
INCONSISTENT, LENGTH = -1, -2


# -- Positions. ---------------------------------------------------------------------------------
@helper
def frame(robot, loops, k, of_body):
    """Return the pose of frame a or b, in the frame of the recursions."""
    b = np.int64(loops[k, of_body])
    return world_pose(load33(robot, b, R_), load3(robot, b, r_),
                      row33(loops, k, of_body + 1), row3(loops, k, of_body + 10))


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
    return (scale(1.0 / length, a), length) if length > 0.0 else ((1.0, 0.0, 0.0), length)


@helper
def add_equations(J, loops, k, j, factor, turn, slide, along):
    """Add to column j the components of a motion of b relative to a that must vanish."""
    kind, row = loops[k, KIND], np.int64(loops[k, FIRST])
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
def write_equations(robot, loops, velocities, J, n):
    """Write J, zeros and the gaps, side by side; return the size of the gaps, m and rad."""
    J[:] = 0.0
    for k in range(len(loops)):
        (R, p), (R_b, p_b) = frame(robot, loops, k, BODY_A), frame(robot, loops, k, BODY_B)
        kind, shift_b = loops[k, KIND], unrotate(R, sub(p_b, p))
        carrier = np.int64(loops[k, CARRIER])
        line, length = unit(shift_b)
        turn = (0.0, 0.0, 0.0)
        if kind == REVOLUTE or kind == WELD:
            turn = rotation_gap(kind, compose(transpose(R), R_b))
        add_equations(J, loops, k, n + 1, 1.0, turn, shift_b, length - loops[k, LENGTH_M])
        for of_body, sign in ((BODY_A, -1.0), (BODY_B, 1.0)):
            point = p_b if kind == DISTANCE and of_body == BODY_B else p
            b = np.int64(loops[k, of_body])
            while b != carrier:
                turn, slide = shift(point, load6(robot, b, S_))
                slide = unrotate(R, slide)
                i = number(robot, b) - 1
                add_equations(J, loops, k, column(velocities, i), sign * velocities[i, 1],
                              unrotate(R, turn), slide, dot(line, slide))
                b = parent(robot, b)
    square = 0.0
    for row in range(len(J) - 1):
        square += J[row, n + 1] * J[row, n + 1]
    return math.sqrt(square)


# -- Dependent velocities. ----------------------------------------------------------------------
@helper
def reflect(J, k, d, X, j):
    """Apply reflection k, kept in column d of J below row k, to column j of X."""
    size, along = 0.0, 0.0
    for i in range(k, len(J) - 1):
        size += J[i, d] * J[i, d]
        along += J[i, d] * X[i, j]
    if size > 0.0:
        factor = 2.0 * along / size
        for i in range(k, len(J) - 1):
            X[i, j] -= factor * J[i, d]


@helper
def factor_equations(J, order, involved, dependent, n):
    """
    Factor J_d = Q R by reflections, and apply Q^T to J_i and the gaps.

    The diagonal of R is kept in the last row. Return 0; 1 + the position in ``order`` of a column
    that the previous ones nearly contain; or INCONSISTENT.

    """
    rows, status = len(J) - 1, 0
    for k in range(dependent):
        d, before, size = order[k], 0.0, 0.0
        for i in range(k):
            before += J[i, d] * J[i, d]
        for i in range(k, rows):
            size += J[i, d] * J[i, d]
        if not size > SINGULAR * SINGULAR * (before + size) and status == 0:
            status = k + 1
        size = math.sqrt(size)
        if k < rows:
            if J[k, d] > 0.0:
                size = -size
            J[rows, d] = size
            J[k, d] -= size
            for i in range(k + 1, dependent):
                reflect(J, k, d, J, order[i])
            for i in range(len(involved)):
                reflect(J, k, d, J, order[dependent + involved[i, 0]])
            reflect(J, k, d, J, n + 1)
    for k in range(len(involved)):
        inside, left, j = 0.0, 0.0, order[dependent + involved[k, 0]]
        for i in range(rows):
            square = J[i, j] * J[i, j]
            inside += square
            if i >= dependent:
                left += square
        if left > CONSISTENT * CONSISTENT * inside and status == 0:
            status = INCONSISTENT
    return status


@helper
def solve_equations(J, order, dependent, X, j, x):
    """Write the dependent entries of x, -R^-1 of column j of X."""
    for k in range(dependent - 1, -1, -1):
        y = -X[k, j]
        for i in range(k + 1, dependent):
            y -= J[k, order[i]] * x[order[i]]
        x[order[k]] = y / J[len(J) - 1, order[k]]


@helper
def report(found, gap, status):
    """Write the size of the gaps, and what is wrong."""
    last = found.shape[1] - 1
    found[0, last], found[1, last] = gap, status


@helper
def write_map(robot, loops, velocities, order, involved, J, found):
    """Write the Newton step and G; return whether the loops are closed and regular."""
    n = len(order)
    nv = len(found) - G
    dependent = n - nv
    gap = write_equations(robot, loops, velocities, J, n)
    status = factor_equations(J, order, involved, dependent, n)
    found[:] = 0.0
    report(found, gap, status)
    solve_equations(J, order, dependent, J, n + 1, found[STEP])
    for k in range(nv):
        found[G + k, order[dependent + k]] = 1.0
    for i in range(len(involved)):
        k = involved[i, 0]
        solve_equations(J, order, dependent, J, order[dependent + k], found[G + k])
    return gap <= CLOSED and status == 0


@kernel
def loop_map(robot, screws, loops, velocities, order, involved, q, equations, found):
    """Write the rows STEP and G of ``found``."""
    if not fits(robot, q, None):
        report(found, 0.0, LENGTH)
        return False
    forward_pass(robot, screws, q, None, None, ZERO6)
    return write_map(robot, loops, velocities, order, involved, equations, found)


# -- Velocities and accelerations. --------------------------------------------------------------
@helper
def expand_velocity(velocities, x, expanded):
    """Write the velocity of all joints, mimics included, and return it."""
    for i in range(len(velocities)):
        expanded[i] = velocities[i, 1] * x[column(velocities, i)]
    return expanded


@helper
def velocity_pass(robot, screws, x, k):
    """Write to column k the twist of every body at the velocity x, in the frame of the S_."""
    store6(robot, GROUND, k, ZERO6)
    for i in range(1, count(robot)):
        b = slot(i)
        Sx = world_joint_motion(robot, screws, i, load33(robot, b, R_), load3(robot, b, r_),
                                load6(robot, b, S_), x)
        store6(robot, b, k, add6(load6(robot, parent(robot, b), k), Sx))


@helper
def bias_pass(robot):
    """Write A_, the acceleration of every body at zero acceleration of the joints."""
    store6(robot, GROUND, A_, ZERO6)
    for i in range(1, count(robot)):
        b = slot(i)
        up = parent(robot, b)
        twist, carried = load6(robot, b, V_), load6(robot, up, V_)
        store6(robot, b, A_, add6(load6(robot, up, A_), ad(twist, sub6(twist, carried))))


@helper
def acceleration_at(point, twist, acceleration):
    """Return velocity and acceleration of the point of a body that is at ``point``."""
    velocity = add_cross(twist[1], twist[0], point)
    return velocity, add_cross(add_cross(acceleration[1], acceleration[0], point), twist[0],
                               velocity)


@helper
def write_bias(robot, loops, J, n):
    """Write c to column n."""
    for row in range(len(J) - 1):
        J[row, n] = 0.0
    for k in range(len(loops)):
        a, b = np.int64(loops[k, BODY_A]), np.int64(loops[k, BODY_B])
        R, p = frame(robot, loops, k, BODY_A)
        V_a, V_b = load6(robot, a, V_), load6(robot, b, V_)
        A_a, A_b = load6(robot, a, A_), load6(robot, b, A_)
        along = 0.0
        if loops[k, KIND] == DISTANCE:
            p_b = frame(robot, loops, k, BODY_B)[1]
            line, length = unit(sub(p_b, p))
            v_a, a_a = acceleration_at(p, V_a, A_a)
            v_b, a_b = acceleration_at(p_b, V_b, A_b)
            v_rel = sub(v_b, v_a)
            parallel = dot(line, v_rel)
            along = dot(line, sub(a_b, a_a)) + (dot(v_rel, v_rel) - parallel * parallel) / length
        turn, slide = shift(p, sub6(sub6(A_b, A_a), ad(V_a, sub6(V_b, V_a))))
        add_equations(J, loops, k, n, 1.0, unrotate(R, turn), unrotate(R, slide), along)


@helper
def write_motion(robot, screws, loops, velocities, order, v, a, equations, found):
    """Write V, A and gamma; needs G and the factors of the equations. Return whether finite."""
    n, nv, total = len(order), len(found) - G, 0.0
    for j in range(n):
        x, y = 0.0, 0.0
        for k in range(nv):
            x += found[G + k, j] * v[k]
            if a is not None:
                y += found[G + k, j] * a[k]
        found[V, j], found[A, j] = x, y
    expand_velocity(velocities, found[V], found[JOINTS_V])
    velocity_pass(robot, screws, found[JOINTS_V], V_)
    bias_pass(robot)
    write_bias(robot, loops, equations, n)
    for k in range(n - nv):
        reflect(equations, k, order[k], equations, n)
    solve_equations(equations, order, n - nv, equations, n, found[GAMMA])
    for j in range(n):
        found[A, j] += found[GAMMA, j]
        total += found[A, j]
    expand_velocity(velocities, found[A], found[JOINTS_A])
    return math.isfinite(total)


@helper
def find_motion(robot, screws, loops, velocities, order, involved, q, v, a, equations, found):
    """Do `loop_motion`; a may be None for zero."""
    if not (fits(robot, q, None) and len(v) == len(found) - G
            and (a is None or len(a) == len(found) - G)):
        report(found, 0.0, LENGTH)
        return False
    forward_pass(robot, screws, q, None, None, ZERO6)
    closed = write_map(robot, loops, velocities, order, involved, equations, found)
    return write_motion(robot, screws, loops, velocities, order, v, a, equations, found) and closed


@kernel
def minus_inverse(equations, order, nv, unit, inverse):
    """Write -J_d^+, transposed; needs the factors of the equations. ``unit`` is a buffer."""
    dependent = len(order) - nv
    unit[:], inverse[:] = 0.0, 0.0
    for j in range(len(unit)):
        unit[j, j] = 1.0
        for k in range(dependent):
            reflect(equations, k, order[k], unit, j)
        solve_equations(equations, order, dependent, unit, j, inverse[j])
    return True


@kernel
def loop_motion(robot, screws, loops, velocities, order, involved, q, v, a, equations, found):
    """Write all rows of ``found``, at the independent velocities v and accelerations a."""
    return find_motion(robot, screws, loops, velocities, order, involved, q, v, a, equations,
                       found)
