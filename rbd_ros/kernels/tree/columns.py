# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The columns of the table of bodies, see `rbd_ros.kernels.tree.layout`.

They are apart from the functions there because models need them, but no compiler.

"""

import numpy as np

# Slots and columns are NumPy integers: numba would compile each helper once per value of a
# Python integer constant, which doubled the compile time.
GROUND = np.int64(0)       # slot of body 0

# Constant columns.
ROTATION = np.int64(0)     # pose of the body in its parent's frame at q = 0: rotation (9) ...
POSITION = np.int64(9)     # ... and position (3), m
TURN = np.int64(12)        # rotation per unit of velocity, rad
SLIDE = np.int64(13)       # translation per unit of velocity, m
PARENT = np.int64(14)      # slot of the parent; for the ground, the number of bodies
ARMATURE = np.int64(15)    # rotor inertia, reflected to the joint side, kg m^2 or kg
INERTIA = np.int64(16)     # of the body in its own frame: Sigma (6), h (3), m
KIND = np.int64(26)        # motion of the body relative to its parent, see below
AXIS = np.int64(27)        # axis of the body's frame in its column of S: 0, 1, 2
Q = np.int64(28)           # index of the joint's first entry in q; for the ground, the length of q
NUMBER = np.int64(29)      # number of the body
BRANCHES = np.int64(30)    # 1 if a body other than the next one is attached to it, else 0
VELOCITY = np.int64(31)    # index of the body's velocity in v; for the ground, the length of v
CONSTANTS = np.int64(32)
WRENCH = np.int64(32)      # external moment and force on the body, in its frame, N m and N
PRESCRIBED = np.int64(38)  # 1 if hybrid dynamics is given the acceleration, 0 for the torque
SCRATCH = np.int64(39)     # first column of the intermediate results of each kernel


def columns_of(first, *widths):
    """Return the columns at which values of these widths begin, side by side, and their end."""
    return [first + sum(widths[:k]) for k in range(len(widths) + 1)]


R_, r_, POSE_END = columns_of(SCRATCH, 9, 3)    # pose of the body, rotation and position ...
COS_, SIN_, SLID_ = R_, R_ + 1, r_   # ... and before that, displacement of its screw
GRAVITY = POSITION   # of the ground: acceleration of gravity, m/s^2

# Bodies and columns of a block. An odd number of columns spreads the blocks over the cache sets.
LANES = 8
COLUMNS = 127
BLOCK = LANES * COLUMNS

# Values of KIND.
SCREW = 0        # moved by q about and along z
BALL = 1         # moved by a quaternion (x, y, z, w)
FREE = 2         # moved by a quaternion (x, y, z, w) and a position
FOLLOW = 3       # fixed to its parent

# Traits of a robot: values of the argument `traits` of the kernels. The type of the value selects
# what is compiled: without code for ball and free joints if every joint is a screw with one entry
# of q; with results that are sums over joints if some share a coordinate, as mimics do.
ONLY_SCREWS = 1
ANY_JOINTS = None
SHARING_SCREWS = 1.0
SHARING_JOINTS = True


def rows_of_terms(nv):
    """Return the first rows of C, g, C v, the Jacobian of the centre of mass and that, below M."""
    return nv, 2 * nv, 2 * nv + 1, 2 * nv + 2, 2 * nv + 5
