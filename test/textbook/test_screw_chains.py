# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Chains as products of exponentials, against their models and against hand calculations."""

from differences import error, TREES
import numpy as np
import pytest
import rbd_ros
from rbd_ros import textbook
from rbd_ros.model.se3 import Ad, ad, exp, inertia_matrix, inverse, skew
from robots import random_inertia, random_pose

# Rounding, over some ten bodies.
ROUNDING = 1e-11
# Central differences with the step 1e-6.
STEP, DIFFERENCES = 1e-6, 1e-6


def random_screw(rng, kind):
    """Return a unit screw of a kind, about an axis anywhere."""
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    if kind == 'prismatic':
        return np.concatenate((np.zeros(3), axis))
    pitch = 0.2 if kind == 'helical' else 0.0
    return np.concatenate((axis, np.cross(rng.normal(scale=0.3, size=3), axis) + pitch * axis))


def random_chain(seed, lengths=None):
    """Return a chain, a state of it and a wrench at its tip."""
    rng = np.random.default_rng(seed)
    n = 1 + seed % 6
    kinds = [('revolute', 'prismatic', 'helical')[rng.integers(3)] for _ in range(n)]
    screws = np.array([random_screw(rng, kind) for kind in kinds])
    if lengths is not None:
        screws = screws * lengths(rng, n)[:, None]
    inertias = [inertia_matrix(rng.uniform(0.5, 2.0), rng.normal(scale=0.1, size=3),
                               random_inertia(rng)) for _ in range(n)]
    chain = textbook.ScrewChain([random_pose(rng) for _ in range(n)], screws, inertias,
                                gravity=rng.normal(scale=5.0, size=3), tip=random_pose(rng))
    return chain, *rng.normal(size=(3, n)), rng.normal(size=6), kinds


@pytest.mark.parametrize('seed', TREES)
def test_chain_and_its_model_agree(seed):
    chain, theta, rates, accelerations, wrench, kinds = random_chain(seed)
    model = chain.model()
    assert [joint.kind for joint, _, _ in model.moving_joints] == kinds
    n = len(theta)
    poses = rbd_ros.forward_kinematics(model, theta)
    links = [model.link_index(f'link_{k}') for k in range(1, n + 1)]
    assert error(poses[links], chain.poses(theta)) < ROUNDING
    tip = poses[model.link_index('tip')]
    assert error(tip, chain.poses(theta)[-1] @ chain.tip) < ROUNDING
    assert error(chain.tip_jacobian(theta),
                 rbd_ros.body_jacobian(model, theta, 'tip')) < ROUNDING
    # The robot exerts F_tip, so that minus F_tip acts on it.
    wrenches = {'tip': -wrench}
    tau = chain.inverse_dynamics(theta, rates, accelerations, tip_wrench=wrench)
    assert error(tau, rbd_ros.inverse_dynamics(model, theta, rates, accelerations,
                                               external_wrenches=wrenches)) < ROUNDING
    M = chain.mass_matrix(theta)
    assert error(M, rbd_ros.mass_matrix(model, theta)) < ROUNDING
    got = chain.forward_dynamics(theta, rates, tau, tip_wrench=wrench)
    allowed = 1e-9 + 1e-15 * np.linalg.cond(M)
    assert error(got, accelerations) < allowed
    assert error(got, rbd_ros.forward_dynamics(model, theta, rates, tau,
                                               external_wrenches=wrenches)) < allowed


@pytest.mark.parametrize('seed', TREES)
def test_tip_wrench_adds_the_transposed_jacobian_times_it(seed):
    # L (9.81).
    chain, theta, rates, accelerations, wrench, _ = random_chain(seed)
    tau = chain.inverse_dynamics(theta, rates, accelerations, tip_wrench=wrench)
    model = chain.model()
    terms = rbd_ros.all_terms(model, theta, rates)
    expected = (terms.M @ accelerations + terms.coriolis_torques + terms.g
                + chain.tip_jacobian(theta).T @ wrench)
    assert error(tau, expected) < ROUNDING


