# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Velocities of joints whose positions alone are measured."""

from collections.abc import Sequence

import numpy as np


class Differentiator:
    """Low-pass filtered differences of positions; `turns`: which may jump by full turns."""

    def __init__(self, turns: Sequence[bool]) -> None:
        self._turns = np.asarray(turns, bool)
        # Velocities, rad/s or m/s; NaN where unknown.
        self.rates = np.empty(len(self._turns))
        self.forget()

    def forget(self) -> None:
        """Discard all positions."""
        self.rates[:] = np.nan
        self._positions = np.full(len(self._turns), np.nan)
        self._times = np.full(len(self._turns), np.nan)

    def update(self, joints: np.ndarray, positions: np.ndarray, time: float, filter_time: float,
               timeout: float) -> None:
        """
        Take positions, rad or m, of joints with these indices, measured at `time`, s.

        Positions that are not newer than the last ones are ignored. `filter_time` is the time
        constant of the first-order filter, s; after a pause longer than `timeout`, s,
        differentiation starts again.

        """
        step = time - self._times[joints]
        newer = ~(step <= 0.0)
        if not newer.all():
            joints, positions, step = joints[newer], positions[newer], step[newer]
        change = positions - self._positions[joints]
        turns = self._turns[joints]
        change[turns] -= 2.0 * np.pi * np.round(change[turns] / (2.0 * np.pi))
        rates = change / step
        before = self.rates[joints]
        smooth = before + step / (filter_time + step) * (rates - before)
        rates = np.where(np.isfinite(before), smooth, rates)
        rates[step > timeout] = np.nan
        self.rates[joints], self._positions[joints], self._times[joints] = rates, positions, time
