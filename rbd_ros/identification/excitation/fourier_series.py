# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Periodic motions of joints that begin and end at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, number, whole_number

# Limits of the period of a motion, s, of its harmonics, whose samples and coefficients fill
# matrices, and of its points.
DURATION, MOST_HARMONICS, MOST_POINTS = (1e-3, 1e5), 100, 1_000_000


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """
    Positions of joints as sums of sines and cosines, whose velocities and accelerations are exact.

    Attributes
    ----------
    period : float
        s.
    mean : ndarray, shape (joints,)
        Of the positions, rad or m.
    sines, cosines : ndarray, shape (harmonics, joints)
        q(t) = mean + sum over k of sines[k] sin((k + 1) w t) + cosines[k] cos((k + 1) w t),
        w = 2 pi / period.

    """

    period: float
    mean: np.ndarray
    sines: np.ndarray
    cosines: np.ndarray

    def at(self, t: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """
        Return positions, velocities and accelerations at some times.

        Parameters
        ----------
        t : array_like, shape (times,)
            s.

        Returns
        -------
        q, v, a : ndarray, shape (times, joints)
            rad or m, per s, per s^2.

        """
        t = finite_array('t', t, (None,))
        omega = 2.0 * np.pi / self.period * np.arange(1, len(self.sines) + 1)
        sine, cosine = np.sin(np.outer(t, omega)), np.cos(np.outer(t, omega))
        return (self.mean + sine @ self.sines + cosine @ self.cosines,
                (cosine * omega) @ self.sines - (sine * omega) @ self.cosines,
                -(sine * omega ** 2) @ self.sines - (cosine * omega ** 2) @ self.cosines)

    def times(self, rate: float) -> np.ndarray:
        """
        Return even times from the beginning to the end, both included.

        Parameters
        ----------
        rate : float
            About how many a second, Hz: the last one is the end.

        Raises
        ------
        StateError
            If there are more than a million.

        """
        return even_times(self.period, rate)


def even_times(period: float, rate: float) -> np.ndarray:
    """Return `FourierSeries.times` of a motion, or refuse its period, s, or the rate, Hz."""
    points = 1 + max(1, round(number('duration', period, *DURATION)
                              * number('rate', rate, 1e-3, 1e5)))
    if points > MOST_POINTS:
        raise StateError(f'{period:g} s at {rate:g} Hz are {points} points, the most are '
                         f'{MOST_POINTS}: take a lower rate, or a shorter duration')
    return np.linspace(0.0, period, points)


class RestBasis:
    """
    All Fourier series of some harmonics whose velocity and acceleration are zero at t = 0.

    A coefficient of 1 is a velocity of about 1 rad/s or m/s.

    Parameters
    ----------
    period : float
        s.
    harmonics : int
        At least 2: a single sine is nowhere at rest.
    samples : int
        Even times in a period at which the series are evaluated.

    Attributes
    ----------
    q, v, a : ndarray, shape (samples, size)
        What each of the basis is, at those times. The first is the mean position.
    size : int
        How many there are.

    """

    def __init__(self, period: float, harmonics: int, samples: int) -> None:
        self.period = number('duration', period, *DURATION)
        if whole_number('harmonics', harmonics, most=MOST_HARMONICS) < 2:
            raise StateError('harmonics must be at least 2: a single sine is nowhere at rest')
        self._harmonics = harmonics
        omega = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
        # Columns: sines and cosines of unit velocity. They move at t = 0 as these rows say.
        at_rest = np.zeros((2, 2 * harmonics))
        at_rest[0, :harmonics] = 1.0
        at_rest[1, harmonics:] = omega
        _, _, Vt = np.linalg.svd(at_rest / np.linalg.norm(at_rest, axis=1, keepdims=True))
        self._null, self._omega = Vt[2:].T, omega
        self.size = 1 + 2 * harmonics - 2
        series = self.series(np.eye(self.size))
        self.q, self.v, self.a = series.at(np.arange(samples) * (period / samples))

    def series(self, x: np.ndarray) -> FourierSeries:
        """Return the series of some coefficients, shape (size, joints)."""
        moving = self._null @ x[1:]
        n = self._harmonics
        return FourierSeries(self.period, x[0].copy(), moving[:n] / self._omega[:, None],
                             moving[n:] / self._omega[:, None])