@pytest.mark.parametrize('seed', TREES)
def test_scaled_screws_give_the_same_results(seed):
    chain, theta, rates, accelerations, wrench, _ = random_chain(
        seed, lambda rng, n: rng.uniform(0.2, 3.0, n))
    with pytest.raises(rbd_ros.ModelError, match=r'screw \d has length .* unit_screws'):
        chain.model()
    units, lengths = textbook.unit_screws(chain.screws)
    unit_chain = textbook.ScrewChain(chain.home_poses, units, chain.inertias, chain.gravity,
                                     chain.tip)
    model = unit_chain.model()
    assert error(chain.poses(theta), unit_chain.poses(lengths * theta)) < ROUNDING
    tau = chain.inverse_dynamics(theta, rates, accelerations, tip_wrench=wrench)
    expected = lengths * rbd_ros.inverse_dynamics(
        model, lengths * theta, lengths * rates, lengths * accelerations,
        external_wrenches={'tip': -wrench})
    assert error(tau, expected) < ROUNDING
    got = chain.forward_dynamics(theta, rates, tau, tip_wrench=wrench)
    cond = np.linalg.cond(chain.mass_matrix(theta))
    assert error(got, accelerations) < 1e-9 + 1e-15 * cond


@pytest.mark.parametrize('seed', range(10))
def test_product_of_exponentials_has_two_forms(seed):
    # exp([S_i] theta) M_i = M_i exp([A_i] theta), so T_{i-1,i} = M_{i-1,i} exp([A_i] theta_i).
    chain, theta, *_ = random_chain(seed)
    T = np.eye(4)
    for M, A, x, expected in zip(chain.relative_poses(), chain.body_screws(), theta,
                                 chain.poses(theta)):
        T = T @ M @ exp(A * x)
        assert error(T, expected) < ROUNDING
    home = np.eye(4)
    for M, expected in zip(chain.relative_poses(), chain.home_poses):
        home = home @ M
        assert error(home, expected) < ROUNDING


@pytest.mark.parametrize('seed', range(10))
def test_twists_and_accelerations_are_those_of_the_poses(seed):
    # L (9.44)-(9.48): Vdot_i = A a + Ad Vdot_{i-1} + [V_i, A v], with T_{i,i-1} where (9.47) has
    # T_{i-1,i}.
    chain, theta, rates, accelerations, *_ = random_chain(seed)
    model = chain.model()

    def twists(t):
        q, v = theta + t * rates + 0.5 * t * t * accelerations, rates + t * accelerations
        return np.array([rbd_ros.body_jacobian(model, q, f'link_{k}') @ v
                         for k in range(1, len(theta) + 1)])

    expected = (twists(STEP) - twists(-STEP)) / (2 * STEP)
    V, V_rate = np.zeros(6), np.zeros(6)
    for k, (M, A) in enumerate(zip(chain.relative_poses(), chain.body_screws())):
        to_link = Ad(inverse(M @ exp(A * theta[k])))
        before = to_link @ V
        V = before + A * rates[k]
        V_rate = A * accelerations[k] + to_link @ V_rate + ad(V) @ A * rates[k]
        assert error(ad(before) @ A, ad(V) @ A) < ROUNDING
        assert error(V, twists(0.0)[k]) < ROUNDING
        assert error(V_rate, expected[k]) < DIFFERENCES


