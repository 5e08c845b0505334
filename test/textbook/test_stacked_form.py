# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The stacked equations, against recursions and properties of their matrices."""

from dataclasses import replace

from differences import error, SCREWS, time_rate, tree, TREES, trees_and_robots
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, textbook
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.joints import DRIVE, Joint, NEW_LIMITS
from rbd_ros.model.se3 import Ad, ad, inverse, pose
from rbd_ros.textbook import sums_over_links
from robots import random_inertia, random_pose
from scipy.spatial.transform import Rotation

# Rounding, over some forty bodies and the inverse of a matrix of six rows for each.
ROUNDING = 1e-10


def depths(model):
    """Return for each link how many joints lead to it."""
    depth = [0]
    for joint in model.joints:
        depth.append(depth[model.link_index(joint.parent)] + 1)
    return depth


@trees_and_robots
def test_gamma_to_the_depth_is_zero(make, arguments):
    model, q, _, _ = make(*arguments)
    Gamma = textbook.stacked_matrices(model, q).Gamma
    depth = max(depths(model))
    assert not np.any(np.linalg.matrix_power(Gamma, depth))
    assert np.any(np.linalg.matrix_power(Gamma, depth - 1))


@trees_and_robots
def test_blocks_of_l_are_adjoints_of_relative_poses(make, arguments):
    model, q, _, _ = make(*arguments)
    L = textbook.stacked_matrices(model, q).L
    T = sums_over_links.poses(model, q)
    expected = np.zeros_like(L)
    for i in range(1, len(T)):
        j = i
        while j:
            expected[6 * i - 6:6 * i, 6 * j - 6:6 * j] = Ad(inverse(T[i]) @ T[j])
            j = model.link_index(model.joints[j - 1].parent)
    assert error(L, expected) < ROUNDING
    # The sum of the powers of Gamma.
    Gamma = textbook.stacked_matrices(model, q).Gamma
    power, total = np.eye(len(L)), np.eye(len(L))
    for _ in range(max(depths(model))):
        power = power @ Gamma
        total += power
    assert error(L, total) < ROUNDING


@trees_and_robots
def test_stacked_terms_are_those_of_the_recursions(make, arguments):
    model, q, v, _ = make(*arguments)
    M, C, g = textbook.stacked_terms(model, q, v)
    terms = rbd_ros.all_terms(model, q, v)
    assert error(M, terms.M) < ROUNDING
    assert error(C @ v, terms.coriolis_torques) < ROUNDING
    assert error(g, terms.g) < ROUNDING


@trees_and_robots
def test_stacked_inverse_dynamics_is_the_recursion(make, arguments):
    model, q, v, a = make(*arguments)
    rng = np.random.default_rng(7)
    wrenches = {name: rng.normal(size=6) for name in model.link_names[::3]}
    result = textbook.stacked_inverse_dynamics(model, q, v, a, external_wrenches=wrenches)
    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches)
    assert error(result.tau, tau) < ROUNDING
    J, J_rate = sums_over_links.body_jacobian_rates(model, q, v)
    assert error(result.V, (J @ v)[1:]) < ROUNDING
    lift = [Ad(inverse(T)) @ [0.0, 0.0, 0.0, *-model.gravity]
            for T in sums_over_links.poses(model, q)]
    assert error(result.V_rate, (J @ a + J_rate @ v + lift)[1:]) < ROUNDING
    # Each joint's torque is its wrench along its motion.
    A = textbook.stacked_matrices(model, q).A
    armature = model.armature * a
    assert error(A.T @ result.F.ravel() + armature, tau) < ROUNDING


@pytest.mark.parametrize('seed', TREES)
def test_a_moving_base_is_a_free_joint_that_is_prescribed(seed):
    model, q, v, a = tree(seed)
    rng = np.random.default_rng(seed)
    twist, twist_rate = rng.normal(size=(2, 6))
    floating = rbd_ros.with_floating_base(model)
    q_base = rbd_ros.neutral(floating)[:7]
    tau = rbd_ros.inverse_dynamics(floating, [*q_base, *q], [*twist, *v], [*twist_rate, *a])[6:]
    result = textbook.stacked_inverse_dynamics(model, q, v, a, base_twist=twist,
                                               base_acceleration=twist_rate)
    assert error(result.tau, tau) < ROUNDING
    # The base matters: Lynch and Park's (9.83) leaves it out.
    still = textbook.stacked_inverse_dynamics(model, q, v, a)
    assert error(still.tau, tau) > 1e-3


