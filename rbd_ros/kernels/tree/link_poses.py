# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses of all links in the world. Kim (34); Lynch and Park (9.51); Vlasblom (2.3)."""

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import finite, set_element
from rbd_ros.kernels.tree.layout import count, fits, load3, load33, parent, R_, r_, slot
from rbd_ros.kernels.tree.traversal import (
    world_pose, write_ground_pose, write_local_poses, write_world_pose)
from rbd_ros.kernels.tree.vectors import row3, row33


@helper
def write_pose(T, R, r):
    """Write (R, r) to a matrix of four rows."""
    x, y, z = R
    write_row4(T, 0, x[0], y[0], z[0], r[0])
    write_row4(T, 1, x[1], y[1], z[1], r[1])
    write_row4(T, 2, x[2], y[2], z[2], r[2])
    write_row4(T, 3, 0.0, 0.0, 0.0, 1.0)


@helper
def write_row4(T, row, x, y, z, w):
    """Write the numbers of a row."""
    set_element(T, row, 0, x)
    set_element(T, row, 1, y)
    set_element(T, row, 2, z)
    set_element(T, row, 3, w)


@kernel
def link_poses(robot, traits, q, links, T):
    """Write 4x4 poses of links; a row of ``links``: body, rotation and position in its frame."""
    if not fits(robot, q, None):
        return False
    write_local_poses(robot, traits, q)
    write_ground_pose(robot, (0.0, 0.0, 0.0))
    total = 0.0
    for i in range(1, count(robot)):
        b = slot(i)
        R, r = write_world_pose(robot, b, parent(robot, b))
        total += R[0][0] + r[0] + r[1] + r[2]
    for k in range(len(links)):
        b = slot(int(links[k, 0]))
        R, r = world_pose(load33(robot, b, R_), load3(robot, b, r_),
                          row33(links, k, 1), row3(links, k, 10))
        write_pose(T[k], R, r)
    return finite(total)