def component_form(chain, theta, rates, accelerations):
    """Return the torques by the equations in components of the notes, sections 5 to 7."""
    w, v, w_rate, v_rate = np.zeros((4, 3))
    v_rate = -chain.gravity
    links = []
    for M, A, G, x, dx, ddx in zip(chain.relative_poses(), chain.body_screws(), chain.inertias,
                                   theta, rates, accelerations):
        # R and p of T_{i,i-1}, where the notes print R_{i,i+1}.
        to_link = exp(-A * x) @ inverse(M)
        R, p = to_link[:3, :3], to_link[:3, 3]
        z, b = A[:3], A[3:]
        v_rate = (skew(p) @ R @ w_rate + R @ v_rate + ddx * b)
        v = skew(p) @ R @ w + R @ v + dx * b
        w_rate = R @ w_rate + ddx * z
        w = R @ w + dx * z
        w_rate = w_rate + dx * np.cross(w, z)
        v_rate = v_rate + dx * (np.cross(v, z) + np.cross(w, b))
        inertia, m = G[:3, :3], G[5, 5]
        n = inertia @ w_rate + np.cross(w, inertia @ w)
        links.append((to_link, z, b, n, m * v_rate + m * np.cross(w, v)))
    n, f, tau = np.zeros(3), np.zeros(3), []
    for to_link, z, b, n_own, f_own in reversed(links):
        n, f = n + n_own, f + f_own
        tau.append(n @ z + f @ b)
        # Ad(T_{i,i-1})^T = [R^T, -R^T [p]; 0, R^T].
        R, p = to_link[:3, :3], to_link[:3, 3]
        n, f = R.T @ n - R.T @ skew(p) @ f, R.T @ f
    return tau[::-1]


@pytest.mark.parametrize('seed', TREES)
def test_component_form_of_the_notes_is_the_recursion(seed):
    chain, theta, rates, accelerations, _, _ = random_chain(seed)
    # Frames at centres of mass, which the notes assume.
    rng = np.random.default_rng(seed)
    chain = textbook.ScrewChain(
        chain.home_poses, chain.screws,
        [inertia_matrix(1.5, np.zeros(3), random_inertia(rng)) for _ in theta], chain.gravity)
    assert error(component_form(chain, theta, rates, accelerations),
                 chain.inverse_dynamics(theta, rates, accelerations)) < ROUNDING


def test_two_link_terms_of_the_notes_with_their_errata():
    # Sections 9.1, 10.1 and 10.2, at rates 1 and 2 and no acceleration.
    rng = np.random.default_rng(5)
    screws = np.array([random_screw(rng, 'revolute') for _ in range(2)])
    home = [random_pose(rng) for _ in range(2)]
    I_1, I_2 = random_inertia(rng), random_inertia(rng)
    chain = textbook.ScrewChain(home, screws, [inertia_matrix(1.5, np.zeros(3), inertia)
                                               for inertia in (I_1, I_2)], gravity=np.zeros(3))
    theta, (d1, d2) = np.array([0.4, -0.9]), (1.3, -0.7)
    (z1, b1), (z2, b2) = (A.reshape(2, 3) for A in chain.body_screws())
    T_21 = inverse(chain.relative_poses()[1] @ exp(chain.body_screws()[1] * theta[1]))
    R, p = T_21[:3, :3], T_21[:3, 3]
    r = R @ z1
    w1, w2 = d1 * z1, d1 * r + d2 * z2
    v2 = np.cross(p, R @ w1) + R @ (d1 * b1) + d2 * b2
    # 9.1: the angular acceleration is not zero.
    w2_rate = d2 * np.cross(w2, z2)
    model = chain.model()
    rates = np.array([d1, d2])
    acceleration = rbd_ros.jacobian_dot(model, theta, rates, 'link_2') @ rates
    assert error(w2_rate, acceleration[:3]) < ROUNDING
    assert np.max(np.abs(w2_rate)) > 0.1
    # 10.1: n_2 with the three terms that the notes leave out.
    n2 = (I_2 @ w2_rate + d1 ** 2 * np.cross(r, I_2 @ r)
          + d1 * d2 * (np.cross(r, I_2 @ z2) + np.cross(z2, I_2 @ r))
          + d2 ** 2 * np.cross(z2, I_2 @ z2))
    assert error(n2, I_2 @ acceleration[:3] + np.cross(w2, I_2 @ w2)) < ROUNDING
    # 10.2: v_2 x z_2.
    expanded = (d1 * np.cross(np.cross(p, r), z2) + d1 * np.cross(R @ b1, z2)
                + d2 * np.cross(b2, z2))
    assert error(np.cross(v2, z2), expanded) < ROUNDING
    f2 = 1.5 * (d2 * (np.cross(v2, z2) + np.cross(w2, b2)) + np.cross(w2, v2))
    # 10.3, 10.4: torques, with R_12 where the notes print R_21.
    tau_2 = n2 @ z2 + f2 @ b2
    n1 = R.T @ n2 - R.T @ skew(p) @ f2 + np.cross(w1, I_1 @ w1)
    f1 = R.T @ f2 + 1.5 * np.cross(w1, d1 * b1)
    got = chain.inverse_dynamics(theta, rates, np.zeros(2))
    assert error(got, np.array([n1 @ z1 + f1 @ b1, tau_2])) < ROUNDING
    # 10.5: what vanishes.
    assert abs(z1 @ np.cross(w1, I_1 @ w1)) < ROUNDING
    assert abs(b1 @ np.cross(z1, b1)) < ROUNDING
    # 11: the same through C by Christoffel symbols.
    C = textbook.christoffel_coriolis_matrix(model, theta, rates)
    assert error(got, C @ rates) < ROUNDING


