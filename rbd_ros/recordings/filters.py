# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The low-pass filter of recordings, and the choice of its cut-off, by motion and by efforts."""

from typing import NamedTuple

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, real_array, shown, whole_number

# Of the Butterworth filter that runs forward and backward: its gain in both is
# 1 / (1 + (f / cutoff)^(2 ORDER)), one half at the cut-off.
ORDER = 4
# By how much signals are extended beyond their ends, in periods of the cut-off: there the impulse
# response has decayed to 1e-4.
CONTINUED = 4.0
# The band of a motion ends where the spectrum of the positions is so far below its peak (40 dB).
BAND = 1e-4
# The smallest cut-off in widths of that band, which removes 2e-4 of the motion at its edge; and
# the largest.                                                   [Khalil and Dombre, ch. 12: 10]
LEAST, MOST = 3.0, 10.0
# The largest cut-off as a share of the sampling rate; one half is the Nyquist frequency.
SHARE = 0.2
# The share of the power of the efforts that a cut-off keeps, and how many are tried.
KEPT, TRIED = 0.995, 200
# s, the length of the segments of spectra, if the recording is long enough for several.
WINDOW = 8.0


def low_pass(x: np.ndarray, rate: float, cutoff: float, *, derivative: int = 0,
             lead: float = 0.0) -> np.ndarray:
    """
    Filter signals without phase shift, and differentiate them.

    The gain is that of a Butterworth filter of fourth order, run forward and backward, times
    (j omega)^derivative, applied in the frequency domain, without the distortion of difference
    quotients or of the bilinear transformation. Beyond its ends a signal is extended by its point
    reflection; within one and a half periods of the cut-off from the ends, this affects
    derivatives.

    Parameters
    ----------
    x : array_like, shape (samples, ...)
        Signals, uniformly sampled.
    rate : float
        Sampling rate, Hz.
    cutoff : float
        Frequency, Hz, at which the gain is one half.
    derivative : int
        Order of the derivative.
    lead : float
        Time by which the result is ahead of the signals, s.

    Returns
    -------
    ndarray, shape (samples, ...)

    Raises
    ------
    StateError
        If ``x`` has fewer than two samples or is not real numbers, or the cut-off is above half
        the rate.

    References
    ----------
    Butterworth (1930); Khalil and Dombre, Modeling, Identification and Control of Robots, ch. 12.

    """
    signals = real_array(x)
    if signals is None or not signals.ndim or len(signals) < 2:
        raise StateError(f'x must be real numbers, two samples or more, got {shown(x)}')
    rate = number('rate', rate, least=0.0)
    cutoff = number('cutoff', cutoff, least=1e-9 * rate, most=0.5 * rate)
    whole_number('derivative', derivative, least=0)
    samples = len(signals)
    x = signals.reshape(samples, -1)
    # The point reflection of a signal continues it with the same slope.
    ends = min(samples - 1, int(np.ceil((CONTINUED / cutoff + abs(lead)) * rate)))
    x = np.concatenate((2.0 * x[0] - x[ends:0:-1], x, 2.0 * x[-1] - x[-2:-ends - 2:-1]))
    # Without the line from the first to the last value, it is periodic without a step.
    slope = (x[-1] - x[0]) * rate / (len(x) - 1)
    since = np.arange(len(x))[:, None] / rate
    spectrum = np.fft.rfft(x - (x[0] + slope * since), axis=0)
    f = np.fft.rfftfreq(len(x), 1.0 / rate)[:, None]
    gain = (2j * np.pi * f) ** derivative * _gain(f, cutoff)
    y = np.fft.irfft(spectrum * gain * np.exp(2j * np.pi * f * lead), len(x), axis=0)
    if derivative == 0:
        y += x[0] + slope * (since + lead)
    elif derivative == 1:
        y += slope
    return y[ends:ends + samples].reshape(signals.shape)


class MotionCutoff(NamedTuple):
    """
    What `motion_cutoff` computes.

    Attributes
    ----------
    cutoff : float
        Hz.
    band : float
        Frequency up to which there is motion, Hz.
    noise : ndarray, shape (joints,)
        Standard deviation of the noise that this filter leaves in the velocities, rad/s or m/s.

    """

    cutoff: float
    band: float
    noise: np.ndarray


