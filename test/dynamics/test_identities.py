# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What must hold for every robot and state, whatever the numbers are."""

import numpy as np
import pytest
import rbd_ros
from robots import example_urdf, load_quietly, random_state, random_tree, relative_error

# Rounding, over some thirty bodies.
ROUNDING = 1e-11
# Central differences with the step 1e-6 lose half the digits.
DIFFERENCES = 1e-7
STEP = 1e-6
# Solving with M loses as many digits as its condition number has.
AGREEMENT = 1e-9


@pytest.fixture(scope='module', params=[*range(12), 'panda.urdf', 'anymal-kinova.urdf'])
def model(request):
    """Return a random tree, or a real robot."""
    if isinstance(request.param, str):
        return load_quietly(example_urdf(request.param))
    return random_tree(request.param, 4 + 2 * request.param)


def test_mass_matrix_is_symmetric_positive_definite(model):
    q, _, _ = random_state(model, 1)
    M = rbd_ros.mass_matrix(model, q)
    assert np.array_equal(M, M.T)
    assert np.all(np.linalg.eigvalsh(M) > 0.0)


def test_mass_matrix_columns_are_torques_of_unit_accelerations(model):
    q, _, _ = random_state(model, 1)
    zero = np.zeros(model.nv)
    g = rbd_ros.gravity_torques(model, q)
    columns = [rbd_ros.inverse_dynamics(model, q, zero, unit) - g for unit in np.eye(model.nv)]
    assert relative_error(rbd_ros.mass_matrix(model, q), np.transpose(columns)) < ROUNDING


@pytest.mark.parametrize('factorization', ['christoffel', 'body'])
def test_mdot_minus_2c_is_skew(model, factorization):
    q, v, _ = random_state(model, 2)
    M_dot = (rbd_ros.mass_matrix(model, q + STEP * v)
             - rbd_ros.mass_matrix(model, q - STEP * v)) / (2 * STEP)
    C = rbd_ros.coriolis_matrix(model, q, v, factorization=factorization)
    assert relative_error(C + C.T, M_dot) < DIFFERENCES


@pytest.mark.parametrize('factorization', ['christoffel', 'body'])
def test_c_times_v_is_the_coriolis_torque(model, factorization):
    q, v, _ = random_state(model, 3)
    C = rbd_ros.coriolis_matrix(model, q, v, factorization=factorization)
    expected = rbd_ros.bias_torques(model, q, v) - rbd_ros.gravity_torques(model, q)
    assert relative_error(C @ v, expected) < ROUNDING


def test_equations_of_motion_add_up(model):
    q, v, a = random_state(model, 4)
    terms = rbd_ros.all_terms(model, q, v)
    assert relative_error(terms.M @ a + terms.C @ v + terms.g,
                          rbd_ros.inverse_dynamics(model, q, v, a)) < ROUNDING
    assert relative_error(terms.g, rbd_ros.gravity_torques(model, q)) < ROUNDING
    assert relative_error(terms.coriolis_torques, terms.C @ v) < ROUNDING


def test_forward_inverts_inverse(model):
    q, v, a = random_state(model, 5)
    wrenches = {model.link_names[-1]: np.arange(6.0)}
    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches)
    got = rbd_ros.forward_dynamics(model, q, v, tau, external_wrenches=wrenches)
    # Loses as many digits as the mass matrix has in its condition number.
    assert relative_error(got, a) < 1e-15 * np.linalg.cond(rbd_ros.mass_matrix(model, q)) + 1e-12


def test_hybrid_reduces_to_inverse_and_to_forward(model):
    q, v, a = random_state(model, 6)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    nothing = np.full(model.nv, np.nan)
    all_a, all_tau = rbd_ros.hybrid_dynamics(model, q, v, a, nothing, np.full(model.nv, True))
    assert np.array_equal(all_a, a)
    assert relative_error(all_tau, tau) < ROUNDING
    all_a, all_tau = rbd_ros.hybrid_dynamics(model, q, v, nothing, tau, np.full(model.nv, False))
    assert relative_error(all_a, rbd_ros.forward_dynamics(model, q, v, tau)) < ROUNDING
    assert np.array_equal(all_tau, tau)


@pytest.mark.parametrize('seed', range(4))
def test_hybrid_matches_the_dense_formula(model, seed):
    q, v, a = random_state(model, seed)
    rng = np.random.default_rng(seed)
    tau, prescribed = rng.normal(scale=10.0, size=model.nv), rng.random(model.nv) < 0.5
    wrenches = {model.link_names[-1]: rng.normal(size=6)}
    got_a, got_tau = rbd_ros.hybrid_dynamics(model, q, v, a, tau, prescribed,
                                             external_wrenches=wrenches)
    M = rbd_ros.mass_matrix(model, q)
    b = rbd_ros.bias_torques(model, q, v, external_wrenches=wrenches)
    p = ~prescribed
    a = np.where(prescribed, a, 0.0)
    a[p] = np.linalg.solve(M[np.ix_(p, p)], (tau - b - M @ a)[p])          # Kim (33)
    allowed = 1e-15 * np.linalg.cond(M) + 1e-12
    assert relative_error(got_a, a) < allowed
    assert relative_error(got_tau, np.where(p, tau, M @ a + b)) < 100 * allowed


