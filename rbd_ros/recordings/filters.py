# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The low-pass filter for recordings, and its cut-off; StateError is raised for invalid values."""

from typing import NamedTuple

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, real_array, shown, whole_number

# Order of the Butterworth filter, which runs forward and backward: its gain is
# 1 / (1 + (f / cutoff)^(2 ORDER)), one half at the cut-off.
ORDER = 4
# Extension of signals at both ends, periods of the cut-off: the impulse response decays to 1e-4.
EXTENSION = 4.0
# The band of a motion ends where the power spectrum of the positions is at -40 dB of its peak.
BAND_THRESHOLD = 1e-4
# Limits of the cut-off in multiples of that band; the lower one removes 2e-4 of the motion at the
# band's edge.                                                   [Khalil and Dombre, ch. 12: 10]
MIN_BANDS, MAX_BANDS = 3.0, 10.0
# Largest cut-off as a fraction of the sampling rate; one half is the Nyquist frequency.
MAX_RATE_FRACTION = 0.2
# Fraction of the power of the efforts that the filter must pass; number of candidate cut-offs.
MIN_POWER_PASSED, CANDIDATES = 0.995, 200
NOISE_DEVIATIONS = 2.0  # Standard errors by which the power of a joint must exceed its noise.
# s, length of the segments of spectra, if the recording is long enough for several.
SPECTRUM_SEGMENT = 8.0


def low_pass(x: np.ndarray, rate: float, cutoff: float, *, derivative: int = 0,
             lead: float = 0.0) -> np.ndarray:
    """
    Filter signals without phase shift, and differentiate them.

    The gain is that of a Butterworth filter of order 4, run forward and backward, times (j
    omega)^derivative. It is applied in the frequency domain, which avoids the distortion of finite
    differences and of the bilinear transform. At its ends a signal is extended by point
    reflection; this affects derivatives within 1.5 periods of the cut-off from the ends.
    [Butterworth (1930); Khalil and Dombre, Modeling, Identification and Control of Robots (12).]

    Parameters
    ----------
    x : array_like, shape (samples, ...)
        Uniformly sampled signals, at least two samples.
    rate, cutoff : float
        Sampling rate, and frequency at which the gain is one half, at most half the rate, Hz.
    derivative, lead : int, float
        Order of the derivative, and time by which the result is ahead of the signals, s.

    """
    signals = real_array(x)
    if signals is None or not signals.ndim or len(signals) < 2:
        raise StateError(f'x must be real numbers, two samples or more, got {shown(x)}')
    rate = number('rate', rate, least=0.0)
    cutoff = number('cutoff', cutoff, least=1e-9 * rate, most=0.5 * rate)
    whole_number('derivative', derivative, least=0)
    samples = len(signals)
    x = signals.reshape(samples, -1)
    # Point reflection continues a signal with the same slope.
    ends = min(samples - 1, int(np.ceil((EXTENSION / cutoff + abs(lead)) * rate)))
    x = np.concatenate((2.0 * x[0] - x[ends:0:-1], x, 2.0 * x[-1] - x[-2:-ends - 2:-1]))
    # Subtract the line from the first to the last value: no step where the period wraps around.
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
    """Result of `motion_cutoff`."""

    cutoff: float       # Hz
    band: float         # highest frequency of the motion, Hz
    noise: np.ndarray   # (joints,), std. deviation left in the filtered velocities, rad/s or m/s


