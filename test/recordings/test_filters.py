# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The filter of recordings against closed forms and scipy.signal, and where it is made to cut."""

from itertools import product

from covering import covering
from known_motions import SineSum
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import low_pass, motion_cutoff
from rbd_ros.recordings.filters import effort_cutoff
from scipy import signal

RATE, CUTOFF = 500.0, 8.0
# Both are exact but for what is beyond the ends of an impulse, 1e-4 of its response.
RESPONSE = 2e-4
# Sines up to 1 Hz pass a cut-off of 8 Hz but for (1/8)^8 = 6e-8; and so little is left of the
# edges after so many periods of the cut-off.
PASSED, FAR = 1e-6, 8.0


def inner(x, periods=1.5, rate=RATE, cutoff=CUTOFF):
    """Return what lies away from the edges."""
    edge = int(periods / cutoff * rate)
    return x[edge:-edge]


@pytest.fixture(scope='module')
def slow():
    """Return times and a motion up to 1 Hz."""
    return np.arange(0.0, 20.0, 1.0 / RATE), SineSum(3, np.random.default_rng(1), (0.1, 0.3, 1.0))


@pytest.mark.parametrize('derivative', [0, 1, 2])
def test_gain_is_that_of_butterworth_forward_and_backward(derivative):
    impulse = np.zeros(4001)
    impulse[2000] = 1.0
    response = np.fft.rfft(np.roll(low_pass(impulse, RATE, CUTOFF, derivative=derivative), -2000))
    w = 2.0 * np.pi * np.fft.rfftfreq(len(impulse), 1.0 / RATE)
    _, H = signal.freqs(*signal.butter(4, 2.0 * np.pi * CUTOFF, analog=True), w)
    expected = np.abs(H) ** 2 * (1j * w) ** derivative
    assert np.max(np.abs(response - expected)) < RESPONSE * np.max(np.abs(expected))


@pytest.mark.parametrize('seconds', [0.0, 0.0013, -0.05, 0.2])
@pytest.mark.parametrize('derivative', [0, 1, 2, 3])
def test_the_filter_keeps_amplitude_and_phase_of_sines_and_lead_shifts_them(slow, derivative,
                                                                            seconds):
    time, motion = slow
    got = low_pass(motion(time), RATE, CUTOFF, derivative=derivative, lead=seconds)
    expected = motion(time + seconds, derivative)
    wrong = inner(got - expected, FAR + abs(seconds) * CUTOFF)
    assert np.max(np.abs(wrong)) < PASSED * np.max(np.abs(expected))


def test_errors_of_the_filter_at_edges_last_one_and_a_half_periods_of_the_cutoff(slow):
    time, motion = slow
    wrong = np.abs(low_pass(motion(time), RATE, CUTOFF, derivative=2) - motion(time, 2))
    size = np.max(np.abs(motion(time, 2)))
    assert np.max(wrong) > 0.1 * size
    assert np.max(inner(wrong)) < 0.01 * size


def test_the_filter_keeps_straight_lines_up_to_their_ends():
    x = np.stack((np.full(300, 7.0), 2.0 - 3.0 * np.arange(300) / RATE), axis=1)
    exact = 1e-9
    assert np.allclose(low_pass(x, RATE, CUTOFF), x, rtol=0.0, atol=exact)
    assert np.allclose(low_pass(x, RATE, CUTOFF, derivative=1), [0.0, -3.0], rtol=0.0, atol=exact)
    assert np.allclose(low_pass(x, RATE, CUTOFF, derivative=2), 0.0, rtol=0.0, atol=1e-6)


def test_filter_is_linear_and_takes_columns_alike():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 2, 3))
    y = low_pass(x, RATE, CUTOFF, derivative=1)
    assert y.shape == x.shape
    # The phase of the continued signal is rounded in other places.
    rounding = 1e-9 * np.max(np.abs(y))
    mixed = low_pass(2.0 * x[:, 0, 1] - x[:, 1, 2], RATE, CUTOFF, derivative=1)
    assert np.allclose(mixed, 2.0 * y[:, 0, 1] - y[:, 1, 2], rtol=0.0, atol=rounding)