def test_a_moving_base_is_carried_along():
    chain, theta, rates, accelerations, _, _ = random_chain(4)
    twist = np.array([0.3, -0.5, 0.2, 1.0, 0.4, -0.7])
    got = chain.inverse_dynamics(theta, rates, accelerations, base_twist=twist)
    expected = textbook.stacked_inverse_dynamics(chain.model(), theta, rates, accelerations,
                                                 base_twist=twist).tau
    assert error(got, expected) < ROUNDING


def test_a_tip_wrench_counted_twice_changes_accelerations():
    # GetJointAccel of the book takes F_tip in gamma and in tau_ext.
    chain, theta, rates, accelerations, wrench, _ = random_chain(11)
    tau = chain.inverse_dynamics(theta, rates, accelerations, tip_wrench=wrench)
    bias = chain.inverse_dynamics(theta, rates, np.zeros(len(theta)), tip_wrench=wrench)
    twice = np.linalg.solve(chain.mass_matrix(theta),
                            tau - bias - chain.tip_jacobian(theta).T @ wrench)
    assert error(twice, accelerations) > 1e-2
    assert error(chain.forward_dynamics(theta, rates, tau, tip_wrench=wrench),
                 accelerations) < 1e-9


@pytest.mark.parametrize('change, message', [
    ({'screws': [np.zeros(6)]}, 'screw 1'),
    ({'screws': []}, 'at least one screw'),
    ({'home_poses': np.zeros((2, 4, 4))}, 'home_poses'),
    ({'home_poses': [np.diag([1.0, 1.0, -1.0, 1.0])]}, 'home pose 1 is not a pose'),
    ({'tip': 2.0 * np.eye(4)}, 'tip is not a pose'),
    ({'gravity': [0.0, np.nan, 0.0]}, 'gravity'),
    ({'inertias': [np.eye(3)]}, 'inertias'),
])
def test_invalid_chains_are_refused(change, message):
    parts = {'home_poses': [np.eye(4)], 'screws': [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]],
             'inertias': [np.eye(6)]}
    with pytest.raises(rbd_ros.ModelError, match=message):
        textbook.ScrewChain(**{**parts, **change})


def test_matrices_that_are_not_inertias_make_no_model():
    screw = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    chain = textbook.ScrewChain([np.eye(4)], screw, [np.diag([1, 1, 1, 1, 2, 1.0])])
    with pytest.raises(rbd_ros.ModelError, match='link_1: its 6 x 6 inertia'):
        chain.model()
    with pytest.raises(rbd_ros.ModelError, match='screw 1'):
        textbook.unit_screws([[0.0] * 6])
    with pytest.raises(rbd_ros.StateError, match='theta has the shape'):
        chain.poses([0.0, 1.0])
    with pytest.raises(rbd_ros.StateError, match='tip_wrench'):
        chain.inverse_dynamics([0.0], [0.0], [0.0], tip_wrench=[1.0])
