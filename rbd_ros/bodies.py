# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The robot as the kernels see it: one row per body, and one body per column of S.

Row 0 is the ground; a parent comes before its children; row i carries velocity i - 1. A joint with
several degrees of freedom is a run of bodies of which only the last has mass:

- a chain of screws where its axes turn with its own coordinates (universal, Euler angles ...);
- for a ball or a free joint, whose axes are those of the moving body, a first body that makes the
  whole motion of the joint and others that follow it rigidly, each with its own column of S.

Every column is thus a screw about one axis of its body's frame. The frames are turned at load
(`rbd_ros.model`) so that the axis of a joint with one degree of freedom is z.

"""

import math

from rbd_ros.compiled import helper
from rbd_ros.vectors import (add, add_rotated, compose, cross, load3, load33, quaternion_rotation,
                             rotate, scale, scale6, store3, store33, turn_z)

# Columns of the array `robot`, shape (nv + 1, SCRATCH + those of a kernel): constants first. All
# numbers, whole ones too, are kept as floats in this one array: each array more would make a call
# from Python slower.
ROTATION = 0     # pose of the body in its parent's frame at rest: rotation (9) ...
POSITION = 9     # ... and position (3), m
TURN = 12        # rad per unit of velocity
SLIDE = 13       # m per unit of velocity
PARENT = 14      # row of the parent
ARMATURE = 15    # inertia of the motor's rotor as the joint feels it, kg m^2 or kg
INERTIA = 16     # of the body in its own frame: Sigma (6), h (3), m
CONSTANTS = 26
WRENCH = 26      # moment and force that act on the body from outside, in its frame, N m and N
PRESCRIBED = 32  # 1 where hybrid dynamics is given the acceleration, 0 where the torque
SCRATCH = 33     # from here on each kernel keeps what it finds on its way
R_, r_ = SCRATCH, SCRATCH + 9   # first the pose of the body, rotation (9) and position (3) ...
COS_, SIN_ = SCRATCH, SCRATCH + 1   # ... and before that, of the angle that its screw turns by
GRAVITY = POSITION   # in row 0, the ground: acceleration of gravity, m/s^2

# Columns of the whole-number array `joints`, shape (nv + 1, 3); None where every joint is a screw,
# with one entry of q for each: the compiler then drops what only balls and free joints need.
KIND = 0         # how the body moves against its parent, see below
AXIS = 1         # axis of the body's frame that it turns about and slides along: 0, 1, 2
Q = 2            # index of the joint's first entry in q; in row 0 the length of q

# Values of KIND.
SCREW = 0        # by q about and along z
BALL = 1         # by a quaternion (x, y, z, w)
FREE = 2         # by a quaternion (x, y, z, w) and a position
FOLLOW = 3       # not at all


@helper
def parent(robot, i):
    """Return the row of the parent of body i."""
    return int(robot[i, PARENT])


@helper
def is_screw(joints, i):
    """Return whether all motion of body i against its parent is about and along its z axis."""
    return joints is None or joints[i, KIND] == SCREW


@helper
def follows(joints, i):
    """Return whether body i follows the body before it, as a further column of one joint."""
    return joints is not None and joints[i, KIND] == FOLLOW


@helper
def fits(robot, joints, q, v):
    """Return whether q and v (or None) have as many entries as the robot has coordinates."""
    nq = len(robot) - 1 if joints is None else joints[0, Q]
    return len(q) == nq and (v is None or len(v) == len(robot) - 1)


@helper
def screw_coordinate(joints, i, q):
    """Return the coordinate of body i, which a screw moves."""
    return q[i - 1 if joints is None else joints[i, Q]]


@helper
def turn_screw(robot, joints, i, q):
    """Write the cosine and the sine of the angle of body i, if a screw moves it."""
    if is_screw(joints, i):
        angle = robot[i, TURN] * screw_coordinate(joints, i, q)
        robot[i, COS_], robot[i, SIN_] = math.cos(angle), math.sin(angle)


@helper
def turn_screws(robot, joints, q):
    """
    Write the cosines and sines of all screws.

    No body waits for another here, so that the processor works on several of them at once.

    """
    for i in range(1, len(robot)):
        turn_screw(robot, joints, i, q)


@helper
def joint_pose(robot, joints, i, q):
    """Return the pose (R, r) of body i in its parent's frame after `turn_screw` [K (34)]."""
    R, r = load33(robot, i, ROTATION), load3(robot, i, POSITION)
    if joints is not None and joints[i, KIND] != SCREW:
        kind, k = joints[i, KIND], joints[i, Q]
        if kind == FREE:
            r = add(r, rotate(R, (q[k + 4], q[k + 5], q[k + 6])))
        if kind != FOLLOW:
            R = compose(R, quaternion_rotation(q[k], q[k + 1], q[k + 2], q[k + 3]))
        return R, r
    if robot[i, SLIDE] != 0.0:
        r = add(r, scale(robot[i, SLIDE] * screw_coordinate(joints, i, q), R[2]))
    return turn_z(R, robot[i, COS_], robot[i, SIN_]), r


