# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Least squares under the constraint of physical consistency: positive definite pseudo-inertias.

A body can exist if and only if its pseudo-inertia P(theta), 4 x 4 and linear in the parameters, is
positive definite. Friction dissipates energy, and rotors have inertia, if G theta >= h for certain
combinations. The least squares under these conditions are convex. Bodies are held near the prior
by the entropic divergence of their pseudo-inertias,

    D(P | P_0) = tr(P_0^-1 P) - log det(P_0^-1 P) - 4,

which does not depend on frames and units, is about (relative change)^2 / 2 where that is small,
and infinite where a body cannot exist [Lee, Wensing and Park (2019), IEEE T-RO 36(1), (27)]. A
barrier method solves the problem: Newton's method for

    1/2 |A theta - b|^2 + sum (prior D(P | P_0) - mu log det P) - mu sum log(G theta - h)

with decreasing mu.

Some bodies that satisfy this are still lighter than air. That of mass m and second moments S about
its centre is not if m >= (K^2 m det S)^(1/6) = (K^2 det P)^(1/6), with K in proportion to the
density. The right side is concave in P, so it is below each of its tangents, and m beyond one of
them is a linear condition.

"""

from typing import Any

import numpy as np
from rbd_ros.model.changes.inertial import (
    parameters_of_pseudo_inertia, pseudo_inertia_of_parameters)
from rbd_ros.model.plausibility import MIN_CHECKED_MASS, MIN_DENSITY

# Derivatives of P with respect to the ten parameters.
BASIS = pseudo_inertia_of_parameters(np.eye(10))
# Ratio of successive mu, and the last mu: for residuals in units of their noise its error is
# negligible.
MU_RATIO, LAST_MU = 0.03, 1e-8
# Newton's method stops when the predicted decrease is below this fraction of mu, for the last mu
# and for those before, or after this many steps.
TOLERANCE, COARSE_TOLERANCE, MAX_STEPS = 1e-4, 0.1, 50
MIN_SHARE = 1e-9  # Smallest share of a step.
START_MARGIN = 0.01  # Smallest slack of the inequalities at the start, in units of the scale.
# Smallest eigenvalue of a body's initial P as a fraction of the mean: for a sphere of 10 cm, 1 cm.
MIN_EIGENVALUE_RATIO = 1e-3
# K for bodies 1 % denser than the least dense ones without a warning: those are uniform ellipsoids
# with semi-axes a and S = m a^2 / 5.
AIR = 1.01 * MIN_DENSITY * 4.0 / 3.0 * np.pi * 5.0 ** 1.5
# Smallest eigenvalue of P, relative to the largest, that is distinguished from zero.
ROUNDING = 1e-13


def nearest_consistent(start: np.ndarray, matrix: np.ndarray, target: np.ndarray,
                       scale: np.ndarray, bodies: int, *, prior: float = 0.0,
                       conditions: tuple[np.ndarray, np.ndarray] | None = None,
                       air: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """
    Return physically consistent parameters with the least |matrix theta - target|^2, and C.

    ``start`` is the prior and the start of the search; inconsistent bodies are made consistent
    first. ``scale`` has the sizes of the parameters; for a body, powers of a length times a mass.
    The first 10 * bodies parameters are inertial. ``matrix`` has full column rank, unless
    ``prior``, the weight of D, is positive. ``conditions`` are G and h of the drive parameters. No
    body is less dense than K = ``air`` allows. C (16 * bodies, parameters) is a root of the
    Hessian C^T C of the divergences.

    """
    # P keeps its form when parameters are divided by the scale.
    G, h = (np.zeros((0, len(start))), np.zeros(0)) if conditions is None else conditions
    size = np.linalg.norm(G * scale, axis=1)
    problem = _Problem(matrix * scale, target, start / scale, bodies, prior,
                       G * scale / size[:, None], h / size)
    x = problem.minimum()
    for _ in range(bodies):     # each of them needs a condition once
        if not problem.keep_dense(x, scale, air):
            break
        x = problem.minimum()
    return x * scale, problem.barrier_rows(x, LAST_MU)[0][:16 * bodies] / scale


class _Problem:
    """The least squares in units of the scale."""

    def __init__(self, A: np.ndarray, b: np.ndarray, x: np.ndarray, bodies: int, prior: float,
                 G: np.ndarray, h: np.ndarray) -> None:
        self.A, self.b, self.G, self.h, self.prior = A, b, G, h, prior
        self.split = 10 * bodies
        P = _made_consistent(pseudo_inertia_of_parameters(x[:self.split].reshape(-1, 10)))
        self.P0_inverse = np.linalg.inv(P)
        self.start = np.concatenate((parameters_of_pseudo_inertia(P).ravel(), x[self.split:]))
        lack = np.maximum(START_MARGIN - self.slack(self.start), 0.0)
        if np.any(lack):
            self.start = self.start + np.linalg.lstsq(G, lack, rcond=None)[0]

    def minimum(self) -> np.ndarray:
        """Return the parameters with the least cost."""
        x = self.start
        mu = max(np.sum((self.A @ x - self.b) ** 2) / len(x), LAST_MU)
        while True:
            for _ in range(MAX_STEPS):
                step, decrease = self.newton_step(x, mu)
                cost = self.cost(x, mu)
                share = 1.0     # of the step, so that the cost decreases and stays finite
                while (share >= MIN_SHARE
                       and self.cost(x + share * step, mu) > cost - 0.1 * share * decrease):
                    share *= 0.5
                tolerance = TOLERANCE if mu == LAST_MU else COARSE_TOLERANCE
                if decrease < tolerance * mu or share < MIN_SHARE:
                    break
                x = x + share * step
            if mu == LAST_MU:
                return x
            mu = max(MU_RATIO * mu, LAST_MU)

    def keep_dense(self, x: np.ndarray, scale: np.ndarray, air: float) -> bool:
        """Add conditions for the bodies of x that are lighter than air; return whether any is."""
        P = pseudo_inertia_of_parameters((x * scale)[:self.split].reshape(-1, 10))
        mass = P[:, 3, 3]
        least = (air ** 2 * np.linalg.det(P) / mass) ** 0.2
        thin = np.flatnonzero((mass > MIN_CHECKED_MASS) & (mass < least))
        for k in thin:
            # The tangent at the body with the same S that is as heavy as air.
            centre, own = P[k, 3] / mass[k], slice(10 * k, 10 * k + 10)
            dense = P[k] + (least[k] - mass[k]) * np.outer(centre, centre)
            row = np.zeros(len(x))
            row[own] = -least[k] / 6.0 * np.trace(np.linalg.inv(dense) @ BASIS, axis1=1, axis2=2)
            row[own.start] += 1.0
            size = np.linalg.norm(row * scale)
            self.G = np.vstack((self.G, row * scale / size))
            self.h = np.append(self.h, least[k] / (3.0 * size))
            self.start[own] = parameters_of_pseudo_inertia(2.0 * dense) / scale[own]
        return thin.size > 0

    def slack(self, x: np.ndarray) -> np.ndarray:
        """Return G x - h, positive inside."""
        return self.G @ x - self.h

    def cost(self, x: np.ndarray, mu: float) -> float:
        """Return the cost; infinite for inconsistent parameters."""
        P, slack = pseudo_inertia_of_parameters(x[:self.split].reshape(-1, 10)), self.slack(x)
        values = np.linalg.eigvalsh(P)
        if np.any(values[:, 0] <= ROUNDING * values[:, 3]) or np.any(slack <= 0.0):
            return np.inf
        return (0.5 * np.sum((self.A @ x - self.b) ** 2) + self.prior * np.sum(self.P0_inverse * P)
                - (self.prior + mu) * np.sum(np.log(values)) - mu * np.sum(np.log(slack)))

    def barrier_rows(self, x: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """Return C and c: Hessian C^T C and gradient -C^T c of the prior and the barrier."""
        # For -log det P, P = L L^T, the columns of C are vec(L^-1 dP/dx_i L^-T), and c is vec(1).
        blocks = x[:self.split].reshape(-1, 10)
        L = np.linalg.cholesky(pseudo_inertia_of_parameters(blocks))
        L_inv = np.linalg.inv(L)[:, None]
        root = np.sqrt(self.prior + mu)
        C = np.zeros((16 * len(blocks), len(x)))
        for k, block in enumerate(L_inv @ BASIS @ L_inv.swapaxes(-1, -2)):
            C[16 * k:16 * k + 16, 10 * k:10 * k + 10] = block.reshape(10, 16).T
        c = root * np.eye(4) - self.prior / root * (L.swapaxes(-1, -2) @ self.P0_inverse @ L)
        root_mu = np.sqrt(mu)
        return (np.concatenate((root * C, root_mu * self.G / self.slack(x)[:, None])),
                np.concatenate((c.ravel(), np.full(len(self.G), root_mu))))

    def newton_step(self, x: np.ndarray, mu: float) -> tuple[np.ndarray, float]:
        """Return the Newton step, as least squares, and twice the predicted decrease."""
        from scipy.linalg import solve_triangular  # Imported lazily: SciPy is slow to import.
        C, c = self.barrier_rows(x, mu)
        rows = np.concatenate((np.column_stack((self.A, self.b - self.A @ x)),
                               np.column_stack((C, c))))
        R: Any = np.linalg.qr(rows, mode='r')     # NumPy's type hints lack this mode
        n = len(x)
        step = solve_triangular(R[:n, :n], R[:n, n])
        return step, np.sum(R[:n, n] ** 2)


def _made_consistent(P: np.ndarray) -> np.ndarray:
    """Return pseudo-inertias with all eigenvalues raised above zero."""
    values, vectors = np.linalg.eigh(P)
    mean = np.maximum(values, 0.0).mean(axis=-1, keepdims=True)
    values = np.maximum(values, np.maximum(MIN_EIGENVALUE_RATIO * mean, MIN_EIGENVALUE_RATIO))
    return vectors * values[..., None, :] @ vectors.swapaxes(-1, -2)
