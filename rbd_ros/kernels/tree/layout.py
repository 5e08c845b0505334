# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The robot as the kernels see it: a table with one body per column of S.

Body 0 is the ground, parents precede their children, and body i carries velocity i - 1, or, if
joints share coordinates, that of `rbd_ros.kernels.tree.coordinates`. A joint with several degrees
of freedom is a run of bodies of which only the last has mass:

- a chain of screws if its axes depend on its own coordinates (universal, Euler angles ...);
- for a ball or free joint, whose axes are those of the moving body, a first body with the whole
  motion of the joint, followed by bodies fixed to it that each contribute one column of S.

Each column is therefore a screw about one axis of its body's frame. `rbd_ros.model.body_table`
rotates the frames so that the axis of a joint with one degree of freedom is z.

The table is one flat array of floats, `robot`, because each further argument slows down calls from
Python; integers are stored in the same eight bytes. Bodies are grouped in blocks of eight, and the
eight values of a column are adjacent. The torques of inverse dynamics follow the last block.

    loop over the bodies:                       loop over the lanes:

    for i in range(1, n):                       for block in range(0, end(robot), BLOCK):
        b = slot(i)                                 for b in range(block, block + LANES):
        x = load(robot, b, COLUMN)                      x = load(robot, b, COLUMN)

The compiler vectorizes the second form, used where bodies do not depend on each other. Unused
lanes of the last block are zero.

For several states at once, `robot` is a pair: this table, of which only constants are read
(`constant`), and a table of the same size that holds lanes of states instead of floats, in which
the columns of one body are adjacent. See `rbd_ros.kernels.lanes.lanes`.