@pytest.mark.parametrize('seed', TREES)
def test_printed_sign_of_ad_is_wrong(seed):
    # (9.83) has + ad_{A v} Gamma; this is what it would give.
    model, q, v, _ = tree(seed)
    if max(depths(model)) < 2:
        model, q, v, _ = tree(seed + 1000)
    Gamma, L, A, A_rate, G, _ = textbook.stacked_matrices(model, q, v)
    N = len(model.links) - 1
    V, relative = (x.reshape(N, 6) for x in (L @ A @ v, A @ v))
    right, printed = np.zeros((2, 6 * N))
    for i in range(N):
        rows = slice(6 * i, 6 * i + 6)
        turn = ad(relative[i]) @ (Gamma @ V.ravel())[rows]
        right[rows], printed[rows] = -turn, turn
    wrench = np.concatenate([ad(V[i]).T @ (G @ V.ravel())[6 * i:6 * i + 6] for i in range(N)])
    expected = rbd_ros.all_terms(model, q, v).coriolis_torques
    assert error(A.T @ L.T @ (G @ L @ (right + A_rate @ v) - wrench), expected) < ROUNDING
    if np.any(printed):
        assert error(A.T @ L.T @ (G @ L @ (printed + A_rate @ v) - wrench), expected) > 1e-6


def chain(kinds, axes, seed=0):
    """Return a serial chain of joints about given axes, with random inertias."""
    rng = np.random.default_rng(seed)
    links = [Link(f'link{k}', 1.0 + k, rng.normal(scale=0.3, size=3), random_inertia(rng))
             for k in range(len(kinds) + 1)]
    joints = [Joint(f'j{k}', kind, f'link{k}', f'link{k + 1}',
                    pose(np.eye(3), rng.normal(size=3)), axis=np.array(axis, float))
              for k, (kind, axis) in enumerate(zip(kinds, axes))]
    return rbd_ros.model.build_model('chain', links, joints)


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    return rbd_ros.random_configuration(model, rng), rng.normal(size=model.nv)


X, Y, Z = np.eye(3)


@pytest.mark.parametrize('kinds, axes, same_body, same_stacked', [
    (['revolute'], [Z], True, True),
    (['revolute'] * 2, [Z, X], True, False),
    (['revolute', 'prismatic'], [Z, X], True, False),
    (['universal'], [X], True, False),
    (['prismatic'] * 3, [X, Y, Z], True, True),
    (['revolute'] * 3, [Z, X, Y], False, False),
    (['revolute'] * 3, [Z, Z, Z], False, False),
    (['spherical'], [X], False, False),
    (['free'], [X], False, False),
])
def test_where_the_three_coriolis_matrices_are_equal(kinds, axes, same_body, same_stacked):
    model = chain(kinds, axes)
    q, v = state(model)
    by_christoffel = rbd_ros.coriolis_matrix(model, q, v)
    by_body = rbd_ros.coriolis_matrix(model, q, v, factorization='body')
    stacked = textbook.stacked_terms(model, q, v).C
    size = np.max(np.abs(rbd_ros.mass_matrix(model, q)))
    different = 1e-4 * size
    assert np.max(np.abs(by_christoffel @ v - by_body @ v)) < ROUNDING * size
    assert np.max(np.abs(by_christoffel @ v - stacked @ v)) < ROUNDING * size
    for other, same in ((by_body, same_body), (stacked, same_stacked)):
        apart = np.max(np.abs(by_christoffel - other))
        assert apart < ROUNDING * size if same else apart > different


