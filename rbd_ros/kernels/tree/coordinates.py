# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Coordinates: with which entry of v a body moves, and where its part of a result belongs.

Joints that mimic others share their coordinates. The table of bodies has the index of the
coordinate of each; multipliers and offsets are part of its joint's columns
(`rbd_ros.model.body_table`), so that S_i v[k] is the motion of body i due to coordinate k, and
torques, matrices and Jacobians are sums over the bodies that share a coordinate. Where none does,
as the type of ``traits`` says, each part is a result of its own and is written, not added.

"""

from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import element, entry, set_element, set_entry, sharing
from rbd_ros.kernels.tree.layout import load_integer, slot, VELOCITY
from rbd_ros.kernels.tree.vectors import add6, read_column, write_column


@helper
def coordinate(robot, traits, i):
    """Return the index in v of the coordinate of body i."""
    if sharing(traits):
        return coordinate_at(robot, slot(i))
    return i - 1


@helper
def coordinate_at(robot, b):
    """Do `coordinate` for the body in slot b."""
    return load_integer(robot, b, VELOCITY)


@helper
def clear_vector(traits, x):
    """Set a vector to zero if parts are added to it."""
    if sharing(traits):
        for i in range(len(x)):
            set_entry(x, i, 0.0)


@helper
def clear_matrix(traits, A):
    """Set a matrix to zero if parts are added to it."""
    if sharing(traits):
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                set_element(A, i, j, 0.0)


@helper
def clear_matrices(traits, D):
    """Do `clear_matrix` for the matrices D[h] of one state."""
    if sharing(traits):
        D[:] = 0.0


@helper
def put_entry(traits, x, i, value):
    """Write a part of entry i of a vector."""
    # Not +=, which would change interpreted lanes of the caller.
    set_entry(x, i, entry(x, i) + value if sharing(traits) else value)


@helper
def put_element(traits, A, i, j, value):
    """Write a part of an entry of a matrix."""
    set_element(A, i, j, element(A, i, j) + value if sharing(traits) else value)


@helper
def put_row3(traits, A, i, k, a):
    """Write a part of a vector in columns k ... k + 2 of row i."""
    put_element(traits, A, i, k, a[0])
    put_element(traits, A, i, k + 1, a[1])
    put_element(traits, A, i, k + 2, a[2])


@helper
def put_column(traits, A, i, j, V):
    """Write a part of a motion in rows i ... i + 5 of column j."""
    if sharing(traits):
        write_column(A, i, j, add6(read_column(A, i, j), V))
    else:
        write_column(A, i, j, V)
