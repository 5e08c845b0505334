# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Dynamics of closed loops are those of the oracle, on the robots in urdf/ and on random ones."""

from loop_robots import loop_robot, MOTORS, moved_motors
from loops_oracle import closed_velocity, independent_joints, LoopOracle, random_constraints
import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis import potential_energy
from rbd_ros.model import Constraint, with_constraints
from rbd_ros.model.changes.inertial import inertial_parameters
from robots import random_tree, relative_error, with_mimics

KINDS = ('revolute', 'prismatic', 'continuous', 'spherical', 'universal', 'planar', 'helical',
         'cylindrical', 'fixed', 'free')
# Two solutions with matrices of condition up to 1e4 or so.
SOLUTIONS = 1e-9
# Central differences of the fourth order with steps of 3e-4.
DIFFERENCES = 1e-6
CLOSED = 1e-10      # m and rad, also of the Newton method that ends a step
LOOPS = [(31, ('point',)), (32, ('revolute',)), (33, ('weld',)), (34, ('distance',)),
         (35, ('revolute', 'point')), (36, ('distance', 'weld')), (37, ('point', 'distance'))]


def derivative(function, h=3e-4):
    """Return the derivative at 0 by central differences of the fourth order."""
    return (8.0 * (function(h) - function(-h)) - function(2.0 * h) + function(-2.0 * h)) / (
        12.0 * h)


def robot_of(oracle):
    """Return the robot of an oracle."""
    return with_constraints(oracle.tree, [Constraint(**vars(one)) for one in oracle.constraints],
                            [oracle.tree.velocity_names[k] for k in oracle.independent])