def test_branches_with_two_joints_on_every_path_have_equal_factorizations():
    links = chain(['revolute'] * 4, [Z, X, Y, Z]).links
    joints = [Joint('a', 'revolute', 'link0', 'link1', axis=Z),
              Joint('b', 'prismatic', 'link1', 'link2', pose(np.eye(3), X), axis=Y),
              Joint('c', 'revolute', 'link1', 'link3', pose(np.eye(3), Y), axis=X),
              Joint('d', 'revolute', 'link0', 'link4', pose(np.eye(3), Z), axis=X)]
    model = rbd_ros.model.build_model('branches', links, joints)
    q, v = state(model)
    C = rbd_ros.coriolis_matrix(model, q, v)
    assert error(rbd_ros.coriolis_matrix(model, q, v, factorization='body'), C) < ROUNDING


@pytest.mark.parametrize('seed', TREES)
def test_v_mdot_minus_2c_v_is_zero_for_all_three_coriolis_matrices(seed):
    model, q, v, a = tree(seed)
    M_rate = analysis.matrices_dot(model, q, v, a).M_dot
    speed = np.abs(v)
    for C in (rbd_ros.coriolis_matrix(model, q, v),
              rbd_ros.coriolis_matrix(model, q, v, factorization='body'),
              textbook.stacked_terms(model, q, v).C):
        assert abs(v @ (M_rate - 2 * C) @ v) < ROUNDING * (1.0 + speed @ np.abs(C) @ speed)


def test_mdot_minus_2c_is_skew_for_two_of_three_coriolis_matrices():
    model = chain(['revolute'] * 2, [Z, X])
    q, v = state(model)
    M_rate = analysis.matrices_dot(model, q, v, np.zeros(2)).M_dot
    for C, skew in ((rbd_ros.coriolis_matrix(model, q, v), True),
                    (rbd_ros.coriolis_matrix(model, q, v, factorization='body'), True),
                    (textbook.stacked_terms(model, q, v).C, False)):
        symmetric = M_rate - C - C.T
        assert (np.max(np.abs(symmetric)) < ROUNDING) == skew
        assert skew or np.max(np.abs(symmetric)) > 1e-3


def in_com_frames(model):
    """Return the robot with the frame of each link moved to its centre of mass, and turned."""
    rng = np.random.default_rng(3)
    shift = [pose(random_pose(rng)[:3, :3], link.com) for link in model.links]
    links = [Link(link.name, link.mass, np.zeros(3),
                  C[:3, :3].T @ link.inertia @ C[:3, :3]) for link, C in zip(model.links, shift)]
    stumps, joints = [], []
    for joint, C in zip(model.joints, shift[1:]):
        # The joint moves a link without mass, to which the link proper is fixed.
        before = inverse(shift[model.link_index(joint.parent)])
        stumps.append(Link(f'{joint.child}.stump'))
        joints += [replace(joint, child=stumps[-1].name, placement=before @ joint.placement),
                   Joint(f'{joint.name}.shift', 'fixed', stumps[-1].name, joint.child, C)]
    return rebuild(model, links=links + stumps, joints=joints), shift


@pytest.mark.parametrize('seed', TREES)
def test_changing_to_com_frames_changes_no_torque_and_no_matrix(seed):
    model, q, v, a = tree(seed)
    other, shift = in_com_frames(model)
    other = rbd_ros.with_gravity(other, shift[0][:3, :3].T @ model.gravity)
    assert other.velocity_names == model.velocity_names
    assert error(rbd_ros.inverse_dynamics(other, q, v, a),
                 rbd_ros.inverse_dynamics(model, q, v, a)) < ROUNDING
    for factorization in ('christoffel', 'body'):
        assert error(rbd_ros.coriolis_matrix(other, q, v, factorization=factorization),
                     rbd_ros.coriolis_matrix(model, q, v, factorization=factorization)) < ROUNDING
    link = model.link_names[-1]
    assert error(rbd_ros.body_jacobian(other, q, link),
                 Ad(inverse(shift[-1])) @ rbd_ros.body_jacobian(model, q, link)) < ROUNDING
    # A block-diagonal inertia, as Vlasblom (2.19) and Lynch and Park (9.41) have it.
    G = sums_over_links.inertia_matrices(other)
    assert not np.any(G[:, :3, 3:])


