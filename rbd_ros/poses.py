# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Poses of bodies and columns of Jacobians.

Kim (34); Lynch and Park (9.51); Vlasblom (2.3), (2.13).

"""

import math

from rbd_ros.bodies import fits, parent, place_in_parents, R_, r_, world_column, world_pose
from rbd_ros.compiled import helper, kernel
from rbd_ros.vectors import load3, load33, store3, store33, sub


@helper
def place(robot, joints, q):
    """Write the pose of every body in the world; return a number that is finite if they are."""
    place_in_parents(robot, joints, q)
    store33(robot, 0, R_, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    store3(robot, 0, r_, (0.0, 0.0, 0.0))
    total = 0.0
    for i in range(1, len(robot)):
        up = parent(robot, i)
        R, r = world_pose(load33(robot, up, R_), load3(robot, up, r_),
                          load33(robot, i, R_), load3(robot, i, r_))
        store33(robot, i, R_, R)
        store3(robot, i, r_, r)
        total += R[0][0] + r[0] + r[1] + r[2]
    return total


@kernel
def place_bodies(robot, joints, q):
    """Write the pose of every body in the world; return whether q has a right length and value."""
    return fits(robot, joints, q, None) and math.isfinite(place(robot, joints, q))


@kernel
def world_jacobian_columns(robot, joints, q, links, k, J, T):
    """
    Write the Jacobian of link k about its origin, in the world's axes, and its 4x4 pose.

    Row k of ``links`` holds the body that the link belongs to, and its pose in the frame of that
    body: rotation and position. Returns whether q has a right length and value.

    """
    if not fits(robot, joints, q, None):
        return False
    total = place(robot, joints, q)
    i = int(links[k, 0])
    R, r = world_pose(load33(robot, i, R_), load3(robot, i, r_), load33(links, k, 1),
                      load3(links, k, 10))
    for row in range(3):
        for column in range(3):
            T[row, column] = R[column][row]
        T[row, 3] = r[row]
    J[:] = 0.0
    while i > 0:
        turn, slide = world_column(robot, joints, i, load33(robot, i, R_),
                                   sub(load3(robot, i, r_), r))
        for row in range(3):
            J[row, i - 1] = turn[row]
            J[3 + row, i - 1] = slide[row]
        i = parent(robot, i)
    return math.isfinite(total)
