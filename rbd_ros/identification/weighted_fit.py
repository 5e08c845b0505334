# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Weighted least squares from R factors, kept near a guess where torques say nothing.

What is minimized is

    1/2 sum over joints of |tau_j - Y_j theta|^2 / (noise_j^2 correlation_j) + 1/2 |x|^2,

x = (theta - guess) / spread. Noise is the standard deviation of each joint's residual, and
correlation the number of samples that count as one, because errors are correlated in time: both
come from the previous fit.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rbd_ros.batch.least_squares import triangle
from rbd_ros.identification.partials import Partial, STRETCHES
from rbd_ros.identification.uncertainty import inflation, scatter

# Noise of torques, as a share of their size, that every sensor has.
LEAST_NOISE = 1e-6
# The noise has settled when it changes by less than this; and the largest number of fits for it.
SETTLED, FITS = 1e-2, 20
# How often the correlation is estimated from the residuals of the previous fit.
ROUNDS = 2
# The noise is estimated as if the guess were this many times less certain.
WIDE = 1e3


class WeightedFit(NamedTuple):
    """
    What `weighted_fit` computes; x = (theta - guess) / spread.

    Attributes
    ----------
    theta : ndarray, shape (parameters,)
        The estimate.
    noise : ndarray, shape (nv,)
        Standard deviation of the torques of each joint from it, N m or N.
    correlation : ndarray, shape (nv,)
        How many samples of each joint count as one.
    sigma : ndarray, shape (shown,)
        How many times better the torques say it than the guess, for each direction of x that they
        say something of, the best first.
    directions : ndarray, shape (shown, parameters)
        Those directions.
    scatter : ndarray, shape (stretches, shown)
        Z, of which Z^T Z is the covariance, by the noise, of the first term's derivatives along
        them.
    matrix, target : ndarray, shape (base, parameters) and (base,)
        With |matrix theta - target|^2 / 2 equal to the first term, but for a constant.

    """

    theta: np.ndarray
    noise: np.ndarray
    correlation: np.ndarray
    sigma: np.ndarray
    directions: np.ndarray
    scatter: np.ndarray
    matrix: np.ndarray
    target: np.ndarray


class TorqueErrors(NamedTuple):
    """
    What `torque_errors` computes.

    Attributes
    ----------
    rms : ndarray, shape (nv,)
        Root mean square of what is not explained of each joint's torque, N m or N.
    relative : float
        The square root of the sum of its squares over that of the torques, all joints together.

    """

    rms: np.ndarray
    relative: float


def torque_errors(part: Partial, values: np.ndarray) -> TorqueErrors:
    """
    Return what parameters leave unexplained of recorded torques.

    Parameters
    ----------
    part : Partial
        What recordings say: those that were fitted, or others.
    values : ndarray, shape (parameters,)
        The parameters, as ``part.names`` has them.

    Returns
    -------
    TorqueErrors
        Over the samples that can be used.

    """
    beta = part.base.combination @ values
    squares = np.array([np.sum((R @ np.append(beta[own], -1.0)) ** 2)
                        for R, own in zip(part.factors, part.columns)])
    return TorqueErrors(np.sqrt(squares / np.maximum(part.counts.sum(axis=0), 1)),
                        float(np.sqrt(squares.sum() / max(part.squares.sum(),
                                                          np.finfo(float).tiny))))


def weighted_fit(part: Partial, guess: np.ndarray, spread: np.ndarray) -> WeightedFit:
    """
    Return the parameters that explain torques best.

    Parameters
    ----------
    part : Partial
        What recordings say.
    guess : ndarray, shape (parameters,)
        What is believed without them.
    spread : ndarray, shape (parameters,)
        Standard deviation of that.

    Returns
    -------
    WeightedFit
        The estimate, and what is needed to tell how certain it is.

    """
    joints = _Joints(part, guess)
    noise, correlation = joints.size, np.ones(len(joints.size))
    for _ in range(ROUNDS):
        # What torques say alone: else a guess that holds the estimate would be taken for noise.
        noise = _settle(joints, WIDE * spread, noise, correlation)
        found = _solve(joints, WIDE * spread, noise, correlation)
        parts = joints.stretches(noise, joints.B @ (WIDE * spread * found.x))
        correlation = np.array([inflation(*one, counts)
                                for one, counts in zip(parts, part.counts.T)])
    found = _solve(joints, spread, noise, correlation)
    parts = joints.stretches(noise, joints.B @ (spread * found.x))
    T = joints.B * spread @ found.Vt.T
    n = len(found.sigma)
    scores, information = np.zeros((STRETCHES, n)), np.zeros((STRETCHES, n, n))
    for own, (score, inform), few in zip(part.columns, parts, correlation):
        scores += score @ T[own] / few
        information += T[own].T @ inform @ T[own] / few
    Z = scatter(scores, information, np.diag(found.sigma ** 2 + 1.0))
    return WeightedFit(guess + spread * found.x, noise, correlation, found.sigma, found.Vt, Z,
                       found.matrix, found.target + found.matrix @ guess)


