# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Prepares samples of a recording for fits of dynamics.

Uniform times, one filter for all signals, derivatives by the same filter, and masks for samples
that say nothing about the robot: standstill, saturated drives, the edges of the filter.

"""

from dataclasses import dataclass, replace

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, RecordingError, StateError
from rbd_ros.model.arguments import check_model, finite_array, number, shown
from rbd_ros.model.model import Model
from rbd_ros.recordings.delays import Delay, estimate_delay
from rbd_ros.recordings.filters import effort_cutoff, KEPT, low_pass, motion_cutoff
from rbd_ros.recordings.recording import Recording
from rbd_ros.recordings.stretches import even_stretches, Stretch

# Edges of the filter, and the width over which it smears a step, in periods of the cut-off.
EDGE, SMEAR = 1.5, 0.5
# A joint counts as standing below this share of its largest velocity, below so many standard
# deviations of its noise, and below this speed, rad/s and m/s.
STANDSTILL, STANDSTILL_NOISE, STANDSTILL_LEAST = 0.03, 4.0, (1e-3, 1e-4)
# Measured velocities that differ from the rates of the positions by more of their size are wrong,
# in joints that move by more than this share of the fastest.
DISAGREE, HARDLY = 0.3, 0.05
# Shares of power below this one are not spelt out.
NAMED = 1e-4
# Smallest number of states in a useful stretch.
FEWEST = 10
# A delay is removed if it is so many times its deviation, more than this share of the time between
# samples, explains this share of what is unexplained without it (what a robot's description lacks
# can look like some milliseconds of delay, but does not become much smaller by one), and is not
# longer than a drive's, s.
SIGNIFICANT, NOTICED, EXPLAINS, LONGEST_DELAY = 3.0, 0.01, 0.25, 0.1


@dataclass(frozen=True, eq=False)
class Samples:
    """
    What `prepare` makes of a recording.

    Attributes
    ----------
    time : ndarray, shape (samples,)
        s, as in the recording; uniform except for gaps.
    q : ndarray, shape (samples, nq)
        Filtered positions, rad or m.
    v, a, tau : ndarray, shape (samples, nv)
        Filtered velocities, accelerations and efforts.
    usable : ndarray of bool, shape (samples, nv)
        Efforts that say something about the robot: the joint moves, its drive is not saturated,
        and no edge is near.
    moving : ndarray of bool, shape (samples, nv)
        Where a joint is faster than its threshold.
    saturated : ndarray of bool, shape (samples, nv)
        Where the drive was at its limit, the reach of the filter included.
    threshold : ndarray, shape (nv,)
        Velocities below which a joint counts as standing, rad/s or m/s.
    segment : ndarray of int, shape (samples,)
        Number of the gaps before each sample.
    rate : float
        Sampling rate, Hz.
    cutoff : float
        Cut-off of the filter, Hz.
    delay, delay_deviation : float
        Estimated time by which efforts come later than positions, and its standard deviation, s.
    delay_explains : float
        Share of what is unexplained without this delay that it explains.
    delay_removed : float
        The part of the delay that was removed, s.
    left_out : float
        Share of the recorded states that were left out because a number was missing or not finite.
    notes : tuple of str
        Notes of the recording, and what was done to it.

    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    usable: np.ndarray
    moving: np.ndarray
    saturated: np.ndarray
    threshold: np.ndarray
    segment: np.ndarray
    rate: float
    cutoff: float
    delay: float
    delay_deviation: float
    delay_explains: float
    delay_removed: float
    left_out: float
    notes: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.time)

    def low_pass(self, x: np.ndarray) -> np.ndarray:
        """
        Return other signals, filtered as these are.

        Functions that are not linear in the signals (the sign of a velocity, say) agree with the
        efforts only if they pass the same filter.

        Parameters
        ----------
        x : ndarray, shape (samples, ...)
            Signals at the times of the samples.

        """
        y = np.empty_like(x, dtype=float)
        for k in np.unique(self.segment):
            rows = self.segment == k
            y[rows] = low_pass(x[rows], self.rate, self.cutoff)
        return y


