# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The array of the kernels for closed loops, one because each argument takes time: its parts.

It has the constraints, which velocities are dependent, what the kernels find, and their buffers;
whole numbers are stored in the same eight bytes. A block is a group of loops that have joints in
common. Its equations and its dependent velocities are numbered one after the other; they depend on
no velocities outside of it.

"""

from typing import NamedTuple

import numpy as np

# Columns of ``table``: kind, slots of the bodies, poses of the frames there (rotation by columns,
# position), distance, m, the first of its equations, the slot of the body that carries both, the
# block, and the condition number of J_d beyond which it is damped, or infinity.
KIND, BODY_A, FRAME_A, BODY_B, FRAME_B, LENGTH_M = 0, 1, 2, 14, 15, 27
FIRST, CARRIER, BLOCK_OF, LIMIT = 28, 29, 30, 31
ROW_LENGTH = 32
# Columns of ``blocks``: the first of its equations, dependent velocities and ``involved``, and the
# end of each.
EQUATION, DEPENDENT, INVOLVED = 0, 2, 4
# Rows of ``vectors``: V, A, gamma, a Newton step, torques of the unconstrained robot and bias
# torques, the results tau and a, followed by the columns of G. In the last column: the size of the
# gaps, and what is wrong: nothing (0), a dependent velocity 1 ... that is singular, inconsistent
# equations, the length of a vector, or more than NOT_SOLVED: a velocity that moves no inertia.
# Two rows are spare: without them forward dynamics takes 5 % longer (measured).
V, A, GAMMA, STEP, _, _, TORQUES, BIAS, TAU, OWN_A, G = range(11)
INCONSISTENT, LENGTH, NOT_SOLVED = -1, -2, 100
# Columns of X: a right-hand side; the forces of the equations; and, in the row of a constraint's
# first equation, its moment and force on body b, frame a, and the origin of frame b.
SIDE, FORCES, WRENCHES, FRAME, POINT_B = 0, 1, 2, 8, 20
# Last rows of J: the diagonal of R; of the reflections, factors, and the end of their equations.
DIAGONAL, FACTOR, END, EXTRA_ROWS = -3, -2, -1, 3
# Part of a dependent column that may be a combination of the others before that counts as
# singular, gap of closed loops, m and rad, and relative error of consistent equations.
SINGULAR, CLOSED, CONSISTENT = 1e-6, 1e-6, 1e-5
# Size of the gaps at which Newton's method ends, and which may be left where numbers of redundant
# equations are rounded, m and rad.
ACCURACY, ACCEPTED = 1e-13, 1e-7
ITERATIONS, LONGEST_STEP = 100, 0.5     # of Newton's method; rad or m
# Share of the smallest gap before, from which an acceptable gap counts as the smallest possible;
# near singular configurations it falls by less than half in a step.
STALLED = 0.9


class Parts(NamedTuple):
    """The parts of the array, in their order behind the row of their ends."""

    order: np.ndarray       # dependent velocities, block by block, then the independent ones ...
    own: np.ndarray         # ... which are these
    blocks: np.ndarray
    involved: np.ndarray    # independent velocities in blocks: number among them, and among all
    members: np.ndarray     # bodies of blocks: block, body, whether its parent is in it, too
    table: np.ndarray       # one row for each constraint
    J: np.ndarray           # J, c, gaps; as `factor_block` leaves them
    vectors: np.ndarray
    X: np.ndarray           # of equations and constraints, see above
    of_V: np.ndarray        # changes of dependent V and A along each of ``involved``, and dG/dt
    of_A: np.ndarray
    rate: np.ndarray
    GtM: np.ndarray         # rows of G^T M of the unconstrained robot
    tree_M: np.ndarray      # M of the unconstrained robot, and of the robot
    M: np.ndarray
    damping: np.ndarray     # if velocities may be damped: a row for each dependent one


# Those that depend on the state.
WRITTEN = ('J', 'vectors', 'X', 'of_V', 'of_A', 'rate', 'GtM', 'tree_M', 'M', 'damping')


def cut(loops):
    """Return the `Parts`."""
    e = loops[0].view(np.int64)
    numbers = loops[:e[3]].view(np.int64)
    return Parts(
        numbers[1, :e[15]], numbers[1, e[16]:e[15]], numbers[2:e[1]], numbers[e[1]:e[2]],
        numbers[e[2]:], loops[e[3]:e[4]], loops[e[4]:e[5]], loops[e[5]:e[6]], loops[e[6]:e[7]],
        loops[e[7]:e[8]], loops[e[8]:e[9]], loops[e[9]:e[10]], loops[e[10]:e[11]],
        loops[e[11]:e[12]], loops[e[12]:e[13]], loops[e[13]:e[14]])
