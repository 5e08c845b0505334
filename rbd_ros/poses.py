# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Poses of bodies and columns of Jacobians.

Kim (34); Lynch and Park (9.51); Vlasblom (2.3), (2.13).

"""

import math

from rbd_ros.bodies import fits, joint_pose, parent, SCRATCH, world_column, world_pose
from rbd_ros.compiled import kernel
from rbd_ros.vectors import load3, load33, store3, store33, sub

# Columns of `robot`.
R_, r_, POSE_COLUMNS = (SCRATCH + k for k in (0, 9, 12))


@kernel
def place_bodies(robot, joints, q):
    """Write the pose of every body in the world; return NaN for a wrong length or value of q."""
    if not fits(robot, joints, q, None):
        return math.nan
    store33(robot, 0, R_, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    store3(robot, 0, r_, (0.0, 0.0, 0.0))
    total = 0.0
    for i in range(1, len(robot)):
        up = parent(robot, i)
        R, r = joint_pose(robot, joints, i, q)
        R, r = world_pose(load33(robot, up, R_), load3(robot, up, r_), R, r)
        store33(robot, i, R_, R)
        store3(robot, i, r_, r)
        total += R[0][0] + r[0] + r[1] + r[2]
    return total


@kernel
def world_jacobian_columns(robot, joints, body, point, J):
    """
    Write the Jacobian of a body, in the world's axes, about ``point``, a row of three numbers.

    ``robot`` is as `place_bodies` left it. Columns of joints that don't carry the body are not
    touched.

    """
    i = body
    while i > 0:
        r = sub(load3(robot, i, r_), load3(point, 0, 0))
        turn, slide = world_column(robot, joints, i, load33(robot, i, R_), r)
        for k in range(3):
            J[k, i - 1] = turn[k]
            J[3 + k, i - 1] = slide[k]
        i = parent(robot, i)
