# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inverse dynamics by the recursive Newton-Euler algorithm, in body frames.

Kim table 2; Lynch and Park (9.53)-(9.57); seed guide section 4, ID, with the acceleration written
for the points of the body. From dV/dt = (alpha, v') and V = (omega, v),

    u = A r + a,    A = [alpha] + [omega]^2,    a = v' + omega x v,

is the acceleration of the point at r, and the integrals of r x u and of u over the mass are
G dV/dt - ad_V^T G V. The velocity v of the origin is then needed nowhere.

"""

import math

from rbd_ros.bodies import (ARMATURE, cross_joint, fits, GRAVITY, INERTIA, joint_motion, parent,
                            place_in_parent, project, R_, r_, SCRATCH, slides, turn_screws, WRENCH)
from rbd_ros.compiled import kernel
from rbd_ros.vectors import (acceleration_of_points, add, add_rotated, add_to_parent, cross,
                             inertial_force, load3, load33, load6, load_inertia, scale, store3,
                             store33, store6, sub6, unrotate)

# Columns of `robot`.
OMEGA_, ALPHA_, A_, a_, F_ = (SCRATCH + k for k in (12, 15, 18, 27, 30))


@kernel
def newton_euler(robot, joints, q, v, a, tau):
    """
    Write the torques tau for the accelerations a, and return whether they are finite.

    ``v`` and ``a`` may both be None for zero. Nothing is written, and False returned, if q, v or a
    have a wrong length.

    """
    if not (fits(robot, joints, q, v) and fits(robot, joints, q, a)):
        return False
    zero = (0.0, 0.0, 0.0)
    n = len(robot)
    store3(robot, 0, OMEGA_, zero)
    store3(robot, 0, ALPHA_, zero)
    store33(robot, 0, A_, (zero, zero, zero))
    store3(robot, 0, a_, scale(-1.0, load3(robot, 0, GRAVITY)))
    store6(robot, 0, F_, (zero, zero))
    turn_screws(robot, joints, q)
    # Root to leaves: how each body moves, and the force on it alone.
    for i in range(1, n):
        p = parent(robot, i)
        R, r = place_in_parent(robot, joints, i, q)
        G = load_inertia(robot, i, INERTIA)
        if v is not None:
            turn, slide = joint_motion(robot, joints, i, v)
            turn_rate, slide_rate = joint_motion(robot, joints, i, a)
            carried = unrotate(R, load3(robot, p, OMEGA_))
            omega = add(carried, turn)
            alpha = add(add(unrotate(R, load3(robot, p, ALPHA_)),
                            cross_joint(joints, i, carried, turn)), turn_rate)
            of_origin = unrotate(R, add_rotated(load3(robot, p, a_), load33(robot, p, A_), r))
            if slides(robot, joints, i):
                of_origin = add(add(of_origin, cross_joint(joints, i, add(carried, omega), slide)),
                                slide_rate)
            A = acceleration_of_points(omega, alpha)
            F = inertial_force(G, A, of_origin)
            store3(robot, i, OMEGA_, omega)
            store3(robot, i, ALPHA_, alpha)
            store33(robot, i, A_, A)
        else:
            of_origin = unrotate(R, load3(robot, p, a_))
            F = (cross(G[1], of_origin), scale(G[2], of_origin))
        store3(robot, i, a_, of_origin)
        store6(robot, i, F_, sub6(F, load6(robot, i, WRENCH)))
    # Leaves to root: pass the forces on, and project them on the joints.         [K (41), T2]
    total = 0.0
    for i in range(n - 1, 0, -1):
        p = parent(robot, i)
        F = load6(robot, i, F_)
        torque = project(robot, joints, i, F)
        if a is not None:
            torque += robot[i, ARMATURE] * a[i - 1]
        tau[i - 1] = torque
        total += torque
        store6(robot, p, F_, add_to_parent(load6(robot, p, F_), load33(robot, i, R_),
                                           load3(robot, i, r_), F))
    # A position that is not finite may show in the moment on the ground alone.
    moment = load3(robot, 0, F_)
    return math.isfinite(total + moment[0] + moment[1] + moment[2])