@pytest.mark.parametrize('samples', [2, 3, 10])
def test_signals_shorter_than_the_response_are_filtered(samples):
    x = np.linspace(1.0, 2.0, samples)
    assert np.allclose(low_pass(x, RATE, CUTOFF), x, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('arguments, said', [
    ((np.zeros(1), 10.0, 1.0), 'two samples or more'),
    ((['a', 'b'], 10.0, 1.0), 'real numbers'),
    ((np.zeros(9), 10.0, 6.0), 'cutoff must lie between'),
    ((np.zeros(9), 10.0, 0.0), 'cutoff must lie between'),
    ((np.zeros(9), np.nan, 6.0), 'rate must be finite'),
])
def test_invalid_signals_and_cutoffs_are_refused(arguments, said):
    with pytest.raises(rbd_ros.StateError, match=said):
        low_pass(*arguments)


# -- Where to cut. -------------------------------------------------------------------------------

def coloured(rng, spectrum, rate, samples):
    """Return noise with a power spectral density, given as a function of frequency."""
    white = np.fft.rfft(rng.normal(size=samples))
    f = np.fft.rfftfreq(samples, 1.0 / rate)
    return np.fft.irfft(white * np.sqrt(0.5 * rate * spectrum(f)), samples)


@pytest.mark.parametrize('crossing', [4.0, 6.0, 8.0])
def test_cutoff_is_where_the_spectrum_of_the_motion_meets_the_noise(crossing):
    rng = np.random.default_rng(int(crossing))
    rate, knee, noise = 200.0, 0.3, 1e-9
    top = noise * (crossing / knee) ** 8
    x = np.stack([coloured(rng, lambda f: top / (1.0 + (f / knee) ** 8), rate, 40_000)
                  + coloured(rng, lambda f: noise + 0.0 * f, rate, 40_000) for _ in range(4)],
                 axis=1)
    found = motion_cutoff(x, None, rate)
    assert abs(found.cutoff / crossing - 1.0) < 0.15
    # 40 dB below the top, to the resolution of the spectrum, 1/8 Hz.
    assert abs(found.band - knee * 1e4 ** (1.0 / 8.0)) < 0.3


@pytest.mark.parametrize('rate, measured, noise, slow', covering(
    product([100.0, 1000.0], [False, True], [1e-5, 1e-4], [True, False]),
    (100.0, False, 1e-5, True), (100.0, True, 1e-4, False), (1000.0, False, 1e-4, True)))
def test_accelerations_are_nearly_as_good_as_with_the_best_cutoff(rate, measured, noise, slow):
    rng = np.random.default_rng(6)
    motion = SineSum(6, rng, (0.1, 0.23, 0.41, 0.7) if slow else (0.5, 1.1, 2.0, 3.1))
    time = np.arange(0.0, 20.0, 1.0 / rate)
    q = motion(time) + noise * rng.normal(size=(len(time), 6))
    v = motion(time, 1) + 10.0 * noise * rng.normal(size=q.shape) if measured else None
    found = motion_cutoff(q, v, rate)
    x, derivative = (q, 2) if v is None else (v, 1)
    edge, a = int(1.5 * rate), motion(time, 2)

    def error(cutoff):
        wrong = (low_pass(x, rate, cutoff, derivative=derivative) - a)[edge:-edge]
        return np.sqrt(np.mean(wrong ** 2) / np.mean(a ** 2))

    best = min(error(cutoff) for cutoff in np.geomspace(1.0, 0.4 * rate, 30))
    assert error(found.cutoff) < min(5.0 * best, 0.01)


@pytest.mark.parametrize('rate, fast, noise', covering(
    product([125.0, 1000.0], [3.0, 8.0], [0.0, 0.25]), (125.0, 3.0, 0.25), (125.0, 8.0, 0.0),
    (1000.0, 8.0, 0.25)))
def test_cutoff_keeps_the_power_of_the_efforts_of_every_joint(rate, fast, noise):
    time = np.arange(0.0, 40.0, 1.0 / rate)
    rng = np.random.default_rng(1)
    # Of the power of both joints, 2 parts in 1e6 lie at the higher frequency: half of the second
    # joint's, which is small beside that of the first one.
    slow, quick = (np.sin(2.0 * np.pi * f * time) for f in (0.4, fast))
    tau = np.stack((70.0 + 500.0 * slow, 0.5 * slow + 0.5 * quick), axis=1)
    found = effort_cutoff(tau + noise * rng.normal(size=tau.shape), rate, 20.0)

    def lost(cutoff):
        wrong = (tau - low_pass(tau, rate, cutoff))[int(rate):-int(rate)]
        return np.max(np.sum(wrong ** 2, axis=0)
                      / np.sum(np.square(tau - np.mean(tau, axis=0)), axis=0))

    # Noise, a fifth of the second joint's power, does not raise the cut-off, but makes it less
    # certain.
    assert lost(found) < (0.012 if noise else 0.005)
    assert lost(0.9 * found) > 0.005
    # Beyond a given frequency only the power of all joints counts.
    assert effort_cutoff(tau, rate, 2.0) == 2.0
    assert effort_cutoff(tau * [0.0, 1.0], rate, 2.0) == pytest.approx(found, rel=0.1)


@pytest.mark.parametrize('seed', range(2))
def test_the_noise_of_a_joint_does_not_raise_the_cutoff(seed):
    rng, time = np.random.default_rng(seed), np.arange(0.0, 40.0, 0.01)
    slow = np.sin(2.0 * np.pi * 0.4 * time)
    tau = np.stack((slow, slow, 0.0 * slow), axis=1) + [0.0, 2.0, 1.0] * rng.normal(
        size=(len(time), 3))
    assert effort_cutoff(tau, 100.0, 20.0) < 3.0


def test_cutoff_of_efforts_is_at_most_a_fifth_of_the_rate():
    rng = np.random.default_rng(2)
    time = np.arange(0.0, 20.0, 0.01)
    for tau in (np.zeros((2000, 2)), rng.normal(size=(2000, 2)),
                np.sin(2.0 * np.pi * 40.0 * time)[:, None]):
        assert 0.0 < effort_cutoff(tau, 100.0, 20.0) <= 20.0


def test_noise_of_velocities_is_that_after_the_filter():
    rng = np.random.default_rng(7)
    time = np.arange(0.0, 60.0, 1.0 / RATE)
    motion = SineSum(2, rng)
    sigma = np.array([1e-4, 3e-4])
    q = motion(time) + sigma * rng.normal(size=(len(time), 2))
    v = motion(time, 1) + 20.0 * sigma * rng.normal(size=q.shape)
    for measured in (None, v):
        found = motion_cutoff(q, measured, RATE)
        x, derivative = (q, 1) if measured is None else (v, 0)
        left = np.std(inner(low_pass(x, RATE, found.cutoff, derivative=derivative)
                            - motion(time, 1), 3.0, cutoff=found.cutoff), axis=0)
        # White up to the cut-off, where the filter begins to fall before it.
        assert np.all((0.6 < found.noise / left) & (found.noise / left < 1.4))


def test_cutoff_of_robots_at_rest_is_within_its_limits():
    rng = np.random.default_rng(8)
    for x in (np.zeros((2000, 2)), np.full((2000, 2), 0.3), rng.normal(size=(2000, 2))):
        found = motion_cutoff(x, None, RATE)
        assert 0.0 < found.cutoff <= 0.2 * RATE
        assert np.all(np.isfinite(found.noise))


def test_coloured_noise_is_estimated_near_the_motion():
    # As of time stamps: flat up to 50 Hz, and falling there. Its floor at the end of the spectrum
    # is no measure of it.
    rng = np.random.default_rng(9)
    time = np.arange(0.0, 20.0, 1e-3)
    motion = SineSum(5, rng)
    noise = np.stack([coloured(rng, lambda f: 4e-10 / (1.0 + (f / 50.0) ** 4), 1000.0, len(time))
                      for _ in range(5)], axis=1)
    found = motion_cutoff(motion(time) + noise, None, 1000.0)
    assert 2.0 < found.cutoff < 6.0
