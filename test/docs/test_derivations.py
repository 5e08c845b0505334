# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The numbered formulas of doc/derivations.md, in plain NumPy.

Against definitions, integrals over point masses and differences; what the kernels make of them is
tested elsewhere, but for C, where the page claims that it is the matrix of Christoffel.

"""

from differences import tree
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.se3 import Ad, exp
from rbd_ros.textbook.sums_over_links import christoffel_coriolis_matrix

# Rounding, of sums of some hundred products.
ROUNDING = 1e-11
STEP = 1e-6
# Of central differences with that step: rounding over the step, and its square.
DIFFERENCES = 1e-7


def skew(a):
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def ad(V):
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


def bar(H):
    return -np.block([[skew(H[:3]), skew(H[3:])], [skew(H[3:]), np.zeros((3, 3))]])


def inertia(r, m):
    """Return G, Sigma, h and the mass of points."""
    G = sum(one * np.block([[-skew(x) @ skew(x), skew(x)], [-skew(x), np.eye(3)]])
            for x, one in zip(r, m))
    return G, np.einsum('k,ki,kj', m, r, r), m @ r, m.sum()


def christoffel(G, V):
    """Return B by (2)."""
    return 0.5 * (-G @ ad(V) - ad(V).T @ G + bar(G @ V))


@pytest.fixture
def body():
    """Return points, masses, G, Sigma, h, m and a generator."""
    rng = np.random.default_rng(0)
    r, m = rng.normal(size=(9, 3)), rng.uniform(0.1, 1.0, 9)
    return r, m, *inertia(r, m), rng


def close(got, expected, tolerance=ROUNDING):
    return np.max(np.abs(np.asarray(got) - expected)) < tolerance * max(
        1.0, np.max(np.abs(expected)))


def moved(r, V, t):
    """Return points after the time t, to second order exact at t = 0."""
    return r + t * (V[3:] + np.cross(V[:3], r)) + 0.5 * t * t * np.cross(
        V[:3], V[3:] + np.cross(V[:3], r))


def test_inertia_is_made_of_integrals_and_its_rate_of_brackets(body):
    r, m, G, sigma, h, mass, rng = body
    V = rng.normal(size=6)
    omega, v = V[:3], V[3:]
    assert close(G @ V, [*(np.cross(h, v) + np.trace(sigma) * omega - sigma @ omega),
                         *(mass * v + np.cross(omega, h))])
    rate = (inertia(moved(r, V, STEP), m)[0] - inertia(moved(r, V, -STEP), m)[0]) / (2 * STEP)
    assert close(-G @ ad(V) - ad(V).T @ G, rate, DIFFERENCES)
    F = rng.normal(size=6)
    assert close(ad(V).T @ F, [*(np.cross(F[:3], omega) + np.cross(F[3:], v)),
                               *np.cross(F[3:], omega)])


def test_n_is_skew_and_gives_the_momentum_term_of_b(body):
    _, _, G, _, _, _, rng = body
    V, W = rng.normal(size=(2, 6))
    assert close(bar(G @ V), -bar(G @ V).T)
    assert close(bar(G @ V) @ W, -ad(W).T @ G @ V)
    assert close(christoffel(G, V) @ V, -ad(V).T @ G @ V)


def test_b_is_a_field_of_accelerations(body):
    r, m, G, sigma, h, mass, rng = body
    V, S = rng.normal(size=(2, 6))
    omega, v, z, s = V[:3], V[3:], S[:3], S[3:]
    u = np.cross(z, v + np.cross(omega, r))
    field = [*(m @ np.cross(r, u)), *(m @ u)]
    K, p = skew(omega) @ sigma + np.outer(v, h), mass * v + np.cross(omega, h)
    B = christoffel(G, V)
    assert close(B @ S, field)
    assert close(B @ S, [*(np.trace(K) * z - K @ z), *np.cross(z, p)])                       # (4)
    assert close(B.T @ S, [*(np.cross(p, s) + np.trace(K) * z - K.T @ z), 0, 0, 0])          # (5)
    later, before = inertia(moved(r, V, STEP), m), inertia(moved(r, V, -STEP), m)
    assert close((later[1] - before[1]) / (2 * STEP), K + K.T, DIFFERENCES)                  # (8)
    assert close((later[2] - before[2]) / (2 * STEP), p, DIFFERENCES)


def test_the_difference_of_the_factorizations_is_as_printed(body):
    _, _, G, sigma, h, mass, rng = body
    V, S = rng.normal(size=(2, 6))
    omega, v, z, s = V[:3], V[3:], S[:3], S[3:]
    difference = -ad(V).T @ G - christoffel(G, V)
    assert close(difference, 0.5 * (G @ ad(V) - ad(V).T @ G - bar(G @ V)))
    assert close(difference, -difference.T)
    assert close(difference @ V, np.zeros(6))
    a, Q = np.trace(sigma) * omega + np.cross(h, v), np.outer(h, omega)
    u, w, trace = mass * v, mass * omega, np.trace(Q)
    assert close(difference @ S, [
        *(np.cross(a, z) + Q @ s - trace * s + np.cross(u, s)),
        *(trace * z - Q.T @ z + np.cross(u, z) + np.cross(w, s))])                           # (7)


@pytest.mark.parametrize('seed', range(3))
def test_c_of_the_page_is_the_matrix_of_christoffel(seed):
    model, q, v, _ = tree(seed, ('revolute', 'prismatic', 'continuous', 'universal', 'helical'))
    assert close(rbd_ros.coriolis_matrix(model, q, v), christoffel_coriolis_matrix(model, q, v),
                 DIFFERENCES)


# A chain of screws and points, moved about: what the recursions are about, without any of them.
class Chain:
    """Three screws in a row; the last carries points."""

    def __init__(self, rng):
        self.screws = rng.normal(size=(3, 6))
        self.r, self.m = rng.normal(size=(9, 3)), rng.uniform(0.1, 1.0, 9)
        self.gravity = rng.normal(size=3)

    def columns(self, q):
        """Return S in the world's axes and G, at q."""
        T, S = np.eye(4), []
        for B, x in zip(self.screws, q):
            S.append(Ad(T) @ B)
            T = T @ exp(B * x)
        return np.array(S), inertia(self.r @ T[:3, :3].T + T[:3, 3], self.m)[0]

    def motion(self, q, v, a):
        """Return S, G, and the twists and accelerations of the ground and the three bodies."""
        S, G = self.columns(q)
        V, A = [np.zeros(6)], [np.concatenate((np.zeros(3), -self.gravity))]
        for k in range(3):
            V.append(V[k] + S[k] * v[k])
            A.append(A[k] + S[k] * a[k] + ad(V[k + 1]) @ S[k] * v[k])
        return S, G, V, A

    def torques(self, q, v, a):
        """Return tau by (1)."""
        S, G, V, A = self.motion(q, v, a)
        return S @ (G @ A[3] - ad(V[3]).T @ G @ V[3])


