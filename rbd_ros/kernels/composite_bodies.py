# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Mass and Coriolis matrix, gravity torques and centre of mass by composite bodies.

All quantities are in the world's axes and about its origin, where they add up over the bodies that
a joint carries. With the 4x4 forms of a twist, V^ = [[omega]x, v; 0, 0], and of an inertia,
P = [Sigma, h; h^T, m], the velocity enters through V^ P = [K, p; 0, 0]:

    K = [omega]x Sigma + v h^T,    p = m v + omega x h.

A joint i that carries joint j (or i = j) and the composite body beyond j then give

    M_ij = S_i^T F2_j,    C_ij = S_i^T F1_j,    C_ji = Sdot_i^T F2_j + S_i^T F3_j,

    F2 = I S,    F1 = I Sdot + B S,    F3 = B^T S,
    B S = (tr(K) z - K z, z x p),   B^T S = (p x s + tr(K) z - K^T z, 0),   S = (z, s),

which is sum_k J_k^T (1/2 (Psi_k + N_k) J_k + G_k Jdot_k), the Christoffel form of C, summed in
another order. Vlasblom (2.17), (1.16), (2.24); Lynch and Park (9.61), (9.87), (9.84).

"""

import math

from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import element, entry, finite, reciprocal, set_element
from rbd_ros.kernels.tree.coordinates import clear_matrix, coordinate, coordinate_at, put_element
from rbd_ros.kernels.tree.joints import is_free
from rbd_ros.kernels.tree.layout import (
    add_columns, ARMATURE, BLOCK, block_end, columns_of, constant, constant3, count, end, fits,
    GRAVITY, GROUND, LANES, load3, load33, load6, load_inertia, parent, R_, rows_of_terms, slot,
    store3, store33, store6, velocities)
from rbd_ros.kernels.tree.traversal import (
    compose_inertias, composite_forces, forward_pass, G_, K_, p_, S_, SDOT_, V_, WORLD_COLUMNS,
    world_inertia)
from rbd_ros.kernels.tree.vectors import (
    add_cross, cross, dot, dot6, inertia_times, scale, skew_part, skew_part_times, sub, unrotate)

# Columns of `robot`, of the composite bodies.
F1_, F2_, F3_, COMPOSITE_COLUMNS = columns_of(WORLD_COLUMNS, 6, 6, 3)
# Columns of the difference between the two forms of C, see `use_body_factorization`.
Q_, a_, u_, w_, FACTORIZATION_COLUMNS = columns_of(WORLD_COLUMNS, 9, 3, 3, 3)


@helper
def write_pair(traits, terms, v, i, j, mass, upper, lower):
    """Write M_ij, M_ji, C_ij and C_ji, add C_ij v_j to (C v)_i and return C_ji v_i."""
    C, _, Cv, _, _ = rows_of_terms(len(v))
    put_element(traits, terms, i, j, mass)
    put_element(traits, terms, j, i, mass)
    put_element(traits, terms, C + i, j, upper)
    put_element(traits, terms, C + j, i, lower)
    set_element(terms, Cv, i, element(terms, Cv, i) + upper * entry(v, j))
    return lower * entry(v, i)


@helper
def write_base_pairs(robot, traits, terms, v, b, j, F1, F2, F3):
    """
    Write the pairs of a floating base, whose last body is b, with joint j; return their (C v)_j.

    The columns of the base are its axes about the origin, so their products with a force are the
    force in these axes. For S = (z, 0) and (0, s), Sdot = (omega x z, v x z) and (0, omega x s).

    """
    R = load33(robot, b, R_)
    omega, slide = load6(robot, b, V_)
    moment, force = F2
    mass = (unrotate(R, moment), unrotate(R, force))
    upper = (unrotate(R, F1[0]), unrotate(R, F1[1]))
    lower = (unrotate(R, add_cross(add_cross(F3, moment, omega), force, slide)),
             unrotate(R, cross(force, omega)))
    coriolis = 0.0
    for part in range(2):
        for k in range(3):
            coriolis += write_pair(traits, terms, v, 3 * part + k, j,
                                   mass[part][k], upper[part][k], lower[part][k])
    return coriolis


@helper
def composite_columns(robot, v):
    """Write F1_, F2_ and F3_ of each composite body with the column of its joint."""
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block_end(robot, block)):
            S, G = load6(robot, b, S_), load_inertia(robot, b, G_)
            if v is None:
                store6(robot, b, F2_, inertia_times(G, S))
            else:
                F1, F2, F3 = composite_forces(G, load33(robot, b, K_), load3(robot, b, p_), S,
                                              load6(robot, b, SDOT_))
                store6(robot, b, F1_, F1)
                store6(robot, b, F2_, F2)
                store3(robot, b, F3_, F3)


@helper
def write_mass_column(robot, traits, M, b, j, F2):
    """Write M_ij and M_ji of all joints i that carry body b, which moves with coordinate j."""
    b = parent(robot, b)
    while b > 0:
        i, mass = coordinate_at(robot, b), dot6(load6(robot, b, S_), F2)
        put_element(traits, M, i, j, mass)
        put_element(traits, M, j, i, mass)
        b = parent(robot, b)


@helper
def write_pairs(robot, traits, terms, v, b, j, F2):
    """Write M and C of body b, coordinate j, with all that carry it, and (C v)_j; return that."""
    C, _, Cv, _, _ = rows_of_terms(len(v))
    F1, F3 = load6(robot, b, F1_), load3(robot, b, F3_)
    own = dot6(load6(robot, b, S_), F1)
    put_element(traits, terms, C + j, j, own)
    coriolis = own * entry(v, j)
    base = slot(6) if is_free(robot, traits, slot(1)) else 0
    b = parent(robot, b)
    stop = base if b >= base else 0
    while b > stop:
        S_i = load6(robot, b, S_)
        coriolis += write_pair(
            traits, terms, v, coordinate_at(robot, b), j, dot6(S_i, F2), dot6(S_i, F1),
            dot6(load6(robot, b, SDOT_), F2) + dot(S_i[0], F3))
        b = parent(robot, b)
    if b > 0:
        coriolis += write_base_pairs(robot, traits, terms, v, b, j, F1, F2, F3)
    coriolis += element(terms, Cv, j)
    set_element(terms, Cv, j, coriolis)
    return coriolis


@helper
def composite_recursion(robot, traits, q, v, terms):
    """
    Write M, C, g, C v, J_CoM and the CoM to `terms`; C and C v are left out if ``v`` is None.

    ``terms`` has the shape (2 nv + 6, max(nv, 3)): nv rows for M, nv for C, then one each for g
    and C v, three for J_CoM and one for the centre of mass.

    """
    if not fits(robot, q, v):
        return False
    nv = velocities(robot)
    _, g, Cv, J_com, com = rows_of_terms(nv)
    clear_matrix(traits, terms)

    # Root to leaves: poses, columns S and twists V.                                [K (34)-(36)]
    origin = forward_pass(robot, traits, q, v, None, None)

    # Leaves to root: composite bodies, and F1, F2 and F3 of their joints.
    compose_inertias(robot, v)
    composite_columns(robot, v)

    # Every joint j with all joints i that carry it.          [V (2.17), (1.16), (2.24); L (9.87)]
    _, h, mass = load_inertia(robot, GROUND, G_)
    per_mass, gravity, total = reciprocal(mass), constant3(robot, GROUND, GRAVITY), 0.0
    if v is not None:
        for j in range(nv):
            set_element(terms, Cv, j, 0.0)
    for body in range(count(robot) - 1, 0, -1):
        b, j = slot(body), coordinate(robot, traits, body)
        F2 = load6(robot, b, F2_)
        inertia = dot6(load6(robot, b, S_), F2) + constant(robot, b, ARMATURE)
        weight = -dot(gravity, F2[1])
        put_element(traits, terms, j, j, inertia)
        put_element(traits, terms, g, j, weight)
        total += inertia + weight
        for k in range(3):
            put_element(traits, terms, J_com + k, j, per_mass * F2[1][k])
        if v is None:
            write_mass_column(robot, traits, terms, b, j, F2)
        else:
            total += write_pairs(robot, traits, terms, v, b, j, F2)

    # The composite body of the ground is the whole robot.                                [G (7)]
    x, y, z = sub(scale(per_mass, h), origin)
    set_element(terms, com, 0, x)
    set_element(terms, com, 1, y)
    set_element(terms, com, 2, z)
    return finite(total + x + y + z)


@kernel
def composite_bodies_at_rest(robot, traits, q, terms):
    """Do the `composite_recursion` without C and C v."""
    return composite_recursion(robot, traits, q, None, terms)


@kernel
def composite_bodies(robot, traits, q, v, terms):
    """Do the `composite_recursion`."""
    return composite_recursion(robot, traits, q, v, terms)


@helper
def write_mass_matrix(robot, traits, M):
    """Write M, given S_ and G_ of the composite bodies; return a sum that is finite if M is."""
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            store6(robot, b, F2_, inertia_times(load_inertia(robot, b, G_), load6(robot, b, S_)))
    clear_matrix(traits, M)
    total = 0.0
    for body in range(count(robot) - 1, 0, -1):
        b, j = slot(body), coordinate(robot, traits, body)
        F2 = load6(robot, b, F2_)
        inertia = dot6(load6(robot, b, S_), F2) + constant(robot, b, ARMATURE)
        put_element(traits, M, j, j, inertia)
        write_mass_column(robot, traits, M, b, j, F2)
        total += inertia
    return total


@kernel
def mass_matrix(robot, traits, q, M):
    """Write M, shape (nv, nv)."""
    if not fits(robot, q, None):
        return False
    forward_pass(robot, traits, q, None, None, None)
    compose_inertias(robot, None)
    return math.isfinite(write_mass_matrix(robot, traits, M))


@kernel
def use_body_factorization(robot, terms):
    """
    Turn the Christoffel form of C in `terms` into Garofalo's, right after `composite_bodies`.

    C_G - C_Chr = 1/2 sum_k J_k^T (Psi_k - N_k) J_k, whose skew matrices leave C v unchanged. With
    a = tr(Sigma) omega + h x v, Q = h omega^T, u = m v and w = m omega, about the world's origin,

        1/2 (Psi - N) (z, s) = (a x z + Q s - tr(Q) s + u x s,  tr(Q) z - Q^T z + u x z + w x s).

    """
    C = velocities(robot)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            Q, a, u, w = skew_part(load6(robot, b, V_), world_inertia(robot, b))
            store33(robot, b, Q_, Q)
            store3(robot, b, a_, a)
            store3(robot, b, u_, u)
            store3(robot, b, w_, w)
    for body in range(count(robot) - 1, 0, -1):
        b = slot(body)
        j = coordinate_at(robot, b)
        E = (load33(robot, b, Q_), load3(robot, b, a_), load3(robot, b, u_), load3(robot, b, w_))
        F = skew_part_times(E, load6(robot, b, S_))
        up = parent(robot, b)
        add_columns(robot, up, b, Q_, FACTORIZATION_COLUMNS)
        while up > 0:
            i, difference = coordinate_at(robot, up), dot6(load6(robot, up, S_), F)
            terms[C + i, j] += difference
            terms[C + j, i] -= difference
            up = parent(robot, up)