def test_energy_changes_by_the_power_of_the_torques(model):
    q, v, a = random_state(model, 7)

    def energy(t):
        q_t, v_t = q + t * v + 0.5 * t * t * a, v + t * a
        height = rbd_ros.center_of_mass(model, q_t)
        return (0.5 * v_t @ rbd_ros.mass_matrix(model, q_t) @ v_t
                - model.mass * model.gravity @ height)

    power = v @ rbd_ros.inverse_dynamics(model, q, v, a)
    step = 1e-5
    rate = (energy(step) - energy(-step)) / (2 * step)
    assert abs(rate - power) < DIFFERENCES * (abs(power) + abs(energy(0.0)))


def test_external_wrench_acts_through_the_jacobian(model):
    q, v, a = random_state(model, 8)
    for link in model.link_names[::3]:
        wrench = np.random.default_rng(8).normal(size=6)
        change = (rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches={link: wrench})
                  - rbd_ros.inverse_dynamics(model, q, v, a))
        J = rbd_ros.body_jacobian(model, q, link)
        assert np.max(np.abs(change + J.T @ wrench)) < 1e-10


def test_gravity_torque_is_the_weight_seen_by_the_com_jacobian(model):
    q, _, _ = random_state(model, 9)
    weight = model.mass * model.gravity
    expected = -rbd_ros.com_jacobian(model, q).T @ weight                  # Garofalo (7)
    assert relative_error(rbd_ros.gravity_torques(model, q), expected) < ROUNDING


def test_jacobians_are_derivatives_of_poses(model):
    q, v, _ = random_state(model, 10)
    forward = rbd_ros.forward_kinematics(model, q + STEP * v)
    backward = rbd_ros.forward_kinematics(model, q - STEP * v)
    poses = rbd_ros.forward_kinematics(model, q)
    for k in range(0, len(model.links), 4):
        rate = (forward[k] - backward[k]) / (2 * STEP)
        turning = rate[:3, :3] @ poses[k, :3, :3].T
        twist = [turning[2, 1], turning[0, 2], turning[1, 0], *rate[:3, 3]]
        J = rbd_ros.world_jacobian(model, q, model.link_names[k])
        assert np.max(np.abs(J @ v - twist)) < 1e-7 * (1.0 + np.max(np.abs(twist)))
        R = poses[k, :3, :3]
        body = rbd_ros.body_jacobian(model, q, model.link_names[k])
        assert np.allclose(R @ body[:3], J[:3], atol=1e-12)
        assert np.allclose(R @ body[3:], J[3:], atol=1e-12)
    step = rbd_ros.center_of_mass(model, q + STEP * v) - rbd_ros.center_of_mass(
        model, q - STEP * v)
    J = rbd_ros.com_jacobian(model, q)
    assert np.max(np.abs(J @ v - step / (2 * STEP))) < 1e-7 * (1.0 + np.max(np.abs(J)))


def test_factorizations_agree_where_no_path_has_three_joints_and_differ_beyond():
    for count, same in ((2, True), (3, False)):
        model = random_tree(5, count, kinds=('revolute',))
        chain = rbd_ros.model.build_model('chain', model.links, [
            type(joint)(**{**vars(joint), 'parent': f'link{k}'})
            for k, joint in enumerate(model.joints)])
        q, v, _ = random_state(chain, 1)
        one = rbd_ros.coriolis_matrix(chain, q, v)
        other = rbd_ros.coriolis_matrix(chain, q, v, factorization='body')
        assert (relative_error(one, other) < ROUNDING) == same


@pytest.mark.parametrize('seed', range(8))
def test_a_joint_in_line_with_another_moves_no_inertia_despite_rounding(seed):
    # The second turns about the axis of the first: it leaves nothing for that one to move.
    rng = np.random.default_rng(seed)
    axis, rpy = rng.normal(size=3), rng.uniform(-3.0, 3.0, 3)
    model = (rbd_ros.ModelBuilder('r').link('a').link('b')
             .link('c', 1.7, rng.normal(size=3), (0.1, 0.2, 0.25))
             .joint('i', 'revolute', 'a', 'b', xyz=rng.normal(size=3), rpy=rpy, axis=axis)
             .joint('j', 'revolute', 'b', 'c', xyz=0.3 * axis, axis=axis).build())
    with pytest.raises(rbd_ros.SingularError, match="'i' moves no inertia"):
        rbd_ros.forward_dynamics(model, *rng.normal(size=(3, 2)))


def test_every_algorithm_includes_rotors():
    plain = random_tree(3, 6, kinds=('revolute', 'prismatic'))
    rotors = np.linspace(0.1, 0.6, plain.nv)
    model = rbd_ros.with_armature(plain, dict(zip(plain.velocity_names, rotors)))
    q, v, a = random_state(model, 3)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    assert relative_error(tau, rbd_ros.inverse_dynamics(plain, q, v, a) + rotors * a) < ROUNDING
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < AGREEMENT
    given = np.arange(model.nv) % 2 == 0
    for got, expected in zip(rbd_ros.hybrid_dynamics(model, q, v, a, tau, given), (a, tau)):
        assert relative_error(got, expected) < AGREEMENT
    by_a = rbd_ros.inverse_dynamics_derivatives(model, q, v, a).by_input
    assert relative_error(by_a, rbd_ros.mass_matrix(plain, q) + np.diag(rotors)) < ROUNDING
    inverse = rbd_ros.forward_dynamics_derivatives(model, q, v, tau).by_input
    assert relative_error(inverse @ by_a, np.eye(model.nv)) < AGREEMENT
