# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Poses, twists, accelerations and inertias of the bodies in one frame with the world's axes.

Many kernels begin with `move_bodies`, which goes from the root to the leaves, and most of them
continue with `compose_bodies`: a composite body is all that a joint carries, taken as one body. In
one frame, inertias and similar sums are simply added. Each kernel has columns of its own behind
these.

"""

from rbd_ros.kernels.bodies import (add_columns, BLOCK, block_end, constant3, constant_inertia,
                                    count, end, follows, GRAVITY, GROUND, INERTIA, is_free,
                                    is_screw, load3, load33, load6, parent, place,
                                    place_in_parents, R_, r_, SCRATCH, store3, store33, store6,
                                    store_inertia, turned_column, turned_joint_motion)
from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import entry
from rbd_ros.kernels.vectors import (ad, add6, add_cross, add_rotated, compose,
                                     inertia_from_child, inertia_times, scale, scale6,
                                     velocity_inertia, velocity_times, velocity_transposed_times)

# Columns of `robot`: column of the joint, twist, acceleration, and rate of the column; inertia,
# and K and p of `velocity_inertia`, first of the body, then of the composite body.
S_, V_, A_, SDOT_, G_, K_, p_, WORLD_COLUMNS = (
    SCRATCH + k for k in (12, 18, 24, 30, 36, 46, 55, 58))


@helper
def ground_origin(robot, screws):
    """
    Return the position of the ground in the frame that the recursions work in.

    That frame has the world's axes. Its origin is the world's, too, or that of a floating base if
    there is one: a robot far from the world's origin then loses no digits. The poses in the
    parents must be known already.

    """
    if is_free(robot, screws, place(1)):
        return scale(-1.0, load3(robot, place(1), r_))
    return (0.0, 0.0, 0.0)


@helper
def place_ground(robot, origin):
    """Write the pose of the ground: its axes are the world's."""
    store33(robot, GROUND, R_, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    store3(robot, GROUND, r_, origin)


@helper
def world_pose(R_W, r_W, R, r):
    """Return the pose of a body in the world from its parent's there and its own in the parent."""
    return compose(R_W, R), add_rotated(r_W, R_W, r)


@helper
def place_in_world(robot, b, up):
    """Write and return the pose of a body in the world, where its parent is placed already."""
    R, r = world_pose(load33(robot, up, R_), load3(robot, up, r_),
                      load33(robot, b, R_), load3(robot, b, r_))
    store33(robot, b, R_, R)
    store3(robot, b, r_, r)
    return R, r


@helper
def world_column(robot, screws, b, R, r):
    """Return column S of a body with the pose (R, r) in the world, about the world's origin."""
    turn, slide = turned_column(robot, screws, b, R)
    return (turn, add_cross(slide, r, turn))


@helper
def world_joint_motion(robot, screws, i, R, r, S, v):
    """Return `turned_joint_motion` about the world's origin, of a body at r."""
    if is_screw(robot, screws, place(i)):
        return scale6(entry(v, i - 1), S)
    turn, slide = turned_joint_motion(robot, screws, i, R, S, v)
    return (turn, add_cross(slide, r, turn))


@helper
def against_gravity(robot):
    """Return the acceleration of the ground that is equivalent to gravity."""
    return ((0.0, 0.0, 0.0), scale(-1.0, constant3(robot, GROUND, GRAVITY)))


@helper
def move_bodies(robot, screws, q, v, a, A_0):
    """
    Write pose, S_, V_ and A_ of every body, from the root to the leaves.

    Where v is None, V_ and A_ are left out, and where a is None, A_ is. ``A_0`` is the
    acceleration of the ground. Returns the position of the ground, see `ground_origin`.
    Kim (34)-(36); Lynch and Park (9.51)-(9.53).

    """
    place_in_parents(robot, screws, q)
    origin = ground_origin(robot, screws)
    place_ground(robot, origin)
    store6(robot, GROUND, V_, ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    if a is not None:
        store6(robot, GROUND, A_, A_0)
    for i in range(1, count(robot)):
        b = place(i)
        up = parent(robot, b)
        R, r = place_in_world(robot, b, up)
        S = world_column(robot, screws, b, R, r)
        store6(robot, b, S_, S)
        if v is not None:
            Sv = world_joint_motion(robot, screws, i, R, r, S, v)
            V = add6(load6(robot, up, V_), Sv)
            store6(robot, b, V_, V)
            if a is not None:
                Sa = world_joint_motion(robot, screws, i, R, r, S, a)
                store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(V, Sv)))
    return origin


@helper
def copy_from_carriers(robot, screws, motion, k):
    """Write to column k of each body a motion of the body that its joint is mounted on."""
    for i in range(1, count(robot)):
        b = place(i)
        up = parent(robot, b)
        store6(robot, b, k, load6(robot, up, k if follows(robot, screws, b) else motion))


@helper
def world_inertia(robot, b):
    """Return the inertia of a body in the axes of the world and about its origin."""
    return inertia_from_child(load33(robot, b, R_), load3(robot, b, r_),
                              constant_inertia(robot, b, INERTIA))


@helper
def store_moving_inertia(robot, b, V):
    """Write G_, K_ and p_ of a body alone, and return its inertia."""
    G = world_inertia(robot, b)
    K, p = velocity_inertia(V, G)
    store_inertia(robot, b, G_, G)
    store33(robot, b, K_, K)
    store3(robot, b, p_, p)
    return G


@helper
def add_to_parents(robot, first, last):
    """Turn columns first ... last - 1 of each body into the sums over all that it carries."""
    for j in range(count(robot) - 1, 0, -1):
        b = place(j)
        add_columns(robot, parent(robot, b), b, first, last)


@helper
def compose_bodies(robot, v):
    """Write SDOT_, and G_, K_ and p_ of the composite bodies; where v is None, G_ alone."""
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            if v is None:
                store_inertia(robot, b, G_, world_inertia(robot, b))
            else:
                V = load6(robot, b, V_)
                store6(robot, b, SDOT_, ad(V, load6(robot, b, S_)))
                store_moving_inertia(robot, b, V)
    add_to_parents(robot, G_, K_ if v is None else WORLD_COLUMNS)


@helper
def composite_forces(G, K, p, S, S_rate):
    """Return F1 = G dS/dt + B S, F2 = G S and F3 = B^T S, the latter its moment alone."""
    return (add6(inertia_times(G, S_rate), velocity_times(K, p, S)), inertia_times(G, S),
            velocity_transposed_times(K, p, S))
