# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Filtered samples of a recording, with masks of the efforts that can be used."""

from dataclasses import dataclass

import numpy as np
from rbd_ros.recordings.filters import low_pass


@dataclass(frozen=True, eq=False)
class Samples:
    """
    Result of `prepare`: filtered signals at uniform times (except for gaps), and masks.

    Attributes
    ----------
    time : ndarray, shape (samples,)
        s, as in the recording.
    q : ndarray, shape (samples, nq)
        Filtered positions, rad or m.
    v, a, tau : ndarray, shape (samples, nv)
        Filtered velocities, accelerations and efforts.
    raw : ndarray, shape (samples, nv)
        Efforts with what the filter removed.
    usable, moving, saturated : ndarray of bool, shape (samples, nv)
        ``moving``: the joint is faster than its threshold. ``saturated``: its drive is at its
        limit, or was within the reach of the filter. ``usable``: the effort carries information
        about the robot: the joint moves, its drive is not saturated, and no gap or end is near.
    threshold, segment : ndarray, shape (nv,) and (samples,)
        Speeds below which joints count as standing, rad/s or m/s; number of gaps before a sample.
    rate, cutoff : float
        Sampling rate, and cut-off of the filter, Hz; infinite: not filtered.
    delay, delay_deviation, delay_explains, delay_removed : float
        Estimated delay of the efforts relative to the positions, its standard deviation, s, and
        the fraction of the otherwise unexplained variance that it explains; delay removed, s.
    left_out, notes : float, tuple of str
        Fraction of the states left out because a value was missing or not finite; notes of the
        recording and of its preparation.

    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    raw: np.ndarray
    usable: np.ndarray
    moving: np.ndarray
    saturated: np.ndarray
    threshold: np.ndarray
    segment: np.ndarray
    rate: float
    cutoff: float
    delay: float = 0.0
    delay_deviation: float = np.inf
    delay_explains: float = 0.0
    delay_removed: float = 0.0
    left_out: float = 0.0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    def low_pass(self, x: np.ndarray) -> np.ndarray:
        """Apply the filter of the samples to other signals at their times, (samples, ...)."""
        # Nonlinear functions of the signals, such as signs, must be filtered to match the efforts.
        if not np.isfinite(self.cutoff):
            return x
        y = np.empty_like(x, dtype=float)
        for k in np.unique(self.segment):
            rows = self.segment == k
            y[rows] = low_pass(x[rows], self.rate, self.cutoff)
        return y
