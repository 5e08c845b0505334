# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of closed loops agrees with Pinocchio, with differences and with closed forms."""

import loops_oracle
from loops_oracle import closed_velocity, independent_joints, LoopOracle, random_constraints
import numpy as np
import pinocchio as pin
import pytest
import rbd_ros
from rbd_ros.model.se3 import Ad, inverse, pose
from robots import random_tree, relative_error, with_mimics

KINDS = ('revolute', 'prismatic', 'continuous', 'spherical', 'universal', 'planar', 'helical',
         'cylindrical', 'fixed', 'free')
# Two dense solutions of a KKT system of condition up to 1e6 or so.
SOLUTIONS = 1e-9
# Sums of a few dozen terms.
ROUNDING = 1e-12
# Central differences of the fourth order with steps of 1e-3: 1e-12 from truncation and rounding,
# for derivatives up to about a hundred.
DIFFERENCES = 1e-9


def derivative(function, h=1e-3):
    """Return the derivative at 0 by central differences of the fourth order."""
    return (8.0 * (function(h) - function(-h)) - function(2.0 * h) + function(-2.0 * h)) / (
        12.0 * h)


def mechanism(seed, kinds, count=16, tree_kinds=KINDS):
    """Return the oracle of a random tree with loops, a closed q, and velocities."""
    tree = random_tree(seed, count, tree_kinds)
    names = tree.link_names
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(names, 2, replace=False) for _ in kinds]
    q, constraints = random_constraints(tree, kinds, seed, pairs)
    oracle = LoopOracle(tree, constraints)
    oracle = LoopOracle(tree, constraints, independent_joints(oracle, q))
    return oracle, q, closed_velocity(oracle, q, seed)


MECHANISMS = [(9, ('point',)), (2, ('revolute',)), (3, ('weld',)), (4, ('distance',)),
              (5, ('point', 'distance')), (6, ('revolute', 'point')),
              (7, ('weld', 'distance', 'point')), (8, ('distance', 'distance', 'distance'))]


@pytest.fixture(params=MECHANISMS, ids=lambda one: '-'.join(one[1]))
def loops(request):
    return mechanism(*request.param)


def four_bar():
    """Return a planar four-bar with a hinge that has five equations, two of them redundant."""
    builder = rbd_ros.ModelBuilder('four_bar').link('base')
    for name, length in (('crank', 0.2), ('coupler', 0.5), ('rocker', 0.4)):
        builder.link(name, mass=length, com=(0.5 * length, 0.02, 0.0),
                     inertia=(1e-4, 0.1 * length ** 3, 0.1 * length ** 3))
    tree = (builder.joint('crank', 'revolute', 'base', 'crank', axis=(0, 0, 1))
            .joint('coupler', 'revolute', 'crank', 'coupler', xyz=(0.2, 0, 0), axis=(0, 0, 1))
            .joint('rocker', 'revolute', 'base', 'rocker', xyz=(0.5, 0, 0), axis=(0, 0, 1))
            .build(gravity=(1.0, -9.0, 0.5)))
    loop = {'name': 'pin', 'kind': 'revolute', 'link_a': 'coupler', 'link_b': 'rocker',
            'placement_a': pose(np.eye(3), (0.5, 0, 0)),
            'placement_b': pose(np.eye(3), (0.4, 0, 0)), 'length': None}
    oracle = LoopOracle(tree, [loop], ['crank'])
    return oracle, oracle.close(np.array([0.7, -0.4, 1.6]), held=[0])


@pytest.mark.parametrize('mimics', [False, True])
def test_tree_is_that_of_rbd_ros(mimics):
    tree = random_tree(3, 14, KINDS)
    if mimics:
        tree = with_mimics(tree, 1)
    oracle, rng = LoopOracle(tree, []), np.random.default_rng(0)
    v = rng.normal(size=tree.nv)
    q = oracle.integrate(rbd_ros.random_configuration(tree, rng), v)
    assert relative_error(oracle.mass_matrix(q), rbd_ros.mass_matrix(tree, q)) < ROUNDING
    assert relative_error(oracle.bias(q, v), rbd_ros.bias_torques(tree, q, v)) < ROUNDING
    assert relative_error(oracle.integrate(q, v), rbd_ros.integrate(tree, q, v, 1.0)) < ROUNDING
    assert list(oracle.poses(q)) == list(tree.link_names)
    found = np.array(list(oracle.poses(q).values()))
    assert np.max(np.abs(found - rbd_ros.forward_kinematics(tree, q))) < ROUNDING


