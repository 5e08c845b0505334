# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Rates and derivatives of robots with closed loops are those of central differences."""

from closed_robots import closed_robot, NAMES
from covering import covering
from differences import by_q, leading, rate, time_rate
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, StateError
from rbd_ros.analysis import Variation
from robots import relative_error

# Central differences of the second order with steps of 1e-5, for derivatives of up to a few
# hundred times the values.
DIFFERENCES = 1e-6
ROUNDING = 1e-9
STEP = 1e-5
FORMS = ['christoffel', 'body']
# Each kind of constraint, between screws: one set of kernels. That for balls and mimics takes a
# minute to compile.
ROBOTS = covering(NAMES, 'four_bar', 'delta', 'point', 'hinge', 'weld', 'distance')


@pytest.fixture(params=ROBOTS)
def robot(request):
    return closed_robot(request.param)


def close(found, expected, tolerance=DIFFERENCES):
    """Assert that arrays agree, relative to their largest entry or 1."""
    expected = np.asarray(expected)
    assert np.shape(found) == expected.shape
    assert np.max(np.abs(found - expected)) < tolerance * max(1.0, np.max(np.abs(expected)))


def by_v(f, v):
    """Return the derivatives of f(v), stacked along the first axis."""
    return np.array([(f(v + STEP * e) - f(v - STEP * e)) / (2 * STEP) for e in np.eye(len(v))])


def test_derivatives_of_inverse_dynamics_are_differences(robot):
    model, _, q, v, a, _ = robot
    found = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    close(leading(found.by_position),
          by_q(lambda q: rbd_ros.inverse_dynamics(model, q, v, a), model, q))
    close(leading(found.by_velocity),
          by_v(lambda v: rbd_ros.inverse_dynamics(model, q, v, a), v))
    close(found.by_input, rbd_ros.mass_matrix(model, q), ROUNDING)


def test_derivatives_of_forward_dynamics_are_differences(robot):
    model, _, q, v, _, tau = robot
    found = rbd_ros.forward_dynamics_derivatives(model, q, v, tau)
    close(leading(found.by_position),
          by_q(lambda q: rbd_ros.forward_dynamics(model, q, v, tau), model, q))
    close(leading(found.by_velocity),
          by_v(lambda v: rbd_ros.forward_dynamics(model, q, v, tau), v))
    close(found.by_input, np.linalg.inv(rbd_ros.mass_matrix(model, q)), ROUNDING)


def test_derivatives_of_hybrid_dynamics_are_differences(robot):
    model, _, q, v, a, tau = robot
    mask = np.arange(model.nv) % 2 == 0

    def outputs(q, v, a, tau):
        found = rbd_ros.hybrid_dynamics(model, q, v, a, tau, mask)
        return np.where(mask, found[1], found[0])
    found = rbd_ros.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
    close(leading(found.by_position), by_q(lambda q: outputs(q, v, a, tau), model, q))
    close(leading(found.by_velocity), by_v(lambda v: outputs(q, v, a, tau), v))
    inputs = by_v(lambda x: outputs(q, v, np.where(mask, x, 0.0), np.where(mask, 0.0, x)),
                  np.where(mask, a, tau))
    close(leading(found.by_input), inputs)


def linkage():
    """Return a loop with a ball joint, beside a joint that mimics the crank, and a state."""
    builder = rbd_ros.ModelBuilder('linkage').link('base')
    for name in ('crank', 'coupler', 'rocker', 'gear'):
        builder.link(name, 1.0, (0.1, 0.02, -0.03), (0.01, 0.02, 0.025))
    builder.joint('crank', 'revolute', 'base', 'crank', axis=(0.1, 1.0, 0.0))
    builder.joint('ball', 'spherical', 'crank', 'coupler', xyz=(0.2, 0.0, 0.1))
    builder.joint('rocker', 'revolute', 'base', 'rocker', xyz=(0.6, 0.1, 0.0),
                  axis=(0.0, 1.0, 0.3))
    builder.joint('gear', 'revolute', 'coupler', 'gear', xyz=(0.1, 0.0, 0.0), axis=(1, 0, 1),
                  mimic=('crank', -2.0, 0.3))
    builder.constraint('pin', 'point', 'coupler', 'rocker', xyz_a=(0.5, 0.1, 0.2),
                       xyz_b=(0.1, 0.0, 0.3))
    model = builder.build()
    q = rbd_ros.random_configuration(model, 1)
    return model, q, *np.random.default_rng(1).normal(size=(3, model.nv))


