# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Walks over the tree that several algorithms share.

- `write_local_poses`: the pose of each body in its parent's frame;
- `forward_pass`, root to leaves: poses, columns of S, twists and accelerations in one frame with
  the world's axes;
- `compose_inertias`, leaves to root: inertias of composite bodies. A composite body is everything
  that a joint carries; in one frame, the inertias of its bodies are simply added.

Each algorithm uses columns of its own behind these.

"""

from rbd_ros.kernels.jit.compiled import helper
from rbd_ros.kernels.lanes.lanes import entry, only_screws, vectorized, work_of
from rbd_ros.kernels.lanes.sines import cosine_and_sine, cosines_and_sines
from rbd_ros.kernels.tree.coordinates import coordinate
from rbd_ros.kernels.tree.joints import (
    follows, has_quaternion, is_free, is_screw, joint_pose, rotated_column, rotated_joint_motion,
    screw_displacement, screw_pose)
from rbd_ros.kernels.tree.layout import (
    add_columns, BLOCK, block_end, columns_of, constant, constant3, constant_inertia, COS_, count,
    end, GRAVITY, GROUND, INERTIA, LANES, load3, load33, load6, number, parent, POSE_END, POSITION,
    R_, r_, ROTATION, SIN_, SLID_, SLIDE, slot, store, store3, store33, store6, store_inertia)
from rbd_ros.kernels.tree.vectors import (
    ad, add6, add_cross, add_rotated, compose, inertia_from_child, inertia_times, scale, scale6,
    velocity_inertia, velocity_times, velocity_transposed_times)

# Columns of `robot`: column of the joint, twist, acceleration, and rate of the column; inertia,
# and K and p of `velocity_inertia`, first of the body, then of the composite body.
S_, V_, A_, SDOT_, G_, K_, p_, WORLD_COLUMNS = columns_of(POSE_END, 6, 6, 6, 6, 10, 9, 3)


# -- Poses in the parents' frames. --------------------------------------------------------------
@helper
def evaluate_screw(robot, traits, i, q):
    """Write the displacement of body i's screw: cosine, sine and translation."""
    angle, slid = screw_displacement(robot, traits, i, q)
    c, s = cosine_and_sine(angle)
    store(robot, slot(i), COS_, c)
    store(robot, slot(i), SIN_, s)
    store(robot, slot(i), SLID_, slid)


@helper
def evaluate_screws(robot, traits, q):
    """Write the displacement of every screw."""
    for i in range(1, count(robot)):
        evaluate_screw(robot, traits, i, q)


@helper
def evaluate_screws_to_root(robot, traits, body, q):
    """Write the displacements of the screws from a body to the root."""
    if vectorized(robot):
        b = body
        while b > 0:
            evaluate_screw(robot, traits, number(robot, b), q)
            b = parent(robot, b)
        return
    # One state: eight sines at a time. Angles of bodies off the path are set to zero.
    last, b = -1, body
    while b > 0:
        i = number(robot, b)
        block = b - i % LANES
        if block != last:
            for lane in range(block, block + LANES):
                store(robot, lane, COS_, 0.0)
            last = block
        angle, slid = screw_displacement(robot, traits, i, q)
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
def write_local_pose(robot, b, pose):
    """Write the pose of a body in its parent's frame."""
    store33(robot, b, R_, pose[0])
    store3(robot, b, r_, pose[1])


@helper
def write_local_poses(robot, traits, q):
    """Write the pose of every body in its parent's frame to R_ and r_; the ground has none."""
    n = count(robot)
    if vectorized(robot):
        evaluate_screws(robot, traits, q)
        for i in range(1, n):
            write_local_pose(robot, slot(i), joint_pose(robot, traits, i, q))
        return
    for i in range(1, n):
        angle, slid = screw_displacement(robot, traits, i, q)
        store(robot, slot(i), COS_, angle)
        store(robot, slot(i), SLID_, slid)
    for block in range(0, end(robot), BLOCK):
        cosines_and_sines(work_of(robot), block + LANES * COS_, LANES)
        for b in range(block, block + LANES):
            write_local_pose(robot, b, screw_pose(robot, b))
    if not only_screws(traits):
        for i in range(1, n):
            if has_quaternion(robot, traits, slot(i)):
                write_local_pose(robot, slot(i), joint_pose(robot, traits, i, q))