@helper
def place_in_parent(robot, joints, i, q):
    """Write and return the pose of body i in its parent's frame."""
    R, r = joint_pose(robot, joints, i, q)
    store33(robot, i, R_, R)
    store3(robot, i, r_, r)
    return R, r


# In the world's axes.
@helper
def place_ground(robot, origin):
    """Write the pose of the ground: its axes are the world's."""
    store33(robot, 0, R_, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    store3(robot, 0, r_, origin)


@helper
def ground_origin(robot, joints, q):
    """
    Return the position of the ground in the frame that the recursions work in.

    That frame has the world's axes. Its origin is the world's too, or a floating base where there
    is one: a robot far from the world's origin then loses no digits.

    """
    if joints is not None and joints[1, KIND] == FREE:
        return scale(-1.0, joint_pose(robot, joints, 1, q)[1])
    return (0.0, 0.0, 0.0)


@helper
def world_pose(R_W, r_W, R, r):
    """Return the pose of a body in the world from its parent's there and its own in the parent."""
    return compose(R_W, R), add_rotated(r_W, R_W, r)


@helper
def place_in_world(robot, joints, i, q):
    """Write and return the pose of body i in the world; that of its parent is there already."""
    up = parent(robot, i)
    R, r = joint_pose(robot, joints, i, q)
    R, r = world_pose(load33(robot, up, R_), load3(robot, up, r_), R, r)
    store33(robot, i, R_, R)
    store3(robot, i, r_, r)
    return R, r


@helper
def world_column(robot, joints, i, R, r):
    """Return column S of body i with the pose (R, r) in the world, about the world's origin."""
    axis = R[2]
    if joints is not None and joints[i, AXIS] == 0:
        axis = R[0]
    if joints is not None and joints[i, AXIS] == 1:
        axis = R[1]
    turn = scale(robot[i, TURN], axis)
    return (turn, add(cross(r, turn), scale(robot[i, SLIDE], axis)))


@helper
def world_joint_motion(joints, i, R, r, S, v):
    """Return S v of the whole joint at its first body, and zero at those that follow it."""
    if joints is not None and joints[i, KIND] != SCREW:
        turn, slide = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if joints[i, KIND] != FOLLOW:
            turn = rotate(R, (v[i - 1], v[i], v[i + 1]))
        if joints[i, KIND] == FREE:
            slide = rotate(R, (v[i + 2], v[i + 3], v[i + 4]))
        return (turn, add(cross(r, turn), slide))
    return scale6(v[i - 1], S)


# In the axes of the body itself.
@helper
def joint_motion(robot, joints, i, v):
    """Return S v of the whole joint in the axes of body i; zero at bodies that follow."""
    if joints is not None and joints[i, KIND] != SCREW:
        turn, slide = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if joints[i, KIND] != FOLLOW:
            turn = (v[i - 1], v[i], v[i + 1])
        if joints[i, KIND] == FREE:
            slide = (v[i + 2], v[i + 3], v[i + 4])
        return (turn, slide)
    return ((0.0, 0.0, robot[i, TURN] * v[i - 1]), (0.0, 0.0, robot[i, SLIDE] * v[i - 1]))


@helper
def slides(robot, joints, i):
    """Return whether the origin of body i may move against its parent."""
    return robot[i, SLIDE] != 0.0 or (joints is not None and joints[i, KIND] == FREE)


@helper
def cross_joint(joints, i, a, b):
    """Return a x b for a part b of the `joint_motion` of body i."""
    if is_screw(joints, i):
        return (a[1] * b[2], -a[0] * b[2], 0.0)
    return cross(a, b)


@helper
def ad_joint(joints, i, V, Sv):
    """Return ad_V of the `joint_motion` of body i."""
    turn, slide = Sv
    return (cross_joint(joints, i, V[0], turn),
            add(cross_joint(joints, i, V[0], slide), cross_joint(joints, i, V[1], turn)))


@helper
def project(robot, joints, i, F):
    """Return S^T F of column i, both in the axes of body i [K (41)]."""
    moment, force = F
    if joints is not None and joints[i, AXIS] == 0:
        return robot[i, TURN] * moment[0] + robot[i, SLIDE] * force[0]
    if joints is not None and joints[i, AXIS] == 1:
        return robot[i, TURN] * moment[1] + robot[i, SLIDE] * force[1]
    return robot[i, TURN] * moment[2] + robot[i, SLIDE] * force[2]