@pytest.mark.long     # kernels/test_interpreted.py runs it without the compiler.
def test_derivatives_in_a_direction_are_differences_with_balls_and_mimics():
    model, q, v, a, tau = linkage()
    mask, link = np.arange(model.nv) % 2 == 0, model.link_names[-1]
    # Not along v, where the order of two derivatives would not matter.
    dq, dv = np.random.default_rng(2).normal(size=(2, model.nv))

    def along(by_position, by_velocity, *_):
        return by_position @ dq + by_velocity @ dv

    def difference(f):
        ahead, back = (f(rbd_ros.integrate(model, q, dq, t), v + t * dv) for t in (STEP, -STEP))
        return (ahead - back) / (2.0 * STEP)
    for name, rest in (('inverse_dynamics', (a,)), ('forward_dynamics', (tau,)),
                       ('hybrid_dynamics', (a, tau, mask))):
        def unknowns(q, v, name=name, rest=rest):
            found = getattr(rbd_ros, name)(model, q, v, *rest)
            return np.where(mask, found[1], found[0]) if name[0] == 'h' else found
        found = getattr(rbd_ros, f'{name}_derivatives')(model, q, v, *rest)
        close(along(*found[:2]), difference(unknowns))
    close(analysis.mass_matrix_derivatives(model, q) @ dq,
          difference(lambda q, v: rbd_ros.mass_matrix(model, q)))
    close(along(*analysis.coriolis_matrix_derivatives(model, q, v)),
          difference(lambda q, v: rbd_ros.coriolis_matrix(model, q, v)))
    close(analysis.jacobian_derivatives(model, q, link) @ dq,
          difference(lambda q, v: rbd_ros.body_jacobian(model, q, link)))
    close(along(*analysis.jacobian_dot_derivatives(model, q, v, link)),
          difference(lambda q, v: rbd_ros.jacobian_dot(model, q, v, link)))
    close(analysis.centroidal_momentum_matrix_dot(model, q, v), rate(
        lambda q: analysis.centroidal_momentum_matrix(model, q), model, q, v))
    terms, dots = rbd_ros.all_terms(model, q, v), analysis.matrices_dot(model, q, v, a)
    for k, found in enumerate(dots):
        close(found, time_rate(lambda q, v, k=k: rbd_ros.all_terms(model, q, v)[k], model, q, v,
                               a))
    close(terms.C + terms.C.T, dots.M_dot, ROUNDING)


def test_derivatives_with_external_wrenches_are_differences(robot):
    model, _, q, v, a, tau = robot
    wrenches = {model.link_names[-1]: np.arange(1.0, 7.0)}
    found = rbd_ros.inverse_dynamics_derivatives(model, q, v, a, external_wrenches=wrenches)
    close(leading(found.by_position), by_q(lambda q: rbd_ros.inverse_dynamics(
        model, q, v, a, external_wrenches=wrenches), model, q))
    found = rbd_ros.forward_dynamics_derivatives(model, q, v, tau, external_wrenches=wrenches)
    close(leading(found.by_position), by_q(lambda q: rbd_ros.forward_dynamics(
        model, q, v, tau, external_wrenches=wrenches), model, q))


