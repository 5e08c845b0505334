# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of `rbd_ros.analysis` against the sums over links that the texts print."""

from differences import ALL_KINDS, error, leading
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.model.changes.inertial import inertia_matrices, moving_bodies
from rbd_ros.model.positions.configurations import random_configuration
from rbd_ros.model.se3 import Ad, ad, inverse, skew
from rbd_ros.textbook.jacobian_recursions import (body_jacobian_rate_derivatives)
from rbd_ros.textbook.sums_over_links import body_jacobian_rates, coriolis_factor, poses
from robots import example_urdf, load_quietly, random_tree

# Rounding, over some ten bodies.
ROUNDING = 1e-11
FACTORIZATIONS = ('christoffel', 'body')


def twist_regressor(V):
    """Return A(V) = [0, -[v], bar(omega); v, [omega], 0], with A(V) pi = G V [G (8)-(12)]."""
    (x, y, z), v = V[:3], V[3:]
    A = np.zeros((6, 10))
    A[:3, 1:4] = -skew(v)
    A[:3, 4:] = [[x, 0.0, 0.0, y, z, 0.0], [0.0, y, 0.0, x, 0.0, z], [0.0, 0.0, z, 0.0, x, y]]
    A[3:, 0] = v
    A[3:, 1:4] = skew(V[:3])
    return A


def tree(seed):
    """Return a random tree of all kinds of joints; every third one flies, far from the origin."""
    model = random_tree(seed, 7, kinds=ALL_KINDS)
    if seed % 3 == 2:
        model = rbd_ros.with_floating_base(model)
    rng = np.random.default_rng(seed)
    q = random_configuration(model, rng)
    if seed % 3 == 2:
        q[4:7] *= 10.0
    return model, q, *rng.normal(size=(2, model.nv))


def panda():
    """Return a robot with a joint that mimics another."""
    model = load_quietly(example_urdf('panda.urdf'))
    assert not model.coordinates.is_identity
    rng = np.random.default_rng(0)
    return model, random_configuration(model, rng), *rng.normal(size=(2, model.nv))


states = pytest.mark.parametrize('make, arguments', [
    *(pytest.param(tree, (seed,), id=f'tree{seed}') for seed in range(12)),
    pytest.param(panda, (), id='panda')])


def up_in_links(model, q):
    """Return Ad_0k^-1 a_0 of every link, with a_0 minus gravity."""
    a_0 = np.concatenate((np.zeros(3), -model.gravity))
    return np.array([Ad(inverse(T)) @ a_0 for T in poses(model, q)])


@states
def test_matrix_derivatives_are_the_sums(make, arguments):
    model, q, v, _ = make(*arguments)
    n, workspace = model.nv, rbd_ros.Workspace(model)
    links = list(zip(inertia_matrices(model), up_in_links(model, q),
                     *body_jacobian_rate_derivatives(model, q, v)))
    dM, dg = np.zeros((n, n, n)), np.zeros((n, n))
    for G, up, J, _, dJ, _ in links:
        for h in range(n):
            half = dJ[h].T @ G @ J                                           # G (24a)
            dM[h] += half + half.T
            dg[:, h] += dJ[h].T @ G @ up - J.T @ G @ ad(J[:, h]) @ up        # G (24d)
    assert error(leading(analysis.mass_matrix_derivatives(model, q)), dM) < ROUNDING
    assert error(analysis.gravity_torques_derivatives(model, q), dg) < ROUNDING
    assert error(leading(workspace.mass_matrix_derivatives(q)), dM) < ROUNDING
    assert error(workspace.gravity_torques_derivatives(q), dg) < ROUNDING
    for factorization in FACTORIZATIONS:
        by_q, by_v = np.zeros((2, n, n, n))
        for G, _, J, J_rate, dJ, dJ_rate in links:
            B = coriolis_factor(G, J @ v, factorization)
            for h in range(n):
                B_q = coriolis_factor(G, dJ[h] @ v, factorization)
                B_v = coriolis_factor(G, J[:, h], factorization)
                by_q[h] += (dJ[h].T @ (B @ J + G @ J_rate)
                            + J.T @ (B_q @ J + B @ dJ[h] + G @ dJ_rate[h]))  # G (24b)
                by_v[h] += J.T @ (B_v @ J + G @ dJ[h])                       # G (24c)
        for call in (lambda *state, **options: analysis.coriolis_matrix_derivatives(
                model, *state, **options), workspace.coriolis_matrix_derivatives):
            got_q, got_v = call(q, v, factorization=factorization)
            assert error(leading(got_q), by_q) < ROUNDING
            assert error(leading(got_v), by_v) < ROUNDING


@states
def test_momentum_and_energy_regressors_are_the_sums(make, arguments):
    model, q, v, _ = make(*arguments)
    J, _ = body_jacobian_rates(model, q, v)
    T = poses(model, q)
    momentum, energies = np.zeros((model.nv, 0)), np.zeros((2, 0))
    for k in moving_bodies(model):
        V = J[k] @ v
        momentum = np.hstack((momentum, J[k].T @ twist_regressor(V)))
        potential = np.zeros(10)
        potential[0] = -model.gravity @ T[k, :3, 3]
        potential[1:4] = -model.gravity @ T[k, :3, :3]
        energies = np.hstack((energies, np.vstack((0.5 * V @ twist_regressor(V), potential))))
    assert error(analysis.momentum_regressor(model, q, v), momentum) < ROUNDING
    assert error(analysis.energy_regressor(model, q, v), energies) < ROUNDING
