# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""M, C and g differentiated by state, time and parameters, against differences and identities."""

from differences import (by_q, error, leading, real_robot, SCREWS, time_rate, tree, TREES,
                         trees_and_robots)
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.model.changes.inertial import inertia_of_parameters
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.se3 import Ad, ad, inertia_matrix, inverse
from rbd_ros.textbook import sums_over_links
from robots import example_urdf, load_quietly, Oracle

# Rounding, over some forty bodies.
ROUNDING = 1e-11
# Against another program: rounding, a hundred times below on the worst tree.
AGREEMENT = 1e-9
# Central differences with the step 1e-6: rounding, divided by it, and a margin.
DIFFERENCES = 1e-6

FACTORIZATIONS = ('christoffel', 'body')


@trees_and_robots
def test_mass_matrix_derivatives_are_differences(make, arguments):
    model, q, _, _ = make(*arguments)
    dM = leading(analysis.mass_matrix_derivatives(model, q))
    assert error(dM, by_q(lambda x: rbd_ros.mass_matrix(model, x), model, q)) < DIFFERENCES


@trees_and_robots
def test_coriolis_matrix_derivatives_are_differences(make, arguments):
    model, q, v, _ = make(*arguments)
    for factorization in FACTORIZATIONS:
        def C(x, w, factorization=factorization):
            return rbd_ros.coriolis_matrix(model, x, w, factorization=factorization)

        dC_q, dC_v = map(leading, analysis.coriolis_matrix_derivatives(
            model, q, v, factorization=factorization))
        assert error(dC_q, by_q(lambda x, C=C: C(x, v), model, q)) < DIFFERENCES
        # C is linear in v.
        assert error(dC_v, np.array([C(q, unit) for unit in np.eye(model.nv)])) < ROUNDING


@trees_and_robots
def test_gravity_torques_derivatives_are_differences(make, arguments):
    model, q, _, _ = make(*arguments)
    dg = analysis.gravity_torques_derivatives(model, q)
    differences = by_q(lambda x: rbd_ros.gravity_torques(model, x), model, q)
    assert error(dg, differences.T) < DIFFERENCES


@trees_and_robots
def test_matrices_dot_are_differences(make, arguments):
    model, q, v, a = make(*arguments)
    for factorization in FACTORIZATIONS:
        rates = analysis.matrices_dot(model, q, v, a, factorization=factorization)

        def terms(x, w, factorization=factorization):
            found = rbd_ros.all_terms(model, x, w, factorization=factorization)
            return np.vstack((found.M, found.C, found.g))

        expected = time_rate(terms, model, q, v, a)
        n = model.nv
        assert error(rates.M_dot, expected[:n]) < DIFFERENCES
        assert error(rates.C_dot, expected[n:2 * n]) < DIFFERENCES
        assert error(rates.g_dot, expected[2 * n]) < DIFFERENCES


@trees_and_robots
def test_rates_are_the_chain_rule_of_the_derivatives(make, arguments):
    model, q, v, a = make(*arguments)
    dM = leading(analysis.mass_matrix_derivatives(model, q))
    dg = analysis.gravity_torques_derivatives(model, q)
    for factorization in FACTORIZATIONS:
        rates = analysis.matrices_dot(model, q, v, a, factorization=factorization)
        by_position, by_velocity = map(leading, analysis.coriolis_matrix_derivatives(
            model, q, v, factorization=factorization))
        assert error(rates.M_dot, np.tensordot(v, dM, 1)) < ROUNDING
        assert error(rates.C_dot, np.tensordot(v, by_position, 1)
                     + np.tensordot(a, by_velocity, 1)) < ROUNDING
        assert error(rates.g_dot, dg @ v) < ROUNDING
        C = rbd_ros.coriolis_matrix(model, q, v, factorization=factorization)
        assert error(C + C.T, rates.M_dot) < ROUNDING
        # The derivative of dM/dt = C + C^T by v.
        assert error(by_velocity + by_velocity.transpose(0, 2, 1), dM) < ROUNDING