# For several states, columns of a pose that are constant are not stored per state.
@helper
def keeps_axis(robot, traits, b):
    """Return whether a body's z axis is fixed in its parent and therefore not stored."""
    return vectorized(robot) and is_screw(robot, traits, b)


@helper
def store_pose(robot, traits, b, pose):
    """Write the pose of a body in its parent's frame for `load_pose`."""
    R, r = pose
    store3(robot, b, R_, R[0])
    store3(robot, b, R_ + 3, R[1])
    if not keeps_axis(robot, traits, b):
        store3(robot, b, R_ + 6, R[2])
    if not keeps_axis(robot, traits, b) or constant(robot, b, SLIDE) != 0.0:
        store3(robot, b, r_, r)


@helper
def load_pose(robot, traits, b):
    """Return the pose (R, r) of a body in its parent's frame."""
    x, y = load3(robot, b, R_), load3(robot, b, R_ + 3)
    if not keeps_axis(robot, traits, b):
        return (x, y, load3(robot, b, R_ + 6)), load3(robot, b, r_)
    R = (x, y, constant3(robot, b, ROTATION + 6))
    if constant(robot, b, SLIDE) == 0.0:
        return R, constant3(robot, b, POSITION)
    return R, load3(robot, b, r_)


# -- Poses, twists and accelerations in one frame. ----------------------------------------------
@helper
def ground_origin(robot, traits):
    """
    Return the position of the ground in the frame of the recursions.

    That frame has the world's axes and origin, or the origin of the floating base if there is one:
    robots far from the world's origin then lose no digits. Needs the local poses.

    """
    if is_free(robot, traits, slot(1)):
        return scale(-1.0, load3(robot, slot(1), r_))
    return (0.0, 0.0, 0.0)


