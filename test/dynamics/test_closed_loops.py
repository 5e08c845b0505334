# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Dynamics of closed loops are those of dense solutions and of Pinocchio."""

from closed_robots import CASES, closed_robot, driven, RANDOM, SCREWS
from covering import covering
from differences import rate, time_rate
from loop_robots import MOTORS
from loops_oracle import pinocchio_forward_dynamics
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, StateError
from rbd_ros.model import inertial_parameters, normalize, with_inertial_parameters
from rbd_ros.workspace import Workspace
from robots import relative_error
from test_closed_loop_derivatives import ROBOTS

# Two dense solutions of systems with condition numbers up to 1e6 or so.
SOLUTIONS = 1e-9
# Sums of products of a few dozen numbers.
ROUNDING = 1e-11
# Central differences of the second order with steps of 1e-5.
DIFFERENCES = 1e-6


@pytest.fixture(params=CASES)
def robot(request):
    return closed_robot(request.param)


def test_mass_matrix_and_torques_are_those_of_the_reduced_tree(robot):
    model, oracle, q, v, a, _ = robot
    M, bias = oracle.reduced(q, v)
    assert relative_error(rbd_ros.mass_matrix(model, q), M) < SOLUTIONS
    assert relative_error(rbd_ros.bias_torques(model, q, v), bias) < SOLUTIONS
    assert relative_error(rbd_ros.inverse_dynamics(model, q, v, a), M @ a + bias) < SOLUTIONS
    g = oracle.reduced(q, 0.0 * v)[1]
    assert relative_error(rbd_ros.gravity_torques(model, q), g) < SOLUTIONS


def test_forward_dynamics_is_that_of_a_dense_system(robot):
    model, oracle, q, v, a, tau = robot
    expected = oracle.independent_forward_dynamics(q, v, tau)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), expected) < SOLUTIONS
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < SOLUTIONS


# Pinocchio has neither distances nor mimics in its constrained dynamics.
@pytest.mark.parametrize('name', covering([*MOTORS, *(
    name for name, one in RANDOM.items() if 'distance' not in one[1] and not one[4])],
    *MOTORS, 'point', 'hinge', 'weld'))
def test_forward_dynamics_is_that_of_pinocchio(name):
    model, oracle, q, v, _, tau = closed_robot(name)
    efforts = np.zeros(oracle.tree.nv)
    efforts[oracle.independent] = tau
    # A step mu that is too small for redundant equations keeps the iteration from converging.
    found = pinocchio_forward_dynamics(oracle, q, oracle.G(q) @ v, efforts, mu=1e-8)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau),
                          found[oracle.independent]) < SOLUTIONS


def test_a_distance_to_the_world_makes_a_spherical_pendulum():
    pivot, length = np.array([0.1, -0.2, 0.5]), 0.7
    builder = rbd_ros.ModelBuilder('pendulum').link('base').link('x').link('y')
    model = (builder.link('bob', mass=2.0).joint('x', 'prismatic', 'base', 'x', axis=(1, 0, 0))
             .joint('y', 'prismatic', 'x', 'y', axis=(0, 1, 0))
             .joint('z', 'prismatic', 'y', 'bob', axis=(0, 0, 1))
             .constraint('string', 'distance', 'base', 'bob', xyz_a=pivot, length=length)
             .build(independent=['x', 'y']))
    q, v = normalize(model, [0.3, 0.1, -0.1]), np.array([0.7, -0.4])
    n, g = (q - pivot) / length, np.array([0.0, 0.0, -9.81])
    V = np.array([*v, -(n[:2] @ v) / n[2]])
    # The acceleration is gravity plus a tension that keeps the mass on its sphere.
    tension = 2.0 * (n @ g + V @ V / length)
    a = rbd_ros.forward_dynamics(model, q, v, np.zeros(2))
    assert np.allclose(a, (g - tension / 2.0 * n)[:2], rtol=0.0, atol=ROUNDING)
    wrench = rbd_ros.constraint_forces(model, q, v, a)['string']
    assert np.allclose(wrench, [0.0, 0.0, 0.0, *(-tension * n)], rtol=0.0, atol=ROUNDING)


def test_constraint_forces_are_those_of_the_dense_system(robot):
    model, oracle, q, v, _, tau = robot
    efforts = np.zeros(oracle.tree.nv)
    efforts[oracle.independent] = tau
    _, forces = oracle.forward_dynamics(q, oracle.G(q) @ v, efforts)
    expected = oracle.wrenches(q, forces)
    found = rbd_ros.constraint_forces(model, q, v, rbd_ros.forward_dynamics(model, q, v, tau))
    assert list(found) == list(expected) and found
    size = max(np.max(np.abs(x)) for x in expected.values())
    for name, wrench in found.items():
        assert wrench.shape == (6,)
        assert np.max(np.abs(wrench - expected[name])) < 1e-8 * size, name