def test_directional_derivatives_are_products_of_the_full_ones(robot):
    model, _, q, v, a, tau = robot
    rng = np.random.default_rng(2)
    dq, dv, da, dtau = rng.normal(size=(4, model.nv))
    full = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    found = analysis.inverse_dynamics_derivative(model, q, v, a, Variation(dq=dq, dv=dv, da=da))
    close(found, full.by_position @ dq + full.by_velocity @ dv + full.by_input @ da, ROUNDING)
    full = rbd_ros.forward_dynamics_derivatives(model, q, v, tau)
    found = analysis.forward_dynamics_derivative(model, q, v, tau,
                                                 Variation(dq=dq, dv=dv, dtau=dtau))
    close(found, full.by_position @ dq + full.by_velocity @ dv + full.by_input @ dtau, ROUNDING)
    mask = np.arange(model.nv) % 2 == 0
    full = rbd_ros.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
    found = analysis.hybrid_dynamics_derivative(
        model, q, v, a, tau, mask, Variation(dq=dq, dv=dv, da=da, dtau=dtau))
    expected = (full.by_position @ dq + full.by_velocity @ dv
                + full.by_input @ np.where(mask, da, dtau))
    close(np.where(mask, found[1], found[0]), expected, ROUNDING)
    with pytest.raises(StateError, match='dplacement is not available'):
        analysis.inverse_dynamics_derivative(
            model, q, v, a, Variation(dplacement={model.joints[0].name: np.ones(6)}))


def test_directional_derivatives_by_inertias_and_wrenches_are_differences(robot):
    model, _, q, v, a, _ = robot
    link, h = model.link_names[-1], 1e-3
    dW = np.arange(1.0, 7.0)
    found = analysis.inverse_dynamics_derivative(
        model, q, v, a, Variation(dwrenches={link: dW}), external_wrenches={link: dW})
    expected = [rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches={link: x * dW})
                for x in (1.0 + h, 1.0 - h)]
    close(found, (expected[0] - expected[1]) / (2.0 * h), 1e-8)
    dpi = np.zeros(10)
    dpi[0] = 1.0
    found = analysis.inverse_dynamics_derivative(model, q, v, a, Variation(dinertia={link: dpi}))
    heavier = rbd_ros.with_payload(model, link, h)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    close(found, (rbd_ros.inverse_dynamics(heavier, q, v, a) - tau) / h, 1e-7)


def test_derivatives_of_matrices_are_differences(robot):
    model, _, q, v, a, _ = robot
    close(leading(analysis.mass_matrix_derivatives(model, q)),
          by_q(lambda q: rbd_ros.mass_matrix(model, q), model, q))
    close(leading(analysis.gravity_torques_derivatives(model, q)),
          by_q(lambda q: rbd_ros.gravity_torques(model, q), model, q))
    for form in FORMS:
        def C(q, v):
            return rbd_ros.coriolis_matrix(model, q, v, factorization=form)     # noqa: B023
        found = analysis.coriolis_matrix_derivatives(model, q, v, factorization=form)
        close(leading(found[0]), by_q(lambda q: C(q, v), model, q))
        close(leading(found[1]), by_v(lambda v: C(q, v), v))
        dot = analysis.matrices_dot(model, q, v, a, factorization=form)
        close(dot.C_dot, time_rate(C, model, q, v, a))
        close(dot.M_dot, rate(lambda q: rbd_ros.mass_matrix(model, q), model, q, v))
        close(dot.g_dot, rate(lambda q: rbd_ros.gravity_torques(model, q), model, q, v))
        derivatives = analysis.parameter_derivatives(model, q, v, factorization=form)
        other = rbd_ros.with_payload(model, model.link_names[-1], 0.5, (0.1, 0.2, 0.3))
        dpi = (rbd_ros.model.inertial_parameters(other)
               - rbd_ros.model.inertial_parameters(model))
        close(derivatives.C @ dpi, rbd_ros.coriolis_matrix(
            other, q, v, factorization=form) - C(q, v), ROUNDING)


