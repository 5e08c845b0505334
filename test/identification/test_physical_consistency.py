# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Least squares over robots that can exist: no better answer is near, and the border is kept."""

from covering import seeds
import numpy as np
import pytest
from rbd_ros.identification.physical_consistency import nearest_consistent
from rbd_ros.model.changes.inertial import (
    parameters_of_pseudo_inertia, pseudo_inertia_of_parameters)

# Slopes, in units of the noise, for a barrier of 1e-8.
SLOPE = 1e-4
BODIES = 2


def random_bodies(rng, count=BODIES):
    """Return parameters of bodies that can exist."""
    L = np.tril(rng.normal(size=(count, 4, 4)))
    return parameters_of_pseudo_inertia(L @ L.swapaxes(-1, -2) + 0.1 * np.eye(4)).ravel()


def problem(seed, rows=40, drives=3):
    """Return a start, a matrix, a target that is out of reach, and conditions."""
    rng = np.random.default_rng(seed)
    start = np.concatenate((random_bodies(rng), rng.uniform(0.0, 1.0, drives)))
    A, target = rng.normal(size=(rows, len(start))), 3.0 * rng.normal(size=rows)
    G = np.zeros((drives, len(start)))
    G[:, 10 * BODIES:] = np.eye(drives)
    return start, A, target, (G, np.array([0.0, 0.0, 0.5]))


def gradient_of_divergence(theta, start):
    """Return the derivatives of the sum of tr(P0^-1 P) - log det P."""
    P, P0 = (np.linalg.inv(pseudo_inertia_of_parameters(x[:10 * BODIES].reshape(-1, 10)))
             for x in (theta, start))
    basis = pseudo_inertia_of_parameters(np.eye(10))
    slopes = np.einsum('kab,iba->ki', P0 - P, basis)
    return np.concatenate((slopes.ravel(), np.zeros(len(theta) - 10 * BODIES)))


@pytest.mark.parametrize('prior', [0.0, 0.1, 1.0])
@pytest.mark.parametrize('seed', seeds(10, few=4))
def test_the_consistent_fit_is_optimal_among_possible_robots(seed, prior):
    start, A, target, (G, h) = problem(seed)
    theta, _ = nearest_consistent(start, A, target, np.ones(len(start)), BODIES, prior=prior,
                                  conditions=(G, h))
    P = pseudo_inertia_of_parameters(theta[:10 * BODIES].reshape(-1, 10))
    assert np.all(np.linalg.eigvalsh(P) > 0.0)
    slack = G @ theta - h
    assert np.all(slack > 0.0)
    # Kuhn and Tucker: the gradient is that of tr(Z P) + z (G theta - h) with a semidefinite Z and
    # z >= 0, and Z P = 0, z (G theta - h) = 0.
    gradient = A.T @ (A @ theta - target) + prior * gradient_of_divergence(theta, start)
    assert np.min(gradient[10 * BODIES:]) > -SLOPE
    assert np.max(gradient[10 * BODIES:] * slack) < SLOPE
    rows, columns = np.tril_indices(4)
    basis = pseudo_inertia_of_parameters(np.eye(10))[:, rows, columns]
    for g, P_k in zip(gradient[:10 * BODIES].reshape(-1, 10), P):
        Z = np.zeros((4, 4))
        Z[rows, columns] = np.linalg.solve(np.where(rows == columns, 1.0, 2.0) * basis, g)
        Z = Z + np.tril(Z, -1).T
        assert np.min(np.linalg.eigvalsh(Z)) > -SLOPE
        assert np.max(np.abs(Z @ P_k)) < SLOPE
    # Both kinds of border are met in these problems, or the test would not say much.
    if not prior:
        assert np.min(slack) < 1e-6 or seed not in (0, 1, 2)