def test_hybrid_dynamics_solves_for_the_missing_accelerations_and_torques(robot):
    model, oracle, q, v, a, _ = robot
    tau = oracle.inverse_dynamics(q, v, a)
    for seed in range(4):
        mask = np.random.default_rng(seed).random(model.nv) < 0.5
        given_a, given_tau = np.where(mask, a, np.nan), np.where(mask, np.nan, tau)
        found = rbd_ros.hybrid_dynamics(model, q, v, given_a, given_tau, mask)
        assert relative_error(found[0], a) < SOLUTIONS
        assert relative_error(found[1], tau) < SOLUTIONS
        # What was given is not kept.
        assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < SOLUTIONS


def test_all_terms_are_those_of_single_functions(robot):
    model, _, q, v, _, _ = robot
    for form in ('christoffel', 'body'):
        terms = rbd_ros.all_terms(model, q, v, factorization=form)
        for found, expected in zip(terms, (
                rbd_ros.mass_matrix(model, q),
                rbd_ros.coriolis_matrix(model, q, v, factorization=form),
                rbd_ros.gravity_torques(model, q),
                rbd_ros.bias_torques(model, q, v) - rbd_ros.gravity_torques(model, q),
                rbd_ros.com_jacobian(model, q), rbd_ros.center_of_mass(model, q)), strict=True):
            assert relative_error(found, expected) < ROUNDING
        assert relative_error(terms.C @ v, terms.coriolis_torques) < ROUNDING
    rest = rbd_ros.Workspace(model).configuration_terms(q)
    for k in (0, 2, 4, 5):
        assert relative_error(rest[k], terms[k]) < ROUNDING


@pytest.mark.parametrize('robot', ROBOTS, indirect=True)
@pytest.mark.parametrize('form', ['christoffel', 'body'])
def test_rate_of_the_mass_matrix_less_twice_the_coriolis_matrix_is_skew(robot, form):
    model, _, q, v, a, _ = robot
    C = rbd_ros.coriolis_matrix(model, q, v, factorization=form)
    M_dot = rate(lambda q: rbd_ros.mass_matrix(model, q), model, q, v)
    assert np.max(np.abs(M_dot - C - C.T)) < DIFFERENCES * max(1.0, np.max(np.abs(C)))
    exact = analysis.matrices_dot(model, q, v, a, factorization=form).M_dot
    assert np.max(np.abs(exact - C - C.T)) < ROUNDING * max(1.0, np.max(np.abs(C)))


@pytest.mark.parametrize('name', covering([*MOTORS, *(
    name for name, one in RANDOM.items() if one[3] is SCREWS)], *MOTORS, 'point', 'distance'))
def test_christoffel_form_is_symmetric_in_both_velocities(name):
    # Velocities are rates of coordinates here, so that Christoffel symbols exist.
    model, _, q, v, w, _ = closed_robot(name)
    one = rbd_ros.coriolis_matrix(model, q, v) @ w
    assert relative_error(rbd_ros.coriolis_matrix(model, q, w) @ v, one) < SOLUTIONS


def test_external_wrenches_have_the_power_that_they_should(robot):
    model, oracle, q, v, a, _ = robot
    link = model.link_names[-1]
    wrench = np.random.default_rng(3).normal(size=6)
    without = rbd_ros.inverse_dynamics(model, q, v, a)
    found = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches={link: wrench})
    R = np.kron(np.eye(2), oracle.poses(q)[link][:3, :3].T)
    oracle.jacobian(q)
    J = R @ oracle._motion(q, link, np.eye(4)) @ oracle.G(q)
    assert np.max(np.abs(without - found - J.T @ wrench)) < SOLUTIONS * np.max(np.abs(found))
    assert relative_error(rbd_ros.body_jacobian(model, q, link), J) < SOLUTIONS
    back = rbd_ros.forward_dynamics(model, q, v, found, external_wrenches={link: wrench})
    assert relative_error(back, a) < SOLUTIONS


def test_energies_are_those_of_all_joints(robot):
    model, oracle, q, v, a, _ = robot
    v_tree = oracle.G(q) @ v
    kinetic = 0.5 * v_tree @ oracle.mass_matrix(q) @ v_tree
    assert analysis.kinetic_energy(model, q, v) == pytest.approx(kinetic, rel=SOLUTIONS)
    assert analysis.potential_energy(model, q) == pytest.approx(
        analysis.potential_energy(oracle.tree, q), rel=1e-12)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    power = time_rate(lambda q, v: sum(analysis.energy(model, q, v)), model, q, v, a)
    size = np.abs(v * tau).sum()
    assert power == pytest.approx(v @ tau, abs=DIFFERENCES * size)
    g = np.array([rate(lambda q: analysis.potential_energy(model, q), model, q, unit)
                  for unit in np.eye(model.nv)])
    assert np.max(np.abs(g - rbd_ros.gravity_torques(model, q))) < DIFFERENCES * max(
        1.0, np.max(np.abs(g)))