@trees_and_robots
def test_torque_derivative_is_the_sum_of_those_of_m_c_and_g(make, arguments):
    model, q, v, a = make(*arguments)
    differences = by_q(lambda x: rbd_ros.inverse_dynamics(model, x, v, a), model, q)
    dM = leading(analysis.mass_matrix_derivatives(model, q))
    dg = analysis.gravity_torques_derivatives(model, q)
    for factorization in FACTORIZATIONS:
        dC = leading(analysis.coriolis_matrix_derivatives(
            model, q, v, factorization=factorization)[0])
        assert error(dM @ a + dC @ v + dg.T, differences) < DIFFERENCES


def velocity_derivatives(model, q, v):
    """Return d tau / d v: the torques are quadratic in v, so differences are exact."""
    units = np.eye(model.nv)
    return np.transpose([(rbd_ros.bias_torques(model, q, v + e)
                          - rbd_ros.bias_torques(model, q, v - e)) / 2 for e in units])


@pytest.mark.parametrize('seed', TREES)
def test_torque_derivative_by_velocity_is_2c_where_v_is_dq_dt(seed):
    model, q, v, _ = tree(seed, SCREWS)
    C = rbd_ros.coriolis_matrix(model, q, v)
    assert error(2 * C, velocity_derivatives(model, q, v)) < ROUNDING


def test_torque_derivative_by_velocity_is_not_2c_for_a_ball_joint():
    model, q, v, _ = tree(2, ['spherical'])
    C = rbd_ros.coriolis_matrix(model, q, v)
    assert error(2 * C, velocity_derivatives(model, q, v)) > 1e-2


@pytest.mark.parametrize('seed', TREES)
def test_gravity_torques_derivatives_are_symmetric_where_v_is_dq_dt(seed):
    model, q, _, _ = tree(seed, SCREWS)
    dg = analysis.gravity_torques_derivatives(model, q)
    assert error(dg, dg.T) < ROUNDING


def test_gravity_torques_derivatives_are_not_symmetric_for_a_ball_joint():
    model, q, _, _ = tree(2, ['spherical'])
    dg = analysis.gravity_torques_derivatives(model, q)
    assert error(dg, dg.T) > 1e-2


@pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf', 'talos_reduced.urdf'])
def test_gravity_derivatives_and_coriolis_rate_match_pinocchio(name):
    path = example_urdf(name)
    model = load_quietly(path)
    oracle = Oracle(path, model)
    _, q, v, a = real_robot(name)
    expected = pinocchio.computeGeneralizedGravityDerivatives(oracle.pin, oracle.data,
                                                              oracle.q(q))
    got = analysis.gravity_torques_derivatives(model, q)
    assert error(got, oracle.G.T @ expected @ oracle.G) < AGREEMENT
    arguments = (oracle.pin, oracle.data, oracle.q(q), oracle.G @ v, oracle.G @ a)
    expected, _, _ = pinocchio.computeRNEADerivatives(*arguments)
    dC = leading(analysis.coriolis_matrix_derivatives(model, q, v)[0])
    got = leading(analysis.mass_matrix_derivatives(model, q)) @ a + dC @ v + got.T
    assert error(got.T, oracle.G.T @ expected @ oracle.G) < AGREEMENT


def parameters(link):
    """Return m, m c, Ixx, Iyy, Izz, Ixy, Ixz, Iyz of a link, about the origin of its frame."""
    about = (link.inertia + link.mass * (link.com @ link.com * np.eye(3)
                                         - np.outer(link.com, link.com)))
    return np.array([link.mass, *(link.mass * link.com),
                     *about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]])


def moving_links(model):
    """Return the indices of the links that joints move, in the order of the joints."""
    return [k for k, joint in enumerate(model.joints, 1) if joint.nv]


