# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
A motion along a path with limited jerk, from the fastest one without.

The path position s(t) of the fastest motion, constant before and after it, is averaged over a time
w, which limits its jerk, and again over r w, which makes that continuous. With D f(t) = f(t)
- f(t - w) - f(t - r w) + f(t - w - r w) and the antiderivatives S_1 and S_2 of s,

    s_w = D S_2 / (r w^2),      s_w' = D S_1 / (r w^2),     s_w'' = D s / (r w^2).

That takes (1 + r) w longer; a slower pace then removes any remaining excess. The w with the
shortest duration is chosen by the limits of velocity, acceleration and jerk; efforts are checked
afterwards, since averaging rarely increases them.

"""

import numpy as np
from rbd_ros.motions.limits import Limits
from rbd_ros.motions.path_limits import Path
from rbd_ros.motions.polynomials import bernstein, rates, samples, value

SECOND = 0.25  # r: second averaging time, as a share of the first.
# Intervals between points: by averaging time, least and most.
PER_AVERAGE, LEAST_INTERVALS, MOST_INTERVALS = 12, 100, 4000
# Shares of each interval at which velocities and efforts are checked.
CHECKS = np.linspace(0.0, 1.0, 5)
# Averaging times that are tried, as shares of the duration, and relative accuracy of the best.
SHORTEST, LONGEST, ACCURACY = 1e-3, 1.0, 0.03


class SmoothMotion:
    """The motion with an averaging time: quintic polynomials between even times."""

    def __init__(self, path: Path, averages: 'Averages', w: float) -> None:
        duration = averages.duration + (1.0 + SECOND) * w
        intervals = int(np.clip(PER_AVERAGE * duration / w, LEAST_INTERVALS, MOST_INTERVALS))
        self.time = np.linspace(0.0, duration, intervals + 1)
        self.s, rate, change = averages(self.time, w)      # path position, 1/s, 1/s^2
        # Rounding at rest would have a direction, and so friction.
        rate[[0, -1]] = change[[0, -1]] = 0.0
        slope, bend = path.spline(self.s, 1), path.spline(self.s, 2)
        self.rate = rate
        self.q = path.spline(self.s)
        self.v = slope * rate[:, None]
        self.a = slope * change[:, None] + bend * rate[:, None] ** 2
        # Of positions, velocities, accelerations and jerks; their values (intervals, checks, nv).
        self._curves = rates(self.time[1], bernstein(self.time[1], self.q, self.v, self.a), 3)
        self.inside = [samples(one, CHECKS) for one in self._curves]

    def least_scale(self, limits: Limits) -> float:
        """Return the factor for the durations that velocities, accelerations and jerks need."""
        _, v, a, j = self.inside
        # Between checks, a velocity is extreme where the acceleration is zero.
        half = 0.5 * CHECKS[1] * self.time[1]
        near = np.abs(a) < half * np.abs(j)
        peak = v - np.divide(a ** 2, 2.0 * j, out=np.zeros_like(v), where=near)
        reverses = (np.min(v, axis=1) < 0.0) & (np.max(v, axis=1) > 0.0)
        _, speed, rate, jerk = self._curves
        begin, end = np.zeros(jerk.shape[1:]), np.ones(jerk.shape[1:])
        middle, first, second = _extreme_shares(jerk)
        # Accelerations are extreme at an end, or where the jerk is zero.
        used = [limits.slowdown(value(speed, x), value(rate, x), value(jerk, x), reverses)
                for x in (begin, end, middle, first, second)]
        return float(max(np.max(used), np.max(np.abs(peak) / limits.velocity)))


def _extreme_shares(jerk: np.ndarray) -> list[np.ndarray]:
    """Return the shares of intervals, from 0 to 1, where a jerk is extreme, and where it is 0."""
    constant, linear, square = jerk[0], 2.0 * (jerk[1] - jerk[0]), np.diff(jerk, 2, axis=0)[0]
    with np.errstate(divide='ignore', invalid='ignore'):
        root = np.sqrt(np.maximum(linear ** 2 - 4.0 * square * constant, 0.0))
        half = -0.5 * (linear + np.copysign(root, linear))
        return [np.clip(np.nan_to_num(x), 0.0, 1.0)
                for x in (-0.5 * linear / square, half / square, constant / half)]


class Averages:
    """The path position of a motion and its averages: positions s and speeds at the nodes."""

    def __init__(self, s: np.ndarray, speed: np.ndarray) -> None:
        from scipy.interpolate import PPoly      # lazily: SciPy is slow to import
        spans = 2.0 * np.diff(s) / (speed[:-1] + speed[1:])
        times = np.concatenate(([0.0], np.cumsum(spans)))
        self.duration = float(times[-1])
        # At rest before and after it: longer than any average.
        rest = 2.0 * LONGEST * self.duration
        pieces = np.zeros((3, len(spans) + 2))
        pieces[0, 1:-1] = 0.5 * np.diff(speed) / spans
        pieces[1, 1:-1], pieces[2, 1:-1] = speed[:-1], s[:-1]
        pieces[2, 0], pieces[2, -1] = s[0], s[-1]
        path = PPoly(pieces, np.concatenate(([-rest], times, [times[-1] + rest])))
        self._integrals = path.antiderivative(2), path.antiderivative(1), path

    def __call__(self, t: np.ndarray, w: float) -> tuple[np.ndarray, ...]:
        """Return s, its rate and the rate of that at times, averaged over w and r w."""
        return tuple((f(t) - f(t - w) - f(t - SECOND * w) + f(t - (1.0 + SECOND) * w))
                     / (SECOND * w ** 2) for f in self._integrals)


def smooth_motion(limits: Limits, path: Path, speed: np.ndarray) -> tuple[SmoothMotion, float]:
    """Return the motion with limited jerk, and the factor for its durations, by `least_scale`."""
    # Efforts may need a larger one. `speed` are the speeds ds/dt of the fastest motion at the
    # nodes.
    from scipy.optimize import minimize_scalar
    averages = Averages(path.s, speed)

    def duration(share: float) -> float:
        motion = SmoothMotion(path, averages, averages.duration * np.exp(share))
        return motion.time[-1] * motion.least_scale(limits)

    best = minimize_scalar(duration, bounds=np.log((SHORTEST, LONGEST)), method='bounded',
                           options={'xatol': ACCURACY}).x
    motion = SmoothMotion(path, averages, averages.duration * float(np.exp(best)))
    return motion, motion.least_scale(limits)
