# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inertial parameters that bodies can have: least squares with positive definite pseudo-inertias.

A body can exist if and only if its pseudo-inertia P(pi), 4 x 4 and linear in pi, is positive
definite. The least squares under that condition are a convex problem. It is solved by a barrier:
minimize 1/2 |A pi - b|^2 - mu sum log det P by Newton's method, for ever smaller mu.

"""

import numpy as np
from rbd_ros.model.inertial import parameters_of_pseudo_inertia, pseudo_inertia_of_parameters

# Derivatives of P by the ten parameters.
BASIS = pseudo_inertia_of_parameters(np.eye(10))
# Each mu is this share of the one before, down to the last: for residuals in units of their noise
# that is an error far below it.
SHRINK, LAST = 0.1, 1e-8
# Newton's method ends where the step promises less than this share of mu, or after so many steps.
PROMISE, STEPS = 1e-6, 50
# Eigenvalues of the P that it starts from, as a share of the mean, and at least, kg.
LEAST_SHARE, LEAST = 1e-2, 1e-6
# Smallest eigenvalue of P, as a share of the largest, that is told from zero.
ROUNDING = 1e-13


def nearest_consistent(pi, matrix, target, scale):
    """
    Return parameters of bodies that can exist with the least |matrix pi - target|^2.

    Parameters
    ----------
    pi : ndarray, shape (10 * bodies,)
        Where the search begins; bodies that cannot exist are mended first.
    matrix : ndarray, shape (rows, 10 * bodies)
        Of full column rank, so that there is one answer.
    target : ndarray, shape (rows,)
        What the product should be.
    scale : ndarray, shape (10,)
        Powers of a length, m, such that the parameters divided by them are comparable.

    Returns
    -------
    ndarray, shape (10 * bodies,)
        Inertial parameters, each body with a positive definite pseudo-inertia.

    """
    # In units of that length P has the same form.
    every = np.tile(scale, len(pi) // 10)
    A, x = matrix * every, _mend(pi / every)

    def cost(x, mu):
        P = pseudo_inertia_of_parameters(x.reshape(-1, 10))
        values = np.linalg.eigvalsh(P)
        if np.any(values[:, 0] <= ROUNDING * values[:, 3]):
            return np.inf
        return 0.5 * np.sum((A @ x - target) ** 2) - mu * np.sum(np.linalg.slogdet(P)[1])

    mu = max(np.sum((A @ x - target) ** 2) / len(x), LAST)
    while True:
        for _ in range(STEPS):
            step, promise = _newton_step(A, target, x, mu)
            now, share = cost(x, mu), 1.0
            while share >= 1e-9 and cost(x + share * step, mu) > now - 0.1 * share * promise:
                share *= 0.5
            if promise < PROMISE * mu or share < 1e-9:
                break
            x = x + share * step
        if mu == LAST:
            return x * every
        mu = max(SHRINK * mu, LAST)


def _newton_step(A, b, x, mu):
    """
    Return Newton's step and by how much it promises to lower the cost, twice.

    The Hessian of -log det P is C^T C with the columns vec(L^-1 E_i L^-T) of C, where P = L L^T
    and E_i = dP/dx_i, and its gradient is -C^T vec(1): the step is that of least squares.

    """
    blocks = x.reshape(-1, 10)
    L_inv = np.linalg.inv(np.linalg.cholesky(pseudo_inertia_of_parameters(blocks)))[:, None]
    C = np.zeros((16 * len(blocks), len(x)))
    for k, block in enumerate(L_inv @ BASIS @ L_inv.swapaxes(-1, -2)):
        C[16 * k:16 * k + 16, 10 * k:10 * k + 10] = block.reshape(10, 16).T
    root = np.sqrt(mu)
    rows = np.vstack((A, root * C))
    step = np.linalg.lstsq(rows, np.concatenate((
        b - A @ x, root * np.tile(np.eye(4).ravel(), len(blocks)))), rcond=None)[0]
    return step, np.sum((rows @ step) ** 2)


def _mend(x):
    """Return parameters whose pseudo-inertias have no eigenvalues that are next to nothing."""
    P = pseudo_inertia_of_parameters(x.reshape(-1, 10))
    values, vectors = np.linalg.eigh(P)
    mean = np.maximum(values, 0.0).mean(axis=-1, keepdims=True)
    values = np.maximum(values, np.maximum(LEAST_SHARE * mean, LEAST))
    return parameters_of_pseudo_inertia(
        vectors * values[:, None] @ vectors.swapaxes(-1, -2)).ravel()