class _Solution(NamedTuple):
    """Weighted least squares in x, and their singular value decomposition."""

    x: np.ndarray
    matrix: np.ndarray
    target: np.ndarray
    sigma: np.ndarray
    Vt: np.ndarray


def _solve(joints: _Joints, spread: np.ndarray, noise: np.ndarray,
           correlation: np.ndarray) -> _Solution:
    """Return the estimate for a given noise."""
    matrix, target = joints.weighed(1.0 / (noise * np.sqrt(correlation)))
    U, sigma, Vt = np.linalg.svd(matrix * spread, full_matrices=False)
    return _Solution(Vt.T @ (sigma / (sigma ** 2 + 1.0) * (U.T @ target)), matrix, target, sigma,
                     Vt)


def _settle(joints: _Joints, spread: np.ndarray, noise: np.ndarray,
            correlation: np.ndarray) -> np.ndarray:
    """Return the noise of the joints in the fit that weighs them by it."""
    for _ in range(FITS):
        found = _solve(joints, spread, noise, correlation)
        # How many samples of each joint the parameters took up.
        T = joints.B * spread @ found.Vt.T / np.sqrt(found.sigma ** 2 + 1.0)
        taken = joints.squares(T) / (noise ** 2 * correlation)
        rest = np.sqrt(joints.errors(joints.B @ (spread * found.x))
                       / np.maximum(joints.counts - taken, 1.0))
        before, noise = noise, np.maximum(rest, joints.least)
        if np.all(np.abs(noise - before) <= SETTLED * before):
            break
    return noise


class _Joints:
    """The factors of all joints, with the torques of the guess taken off."""

    def __init__(self, part: Partial, guess: np.ndarray) -> None:
        self.B, self._columns = part.base.combination, part.columns
        self._stretches, self._whole = [], []
        beta = self.B @ guess
        for factors, own in zip(part.factors, part.columns):
            rest = factors.copy()
            rest[:, :, -1] -= factors[:, :, :-1] @ beta[own]
            self._stretches.append(rest)
            self._whole.append(triangle(*rest))
        self.counts = part.counts.sum(axis=0)
        size = np.sqrt(part.squares / np.maximum(self.counts, 1))
        # In units of the torques; of 1 N m if there are none.
        self.least = LEAST_NOISE * (np.max(size, initial=0.0) or 1.0)
        self.size = np.maximum(size, self.least)

    def weighed(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A and b: |A (theta - guess) - b|^2 is the weighted sum, but for a constant."""
        base = len(self.B)
        R = np.zeros((sum(map(len, self._whole)), base + 1))
        row = 0
        for own, whole, weight in zip(self._columns, self._whole, weights):
            R[row:row + len(whole), [*own, base]] = weight * whole
            row += len(whole)
        R = triangle(R)
        return R[:base, :base] @ self.B, R[:base, base]

    def squares(self, T: np.ndarray) -> np.ndarray:
        """Return for each joint |Y_j T|^2, T of the shape (base, any)."""
        return np.array([np.sum((whole[:, :-1] @ T[own]) ** 2)
                         for own, whole in zip(self._columns, self._whole)])

    def errors(self, change: np.ndarray) -> np.ndarray:
        """Return for each joint the sum of squares of torques that a change leaves."""
        return np.array([np.sum((whole @ np.append(change[own], -1.0)) ** 2)
                         for own, whole in zip(self._columns, self._whole)])

    def stretches(self, noise: np.ndarray,
                  change: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return scores and information of the stretches, for each joint by its parameters."""
        parts = []
        for own, factors, sd in zip(self._columns, self._stretches, noise):
            Y, rest = factors[:, :, :-1] / sd, factors[:, :, -1] / sd
            across = Y.swapaxes(-1, -2)
            parts.append(((across @ (rest - Y @ change[own])[..., None])[..., 0], across @ Y))
        return parts