@pytest.mark.parametrize('kinds', [('euler_zyx', 'spherical'), ('free_euler_zyx', 'free')])
@pytest.mark.parametrize('seed', range(10))
def test_quasi_velocities_transform_m_and_c(seed, kinds):
    # v = Gamma w: M_w = Gamma^T M Gamma, C_w = Gamma^T (C Gamma + M Gammadot).
    euler = tree(seed, [*SCREWS, kinds[0]])[0]
    joints = list(euler.joints)
    joints[-1] = replace(joints[-1], kind=kinds[0])
    limits = ('lower', 'upper', 'velocity', 'effort', *NEW_LIMITS, *DRIVE)
    joints = [replace(joint, **dict.fromkeys(limits, ())) for joint in joints]
    euler = rebuild(euler, joints=joints)
    body = rebuild(euler, joints=[
        replace(joint, kind=kinds[1]) if joint.kind == kinds[0] else joint for joint in joints])
    q, v = state(euler, seed)
    q_body, S, S_rate = rbd_ros.neutral(body), np.eye(euler.nv), np.zeros((euler.nv, euler.nv))
    for (joint, i, k), (_, i_body, _) in zip(euler.moving_joints, body.moving_joints):
        if joint.kind == kinds[0]:
            rows = slice(0, joint.nv)
            T = sums_over_links.joint_pose(joint, q[i])
            S[k, k] = sums_over_links.joint_subspace(joint, q[i])[rows]
            S_rate[k, k] = sums_over_links.joint_subspace_rate(joint, q[i], v[k])[rows]
            quaternion = Rotation.from_matrix(T[:3, :3]).as_quat()
            q_body[i_body] = [*quaternion, *T[:3, 3]][:len(q_body[i_body])]
        else:
            q_body[i_body] = q[i]
    Gamma = np.linalg.inv(S)
    Gamma_rate = -Gamma @ S_rate @ Gamma
    w = S @ v
    M = rbd_ros.mass_matrix(euler, q)
    allowed = ROUNDING * np.linalg.cond(S) ** 3
    assert error(rbd_ros.mass_matrix(body, q_body), Gamma.T @ M @ Gamma) < allowed
    for factorization in ('christoffel', 'body'):
        C = rbd_ros.coriolis_matrix(euler, q, v, factorization=factorization)
        expected = Gamma.T @ (C @ Gamma + M @ Gamma_rate)
        got = rbd_ros.coriolis_matrix(body, q_body, w, factorization=factorization)
        assert error(got, expected) < allowed


@pytest.mark.parametrize('seed', TREES)
def test_power_of_torques_and_wrenches_changes_the_energy(seed):
    model, q, v, a = tree(seed)
    rng = np.random.default_rng(seed)
    wrenches = {name: rng.normal(size=6) for name in model.link_names[1:]}
    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches)

    def energy(x, w):
        return np.array(analysis.kinetic_energy(model, x, w) + analysis.potential_energy(model, x))

    twists = dict(zip(model.link_names, sums_over_links.body_jacobians(model, q) @ v))
    power = tau @ v + sum(f @ twists[name] for name, f in wrenches.items())
    change = time_rate(energy, model, q, v, a)
    assert abs(change - power) < 1e-6 * (1.0 + abs(power) + np.abs(tau) @ np.abs(v))
    # By the stacked wrenches: each joint transmits the power of its torque.
    result = textbook.stacked_inverse_dynamics(model, q, v, a, external_wrenches=wrenches)
    A = textbook.stacked_matrices(model, q).A
    assert abs(result.F.ravel() @ A @ v - tau @ v) < ROUNDING * (1.0 + np.abs(tau) @ np.abs(v))


def test_wrong_arguments_are_refused():
    model, q, v, a = tree(3)
    with pytest.raises(rbd_ros.StateError, match='base_twist'):
        textbook.stacked_inverse_dynamics(model, q, v, a, base_twist=np.zeros(3))
    with pytest.raises(rbd_ros.StateError, match='needs'):
        textbook.stacked_terms(model, q, v[:-1])
    rock = rbd_ros.model.build_model('rock', [Link('rock', 1.0)], [])
    assert textbook.stacked_inverse_dynamics(rock, [], [], []).tau.shape == (0,)
