# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SE(3), and the equations of one rigid body: what all of the algorithms stand on."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint
from rbd_ros.model.se3 import (
    Ad, ad, exp, hat, inertia_matrix, inverse, is_pose, log, pose, quaternion_of_matrix, skew, vee)
from rbd_ros.textbook.sums_over_links import coriolis_factor, momentum_bracket
from robots import random_inertia, random_pose
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

# Rounding, of numbers of the size one.
ROUNDING = 1e-12
# Central differences with the step 1e-6.
STEP, DIFFERENCES = 1e-6, 1e-8


@pytest.fixture(params=range(5))
def rng(request):
    """Return a generator."""
    return np.random.default_rng(request.param)


def same(got, expected, tolerance=ROUNDING):
    """Return whether two arrays of numbers of the size one are the same."""
    return np.allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_the_inverse_of_a_pose_is_its_inverse(rng):
    T = random_pose(rng)
    assert same(T @ inverse(T), np.eye(4))
    assert same(T[:3, :3] @ T[:3, :3].T, np.eye(3))
    assert np.linalg.det(T[:3, :3]) > 0.0


def test_a_matrix_that_scales_reflects_or_projects_is_no_pose(rng):
    T = random_pose(rng)
    assert is_pose(T, ROUNDING)
    for place, value in (((slice(3), slice(3)), 1.001 * T[:3, :3]),
                         ((slice(3), 0), -T[:3, 0]), ((3, 3), 2.0), ((3, 0), 0.1)):
        wrong = T.copy()
        wrong[place] = value
        assert not is_pose(wrong, 1e-6)


def test_hat_and_vee_are_inverse(rng):
    V = rng.normal(size=6)
    assert same(hat(V)[:3, :3], skew(V[:3]))
    assert same(hat(V)[:3, 3], V[3:])
    assert not np.any(hat(V)[3])
    assert same(vee(hat(V)), V)


def test_skew_matrices_have_their_identities(rng):
    a, b, c = rng.normal(size=(3, 3))
    R = random_pose(rng)[:3, :3]
    assert same(skew(a) @ b, np.cross(a, b))
    assert same(skew(a) @ skew(b), np.outer(b, a) - a @ b * np.eye(3))
    assert same(skew(R @ a), R @ skew(a) @ R.T)
    assert same(skew(np.cross(a, b)), skew(a) @ skew(b) - skew(b) @ skew(a))
    assert same(a @ skew(b) @ c, c @ skew(a) @ b)


def test_adjoint_is_conjugation(rng):
    T_1, T_2, V = random_pose(rng), random_pose(rng), rng.normal(size=6)
    assert same(hat(Ad(T_1) @ V), T_1 @ hat(V) @ inverse(T_1))
    assert same(Ad(T_1 @ T_2), Ad(T_1) @ Ad(T_2))
    assert same(Ad(inverse(T_1)), np.linalg.inv(Ad(T_1)))
    # Ad(T^-1)^T is Ad(T)^-T, not Ad(T)^T = [R^T, -R^T [p]; 0, R^T].
    R, p = T_1[:3, :3], T_1[:3, 3]
    assert same(Ad(T_1).T, np.block([[R.T, -R.T @ skew(p)], [np.zeros((3, 3)), R.T]]))
    assert not same(Ad(inverse(T_1)).T, Ad(T_1).T, 1e-3)


def test_bracket_is_the_commutator(rng):
    V, W = rng.normal(size=(2, 6))
    assert same(hat(ad(V) @ W), hat(V) @ hat(W) - hat(W) @ hat(V))
    assert same(ad(V) @ V, np.zeros(6))
    assert same(ad(ad(V) @ W), ad(V) @ ad(W) - ad(W) @ ad(V))
    # ad is linear in the twist: Garofalo's W selects its entries.
    assert same(ad(V), sum(x * ad(unit) for x, unit in zip(V, np.eye(6))))


def test_the_coadjoint_bracket_of_a_wrench_has_cross_products(rng):
    V, F = rng.normal(size=(2, 6))
    w, v, m, f = *V.reshape(2, 3), *F.reshape(2, 3)
    assert same(ad(V).T @ F, [*(-np.cross(w, m) - np.cross(v, f)), *-np.cross(w, f)])
    # N(h) x = -ad_x^T h, with h = F.
    assert same(momentum_bracket(F) @ V, -ad(V).T @ F)