def motion_cutoff(position: np.ndarray, velocity: np.ndarray | None, rate: float) -> MotionCutoff:
    """
    Return the cut-off at which the spectrum of the motion meets that of the noise.

    Below it motion dominates, above it noise, in the signal and in each of its derivatives: of all
    sharp filters this one leaves the least mean square error. The noise level is that of the
    spectrum at 10 to 20 times the band, in which positions are within 40 dB of their peak. The
    cut-off is limited to 3 ... 10 times the band and to a fifth of the rate. [Wiener (1949) for
    the rule; Khalil and Dombre, ch. 12, for ten times the band; Welch (1967) for spectra.]

    Parameters
    ----------
    position, velocity : array_like, shape (samples, joints)
        Uniformly sampled, rad or m, and rad/s or m/s; without measured velocities (None),
        accelerations will be derived from positions.
    rate : float
        Sampling rate, Hz.

    """
    f, of_position = _spectra(position, rate)
    total = np.sum(of_position, axis=1)
    in_band = np.flatnonzero(total >= BAND_THRESHOLD * np.max(total, initial=0.0))
    # Without motion and noise, every cut-off is equally good.
    band = MAX_RATE_FRACTION * rate / MAX_BANDS
    if np.max(total, initial=0.0) > 0.0:
        band = f[in_band[-1]]
    most = min(MAX_BANDS * band, MAX_RATE_FRACTION * rate)
    spectra = of_position if velocity is None else _spectra(velocity, rate)[1]
    beyond = (f >= most) & (f <= 2.0 * most)
    floor = np.median(spectra[beyond], axis=0)
    above = np.sum(spectra, axis=1) > 2.0 * np.sum(floor)
    below_noise = np.flatnonzero(~above & (f > band))
    crossing = f[below_noise[0]] if len(below_noise) else np.inf
    cutoff = min(max(crossing, MIN_BANDS * band), most)
    # Assume white noise up to the cut-off, in the positions or in the measured velocities.
    variance = floor * cutoff
    if velocity is None:
        variance = floor * (2.0 * np.pi) ** 2 * cutoff ** 3 / 3.0
    return MotionCutoff(float(cutoff), float(band), np.sqrt(variance))


def effort_cutoff(effort: np.ndarray, rate: float, most: float) -> float:
    """Return the lowest cut-off, Hz, that passes 99.5 % of the power of efforts."""
    # That is of all joints together, and also of each joint as far as a cut-off of `most`, Hz, can
    # do so. A small fast motion, or a contact, is below the noise in the spectrum of the
    # positions, but visible in the efforts. Power means variance, less that of the noise, whose
    # level is taken above the largest cut-off, a fifth of the rate; what its standard error
    # explains is noise.
    f, spectra = _spectra(effort, rate)
    largest = MAX_RATE_FRACTION * rate
    noise = np.mean(spectra[f >= largest], axis=0)
    candidates = np.geomspace(f[1], largest, CANDIDATES)
    stopped = np.where(f < largest, (1.0 - _gain(f, candidates[:, None])) ** 2, 0.0)
    lost, power = stopped @ (spectra - noise), np.sum(spectra, axis=0)
    # Bins of a spectrum of noise deviate by their mean over the root of the segments' number.
    error = (NOISE_DEVIATIONS * noise * np.sqrt(SPECTRUM_SEGMENT * rate / len(effort))
             * np.linalg.norm(stopped, axis=1)[:, None])

    def lowest(lost: np.ndarray, power: np.ndarray) -> float:
        enough = np.flatnonzero(np.all(lost <= (1.0 - MIN_POWER_PASSED) * power, axis=1))
        return float(candidates[enough[0]] if len(enough) else largest)

    lost -= error
    return max(lowest(np.sum(lost, axis=1, keepdims=True), np.sum(power)),
               min(lowest(lost, power), most))


def _gain(f: np.ndarray, cutoff: float | np.ndarray) -> np.ndarray:
    """Return the gain of the filter, forward and backward."""
    return 1.0 / (1.0 + (f / cutoff) ** (2 * ORDER))


def _spectra(x: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, Hz, and the power spectral density of each column."""
    from scipy.signal import welch  # Imported lazily: SciPy is slow to import.
    window = min(len(x), max(len(x) // 4, int(SPECTRUM_SEGMENT * rate)))
    # A window with little leakage: motion is 90 dB above the noise of good encoders.
    return welch(x, rate, window='blackmanharris', nperseg=window, detrend='linear', axis=0)