"""

import numpy as np
from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import constants_of, entry, set_entry, vectorized, work_of
from rbd_ros.kernels.tree import columns
# Kernels import columns from here.
from rbd_ros.kernels.tree.columns import (    # noqa: F401
    ARMATURE, AXIS, BALL, BLOCK, BRANCHES, COLUMNS, columns_of, CONSTANTS, COS_, FOLLOW, FREE,
    GRAVITY, GROUND, INERTIA, KIND, LANES, NUMBER, ONLY_SCREWS, PARENT, POSE_END, POSITION,
    PRESCRIBED, Q, R_, r_, ROTATION, SCRATCH, SCREW, SIN_, SLID_, SLIDE, TURN, VELOCITY, WRENCH)

rows_of_terms = helper(columns.rows_of_terms)


@helper
def offset(b, k):
    """Return the index of column k of the body in slot b."""
    # Unsigned, so that no code for negative indices keeps the compiler from vectorizing.
    return np.uint64(b + LANES * k)


@helper
def work_offset(robot, b, k):
    """Return the index of column k of a body in the table of state-dependent values."""
    if vectorized(robot):
        return (np.uint64(b) // np.uint64(BLOCK) * np.uint64(LANES)
                + np.uint64(b) % np.uint64(BLOCK)) * np.uint64(COLUMNS) + np.uint64(k)
    return offset(b, k)


@helper
def load(robot, b, k):
    """Return state-dependent column k of a body."""
    return entry(work_of(robot), work_offset(robot, b, k))


@helper
def store(robot, b, k, x):
    """Write column k of a body."""
    set_entry(work_of(robot), work_offset(robot, b, k), x)


@helper
def constant(robot, b, k):
    """Return constant column k of a body, the same in all states."""
    return constants_of(robot)[offset(b, k)]


@helper
def load_integer(robot, b, k):
    """Return integer column k of a body, the same in all states."""
    return np.float64(constant(robot, b, k)).view(np.int64)


@helper
def store_integer(robot, b, k, x):
    """Write integer column k of a body, the same in all states."""
    constants_of(robot)[offset(b, k)] = np.int64(x).view(np.float64)


# Vectors (3), rotations or other matrices by columns (33), motions and forces (6), symmetric
# matrices and inertias that begin at column k.
@helper
def load3(robot, b, k):
    """Return a vector."""
    return (load(robot, b, k), load(robot, b, k + 1), load(robot, b, k + 2))


@helper
def load33(robot, b, k):
    """Return a rotation, or another matrix by its columns."""
    return (load3(robot, b, k), load3(robot, b, k + 3), load3(robot, b, k + 6))


@helper
def load6(robot, b, k):
    """Return a motion or force."""
    return (load3(robot, b, k), load3(robot, b, k + 3))


@helper
def load_symmetric(robot, b, k):
    """Return a symmetric matrix."""
    return (load(robot, b, k), load(robot, b, k + 1), load(robot, b, k + 2),
            load(robot, b, k + 3), load(robot, b, k + 4), load(robot, b, k + 5))


@helper
def load_inertia(robot, b, k):
    """Return an inertia."""
    return (load_symmetric(robot, b, k), load3(robot, b, k + 6), load(robot, b, k + 9))


@helper
def constant3(robot, b, k):
    """Return a constant vector."""
    return load3(constants_of(robot), b, k)


@helper
def constant33(robot, b, k):
    """Return a constant rotation."""
    return load33(constants_of(robot), b, k)


@helper
def constant_inertia(robot, b, k):
    """Return a constant inertia."""
    return load_inertia(constants_of(robot), b, k)


@helper
def store3(robot, b, k, a):
    """Write a vector."""
    store(robot, b, k, a[0])
    store(robot, b, k + 1, a[1])
    store(robot, b, k + 2, a[2])


@helper
def store33(robot, b, k, R):
    """Write a rotation, or another matrix by its columns."""
    store3(robot, b, k, R[0])
    store3(robot, b, k + 3, R[1])
    store3(robot, b, k + 6, R[2])


@helper
def store6(robot, b, k, V):
    """Write a motion or force."""
    store3(robot, b, k, V[0])
    store3(robot, b, k + 3, V[1])


@helper
def store_symmetric(robot, b, k, s):
    """Write a symmetric matrix."""
    store3(robot, b, k, (s[0], s[1], s[2]))
    store3(robot, b, k + 3, (s[3], s[4], s[5]))


@helper
def store_inertia(robot, b, k, G):
    """Write an inertia."""
    sigma, h, m = G
    store_symmetric(robot, b, k, sigma)
    store3(robot, b, k + 6, h)
    store(robot, b, k + 9, m)


@helper
def add_columns(robot, up, b, first, last):
    """Add columns first ... last - 1 of body b to those of body up."""
    for k in range(first, last):
        store(robot, up, k, load(robot, up, k) + load(robot, b, k))


@helper
def slot(i):
    """Return the slot of body i, the index of its column 0."""
    return i // LANES * BLOCK + i % LANES


@helper
def parent(robot, b):
    """Return the slot of the parent of a body; 0 for the ground."""
    return load_integer(robot, b, PARENT)


@helper
def number(robot, b):
    """Return the number of a body."""
    return load_integer(robot, b, NUMBER)


@helper
def count(robot):
    """Return the number of bodies, including the ground."""
    return load_integer(robot, GROUND, PARENT)


@helper
def velocities(robot):
    """Return the number of velocities, at most one per body."""
    return load_integer(robot, GROUND, VELOCITY)


@helper
def end(robot):
    """Return the end of the blocks, where the torques begin."""
    return len(work_of(robot)) - (count(robot) - 1)


@helper
def torques(robot):
    """Return where the torques of inverse dynamics begin and end, one per velocity."""
    return end(robot), end(robot) + velocities(robot)


@helper
def block_end(robot, block):
    """Return the end of the slots of a block; for one state, unused lanes are included."""
    if vectorized(robot):
        return block + min(LANES, count(robot) - block // BLOCK * LANES)
    return block + LANES


@helper
def fits(robot, q, v):
    """Return whether the lengths of q and v (or None) match the robot."""
    return len(q) == int(constant(robot, GROUND, Q)) and (v is None or len(v) == velocities(robot))