def test_loops_are_closed_where_they_were_made(loops):
    oracle, q, v = loops
    assert oracle.gap(q) < ROUNDING
    assert np.max(np.abs(oracle.jacobian(q) @ v)) < ROUNDING


def test_jacobian_is_the_derivative_of_the_residual(loops):
    oracle, q, _ = loops
    # Also in directions that open the loops.
    found = np.column_stack([
        derivative(lambda x, e=e: oracle.residual(oracle.integrate(q, x * e)))
        for e in np.eye(oracle.tree.nv)])
    assert np.max(np.abs(found - oracle.jacobian(q))) < DIFFERENCES


def test_rate_is_the_derivative_of_the_jacobian(loops):
    oracle, q, v = loops
    found = derivative(lambda x: oracle.jacobian(oracle.integrate(q, x * v)) @ v)
    assert relative_error(found, oracle.rate(q, v)) < 1e-7
    assert np.max(np.abs(oracle.rate(q, v))) > 0.1


def test_closing_changes_only_what_may_change(loops):
    oracle, q, _ = loops
    held = oracle.independent
    rng = np.random.default_rng(1)
    opened = oracle.integrate(q, 0.01 * rng.normal(size=oracle.tree.nv))
    assert oracle.gap(opened) > 1e-4
    closed = oracle.close(opened)
    assert oracle.gap(closed) < ROUNDING and np.max(np.abs(closed - opened)) < 0.2
    closed = oracle.close(opened, held)
    for _, part, rows in oracle.tree.moving_joints:
        if set(range(rows.start, rows.stop)) <= set(held):
            assert np.allclose(closed[part], opened[part], rtol=0.0, atol=ROUNDING)


@pytest.mark.parametrize('seed, kinds', [one for one in MECHANISMS if 'distance' not in one[1]])
def test_forward_dynamics_is_that_of_pinocchio(seed, kinds):
    oracle, q, v = mechanism(seed, kinds)
    tau = np.random.default_rng(seed).normal(size=oracle.tree.nv)
    a, _ = oracle.forward_dynamics(q, v, tau)
    expected = loops_oracle.pinocchio_forward_dynamics(oracle, q, v, tau)
    assert relative_error(a, expected) < SOLUTIONS


def test_redundant_equations_do_not_matter():
    oracle, q = four_bar()
    assert np.linalg.matrix_rank(oracle.jacobian(q)) == 2 and len(oracle.jacobian(q)) == 5
    v = oracle.G(q) @ [3.0]
    a, _ = oracle.forward_dynamics(q, v, [1.0, 0.0, 0.3])
    # Convergence of the proximal iteration, whose step mu must not be too small for two
    # redundant equations.
    expected = loops_oracle.pinocchio_forward_dynamics(oracle, q, v, [1.0, 0.0, 0.3], mu=1e-8)
    assert relative_error(a, expected) < SOLUTIONS


def test_forward_dynamics_is_that_in_the_null_space(loops):
    oracle, q, v = loops
    tau = np.random.default_rng(5).normal(size=oracle.tree.nv)
    a, forces = oracle.forward_dynamics(q, v, tau)
    N, M = oracle.null_space(q), oracle.mass_matrix(q)
    along = -np.linalg.pinv(oracle.jacobian(q)) @ oracle.rate(q, v)
    expected = along + N @ np.linalg.solve(
        N.T @ M @ N, N.T @ (tau - oracle.bias(q, v) - M @ along))
    assert relative_error(a, expected) < SOLUTIONS
    balance = M @ a + oracle.bias(q, v) - tau - oracle.jacobian(q).T @ forces
    assert np.max(np.abs(balance)) < SOLUTIONS * np.max(np.abs(tau))


