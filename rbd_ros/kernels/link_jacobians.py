# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The Jacobian of one link, its rates and its derivatives, from the link to the root.

All in the axes and about the origin of the link. With J_j the column of joint j and

    W_j = sum J_i v_i    over the joints i between joint j and the link,

the motion of the link relative to the body that joint j moves, the columns satisfy

    dJ_j/dt     = -ad_Wj J_j
    d2J_j/dt2   = -ad_Wj' J_j - ad_Wj dJ_j/dt,    Wj' = sum dJ_i/dt v_i + J_i a_i
    dJ_j/dq_h   = -ad_Jh J_j
    dJ_j'/dq_h  = ad_x J_j + ad_Wj ad_Jh J_j,     x = ad_Jh (W_j - W_g),    dJ_j'/dv_h = dJ_j/dq_h

where J_j' is dJ_j/dt, h is a joint between j and the link (J_j depends on no other), and g is its
predecessor on the path from the root: W_j - W_g is the motion between j and h. Columns of one ball
or free joint are fixed to the body that it moves: none counts as between another and the link.

Garofalo et al. (28)-(33); Vlasblom (1.13), (2.3), (2.13), (2.21).

"""

import math

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import entry, finite, only_screws, sharing
from rbd_ros.kernels.tree.coordinates import coordinate, coordinate_at, put_column
from rbd_ros.kernels.tree.joints import follows, has_quaternion, joint_pose
from rbd_ros.kernels.tree.layout import (
    columns_of, constant, count, fits, load6, number, parent, POSE_END, Q, slot, store6,
    velocities)
from rbd_ros.kernels.tree.link_poses import write_pose
from rbd_ros.kernels.tree.traversal import evaluate_screws_to_root, mount, world_column, world_pose
from rbd_ros.kernels.tree.vectors import (
    ad, add, add6, cross, read_column, rotate, row3, row33, scale, scale6, sub6, transpose,
    unrotate, write_column)

# Columns of `robot`: J_j and W_j of each joint between root and link.
J_, W_, _ = columns_of(POSE_END, 6, 6)


@helper
def zero_if_finite(x):
    """Return 0, or NaN if an entry of a vector is not finite."""
    total = 0.0
    for k in range(len(x)):
        total += 0.0 * entry(x, k)
    return total


@helper
def zero_if_valid(robot, traits, q):
    """Return 0, or NaN if an entry of q is not finite or a quaternion is zero."""
    total = zero_if_finite(q)
    if not only_screws(traits):
        for i in range(1, count(robot)):
            b = slot(i)
            if has_quaternion(robot, traits, b):
                square, first = 0.0, int(constant(robot, b, Q))
                for k in range(first, first + 4):
                    square += entry(q, k) * entry(q, k)
                total += 0.0 / square
    return total


@helper
def column_of_link(robot, traits, b, R, r):
    """Return column S of a body in the frame of a link at (R, r) in the body's frame."""
    return world_column(robot, traits, b, transpose(R), scale(-1.0, unrotate(R, r)))


@helper
def step_to_parent(robot, traits, i, q, R, r):
    """Return the pose of a link in the frame of body i's parent, given (R, r) in body i's."""
    R_i, r_i = joint_pose(robot, traits, i, q)
    return world_pose(R_i, r_i, R, r)


@helper
def rotate6(R, V):
    """Return a motion in other axes, about the same point."""
    return (rotate(R, V[0]), rotate(R, V[1]))


@helper
def start_at_link(robot, traits, q, link_row):
    """Evaluate the screws from a link to the root; return its body and its pose in that."""
    body = slot(int(link_row[0, 0]))
    evaluate_screws_to_root(robot, traits, body, q)
    return body, row33(link_row, 0, 1), row3(link_row, 0, 10)


# The columns of a Jacobian that may not be zero: those of the path to the root, or, where joints
# share coordinates, all, each once.
@helper
def first_column(robot, traits, body):
    """Return a body and the first column; -1 if there is none."""
    if sharing(traits):
        return body, velocities(robot) - 1
    return body, coordinate_at(robot, body) if body > 0 else -1


@helper
def next_column(robot, traits, b, k):
    """Return the next body and column after column k of body b; -1 if there is none."""
    if sharing(traits):
        return b, k - 1
    return first_column(robot, traits, parent(robot, b))