def test_exponential_and_logarithm_are_inverse(rng):
    V = 0.5 * rng.normal(size=6)
    assert same(exp(V), expm(hat(V)))
    assert same(log(exp(V)), V)
    small = 1e-6 * V
    assert same(exp(small), expm(hat(small)))
    assert same(log(exp(small)) / 1e-6, V, 1e-9)


def differentiate(f):
    """Return df/dp at p = 0."""
    return (f(STEP) - f(-STEP)) / (2 * STEP)


def test_derivatives_of_the_adjoint_are_brackets(rng):
    T_0, h = random_pose(rng), rng.normal(size=6)

    def T(p):
        return T_0 @ exp(p * h)

    # Body twist h = T^-1 dT/dp, spatial twist dT/dp T^-1.
    assert same(vee(inverse(T_0) @ differentiate(T)), h, DIFFERENCES)
    spatial = vee(differentiate(T) @ inverse(T_0))
    assert same(spatial, Ad(T_0) @ h, DIFFERENCES)
    A = Ad(T_0)
    inverse_A = Ad(inverse(T_0))
    assert same(differentiate(lambda p: Ad(T(p))), ad(spatial) @ A, DIFFERENCES)
    assert same(differentiate(lambda p: Ad(T(p))), A @ ad(h), DIFFERENCES)
    assert same(differentiate(lambda p: Ad(inverse(T(p)))), -ad(h) @ inverse_A, DIFFERENCES)
    assert same(differentiate(lambda p: Ad(inverse(T(p))).T), -inverse_A.T @ ad(h).T,
                DIFFERENCES)


def test_rates_of_constant_twists_and_wrenches_in_a_moving_frame_are_brackets(rng):
    # Kim's lemmas 1 and 2: 0 = Xdot + ad_V X for a motion, 0 = Ydot - ad_V^T Y for a force.
    T_0, V, X, Y = random_pose(rng), *rng.normal(size=(3, 6))

    def motion(t):
        return Ad(inverse(T_0 @ exp(t * V))) @ X

    def force(t):
        return Ad(T_0 @ exp(t * V)).T @ Y

    assert same(differentiate(motion), -ad(V) @ motion(0.0), DIFFERENCES)
    assert same(differentiate(force), ad(V).T @ force(0.0), DIFFERENCES)
    x, w = X[:3], V[:3]
    R = T_0[:3, :3]
    turned = differentiate(lambda t: (T_0 @ exp(t * V))[:3, :3].T @ x)
    assert same(turned, -np.cross(w, R.T @ x), DIFFERENCES)


def test_inertia_is_the_integral_over_the_mass(rng):
    # Point masses: energy, momentum and the 6x6 inertia, about any frame.
    points, masses = rng.normal(size=(8, 3)), rng.uniform(0.1, 1.0, 8)
    V = rng.normal(size=6)
    G = np.zeros((6, 6))
    energy, momentum = 0.0, np.zeros(6)
    for r, m in zip(points, masses):
        speed = V[3:] + np.cross(V[:3], r)
        energy += 0.5 * m * speed @ speed
        momentum += m * np.concatenate((np.cross(r, speed), speed))
        G += m * np.block([[skew(r).T @ skew(r), skew(r)], [skew(r).T, np.eye(3)]])
    com = masses @ points / masses.sum()
    about = sum(m * skew(r - com).T @ skew(r - com) for r, m in zip(points, masses))
    assert same(inertia_matrix(masses.sum(), com, about), G)
    assert same(0.5 * V @ G @ V, energy)
    assert same(G @ V, momentum)
    x, y, z = (points - com).T
    moments = [[masses @ (y * y + z * z), -masses @ (x * y), -masses @ (x * z)],
               [-masses @ (x * y), masses @ (x * x + z * z), -masses @ (y * z)],
               [-masses @ (x * z), -masses @ (y * z), masses @ (x * x + y * y)]]
    assert same(about, moments)