@helper
def write_ground_pose(robot, origin):
    """Write the pose of the ground, whose axes are the world's."""
    store33(robot, GROUND, R_, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    store3(robot, GROUND, r_, origin)


@helper
def world_pose(R_W, r_W, R, r):
    """Return the world pose of a body at (R, r) in a parent at (R_W, r_W)."""
    return compose(R_W, R), add_rotated(r_W, R_W, r)


@helper
def write_world_pose(robot, b, up):
    """Replace the local pose of a body by its world pose, given its parent's, and return it."""
    R, r = world_pose(load33(robot, up, R_), load3(robot, up, r_),
                      load33(robot, b, R_), load3(robot, b, r_))
    store33(robot, b, R_, R)
    store3(robot, b, r_, r)
    return R, r


@helper
def world_column(robot, traits, b, R, r):
    """Return column S of a body at (R, r), about the world's origin."""
    turn, slide = rotated_column(robot, traits, b, R)
    return (turn, add_cross(slide, r, turn))


@helper
def world_joint_motion(robot, traits, i, R, r, S, v):
    """Return S v of the joint of a body at (R, r), about the world's origin."""
    if is_screw(robot, traits, slot(i)):
        return scale6(entry(v, coordinate(robot, traits, i)), S)
    turn, slide = rotated_joint_motion(robot, traits, i, R, S, v)
    return (turn, add_cross(slide, r, turn))


@helper
def joint_motion_at(robot, traits, i, x):
    """Return S x of the joint of a body whose pose and columns are known."""
    b = slot(i)
    return world_joint_motion(robot, traits, i, load33(robot, b, R_), load3(robot, b, r_),
                              load6(robot, b, S_), x)


@helper
def write_motions(robot, traits, x, column):
    """Write to a column the motion of every body at the velocities x, given poses and columns."""
    store6(robot, GROUND, column, ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    for i in range(1, count(robot)):
        b = slot(i)
        store6(robot, b, column, add6(load6(robot, parent(robot, b), column),
                                      joint_motion_at(robot, traits, i, x)))


@helper
def minus_gravity(robot):
    """Return a_0 = (0, -g), the acceleration of the ground that is equivalent to gravity."""
    return ((0.0, 0.0, 0.0), scale(-1.0, constant3(robot, GROUND, GRAVITY)))


@helper
def forward_pass(robot, traits, q, v, a, A_0):
    """
    Write world pose, S_, V_ and A_ of every body, from root to leaves; return `ground_origin`.

    If v is None, V_ and A_ are left out; if a is None, A_ is. ``A_0`` is the acceleration of the
    ground. Kim (34)-(36); Lynch and Park (9.51)-(9.53).

    """
    write_local_poses(robot, traits, q)
    origin = ground_origin(robot, traits)
    write_ground_pose(robot, origin)
    store6(robot, GROUND, V_, ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    if a is not None:
        store6(robot, GROUND, A_, A_0)
    for i in range(1, count(robot)):
        b = slot(i)
        up = parent(robot, b)
        R, r = write_world_pose(robot, b, up)
        S = world_column(robot, traits, b, R, r)
        store6(robot, b, S_, S)
        if v is not None:
            Sv = world_joint_motion(robot, traits, i, R, r, S, v)
            V = add6(load6(robot, up, V_), Sv)
            store6(robot, b, V_, V)
            if a is not None:
                Sa = world_joint_motion(robot, traits, i, R, r, S, a)
                store6(robot, b, A_, add6(add6(load6(robot, up, A_), Sa), ad(V, Sv)))
    return origin


@helper
def mount(robot, traits, b):
    """Return the body on which the joint of body b is mounted."""
    while follows(robot, traits, b):
        b = parent(robot, b)
    return parent(robot, b)


@helper
def copy_from_mounts(robot, traits, motion, k):
    """Write to column k of each body the motion of the body on which its joint is mounted."""
    for i in range(1, count(robot)):
        b = slot(i)
        up = parent(robot, b)
        store6(robot, b, k, load6(robot, up, k if follows(robot, traits, b) else motion))


# -- Inertias of composite bodies. --------------------------------------------------------------
@helper
def world_inertia(robot, b):
    """Return the inertia of a body in the world's axes and about the world's origin."""
    return inertia_from_child(load33(robot, b, R_), load3(robot, b, r_),
                              constant_inertia(robot, b, INERTIA))


@helper
def store_moving_inertia(robot, b, V):
    """Write G_, K_ and p_ of a single body, and return its inertia."""
    G = world_inertia(robot, b)
    K, p = velocity_inertia(V, G)
    store_inertia(robot, b, G_, G)
    store33(robot, b, K_, K)
    store3(robot, b, p_, p)
    return G


@helper
def accumulate_to_root(robot, first, last):
    """Replace columns first ... last - 1 of each body by their sums over its subtree."""
    for j in range(count(robot) - 1, 0, -1):
        b = slot(j)
        add_columns(robot, parent(robot, b), b, first, last)


@helper
def compose_inertias(robot, v):
    """Write SDOT_, and G_, K_ and p_ of the composite bodies; only G_ if v is None."""
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            if v is None:
                store_inertia(robot, b, G_, world_inertia(robot, b))
            else:
                V = load6(robot, b, V_)
                store6(robot, b, SDOT_, ad(V, load6(robot, b, S_)))
                store_moving_inertia(robot, b, V)
    accumulate_to_root(robot, G_, K_ if v is None else WORLD_COLUMNS)


@helper
def composite_forces(G, K, p, S, S_rate):
    """Return F1 = G dS/dt + B S, F2 = G S and the moment of F3 = B^T S (its force is zero)."""
    return (add6(inertia_times(G, S_rate), velocity_times(K, p, S)), inertia_times(G, S),
            velocity_transposed_times(K, p, S))
