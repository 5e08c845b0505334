# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Joint models: the pose T_{lambda(i),i}(q) of a body in its parent's frame, its column S, and S v.

Kinds of joints are those of `rbd_ros.kernels.tree.layout`. Kim (34).

"""

from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import entry, only_screws, vectorized
from rbd_ros.kernels.tree.coordinates import coordinate
from rbd_ros.kernels.tree.layout import (
    AXIS, BALL, constant, constant3, constant33, COS_, FOLLOW, FREE, KIND, load, POSITION, Q,
    ROTATION, SCREW, SIN_, SLID_, SLIDE, slot, TURN)
from rbd_ros.kernels.tree.vectors import (
    add, add_rotated, compose, cross, quaternion_rotation, rotate, scale, scale6, turn_z)


@helper
def is_screw(robot, traits, b):
    """Return whether a body moves about and along its z axis only."""
    return only_screws(traits) or constant(robot, b, KIND) == SCREW


@helper
def follows(robot, traits, b):
    """Return whether a body is fixed to the previous one, as a further column of one joint."""
    return not only_screws(traits) and constant(robot, b, KIND) == FOLLOW


@helper
def is_free(robot, traits, b):
    """Return whether a free joint moves the body."""
    return not only_screws(traits) and constant(robot, b, KIND) == FREE


@helper
def has_quaternion(robot, traits, b):
    """Return whether a ball or free joint moves the body."""
    kind = constant(robot, b, KIND)
    return not only_screws(traits) and (kind == BALL or kind == FREE)


@helper
def slides(robot, traits, b):
    """Return whether the origin of a body may move relative to its parent."""
    return constant(robot, b, SLIDE) != 0.0 or is_free(robot, traits, b)


# The pose of a body in its parent's frame.
@helper
def screw_displacement(robot, traits, i, q):
    """Return the angle and the translation of body i's screw; zero for bodies without one."""
    b = slot(i)
    if not is_screw(robot, traits, b):
        return 0.0, 0.0
    x = entry(q, coordinate(robot, traits, i) if only_screws(traits)
              else int(constant(robot, b, Q)))
    return constant(robot, b, TURN) * x, constant(robot, b, SLIDE) * x


@helper
def screw_pose(robot, b):
    """Return the pose (R, r) of a body moved by a screw, from COS_, SIN_ and SLID_."""
    R, r = constant33(robot, b, ROTATION), constant3(robot, b, POSITION)
    if not vectorized(robot) or constant(robot, b, SLIDE) != 0.0:
        r = add(r, scale(load(robot, b, SLID_), R[2]))
    return turn_z(R, load(robot, b, COS_), load(robot, b, SIN_)), r


@helper
def joint_pose(robot, traits, i, q):
    """Return the pose (R, r) of body i; if it has a screw, that must be evaluated already."""
    b = slot(i)
    if not has_quaternion(robot, traits, b):
        return screw_pose(robot, b)
    R, r = constant33(robot, b, ROTATION), constant3(robot, b, POSITION)
    k = int(constant(robot, b, Q))
    if is_free(robot, traits, b):
        r = add_rotated(r, R, (entry(q, k + 4), entry(q, k + 5), entry(q, k + 6)))
    turn = quaternion_rotation(entry(q, k), entry(q, k + 1), entry(q, k + 2), entry(q, k + 3))
    return compose(R, turn), r


# S and S v in the axes of the body.
@helper
def along(robot, traits, b, x, y, z):
    """Return x, y or z, selected by the axis of the body."""
    if only_screws(traits):
        return z
    axis = constant(robot, b, AXIS)
    return x if axis == 0.0 else y if axis == 1.0 else z


@helper
def joint_motion(robot, traits, i, v):
    """Return S v of the whole joint; zero for bodies that follow another."""
    b, k = slot(i), coordinate(robot, traits, i)
    if is_screw(robot, traits, b):
        return ((0.0, 0.0, constant(robot, b, TURN) * entry(v, k)),
                (0.0, 0.0, constant(robot, b, SLIDE) * entry(v, k)))
    turn, slide = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if not follows(robot, traits, b):
        turn = (entry(v, k), entry(v, k + 1), entry(v, k + 2))
    if is_free(robot, traits, b):
        slide = (entry(v, k + 3), entry(v, k + 4), entry(v, k + 5))
    return (turn, slide)


@helper
def cross_joint(robot, traits, b, x, y):
    """Return x x y for a part y of the `joint_motion` of a body."""
    if is_screw(robot, traits, b):
        return (x[1] * y[2], -x[0] * y[2], 0.0)
    return cross(x, y)


@helper
def project(robot, traits, b, F):
    """Return S^T F [K (41)]."""
    moment, force = F
    return (constant(robot, b, TURN) * along(robot, traits, b, moment[0], moment[1], moment[2])
            + constant(robot, b, SLIDE) * along(robot, traits, b, force[0], force[1], force[2]))


# S and S v in rotated axes, about the origin of the body.
@helper
def rotated_column(robot, traits, b, R):
    """Return column S of a body with rotation R."""
    axis = along(robot, traits, b, R[0], R[1], R[2])
    return (scale(constant(robot, b, TURN), axis), scale(constant(robot, b, SLIDE), axis))


@helper
def rotated_joint_motion(robot, traits, i, R, S, v):
    """Return `joint_motion` of a body with rotation R and column S."""
    if is_screw(robot, traits, slot(i)):
        return scale6(entry(v, coordinate(robot, traits, i)), S)
    turn, slide = joint_motion(robot, traits, i, v)
    return (rotate(R, turn), rotate(R, slide))