@helper
def write_jacobian(robot, traits, q, link_row, J, T):
    """
    Write the Jacobian of a link about its origin, six rows, and its 4x4 pose.

    ``link_row`` has one row: the body that the link is part of, the link's pose (rotation and
    position) in the body's frame, and 1 for the axes of the world or 0 for those of the link.
    Returns whether q is valid and no quaternion on the path to the link is zero.

    """
    if not fits(robot, q, None):
        return False
    total = zero_if_finite(q)
    J[:] = 0.0
    body, R, r = start_at_link(robot, traits, q, link_row)
    b = body
    while b > 0:
        i = number(robot, b)
        S = column_of_link(robot, traits, b, R, r)
        put_column(traits, J, 0, coordinate(robot, traits, i), S)
        R, r = step_to_parent(robot, traits, i, q, R, r)
        b = parent(robot, b)
    # Now (R, r) is the pose in the world.
    if link_row[0, 13] == 1.0:
        b, k = first_column(robot, traits, body)
        while k >= 0:
            write_column(J, 0, k, rotate6(R, read_column(J, 0, k)))
            b, k = next_column(robot, traits, b, k)
    write_pose(T, R, r)
    return finite(total + R[0][0] + r[0] + r[1] + r[2])


@kernel
def jacobian_columns(robot, traits, q, link_row, rows):
    """Do `write_jacobian`; ``rows`` has six rows for the Jacobian and four for the pose."""
    return write_jacobian(robot, traits, q, link_row, rows[:6], rows[6:])


@kernel
def jacobians_and_biases(robot, traits, q, v, link_rows, frames):
    """
    Write the Jacobian, dJ/dt v and the pose of several links, in the axes of the root.

    ``frames`` (links, 11, max(nv, 6)) has six rows, one and four for these; rows of ``link_rows``
    are as for `write_jacobian`.

    """
    if not fits(robot, q, v):
        return False
    fine = True
    for k in range(len(link_rows)):
        row, frame = link_rows[k:k + 1], frames[k]
        fine &= write_jacobian(robot, traits, q, row, frame[:6], frame[7:])
        bias, valid = write_jacobian_rates(robot, traits, q, v, None, row, True, None)
        fine &= valid
        for e in range(3):
            frame[6, e], frame[6, 3 + e] = bias[0][e], bias[1][e]
    return fine


@helper
def align_columns(robot, traits, body, R, omega, rows):
    """Turn J and dJ/dt into the axes of the root, see `write_jacobian_rates`."""
    b, k = first_column(robot, traits, body)
    while k >= 0:
        S, S_rate = read_column(rows, 0, k), read_column(rows, 6, k)
        write_column(rows, 0, k, rotate6(R, S))
        write_column(rows, 6, k, rotate6(R, (
            add(S_rate[0], cross(omega, S[0])), add(S_rate[1], cross(omega, S[1])))))
        b, k = next_column(robot, traits, b, k)


@helper
def write_jacobian_rates(robot, traits, q, v, a, link_row, aligned, rows):
    """
    Write the Jacobian of a link and its rates; return dJ/dt v, and whether the state is valid.

    ``rows`` has six rows each for J, dJ/dt and, unless a is None, d2J/dt2. If ``aligned``, J,
    dJ/dt and dJ/dt v are in the axes of the root, about the origin of the link: with R the
    rotation of the link, omega its angular velocity and x either part of a column,
    (R x)' = R (x' + omega x x). A state is valid if it is finite and no quaternion is zero.

    """
    zero = (0.0, 0.0, 0.0)
    total = zero_if_valid(robot, traits, q) + zero_if_finite(v)
    if rows is not None:
        rows[:12] = 0.0
    if a is not None:
        total += zero_if_finite(a)
        rows[12:18] = 0.0
    body, R, r = start_at_link(robot, traits, q, link_row)
    W = W_with_own = rate = rate_with_own = bias = (zero, zero)
    b = body
    while b > 0:
        i = number(robot, b)
        k, S = coordinate(robot, traits, i), column_of_link(robot, traits, b, R, r)
        S_rate = ad(S, W)
        if rows is not None:
            put_column(traits, rows, 0, k, S)
            put_column(traits, rows, 6, k, S_rate)
        bias = add6(bias, scale6(entry(v, k), S_rate))
        W_with_own = add6(W_with_own, scale6(entry(v, k), S))
        if a is not None:
            put_column(traits, rows, 12, k, add6(ad(S, rate), ad(S_rate, W)))
            rate_with_own = add6(rate_with_own, add6(scale6(entry(v, k), S_rate),
                                                     scale6(entry(a, k), S)))
        if not follows(robot, traits, b):
            W, rate = W_with_own, rate_with_own
        R, r = step_to_parent(robot, traits, i, q, R, r)
        b = parent(robot, b)
    # Now W is the twist of the link and (R, r) its pose in the root.
    if aligned:
        if rows is not None:
            align_columns(robot, traits, body, R, W[0], rows)
        bias = rotate6(R, (bias[0], add(bias[1], cross(W[0], W[1]))))
    return bias, finite(total + bias[0][0] + bias[1][0] + R[0][0] + r[0])


