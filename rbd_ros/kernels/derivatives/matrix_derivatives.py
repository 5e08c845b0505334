# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of mass and Coriolis matrix with respect to q and v, by composite bodies.

World axes and origin, symbols as in `composite_bodies`. For a joint i that carries joint j, or is
j, and the composite body beyond j,

    M_ij = S_i^T F2,    C_ij = S_i^T F1,    C_ji = dS_i/dt^T F2 + S_i^T F3,
    F1 = I dS_j/dt + B S_j,    F2 = I S_j,    F3 = B^T S_j.

A step of q_h moves everything that joint h carries rigidly along S_h. In addition, at constant
velocities, it changes the twists there by S'_h = ad_Vp S_h, V_p the twist of the body on which
joint h is mounted. The rigid motion changes motions x, forces F and matrices B, which map motions
to forces, by

    ad_Sh x,    -ad_Sh^T F,    -ad_Sh^T B - B ad_Sh,

and likewise I. The change of the twist (primes) changes B, which is linear in the velocity, by
B(S'_h), and dS_j/dt by ad_S'h S_j. There are three cases:

    h carries i:               dC_ij = S_i^T F1',    dC_ji = (ad_S'h S_i)^T F2 + S_i^T F3',
                               dM_ij = 0
    h carries j, but not i:    dC_ij = -(ad_Sh S_i)^T F1 + S_i^T F1',
                               dC_ji = -(ad_Sh dS_i/dt)^T F2 - (ad_Sh S_i)^T F3 + S_i^T F3',
                               dM_ij = -(ad_Sh S_i)^T F2
    j carries h:               as M_ij and C_ij, with the changes of I and B of h's composite body.

C is linear in the velocities: its derivative with respect to v_h is C at v_h = 1 and all others 0,
with twist S_h of everything that h carries. Columns of one ball or free joint carry each other.
Garofalo et al. (24a)-(24c), summed in another order.

In the other factorization of C, `use_body_factorization`, B has an additional skew part.

