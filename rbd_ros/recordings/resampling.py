# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Resample recordings at uniform times, segment by segment, and detect saturated drives."""

from typing import NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import RecordingError
from rbd_ros.model.model import Model
from rbd_ros.recordings.plausibility import two_publishers, unwrapped, wrong_time_unit
from rbd_ros.recordings.recording import Recording

# A gap is longer than both of these: multiples of the median period; s (arms hardly move in it).
MIN_GAP_PERIODS, MIN_GAP = 5.0, 0.02
# States closer to the previous one than this fraction of the median period are dropped.
MIN_STEP = 0.2
UNIFORMITY = 1e-3  # Times that are uniform up to this fraction of the period are not resampled.
# A drive is saturated if its effort stays at an extreme for this many states and that value occurs
# this many times as often as the next one (1.4 times for a quantized sine). Efforts with fewer
# distinct values than the last number are too coarse for that.
MIN_SATURATED_STATES, MIN_PEAK_RATIO, MIN_DISTINCT_VALUES = 5, 3.0, 20
# Efforts within this fraction of the joint's effort limit are at the limit; if the recording
# exceeds the limit by more, the limit is ignored.
LIMIT_TOLERANCE = 0.01


class Segment(NamedTuple):
    """States between two gaps, at uniform times."""

    time: np.ndarray                # (states,), s
    position: np.ndarray            # (states, nv), rad or m, without jumps of continuous joints
    velocity: np.ndarray | None     # (states, nv)
    effort: np.ndarray              # (states, nv), N m or N
    saturated: np.ndarray           # (states, nv), bool: the drive is at its limit


def resample(model: Model, recording: Recording) -> tuple[list[Segment], float, list[str]]:
    """Return segments at uniform times, in order, the mean sampling rate, Hz, and notes."""
    # The joints of the recording are those of the robot, in its order.
    effort = recording.effort
    if effort is None or np.any(np.isnan(effort)):
        without = [name for k, name in enumerate(recording.joint_names)
                   if effort is None or np.isnan(effort[0, k])]
        raise RecordingError(f'{recording.name}: efforts of {listed(without)} were not recorded; '
                             'record joint states with effort')
    if len(recording) < 2:
        raise RecordingError(f'{recording.name}: it has {len(recording)} states; a motion needs '
                             'hundreds')
    for detect in wrong_time_unit, two_publishers:
        if seen := detect(model, recording):
            raise RecordingError(f'{recording.name}: {seen.text}')
    time, notes = recording.time, []
    steps = np.diff(time)
    median = np.median(steps)
    kept = np.flatnonzero(np.concatenate(([True], steps >= MIN_STEP * median)))
    if len(kept) < len(time):
        notes.append(f'{len(time) - len(kept)} states left out that come less than '
                     f'{1e3 * MIN_STEP * median:.3g} ms after another')
    steps, gap = np.diff(time[kept]), max(MIN_GAP_PERIODS * median, MIN_GAP)
    period = np.mean(steps[steps <= gap])
    position, unwrapping = unwrapped(model, time, recording.position)
    notes += unwrapping
    saturated = np.stack([_saturated(x, limit) for x, limit in zip(
        effort.T, model.effort_limit)], axis=1)
    breaks = np.flatnonzero(steps > gap) + 1
    if len(breaks):
        notes.append(f'{len(breaks)} gaps longer than {1e3 * gap:.3g} ms, the longest '
                     f'{np.max(steps):.3g} s; not interpolated')
    uneven = np.max(np.abs(steps[steps <= gap] - period), initial=0.0)
    if uneven > UNIFORMITY * period:
        notes.append(f'times are uneven by up to {1e3 * uneven:.3g} ms; resampled at '
                     f'{1.0 / period:.4g} Hz')
    segments = []
    for rows in np.split(kept, breaks):
        velocity = None if recording.velocity is None else recording.velocity[rows]
        segments.append(_resample_segment(
            period, Segment(time[rows], position[rows], velocity, effort[rows], saturated[rows])))
    return segments, float(1.0 / period), notes


def _resample_segment(period: float, segment: Segment) -> Segment:
    """Return a segment at uniform times, by cubic splines."""
    from scipy.interpolate import CubicSpline  # Imported lazily: SciPy is slow to import.
    time = segment.time
    grid = time[0] + period * np.arange(int((time[-1] - time[0]) / period + UNIFORMITY) + 1)
    if len(grid) == len(time) and np.max(np.abs(grid - time)) <= UNIFORMITY * period:
        return segment
    right = np.clip(np.searchsorted(time, grid), 1, len(time) - 1)

    def at_grid(x: np.ndarray) -> np.ndarray:
        return CubicSpline(time, x)(np.minimum(grid, time[-1]))

    velocity = None if segment.velocity is None else at_grid(segment.velocity)
    return Segment(grid, at_grid(segment.position), velocity, at_grid(segment.effort),
                   segment.saturated[right] | segment.saturated[right - 1])


def _saturated(effort: np.ndarray, limit: float) -> np.ndarray:
    """Return where a drive is at its limit, known from the model or seen in the efforts."""
    from scipy.ndimage import binary_opening
    run, found, size = np.ones(MIN_SATURATED_STATES), np.zeros(len(effort), bool), np.abs(effort)
    if 0.0 < limit < np.inf and np.max(size) <= (1.0 + LIMIT_TOLERANCE) * limit:
        found |= binary_opening(size >= (1.0 - LIMIT_TOLERANCE) * limit, run)
    values, counts = np.unique(effort, return_counts=True)
    for extreme, next_to_it in ((-1, -2), (0, 1)):
        if (len(values) >= MIN_DISTINCT_VALUES
                and counts[extreme] >= MIN_PEAK_RATIO * counts[next_to_it]):
            found |= binary_opening(effort == values[extreme], run)
    return found
