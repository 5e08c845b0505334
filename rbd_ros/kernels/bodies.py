# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The robot as the kernels see it: one body per column of S.

Body 0 is the ground; a parent comes before its children; body i carries velocity i - 1. A joint
with several degrees of freedom is a run of bodies of which only the last has mass:

- a chain of screws if its axes turn with its own coordinates (universal, Euler angles ...);
- for a ball or a free joint, whose axes are those of the moving body, a first body with the whole
  motion of the joint and others that follow it rigidly, each with its own column of S.

Every column is thus a screw about one axis of its body's frame. `rbd_ros.model.body_table` turns
the frames so that the axis of a joint with one degree of freedom is z.

All data of the bodies is in one array of floats, `robot`: each further array would make calls from
Python slower. (PARENT and NUMBER are integers in the same eight bytes.) It is a table of bodies
and columns, in blocks of eight bodies in which the eight numbers of a column are side by side;
behind the blocks there is room for the torques of inverse dynamics, one per velocity.

    loop over the bodies:                       loop over the lanes:

    for i in range(1, n):                       for block in range(0, end(robot), BLOCK):
        b = place(i)                                for b in range(block, block + LANES):
        x = load(robot, b, COLUMN)                      x = load(robot, b, COLUMN)

The compiler turns the second form, for steps in which no body needs another, into instructions
that compute several bodies at once. Unused lanes of the last block are zero.

Where several states are computed side by side, `robot` is a pair: this table, of which only what
is `constant` is read, and one of the same size with lanes of states in place of floats, in which
the columns of a body are side by side. See `rbd_ros.kernels.lanes.lanes`; the recursions are the
same.

