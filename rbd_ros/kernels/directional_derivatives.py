# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics by one scalar p.

Inverse dynamics: the recursion of `newton_euler`, differentiated line by line, with dx for the
derivative of x. In its own frame every column of S is constant, so dS = 0, and the pose T of a
body in its parent's frame changes by the motion dh = vee(T^-1 dT) = S dq + Ad_T^-1 D, where D is
the motion of the joint's placement in the parent's frame. Vectors x of the parent become R^T x in
the body, which changes by R^T dx - dh x (R^T x), and forces F become Ad_{T^-1}^T F in the parent,
which changes by Ad_{T^-1}^T (dF - ad_dh^T F) [K (61), (64), T5].

Forward and hybrid dynamics: with p for the velocities whose torque is given and a for those whose
acceleration is, the equations of motion, tau = M a + b, change by

    dtau = M da + dID,

where dID is the derivative of inverse dynamics with the accelerations of the solution held fixed.
With da_a given, and included in dID, there remains

    M_pp da_p = dtau_p - dID_p,    dtau_a = dID_a + M_ap da_p:

hybrid dynamics once more, of a robot at rest that nothing pushes and whose given accelerations are
zero. By articulated bodies that is O(n), as tables 6 and 7 of Kim are.

"""

import math

import numpy as np
from rbd_ros.kernels.articulated_bodies import (articulated_bodies, articulated_bodies_at_rest,
                                                prescribe_none, take_what_is_given)
from rbd_ros.kernels.bodies import (ARMATURE, BLOCK, constant, constant3, constant_inertia, count,
                                    end, fits, GRAVITY, GROUND, INERTIA, joint_motion, LANES,
                                    load3, load33, load6, load_inertia, parent, place,
                                    place_in_parents, project, R_, r_, SCRATCH, slides, store,
                                    store3, store6, WRENCH)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.vectors import (acceleration_of_points, add, add6, add_cross, add_to_parent,
                                     cross, inertial_force, row3, scale, sub6, to_child, unrotate)

# Columns of `robot`: as in `newton_euler`, then their derivatives. DH_ is D before it is dh;
# MOVED_ is the turn of the body relative to the root.
OMEGA_, ALPHA_, a_, F_, DOMEGA_, DALPHA_, da_, DF_, DH_, DG_, DW_, MOVED_, CHANGE_COLUMNS = (
    SCRATCH + k for k in (12, 15, 18, 21, 27, 30, 33, 36, 42, 48, 58, 64, 67))


@helper
def acceleration_of_points_change(omega, domega, dalpha):
    """Return the change of the matrix of `acceleration_of_points`, by its columns."""
    x, y, z = omega
    dx, dy, dz = domega
    xx, yy, zz = 2.0 * x * dx, 2.0 * y * dy, 2.0 * z * dz
    xy, xz, yz = x * dy + dx * y, x * dz + dx * z, y * dz + dy * z
    return ((-yy - zz, xy + dalpha[2], xz - dalpha[1]),
            (xy - dalpha[2], -xx - zz, yz + dalpha[0]),
            (xz + dalpha[1], yz - dalpha[0], -xx - yy))


@helper
def write_changes(robot, changes):
    """Write the changes of the bodies to their columns D, DG_ and DW_."""
    for block in range(0, end(robot), BLOCK):
        for k in range(DH_, MOVED_):
            for b in range(block, block + LANES):
                store(robot, b, np.int64(k), 0.0)
    for row in range(len(changes)):
        b = place(int(changes[row, 0]))
        for k in range(MOVED_ - DH_):
            store(robot, b, DH_ + k, changes[row, 1 + k])


@helper
def turn_wrenches_back(robot, turning):
    """Write the changes of wrenches that do not turn with the bodies that they act on."""
    store3(robot, GROUND, MOVED_, (0.0, 0.0, 0.0))
    for i in range(1, count(robot)):
        b = place(i)
        R = load33(robot, b, R_)
        store3(robot, b, MOVED_, add(load3(robot, b, DH_),
                                     unrotate(R, load3(robot, parent(robot, b), MOVED_))))
    for row in range(len(turning)):
        b = place(int(turning[row, 0]))
        turn = add(load3(robot, b, MOVED_), row3(turning, row, 10))
        force = cross(row3(turning, row, 4), turn)
        moment = add_cross(cross(row3(turning, row, 1), turn), row3(turning, row, 7), force)
        store6(robot, b, DW_, add6(load6(robot, b, DW_), (moment, force)))


@kernel
def inverse_dynamics_change(robot, screws, q, v, a, dq, dv, da, changes, turning, dtau):
    """
    Write the derivative of the torques.

    ``changes`` and ``turning`` are as `rbd_ros.workspace.body_changes` makes them. Returns whether
    the results are finite; nothing is written, and False returned, if a vector has a wrong length.

    """
    if not (fits(robot, q, v) and fits(robot, q, a) and fits(robot, q, dq) and fits(robot, q, dv)
            and fits(robot, q, da)):
        return False
    zero = (0.0, 0.0, 0.0)
    n = count(robot)
    changed = len(changes) > 0 or len(turning) > 0
    place_in_parents(robot, screws, q)
    if changed:
        write_changes(robot, changes)
    store3(robot, GROUND, OMEGA_, zero)
    store3(robot, GROUND, ALPHA_, zero)
    store3(robot, GROUND, a_, scale(-1.0, constant3(robot, GROUND, GRAVITY)))
    store3(robot, GROUND, DOMEGA_, zero)
    store3(robot, GROUND, DALPHA_, zero)
    store3(robot, GROUND, da_, zero)
    # Root to leaves: the motion of each body, and its change.
    for i in range(1, n):
        b = place(i)
        up = parent(robot, b)
        R, r = load33(robot, b, R_), load3(robot, b, r_)
        turn, slide = joint_motion(robot, screws, i, v)
        turn_rate, slide_rate = joint_motion(robot, screws, i, a)
        dturn, dslide = joint_motion(robot, screws, i, dv)
        dturn_rate, dslide_rate = joint_motion(robot, screws, i, da)
        dh = joint_motion(robot, screws, i, dq)
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
        if changed or slides(robot, screws, b):
            dof_origin = add_cross(add_cross(dof_origin, alpha, moved),
                                   carried, cross(carried, moved))
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
    if len(turning) > 0:
        turn_wrenches_back(robot, turning)
    # The force on each body alone.
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
    # Leaves to root: pass the forces on, and project them on the joints.
    total = 0.0
    for i in range(n - 1, 0, -1):
        b = place(i)
        up = parent(robot, b)
        R, r = load33(robot, b, R_), load3(robot, b, r_)
        F, dF = load6(robot, b, F_), load6(robot, b, DF_)
        dtau[i - 1] = project(robot, screws, b, dF) + constant(robot, b, ARMATURE) * da[i - 1]
        total += dtau[i - 1] + (dq[i - 1] + dv[i - 1] + da[i - 1])
        turned, moved = load6(robot, b, DH_)
        moment, force = F
        dF = (add_cross(add_cross(dF[0], turned, moment), moved, force),
              add_cross(dF[1], turned, force))
        store6(robot, up, F_, add_to_parent(load6(robot, up, F_), R, r, F))
        store6(robot, up, DF_, add_to_parent(load6(robot, up, DF_), R, r, dF))
    # A number that is not finite may show only in the moments on the ground.
    moment = add(load3(robot, GROUND, F_), load3(robot, GROUND, DF_))
    return math.isfinite(total + moment[0] + moment[1] + moment[2])


@kernel
def hybrid_dynamics_change(robot, screws, q, v, a, tau, prescribed, dq, dv, given_da, given_dtau,
                           changes, turning, found):
    """
    Write the derivatives of all accelerations and torques.

    Parameters
    ----------
    robot, screws, q, v, a, tau, prescribed
        As for `hybrid_dynamics`.
    dq, dv, given_da, given_dtau : ndarray, shape (nv,)
        Derivatives; ``given_da`` is read where ``prescribed`` is true, ``given_dtau`` elsewhere.
    changes, turning : ndarray
        See `rbd_ros.workspace.body_changes`.
    found : ndarray, shape (4, nv)
        Two rows to work in, then da and dtau.

    Returns
    -------
    bool
        Whether the results are finite; False too if an argument has a wrong length or a column of
        S carries no inertia.

    """
    x, F, da, dtau = found[0], found[1], found[2], found[3]
    fine = (fits(robot, q, given_da) and fits(robot, q, given_dtau)
            and take_what_is_given(robot, a, tau, prescribed, x, F)
            and articulated_bodies(robot, screws, q, v, x, F))
    if fine:
        for i in range(len(da)):
            da[i] = given_da[i] if prescribed[i] else 0.0
        fine = inverse_dynamics_change(robot, screws, q, v, x, dq, dv, da, changes, turning, dtau)
    if fine:
        # Entries that are not read must be finite, too.
        total = 0.0
        for i in range(len(da)):
            x[i], F[i] = 0.0, given_dtau[i] - dtau[i]
            total += given_da[i] + given_dtau[i]
        fine = math.isfinite(total) and articulated_bodies_at_rest(robot, screws, q, x, F)
    if fine:
        for i in range(len(da)):
            if prescribed[i]:
                dtau[i] += F[i]
            else:
                da[i], dtau[i] = x[i], given_dtau[i]
    prescribe_none(robot)
    return fine
