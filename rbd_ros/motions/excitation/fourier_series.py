# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Periodic joint motions that start and end at rest, also of robots with closed loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, number, whole_number
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import close_samples, moved_closed
from rbd_ros.model.positions.configurations import independent_positions, neutral

# Range of the period, s; most harmonics and points (they fill matrices).
DURATION_RANGE, MAX_HARMONICS, MAX_POINTS = (1e-3, 1e5), 100, 1_000_000


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """
    Joint positions as sums of sines and cosines, with exact derivatives.

    Attributes
    ----------
    period, mean : float, ndarray of shape (joints,)
        Period, s, and mean positions, rad or m.
    sines, cosines : ndarray, shape (harmonics, joints)
        q(t) = mean + sum over k of sines[k] sin((k + 1) w t) + cosines[k] cos((k + 1) w t),
        w = 2 pi / period.

    """

    period: float
    mean: np.ndarray
    sines: np.ndarray
    cosines: np.ndarray

    def at(self, t: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q, v, a at times t (times,), s; each of shape (times, joints)."""
        t = finite_array('t', t, (None,))
        omega = 2.0 * np.pi / self.period * np.arange(1, len(self.sines) + 1)
        sine, cosine = np.sin(np.outer(t, omega)), np.cos(np.outer(t, omega))
        return (self.mean + sine @ self.sines + cosine @ self.cosines,
                (cosine * omega) @ self.sines - (sine * omega) @ self.cosines,
                -(sine * omega ** 2) @ self.sines - (cosine * omega ** 2) @ self.cosines)

    def times(self, rate: float) -> np.ndarray:
        """Return equidistant times from start to end, at about the given rate, Hz."""
        return even_times(self.period, rate)


def even_times(period: float, rate: float) -> np.ndarray:
    """Return the times of a motion of some period, s, at a rate, Hz; see `FourierSeries.times`."""
    points = 1 + max(1, round(number('duration', period, *DURATION_RANGE)
                              * number('rate', rate, 1e-3, 1e5)))
    if points > MAX_POINTS:
        raise StateError(f'{period:g} s at {rate:g} Hz are {points} points, at most '
                         f'{MAX_POINTS} are possible: use a lower rate or a shorter duration')
    return np.linspace(0.0, period, points)


class RestBasis:
    """Basis of the Fourier series whose velocity and acceleration are zero at t = 0."""

    # `q`, `v` and `a` (samples, size) are the basis functions at equidistant times of a period,
    # the mean position first; a coefficient of 1 is about 1 rad/s or m/s.

    def __init__(self, period: float, harmonics: int, samples: int) -> None:
        self.period = number('duration', period, *DURATION_RANGE)
        if whole_number('harmonics', harmonics, most=MAX_HARMONICS) < 2:
            raise StateError('harmonics must be at least 2: a single sine is never at rest')
        omega = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
        # Columns: sines and cosines of unit velocity; rows: velocity, acceleration at t = 0.
        at_rest = np.zeros((2, 2 * harmonics))
        at_rest[0, :harmonics] = 1.0
        at_rest[1, harmonics:] = omega
        _, _, Vt = np.linalg.svd(at_rest / np.linalg.norm(at_rest, axis=1, keepdims=True))
        self._null, self._omega = Vt[2:].T, omega[:, None]
        self.size = 1 + 2 * harmonics - 2
        series = self.series(np.eye(self.size))
        self.q, self.v, self.a = series.at(np.arange(samples) * (period / samples))

    def series(self, x: np.ndarray) -> FourierSeries:
        """Return the series with coefficients x, shape (size, joints)."""
        sines, cosines = (self._null @ x[1:]).reshape(2, len(self._omega), -1) / self._omega
        return FourierSeries(self.period, x[0].copy(), sines, cosines)


# Longest step of an independent joint from one closure to the next, rad or m, and how often it is
# halved where Newton's method fails.
STRIDE, CUTS = 0.2, 2


def whole_motion(model: Model, q: np.ndarray) -> np.ndarray | None:
    """Return configurations (points, nq) for positions of the independent joints, or None."""
    # The loops are closed all the way from the neutral configuration through the points, if they
    # can be. Without loops these are the positions.
    if model.loops is None:
        return q
    own, start = independent_positions(model), neutral(model)
    way = np.concatenate((start[None, own], q))
    parts = np.maximum(1, np.ceil(np.max(np.abs(np.diff(way, axis=0)), axis=1) / STRIDE))
    ends = np.concatenate(([0.0], np.cumsum(parts)))
    found = np.tile(start, (int(ends[-1]) + 1, 1))
    found[:, own] = np.stack([np.interp(np.arange(len(found)), ends, x) for x in way.T], 1)
    row = 1
    while (row := close_samples(model, row, 2.0 * STRIDE, found)) < len(found):
        try:
            step = found[row, own] - found[row - 1, own]
            found[row] = moved_closed(model, found[row - 1], step, CUTS)
        except StateError:
            return None
        row += 1
    return found[ends[1:].astype(int)]


def passive_limits(model: Model) -> np.ndarray:
    """Return the limits (nq, 2) of dependent joints, infinite for other ones and quaternions."""
    tree, limits = model.unconstrained, np.full((model.nq, 2), np.inf) * (-1.0, 1.0)
    assert model.loops is not None
    own = set(model.loops.own.tolist())
    for joint, q, v in tree.moving_joints:
        for i, k in zip(range(q.start, q.stop), range(v.start, v.stop)):
            if KINDS[joint.kind].is_screws and k not in own:
                limits[i] = tree.lower[k], tree.upper[k]
    return limits