"""

import numpy as np
from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import constants_of, entry, set_entry, side_by_side, work_of
from rbd_ros.kernels.lanes.sines import cosine_and_sine, cosines_and_sines
from rbd_ros.kernels.vectors import (add, add_rotated, compose, cross, quaternion_rotation, rotate,
                                     scale, scale6, turn_z)

# Places and columns are NumPy integers: numba would compile the helpers anew for each value of a
# constant that is a Python integer, which took half of the time.
GROUND = np.int64(0)       # where body 0 begins

# Columns: constants first.
ROTATION = np.int64(0)     # pose of the body in its parent's frame at rest: rotation (9) ...
POSITION = np.int64(9)     # ... and position (3), m
TURN = np.int64(12)        # rad per unit of velocity
SLIDE = np.int64(13)       # m per unit of velocity
PARENT = np.int64(14)      # where the parent begins; of the ground, how many bodies there are
ARMATURE = np.int64(15)    # rotor inertia, reflected to the joint side, kg m^2 or kg
INERTIA = np.int64(16)     # of the body in its own frame: Sigma (6), h (3), m
KIND = np.int64(26)        # how the body moves against its parent, see below
AXIS = np.int64(27)        # axis of the body's frame that it turns about and slides along: 0, 1, 2
Q = np.int64(28)           # index of the joint's first entry in q; of the ground, the length of q
NUMBER = np.int64(29)      # number of the body
BRANCHES = np.int64(30)    # 1 where a body carries others than the one behind it, else 0
CONSTANTS = np.int64(31)
WRENCH = np.int64(31)      # moment and force on the body from outside, in its frame, N m and N
PRESCRIBED = np.int64(37)  # 1 where hybrid dynamics is given the acceleration, 0 where the torque
SCRATCH = np.int64(38)     # from here on, intermediate results of each kernel
R_, r_ = SCRATCH, SCRATCH + 9        # first the pose of the body, rotation (9), position (3) ...
COS_, SIN_, SLID_ = R_, R_ + 1, r_   # ... and before that, how far its screw turned and slid
GRAVITY = POSITION   # of the ground: acceleration of gravity, m/s^2

# Bodies and columns of a block; the number of columns is odd so that the blocks do not compete for
# the same places in a cache.
LANES = 8
COLUMNS = 127
BLOCK = LANES * COLUMNS

# Values of KIND.
SCREW = 0        # by q about and along z
BALL = 1         # by a quaternion (x, y, z, w)
FREE = 2         # by a quaternion (x, y, z, w) and a position
FOLLOW = 3       # not at all

# The argument `screws` of the kernels is 1 if every joint is a screw, with one entry of q each,
# and None otherwise: the compiler then drops what only balls and free joints need.


@helper
def offset(b, k):
    """Return where column k of a body is; b is where the body begins."""
    # Unsigned: the compiler need not handle indices that count from the end, and can compute
    # several lanes at once.
    return np.uint64(b + LANES * k)


@helper
def work_offset(robot, b, k):
    """Return where column k of a body is in the table of what differs from state to state."""
    if side_by_side(robot):
        return (np.uint64(b) // np.uint64(BLOCK) * np.uint64(LANES)
                + np.uint64(b) % np.uint64(BLOCK)) * np.uint64(COLUMNS) + np.uint64(k)
    return offset(b, k)


@helper
def load(robot, b, k):
    """Return column k of a body, which differs from state to state."""
    return entry(work_of(robot), work_offset(robot, b, k))


@helper
def constant(robot, b, k):
    """Return column k of a body, which is the same in all states."""
    return constants_of(robot)[offset(b, k)]


@helper
def load_integer(robot, b, k):
    """Return column k of a body, which holds a whole number."""
    return np.float64(constant(robot, b, k)).view(np.int64)


@helper
def store_integer(robot, b, k, x):
    """Write a whole number, the same in all states, to column k of a body."""
    constants_of(robot)[offset(b, k)] = np.int64(x).view(np.float64)


@helper
def store(robot, b, k, x):
    """Write column k of a body."""
    set_entry(work_of(robot), work_offset(robot, b, k), x)


@helper
def load3(robot, b, k):
    """Return the vector in columns k ... k + 2."""
    return (load(robot, b, k), load(robot, b, k + 1), load(robot, b, k + 2))


@helper
def constant3(robot, b, k):
    """Return the constant vector in columns k ... k + 2."""
    return (constant(robot, b, k), constant(robot, b, k + 1), constant(robot, b, k + 2))


@helper
def constant33(robot, b, k):
    """Return the constant rotation at column k."""
    return (constant3(robot, b, k), constant3(robot, b, k + 3), constant3(robot, b, k + 6))


@helper
def constant_inertia(robot, b, k):
    """Return the constant inertia at columns k ... k + 9."""
    return ((constant(robot, b, k), constant(robot, b, k + 1), constant(robot, b, k + 2),
             constant(robot, b, k + 3), constant(robot, b, k + 4), constant(robot, b, k + 5)),
            constant3(robot, b, k + 6), constant(robot, b, k + 9))


@helper
def store3(robot, b, k, a):
    """Write a vector to columns k ... k + 2."""
    store(robot, b, k, a[0])
    store(robot, b, k + 1, a[1])
    store(robot, b, k + 2, a[2])


@helper
def load33(robot, b, k):
    """Return the rotation, or the three columns of a matrix, at column k."""
    return (load3(robot, b, k), load3(robot, b, k + 3), load3(robot, b, k + 6))


@helper
def store33(robot, b, k, R):
    """Write a rotation, or three columns of a matrix, to column k."""
    store3(robot, b, k, R[0])
    store3(robot, b, k + 3, R[1])
    store3(robot, b, k + 6, R[2])


@helper
def load6(robot, b, k):
    """Return the motion or force at column k."""
    return (load3(robot, b, k), load3(robot, b, k + 3))


@helper
def store6(robot, b, k, V):
    """Write a motion or force to column k."""
    store3(robot, b, k, V[0])
    store3(robot, b, k + 3, V[1])


@helper
def load_symmetric(robot, b, k):
    """Return the symmetric matrix in columns k ... k + 5."""
    return (load(robot, b, k), load(robot, b, k + 1), load(robot, b, k + 2),
            load(robot, b, k + 3), load(robot, b, k + 4), load(robot, b, k + 5))


@helper
def store_symmetric(robot, b, k, s):
    """Write a symmetric matrix to columns k ... k + 5."""
    store3(robot, b, k, (s[0], s[1], s[2]))
    store3(robot, b, k + 3, (s[3], s[4], s[5]))


@helper
def load_inertia(robot, b, k):
    """Return the inertia at columns k ... k + 9."""
    return (load_symmetric(robot, b, k), load3(robot, b, k + 6), load(robot, b, k + 9))


@helper
def store_inertia(robot, b, k, G):
    """Write an inertia to columns k ... k + 9."""
    sigma, h, m = G
    store_symmetric(robot, b, k, sigma)
    store3(robot, b, k + 6, h)
    store(robot, b, k + 9, m)


@helper
def place(i):
    """Return where body i begins."""
    return i // LANES * BLOCK + i % LANES


@helper
def parent(robot, b):
    """Return where the parent of a body begins; 0 if that is the ground."""
    return load_integer(robot, b, PARENT)


@helper
def number(robot, b):
    """Return the number of a body."""
    return load_integer(robot, b, NUMBER)


@helper
def add_columns(robot, up, b, first, last):
    """Add columns first ... last - 1 of a body to those of another."""
    for k in range(first, last):
        store(robot, up, k, load(robot, up, k) + load(robot, b, k))


@helper
def is_screw(robot, screws, b):
    """Return whether all motion of a body against its parent is about and along its z axis."""
    return screws is not None or constant(robot, b, KIND) == SCREW


@helper
def follows(robot, screws, b):
    """Return whether a body follows the one before it, as a further column of one joint."""
    return screws is None and constant(robot, b, KIND) == FOLLOW


@helper
def is_free(robot, screws, b):
    """Return whether a free joint moves the body."""
    return screws is None and constant(robot, b, KIND) == FREE


@helper
def has_quaternion(robot, screws, b):
    """Return whether a ball or a free joint moves the body."""
    kind = constant(robot, b, KIND)
    return screws is None and (kind == BALL or kind == FREE)


@helper
def along(robot, screws, b, x, y, z):
    """Return x, y or z, whichever belongs to the axis of the body."""
    if screws is not None:
        return z
    axis = constant(robot, b, AXIS)
    return x if axis == 0.0 else y if axis == 1.0 else z


@helper
def count(robot):
    """Return how many bodies there are, the ground included."""
    return load_integer(robot, GROUND, PARENT)


@helper
def end(robot):
    """Return where the blocks end and the torques begin."""
    return len(work_of(robot)) - (count(robot) - 1)


@helper
def block_end(robot, block):
    """Return where the bodies of a block end; of one state, unused lanes count as bodies."""
    if side_by_side(robot):
        return block + min(LANES, count(robot) - block // BLOCK * LANES)
    return block + LANES


@helper
def fits(robot, q, v):
    """Return whether q and v (or None) have as many entries as the robot has coordinates."""
    return len(q) == int(constant(robot, GROUND, Q)) and (v is None or len(v) == count(robot) - 1)


# How each body is placed in its parent's frame, T_{lambda(i),i} [K (34)].
@helper
def screw_motion(robot, screws, i, q):
    """Return how far body i turned and slid, if a screw moves it; it did not if it follows."""
    b = place(i)
    if not is_screw(robot, screws, b):
        return 0.0, 0.0
    x = entry(q, i - 1 if screws is not None else int(constant(robot, b, Q)))
    return constant(robot, b, TURN) * x, constant(robot, b, SLIDE) * x


@helper
def turn_screws(robot, screws, body, q):
    """Write how far a body and all that carry it turned, as cosine and sine, and slid."""
    if side_by_side(robot):
        b = body
        while b > 0:
            angle, slid = screw_motion(robot, screws, number(robot, b), q)
            c, s = cosine_and_sine(angle)
            store(robot, b, COS_, c)
            store(robot, b, SIN_, s)
            store(robot, b, SLID_, slid)
            b = parent(robot, b)
        return
    last, b = -1, body
    while b > 0:
        i = number(robot, b)
        block = b - i % LANES
        if block != last:
            for lane in range(block, block + LANES):
                store(robot, lane, COS_, 0.0)
            last = block
        angle, slid = screw_motion(robot, screws, i, q)
        store(robot, b, COS_, angle)
        store(robot, b, SLID_, slid)
        b = parent(robot, b)
    last, b = -1, body
    while b > 0:
        block = b - number(robot, b) % LANES
        if block != last:
            cosines_and_sines(work_of(robot), block + LANES * COS_, LANES)
            last = block
        b = parent(robot, b)


@helper
def moved_by_screw(robot, b, c, s, slid):
    """Return the pose (R, r) in the parent's frame of a body that has turned and slid."""
    R = constant33(robot, b, ROTATION)
    return turn_z(R, c, s), add(constant3(robot, b, POSITION), scale(slid, R[2]))