def test_jacobians_and_their_rates_are_those_of_poses(robot):
    model, oracle, q, v, a, _ = robot
    link = model.link_names[-1]
    oracle.jacobian(q)
    J = oracle._motion(q, link, np.eye(4)) @ oracle.G(q)
    R = oracle.poses(q)[link][:3, :3]
    close(rbd_ros.body_jacobian(model, q, link), np.kron(np.eye(2), R.T) @ J, ROUNDING)
    close(rbd_ros.world_jacobian(model, q, link), J, ROUNDING)
    rates = {rbd_ros.jacobian_dot: rbd_ros.body_jacobian,
             analysis.world_jacobian_dot: rbd_ros.world_jacobian}
    workspace = rbd_ros.Workspace(model)
    for jacobian_dot, jacobian in rates.items():
        dot = jacobian_dot(model, q, v, link)
        close(dot, rate(lambda q, f=jacobian: f(model, q, link), model, q, v))
        close(getattr(workspace, f'{jacobian_dot.__name__}_v')(q, v, link), dot @ v, ROUNDING)
    close(analysis.jacobian_ddot(model, q, v, a, link), time_rate(
        lambda q, v: rbd_ros.jacobian_dot(model, q, v, link), model, q, v, a))
    close(leading(analysis.jacobian_derivatives(model, q, link)),
          by_q(lambda q: rbd_ros.body_jacobian(model, q, link), model, q))
    found = analysis.jacobian_dot_derivatives(model, q, v, link)
    close(leading(found[0]), by_q(lambda q: rbd_ros.jacobian_dot(model, q, v, link), model, q))
    close(leading(found[1]), by_v(lambda v: rbd_ros.jacobian_dot(model, q, v, link), v))


def test_jacobians_of_the_centre_of_mass_and_momentum_are_differences(robot):
    model, oracle, q, v, _, _ = robot
    close(leading(rbd_ros.com_jacobian(model, q)),
          by_q(lambda q: rbd_ros.center_of_mass(model, q), model, q))
    close(analysis.com_jacobian_dot(model, q, v),
          rate(lambda q: rbd_ros.com_jacobian(model, q), model, q, v))
    close(analysis.centroidal_momentum_matrix(model, q),
          analysis.centroidal_momentum_matrix(oracle.tree, q) @ oracle.G(q), ROUNDING)
    close(analysis.centroidal_momentum_matrix_dot(model, q, v), rate(
        lambda q: analysis.centroidal_momentum_matrix(model, q), model, q, v))
    link = model.link_names[-1]
    close(analysis.link_com_jacobian(model, q, link),
          analysis.link_com_jacobian(oracle.tree, q, link) @ oracle.G(q), ROUNDING)
    close(analysis.link_com_world_jacobian(model, q, link),
          analysis.link_com_world_jacobian(oracle.tree, q, link) @ oracle.G(q), ROUNDING)


def test_task_space_dynamics_have_their_definitions(robot):
    model, _, q, v, _, _ = robot
    link = model.link_names[-1]
    found = rbd_ros.task_space_dynamics(model, q, v, link)
    J, J_dot = rbd_ros.body_jacobian(model, q, link), rbd_ros.jacobian_dot(model, q, v, link)
    M, C, g, *_ = rbd_ros.all_terms(model, q, v)
    close(found.J, J, ROUNDING)
    close(found.J_dot, J_dot, ROUNDING)
    if not found.damped:
        inverse = np.linalg.inv(M)
        Lambda = np.linalg.inv(J @ inverse @ J.T)
        assert relative_error(found.Lambda, Lambda) < 1e-6
        eta = Lambda @ (J @ inverse @ (C @ v + g) - J_dot @ v)
        assert relative_error(found.eta, eta) < 1e-6
    p = lambda q: rbd_ros.forward_kinematics(model, q)[model.link_index(link)][:3, 3]   # noqa
    close((rbd_ros.world_jacobian(model, q, link) @ v)[3:], rate(p, model, q, v))


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
    close(leading(found.by_position),
          by_q(lambda q: rbd_ros.inverse_dynamics(robot, q, v, a), robot, q))
    close(leading(found.by_velocity),
          by_v(lambda v: rbd_ros.inverse_dynamics(robot, q, v, a), v))
