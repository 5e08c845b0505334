# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Weighted least squares from R factors, held near a prior where torques contain no information.

The cost is

    1/2 sum over joints of |tau_j - Y_j theta|^2 / (noise_j^2 correlation_j) + 1/2 |x|^2,

x = (theta - prior) / deviation. The noise is the standard deviation of a joint's residual, and the
correlation the number of samples that count as one; both come from the previous iteration.

Residuals of real robots are correlated in time (the filter, unmodelled friction), so the standard
deviations of ordinary least squares are several times too small. Here the variance of the scores
(derivatives of the sum of squares) is estimated from their scatter between long blocks of time
[Liang and Zeger (1986)], with the residuals that each block would have if it had been left out of
the fit: the block jackknife, CR3 of Bell and McCaffrey (2002).

"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rbd_ros.batch.regressors import triangle
from rbd_ros.identification.reduction import BLOCKS, Partial

MIN_NOISE = 1e-6  # Smallest noise of torques, as a fraction of their size.
# Relative step below which the noise has converged, and largest number of iterations.
NOISE_TOLERANCE, MAX_ITERATIONS = 1e-2, 20
CORRELATION_ROUNDS = 2  # How often the correlation is re-estimated from the residuals.
WEAK_PRIOR = 1e3  # The noise is estimated with the prior deviation enlarged by this factor.
# A block that determines a parameter alone has no residual there: largest share of a block.
MAX_BLOCK_SHARE = 0.99


class WeightedFit(NamedTuple):
    """Result of `weighted_fit`; x = (theta - prior) / deviation."""

    theta: np.ndarray           # (parameters,), the estimate
    noise: np.ndarray           # (nv,), standard deviation of the torques from it, N m or N
    correlation: np.ndarray     # (nv,), how many samples count as one
    # Directions of x that torques depend on, (n, parameters), and how many times better they
    # determine them than the prior, (n,), largest first.
    sigma: np.ndarray
    directions: np.ndarray
    scatter: np.ndarray         # (blocks, n), Z: Z^T Z is the covariance of the scores along these
    # (base, parameters) and (base,): |matrix theta - target|^2 / 2 is the data term plus a
    # constant.
    matrix: np.ndarray
    target: np.ndarray


class TorqueErrors(NamedTuple):
    """Result of `torque_errors`."""

    rms: np.ndarray     # (nv,), of the unexplained torque of each joint, N m or N
    relative: float     # RMS of the unexplained torques over that of all torques


def torque_errors(part: Partial, values: np.ndarray) -> TorqueErrors:
    """Return the usable torques that ``values`` of ``part.names`` leave unexplained; no errors."""
    left = _squares(part.factors, part.columns, np.append(part.base.combination @ values, -1.0))
    whole = max(part.squares.sum(), np.finfo(float).tiny)
    return TorqueErrors(np.sqrt(left / np.maximum(part.counts.sum(axis=0), 1)),
                        float(np.sqrt(left.sum() / whole)))


def _squares(factors: Sequence[np.ndarray], columns: Sequence[np.ndarray], T: np.ndarray
             ) -> np.ndarray:
    """Return |[Y_j, tau_j] T|^2 for each joint; T has the shape (base + 1,) or (base + 1, any)."""
    return np.array([np.sum((R @ T[[*active, -1]]) ** 2) for R, active in zip(factors, columns)])


def weighted_fit(part: Partial, prior: np.ndarray, deviation: np.ndarray) -> WeightedFit:
    """Return the parameters that explain torques best, given a prior and its deviation."""
    joints = _Joints(part, prior)
    noise, correlation = joints.size, np.ones(len(joints.size))
    for _ in range(CORRELATION_ROUNDS):
        # A weak prior: its bias would otherwise be taken for noise.
        noise = _converged_noise(joints, WEAK_PRIOR * deviation, noise, correlation)
        x = _solve(joints, WEAK_PRIOR * deviation, noise, correlation)[0]
        parts = joints.block_scores(noise, joints.B @ (WEAK_PRIOR * deviation * x))
        correlation = np.array([correlation_of(*one, counts)
                                for one, counts in zip(parts, part.counts.T)])
    x, sigma, Vt, matrix, target = _solve(joints, deviation, noise, correlation)
    parts = joints.block_scores(noise, joints.B @ (deviation * x))
    T = joints.B * deviation @ Vt.T
    n = len(sigma)
    scores, information = np.zeros((BLOCKS, n)), np.zeros((BLOCKS, n, n))
    for active, (score, inform), correlated in zip(part.columns, parts, correlation):
        scores += score @ T[active] / correlated
        information += T[active].T @ inform @ T[active] / correlated
    Z = scatter(scores, information, np.diag(sigma ** 2 + 1.0))
    return WeightedFit(prior + deviation * x, noise, correlation, sigma, Vt, Z, matrix,
                       target + matrix @ prior)