@helper
def screw_pose(robot, b):
    """Return the pose (R, r) in the parent's frame of a body that a screw has moved."""
    if side_by_side(robot) and constant(robot, b, SLIDE) == 0.0:
        R = constant33(robot, b, ROTATION)
        return turn_z(R, load(robot, b, COS_), load(robot, b, SIN_)), constant3(robot, b, POSITION)
    return moved_by_screw(robot, b, load(robot, b, COS_), load(robot, b, SIN_),
                          load(robot, b, SLID_))


@helper
def joint_pose(robot, screws, i, q):
    """Return the pose (R, r) of body i in its parent's frame after `turn_screws`."""
    b = place(i)
    if not has_quaternion(robot, screws, b):
        return screw_pose(robot, b)
    R, r = constant33(robot, b, ROTATION), constant3(robot, b, POSITION)
    k = int(constant(robot, b, Q))
    if is_free(robot, screws, b):
        r = add_rotated(r, R, (entry(q, k + 4), entry(q, k + 5), entry(q, k + 6)))
    turn = quaternion_rotation(entry(q, k), entry(q, k + 1), entry(q, k + 2), entry(q, k + 3))
    return compose(R, turn), r


@helper
def turn_all_screws(robot, screws, q):
    """Write how far every body turned, as cosine and sine, and slid."""
    for i in range(1, count(robot)):
        b = place(i)
        angle, slid = screw_motion(robot, screws, i, q)
        c, s = cosine_and_sine(angle)
        store(robot, b, COS_, c)
        store(robot, b, SIN_, s)
        store(robot, b, SLID_, slid)


