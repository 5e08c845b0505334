# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint states of one publisher, and complete states from those of several."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from rbd_ros._internal.text import listed

# Two messages belong to one state if they are no further apart than this share of the usual time
# between messages: a little more than half, because stamps are not uniform.
APART = 0.75


@dataclass(frozen=True, eq=False)
class JointSeries:
    """
    Joint states with the same joints.

    Attributes
    ----------
    names : tuple of str
        The joints.
    time : ndarray, shape (states,)
        s, in the order of arrival.
    position, velocity, effort : ndarray, shape (states, joints)
        NaN where nothing was measured.

    """

    names: tuple[str, ...]
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray

    def taken(self, rows: np.ndarray | slice = slice(None),
              columns: Sequence[int] | None = None) -> 'JointSeries':
        """Return the same with some of the states and joints."""
        columns = range(len(self.names)) if columns is None else columns
        return JointSeries(tuple(self.names[k] for k in columns), self.time[rows], *[
            array[rows][:, columns] for array in (self.position, self.velocity, self.effort)])

    def only(self, names: Collection[str]) -> 'JointSeries':
        """Return the same with only those joints that are among some names."""
        return self.taken(columns=[k for k, name in enumerate(self.names) if name in names])


def incomplete(series: JointSeries) -> np.ndarray:
    """Return for each state whether a number is missing, or is not finite."""
    bad = ~np.all(np.isfinite(series.position), axis=1) | ~np.isfinite(series.time)
    for array in (series.velocity, series.effort):
        measured = np.any(np.isfinite(array), axis=0)
        bad |= ~np.all(np.isfinite(array[:, measured]), axis=1)
    return bad


def clean(series: JointSeries) -> tuple[JointSeries, list[str]]:
    """
    Return the states that are complete and in the order of time.

    Velocities or efforts of a joint that are never measured do not count as missing.

    Returns
    -------
    JointSeries
        Its time increases strictly.
    list of str
        What was left out, and how often.

    """
    notes, bad = [], incomplete(series)
    if np.any(bad):
        notes.append(f'{np.sum(bad)} states left out that are incomplete or hold a number that is '
                     'not finite')
    time = np.where(bad, -np.inf, series.time)
    before = np.maximum.accumulate(np.concatenate(([-np.inf], time[:-1])))
    late = ~bad & (time <= before)
    same, back = np.sum(late & (time == before)), np.sum(late & (time < before))
    if same:
        notes.append(f'{same} states left out that have the stamp of the one before')
    if back:
        notes.append(f'{back} states left out whose stamp lies before that of the one before, by '
                     f'up to {np.max((before - time)[late]):.6g} s')
    if not np.any(bad | late):
        return series, notes
    return series.taken(rows=~(bad | late)), notes


def merge(series: list[JointSeries]) -> tuple[JointSeries, list[str]]:
    """
    Return states of all joints from states with a part of them each.

    The joint that was measured least often gives the times. Each of its states is joined with the
    states of every other joint that are nearest in time. States without a near one are left out:
    nothing is held or interpolated.

    Parameters
    ----------
    series : list of JointSeries
        One or more; a joint may be in several.

    Returns
    -------
    JointSeries
    list of str
        What was done.

    """
    if len(series) == 1:
        return series[0], []
    notes = []
    names = tuple(dict.fromkeys(name for one in series for name in one.names))
    cleaned = []
    for one in series:
        one, dropped = clean(one)
        cleaned.append(one)
        notes += dropped
    # Joints that come in the same messages stay together.
    sources: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        where = tuple(k for k, one in enumerate(cleaned) if name in one.names)
        sources.setdefault(where, []).append(name)
    groups = [_joined([cleaned[k] for k in where], held) for where, held in sources.items()]
    slowest = min(groups, key=lambda group: len(group.time))
    complete, picks, apart = np.ones(len(slowest.time), bool), [], 0.0
    for group in groups:
        pick, distance = _nearest(group.time, slowest.time)
        period = np.median(np.diff(group.time)) if len(group.time) > 1 else 0.0
        complete &= distance <= APART * period
        picks.append(pick)
    for group, pick in zip(groups, picks):
        apart = max(apart, np.max(np.abs(group.time[pick] - slowest.time)[complete], initial=0.0))
    states = [group.taken(rows=pick[complete]) for group, pick in zip(groups, picks)]
    order = np.argsort([names.index(name) for group in groups for name in group.names])
    one = JointSeries(
        names, slowest.time[complete],
        *[np.hstack(arrays)[:, order] for arrays in (
            [state.position for state in states], [state.velocity for state in states],
            [state.effort for state in states])])
    if len(groups) > 1:
        notes.append(
            f'{len(groups)} publishers joined at the {np.sum(complete)} states of '
            f'{listed(slowest.names)}, stamps up to {1e3 * apart:.3g} ms apart; '
            f'{np.sum(~complete)} states of these were incomplete')
    return one, notes


def _joined(series: list[JointSeries], names: list[str]) -> JointSeries:
    """Return the states of some joints that are in each of several series."""
    parts = []
    for one in series:
        index = {name: k for k, name in enumerate(one.names)}
        parts.append(one.taken(columns=[index[name] for name in names]))
    time, rows = np.unique(np.concatenate([part.time for part in parts]), return_index=True)
    return JointSeries(tuple(names), time, *[
        np.vstack(arrays)[rows] for arrays in (
            [part.position for part in parts], [part.velocity for part in parts],
            [part.effort for part in parts])])


def _nearest(times: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the times that are nearest to others, and how far away they are."""
    right = np.clip(np.searchsorted(times, wanted), 1 if len(times) > 1 else 0, len(times) - 1)
    left = np.maximum(right - 1, 0)
    pick = np.where(wanted - times[left] <= times[right] - wanted, left, right)
    return pick, np.abs(times[pick] - wanted)
