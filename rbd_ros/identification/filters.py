# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The low-pass filter of recordings, and where it should cut."""

from typing import NamedTuple

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.validation import number, real_array, shown, whole_number

# Of the Butterworth filter that runs forward and backward: its gain in both is
# 1 / (1 + (f / cutoff)^(2 ORDER)), one half at the cut-off.
ORDER = 4
# How far signals are continued beyond their ends, in periods of the cut-off: there the impulse
# response has decayed to 1e-4.
CONTINUED = 4.0
# The band of a motion ends where the spectrum of the positions lies so far below its peak (40 dB).
BAND = 1e-4
# The cut-off, in widths of that band: at least, so that it takes 2e-4 of the motion at its edge;
# and at most.                                                   [Khalil and Dombre, ch. 12: 10]
LEAST, MOST = 3.0, 10.0
# The cut-off as a share of the sampling rate, at most: half of it is the Nyquist frequency.
SHARE = 0.2
# s, of which spectra are taken, if the recording is long enough for some of them.
WINDOW = 8.0


def low_pass(x: np.ndarray, rate: float, cutoff: float, *, derivative: int = 0,
             lead: float = 0.0) -> np.ndarray:
    """
    Filter signals without a shift of phase, and differentiate them.

    The gain is that of a Butterworth filter of fourth order, run forward and backward, times
    (j omega)^derivative: in the frequency domain, where neither a difference quotient nor the
    bilinear transformation bends it. Beyond its ends a signal is continued as its own image in
    the end point; within one and a half periods of the cut-off from them, derivatives show it.

    Parameters
    ----------
    x : array_like, shape (samples, ...)
        Signals, at even times.
    rate : float
        Samples per second, Hz.
    cutoff : float
        Frequency, Hz, at which the gain is one half.
    derivative : int
        How often they are differentiated.
    lead : float
        s, by which the result is ahead of the signals.

    Returns
    -------
    ndarray, shape (samples, ...)

    Raises
    ------
    StateError
        If ``x`` has fewer than two samples or no real numbers, or the cut-off lies beyond half
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
    # The image of a signal in its end points goes on with the same slope.
    ends = min(samples - 1, int(np.ceil((CONTINUED / cutoff + abs(lead)) * rate)))
    x = np.concatenate((2.0 * x[0] - x[ends:0:-1], x, 2.0 * x[-1] - x[-2:-ends - 2:-1]))
    # Without the line from the first to the last, it is periodic without a step.
    slope = (x[-1] - x[0]) * rate / (len(x) - 1)
    since = np.arange(len(x))[:, None] / rate
    spectrum = np.fft.rfft(x - (x[0] + slope * since), axis=0)
    f = np.fft.rfftfreq(len(x), 1.0 / rate)[:, None]
    gain = (2j * np.pi * f) ** derivative / (1.0 + (f / cutoff) ** (2 * ORDER))
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
        Up to where there is motion, Hz.
    noise : ndarray, shape (joints,)
        Standard deviation of the noise that such a filter leaves in the velocities, rad/s or m/s.

    """

    cutoff: float
    band: float
    noise: np.ndarray


def motion_cutoff(position: np.ndarray, velocity: np.ndarray | None, rate: float) -> MotionCutoff:
    """
    Return where a filter should cut: where the spectrum of the motion meets the noise.

    Below that frequency there is more motion than noise, and above it more noise than motion, in
    the signal as in each of its derivatives: to cut there leaves the least mean square error of
    all filters that cut sharply. The noise is what the spectrum shows just beyond the motion, at
    10 to 20 times the band in which its positions come within 40 dB of their peak. The cut-off is
    not below three times that band, and not above ten times the band or a fifth of the rate.

    Parameters
    ----------
    position : array_like, shape (samples, joints)
        rad or m, at even times.
    velocity : array_like, shape (samples, joints), or None
        rad/s or m/s, as measured; None: accelerations will come from the positions.
    rate : float
        Samples per second, Hz.

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
    # Without any motion or noise, whatever cut-off there is will do.
    band = f[in_band[-1]] if np.max(total, initial=0.0) > 0.0 else SHARE * rate / MOST
    most = min(MOST * band, SHARE * rate)
    spectra = of_position if velocity is None else _spectra(velocity, rate)[1]
    beyond = (f >= most) & (f <= 2.0 * most)
    floor = np.median(spectra[beyond], axis=0)
    above = np.sum(spectra, axis=1) > 2.0 * np.sum(floor)
    drowned = np.flatnonzero(~above & (f > band))
    crossing = f[drowned[0]] if len(drowned) else np.inf
    cutoff = min(max(crossing, LEAST * band), most)
    # The noise is taken for white up to the cut-off, in the positions or in the velocities.
    variance = floor * cutoff
    if velocity is None:
        variance = floor * (2.0 * np.pi) ** 2 * cutoff ** 3 / 3.0
    return MotionCutoff(float(cutoff), float(band), np.sqrt(variance))


def _spectra(x: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, Hz, and power spectral densities of the columns of an array."""
    # Imported here: a node need not wait for SciPy when it starts.
    from scipy.signal import welch

    window = min(len(x), max(len(x) // 4, int(WINDOW * rate)))
    # Of a window that leaks little: motion is 90 dB above the noise of good encoders.
    return welch(x, rate, window='blackmanharris', nperseg=window, detrend='linear', axis=0)
