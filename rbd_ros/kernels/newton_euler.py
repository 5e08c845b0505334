# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inverse dynamics by the recursive Newton-Euler algorithm, in body frames.

Kim table 2; Lynch and Park (9.53)-(9.57), with the acceleration written for the points of the
body. From dV/dt = (alpha, v') and V = (omega, v),

    u = A r + a,    A = [alpha] + [omega]^2,    a = v' + omega x v,

is the acceleration of the point at r, and the integrals of r x u and of u over the mass are
G dV/dt - ad_V^T G V. The velocity v of the origin is not needed.

"""

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import as_screw, entry, finite, vectorized, work_of
from rbd_ros.kernels.tree.coordinates import clear_vector, coordinate, put_entry
from rbd_ros.kernels.tree.joints import (
    cross_joint, follows, is_screw, joint_motion, joint_pose, project, slides)
from rbd_ros.kernels.tree.layout import (
    ARMATURE, BLOCK, BRANCHES, columns_of, constant, constant3, constant_inertia, count, end, fits,
    GRAVITY, GROUND, INERTIA, LANES, load3, load6, parent, POSE_END, slot, store3, store6, torques,
    velocities, WRENCH)
from rbd_ros.kernels.tree.traversal import (
    evaluate_screws, load_pose, store_pose, write_local_poses)
from rbd_ros.kernels.tree.vectors import (
    acceleration_of_points, add, add6, add_rotated, add_to_parent, cross, inertial_force, scale,
    sub6, unrotate)

# Columns of `robot`.
OMEGA_, ALPHA_, a_, F_, _ = columns_of(POSE_END, 3, 3, 3, 6)


# The motion of a body is omega, alpha, A and a; only a is used if v is None.
@helper
def load_motion(robot, b, v):
    """Return the motion of a body."""
    of_origin = load3(robot, b, a_)
    if v is None:
        return (of_origin, of_origin, (of_origin, of_origin, of_origin), of_origin)
    omega, alpha = load3(robot, b, OMEGA_), load3(robot, b, ALPHA_)
    return (omega, alpha, acceleration_of_points(omega, alpha), of_origin)


@helper
def store_motion(robot, b, v, motion):
    """Write the motion of a body."""
    omega, alpha, _, of_origin = motion
    if v is not None:
        store3(robot, b, OMEGA_, omega)
        store3(robot, b, ALPHA_, alpha)
    store3(robot, b, a_, of_origin)


@helper
def propagate(robot, traits, i, v, a, pose, motion):
    """Return the motion of body i, given its pose in its parent and the motion of that."""
    R, r = pose
    omega_p, alpha_p, A_p, a_p = motion
    if v is None:
        return (omega_p, alpha_p, A_p, unrotate(R, a_p))
    b = slot(i)
    turn, slide = joint_motion(robot, traits, i, v)
    turn_rate, slide_rate = joint_motion(robot, traits, i, a)
    carried = unrotate(R, omega_p)
    omega = add(carried, turn)
    alpha = add(add(unrotate(R, alpha_p), cross_joint(robot, traits, b, carried, turn)), turn_rate)
    of_origin = unrotate(R, add_rotated(a_p, A_p, r))
    if slides(robot, traits, b):
        sliding = cross_joint(robot, traits, b, add(carried, omega), slide)
        of_origin = add(add(of_origin, sliding), slide_rate)
    return (omega, alpha, acceleration_of_points(omega, alpha), of_origin)


@helper
def store_force(robot, b, v, motion):
    """Write the force F = G dV/dt - ad_V^T G V - f_ext on a single body."""
    G = constant_inertia(robot, b, INERTIA)
    _, _, A, of_origin = motion
    if v is None:
        F = (cross(G[1], of_origin), scale(G[2], of_origin))
    else:
        F = inertial_force(G, A, of_origin)
    store6(robot, b, F_, sub6(F, load6(robot, b, WRENCH)))


# For one state, steps in which bodies do not depend on each other are vectorized over bodies; for
# several states, all steps of a body are done while its motion is in registers.
@helper
def prepare_poses(robot, traits, q):
    """Prepare the poses for `advance`."""
    if vectorized(robot):
        evaluate_screws(robot, traits, q)
    else:
        write_local_poses(robot, traits, q)


@helper
def advance(robot, traits, i, q, v, a, motion):
    """Return and write the motion of body i, given that of its parent."""
    b = slot(i)
    if not vectorized(robot):
        motion = propagate(robot, traits, i, v, a, load_pose(robot, traits, b), motion)
    elif not follows(robot, traits, b):
        pose = joint_pose(robot, traits, i, q)
        store_pose(robot, traits, b, pose)
        # The type of `traits` is known when compiling: a screw gets code of its own.
        motion = (propagate(robot, as_screw(traits), i, v, a, pose, motion)
                  if is_screw(robot, traits, b)
                  else propagate(robot, traits, i, v, a, pose, motion))
    if vectorized(robot):
        store_force(robot, b, v, motion)
    if not vectorized(robot) or constant(robot, b, BRANCHES) != 0.0:
        store_motion(robot, b, v, motion)
    return motion


@helper
def store_forces(robot, v):
    """Write the forces on all bodies, unless `advance` has."""
    if not vectorized(robot):
        for block in range(0, end(robot), BLOCK):
            for b in range(block, block + LANES):
                store_force(robot, b, v, load_motion(robot, b, v))


@helper
def recursion(robot, traits, q, v, a):
    """Write the torques for accelerations a behind the blocks; v and a may be None for zero."""
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    zero = (0.0, 0.0, 0.0)
    n, (first, last) = count(robot), torques(robot)
    tau = work_of(robot)[first:last]
    clear_vector(traits, tau)
    store3(robot, GROUND, OMEGA_, zero)
    store3(robot, GROUND, ALPHA_, zero)
    store3(robot, GROUND, a_, scale(-1.0, constant3(robot, GROUND, GRAVITY)))
    store6(robot, GROUND, F_, (zero, zero))

    # Root to leaves: V and dV/dt of each body, and F of the body alone.        [K (34)-(40)]
    prepare_poses(robot, traits, q)
    before, motion = GROUND, load_motion(robot, GROUND, v)
    for i in range(1, n):
        b = slot(i)
        up = parent(robot, b)
        if up != before:        # else the parent's motion is still in registers
            motion = load_motion(robot, up, v)
        motion = advance(robot, traits, i, q, v, a, motion)
        before = b
    store_forces(robot, v)

    # Leaves to root: F_p += A^T F and tau = S^T F.                                  [K (41), T2]
    total = 0.0
    for i in range(n - 1, 0, -1):
        b = slot(i)
        up = parent(robot, b)
        F = load6(robot, b, F_)
        torque = project(robot, traits, b, F)
        k = coordinate(robot, traits, i)
        if a is not None:
            torque += constant(robot, b, ARMATURE) * entry(a, k)
        put_entry(traits, tau, k, torque)
        total += torque
        if follows(robot, traits, b):
            store6(robot, up, F_, add6(load6(robot, up, F_), F))
        else:
            R, r = load_pose(robot, traits, b)
            store6(robot, up, F_, add_to_parent(load6(robot, up, F_), R, r, F))
    # A position that is not finite may affect only the moment on the ground.
    moment = load3(robot, GROUND, F_)
    return finite(total + moment[0] + moment[1] + moment[2])


# Three kernels, because every argument takes Python time, None the most.
@kernel
def newton_euler(robot, traits, q, v, a):
    """Do the `recursion`."""
    return recursion(robot, traits, q, v, a)


@kernel
def newton_euler_at_rest(robot, traits, q):
    """Do the `recursion` for v = a = 0."""
    return recursion(robot, traits, q, None, None)


@kernel
def newton_euler_packed(robot, traits, motion):
    """Do the `recursion` for q, v and a in one array."""
    n = velocities(robot)
    nq = len(motion) - 2 * n
    return recursion(robot, traits, motion[:nq], motion[nq:nq + n], motion[nq + n:])
