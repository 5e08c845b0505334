# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Poses of bodies and columns of Jacobians.

Kim (34); Lynch and Park (9.51); Vlasblom (2.3), (2.13).

"""

import math

from rbd_ros.kernels.bodies import (count, fits, joint_pose, number, parent, place, place_ground,
                                    place_in_parents, place_in_world, turn_screw, world_column,
                                    world_pose)
from rbd_ros.kernels.compiled import kernel
from rbd_ros.kernels.vectors import rotate, row3, row33, scale, transpose, unrotate


@kernel
def place_bodies(robot, screws, q):
    """Write the pose of every body in the world; return whether q has a right length and value."""
    if not fits(robot, q, None):
        return False
    place_in_parents(robot, screws, q)
    place_ground(robot, (0.0, 0.0, 0.0))
    total = 0.0
    for i in range(1, count(robot)):
        b = place(i)
        R, r = place_in_world(robot, b, parent(robot, b))
        total += R[0][0] + r[0] + r[1] + r[2]
    return math.isfinite(total)


@kernel
def jacobian_columns(robot, screws, q, link_row, rows):
    """
    Write the Jacobian of a link about its origin, and its 4x4 pose.

    ``link_row`` has one row: the body that the link belongs to, its pose in the frame of that
    body, rotation and position, and 1 where the Jacobian is wanted in the axes of the world or 0
    where it is wanted in those of the link. The first six of the ten ``rows`` take the Jacobian,
    the next three the pose; the last one must hold 0, 0, 0, 1 already. Returns whether q has the
    right length and is finite, and no quaternion of a joint that carries the link is zero.

    """
    if not fits(robot, q, None):
        return False
    total = 0.0
    for x in q:
        total += 0.0 * x
    J, T = rows[:6], rows[6:]
    J[:] = 0.0
    # Link to root: its pose (R, r) in the frame of every body that carries it, and the columns of
    # these in the axes of the link.                                              [V (2.3)]
    body = place(int(link_row[0, 0]))
    R, r = row33(link_row, 0, 1), row3(link_row, 0, 10)
    b = body
    while b > 0:
        i = number(robot, b)
        turn, slide = world_column(robot, screws, b, transpose(R), scale(-1.0, unrotate(R, r)))
        for row in range(3):
            J[row, i - 1], J[3 + row, i - 1] = turn[row], slide[row]
        turn_screw(robot, screws, i, q)
        R_i, r_i = joint_pose(robot, screws, i, q)
        R, r = world_pose(R_i, r_i, R, r)
        b = parent(robot, b)
    # Then (R, r) is the pose in the world, and turns the columns.
    b = body if link_row[0, 13] == 1.0 else 0
    while b > 0:
        i = number(robot, b)
        turn = rotate(R, (J[0, i - 1], J[1, i - 1], J[2, i - 1]))
        slide = rotate(R, (J[3, i - 1], J[4, i - 1], J[5, i - 1]))
        for row in range(3):
            J[row, i - 1], J[3 + row, i - 1] = turn[row], slide[row]
        b = parent(robot, b)
    for row in range(3):
        for column in range(3):
            T[row, column] = R[column][row]
        T[row, 3] = r[row]
    return math.isfinite(total + R[0][0] + r[0] + r[1] + r[2])
