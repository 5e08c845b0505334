# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inverse dynamics by the recursive Newton-Euler algorithm, in body frames.

Kim table 2; Lynch and Park (9.53)-(9.57), with the acceleration written for the points of the
body. From dV/dt = (alpha, v') and V = (omega, v),

    u = A r + a,    A = [alpha] + [omega]^2,    a = v' + omega x v,

is the acceleration of the point at r, and the integrals of r x u and of u over the mass are
G dV/dt - ad_V^T G V. The velocity v of the origin is then needed nowhere.

"""

from rbd_ros.kernels.bodies import (ARMATURE, BLOCK, BRANCHES, constant, constant3,
                                    constant_inertia, count, cross_joint, end, fits, follows,
                                    GRAVITY, GROUND, INERTIA, is_screw, joint_motion, joint_pose,
                                    LANES, load3, load6, load_pose, parent, place,
                                    place_in_parents, project, SCRATCH, slides, store3, store6,
                                    store_pose, turn_all_screws, WRENCH)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import entry, finite, set_entry, side_by_side, work_of
from rbd_ros.kernels.vectors import (acceleration_of_points, add, add6, add_rotated, add_to_parent,
                                     cross, inertial_force, scale, sub6, unrotate)

# Columns of `robot`.
OMEGA_, ALPHA_, a_, F_ = (SCRATCH + k for k in (12, 15, 18, 21))


# How a body moves is omega, alpha, A and a, of which only a is used where v is None.
@helper
def load_motion(robot, b, v):
    """Return how a body moves."""
    of_origin = load3(robot, b, a_)
    if v is None:
        return (of_origin, of_origin, (of_origin, of_origin, of_origin), of_origin)
    omega, alpha = load3(robot, b, OMEGA_), load3(robot, b, ALPHA_)
    return (omega, alpha, acceleration_of_points(omega, alpha), of_origin)


@helper
def store_motion(robot, b, v, motion):
    """Write how a body moves."""
    omega, alpha, _, of_origin = motion
    if v is not None:
        store3(robot, b, OMEGA_, omega)
        store3(robot, b, ALPHA_, alpha)
    store3(robot, b, a_, of_origin)


@helper
def moved(robot, screws, i, v, a, pose, motion):
    """Return how body i moves, at this pose in its parent, which moves so."""
    R, r = pose
    omega_p, alpha_p, A_p, a_p = motion
    if v is None:
        return (omega_p, alpha_p, A_p, unrotate(R, a_p))
    b = place(i)
    turn, slide = joint_motion(robot, screws, i, v)
    turn_rate, slide_rate = joint_motion(robot, screws, i, a)
    carried = unrotate(R, omega_p)
    omega = add(carried, turn)
    alpha = add(add(unrotate(R, alpha_p), cross_joint(robot, screws, b, carried, turn)), turn_rate)
    of_origin = unrotate(R, add_rotated(a_p, A_p, r))
    if slides(robot, screws, b):
        sliding = cross_joint(robot, screws, b, add(carried, omega), slide)
        of_origin = add(add(of_origin, sliding), slide_rate)
    return (omega, alpha, acceleration_of_points(omega, alpha), of_origin)


@helper
def force_on_body(robot, b, v, motion):
    """Write the force F_ that moves a body alone, without what acts on it from outside."""
    G = constant_inertia(robot, b, INERTIA)
    _, _, A, of_origin = motion
    if v is None:
        F = (cross(G[1], of_origin), scale(G[2], of_origin))
    else:
        F = inertial_force(G, A, of_origin)
    store6(robot, b, F_, sub6(F, load6(robot, b, WRENCH)))


@helper
def recursion(robot, screws, q, v, a):
    """
    Write the torques for the accelerations a behind the blocks, and return whether all is finite.

    ``v`` and ``a`` may both be None for zero. Nothing is written, and False returned, if q, v or a
    have a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a)):
        return False
    zero = (0.0, 0.0, 0.0)
    n, tau = count(robot), work_of(robot)[end(robot):]
    store3(robot, GROUND, OMEGA_, zero)
    store3(robot, GROUND, ALPHA_, zero)
    store3(robot, GROUND, a_, scale(-1.0, constant3(robot, GROUND, GRAVITY)))
    store6(robot, GROUND, F_, (zero, zero))
    # Root to leaves: the pose and motion of each body, and the force on it alone. Of one state,
    # steps in which no body needs another are done for several bodies at once. The body before is
    # most often the parent: how that moves is not read again.
    if side_by_side(robot):
        turn_all_screws(robot, screws, q)
    else:
        place_in_parents(robot, screws, q)
    before, motion = GROUND, load_motion(robot, GROUND, v)
    for i in range(1, n):
        b = place(i)
        up = parent(robot, b)
        if up != before:
            motion = load_motion(robot, up, v)
        if side_by_side(robot):
            # What follows the body before moves as that does.
            if not follows(robot, screws, b):
                pose = joint_pose(robot, screws, i, q)
                store_pose(robot, screws, b, pose)
                # Of a screw the compiler knows more, if it is told.
                motion = (moved(robot, 1, i, v, a, pose, motion) if is_screw(robot, screws, b)
                          else moved(robot, screws, i, v, a, pose, motion))
            force_on_body(robot, b, v, motion)
        else:
            motion = moved(robot, screws, i, v, a, load_pose(robot, screws, b), motion)
        if not side_by_side(robot) or constant(robot, b, BRANCHES) != 0.0:
            store_motion(robot, b, v, motion)
        before = b
    if not side_by_side(robot):
        for block in range(0, end(robot), BLOCK):
            for b in range(block, block + LANES):
                force_on_body(robot, b, v, load_motion(robot, b, v))
    # Leaves to root: pass the forces on, and project them on the joints.         [K (41), T2]
    total = 0.0
    for i in range(n - 1, 0, -1):
        b = place(i)
        up = parent(robot, b)
        F = load6(robot, b, F_)
        torque = project(robot, screws, b, F)
        if a is not None:
            torque += constant(robot, b, ARMATURE) * entry(a, i - 1)
        set_entry(tau, i - 1, torque)
        total += torque
        if follows(robot, screws, b):
            store6(robot, up, F_, add6(load6(robot, up, F_), F))
        else:
            R, r = load_pose(robot, screws, b)
            store6(robot, up, F_, add_to_parent(load6(robot, up, F_), R, r, F))
    # A position that is not finite may show only in the moment on the ground.
    moment = load3(robot, GROUND, F_)
    return finite(total + moment[0] + moment[1] + moment[2])


# Three kernels: every argument takes Python time, None the most.
@kernel
def newton_euler(robot, screws, q, v, a):
    """Do the `recursion`, and return whether all is finite."""
    return recursion(robot, screws, q, v, a)


@kernel
def newton_euler_at_rest(robot, screws, q):
    """Do the `recursion` for a robot that stands still, and return whether all is finite."""
    return recursion(robot, screws, q, None, None)


@kernel
def newton_euler_packed(robot, screws, motion):
    """Do the `recursion` for q, v and a in one array, and return whether all is finite."""
    n = count(robot) - 1
    nq = len(motion) - 2 * n
    return recursion(robot, screws, motion[:nq], motion[nq:nq + n], motion[nq + n:])
