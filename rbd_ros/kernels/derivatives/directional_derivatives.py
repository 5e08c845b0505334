# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics with respect to one scalar p.

Inverse dynamics: the recursion of `newton_euler`, differentiated line by line, with dx for the
derivative of x. In the body's frame S is constant, so dS = 0, and the pose T of a body in its
parent's frame changes by the motion dh = vee(T^-1 dT) = S dq + Ad_T^-1 D, with D the motion of the
joint's placement in the parent's frame. Vectors x of the parent are R^T x in the body, which
changes by R^T dx - dh x (R^T x); forces F of the body are Ad_{T^-1}^T F in the parent, which
changes by Ad_{T^-1}^T (dF - ad_dh^T F) [K (61), (64), T5].

Forward and hybrid dynamics: let torques be given for the velocities p, accelerations for the
velocities a. The equations of motion, tau = M a + b, change by

    dtau = M da + dID,

with dID the derivative of inverse dynamics at the accelerations of the solution. With da_a, which
is given, included in dID,

    M_pp da_p = dtau_p - dID_p,    dtau_a = dID_a + M_ap da_p:

hybrid dynamics at rest, without gravity and wrenches, with zero given accelerations. By
articulated bodies this is O(n), as are tables 6 and 7 of Kim.

"""

import math

import numpy as np
from rbd_ros.kernels.articulated_bodies import (articulated_bodies_at_rest, articulated_recursion,
                                                copy_given, prescribe_none)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.tree.coordinates import clear_vector, coordinate, put_entry
from rbd_ros.kernels.tree.joints import joint_motion, project, slides
from rbd_ros.kernels.tree.layout import (
    ARMATURE, BLOCK, columns_of, constant, constant3, constant_inertia, count, end, fits, GRAVITY,
    GROUND, INERTIA, LANES, load3, load33, load6, load_inertia, parent, POSE_END, R_, r_, slot,
    store, store3, store6, WRENCH)
from rbd_ros.kernels.tree.traversal import write_local_poses
from rbd_ros.kernels.tree.vectors import (
    acceleration_of_points, add, add6, add_cross, add_to_parent, cross, inertial_force, row3,
    scale, sub6, to_child, unrotate)

# Columns of `robot`: as in `newton_euler`, then their derivatives. DH_ is first D, then dh;
# ROTATED_ is the change of the body's orientation relative to the root.
(OMEGA_, ALPHA_, a_, F_, DOMEGA_, DALPHA_, da_, DF_, DH_, DG_, DW_, ROTATED_,
 CHANGE_COLUMNS) = columns_of(POSE_END, 3, 3, 3, 6, 3, 3, 3, 6, 6, 10, 6, 3)


@helper
def acceleration_of_points_change(omega, domega, dalpha):
    """Return the derivative of `acceleration_of_points`, by its columns."""
    x, y, z = omega
    dx, dy, dz = domega
    xx, yy, zz = 2.0 * x * dx, 2.0 * y * dy, 2.0 * z * dz
    xy, xz, yz = x * dy + dx * y, x * dz + dx * z, y * dz + dy * z
    return ((-yy - zz, xy + dalpha[2], xz - dalpha[1]),
            (xy - dalpha[2], -xx - zz, yz + dalpha[0]),
            (xz + dalpha[1], yz - dalpha[0], -xx - yy))


@helper
def write_changes(robot, changes):
    """Write the changes of the bodies to D, DG_ and DW_."""
    for block in range(0, end(robot), BLOCK):
        for k in range(DH_, ROTATED_):
            for b in range(block, block + LANES):
                store(robot, b, np.int64(k), 0.0)
    for row in range(len(changes)):
        b = slot(int(changes[row, 0]))
        for k in range(ROTATED_ - DH_):
            store(robot, b, DH_ + k, changes[row, 1 + k])


@helper
def add_changes_of_fixed_wrenches(robot, turning):
    """Add to DW_ the changes, in body axes, of wrenches that do not rotate with their bodies."""
    store3(robot, GROUND, ROTATED_, (0.0, 0.0, 0.0))
    for i in range(1, count(robot)):
        b = slot(i)
        R = load33(robot, b, R_)
        store3(robot, b, ROTATED_, add(load3(robot, b, DH_),
                                       unrotate(R, load3(robot, parent(robot, b), ROTATED_))))
    for row in range(len(turning)):
        b = slot(int(turning[row, 0]))
        turn = add(load3(robot, b, ROTATED_), row3(turning, row, 10))
        force = cross(row3(turning, row, 4), turn)
        moment = add_cross(cross(row3(turning, row, 1), turn), row3(turning, row, 7), force)
        store6(robot, b, DW_, add6(load6(robot, b, DW_), (moment, force)))


@helper
def propagate_change(robot, traits, i, v, a, dq, dv, da, changed):
    """Write the motion of body i and its derivative, given those of its parent [K T5]."""
    b = slot(i)
    up = parent(robot, b)
    R, r = load33(robot, b, R_), load3(robot, b, r_)
    turn, slide = joint_motion(robot, traits, i, v)
    turn_rate, slide_rate = joint_motion(robot, traits, i, a)
    dturn, dslide = joint_motion(robot, traits, i, dv)
    dturn_rate, dslide_rate = joint_motion(robot, traits, i, da)
    dh = joint_motion(robot, traits, i, dq)
    if changed:
        dh = add6(dh, to_child(R, r, load6(robot, b, DH_)))
    store6(robot, b, DH_, dh)
    turned, moved = dh
    omega_p, alpha_p = load3(robot, up, OMEGA_), load3(robot, up, ALPHA_)
    domega_p, dalpha_p = load3(robot, up, DOMEGA_), load3(robot, up, DALPHA_)
    carried, alpha = unrotate(R, omega_p), unrotate(R, alpha_p)
    dcarried = add_cross(unrotate(R, domega_p), carried, turned)
    dalpha = add_cross(unrotate(R, dalpha_p), alpha, turned)
    way = cross(omega_p, r)
    of_origin = unrotate(R, add_cross(add_cross(
        load3(robot, up, a_), alpha_p, r), omega_p, way))
    dof_origin = add_cross(unrotate(R, add_cross(add_cross(add_cross(
        load3(robot, up, da_), dalpha_p, r), domega_p, way), omega_p, cross(domega_p, r))),
        of_origin, turned)
    omega, domega = add(carried, turn), add(dcarried, dturn)
    if changed or slides(robot, traits, b):
        dof_origin = add_cross(add_cross(dof_origin, alpha, moved), carried, cross(carried, moved))
        twice, dtwice = add(carried, omega), add(dcarried, domega)
        of_origin = add(add_cross(of_origin, twice, slide), slide_rate)
        dof_origin = add(add_cross(add_cross(dof_origin, dtwice, slide), twice, dslide),
                         dslide_rate)
    store3(robot, b, OMEGA_, omega)
    store3(robot, b, ALPHA_, add(add_cross(alpha, carried, turn), turn_rate))
    store3(robot, b, a_, of_origin)
    store3(robot, b, DOMEGA_, domega)
    store3(robot, b, DALPHA_, add(add_cross(add_cross(dalpha, dcarried, turn),
                                            carried, dturn), dturn_rate))
    store3(robot, b, da_, dof_origin)


@helper
def store_force_changes(robot, changed):
    """Write the force on each single body and its derivative."""
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            G, of_origin = constant_inertia(robot, b, INERTIA), load3(robot, b, a_)
            omega = load3(robot, b, OMEGA_)
            A = acceleration_of_points(omega, load3(robot, b, ALPHA_))
            dA = acceleration_of_points_change(omega, load3(robot, b, DOMEGA_),
                                               load3(robot, b, DALPHA_))
            F = inertial_force(G, A, of_origin)
            store6(robot, b, F_, sub6(F, load6(robot, b, WRENCH)))
            store6(robot, b, DF_, inertial_force(G, dA, load3(robot, b, da_)))
    if changed:
        for block in range(0, end(robot), BLOCK):
            for b in range(block, block + LANES):
                A = acceleration_of_points(load3(robot, b, OMEGA_), load3(robot, b, ALPHA_))
                dF = inertial_force(load_inertia(robot, b, DG_), A, load3(robot, b, a_))
                store6(robot, b, DF_, add6(load6(robot, b, DF_),
                                           sub6(dF, load6(robot, b, DW_))))


@kernel
def inverse_dynamics_change(robot, traits, q, v, a, dq, dv, da, changes, turning, dtau):
    """Write the derivative of the torques; `rbd_ros.workspace.body_changes` has the changes."""
    if not (fits(robot, q, v) and fits(robot, q, a) and fits(robot, q, dq) and fits(robot, q, dv)
            and fits(robot, q, da)):
        return False
    zero = (0.0, 0.0, 0.0)
    n = count(robot)
    changed = len(changes) > 0 or len(turning) > 0
    write_local_poses(robot, traits, q)
    if changed:
        write_changes(robot, changes)
    for k in (OMEGA_, ALPHA_, DOMEGA_, DALPHA_, da_):
        store3(robot, GROUND, k, zero)
    store3(robot, GROUND, a_, scale(-1.0, constant3(robot, GROUND, GRAVITY)))
    # Root to leaves: V, dV/dt and their derivatives, then F and dF of each body alone.     [K T5]
    for i in range(1, n):
        propagate_change(robot, traits, i, v, a, dq, dv, da, changed)
    if len(turning) > 0:
        add_changes_of_fixed_wrenches(robot, turning)
    store_force_changes(robot, changed)
    # Leaves to root: dF_p += A^T (dF - ad_dh^T F) and dtau = S^T dF.
    clear_vector(traits, dtau)
    total = 0.0
    for i in range(n - 1, 0, -1):
        b = slot(i)
        up = parent(robot, b)
        R, r = load33(robot, b, R_), load3(robot, b, r_)
        F, dF = load6(robot, b, F_), load6(robot, b, DF_)
        k = coordinate(robot, traits, i)
        torque = project(robot, traits, b, dF) + constant(robot, b, ARMATURE) * da[k]
        put_entry(traits, dtau, k, torque)
        total += torque + (dq[k] + dv[k] + da[k])
        turned, moved = load6(robot, b, DH_)
        moment, force = F
        dF = (add_cross(add_cross(dF[0], turned, moment), moved, force),
              add_cross(dF[1], turned, force))
        store6(robot, up, F_, add_to_parent(load6(robot, up, F_), R, r, F))
        store6(robot, up, DF_, add_to_parent(load6(robot, up, DF_), R, r, dF))
    # A number that is not finite may affect only the moments on the ground.
    moment = add(load3(robot, GROUND, F_), load3(robot, GROUND, DF_))
    return math.isfinite(total + moment[0] + moment[1] + moment[2])


@kernel
def hybrid_dynamics_change(robot, traits, q, v, a, tau, prescribed, dq, dv, given_da, given_dtau,
                           changes, turning, rows):
    """
    Write the derivatives da and dtau to rows 2 and 3 of `rows`, shape (4, nv).

    ``given_da`` is read where ``prescribed`` is true, ``given_dtau`` elsewhere. Returns False,
    too, if a column of S moves no inertia.

    """
    x, F, da, dtau = rows[0], rows[1], rows[2], rows[3]
    fine = (fits(robot, q, given_da) and fits(robot, q, given_dtau)
            and copy_given(robot, a, tau, prescribed, x, F)
            and articulated_recursion(robot, traits, q, v, x, F))
    if fine:
        for i in range(len(da)):
            da[i] = given_da[i] if prescribed[i] else 0.0
        fine = inverse_dynamics_change(robot, traits, q, v, x, dq, dv, da, changes, turning, dtau)
    if fine:
        # Entries that are not used must be finite, too.
        total = 0.0
        for i in range(len(da)):
            x[i], F[i] = 0.0, given_dtau[i] - dtau[i]
            total += given_da[i] + given_dtau[i]
        fine = math.isfinite(total) and articulated_bodies_at_rest(robot, traits, q, x, F)
    if fine:
        for i in range(len(da)):
            if prescribed[i]:
                dtau[i] += F[i]
            else:
                da[i], dtau[i] = x[i], given_dtau[i]
    prescribe_none(robot)
    return fine