def body_parameters(model, q):
    """Return the parameters of every moving body, with all that is fixed to it."""
    T, joints = sums_over_links.poses(model, q), dict(enumerate(model.joints, 1))
    pi = {k: np.zeros(10) for k in moving_links(model)}
    for k, link in enumerate(model.links):
        body = k
        while body and body not in pi:
            body = model.link_index(joints[body].parent)
        if body:
            # The inertia of the link in the frame of the body.
            A = Ad(inverse(inverse(T[body]) @ T[k]))
            G = A.T @ inertia_matrix(link.mass, link.com, link.inertia) @ A
            pi[body] += [G[3, 3], G[2, 4], G[0, 5], G[1, 3],
                         *G[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]]
    return np.array(list(pi.values())).ravel()


@trees_and_robots
def test_matrices_are_linear_in_the_parameters(make, arguments):
    model, q, v, _ = make(*arguments)
    pi = body_parameters(model, q)
    for factorization in FACTORIZATIONS:
        derivatives = analysis.parameter_derivatives(model, q, v, factorization=factorization)
        terms = rbd_ros.all_terms(model, q, v, factorization=factorization)
        M, C, g = (x @ pi for x in derivatives)
        assert error(M + np.diag(model.armature), terms.M) < ROUNDING
        assert error(C, terms.C) < ROUNDING
        assert error(g, terms.g) < ROUNDING


@trees_and_robots
def test_column_of_a_regressor_is_the_derivative_by_its_parameter(make, arguments):
    model, q, v, a = make(*arguments)
    v_r = a[::-1].copy()
    M, C, g = analysis.parameter_derivatives(model, q, v)
    Y = np.einsum('ijk,j', M, a) + np.einsum('ijk,j', C, v) + g
    assert error(rbd_ros.torque_regressor(model, q, v, a), Y) < ROUNDING
    assert error(analysis.momentum_regressor(model, q, v), np.einsum('ijk,j', M, v)) < ROUNDING
    assert error(analysis.energy_regressor(model, q, v)[0],
                 0.5 * np.einsum('ijk,i,j', M, v, v)) < ROUNDING
    for factorization in FACTORIZATIONS:
        M, C, g = analysis.parameter_derivatives(model, q, v, factorization=factorization)
        Y = np.einsum('ijk,j', M, a) + np.einsum('ijk,j', C, v_r) + g
        assert error(analysis.slotine_li_regressor(model, q, v, v_r, a,
                                                   factorization=factorization), Y) < ROUNDING


def body_with(link, change):
    """Return a link whose ten parameters are others."""
    pi = parameters(link) + change
    mass, com = pi[0], pi[1:4] / pi[0]
    about = np.zeros((3, 3))
    about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] = pi[4:]
    about = about + np.triu(about, 1).T
    return Link(link.name, mass, com, about - mass * (com @ com * np.eye(3) - np.outer(com, com)))


@pytest.mark.parametrize('seed', TREES)
def test_parameter_derivatives_are_differences(seed):
    model, q, v, _ = tree(seed)
    body = len(moving_links(model)) // 2
    k = moving_links(model)[body]
    derivatives = analysis.parameter_derivatives(model, q, v)
    tau, step = np.ones(model.nv), 1e-6
    by_parameter = analysis.acceleration_parameter_derivatives(model, q, v, tau)
    M, a = rbd_ros.mass_matrix(model, q), rbd_ros.forward_dynamics(model, q, v, tau)
    # Forward dynamics loses as many digits as M has in its condition number.
    rounding = 1e-15 * np.linalg.cond(M) * np.max(np.abs(a)) / step
    for p, unit in enumerate(np.eye(10), 10 * body):
        changed = [rebuild(model, links=[*model.links[:k], body_with(model.links[k], x * unit),
                                         *model.links[k + 1:]]) for x in (step, -step)]
        plus, minus = (rbd_ros.all_terms(other, q, v) for other in changed)
        for got, name in zip(derivatives, ('M', 'C', 'g')):
            difference = (getattr(plus, name) - getattr(minus, name)) / (2 * step)
            # M is linear in the parameter: the error is the rounding of M over the step.
            size = np.max(np.abs(getattr(plus, name)))
            assert np.max(np.abs(got[..., p] - difference)) < DIFFERENCES * (1.0 + size)
        plus, minus = (rbd_ros.forward_dynamics(other, q, v, tau) for other in changed)
        assert np.allclose(by_parameter[:, p], (plus - minus) / (2 * step), rtol=DIFFERENCES,
                           atol=rounding + DIFFERENCES)
        plus, minus = (rbd_ros.inverse_dynamics(other, q, v, a) for other in changed)
        assert np.allclose(M @ by_parameter[:, p], (minus - plus) / (2 * step), rtol=0.0,
                           atol=DIFFERENCES * (1.0 + np.max(np.abs(a))))