def random_robot(seed, kinds, mimics):
    """Return the oracle of a random tree with loops, some of them to the world, and a closed q."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, 16, KINDS)
    if mimics:
        tree = with_mimics(tree, seed)
    pairs = [[tree.link_names[0] if k else tree.link_names[6 + k], tree.link_names[-1 - k]]
             for k in range(len(kinds))]
    q, constraints = random_constraints(tree, kinds, seed, pairs)
    oracle = LoopOracle(tree, constraints)
    names = independent_joints(oracle, q)
    oracle = LoopOracle(tree, constraints, names)
    return oracle, q, closed_velocity(oracle, q, seed)[oracle.independent], rng


@pytest.fixture(scope='module', params=[*MOTORS, *LOOPS, *((seed + 10, kinds, 'mimics')
                                                           for seed, kinds in LOOPS)],
                ids=lambda one: one if isinstance(one, str) else '-'.join((*one[1], *one[2:])))
def case(request):
    """Return an oracle, its robot, and q, v, a, tau."""
    if isinstance(request.param, str):
        oracle, rng = loop_robot(request.param), np.random.default_rng(0)
        own = oracle.independent
        q = moved_motors(oracle, rng.uniform(np.maximum(oracle.tree.lower[own], -3.0),
                                             np.minimum(oracle.tree.upper[own], 3.0)))
        v = rng.normal(size=len(own))
    else:
        oracle, q, v, rng = random_robot(*request.param[:2], len(request.param) > 2)
    return oracle, robot_of(oracle), q, v, *rng.normal(size=(2, len(v)))


def test_torques_and_accelerations(case):
    oracle, robot, q, v, a, tau = case
    expected = oracle.inverse_dynamics(q, v, a)
    assert relative_error(rbd_ros.inverse_dynamics(robot, q, v, a), expected) < SOLUTIONS
    assert relative_error(rbd_ros.forward_dynamics(robot, q, v, tau),
                          oracle.independent_forward_dynamics(q, v, tau)) < SOLUTIONS
    M, bias = oracle.reduced(q, v)
    assert relative_error(rbd_ros.mass_matrix(robot, q), M) < SOLUTIONS
    assert relative_error(rbd_ros.bias_torques(robot, q, v), bias) < SOLUTIONS
    g = oracle.reduced(q, 0.0 * v)[1]
    assert relative_error(rbd_ros.gravity_torques(robot, q), g) < SOLUTIONS
    C = rbd_ros.coriolis_matrix(robot, q, v)
    assert np.max(np.abs(C @ v - (bias - g))) < SOLUTIONS * np.max(np.abs(bias) + np.abs(g))


def test_forces_in_the_loops(case):
    oracle, robot, q, v, a, _ = case
    efforts = np.zeros(oracle.tree.nv)
    efforts[oracle.independent] = oracle.inverse_dynamics(q, v, a)
    _, forces = oracle.forward_dynamics(q, oracle.G(q) @ v, efforts)
    expected = oracle.wrenches(q, forces)
    found = rbd_ros.constraint_forces(robot, q, v, a)
    assert list(found) == list(expected)
    largest = max(np.max(np.abs(wrench)) for wrench in expected.values())
    for name, wrench in expected.items():
        assert np.max(np.abs(found[name] - wrench)) < SOLUTIONS * largest, name


def test_steps_stay_closed_and_are_undone(case):
    oracle, robot, q, v, _, _ = case
    q_1 = rbd_ros.integrate(robot, q, v, 0.02)
    assert oracle.gap(q_1) < CLOSED
    assert np.allclose(rbd_ros.difference(robot, q, q_1), 0.02 * v, rtol=0.0, atol=CLOSED)
    # And they are steps along G v.
    found = derivative(lambda x: oracle.residual(oracle.integrate(
        rbd_ros.integrate(robot, q, v, x), -x * (oracle.G(q) @ v))))
    assert np.max(np.abs(found)) < DIFFERENCES


def test_jacobians_know_the_loops(case):
    oracle, robot, q, v, _, _ = case
    tree, G, link = oracle.tree, oracle.G(q), oracle.tree.link_names[-1]
    for function in (rbd_ros.world_jacobian, rbd_ros.body_jacobian):
        assert np.allclose(function(robot, q, link), function(tree, q, link) @ G, rtol=0.0,
                           atol=SOLUTIONS)
    assert np.allclose(rbd_ros.com_jacobian(robot, q), rbd_ros.com_jacobian(tree, q) @ G,
                       rtol=0.0, atol=SOLUTIONS)
    found = derivative(lambda x: rbd_ros.body_jacobian(
        robot, rbd_ros.integrate(robot, q, v, x), link))
    assert np.allclose(rbd_ros.jacobian_dot(robot, q, v, link), found, rtol=0.0,
                       atol=DIFFERENCES * max(1.0, np.max(np.abs(found))))


def test_wrenches_act_through_the_loops(case):
    oracle, robot, q, v, a, _ = case
    link, wrench = oracle.tree.link_names[-1], np.arange(1.0, 7.0)
    J = rbd_ros.body_jacobian(oracle.tree, q, link) @ oracle.G(q)
    found = rbd_ros.inverse_dynamics(robot, q, v, a, external_wrenches={link: wrench})
    assert relative_error(found, oracle.inverse_dynamics(q, v, a) - J.T @ wrench) < SOLUTIONS


def test_passivity(case):
    _, robot, q, v, _, _ = case
    rate = derivative(lambda x: rbd_ros.mass_matrix(robot, rbd_ros.integrate(robot, q, v, x)))
    skew = rate - 2.0 * rbd_ros.coriolis_matrix(robot, q, v)
    assert np.max(np.abs(skew + skew.T)) < DIFFERENCES * max(np.max(np.abs(rate)),
                                                             np.max(np.abs(skew)))


@pytest.mark.parametrize('inverse', [True, False])
def test_derivatives_are_differences_along_the_closure(case, inverse):
    _, robot, q, v, a, tau = case
    function, derivatives, last = (
        (rbd_ros.inverse_dynamics, rbd_ros.inverse_dynamics_derivatives, a) if inverse else
        (rbd_ros.forward_dynamics, rbd_ros.forward_dynamics_derivatives, tau))
    changes = (lambda x, e: function(robot, rbd_ros.integrate(robot, q, e, x), v, last),
               lambda x, e: function(robot, q, v + x * e, last),
               lambda x, e: function(robot, q, v, last + x * e))
    for found, change in zip(derivatives(robot, q, v, last), changes, strict=True):
        expected = np.column_stack([
            derivative(lambda x, e=e, change=change: change(x, e)) for e in np.eye(len(v))])
        assert relative_error(found, expected) < DIFFERENCES


def test_hybrid_dynamics_is_consistent(case):
    oracle, robot, q, v, a, tau = case
    prescribed = np.arange(len(v)) % 2 == 0
    accelerations, torques = rbd_ros.hybrid_dynamics(robot, q, v, a, tau, prescribed)
    assert np.array_equal(accelerations[prescribed], a[prescribed])
    assert np.array_equal(torques[~prescribed], tau[~prescribed])
    assert relative_error(torques, oracle.inverse_dynamics(q, v, accelerations)) < SOLUTIONS


def test_all_terms_are_those_of_the_oracle(case):
    oracle, robot, q, v, _, _ = case
    (M, bias), g = oracle.reduced(q, v), oracle.reduced(q, 0.0 * v)[1]
    largest = np.max(np.abs(bias) + np.abs(g))
    terms = rbd_ros.all_terms(robot, q, v)
    assert relative_error(terms.M, M) < SOLUTIONS
    for found, expected in ((terms.g, g), (terms.coriolis_torques, bias - g),
                            (terms.C @ v, bias - g)):
        assert np.max(np.abs(found - expected)) < SOLUTIONS * largest
    assert np.allclose(terms.com, rbd_ros.center_of_mass(oracle.tree, q), atol=SOLUTIONS)


def test_regressor_is_linear_in_the_inertias(case):
    oracle, robot, q, v, a, _ = case
    tree = oracle.tree
    Y = rbd_ros.torque_regressor(robot, q, v, a)
    rotors = oracle.G(q).T @ (tree.armature * (oracle.G(q) @ a + oracle.gamma(q, oracle.G(q) @ v)))
    found = Y @ np.ravel(inertial_parameters(robot)) + rotors
    assert relative_error(found, oracle.inverse_dynamics(q, v, a)) < SOLUTIONS


def test_simulation_keeps_energy_and_loops_closed(case):
    oracle, robot, q, v, _, _ = case
    t = np.linspace(0.0, 0.05, 101)
    motion = rbd_ros.simulate(robot, q, 0.3 * v, lambda *_: np.zeros(len(v)), t)

    def energy(k):
        V = oracle.G(motion.q[k]) @ motion.v[k]
        return (0.5 * V @ oracle.mass_matrix(motion.q[k]) @ V
                + potential_energy(oracle.tree, motion.q[k]))
    energies = [energy(0), energy(50), energy(100)]
    moved = max(abs(potential_energy(oracle.tree, motion.q[k]) - potential_energy(oracle.tree, q))
                for k in (50, 100))
    assert moved > 0.0
    # Of the fourth order, steps of 0.5 ms.
    assert np.ptp(energies) < 1e-6 * max(1.0, moved)
    assert max(oracle.gap(motion.q[k]) for k in (50, 100)) < CLOSED


def planar_loop(builder, names, base, place):
    """Add a four-bar mechanism on a link; both of its ends are fixed to that link."""
    lengths, up, shift = (0.3, 0.7, 0.6), base, place
    for name, length in zip(names, lengths):
        moment = length ** 2 / 12.0
        builder.link(name, 1.0, (length / 2.0, 0.0, 0.0), (0.001, moment, moment))
        builder.joint(f'{name}_joint', 'revolute', up, name, xyz=shift, axis=(0.0, 1.0, 0.0))
        up, shift = name, (length, 0.0, 0.0)
    builder.constraint(f'{names[-1]}_pin', 'revolute', base, names[-1],
                       xyz_a=(place[0] + 0.8, place[1], place[2]), rpy_a=(np.pi / 2, 0.0, 0.0),
                       xyz_b=(lengths[-1], 0.0, 0.0), rpy_b=(np.pi / 2, 0.0, 0.0))


def test_derivatives_of_a_loop_on_a_moving_link_of_another():
    # The second loop is carried by a link of the first, to which its constraint is fixed, too.
    builder = rbd_ros.ModelBuilder('stacked').link('ground')
    planar_loop(builder, ('crank', 'coupler', 'rocker'), 'ground', (0.0, 0.0, 0.0))
    planar_loop(builder, ('crank_2', 'coupler_2', 'rocker_2'), 'coupler', (0.1, 0.0, 0.2))
    robot = builder.build()
    assert robot.nv == 2
    q = rbd_ros.random_configuration(robot, 2)
    v, a = np.random.default_rng(0).normal(size=(2, 2))
    found = rbd_ros.inverse_dynamics_derivatives(robot, q, v, a)
    for k, unit in enumerate(np.eye(2)):
        expected = derivative(lambda t, unit=unit: rbd_ros.inverse_dynamics(
            robot, rbd_ros.integrate(robot, q, unit, t), v, a))
        assert np.allclose(found.by_position[:, k], expected, rtol=DIFFERENCES, atol=DIFFERENCES)
        expected = derivative(
            lambda t, unit=unit: rbd_ros.inverse_dynamics(robot, q, v + t * unit, a))
        assert np.allclose(found.by_velocity[:, k], expected, rtol=DIFFERENCES, atol=DIFFERENCES)