def prepare(model: Model, recording: Recording, *, cutoff: float | None = None,
            delay: float | str = 'estimate', standstill: float | np.ndarray | None = None
            ) -> Samples:
    """
    Return samples of a recording that dynamics can be fitted to.

    The recording is resampled at uniform times (by cubic splines; longer gaps are cut), jumps of
    continuous joints by full turns are removed, and everything passes one filter without phase
    shift (see `low_pass`). Velocities are the measured ones or, if there are none or they
    contradict the positions, rates of the positions; accelerations are rates of the velocities.

    Parameters
    ----------
    model : Model
        The robot, all of whose joints have one coordinate.
    recording : Recording
        With efforts.
    cutoff : float, optional
        Cut-off of the filter, Hz; default: that of `motion_cutoff`, or that of `effort_cutoff` if
        it is higher.
    delay : float or 'estimate'
        Delay of the efforts relative to the positions, s, which is removed. By default it is
        estimated (see `estimate_delay`), and removed if it is significant, explains a good part of
        what is unexplained otherwise, and is not longer than 0.1 s.
    standstill : float or array_like of shape (nv,), optional
        Velocities below which joints count as standing, rad/s or m/s; default: 3 % of the largest,
        but at least four standard deviations of the noise.

    Returns
    -------
    Samples

    Raises
    ------
    RecordingError
        If a joint or all efforts are missing, or the recording is too short.
    ModelError
        If the robot has a joint whose position is not a single number.
    StateError
        If an argument is out of range.

    """
    check_model(model)
    if model.nq != model.nv:
        names = [joint.name for joint, _, _ in model.moving_joints if joint.nq != joint.nv]
        raise ModelError(f'the orientation of {listed(names)} is not recorded in joint states: '
                         'prepare takes robots with a fixed base and joints of one coordinate; '
                         'lock it (with_locked_joints), or load the robot without floating_base')
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves")
    if isinstance(delay, str) and delay != 'estimate':
        raise StateError(f"delay must be seconds or 'estimate', got {shown(delay)}")
    if cutoff is not None:
        cutoff = number('cutoff', cutoff, least=0.0)
    one = recording.for_robot(model)
    stretches, rate, notes = even_stretches(model, one)
    signals = _Signals(one, stretches, rate, cutoff, standstill, list(one.notes) + notes, model)
    if delay != 'estimate':
        lead = number('delay', delay)
        return signals.samples(lead, Delay(lead, 0.0, 0.0))
    samples = signals.samples(0.0, Delay(0.0, np.inf, 0.0))
    found = estimate_delay(model, samples)
    samples = replace(samples, delay=found.seconds, delay_deviation=found.deviation,
                      delay_explains=found.explains)
    if (abs(found.seconds) <= max(SIGNIFICANT * found.deviation, NOTICED / rate)
            or found.explains < EXPLAINS):
        return samples
    if abs(found.seconds) <= LONGEST_DELAY:
        return signals.samples(found.seconds, found)
    return replace(samples, notes=(
        *samples.notes, f'efforts come {found.seconds:.3g} s later than positions: no drive is so '
        'slow; nothing was taken off, look for what shifted them'))