@pytest.mark.parametrize('seed', TREES)
def test_parameter_derivatives_are_garofalos_columns(seed):
    # (13) as printed but for the lost dot, with A(V) of (8)-(12), for his factorization.
    model, q, v, _ = tree(seed)
    J, J_rate = sums_over_links.body_jacobian_rates(model, q, v)
    dM, dC, dg = analysis.parameter_derivatives(model, q, v, factorization='body')
    poses = sums_over_links.poses(model, q)
    a_0 = np.concatenate((np.zeros(3), -model.gravity))
    for body, k in enumerate(moving_links(model)):
        V, own = J[k] @ v, slice(10 * body, 10 * body + 10)
        for j in range(model.nv):
            A = momentum_columns(J[k, :, j])
            later = momentum_columns(ad(V) @ J[k, :, j] + J_rate[k, :, j])
            assert np.allclose(dM[:, j, own], J[k].T @ A, rtol=0.0, atol=ROUNDING)
            assert np.allclose(dC[:, j, own], J[k].T @ (later - ad(V).T @ A), rtol=0.0,
                               atol=ROUNDING)
        assert np.allclose(dg[:, own], J[k].T @ momentum_columns(Ad(inverse(poses[k])) @ a_0),
                           rtol=0.0, atol=ROUNDING)


def momentum_columns(V):
    """Return A(V) with A(V) pi = G V [Garofalo et al. (8)-(12)], angular first."""
    (wx, wy, wz), (x, y, z) = V[:3], V[3:]
    return np.array([[0, 0, z, -y, wx, 0, 0, wy, wz, 0], [0, -z, 0, x, 0, wy, 0, wx, 0, wz],
                     [0, y, -x, 0, 0, 0, wz, 0, wx, wy], [x, 0, -wz, wy, 0, 0, 0, 0, 0, 0],
                     [y, wz, 0, -wx, 0, 0, 0, 0, 0, 0], [z, -wy, wx, 0, 0, 0, 0, 0, 0, 0]])


def test_momentum_is_linear_in_the_parameters():
    rng = np.random.default_rng(0)
    for model in (tree(seed)[0] for seed in range(5)):
        for link in model.links:
            G = inertia_matrix(link.mass, link.com, link.inertia)
            V = rng.normal(size=6)
            assert error(inertia_of_parameters(parameters(link)), G) < ROUNDING
            assert error(momentum_columns(V) @ parameters(link), G @ V) < ROUNDING


def test_wrong_factorizations_are_refused():
    model, q, v, a = tree(4)
    for call in (analysis.coriolis_matrix_derivatives, analysis.parameter_derivatives):
        with pytest.raises(rbd_ros.StateError, match='factorization'):
            call(model, q, v, factorization='other')
    with pytest.raises(rbd_ros.StateError, match='factorization'):
        analysis.matrices_dot(model, q, v, a, factorization='other')
    with pytest.raises(rbd_ros.StateError, match='factorization'):
        sums_over_links.coriolis_matrix(model, q, v, factorization='other')
