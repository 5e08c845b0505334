# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Merge the joint states of several publishers into complete states."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rbd_ros._internal.text import listed

# Messages belong to one state if their stamps differ by at most this fraction of the median
# period: slightly more than half, because stamps are not uniform.
MAX_STAMP_DIFFERENCE = 0.75


@dataclass(frozen=True, eq=False)
class JointSeries:
    """Joint states with the same joints, in order of arrival."""

    names: tuple[str, ...]
    time: np.ndarray            # (states,), s
    # (3, states, joints), positions, velocities and efforts, NaN where not measured.
    values: np.ndarray

    def rows(self, which: np.ndarray) -> 'JointSeries':
        """Return some of the states."""
        return replace(self, time=self.time[which], values=self.values[:, which])

    def joints(self, names: Sequence[str]) -> 'JointSeries':
        """Return the states of some of the joints."""
        column = {name: k for k, name in enumerate(self.names)}
        return replace(self, names=tuple(names),
                       values=self.values[:, :, [column[name] for name in names]])


def incomplete(series: JointSeries) -> np.ndarray:
    """Return for each state whether a value is missing or not finite."""
    finite = np.isfinite(series.values)
    measured = np.any(finite, axis=1, keepdims=True)
    measured[0] = True
    return ~(np.all(finite | ~measured, axis=(0, 2)) & np.isfinite(series.time))


def clean(series: JointSeries) -> tuple[JointSeries, list[str]]:
    """Return the complete states with strictly increasing time, and notes on those left out."""
    # A velocity or effort that its joint never reports does not count as missing.
    notes, bad = [], incomplete(series)
    if np.any(bad):
        notes.append(f'{np.sum(bad)} states left out that are incomplete or not finite')
    time = np.where(bad, -np.inf, series.time)
    before = np.maximum.accumulate(np.concatenate(([-np.inf], time[:-1])))
    late = ~bad & (time <= before)
    same, back = np.sum(late & (time == before)), np.sum(late & (time < before))
    if same:
        notes.append(f'{same} states left out that have the stamp of the one before')
    if back:
        notes.append(f'{back} states left out whose stamp lies before an earlier one, by '
                     f'up to {np.max((before - time)[late]):.6g} s')
    if not np.any(bad | late):
        return series, notes
    return series.rows(~(bad | late)), notes


def merge(series: list[JointSeries]) -> tuple[JointSeries, list[str]]:
    """
    Return states of all joints, from series with a subset of the joints each, and notes.

    Each state of the joint that was measured least often is joined with the states of the others
    that are nearest in time; without a sufficiently near one it is left out: nothing is held or
    interpolated. A joint may occur in several series.

    """
    if len(series) == 1:
        return series[0], []
    names = tuple(dict.fromkeys(name for one in series for name in one.names))
    cleaned, removed = zip(*map(clean, series))
    notes = [note for some in removed for note in some]
    # Group the joints by the series that contain them.
    sources: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        where = tuple(k for k, one in enumerate(cleaned) if name in one.names)
        sources.setdefault(where, []).append(name)
    groups = [_joined([cleaned[k] for k in where], joints) for where, joints in sources.items()]
    slowest = min(groups, key=lambda group: len(group.time))
    picks, distances = map(np.array, zip(*(_nearest(group.time, slowest.time)
                                           for group in groups)))
    periods = [np.median(np.diff(group.time)) if len(group.time) > 1 else 0.0 for group in groups]
    complete = np.all(distances.T <= MAX_STAMP_DIFFERENCE * np.array(periods), axis=1)
    one = JointSeries(
        sum((group.names for group in groups), ()), slowest.time[complete], np.concatenate(
            [group.values[:, pick[complete]] for group, pick in zip(groups, picks)], axis=2))
    if len(groups) > 1:
        apart = np.max(distances[:, complete], initial=0.0)
        notes.append(f'{len(groups)} publishers joined at the {np.sum(complete)} states of '
                     f'{listed(slowest.names)}, stamps up to {1e3 * apart:.3g} ms apart; '
                     f'{np.sum(~complete)} incomplete states left out')
    return one.joints(names), notes


def _joined(series: list[JointSeries], names: list[str]) -> JointSeries:
    """Return the states of the given joints, which each of the series contains."""
    parts = [one.joints(names) for one in series]
    time, rows = np.unique(np.concatenate([part.time for part in parts]), return_index=True)
    return replace(parts[0], time=time,
                   values=np.concatenate([part.values for part in parts], axis=1)[:, rows])


def _nearest(times: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the times nearest to the wanted ones, and the distances."""
    right = np.clip(np.searchsorted(times, wanted), 1 if len(times) > 1 else 0, len(times) - 1)
    left = np.maximum(right - 1, 0)
    pick = np.where(wanted - times[left] <= times[right] - wanted, left, right)
    return pick, np.abs(times[pick] - wanted)