"""

import math

from rbd_ros.kernels.jit.compiled import helper, long_kernel
from rbd_ros.kernels.tree.coordinates import clear_matrices, coordinate, coordinate_at, put_element
from rbd_ros.kernels.tree.joints import follows
from rbd_ros.kernels.tree.layout import (
    add_columns, BLOCK, columns_of, count, end, fits, LANES, load3, load33, load6, load_inertia,
    number, parent, slot, store3, store33, store6, velocities)
from rbd_ros.kernels.tree.traversal import (
    A_, accumulate_to_root, compose_inertias, copy_from_mounts, forward_pass, G_, K_, mount, p_,
    S_, SDOT_, V_, WORLD_COLUMNS, world_inertia)
from rbd_ros.kernels.tree.vectors import (
    ad, ad_transposed, add, add6, dot6, inertia_rate, inertia_times, skew_part, skew_part_times,
    sub6, velocity_inertia, velocity_times, velocity_transposed_times)

# Columns of `robot`: the skew part of B, first of the body, then of the composite body; the twist
# of the body on which the joint is mounted; and S'.
SKEW_, VP_, FIRST_, MATRIX_COLUMNS = columns_of(WORLD_COLUMNS, 18, 6, 6)
# Columns of `add_factorization_rate`, which overwrite some of `composite_rates`.
RATE_SKEW_, SKEW_RATE_, SKEW_COLUMNS = columns_of(G_, 18, 18)


@helper
def store_skew_part(robot, b, k, E):
    """Write the skew part of B to columns k ... k + 17."""
    store33(robot, b, k, E[0])
    store3(robot, b, k + 9, E[1])
    store3(robot, b, k + 12, E[2])
    store3(robot, b, k + 15, E[3])


@helper
def load_skew_part(robot, b, k):
    """Return the skew part of B at columns k ... k + 17."""
    return (load33(robot, b, k), load3(robot, b, k + 9), load3(robot, b, k + 12),
            load3(robot, b, k + 15))


# A placeholder of the same type, never read.
NO_SKEW_PART = (3 * ((0.0, 0.0, 0.0),), *3 * ((0.0, 0.0, 0.0),))


# B of either factorization: `skew` is 1 for the body form and None for the Christoffel form.
@helper
def coriolis_part(skew, V, G):
    """Return B of an inertia with twist V."""
    K, p = velocity_inertia(V, G)
    if skew is None:
        return (K, p, NO_SKEW_PART)
    return (K, p, skew_part(V, G))


@helper
def load_coriolis_part(robot, skew, b):
    """Return B of the composite body."""
    if skew is None:
        return (load33(robot, b, K_), load3(robot, b, p_), NO_SKEW_PART)
    return (load33(robot, b, K_), load3(robot, b, p_), load_skew_part(robot, b, SKEW_))


@helper
def times(skew, B, S):
    """Return B S."""
    F = velocity_times(B[0], B[1], S)
    if skew is None:
        return F
    return add6(F, skew_part_times(B[2], S))


@helper
def transposed_times(skew, B, S):
    """Return B^T S."""
    F = (velocity_transposed_times(B[0], B[1], S), (0.0, 0.0, 0.0))
    if skew is None:
        return F
    return sub6(F, skew_part_times(B[2], S))


@helper
def forces(skew, G, B, S, S_rate):
    """Return F1, F2 and F3, as `composite_forces` does for the Christoffel form."""
    return (add6(inertia_times(G, S_rate), times(skew, B, S)), inertia_times(G, S),
            transposed_times(skew, B, S))


@helper
def carries(robot, traits, upper, b):
    """Return whether joint `upper`, on the path from b to the root, carries b or its joint."""
    if number(robot, upper) <= number(robot, b):
        return True
    while follows(robot, traits, upper):
        upper = parent(robot, upper)
        if number(robot, upper) <= number(robot, b):
            return True
    return False


@helper
def put_symmetric(traits, D, i, j, value):
    """Write a part of entries (i, j) and (j, i) for two bodies with the coordinates i and j."""
    put_element(traits, D, i, j, value)
    put_element(traits, D, j, i, value)


# -- The mass matrix. ---------------------------------------------------------------------------
@helper
def mass_of_carried(robot, traits, D, far, j, F2):
    """Write dM_ij of the second case: joint `far` carries j but not i; return a checksum."""
    h, S_h = coordinate_at(robot, far), load6(robot, far, S_)
    total = 0.0
    b = mount(robot, traits, far)
    while b > 0:
        change = dot6(ad(load6(robot, b, S_), S_h), F2)
        put_symmetric(traits, D[h], coordinate_at(robot, b), j, change)
        total += change
        b = parent(robot, b)
    return total


@long_kernel
def mass_matrix_derivatives(robot, traits, q, D):
    """Write the derivatives of M with respect to q, shape (nv, nv, nv), the coordinate first."""
    if not fits(robot, q, None):
        return False
    clear_matrices(traits, D)
    forward_pass(robot, traits, q, None, None, None)
    compose_inertias(robot, None)
    total = 0.0
    for body in range(1, count(robot)):
        b, k = slot(body), coordinate(robot, traits, body)
        S, G = load6(robot, b, S_), load_inertia(robot, b, G_)
        # Joint k as j, with every h that carries it.
        F2 = inertia_times(G, S)
        total += dot6(S, F2)
        far = b
        while far > 0:
            total += mass_of_carried(robot, traits, D, far, k, F2)
            far = parent(robot, far)
        # Joint k as h, with every j that carries it; first the other columns of the same joint.
        near = b
        while follows(robot, traits, near):
            near = parent(robot, near)
            F2 = inertia_times(G, load6(robot, near, S_))
            total += mass_of_carried(robot, traits, D, b, coordinate_at(robot, near), F2)
        K, p = velocity_inertia(S, G)
        G_change = inertia_rate(K, p)
        near = parent(robot, near)
        while near > 0:
            j, F2 = coordinate_at(robot, near), inertia_times(G_change, load6(robot, near, S_))
            change = dot6(load6(robot, near, S_), F2)
            put_element(traits, D[k], j, j, change)
            total += change
            up = parent(robot, near)
            while up > 0:
                change = dot6(load6(robot, up, S_), F2)
                put_symmetric(traits, D[k], coordinate_at(robot, up), j, change)
                total += change
                up = parent(robot, up)
            near = parent(robot, near)
    return math.isfinite(total)


# -- The Coriolis matrix. -----------------------------------------------------------------------
@helper
def coriolis_of_carried(robot, traits, skew, by_q, by_v, far, near):
    """Write dC_ij, dC_ji with j = `near` and h = `far`, which carries j; return a checksum."""
    h, j = coordinate_at(robot, far), coordinate_at(robot, near)
    S_h, first = load6(robot, far, S_), load6(robot, far, FIRST_)
    S, S_rate, G = load6(robot, near, S_), load6(robot, near, SDOT_), load_inertia(robot, near, G_)
    B = load_coriolis_part(robot, skew, near)
    F1, F2, F3 = forces(skew, G, B, S, S_rate)
    # For the change of the twist, and for unit velocity of joint h.
    gain_1, _, gain_3 = forces(skew, G, coriolis_part(skew, first, G), S, ad(first, S))
    unit_1, _, unit_3 = forces(skew, G, coriolis_part(skew, S_h, G), S, ad(S_h, S))
    total = 0.0
    b = near
    while b > 0:
        i = coordinate_at(robot, b)
        S_i = load6(robot, b, S_)
        turned = ad(S_h, S_i)
        upper_q, upper_v = dot6(S_i, gain_1), dot6(S_i, unit_1)
        if carries(robot, traits, far, b):
            lower_q = dot6(ad(first, S_i), F2) + dot6(S_i, gain_3)
            lower_v = dot6(turned, F2) + dot6(S_i, unit_3)
        else:
            upper_q -= dot6(turned, F1)
            lower_q = (dot6(S_i, gain_3) - dot6(ad(S_h, load6(robot, b, SDOT_)), F2)
                       - dot6(turned, F3))
            lower_v = dot6(S_i, unit_3)
        put_element(traits, by_q[h], i, j, upper_q)
        put_element(traits, by_v[h], i, j, upper_v)
        if b != near:
            put_element(traits, by_q[h], j, i, lower_q)
            put_element(traits, by_v[h], j, i, lower_v)
        total += upper_q + lower_q + upper_v
        b = parent(robot, b)
    return total


@helper
def coriolis_of_carriers(robot, traits, skew, by_q, by_v, far, near):
    """Write dC_ij, dC_ji with j = `near`, which carries h = `far`; return a checksum."""
    h, j = coordinate_at(robot, far), coordinate_at(robot, near)
    S_h, first = load6(robot, far, S_), load6(robot, far, FIRST_)
    S, S_rate, G = load6(robot, near, S_), load6(robot, near, SDOT_), load_inertia(robot, far, G_)
    turned = ad(S_h, S)
    K, p = velocity_inertia(S_h, G)
    G_change = inertia_rate(K, p)
    B = load_coriolis_part(robot, skew, far)
    gain = coriolis_part(skew, first, G)
    unit = coriolis_part(skew, S_h, G)
    # (-ad_Sh^T B - B ad_Sh + B') S, and the same with B^T.
    F1 = add6(inertia_times(G_change, S_rate), sub6(times(skew, gain, S), add6(
        ad_transposed(S_h, times(skew, B, S)), times(skew, B, turned))))
    F2 = inertia_times(G_change, S)
    F3 = sub6(transposed_times(skew, gain, S), add6(
        ad_transposed(S_h, transposed_times(skew, B, S)), transposed_times(skew, B, turned)))
    unit_1, unit_3 = times(skew, unit, S), transposed_times(skew, unit, S)
    total = 0.0
    b = near
    while b > 0:
        i = coordinate_at(robot, b)
        S_i = load6(robot, b, S_)
        upper_q, upper_v = dot6(S_i, F1), dot6(S_i, unit_1)
        put_element(traits, by_q[h], i, j, upper_q)
        put_element(traits, by_v[h], i, j, upper_v)
        total += upper_q + upper_v
        if b != near:
            lower_q = dot6(load6(robot, b, SDOT_), F2) + dot6(S_i, F3)
            put_element(traits, by_q[h], j, i, lower_q)
            put_element(traits, by_v[h], j, i, dot6(S_i, unit_3))
            total += lower_q
        b = parent(robot, b)
    return total


@long_kernel
def coriolis_matrix_derivatives(robot, traits, q, v, skew, by_q, by_v):
    """Write dC/dq and dC/dv, shape (nv, nv, nv), h first; ``skew``: see `coriolis_part`."""
    if not fits(robot, q, v):
        return False
    clear_matrices(traits, by_q)
    clear_matrices(traits, by_v)
    forward_pass(robot, traits, q, v, None, None)
    copy_from_mounts(robot, traits, V_, VP_)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            store6(robot, b, FIRST_, ad(load6(robot, b, VP_), load6(robot, b, S_)))
            if skew is not None:
                store_skew_part(robot, b, SKEW_, skew_part(load6(robot, b, V_),
                                                           world_inertia(robot, b)))
    compose_inertias(robot, v)
    if skew is not None:
        accumulate_to_root(robot, SKEW_, VP_)
    total = 0.0
    for k in range(1, count(robot)):
        b = slot(k)
        # Joint k as j, with every h that carries it.
        far = b
        while far > 0:
            total += coriolis_of_carried(robot, traits, skew, by_q, by_v, far, b)
            far = parent(robot, far)
        # Joint k as h, with every j that carries it; first the other columns of the same joint.
        near = b
        while follows(robot, traits, near):
            near = parent(robot, near)
            total += coriolis_of_carried(robot, traits, skew, by_q, by_v, b, near)
        near = parent(robot, near)
        while near > 0:
            total += coriolis_of_carriers(robot, traits, skew, by_q, by_v, b, near)
            near = parent(robot, near)
    return math.isfinite(total)


# -- The rate of the other factorization. -------------------------------------------------------
@long_kernel
def add_factorization_rate(robot, rates):
    """
    Turn the Christoffel form of C and dC/dt from `composite_rates` into the body form.

    With E the composite skew part,

        C_ij += S_i^T E S_j,    dC_ij/dt += dS_i/dt^T E S_j + S_i^T (dE/dt S_j + E dS_j/dt).

    """
    D = velocities(robot)
    for block in range(0, end(robot), BLOCK):
        for b in range(block, block + LANES):
            V, A = load6(robot, b, V_), load6(robot, b, A_)
            G = world_inertia(robot, b)
            K, p = velocity_inertia(V, G)
            store_skew_part(robot, b, RATE_SKEW_, skew_part(V, G))
            E, of_A = skew_part(V, inertia_rate(K, p)), skew_part(A, G)
            store_skew_part(robot, b, SKEW_RATE_, (
                (add(E[0][0], of_A[0][0]), add(E[0][1], of_A[0][1]), add(E[0][2], of_A[0][2])),
                add(E[1], of_A[1]), add(E[2], of_A[2]), add(E[3], of_A[3])))
    for body in range(count(robot) - 1, 0, -1):
        b = slot(body)
        j = coordinate_at(robot, b)
        S, S_rate = load6(robot, b, S_), load6(robot, b, SDOT_)
        E, E_rate = load_skew_part(robot, b, RATE_SKEW_), load_skew_part(robot, b, SKEW_RATE_)
        F = skew_part_times(E, S)
        F_rate = add6(skew_part_times(E_rate, S), skew_part_times(E, S_rate))
        up = parent(robot, b)
        add_columns(robot, up, b, RATE_SKEW_, SKEW_COLUMNS)
        while up > 0:
            i, S_i = coordinate_at(robot, up), load6(robot, up, S_)
            difference = dot6(S_i, F)
            change = dot6(load6(robot, up, SDOT_), F) + dot6(S_i, F_rate)
            rates[i, j] += difference
            rates[j, i] -= difference
            rates[D + i, j] += change
            rates[D + j, i] -= change
            up = parent(robot, up)
