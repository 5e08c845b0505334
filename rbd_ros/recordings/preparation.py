# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Samples of a recording for fits of dynamics: uniform times, one filter, masks of what counts."""

from dataclasses import replace

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, RecordingError, StateError
from rbd_ros.model.arguments import check_model, number, shown, sizes
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import closed_along
from rbd_ros.recordings.delays import estimate_delay
from rbd_ros.recordings.filters import (
    effort_cutoff, low_pass, MAX_BANDS, MIN_POWER_PASSED, motion_cutoff)
from rbd_ros.recordings.recording import Recording
from rbd_ros.recordings.resampling import resample, Segment
from rbd_ros.recordings.samples import Samples

# Edge effects of the filter, and the width over which it smears a step, in periods of the cut-off.
EDGE_PERIODS, SMEAR_PERIODS = 1.5, 0.5
# A joint stands below the largest of: a fraction of its largest speed; multiples of the standard
# deviation of its noise; a speed, rad/s and m/s.
STANDSTILL_FRACTION, STANDSTILL_DEVIATIONS, MIN_STANDSTILL = 0.03, 4.0, (1e-3, 1e-4)
# Measured velocities are wrong if they differ from the rates of the positions by more than this
# fraction, in a joint that moves by more than the second fraction of the fastest one.
MAX_VELOCITY_MISMATCH, MIN_MOTION_RATIO = 0.3, 0.05
MIN_REPORTED_POWER = 1e-4  # Smaller fractions of power are reported as "less than".
MIN_SEGMENT_STATES = 10  # Smallest number of states in a usable segment.
# A delay is removed if it exceeds these multiples of its deviation and of the sampling period,
# explains this fraction of the variance that is unexplained without it (an incomplete robot
# description can look like a few ms of delay, but the delay then explains little), and is not
# longer than that of a drive, s.
MIN_DELAY_DEVIATIONS, MIN_DELAY_PERIODS, MIN_DELAY_EXPLAINS, MAX_DRIVE_DELAY = 3.0, 0.01, 0.25, 0.1


def prepare(model: Model, recording: Recording, *, cutoff: float | None = None,
            delay: float | str = 'estimate', standstill: float | np.ndarray | None = None
            ) -> Samples:
    """
    Return samples of a recording to which dynamics can be fitted.

    The recording is resampled at uniform times by cubic splines (long gaps are cut), full turns in
    the positions of continuous joints are unwrapped, and all signals pass one filter without phase
    shift (see `low_pass`). Velocities are those measured or, if missing or inconsistent with the
    positions, the rates of the positions; accelerations are the rates of the velocities.

    Parameters
    ----------
    model, recording : Model, Recording
        The robot, with a fixed base and joints with one coordinate each; a recording with efforts,
        of the independent joints if it has closed loops.
    cutoff : float, optional
        Cut-off of the filter, Hz; default: the larger one of `motion_cutoff` and `effort_cutoff`.
    delay : float or 'estimate'
        Delay of the efforts relative to the positions to remove, s. By default it is estimated
        (`estimate_delay`), and removed if it is significant, explains much of the otherwise
        unexplained variance, and is at most 0.1 s.
    standstill : float or array_like of shape (nv,), optional
        Speeds below which joints count as standing, rad/s or m/s; default: 3 % of the largest, but
        at least four standard deviations of the noise.

    Raises
    ------
    RecordingError
        If a joint or all efforts are missing, or the recording is too short. With closed loops,
        the recording must have the independent joints; the others follow them from the neutral
        configuration, by continuous motion.
    ModelError
        If a joint has a quaternion as its position, or none moves.

    """
    check_model(model)
    names = [joint.name for joint, _, _ in model.moving_joints if joint.nq != joint.nv]
    if names:
        raise ModelError(f'the orientation of {listed(names)} is not recorded in joint states: '
                         'prepare needs a fixed base and joints with one coordinate; lock '
                         'it (with_locked_joints), or load the robot without floating_base')
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves")
    if isinstance(delay, str) and delay != 'estimate':
        raise StateError(f"delay must be seconds or 'estimate', got {shown(delay)}")
    if cutoff is not None:
        cutoff = number('cutoff', cutoff, least=0.0)
    signals = _Signals(model, recording.for_robot(model), cutoff, standstill)
    if delay != 'estimate':
        lead = number('delay', delay)
        return replace(signals.samples(lead), delay=lead, delay_deviation=0.0)
    samples = signals.samples(0.0)
    seconds, deviation, explains = estimate_delay(model, samples)
    if (abs(seconds) > max(MIN_DELAY_DEVIATIONS * deviation, MIN_DELAY_PERIODS / samples.rate)
            and explains >= MIN_DELAY_EXPLAINS):
        if abs(seconds) <= MAX_DRIVE_DELAY:
            samples = signals.samples(seconds)
        else:
            samples = replace(samples, notes=(
                *samples.notes, f'efforts come {seconds:.3g} s later than positions: too long '
                'for a drive, so not removed; check the time stamps'))
    return replace(samples, delay=seconds, delay_deviation=deviation, delay_explains=explains)