@helper
def place_in_parents(robot, screws, q):
    """
    Write the pose of every body in its parent's frame to the columns R_ and r_.

    That of the ground has no meaning before `place_ground`.

    """
    n = count(robot)
    if side_by_side(robot):
        turn_all_screws(robot, screws, q)
        for i in range(1, n):
            R, r = joint_pose(robot, screws, i, q)
            store33(robot, place(i), R_, R)
            store3(robot, place(i), r_, r)
        return
    for i in range(1, n):
        b = place(i)
        angle, slid = screw_motion(robot, screws, i, q)
        store(robot, b, COS_, angle)
        store(robot, b, SLID_, slid)
    for block in range(0, end(robot), BLOCK):
        cosines_and_sines(work_of(robot), block + LANES * COS_, LANES)
        for b in range(block, block + LANES):
            R, r = screw_pose(robot, b)
            store33(robot, b, R_, R)
            store3(robot, b, r_, r)
    if screws is None:
        for i in range(1, n):
            b = place(i)
            if has_quaternion(robot, screws, b):
                R, r = joint_pose(robot, screws, i, q)
                store33(robot, b, R_, R)
                store3(robot, b, r_, r)


# Of states side by side, what is the same in all of them is not kept for each.
@helper
def keeps_axis(robot, screws, b):
    """Return whether a body's z axis stays where it is in its parent, and need not be kept."""
    return side_by_side(robot) and is_screw(robot, screws, b)


@helper
def store_pose(robot, screws, b, pose):
    """Write the pose of a body in its parent's frame for `load_pose`."""
    R, r = pose
    store3(robot, b, R_, R[0])
    store3(robot, b, R_ + 3, R[1])
    if not keeps_axis(robot, screws, b):
        store3(robot, b, R_ + 6, R[2])
    if not keeps_axis(robot, screws, b) or constant(robot, b, SLIDE) != 0.0:
        store3(robot, b, r_, r)


@helper
def load_pose(robot, screws, b):
    """Return the pose (R, r) of a body in its parent's frame."""
    x, y = load3(robot, b, R_), load3(robot, b, R_ + 3)
    if not keeps_axis(robot, screws, b):
        return (x, y, load3(robot, b, R_ + 6)), load3(robot, b, r_)
    R = (x, y, constant3(robot, b, ROTATION + 6))
    if constant(robot, b, SLIDE) == 0.0:
        return R, constant3(robot, b, POSITION)
    return R, load3(robot, b, r_)


# In the axes of the world, about the body's own origin.
@helper
def turned_column(robot, screws, b, R):
    """Return column S of a body that is turned by R, about its own origin."""
    axis = along(robot, screws, b, R[0], R[1], R[2])
    return (scale(constant(robot, b, TURN), axis), scale(constant(robot, b, SLIDE), axis))


@helper
def turned_joint_motion(robot, screws, i, R, S, v):
    """Return `joint_motion` of a body that is turned by R, about its own origin."""
    if is_screw(robot, screws, place(i)):
        return scale6(entry(v, i - 1), S)
    turn, slide = joint_motion(robot, screws, i, v)
    return (rotate(R, turn), rotate(R, slide))


# In the axes of the body itself.
@helper
def joint_motion(robot, screws, i, v):
    """Return S v of the whole joint in the axes of body i; zero at bodies that follow."""
    b = place(i)
    if is_screw(robot, screws, b):
        return ((0.0, 0.0, constant(robot, b, TURN) * entry(v, i - 1)),
                (0.0, 0.0, constant(robot, b, SLIDE) * entry(v, i - 1)))
    turn, slide = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if not follows(robot, screws, b):
        turn = (entry(v, i - 1), entry(v, i), entry(v, i + 1))
    if is_free(robot, screws, b):
        slide = (entry(v, i + 2), entry(v, i + 3), entry(v, i + 4))
    return (turn, slide)


@helper
def slides(robot, screws, b):
    """Return whether the origin of a body may move against its parent."""
    return constant(robot, b, SLIDE) != 0.0 or is_free(robot, screws, b)


@helper
def cross_joint(robot, screws, b, x, y):
    """Return x x y for a part y of the `joint_motion` of a body."""
    if is_screw(robot, screws, b):
        return (x[1] * y[2], -x[0] * y[2], 0.0)
    return cross(x, y)


@helper
def project(robot, screws, b, F):
    """Return S^T F of the column of a body, both in the axes of the body [K (41)]."""
    moment, force = F
    return (constant(robot, b, TURN) * along(robot, screws, b, moment[0], moment[1], moment[2])
            + constant(robot, b, SLIDE) * along(robot, screws, b, force[0], force[1], force[2]))