def _solve(joints: '_Joints', deviation: np.ndarray, noise: np.ndarray,
           correlation: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return x, singular values and vectors, and the matrix and target of the least squares."""
    matrix, target = joints.weighted_system(1.0 / (noise * np.sqrt(correlation)))
    U, sigma, Vt = np.linalg.svd(matrix * deviation, full_matrices=False)
    return Vt.T @ (sigma / (sigma ** 2 + 1.0) * (U.T @ target)), sigma, Vt, matrix, target


def _converged_noise(joints: '_Joints', deviation: np.ndarray, noise: np.ndarray,
                     correlation: np.ndarray) -> np.ndarray:
    """Return the noise of the joints that is consistent with the fit it weights."""
    for _ in range(MAX_ITERATIONS):
        x, sigma, Vt, *_ = _solve(joints, deviation, noise, correlation)
        # Degrees of freedom that the parameters take from each joint.
        T = joints.B * deviation @ Vt.T / np.sqrt(sigma ** 2 + 1.0)
        dof = joints.squares(np.pad(T, ((0, 1), (0, 0)))) / (noise ** 2 * correlation)
        rest = np.sqrt(joints.squares(np.append(joints.B @ (deviation * x), -1.0))
                       / np.maximum(joints.counts - dof, 1.0))
        before, noise = noise, np.maximum(rest, joints.min_noise)
        if np.all(np.abs(noise - before) <= NOISE_TOLERANCE * before):
            break
    return noise


def correlation_of(scores: np.ndarray, information: np.ndarray, counts: np.ndarray) -> float:
    """Return how many samples of a joint count as one: 1 for white noise."""
    # The mean ratio of the variances of the scores to those of white noise, at most the number of
    # samples in a block. Scores (blocks, n) and information (blocks, n, n) are derivatives of half
    # the sum of squares, in units of the noise.
    block_size = np.sum(counts) / max(np.count_nonzero(counts), 1)
    total = information.sum(axis=0)
    values, vectors = np.linalg.eigh(total)
    known = values > 1e-12 * np.max(values, initial=0.0)
    W = vectors[:, known] / np.sqrt(values[known])
    shares = W.T @ information @ W
    # For white noise: the expected sum of squares, less the degrees of freedom of the parameters.
    expected = np.sum(known) - np.sum(shares ** 2)
    found = np.sum((scores @ W) ** 2) / expected if expected > 0.0 else 1.0
    return float(np.clip(found, 1.0, max(block_size, 1.0)))


def scatter(scores: np.ndarray, information: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return Z (blocks, n): Z^T Z is the covariance of the summed scores; total has the prior."""
    L = np.linalg.cholesky(total)
    L_inv = np.linalg.inv(L)
    values, vectors = np.linalg.eigh(L_inv @ information @ L_inv.T)
    whole = 1.0 / (1.0 - np.clip(values, 0.0, MAX_BLOCK_SHARE))
    inner = (vectors.swapaxes(-1, -2) @ (scores @ L_inv.T)[..., None])[..., 0]
    return (vectors @ (whole * inner)[..., None])[..., 0] @ L.T


class _Joints:
    """The factors of all joints, with the torques of the prior subtracted."""

    def __init__(self, part: Partial, prior: np.ndarray) -> None:
        self.B, self._columns = part.base.combination, part.columns
        self._blocks, self._whole = [], []
        beta = self.B @ prior
        for factors, active in zip(part.factors, part.columns):
            rest = factors.copy()
            rest[:, :, -1] -= factors[:, :, :-1] @ beta[active]
            self._blocks.append(rest)
            self._whole.append(triangle(*rest))
        self.counts = part.counts.sum(axis=0)
        size = np.sqrt(part.squares / np.maximum(self.counts, 1))
        # Relative to the torques; to 1 N m if all are zero.
        self.min_noise = MIN_NOISE * (np.max(size, initial=0.0) or 1.0)
        self.size = np.maximum(size, self.min_noise)

    def weighted_system(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A and b: |A (theta - prior) - b|^2 is the weighted sum plus a constant."""
        base = len(self.B)
        R = np.zeros((sum(map(len, self._whole)), base + 1))
        row = 0
        for active, whole, weight in zip(self._columns, self._whole, weights):
            R[row:row + len(whole), [*active, base]] = weight * whole
            row += len(whole)
        R = triangle(R)
        return R[:base, :base] @ self.B, R[:base, base]

    def squares(self, T: np.ndarray) -> np.ndarray:
        """Return |[Y_j, rest_j] T|^2 for each joint; for (step, -1): the squared residuals."""
        return _squares(self._whole, self._columns, T)

    def block_scores(self, noise: np.ndarray,
                     step: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return scores and information matrices of the blocks, for each joint."""
        parts = []
        for active, factors, sd in zip(self._columns, self._blocks, noise):
            Y, rest = factors[:, :, :-1] / sd, factors[:, :, -1] / sd
            across = Y.swapaxes(-1, -2)
            parts.append(((across @ (rest - Y @ step[active])[..., None])[..., 0], across @ Y))
        return parts
