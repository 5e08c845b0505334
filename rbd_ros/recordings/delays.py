# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The time by which the efforts of a recording come later than its positions."""

from __future__ import annotations

from typing import NamedTuple, TYPE_CHECKING

import numpy as np
from rbd_ros import batch
from rbd_ros.model.model import Model

if TYPE_CHECKING:
    from rbd_ros.recordings.samples import Samples

# The largest delay that is searched for, in either direction, s; and as a share of the longest
# stretch of samples without a gap.
LARGEST, LARGEST_SHARE = 1.5, 0.2
# Samples in a period of the cut-off: more would add nothing.
SAMPLES_PER_PERIOD = 8
# Delays that explain the efforts as well as the best one, within this share of the variance, count
# as equal: the one nearest to zero is taken.
EQUALS = 0.02
STEPS, STEP = 20, 1e-7            # of Gauss and Newton: the largest number, and the last one, s
# The best delay must explain more than a typical one by so many standard deviations of what
# columns explain of pure noise.
BEYOND_CHANCE = 15.0
# Number of rows that are used, and the singular value, as a share of the largest, below which
# columns are combinations of the others.
MOST_ROWS, SHOWN = 5000, 1e-6
# Stretches into which the samples are divided to estimate how much their evidence varies.
STRETCHES = 20


class Delay(NamedTuple):
    """
    What `estimate_delay` computes.

    Attributes
    ----------
    seconds : float
        Time by which efforts come later than positions, s.
    deviation : float
        Its standard deviation, s; inf if the motion does not determine it.
    explains : float
        Share of the variance that is unexplained without a delay, and explained with it.

    """

    seconds: float
    deviation: float
    explains: float


def estimate_delay(model: Model, samples: Samples) -> Delay:
    """
    Return the delay of the efforts of samples relative to their positions.

    It is the delay at which, for each joint on its own, gravity, all other torques of the model,
    acceleration, velocity, its sign and an offset explain the efforts best, each with a factor
    that is fitted. Friction, motor inertia, drive gains and masses need to be known only roughly.
    Its deviation is the larger one of the scatter between stretches of the recording and of that
    between joints.

    Parameters
    ----------
    model : Model
        The robot.
    samples : Samples
        As `prepare` returns them; a delay that was removed already is not counted.

    Returns
    -------
    Delay
        With the fields ``seconds deviation explains``.

    """
    search, unknown = _Search(model, samples), Delay(0.0, np.inf, 0.0)
    if not search.joints:
        return unknown
    seconds, is_shown = search.coarse()
    if not is_shown:
        return unknown
    for _ in range(STEPS):
        step = search.evidence(seconds)[0]
        seconds = float(np.clip(seconds + step, -search.largest, search.largest))
        if abs(step) < STEP:
            break
    _, deviation = search.evidence(seconds)
    if deviation >= search.largest:
        return unknown
    explains = -np.expm1(search.cost(seconds) - search.cost(0.0))
    return Delay(seconds, deviation, float(explains))


class _Explained(NamedTuple):
    """Columns that explain the effort of a joint, in its rows: U S V^T, and their rates."""

    joint: int
    rows: np.ndarray
    U: np.ndarray
    back: np.ndarray
    rates: np.ndarray


