# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings at uniform times: stretches between gaps, and states with saturated drives."""

from typing import NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import RecordingError
from rbd_ros.model.model import Model
from rbd_ros.recordings.recording import Recording

# A gap is longer than so many sampling periods, and than a time, s, in which arms hardly move.
GAP_PERIODS, GAP_SECONDS = 5.0, 0.02
# States nearer to the previous one than this share of the period are not interpolated between.
CROWDED = 0.2
# Times that are uniform to this share of the period are left as they are.
EVEN = 1e-3
# A drive is saturated if its effort stays at its extreme for so many states, and these are so many
# times more than those at the next value (1.4 times for a sine that is measured in steps); with
# fewer values than that, saturation cannot be detected.
STAYS, PILED, VALUES = 5, 3.0, 20
# Efforts within this share of the joint's limit are at the limit; if they exceed it by more, it is
# not a limit.
AT_LIMIT = 0.01


class Stretch(NamedTuple):
    """
    States between two gaps, at uniform times.

    Attributes
    ----------
    time : ndarray, shape (states,)
        s.
    position : ndarray, shape (states, nv)
        rad or m; continuous joints do not jump.
    velocity : ndarray, shape (states, nv), or None
        rad/s or m/s.
    effort : ndarray, shape (states, nv)
        N m or N.
    saturated : ndarray of bool, shape (states, nv)
        Where a drive was at its limit.

    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None
    effort: np.ndarray
    saturated: np.ndarray


def even_stretches(model: Model, recording: Recording) -> tuple[list[Stretch], float, list[str]]:
    """
    Return a recording at uniform times.

    Parameters
    ----------
    model : Model
        The robot.
    recording : Recording
        The recording, with its joints in its order.

    Returns
    -------
    list of Stretch
        In the order of time.
    float
        Sampling rate, Hz: the mean of the recording.
    list of str
        What was done.

    Raises
    ------
    RecordingError
        If there are fewer than two states, or efforts were not recorded.

    """
    effort = recording.effort
    if effort is None or np.any(np.isnan(effort)):
        without = [name for k, name in enumerate(recording.joint_names)
                   if effort is None or np.isnan(effort[0, k])]
        raise RecordingError(f'{recording.name}: efforts of {listed(without)} were not recorded; '
                             'record joint states with effort')
    if len(recording) < 2:
        raise RecordingError(f'{recording.name}: it has {len(recording)} states; a motion needs '
                             'hundreds')
    time, notes = recording.time, []
    steps = np.diff(time)
    usual = np.median(steps)
    kept = np.flatnonzero(np.concatenate(([True], steps >= CROWDED * usual)))
    if len(kept) < len(time):
        notes.append(f'{len(time) - len(kept)} states left out that come less than '
                     f'{1e3 * CROWDED * usual:.3g} ms after another')
    steps, gap = np.diff(time[kept]), max(GAP_PERIODS * usual, GAP_SECONDS)
    period = np.mean(steps[steps <= gap])
    position = np.array(recording.position)
    for joint, q, _ in model.moving_joints:
        if joint.kind == 'continuous':
            position[:, q] = np.unwrap(position[:, q], axis=0)
    saturated = np.stack([_saturated(x, limit) for x, limit in zip(
        effort.T, model.effort_limit)], axis=1)
    breaks = np.flatnonzero(steps > gap) + 1
    if len(breaks):
        notes.append(f'{len(breaks)} gaps longer than {1e3 * gap:.3g} ms, the longest '
                     f'{np.max(steps):.3g} s; nothing is put into them')
    uneven = np.max(np.abs(steps[steps <= gap] - period), initial=0.0)
    if uneven > EVEN * period:
        notes.append(f'times are uneven by up to {1e3 * uneven:.3g} ms; resampled at '
                     f'{1.0 / period:.4g} Hz')
    stretches = []
    for rows in np.split(kept, breaks):
        stretches.append(_even(
            time[rows], period, position[rows],
            None if recording.velocity is None else recording.velocity[rows], effort[rows],
            saturated[rows]))
    return stretches, float(1.0 / period), notes


def _even(time: np.ndarray, period: float, position: np.ndarray, velocity: np.ndarray | None,
          effort: np.ndarray, saturated: np.ndarray) -> Stretch:
    """Return states at uniform times, by cubic splines."""
    # Imported here: a node need not wait for SciPy when it starts.
    from scipy.interpolate import CubicSpline

    grid = time[0] + period * np.arange(int((time[-1] - time[0]) / period + EVEN) + 1)
    if len(grid) == len(time) and np.max(np.abs(grid - time)) <= EVEN * period:
        return Stretch(time, position, velocity, effort, saturated)
    right = np.clip(np.searchsorted(time, grid), 1, len(time) - 1)

    def at_grid(x: np.ndarray) -> np.ndarray:
        return CubicSpline(time, x)(np.minimum(grid, time[-1]))

    return Stretch(grid, at_grid(position), None if velocity is None else at_grid(velocity),
                   at_grid(effort), saturated[right] | saturated[right - 1])


def _saturated(effort: np.ndarray, limit: float) -> np.ndarray:
    """Return where a drive is at its limit: a known one, or one that the efforts show."""
    found = np.zeros(len(effort), bool)
    size = np.abs(effort)
    if 0.0 < limit < np.inf and np.max(size) <= (1.0 + AT_LIMIT) * limit:
        found |= _stays(size >= (1.0 - AT_LIMIT) * limit)
    for sign in (1.0, -1.0):
        values, counts = np.unique(sign * effort, return_counts=True)
        if len(values) >= VALUES and counts[-1] >= PILED * counts[-2]:
            found |= _stays(sign * effort == values[-1])
    return found


def _stays(there: np.ndarray) -> np.ndarray:
    """Return where a condition holds for long enough."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], there, [False]))))
    stays = np.zeros(len(there), bool)
    for start, stop in zip(edges[::2], edges[1::2]):
        stays[start:stop] = stop - start >= STAYS
    return stays