class _Signals:
    """The segments of a recording, and their filter."""

    def __init__(self, model: Model, recording: Recording, cutoff: float | None,
                 standstill: float | np.ndarray | None) -> None:
        segments, rate, notes = resample(model, recording)
        self._notes = notes = [*recording.notes, *notes]
        self._rate, self._model, self._left_out = rate, model, recording.left_out
        longest = max(segments, key=lambda segment: len(segment.time))
        if len(longest.time) < MIN_SEGMENT_STATES:
            raise RecordingError('; '.join([f'{recording.name}: no segment without a gap has more '
                                            f'than {len(longest.time)} states', *notes]))
        measured = self._velocities_agree(longest, recording.joint_names)
        found = motion_cutoff(longest.position, longest.velocity if measured else None, rate)
        # No motion explains efforts beyond MAX_BANDS times its band.
        self._cutoff = max(found.cutoff, effort_cutoff(
            longest.effort, rate, MAX_BANDS * found.band)) if cutoff is None else cutoff
        if not 0.0 < self._cutoff <= 0.5 * rate:
            raise StateError(f'cutoff must be in (0, {0.5 * rate:.6g}] Hz, up to half the rate '
                             f'of {recording.name}, got {self._cutoff:g}')
        edge = int(np.ceil(EDGE_PERIODS / self._cutoff * rate))
        kept = [one for one in segments if len(one.time) > 2 * edge + MIN_SEGMENT_STATES]
        if not kept:
            raise RecordingError('; '.join([
                f'{recording.name}: no segment without a gap is longer than the edges of the '
                f'filter, {2 * edge / rate:.3g} s at a cut-off of {self._cutoff:.3g} Hz: record '
                'longer, or choose a higher cut-off', *notes]))
        if len(kept) < len(segments):
            notes.append(f'{len(segments) - len(kept)} segments between gaps left out: shorter '
                         f'than the edges of the filter, {2 * edge / rate:.3g} s')
        self._segments = kept if measured else [one._replace(velocity=None) for one in kept]
        self._noise = found.noise
        self._standstill = (None if standstill is None
                            else sizes('standstill', standstill, model.nv))
        notes.append(self._filter_note(edge))

    def _filter_note(self, edge: int) -> str:
        """Return a note on the cut-off and on the power of the efforts that the filter removes."""
        efforts, removed = (np.concatenate([x[edge:-edge] for x in column]) for column in zip(*(
            (one.effort, one.effort - low_pass(one.effort, self._rate, self._cutoff))
            for one in self._segments)))
        power, lost = np.var(efforts, axis=0), np.mean(removed ** 2, axis=0)
        whole = np.sum(lost) / max(np.sum(power), np.finfo(float).tiny)
        units = np.where(self._model.angular, 'N m', 'N')
        joints = [f'{name} {100.0 * x / y:.2g} % ({np.sqrt(x):.2g} {unit} RMS)'
                  for name, x, y, unit in zip(self._model.velocity_names, lost, power, units)
                  if x > (1.0 - MIN_POWER_PASSED) * y]
        share = (f'{100.0 * whole:.2g} %' if whole >= MIN_REPORTED_POWER
                 else f'less than {100.0 * MIN_REPORTED_POWER:g} %')
        return (f'cut-off {self._cutoff:.3g} Hz: the filter removes {share} of the power of the '
                'efforts about their means' + (f', but of {listed(joints)}' if joints else ''))

    def _velocities_agree(self, longest: Segment, names: tuple[str, ...]) -> bool:
        """Return whether velocities were measured and agree with the positions."""
        if longest.velocity is None:
            self._notes.append('velocities are derived from the positions')
            return False
        cutoff, _, noise = motion_cutoff(longest.position, None, self._rate)
        inner = slice(*(int(EDGE_PERIODS / cutoff * self._rate) * np.array([1, -1])))
        rates = low_pass(longest.position, self._rate, cutoff, derivative=1)[inner]
        if not len(rates):
            return True
        difference = _rms(low_pass(longest.velocity, self._rate, cutoff)[inner] - rates)
        # A joint that hardly moves shows noise only.
        speed = _rms(rates)
        moves = speed > np.maximum(MIN_MOTION_RATIO * np.max(speed), STANDSTILL_DEVIATIONS * noise)
        wrong = moves & (difference > MAX_VELOCITY_MISMATCH * speed)
        if np.any(wrong):
            self._notes.append('measured velocities contradict the positions and are left out: '
                               + listed(name for name, w in zip(names, wrong) if w))
        return not np.any(wrong)

    def samples(self, lead: float) -> Samples:
        """Return the samples, with the efforts shifted by a lead time, s."""
        rate, cutoff = self._rate, self._cutoff
        edge = int(np.ceil((EDGE_PERIODS / cutoff + abs(lead)) * rate))
        parts = []
        for k, one in enumerate(self._segments):
            x, known = (one.position, 1) if one.velocity is None else (one.velocity, 0)
            inner = np.zeros(len(one.time), bool)
            inner[edge:len(inner) - edge] = True
            effort = low_pass(one.effort, rate, cutoff, lead=lead)
            parts.append((one.time, low_pass(one.position, rate, cutoff),
                          low_pass(x, rate, cutoff, derivative=known),
                          low_pass(x, rate, cutoff, derivative=known + 1), effort,
                          effort + one.effort - low_pass(one.effort, rate, cutoff),
                          one.saturated, inner, np.full(len(inner), k)))
        time, q, v, a, tau, raw, saturated, inner, segment = [
            np.concatenate(column) for column in zip(*parts)]
        threshold = self._standstill
        if threshold is None:
            threshold = np.maximum.reduce([STANDSTILL_FRACTION * np.max(np.abs(v[inner]), axis=0),
                                           STANDSTILL_DEVIATIONS * self._noise,
                                           np.where(self._model.angular, *MIN_STANDSTILL)])
        moving = np.abs(v) > threshold
        saturated &= moving  # A constant effort at standstill is no sign of saturation.
        for k in range(len(parts)):
            saturated[segment == k] = _widened(saturated[segment == k],
                                               int(np.ceil(SMEAR_PERIODS / cutoff * rate)))
        notes = list(self._notes)
        if np.any(saturated):
            share = np.mean(saturated, axis=0)
            notes.append('saturated: ' + listed(
                f'{name} ({100.0 * x:.2g} % of the time)'
                for name, x in zip(self._model.velocity_names, share) if x))
        if lead:
            notes.append(f'delay of the efforts removed: {1e3 * lead:.3g} ms')
        q = closed_along(self._model, q)
        return Samples(time, q, v, a, tau, raw, moving & ~saturated & inner[:, None], moving,
                       saturated, threshold, segment, rate, cutoff, delay_removed=lead,
                       left_out=self._left_out, notes=tuple(notes))


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(np.square(x), axis=0))


def _widened(mask: np.ndarray, reach: int) -> np.ndarray:
    """Return a mask that is true within a distance of true entries, by columns."""
    from scipy.ndimage import maximum_filter1d
    return maximum_filter1d(mask.astype(np.uint8), 2 * reach + 1, axis=0, mode='nearest') > 0