def test_regressors_times_parameters_are_torques(robot):
    model, oracle, q, v, a, tau = robot
    G, gamma = oracle.G(q), oracle.gamma(q, oracle.G(q) @ v)
    v_r, a_r = np.random.default_rng(4).normal(size=(2, model.nv))
    pi = inertial_parameters(model)
    rotors = np.diag(model.unconstrained.armature)
    expected = oracle.inverse_dynamics(q, v, a) - G.T @ rotors @ (G @ a + gamma)
    assert relative_error(rbd_ros.torque_regressor(model, q, v, a) @ pi, expected) < SOLUTIONS
    M, g = rbd_ros.mass_matrix(model, q), rbd_ros.gravity_torques(model, q)
    C = rbd_ros.coriolis_matrix(model, q, v)
    C_of_rotors = G.T @ rotors @ rate(oracle.G, model, q, v)
    expected = (M - G.T @ rotors @ G) @ a_r + (C - C_of_rotors) @ v_r + g
    found = analysis.slotine_li_regressor(model, q, v, v_r, a_r) @ pi
    assert relative_error(found, expected) < DIFFERENCES
    expected = (M - G.T @ rotors @ G) @ v
    assert relative_error(analysis.momentum_regressor(model, q, v) @ pi, expected) < SOLUTIONS
    found = [Y @ pi for Y in analysis.energy_regressor(model, q, v)]
    assert found[0] == pytest.approx(0.5 * v @ expected, rel=SOLUTIONS)
    matrices = analysis.parameter_derivatives(model, q, v)
    assert relative_error(matrices.M @ pi, M - G.T @ rotors @ G) < SOLUTIONS
    assert relative_error(matrices.C @ pi, C - C_of_rotors) < DIFFERENCES
    assert relative_error(matrices.g @ pi, g) < SOLUTIONS
    found = analysis.acceleration_parameter_derivatives(model, q, v, tau)
    a = rbd_ros.forward_dynamics(model, q, v, tau)
    expected = -np.linalg.solve(M, rbd_ros.torque_regressor(model, q, v, a))
    assert relative_error(found, expected) < SOLUTIONS


def test_friction_and_springs_of_passive_joints_act(robot):
    bare, oracle, q, v, _, _ = robot
    model, G = driven(bare, 0), oracle.G(q)
    tree, V = model.unconstrained, oracle.G(q) @ v
    for smooth in (0.0, 0.2):
        s = np.tanh(V / smooth) if smooth else np.sign(V)
        of_joints = tree.damping * V + tree.effort_offset + s * (
            tree.friction + tree.stribeck_friction * np.exp(-(V / 0.3) ** 2))
        found = rbd_ros.friction_torques(model, v, q=q, smooth=smooth)
        if tree.coordinates.is_identity:
            assert relative_error(found, G.T @ of_joints) < SOLUTIONS
        assert relative_error(found, G.T @ rbd_ros.friction_torques(
            tree, V, smooth=smooth)) < SOLUTIONS
    both = rbd_ros.friction_torques(model, np.array([v, -v]), q=np.array([q, q]))
    assert relative_error(both[0], rbd_ros.friction_torques(model, v, q=q)) < ROUNDING
    assert relative_error(both[1], rbd_ros.friction_torques(model, -v, q=q)) < ROUNDING
    with pytest.raises(StateError, match='needs q'):
        rbd_ros.friction_torques(model, v)
    found = rbd_ros.spring_torques(model, q)
    assert relative_error(found, G.T @ rbd_ros.spring_torques(tree, q)) < SOLUTIONS
    both = rbd_ros.spring_torques(model, np.array([q, q]))[1]
    assert relative_error(both, found) < ROUNDING
    assert np.max(np.abs(found)) > 0.1


def test_rotors_of_passive_joints_count(robot):
    bare, oracle, q, v, a, _ = robot
    model, G = driven(bare, 1), oracle.G(q)
    rotors = np.diag(model.unconstrained.armature - bare.unconstrained.armature)
    added = rbd_ros.mass_matrix(model, q) - rbd_ros.mass_matrix(bare, q)
    assert np.max(np.abs(added - G.T @ rotors @ G)) < ROUNDING * max(1.0, np.max(np.abs(added)))
    gamma = oracle.gamma(q, G @ v)
    added = rbd_ros.inverse_dynamics(model, q, v, a) - rbd_ros.inverse_dynamics(bare, q, v, a)
    expected = G.T @ rotors @ (G @ a + gamma)
    assert np.max(np.abs(added - expected)) < SOLUTIONS * max(
        np.max(np.abs(expected)), np.max(np.abs(rbd_ros.inverse_dynamics(bare, q, v, a))))