def test_energy_momentum_and_motion_are_the_same_in_every_frame(rng):
    T_ab = random_pose(rng)
    G_a = inertia_matrix(1.7, rng.normal(size=3), random_inertia(rng))
    V_a, V_rate_a = rng.normal(size=(2, 6))
    to_b = Ad(inverse(T_ab))
    V_b, V_rate_b = to_b @ V_a, to_b @ V_rate_a
    G_b = Ad(T_ab).T @ G_a @ Ad(T_ab)
    F_a = G_a @ V_rate_a - ad(V_a).T @ G_a @ V_a
    F_b = G_b @ V_rate_b - ad(V_b).T @ G_b @ V_b
    assert same(V_a @ G_a @ V_a, V_b @ G_b @ V_b)
    assert same(G_b @ V_b, Ad(T_ab).T @ G_a @ V_a)
    assert same(F_b, Ad(T_ab).T @ F_a)
    assert same(F_a @ V_a, F_b @ V_b)
    # Turned and moved, it is the inertia of the same body.
    c = G_a[3:, 3:][0, 0]
    com = inverse(T_ab) @ [G_a[2, 4] / c, G_a[0, 5] / c, G_a[1, 3] / c, 1.0]
    R = T_ab[:3, :3].T
    arm = skew([G_a[2, 4], G_a[0, 5], G_a[1, 3]]) / c
    about_com = G_a[:3, :3] + c * arm @ arm
    assert same(G_b, inertia_matrix(c, com[:3], R @ about_com @ R.T))


def test_one_body_moves_by_newton_and_euler(rng):
    inertia, com = random_inertia(rng), rng.normal(scale=0.2, size=3)
    model = rbd_ros.model.build_model(
        'body', [Link('world'), Link('b', 1.7, com, inertia)],
        [Joint('base', 'free', 'world', 'b')], gravity=rng.normal(size=3))
    q = rbd_ros.random_configuration(model, rng)
    V, V_rate = rng.normal(size=(2, 6))
    T = rbd_ros.forward_kinematics(model, q)[1]
    F = rbd_ros.inverse_dynamics(model, q, V, V_rate)
    G = inertia_matrix(1.7, com, inertia)
    weight = Ad(pose(T[:3, :3], np.zeros(3))).T @ np.concatenate((np.zeros(3),
                                                                 1.7 * model.gravity))
    weight[:3] += np.cross(com, weight[3:])
    # In one piece, Kim (31), and with the skew Psi of Garofalo et al. (3).
    Psi = coriolis_factor(G, V, 'body')
    assert same(F + weight, G @ V_rate - ad(V).T @ G @ V)
    assert same(F + weight, G @ V_rate + Psi @ V)
    assert same(Psi, -Psi.T)
    # In pieces, about the centre of mass: f = m (vdot + w x v), m = I wdot + w x I w.
    shift = Ad(inverse(pose(np.eye(3), com)))
    (w, v), (w_rate, v_rate) = (shift @ V).reshape(2, 3), (shift @ V_rate).reshape(2, 3)
    force = 1.7 * (v_rate + np.cross(w, v))
    moment = inertia @ w_rate + np.cross(w, inertia @ w)
    at_com = np.linalg.inv(shift).T @ (F + weight)
    assert same(at_com, [*moment, *force])
    assert same(np.linalg.inv(shift).T @ G @ np.linalg.inv(shift),
                np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), 1.7 * np.eye(3)]]))


def test_momentum_in_space_changes_by_the_wrench(rng):
    # d/dt (Ad(T)^-T G V) = Ad(T)^-T F, along a motion with a given twist rate.
    G = inertia_matrix(1.7, rng.normal(scale=0.2, size=3), random_inertia(rng))
    T_0, V, V_rate = random_pose(rng), *rng.normal(size=(2, 6))

    def momentum(t):
        T = T_0 @ exp(t * V + 0.5 * t * t * V_rate)
        return Ad(inverse(T)).T @ G @ (V + t * V_rate)

    F = G @ V_rate - ad(V).T @ G @ V
    assert same(differentiate(momentum), Ad(inverse(T_0)).T @ F, DIFFERENCES)
    # The spatial acceleration is Ad of that of the body.
    spatial = differentiate(lambda t: Ad(T_0 @ exp(t * V + 0.5 * t * t * V_rate))
                            @ (V + t * V_rate))
    assert same(spatial, Ad(T_0) @ V_rate, DIFFERENCES)


@pytest.mark.parametrize('angle', [0.0, 1e-9, 0.1, 2.0, 3.0, np.pi - 1e-9, np.pi, 4.0])
def test_quaternion_of_a_matrix_is_that_rotation_and_w_is_not_negative(rng, angle):
    axis = rng.normal(size=3)
    R = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    quaternion = quaternion_of_matrix(R)
    assert quaternion[3] >= 0.0
    assert same(Rotation.from_quat(quaternion).as_matrix(), R)