class _Search:
    """The efforts of samples at shifted times, and the columns that explain them."""

    def __init__(self, model: Model, samples: Samples) -> None:
        from scipy.interpolate import CubicSpline

        spans = [np.flatnonzero(samples.segment == k) for k in np.unique(samples.segment)]
        spans = [span for span in spans if len(span) > 3]
        longest = max((len(span) for span in spans), default=0) / samples.rate
        self.largest = min(LARGEST, LARGEST_SHARE * longest)
        # The smallest difference of delays that can be resolved with a filter at the cut-off.
        self._step = 1.0 / (SAMPLES_PER_PERIOD * samples.cutoff)
        self._splines = [CubicSpline(samples.time[span], samples.tau[span]) for span in spans]
        every = max(1, int(samples.rate * self._step), len(samples.time) // MOST_ROWS)
        inside = []
        for span in spans:
            time = samples.time[span]
            inner = (time >= time[0] + self.largest) & (time <= time[-1] - self.largest)
            inside.append(span[inner][::every])
        self._times = [samples.time[rows] for rows in inside]
        rows = np.concatenate(inside) if inside else np.zeros(0, int)
        columns = _columns(model, samples)
        rates = np.zeros_like(columns)
        for span in spans:
            rates[span] = np.gradient(columns[span], 1.0 / samples.rate, axis=0)
        self.joints = []
        for j in range(model.nv):
            use = np.flatnonzero(samples.usable[rows, j])
            if len(use) <= 2 * columns.shape[2]:
                continue
            U, sigma, Vt = np.linalg.svd(columns[rows[use], j], full_matrices=False)
            shown = sigma > SHOWN * sigma[0]
            self.joints.append(_Explained(
                j, use, U[:, shown], (Vt[shown] / sigma[shown, None]).T, rates[rows[use], j]))

    def efforts(self, seconds: float) -> np.ndarray:
        """Return the efforts that were measured some time later."""
        return np.concatenate([spline(time + seconds)
                               for spline, time in zip(self._splines, self._times)])

    def cost(self, seconds: float) -> float:
        """Return the logarithm of the unexplained variance, averaged over the rows."""
        efforts = self.efforts(seconds)
        total = 0.0
        for one in self.joints:
            y = efforts[one.rows, one.joint]
            unexplained = y - one.U @ (one.U.T @ y)
            # Likelihood of noise whose variance is unknown, joint by joint.
            least = np.finfo(float).eps ** 2 * (y @ y) + np.finfo(float).tiny
            total += len(y) * np.log(unexplained @ unexplained + least)
        return float(total / sum(len(one.rows) for one in self.joints))

    def coarse(self) -> tuple[float, bool]:
        """Return the delay of a grid that explains the efforts best, and if it is significant."""
        steps = int(self.largest / self._step)
        grid = self._step * np.arange(-steps, steps + 1)
        cost = np.array([self.cost(seconds) for seconds in grid])
        good = grid[cost <= np.min(cost) + np.log1p(EQUALS)]
        # Twice the logarithm of a likelihood; two rows count per period of the cut-off.
        rows = sum(len(one.rows) for one in self.joints)
        gain = (np.median(cost) - np.min(cost)) * 2.0 * rows / SAMPLES_PER_PERIOD
        columns = sum(one.U.shape[1] for one in self.joints)
        return (float(good[np.argmin(np.abs(good))]),
                gain > BEYOND_CHANCE * np.sqrt(2.0 * columns))

    def evidence(self, seconds: float) -> tuple[float, float]:
        """Return a step of Gauss and Newton to the best delay, and its standard deviation."""
        efforts = self.efforts(seconds)
        scores, weights, steps = np.zeros(len(efforts)), [], []
        for one in self.joints:
            y = efforts[one.rows, one.joint]
            explained = one.U.T @ y
            rest = y - one.U @ explained
            # The rate of what is explained, minus the part that other columns explain.
            rate = one.rates @ (one.back @ explained)
            rate = rate - one.U @ (one.U.T @ rate)
            variance = rest @ rest / len(y)
            if not rate @ rate > 0.0 or not variance > 0.0:
                continue
            score = -rate * rest / variance
            scores[one.rows] += score
            weights.append(rate @ rate / variance)
            steps.append(np.sum(score) / weights[-1])
        weight = sum(weights)
        if not weight > 0.0:
            return 0.0, np.inf
        step = float(np.dot(weights, steps) / weight)
        by_time = [np.sum(part) for part in np.array_split(scores, STRETCHES)]
        deviation = np.linalg.norm(by_time) / weight
        if len(steps) > 1:
            between = np.linalg.norm(np.multiply(weights, np.subtract(steps, step))) / weight
            deviation = max(deviation, between * np.sqrt(len(steps) / (len(steps) - 1)))
        return step, float(deviation)


def _columns(model: Model, samples: Samples) -> np.ndarray:
    """Return what may explain the efforts, shape (samples, nv, columns)."""
    q, v, a = samples.q, samples.v, samples.a
    still = np.zeros_like(v)
    gravity = batch.inverse_dynamics(model, q, still, still)
    motion = batch.inverse_dynamics(model, q, v, a) - gravity
    return np.stack((gravity, motion, a, v, samples.low_pass(np.sign(v)), np.ones_like(v)), axis=2)