def test_workspace_and_functions_agree_and_keep_their_results(robot):
    model, _, q, v, a, tau = robot
    workspace = rbd_ros.Workspace(model)
    again = rbd_ros.integrate(model, q, v, 0.01)
    kept = rbd_ros.forward_kinematics(model, q)
    before = kept.copy()
    rbd_ros.forward_kinematics(model, again)
    assert np.array_equal(kept, before)
    for name, arguments in (('mass_matrix', (q,)), ('inverse_dynamics', (q, v, a)),
                            ('forward_dynamics', (q, v, tau)), ('gravity_torques', (q,))):
        getattr(workspace, name)(again, *(2.0 * x for x in arguments[1:]))
        assert np.array_equal(getattr(workspace, name)(*arguments),
                              getattr(rbd_ros, name)(model, *arguments))
    packed = workspace.inverse_dynamics_packed(np.concatenate((q, v, a)))
    assert np.array_equal(packed, rbd_ros.inverse_dynamics(model, q, v, a))


# Dynamics leave inertias, forces and motions in the same columns: what is left there by another
# function, or by a call before, has other units and may be many orders of magnitude larger.
@pytest.mark.parametrize('name', MOTORS)
def test_the_unit_of_mass_changes_no_motion(name):
    model, _, q, v, a, tau = closed_robot(name)
    unit = 2.0 ** 40
    found = []
    for mass in (1.0, unit):
        workspace = Workspace(with_inertial_parameters(model, mass * inertial_parameters(model)))
        for _ in range(2):
            C = workspace.all_terms(q, v).C / mass
            M_dot = workspace.matrices_dot(q, v, a).M_dot / mass
            by_q, by_v, by_tau = workspace.forward_dynamics_derivatives(q, v, mass * tau)
        found.append((C, M_dot, by_q, by_v, mass * by_tau))
    for of_unit, expected in zip(*reversed(found)):
        assert relative_error(of_unit, expected) < ROUNDING


def four_bars(order):
    """Return four-bars on one base, which constraints close in the given order."""
    builder = rbd_ros.ModelBuilder('bars').link('base')
    sides = sorted({name[0] for name in order.split()})
    for side in sides:
        for link, mass in (('crank', 0.3), ('coupler', 0.75), ('rocker', 0.6)):
            builder.link(f'{side}_{link}', mass=mass, com=(0.1, 0.0, 0.1),
                         inertia=(8e-3, 8e-3, 7e-3))
        y = (0.0, -1.0, 0.0)
        builder.joint(f'{side}_crank', 'continuous', 'base', f'{side}_crank', axis=y)
        builder.joint(f'{side}_coupler', 'continuous', f'{side}_crank', f'{side}_coupler',
                      xyz=(0.0, 0.0, 0.2), axis=y)
        builder.joint(f'{side}_rocker', 'continuous', 'base', f'{side}_rocker',
                      xyz=(0.5, 0.0, -0.2), axis=y)
    for name in order.split():
        links = f'{name[0]}_coupler', f'{name[0]}_rocker'
        if name.endswith('pin'):
            builder.constraint(name, 'point', *links, xyz_a=(0.5, 0.0, 0.0), xyz_b=(0.0, 0.0, 0.4))
        else:
            builder.constraint(name, 'distance', *links, xyz_b=(0.0, 0.0, 0.4), length=0.5)
    return builder.build(independent=[f'{side}_{link}' for side in sides for link in (
        ('crank',) if f'{side}_pin' in order else ('crank', 'coupler'))])


@pytest.mark.parametrize(('order', 'mixed'), [
    ('a_pin a_rod b_pin b_rod', 'b_rod a_pin b_pin a_rod'),
    ('a_pin a_rod b_rod c_rod', 'a_rod b_rod c_rod a_pin')])
def test_constraints_of_separate_loops_may_be_in_any_order(order, mixed):
    sorted_, mixed = four_bars(order), four_bars(mixed)
    step = [0.4, -0.3, 0.2, 0.1, -0.2][:mixed.nv]
    q = rbd_ros.integrate(mixed, rbd_ros.neutral(mixed), step, 1.0)
    v, a = np.random.default_rng(0).normal(size=(2, mixed.nv))
    for name in ('inverse_dynamics', 'forward_dynamics'):
        found, expected = (getattr(rbd_ros, name)(robot, q, v, a) for robot in (mixed, sorted_))
        assert relative_error(found, expected) < ROUNDING
    forces = [rbd_ros.constraint_forces(robot, q, v, a) for robot in (mixed, sorted_)]
    for name in forces[0]:
        assert relative_error(forces[0][name], forces[1][name]) < SOLUTIONS