class _Signals:
    """The stretches of a recording, and their filter."""

    def __init__(self, recording: Recording, stretches: list[Stretch], rate: float,
                 cutoff: float | None, standstill: float | np.ndarray | None, notes: list[str],
                 model: Model) -> None:
        self.notes = notes
        self._rate, self._model, self._left_out = rate, model, recording.left_out
        longest = max(stretches, key=lambda stretch: len(stretch.time))
        if len(longest.time) < FEWEST:
            raise RecordingError('; '.join([f'{recording.name}: no stretch without a gap has more '
                                            f'than {len(longest.time)} states', *notes]))
        measured = self._velocities_agree(longest, recording.joint_names)
        found = motion_cutoff(longest.position, longest.velocity if measured else None, rate)
        self._cutoff = (max(found.cutoff, effort_cutoff(longest.effort, rate))
                        if cutoff is None else cutoff)
        if not 0.0 < self._cutoff <= 0.5 * rate:
            raise StateError(f'cutoff must lie above 0 and not above {0.5 * rate:.6g} Hz, half '
                             f'the rate of {recording.name}, got {self._cutoff:g}')
        edge = int(np.ceil(EDGE / self._cutoff * rate))
        kept = [stretch for stretch in stretches if len(stretch.time) > 2 * edge + FEWEST]
        if not kept:
            raise RecordingError('; '.join([
                f'{recording.name}: no stretch without a gap is longer than the edges of the '
                f'filter, {2 * edge / rate:.3g} s at a cut-off of {self._cutoff:.3g} Hz: record '
                'longer, or choose a higher cut-off', *notes]))
        if len(kept) < len(stretches):
            notes.append(f'{len(stretches) - len(kept)} stretches between gaps left out: shorter '
                         f'than the edges of the filter, {2 * edge / rate:.3g} s')
        self._stretches = [stretch if measured else stretch._replace(velocity=None)
                           for stretch in kept]
        self._noise = found.noise
        self._standstill = self._checked(standstill)
        notes.append(self._lost(edge))

    def _lost(self, edge: int) -> str:
        """Return the cut-off, and what the filter takes off the efforts, away from its edges."""
        efforts, taken = (np.concatenate([x[edge:-edge] for x in column]) for column in zip(*(
            (one.effort, one.effort - low_pass(one.effort, self._rate, self._cutoff))
            for one in self._stretches)))
        power, lost = np.var(efforts, axis=0), np.mean(taken ** 2, axis=0)
        whole = np.sum(lost) / max(np.sum(power), np.finfo(float).tiny)
        units = np.where(self._model.angular, 'N m', 'N')
        joints = [f'{name} {100.0 * x / y:.2g} % ({np.sqrt(x):.2g} {unit} RMS)'
                  for name, x, y, unit in zip(self._model.velocity_names, lost, power, units)
                  if x > (1.0 - KEPT) * y]
        share = f'{100.0 * whole:.2g} %' if whole >= NAMED else f'less than {100.0 * NAMED:g} %'
        return (f'cut-off {self._cutoff:.3g} Hz: the filter removes {share} of the power of the '
                'efforts about their means' + (f', but of {listed(joints)}' if joints else ''))

    def _checked(self, standstill: float | np.ndarray | None) -> np.ndarray | None:
        """Return thresholds that were given, checked."""
        if standstill is None:
            return None
        nv = self._model.nv
        given = finite_array('standstill', standstill, (), (nv,))
        if np.any(given < 0.0):
            raise StateError(f'standstill must not be negative, got {shown(standstill)}')
        return np.broadcast_to(given, (nv,)).copy()

    def _velocities_agree(self, longest: Stretch, names: tuple[str, ...]) -> bool:
        """Return whether velocities were measured, and are those of the positions."""
        if longest.velocity is None:
            self.notes.append('velocities are rates of the positions')
            return False
        cutoff, _, noise = motion_cutoff(longest.position, None, self._rate)
        inner = slice(*(int(EDGE / cutoff * self._rate) * np.array([1, -1])))
        rates = low_pass(longest.position, self._rate, cutoff, derivative=1)[inner]
        if not len(rates):
            return True
        difference = _size(low_pass(longest.velocity, self._rate, cutoff)[inner] - rates)
        # Joints that hardly move show only noise.
        moves = _size(rates) > np.maximum(HARDLY * np.max(_size(rates)), STANDSTILL_NOISE * noise)
        wrong = moves & (difference > DISAGREE * _size(rates))
        if np.any(wrong):
            self.notes.append(
                'measured velocities contradict the positions and are left out: '
                + listed(name for name, w in zip(names, wrong) if w))
        return not np.any(wrong)

    def samples(self, lead: float, delay: Delay) -> Samples:
        """Return the samples, with the efforts taken from a time later."""
        rate, cutoff = self._rate, self._cutoff
        edge = int(np.ceil((EDGE / cutoff + abs(lead)) * rate))
        parts = []
        for k, stretch in enumerate(self._stretches):
            x = stretch.position if stretch.velocity is None else stretch.velocity
            known = 0 if stretch.velocity is not None else 1
            inner = np.zeros(len(stretch.time), bool)
            inner[edge:len(inner) - edge] = True
            parts.append((
                stretch.time, low_pass(stretch.position, rate, cutoff),
                low_pass(x, rate, cutoff, derivative=known),
                low_pass(x, rate, cutoff, derivative=known + 1),
                low_pass(stretch.effort, rate, cutoff, lead=lead),
                stretch.saturated, inner, np.full(len(inner), k)))
        time, q, v, a, tau, saturated, inner, segment = [
            np.concatenate(column) for column in zip(*parts)]
        threshold = self._standstill
        if threshold is None:
            threshold = np.maximum.reduce([
                STANDSTILL * np.max(np.abs(v[inner]), axis=0), STANDSTILL_NOISE * self._noise,
                np.where(self._model.angular, *STANDSTILL_LEAST)])
        moving = np.abs(v) > threshold
        # A drive that holds still at a constant effort is not at its limit.
        saturated &= moving
        for k in range(len(parts)):
            saturated[segment == k] = _widened(saturated[segment == k],
                                               int(np.ceil(SMEAR / cutoff * rate)))
        notes = list(self.notes)
        if np.any(saturated):
            share = np.mean(saturated, axis=0)
            notes.append('saturated: ' + listed(
                f'{name} ({100.0 * x:.2g} % of the time)'
                for name, x in zip(self._model.velocity_names, share) if x))
        if lead:
            notes.append(f'{1e3 * lead:.3g} ms taken off the delay of the efforts')
        return Samples(time, q, v, a, tau, moving & ~saturated & inner[:, None], moving, saturated,
                       threshold, segment, rate, cutoff, delay.seconds, delay.deviation,
                       delay.explains, lead, self._left_out, tuple(notes))


def _size(x: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column."""
    return np.sqrt(np.mean(np.square(x), axis=0))


def _widened(mask: np.ndarray, reach: int) -> np.ndarray:
    """Return a mask that is true wherever another is true within a distance, by columns."""
    from scipy.ndimage import maximum_filter1d

    return maximum_filter1d(mask.astype(np.uint8), 2 * reach + 1, axis=0, mode='nearest') > 0
