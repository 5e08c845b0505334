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

from rbd_ros.kernels.bodies import (ARMATURE, BLOCK, constant, constant3, constant_inertia, count,
                                    cross_joint, end, fits, GRAVITY, GROUND, INERTIA, joint_motion,
                                    LANES, load3, load33, load6, parent, place, place_in_parent,
                                    place_in_parents,
                                    project, R_, r_, SCRATCH, slides, store3, store6, WRENCH)
from rbd_ros.kernels.compiled import helper, kernel
from rbd_ros.kernels.lanes import entry, finite, set_entry, side_by_side, work_of
from rbd_ros.kernels.vectors import (acceleration_of_points, add, add_cross, add_to_parent, cross,
                                     inertial_force, scale, sub6, unrotate)

# Columns of `robot`.
OMEGA_, ALPHA_, a_, F_ = (SCRATCH + k for k in (12, 15, 18, 21))


@helper
def move_body(robot, screws, i, v, a):
    """Write how body i moves: OMEGA_, ALPHA_ and a_."""
    b = place(i)
    up = parent(robot, b)
    R = load33(robot, b, R_)
    if v is None:
        store3(robot, b, a_, unrotate(R, load3(robot, up, a_)))
        return
    turn, slide = joint_motion(robot, screws, i, v)
    turn_rate, slide_rate = joint_motion(robot, screws, i, a)
    carried = unrotate(R, load3(robot, up, OMEGA_))
    omega = add(carried, turn)
    alpha = add(add(unrotate(R, load3(robot, up, ALPHA_)),
                    cross_joint(robot, screws, b, carried, turn)), turn_rate)
    r, omega_p = load3(robot, b, r_), load3(robot, up, OMEGA_)
    of_origin = unrotate(R, add_cross(add_cross(
        load3(robot, up, a_), load3(robot, up, ALPHA_), r), omega_p, cross(omega_p, r)))
    if slides(robot, screws, b):
        sliding = cross_joint(robot, screws, b, add(carried, omega), slide)
        of_origin = add(add(of_origin, sliding), slide_rate)
    store3(robot, b, OMEGA_, omega)
    store3(robot, b, ALPHA_, alpha)
    store3(robot, b, a_, of_origin)


@helper
def force_on_body(robot, b, v):
    """Write the force F_ that moves a body alone, without what acts on it from outside."""
    G, of_origin = constant_inertia(robot, b, INERTIA), load3(robot, b, a_)
    if v is None:
        F = (cross(G[1], of_origin), scale(G[2], of_origin))
    else:
        A = acceleration_of_points(load3(robot, b, OMEGA_), load3(robot, b, ALPHA_))
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
    # steps in which no body needs another are done for several bodies at once.
    if side_by_side(robot):
        for i in range(1, n):
            place_in_parent(robot, screws, i, q)
            move_body(robot, screws, i, v, a)
            force_on_body(robot, place(i), v)
    else:
        place_in_parents(robot, screws, q)
        for i in range(1, n):
            move_body(robot, screws, i, v, a)
        for block in range(0, end(robot), BLOCK):
            for b in range(block, block + LANES):
                force_on_body(robot, b, v)
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
        store6(robot, up, F_, add_to_parent(load6(robot, up, F_), load33(robot, b, R_),
                                            load3(robot, b, r_), F))
    # A position that is not finite may show only in the moment on the ground.
    moment = load3(robot, GROUND, F_)
    return finite(total + moment[0] + moment[1] + moment[2])


# Two kernels: passing None from Python would take longer than all the rest.
@kernel
def newton_euler(robot, screws, q, v, a):
    """Do the `recursion`, and return whether all is finite."""
    return recursion(robot, screws, q, v, a)


@kernel
def newton_euler_at_rest(robot, screws, q):
    """Do the `recursion` for a robot that stands still, and return whether all is finite."""
    return recursion(robot, screws, q, None, None)