def test_parameters_without_data_stay_at_their_start():
    start, A, target, conditions = problem(3)
    A[:, :10], A[:, -2] = 0.0, 0.0
    pull = np.zeros((1, len(start)))
    pull[0, -2] = 1.0
    theta, _ = nearest_consistent(start, np.concatenate((A, pull)), np.append(target, start[-2]),
                                  np.ones(len(start)), BODIES, prior=0.1, conditions=conditions)
    assert np.allclose(theta[:10], start[:10], rtol=1e-5, atol=1e-6)
    assert np.isclose(theta[-2], start[-2], rtol=1e-5)


def test_units_and_frames_of_the_divergence_do_not_matter():
    start, A, target, _ = problem(4, drives=0)
    theta, curvature = nearest_consistent(start, A, target, np.ones(20), BODIES, prior=1.0)
    # In other units, and from another frame, the same bodies are nearest.
    T = np.diag([2.0, 2.0, 2.0, 3.0])
    T[:3, 3] = 0.3, -0.2, 0.5
    one = np.array([parameters_of_pseudo_inertia(T @ P @ T.T)
                    for P in pseudo_inertia_of_parameters(np.eye(10))]).T
    S = np.kron(np.eye(BODIES), one)
    other, curved = nearest_consistent(S @ start, A @ np.linalg.inv(S), target, np.ones(20),
                                       BODIES, prior=1.0)
    assert np.allclose(other, S @ theta, rtol=1e-5, atol=1e-6)
    assert np.allclose(S.T @ curved.T @ curved @ S, curvature.T @ curvature, rtol=1e-4, atol=1e-4)


def test_curvature_is_that_of_the_divergence():
    start, A, target, conditions = problem(5)
    theta, C = nearest_consistent(start, A, target, np.ones(len(start)), BODIES, prior=0.7,
                                  conditions=conditions)
    step = 1e-6
    differences = np.array([
        (gradient_of_divergence(theta + d, start) - gradient_of_divergence(theta - d, start))
        / (2.0 * step) for d in step * np.eye(len(start))])
    assert np.allclose(C.T @ C, 0.7 * differences, rtol=1e-3, atol=1e-3)


def test_a_fit_from_impossible_bodies_gives_possible_ones():
    rng = np.random.default_rng(6)
    A, truth = rng.normal(size=(60, 10)), random_bodies(rng, 1)
    for start in (np.zeros(10), -truth, np.array([1.0, 5.0, 0, 0, 0, 0, 0, 0, 0, 0])):
        theta, _ = nearest_consistent(start, A, A @ truth, np.ones(10), 1)
        assert np.allclose(theta, truth, rtol=1e-4, atol=1e-4)


def test_bodies_that_are_lighter_than_air_become_heavier():
    rng = np.random.default_rng(7)
    # A ball of 1 m, 2 kg/m^3, off the origin, of which the mass is hardly known.
    density, radius, centre = 2.0, 1.0, np.array([0.3, -0.2, 0.1, 1.0])
    mass = density * 4.0 / 3.0 * np.pi * radius ** 3
    P = 0.2 * mass * radius ** 2 * np.diag([1.0, 1.0, 1.0, 0.0]) + mass * np.outer(centre, centre)
    truth, A = parameters_of_pseudo_inertia(P), np.linalg.qr(rng.normal(size=(60, 10)))[0].T
    A = A.T * np.array([0.1, *9 * [10.0]])
    for ratio in (0.9, 1.5):
        air = ratio * density * 4.0 / 3.0 * np.pi * 5.0 ** 1.5
        theta, _ = nearest_consistent(truth, A, A @ truth, np.ones(10), 1, air=air)
        P = pseudo_inertia_of_parameters(theta)
        excess = P[3, 3] / (air ** 2 * np.linalg.det(P)) ** (1.0 / 6.0) - 1.0
        # It is as heavy as it must be, and what is known better has hardly changed.
        if ratio < 1.0:
            assert np.allclose(theta, truth, rtol=1e-4, atol=1e-4)
        else:
            assert -1e-6 < excess < 0.02
            assert np.allclose(theta[1:], truth[1:], atol=0.02)
