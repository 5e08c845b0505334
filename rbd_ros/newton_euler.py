# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inverse dynamics by the recursive Newton-Euler algorithm, in body frames.

Kim table 2; Lynch and Park (9.53)-(9.57); seed guide section 4, ID.

"""

import math

from rbd_ros.bodies import (ARMATURE, fits, GRAVITY, INERTIA, joint_motion, joint_pose, parent,
                            project, SCRATCH, WRENCH)
from rbd_ros.compiled import kernel
from rbd_ros.vectors import (ad, ad_transposed, add6, inertia_times, load3, load33, load6,
                             load_inertia, scale, store3, store33, store6, sub6, to_child,
                             to_parent)

# Columns of `robot`.
R_, r_, V_, VDOT_, F_ = (SCRATCH + k for k in (0, 9, 12, 18, 24))


@kernel
def newton_euler(robot, joints, q, v, a, tau):
    """
    Write the torques tau for the accelerations a, and return their sum.

    ``v`` and ``a`` may both be None for zero. The sum is NaN, and nothing is written, if q, v or a
    have a wrong length.

    """
    if not (fits(robot, joints, q, v) and fits(robot, joints, q, a)):
        return math.nan
    zero = (0.0, 0.0, 0.0)
    n = len(robot)
    store6(robot, 0, V_, (zero, zero))
    store6(robot, 0, VDOT_, (zero, scale(-1.0, load3(robot, 0, GRAVITY))))
    store6(robot, 0, F_, (zero, zero))
    # Root to leaves: twist, acceleration and the force on each body alone.       [K (36), (40)]
    for i in range(1, n):
        p = parent(robot, i)
        R, r = joint_pose(robot, joints, i, q)
        Vdot = to_child(R, r, load6(robot, p, VDOT_))
        G = load_inertia(robot, i, INERTIA)
        if v is not None:
            Sv = joint_motion(robot, joints, i, v)
            V = add6(to_child(R, r, load6(robot, p, V_)), Sv)
            Vdot = add6(add6(Vdot, ad(V, Sv)), joint_motion(robot, joints, i, a))
            F = sub6(inertia_times(G, Vdot), ad_transposed(V, inertia_times(G, V)))
            store6(robot, i, V_, V)
        else:
            F = inertia_times(G, Vdot)
        store33(robot, i, R_, R)
        store3(robot, i, r_, r)
        store6(robot, i, VDOT_, Vdot)
        store6(robot, i, F_, sub6(F, load6(robot, i, WRENCH)))
    # Leaves to root: pass the forces on, and project them on the joints.         [K (41), T2]
    total = 0.0
    for i in range(n - 1, 0, -1):
        p = parent(robot, i)
        F = load6(robot, i, F_)
        tau[i - 1] = project(robot, joints, i, F)
        if a is not None:
            tau[i - 1] += robot[i, ARMATURE] * a[i - 1]
        total += tau[i - 1]
        F = to_parent(load33(robot, i, R_), load3(robot, i, r_), F)
        store6(robot, p, F_, add6(load6(robot, p, F_), F))
    return total