@helper
def write_rates(robot, traits, q, v, a, link_row, aligned, rows):
    """Do `write_jacobian_rates`; rows is (19, max(nv, 6)), with dJ/dt v in row 18."""
    if not fits(robot, q, v) or (a is not None and len(a) != len(v)):
        return False
    bias, fine = write_jacobian_rates(robot, traits, q, v, a, link_row, aligned, rows)
    for row in range(3):
        rows[18, row], rows[18, 3 + row] = bias[0][row], bias[1][row]
    return fine


@kernel
def link_jacobian_rate(robot, traits, q, v, link_row, aligned, rows):
    """Do `write_rates` without the second rate."""
    return write_rates(robot, traits, q, v, None, link_row, aligned, rows)


@kernel
def link_jacobian_rates(robot, traits, q, v, a, link_row, rows):
    """Do `write_rates` in the axes of the link."""
    return write_rates(robot, traits, q, v, a, link_row, False, rows)


@kernel
def link_bias(robot, traits, q, v, link_row, aligned, bias):
    """Write dJ/dt v of a link, shape (1, 6), without the matrices of `write_rates`."""
    if not fits(robot, q, v):
        return False
    value, fine = write_jacobian_rates(robot, traits, q, v, None, link_row, aligned, None)
    for row in range(3):
        bias[0, row], bias[0, 3 + row] = value[0][row], value[1][row]
    return fine


@helper
def write_jacobian_changes(robot, traits, q, v, link_row, of_J, of_rate):
    """
    Write the derivatives with respect to q of the body Jacobian, and of its rate unless v is None.

    They have the shape (nv, 6, nv), the coordinate first; d(dJ/dt)/dv equals dJ/dq. Returns
    whether the state is valid.

    """
    if not fits(robot, q, v):
        return False
    total = zero_if_valid(robot, traits, q)
    of_J[:] = 0.0
    if v is not None:
        total += zero_if_finite(v)
        of_rate[:] = 0.0
    zero = (0.0, 0.0, 0.0)
    body, R, r = start_at_link(robot, traits, q, link_row)
    W = W_with_own = (zero, zero)
    b = body
    while b > 0:
        S = column_of_link(robot, traits, b, R, r)
        store6(robot, b, J_, S)
        if v is not None:
            store6(robot, b, W_, W)
            W_with_own = add6(W_with_own, scale6(v[coordinate_at(robot, b)], S))
            if not follows(robot, traits, b):
                W = W_with_own
        R, r = step_to_parent(robot, traits, number(robot, b), q, R, r)
        b = parent(robot, b)
    # Each joint h with all joints j between it and the root.
    far = body
    while far > 0:
        h = coordinate_at(robot, far)
        S_h = load6(robot, far, J_)
        near = b = mount(robot, traits, far)
        while b > 0:
            j = coordinate_at(robot, b)
            S = load6(robot, b, J_)
            change = ad(S, S_h)
            put_column(traits, of_J[h], 0, j, change)
            if v is not None:
                W = load6(robot, b, W_)
                between = sub6(W, load6(robot, near, W_))
                put_column(traits, of_rate[h], 0, j,
                           sub6(ad(ad(S_h, between), S), ad(W, change)))
            b = parent(robot, b)
        far = parent(robot, far)
    return math.isfinite(total + R[0][0] + r[0] + r[1] + r[2])


# A kernel that another one calls with None would, once compiled, take None from users, too.
@kernel
def link_jacobian_rate_derivatives(robot, traits, q, v, link_row, of_J, of_rate):
    """Do `write_jacobian_changes`."""
    return write_jacobian_changes(robot, traits, q, v, link_row, of_J, of_rate)


@kernel
def link_jacobian_derivatives(robot, traits, q, link_row, of_J):
    """Do `write_jacobian_changes` without the rate."""
    return write_jacobian_changes(robot, traits, q, None, link_row, of_J, of_J)
