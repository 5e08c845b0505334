# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Estimate the delay of recorded efforts relative to positions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rbd_ros import batch
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples
from rbd_ros.workspace.passive_joints import all_springs, passive_friction, passive_rotors

# Largest delay searched for, either way: s, and as a fraction of the longest segment.
MAX_DELAY, MAX_SEGMENT_FRACTION = 1.5, 0.2
SAMPLES_PER_PERIOD = 8  # Samples per period of the cut-off: more would add no information.
# Delays whose squared residuals exceed the least ones by fewer standard deviations of the scatter
# between blocks are equally good; the one nearest to zero is chosen.
MIN_DEVIATIONS = 2.0
# Gauss-Newton: largest number of steps, and the step at which it has converged, s.
MAX_STEPS, CONVERGED = 20, 1e-7
# The best delay must explain more than a typical one, by this many standard deviations of the
# amount that the columns explain of pure noise.
MIN_SIGNIFICANCE = 15.0
MAX_ROWS = 5000  # Rows used at most.
# Singular values below this fraction of the largest belong to dependent columns.
RANK_TOLERANCE = 1e-6
BLOCKS = 20  # Blocks of samples that are compared to estimate the scatter.


class Delay(NamedTuple):
    """Result of `estimate_delay`."""

    seconds: float      # by which efforts lag behind positions
    deviation: float    # standard deviation, s; inf if the motion does not determine the delay
    explains: float     # fraction of the variance unexplained without a delay that it explains


def estimate_delay(model: Model, samples: Samples) -> Delay:
    """
    Estimate the delay of the efforts relative to the positions.

    It is the delay at which the efforts of each joint are explained best by a linear combination
    of gravity, the other torques of the bodies, those of springs and dependent joints,
    acceleration, velocity, its sign and an offset. Friction, motor inertia, drive gains and masses
    need to be known only roughly. Of delays that explain the efforts equally well it is the one
    nearest to zero. The standard deviation is the larger one of the scatter over time and the
    scatter between joints, and infinite if the efforts do not determine the delay. A delay that
    `prepare` removed is not included. No errors are raised.

    Parameters
    ----------
    model, samples : Model, Samples
        The robot, and the result of `prepare` for it.

    """
    search, unknown = _Search(model, samples), Delay(0.0, np.inf, 0.0)
    if not search.joints:
        return unknown
    seconds, is_significant = search.grid_search()
    if not is_significant:
        return unknown
    for _ in range(MAX_STEPS):
        step = search.gauss_newton_step(seconds)[0]
        seconds = float(np.clip(seconds + step, -search.largest, search.largest))
        if abs(step) < CONVERGED:
            break
    _, deviation = search.gauss_newton_step(seconds)
    if deviation >= search.largest or abs(seconds) >= search.largest:
        return unknown
    with_delay, without = search.cost(search.squares([seconds, 0.0]))
    explains = -np.expm1(with_delay - without)
    return Delay(seconds, deviation, float(explains))


class _JointColumns(NamedTuple):
    """Explanatory columns A = U S V^T of a joint, in its rows, V S^-1, and their rates."""

    joint: int
    rows: np.ndarray
    U: np.ndarray
    to_coefficients: np.ndarray
    rates: np.ndarray