def test_derivatives_of_a_chain_are_as_printed():
    rng = np.random.default_rng(3)
    chain, state = Chain(rng), rng.normal(size=(3, 3))
    S, G, V, A = chain.motion(*state)
    F, B = G @ A[3] - ad(V[3]).T @ G @ V[3], christoffel(G, V[3])
    S_rate = np.array([ad(V[k + 1]) @ S[k] for k in range(3)])
    first = np.array([ad(V[k]) @ S[k] for k in range(3)])
    second = np.array([ad(A[k]) @ S[k] + ad(V[k]) @ first[k] for k in range(3)])
    assert close(first, S_rate)
    turned = np.array([[(S[i] @ ad(S[j]).T @ F if i < j else 0.0) for j in range(3)]
                       for i in range(3)])
    by_q = S @ (G @ second.T + 2.0 * B @ first.T) - turned                                  # (10)
    by_v = S @ (G @ (first + S_rate).T + 2.0 * B @ S.T)                                     # (11)
    for which, derivative in enumerate((by_q, by_v, S @ G @ S.T)):
        for j in range(3):
            step = np.zeros((3, 3))
            step[which, j] = STEP
            difference = (chain.torques(*(state + step)) - chain.torques(*(state - step)))
            assert close(derivative[:, j], difference / (2.0 * STEP), DIFFERENCES)
    C = S @ (G @ S_rate.T + B @ S.T)                                                         # (6)
    assert close(by_v, 2.0 * C)


def test_derivatives_of_hybrid_dynamics_are_as_printed():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5))
    M, D = root @ root.T + 5.0 * np.eye(5), rng.normal(size=5)
    da, dtau, given = rng.normal(size=5), rng.normal(size=5), np.array([1, 0, 0, 1, 0], bool)
    # tau = D + M a stands for the whole equation: linear in a, along one direction.
    along = D + M @ np.where(given, da, 0.0)
    p = ~given
    da_p = np.linalg.solve(M[np.ix_(p, p)], (dtau - along)[p])                              # (13)
    full = da.copy()
    full[p] = da_p
    assert close((D + M @ full)[p], dtau[p])
    assert close((D + M @ full)[given], along[given] + M[np.ix_(given, p)] @ da_p)
    inverse = np.linalg.inv(M[np.ix_(p, p)])
    M_ap, M_aa = M[np.ix_(given, p)], M[np.ix_(given, given)]
    by_given = M_aa - M_ap @ inverse @ M_ap.T                                               # (14)
    assert close(da_p, inverse @ (dtau - D)[p] - inverse @ M_ap.T @ da[given])
    assert close((D + M @ full)[given],
                 D[given] + M_ap @ inverse @ (dtau - D)[p] + by_given @ da[given])


def test_columns_of_the_regressors_are_as_printed(body):
    _, _, G, sigma, h, mass, rng = body
    inertia_matrix = np.trace(sigma) * np.eye(3) - sigma
    S, V, A, V_r, A_r = rng.normal(size=(5, 6))
    (z, s), (omega, v), (alpha, a) = S.reshape(2, 3), V.reshape(2, 3), A.reshape(2, 3)

    def product(left, right):
        (z, s), (w, x) = left.reshape(2, 3), right.reshape(2, 3)
        return (mass * s @ x + h @ (np.cross(x, z) + np.cross(s, w))
                + z @ inertia_matrix @ w)

    assert close(product(S, V), S @ G @ V)                                                  # (15)
    d = a + np.cross(omega, v)
    torque = (mass * s @ d
              + h @ (np.cross(d, z) + np.cross(s, alpha) + omega * (omega @ s)
                     - s * (omega @ omega))
              + z @ inertia_matrix @ alpha + np.cross(z, omega) @ inertia_matrix @ omega)
    assert close(torque, S @ (G @ A - ad(V).T @ G @ V))                                     # (16)
    for eta, B in ((0.5, christoffel(G, V)), (0.0, -ad(V).T @ G)):
        F = G @ A_r + B @ V_r
        assert close(F, G @ (A_r - eta * ad(V) @ V_r) - (1.0 - eta) * ad(V).T @ G @ V_r
                     - eta * ad(V_r).T @ G @ V)                                             # (17)
        assert close(S @ F, product(S, A_r - eta * ad(V) @ V_r)
                     + product((eta - 1.0) * ad(V) @ S, V_r)
                     + product(-eta * ad(V_r) @ S, V))                                      # (18)