def test_wrenches_on_the_open_tree_move_it_like_the_loops(loops):
    oracle, q, v = loops
    tau = np.random.default_rng(6).normal(size=oracle.tree.nv)
    a, forces = oracle.forward_dynamics(q, v, tau)
    applied = {link: np.zeros(6) for link in oracle.tree.link_names}
    poses, frames = oracle.poses(q), oracle.frames(q)
    for one, (T_A, _) in zip(oracle.constraints, frames):
        wrench = oracle.wrenches(q, forces)[one.name]
        for link, sign in ((one.link_a, -1.0), (one.link_b, 1.0)):
            applied[link] += sign * Ad(inverse(T_A) @ poses[link]).T @ wrench
    expected = rbd_ros.forward_dynamics(oracle.tree, q, v, tau, external_wrenches=applied)
    assert relative_error(a, expected) < SOLUTIONS


def test_independent_velocities_determine_all(loops):
    oracle, q, v = loops
    G = oracle.G(q)
    assert np.max(np.abs(oracle.jacobian(q) @ G)) < 1e-10
    assert np.allclose(G @ v[oracle.independent], v, atol=1e-10)
    found = derivative(lambda x: oracle.G(oracle.move(q, v[oracle.independent], x))
                       @ v[oracle.independent])
    assert relative_error(found, oracle.gamma(q, v)) < 1e-6


def test_inverse_dynamics_inverts_forward_dynamics(loops):
    oracle, q, v = loops
    tau = np.random.default_rng(7).normal(size=len(oracle.independent))
    v = v[oracle.independent]
    a = oracle.independent_forward_dynamics(q, v, tau)
    assert np.max(np.abs(oracle.inverse_dynamics(q, v, a) - tau)) < 1e-8


def test_distance_to_the_world_makes_a_spherical_pendulum():
    builder = rbd_ros.ModelBuilder('pendulum').link('base')
    for name in ('x', 'y'):
        builder.link(name)
    tree = (builder.link('bob', mass=2.0).joint('x', 'prismatic', 'base', 'x', axis=(1, 0, 0))
            .joint('y', 'prismatic', 'x', 'y', axis=(0, 1, 0))
            .joint('z', 'prismatic', 'y', 'bob', axis=(0, 0, 1)).build())
    pivot = np.array([0.1, -0.2, 0.5])
    string = {'name': 'string', 'kind': 'distance', 'link_a': 'base', 'link_b': 'bob',
              'placement_a': pose(np.eye(3), pivot), 'placement_b': np.eye(4), 'length': 0.7}
    oracle = LoopOracle(tree, [string], ['x', 'y'])
    q = oracle.close(np.array([0.3, 0.1, -0.1]))
    v = closed_velocity(oracle, q, 0)
    a, forces = oracle.forward_dynamics(q, v, np.zeros(3))
    # The acceleration is gravity plus a tension that keeps the mass on its sphere.
    n, g = (q - pivot) / 0.7, np.array([0.0, 0.0, -9.81])
    tension = 2.0 * (n @ g + v @ v / 0.7)
    assert np.allclose(a, g - tension / 2.0 * n, atol=ROUNDING)
    assert forces[0] == pytest.approx(-tension, abs=ROUNDING)
    assert np.allclose(oracle.wrenches(q, forces)['string'][3:], -tension * n, atol=ROUNDING)


def test_pinocchio_itself_is_used_as_meant():
    oracle, q, v = mechanism(3, ('weld',))
    # A tree without loops: the constrained dynamics must differ from it, or they do not act.
    free = pin.aba(oracle.pin, oracle.data, oracle.q_pin(q), oracle.P @ v,
                   np.zeros(oracle.pin.nv))
    a = loops_oracle.pinocchio_forward_dynamics(oracle, q, v, np.zeros(oracle.tree.nv))
    assert np.max(np.abs(oracle.P @ a - free)) > 0.1