class _Search:
    """The efforts of samples at shifted times, and the columns that explain them."""

    def __init__(self, model: Model, samples: Samples) -> None:
        from scipy.interpolate import CubicSpline
        segments = [np.flatnonzero(samples.segment == k) for k in np.unique(samples.segment)]
        segments = [segment for segment in segments if len(segment) > 3]
        longest = max((len(segment) for segment in segments), default=0) / samples.rate
        self.largest = min(MAX_DELAY, MAX_SEGMENT_FRACTION * longest)
        # Resolution of delays with a filter at the cut-off.
        self._step = 1.0 / (SAMPLES_PER_PERIOD * samples.cutoff)
        self._splines = [CubicSpline(samples.time[segment], samples.tau[segment])
                         for segment in segments]
        every = max(1, int(samples.rate * self._step), len(samples.time) // MAX_ROWS)
        inside = []
        for segment in segments:
            time = samples.time[segment]
            inner = (time >= time[0] + self.largest) & (time <= time[-1] - self.largest)
            inside.append(segment[inner][::every])
        self._times = [samples.time[rows] for rows in inside]
        rows = np.concatenate(inside) if inside else np.zeros(0, int)
        columns = explanatory_columns(model, samples)
        rates = np.zeros_like(columns)
        for segment in segments:
            rates[segment] = np.gradient(columns[segment], 1.0 / samples.rate, axis=0)
        self.joints = []
        for j in range(model.nv):
            use = np.flatnonzero(samples.usable[rows, j])
            if len(use) <= 2 * columns.shape[2]:
                continue
            U, sigma, Vt = np.linalg.svd(columns[rows[use], j], full_matrices=False)
            independent = sigma > RANK_TOLERANCE * sigma[0]
            self.joints.append(_JointColumns(
                j, use, U[:, independent], (Vt[independent] / sigma[independent, None]).T,
                rates[rows[use], j]))
        self.share = np.array([float(len(one.rows)) for one in self.joints])
        self.share /= max(np.sum(self.share), 1.0)

    def efforts(self, seconds: float) -> np.ndarray:
        """Return the efforts measured this much later."""
        return np.concatenate([spline(time + seconds)
                               for spline, time in zip(self._splines, self._times)])

    def squares(self, delays: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the squared residuals by delay, joint and block, (delays, joints, BLOCKS)."""
        found = np.zeros((len(delays), len(self.joints), BLOCKS))
        for k, seconds in enumerate(delays):
            efforts = self.efforts(seconds)
            for j, one in enumerate(self.joints):
                y = efforts[one.rows, one.joint]
                residual = y - one.U @ (one.U.T @ y)
                # Rounding errors are no residuals.
                least = np.finfo(float).eps ** 2 * (y @ y) + np.finfo(float).tiny
                found[k, j] = np.bincount(one.rows * BLOCKS // len(efforts), residual ** 2, BLOCKS
                                          ) + least / BLOCKS
        return found

    def cost(self, squares: np.ndarray) -> np.ndarray:
        """Return the logarithms of the unexplained variance, averaged over the rows."""
        # Log-likelihood of noise of unknown variance, joint by joint.
        return np.log(squares.sum(axis=2)) @ self.share

    def grid_search(self) -> tuple[float, bool]:
        """Return the best delay of a grid, and whether it is significant."""
        steps = int(self.largest / self._step)
        grid = self._step * np.arange(-steps, steps + 1)
        squares = self.squares(grid)
        cost = self.cost(squares)
        least = squares[np.argmin(cost)]
        worse = self.share @ ((squares - least) / least.sum(axis=1, keepdims=True))
        good = grid[worse.sum(axis=1) <= MIN_DEVIATIONS * np.linalg.norm(worse, axis=1)]
        # Likelihood ratio statistic; two independent rows per period of the cut-off.
        rows = sum(len(one.rows) for one in self.joints)
        gain = (np.median(cost) - np.min(cost)) * 2.0 * rows / SAMPLES_PER_PERIOD
        columns = sum(one.U.shape[1] for one in self.joints)
        return (float(good[np.argmin(np.abs(good))]),
                gain > MIN_SIGNIFICANCE * np.sqrt(2.0 * columns))

    def gauss_newton_step(self, seconds: float) -> tuple[float, float]:
        """Return the Gauss-Newton step to the best delay, and its standard deviation."""
        efforts = self.efforts(seconds)
        scores, weights, steps = np.zeros(len(efforts)), [], []
        for one in self.joints:
            y = efforts[one.rows, one.joint]
            explained = one.U.T @ y
            residual = y - one.U @ explained
            # Rate of the explained effort, without the part that the columns explain.
            rate = one.rates @ (one.to_coefficients @ explained)
            rate = rate - one.U @ (one.U.T @ rate)
            variance = residual @ residual / len(y)
            if not rate @ rate > 0.0 or not variance > 0.0:
                continue
            score = -rate * residual / variance
            scores[one.rows] += score
            weights.append(rate @ rate / variance)
            steps.append(np.sum(score) / weights[-1])
        weight = sum(weights)
        if not weight > 0.0:
            return 0.0, np.inf
        step = float(np.dot(weights, steps) / weight)
        by_block = [np.sum(part) for part in np.array_split(scores, BLOCKS)]
        deviation = np.linalg.norm(by_block) / weight
        if len(steps) > 1:
            between = np.linalg.norm(np.multiply(weights, np.subtract(steps, step))) / weight
            deviation = max(deviation, between * np.sqrt(len(steps) / (len(steps) - 1)))
        return step, float(deviation)


def explanatory_columns(model: Model, samples: Samples) -> np.ndarray:
    """Return the quantities that may explain the efforts, shape (samples, nv, columns)."""
    q, v, a = samples.q, samples.v, samples.a
    still = np.zeros_like(v)
    gravity = batch.inverse_dynamics(model, q, still, still)
    motion = batch.inverse_dynamics(model, q, v, a) - gravity
    others = (all_springs(model, q) + samples.low_pass(passive_friction(model, q, v))
              + passive_rotors(model, q, v, a))
    return np.stack((gravity, motion, others, a, v, samples.low_pass(np.sign(v)),
                     np.ones_like(v)), axis=2)
