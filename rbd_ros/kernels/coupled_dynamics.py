# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Forward and hybrid dynamics of robots whose joints share coordinates, and derivatives.

    M a + b = tau,    b = tau(q, v, a_given)

Bodies of which one carries the other add to the entry of M for the coordinates that move these
two. M = L^T D L is factored along an elimination tree, in which a velocity is carried by the last
one before it with which it shares an entry of M or of L: Featherstone (2008), section 6.5, for a
tree that need not be that of the joints. It has the form of a table of bodies, `table`, see
`rbd_ros.workspace.memory.scratch.elimination_table`.

Helpers take the buffers as `equations`: table, M (lower triangle), b, and L as
`mass_matrix_factor` has it.

"""

from rbd_ros.kernels.articulated_bodies import copy_given, prescribe_none, PSI_, SINGULAR
from rbd_ros.kernels.derivatives.newton_euler_derivatives import (
    hybrid_dynamics_derivatives, inverse_dynamics_derivatives)
from rbd_ros.kernels.jit.compiled import helper, kernel
from rbd_ros.kernels.lanes.lanes import (
    element, entry, exceeds, finite, set_element, set_entry, vectorized)
from rbd_ros.kernels.mass_matrix_factor import (
    factorize, find_carriers, is_given, solve_vector)
from rbd_ros.kernels.tree.coordinates import coordinate, coordinate_at, put_element, put_entry
from rbd_ros.kernels.tree.layout import (
    ARMATURE, BLOCK, block_end, columns_of, constant, count, end, fits, GROUND, load3, load33,
    load6, load_inertia, number, parent, R_, r_, slot, store, store6, store_inertia, WRENCH)
from rbd_ros.kernels.tree.traversal import (
    A_, accumulate_to_root, forward_pass, G_, K_, minus_gravity, S_, V_, world_inertia)
from rbd_ros.kernels.tree.vectors import ad_transposed, dot6, inertia_times, sub6, to_parent

# Columns of `robot`: force on the body, then on the composite body, behind its inertia; and the
# composite inertia times the column of the joint.
F_, _, F2_, _ = columns_of(K_, 6, 6, 6)


# -- Equations of motion. -----------------------------------------------------------------------
@helper
def store_force(robot, b, A, with_inertia):
    """Write F_ of a single body with the acceleration A, and G_ if ``with_inertia``."""
    R, r, V, G = load33(robot, b, R_), load3(robot, b, r_), load6(robot, b, V_), (
        world_inertia(robot, b))
    F = sub6(inertia_times(G, A), ad_transposed(V, inertia_times(G, V)))
    store6(robot, b, F_, sub6(F, to_parent(R, r, load6(robot, b, WRENCH))))
    if with_inertia:
        store_inertia(robot, b, G_, G)


@helper
def clear_equations(table, M, b):
    """Set M and b to zero; entries of M for velocities that do not carry each other are zero."""
    for i in range(len(M)):
        set_entry(b, i, 0.0)
        k = slot(i + 1)
        while k > 0:
            set_element(M, i, number(table, k) - 1, 0.0)
            k = parent(table, k)


@helper
def write_equations(robot, traits, q, v, a, M, b):
    """
    Write M, its lower triangle, and b, the torques of a; return a sum that is finite if they are.

    Bodies with the same coordinate add to the same entries, which are zero at first.

    """
    # Root to leaves: S, V and A; then inertia and force of each body alone.       [K (34)-(40)]
    forward_pass(robot, traits, q, v, a, minus_gravity(robot))
    for block in range(0, end(robot), BLOCK):
        for k in range(block, block_end(robot, block)):
            store_force(robot, k, load6(robot, k, A_), True)
    # Leaves to root: composite bodies, and every body j with all bodies i that carry it.
    accumulate_to_root(robot, G_, F_ + 6)
    for block in range(0, end(robot), BLOCK):
        for k in range(block, block_end(robot, block)):
            store6(robot, k, F2_, inertia_times(load_inertia(robot, k, G_), load6(robot, k, S_)))
    total = 0.0
    for body in range(count(robot) - 1, 0, -1):
        k, j = slot(body), coordinate(robot, traits, body)
        S, F2, rotor = load6(robot, k, S_), load6(robot, k, F2_), constant(robot, k, ARMATURE)
        torque = dot6(S, load6(robot, k, F_)) + rotor * entry(a, j)
        inertia = dot6(S, F2) + rotor
        put_entry(traits, b, j, torque)
        put_element(traits, M, j, j, inertia)
        total += torque + inertia
        k = parent(robot, k)
        while k > 0:
            i, x = coordinate_at(robot, k), dot6(load6(robot, k, S_), F2)
            put_element(traits, M, max(i, j), min(i, j), 2.0 * x if i == j else x)
            k = parent(robot, k)
    return total


@helper
def complete(equations, a, tau):
    """
    Solve M_pp a_p + b_p = tau_p, and write tau_g = b_g + M_gp a_p, with g the given a [K (33)].

    b are the torques for a_p = 0. Return 0, or 1 + a velocity that moves no inertia.

    """
    table, M, b, L, L_lanes = equations
    n, some_given = len(M), find_carriers(table)
    for i in range(n):
        k = slot(i + 1)
        while k > 0:
            j = number(table, k) - 1
            set_element(L, i, j, element(M, i, j))
            k = parent(table, k)
        if not vectorized(table):   # the rest of the lanes that contain the diagonal
            for j in range(i + 1, L.shape[1]):
                set_element(L, i, j, 0.0)
    factorize(table, L, L_lanes, some_given)
    for i in range(n - 1, -1, -1):
        if some_given and is_given(table, i):
            set_entry(tau, i, entry(b, i))
        else:
            if not exceeds(1.0 / element(L, i, i), SINGULAR * element(M, i, i)):
                return i + 1
            set_entry(a, i, entry(tau, i) - entry(b, i))
    solve_vector(table, L, a, some_given)
    for i in range(n if some_given else 0):
        k = parent(table, slot(i + 1))
        while k > 0:
            j = number(table, k) - 1
            if is_given(table, i) and not is_given(table, j):
                set_entry(tau, i, entry(tau, i) + element(M, i, j) * entry(a, j))
            elif is_given(table, j) and not is_given(table, i):
                set_entry(tau, j, entry(tau, j) + element(M, i, j) * entry(a, i))
            k = parent(table, k)
    return 0


# -- Dynamics. ----------------------------------------------------------------------------------
@helper
def coupled_recursion(robot, traits, equations, q, v, a, tau):
    """
    Complete the accelerations a and the torques tau, as `articulated_recursion` does.

    PRESCRIBED of `table` is 1 where a is given. Returns False, too, if a velocity moves no
    inertia; PSI_ of the ground is 1 + its number, else 0.

    """
    table, M, b, _, _ = equations
    store(robot, GROUND, PSI_, 0.0)
    if not (fits(robot, q, v) and fits(robot, q, a) and fits(robot, q, tau)):
        return False
    for i in range(len(M)):
        if not is_given(table, i):
            set_entry(a, i, 0.0)
    clear_equations(table, M, b)
    if not finite(write_equations(robot, traits, q, v, a, M, b)):
        return False
    column_without_inertia = complete(equations, a, tau)
    if column_without_inertia > 0:
        store(robot, GROUND, PSI_, column_without_inertia)
        return False
    total = 0.0
    for i in range(len(M)):
        total += entry(a, i) + entry(tau, i)
    return finite(total)


@helper
def derivatives_recursion(robot, traits, equations, q, v, a, tau, rows, path, X, X_lanes):
    """
    Do the `coupled_recursion`, and write the derivatives of the unknowns side by side to X.

    ``rows`` and ``path`` are buffers for derivatives of torques and for indices.

    """
    table, _, _, L, L_lanes = equations
    return (coupled_recursion(robot, traits, equations, q, v, a, tau)
            and inverse_dynamics_derivatives(robot, traits, q, v, a, rows)
            and hybrid_dynamics_derivatives(table, rows, L, L_lanes, path, X, X_lanes))


@kernel
def coupled_forward_dynamics(robot, traits, table, M, b, L, L_lanes, a, q, v, tau):
    """Write the accelerations to `a`; none may be prescribed."""
    return coupled_recursion(robot, traits, (table, M, b, L, L_lanes), q, v, a, tau)


@kernel
def coupled_forward_derivatives(robot, traits, table, M, b, L, L_lanes, rows, path, a, q, v, tau,
                                X, X_lanes):
    """Do `coupled_forward_dynamics`, and write the derivatives of the accelerations to `X`."""
    return derivatives_recursion(robot, traits, (table, M, b, L, L_lanes), q, v, a, tau, rows,
                                 path, X, X_lanes)


@kernel
def coupled_hybrid_dynamics(robot, traits, table, M, b, L, L_lanes, q, v, a, tau, prescribed,
                            all_a, all_tau):
    """Write all accelerations and torques; entries of ``a`` and ``tau`` not given are not read."""
    fine = (copy_given(table, a, tau, prescribed, all_a, all_tau) and coupled_recursion(
        robot, traits, (table, M, b, L, L_lanes), q, v, all_a, all_tau))
    prescribe_none(table)
    return fine


@kernel
def solve_equations(table, M, b, L, L_lanes, a, tau, prescribed, all_a, all_tau):
    """Solve M a + b = tau, see `complete`, for the entries of a and tau that are not given."""
    fine = (copy_given(table, a, tau, prescribed, all_a, all_tau)
            and complete((table, M, b, L, L_lanes), all_a, all_tau) == 0)
    prescribe_none(table)
    return fine


@kernel
def coupled_hybrid_derivatives(robot, traits, table, M, b, L, L_lanes, rows, path, q, v, a, tau,
                               prescribed, all_a, all_tau, X, X_lanes):
    """Do `coupled_hybrid_dynamics`, and write the derivatives of the unknowns to `X`."""
    fine = (copy_given(table, a, tau, prescribed, all_a, all_tau) and derivatives_recursion(
        robot, traits, (table, M, b, L, L_lanes), q, v, all_a, all_tau, rows, path, X, X_lanes))
    prescribe_none(table)
    return fine