def motion_cutoff(position: np.ndarray, velocity: np.ndarray | None, rate: float) -> MotionCutoff:
    """
    Return the best cut-off: the frequency at which the spectrum of the motion meets the noise.

    Below it there is more motion than noise, above it more noise than motion, in the signal and in
    each of its derivatives, so this cut-off leaves the least mean square error of all sharp
    filters. The noise is the level of the spectrum just beyond the motion, at 10 to 20 times the
    band in which the positions are within 40 dB of their peak. The cut-off is at least three times
    that band, and at most ten times the band and a fifth of the rate.

    Parameters
    ----------
    position : array_like, shape (samples, joints)
        rad or m, uniformly sampled.
    velocity : array_like, shape (samples, joints), or None
        rad/s or m/s, as measured; None: accelerations will be derived from the positions.
    rate : float
        Sampling rate, Hz.

    Returns
    -------
    MotionCutoff
        With the fields ``cutoff band noise``.

    References
    ----------
    Wiener (1949) for the rule; Khalil and Dombre, ch. 12, for ten times the band; spectra by
    Welch (1967).

    """
    f, of_position = _spectra(position, rate)
    total = np.sum(of_position, axis=1)
    in_band = np.flatnonzero(total >= BAND * np.max(total, initial=0.0))
    # Without any motion or noise, any cut-off will do.
    band = f[in_band[-1]] if np.max(total, initial=0.0) > 0.0 else SHARE * rate / MOST
    most = min(MOST * band, SHARE * rate)
    spectra = of_position if velocity is None else _spectra(velocity, rate)[1]
    beyond = (f >= most) & (f <= 2.0 * most)
    floor = np.median(spectra[beyond], axis=0)
    above = np.sum(spectra, axis=1) > 2.0 * np.sum(floor)
    drowned = np.flatnonzero(~above & (f > band))
    crossing = f[drowned[0]] if len(drowned) else np.inf
    cutoff = min(max(crossing, LEAST * band), most)
    # The noise is assumed to be white up to the cut-off, in the positions or in the velocities.
    variance = floor * cutoff
    if velocity is None:
        variance = floor * (2.0 * np.pi) ** 2 * cutoff ** 3 / 3.0
    return MotionCutoff(float(cutoff), float(band), np.sqrt(variance))


def effort_cutoff(effort: np.ndarray, rate: float) -> float:
    """
    Return the lowest cut-off that keeps 99.5 % of the power of the efforts, all joints together.

    A small fast motion is lost in the spectrum of the positions, but not in that of the efforts,
    where it counts by its acceleration; so are pushes from outside. Power is that of deviations
    from the mean, and what noise has is taken off: its level is that above the largest cut-off.

    Parameters
    ----------
    effort : array_like, shape (samples, joints)
        N m or N, uniformly sampled.
    rate : float
        Sampling rate, Hz.

    Returns
    -------
    float
        Hz, at most a fifth of the rate.

    """
    f, spectra = _spectra(effort, rate)
    most = SHARE * rate
    power = np.sum(spectra, axis=1)
    noise = np.mean(power[f >= most])
    tried = np.geomspace(f[1], most, TRIED)
    lost = (1.0 - _gain(f, tried[:, None])) ** 2 @ np.where(f < most, power - noise, 0.0)
    enough = np.flatnonzero(lost <= (1.0 - KEPT) * np.sum(power))
    return float(tried[enough[0]] if len(enough) else most)


def _gain(f: np.ndarray, cutoff: float | np.ndarray) -> np.ndarray:
    """Return the gain of the filter, forward and backward."""
    return 1.0 / (1.0 + (f / cutoff) ** (2 * ORDER))


def _spectra(x: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, Hz, and power spectral densities of the columns of an array."""
    # Imported here: a node need not wait for SciPy when it starts.
    from scipy.signal import welch

    window = min(len(x), max(len(x) // 4, int(WINDOW * rate)))
    # With a window of little leakage: motion is 90 dB above the noise of good encoders.
    return welch(x, rate, window='blackmanharris', nperseg=window, detrend='linear', axis=0)
