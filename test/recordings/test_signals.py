# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Samples of recordings: against motions whose derivatives are known, and what is masked."""

from dataclasses import replace

from known_motions import recorded, SineSum
import numpy as np
import pytest
import rbd_ros
from rbd_ros import ModelError, RecordingError, StateError
from rbd_ros.identification import low_pass, prepare, Recording
from robots import example_urdf, load_quietly

RATE = 250.0
# Motions up to 0.7 Hz pass the cut-off, ten times the band of the motion, but for rounding; within
# the samples that are usable, edges leave this share of accelerations.
EDGES = 0.01
# Cubic splines between uneven times: (step x angular velocity)^4 / 384 of the terms of the motion,
# and of accelerations (step x angular velocity)^2 / 8, twice filtered.
SPLINES = 1e-3
# Both ways are the same filter; what differs is rounded.
SAME = 1e-9


@pytest.fixture(scope='module')
def arm():
    """Return a UR10."""
    return load_quietly(example_urdf('ur10_robot.urdf'))


@pytest.fixture(scope='module')
def usual(arm):
    """Return a recording without mistakes."""
    return recorded(arm, motion(), times())


@pytest.fixture(scope='module')
def wheel():
    """Return a robot with one joint that turns without end, and one with limits."""
    builder = rbd_ros.ModelBuilder('wheel').link('base')
    for name, kind, parent in (('wheel', 'continuous', 'base'), ('arm', 'revolute', 'wheel')):
        builder = builder.link(name, 1.0, com=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01)).joint(
            f'{name}_joint', kind, parent, name, axis=(0, 1, 0), lower=-3.0, upper=3.0,
            effort=9.0, velocity=5.0)
    return builder.build()


def times(seconds=20.0, rate=RATE):
    """Return even times."""
    return np.arange(0.0, seconds, 1.0 / rate)


def motion(joints=6, seed=1):
    """Return a motion that begins and ends somewhere on its way."""
    return SineSum(joints, np.random.default_rng(seed))


def largest(x, mask=None):
    """Return the largest entry."""
    return np.max(np.abs(x if mask is None else x[mask]))


# -- What comes back. ----------------------------------------------------------------------------

@pytest.mark.parametrize('velocity, rate', [(True, 1000.0), (False, 100.0)])
def test_prepared_samples_reproduce_motions_and_their_derivatives(arm, velocity, rate):
    follow, time = motion(), times(rate=rate)
    recording = recorded(arm, follow, time, velocity=velocity)
    samples = prepare(arm, recording)
    assert np.array_equal(samples.time, time) and abs(samples.rate / rate - 1.0) < SAME
    inner = np.any(samples.usable, axis=1)
    assert np.mean(inner) > 0.9
    for derivative, x in ((0, samples.q), (1, samples.v), (2, samples.a)):
        expected = follow(time, derivative)
        assert largest((x - expected)[inner]) < EDGES * largest(expected), derivative
    assert largest((samples.tau - recording.effort)[inner]) < EDGES * largest(recording.effort)
    assert np.all(samples.segment == 0)


@pytest.mark.parametrize('velocity', [True, False])
def test_uneven_times_are_made_even(arm, velocity):
    rng = np.random.default_rng(2)
    rate = 40.0
    time = np.sort(times(rate=rate) + rng.uniform(-0.35, 0.35, len(times(rate=rate))) / rate)
    time = np.delete(time, rng.integers(0, len(time), 20))
    follow = motion()
    samples = prepare(arm, recorded(arm, follow, time, velocity=velocity))
    steps = np.diff(samples.time)
    assert np.allclose(steps, 1.0 / samples.rate, rtol=0.0, atol=SAME)
    assert abs(samples.rate - len(time) / 20.0) < 0.1
    assert any('uneven' in note for note in samples.notes)
    inner = np.any(samples.usable, axis=1)
    # The ends of the filter apart.
    inner[:40] = inner[-40:] = False
    for derivative, x in ((0, samples.q), (1, samples.v), (2, samples.a)):
        expected = follow(samples.time, derivative)
        assert largest((x - expected)[inner]) < SPLINES * largest(expected), derivative


def test_nearly_simultaneous_states_are_dropped(arm):
    rng = np.random.default_rng(8)
    even = times()
    # Some come twice, a microsecond apart, with another noise: a spline through both would leap.
    time = np.sort(np.concatenate((even, even[100:4900:7] + 1e-6)))
    one = recorded(arm, motion(), time, noise=0.01, rng=rng)
    samples = prepare(arm, one, cutoff=5.0)
    assert abs(samples.rate / RATE - 1.0) < 1e-3
    assert '686 states left out that come less than' in samples.notes[0]
    inner = np.any(samples.usable, axis=1)
    expected = prepare(arm, recorded(arm, motion(), even), cutoff=5.0)
    assert largest((samples.tau - expected.tau)[inner]) < 0.02 * largest(expected.tau)


def test_all_signals_pass_the_same_filter(arm, usual):
    # Noise has all frequencies: what the filter does to one column, it does to all.
    noise = np.random.default_rng(3).normal(size=(2, len(usual), 6))
    one = replace(usual, position=usual.position + 1e-3 * noise[0],
                  velocity=usual.velocity + 0.1 * noise[1])
    for label, factor in (('position', 3.0), ('velocity', -2.0)):
        samples = prepare(arm, replace(one, effort=factor * getattr(one, label)), delay=0.0)
        x = samples.q if label == 'position' else samples.v
        assert largest(samples.tau - factor * x) < SAME * largest(samples.tau)
    expected = low_pass(one.velocity, samples.rate, samples.cutoff, derivative=1)
    assert largest(samples.a - expected) < SAME * largest(expected)
    assert largest(samples.low_pass(one.velocity) - samples.v) < SAME * largest(samples.v)
    bare = prepare(arm, replace(one, velocity=None), delay=0.0)
    for derivative, x in ((1, bare.v), (2, bare.a)):
        expected = low_pass(one.position, bare.rate, bare.cutoff, derivative=derivative)
        assert largest(x - expected) < SAME * largest(expected)


def test_small_fast_motions_are_kept_if_efforts_show_them(arm):
    time, slow = times(40.0), motion()
    # 0.2 mrad at 12 Hz: more than 50 dB below the motion, but of the size of its accelerations.
    w = 24.0 * np.pi

    def follow(t, derivative=0):
        shake = 2e-4 * w ** derivative * np.sin(w * np.asarray(t) + 0.5 * np.pi * derivative)
        return 0.2 * slow(t, derivative) + shake[:, None]

    one = recorded(arm, follow, time)
    samples = prepare(arm, one)
    inner = np.any(samples.usable, axis=1)
    lost = np.mean((one.effort - samples.tau)[inner] ** 2, axis=0)
    assert np.sum(lost) < 0.005 * np.sum(np.var(one.effort, axis=0))
    wrong = (samples.a - follow(time, 2))[inner]
    assert np.std(wrong) < 0.1 * np.std(follow(time, 2))
    # Which joints lose more is said, by name, whoever chose the cut-off.
    note = prepare(arm, one, cutoff=1.5).notes[-1]
    assert note.startswith('cut-off 1.5 Hz: the filter removes ')
    filtered = low_pass(one.effort, samples.rate, 1.5)
    edge = int(np.ceil(1.5 / 1.5 * RATE))
    lost = np.mean((one.effort - filtered)[edge:-edge] ** 2, axis=0)
    power = np.var(one.effort[edge:-edge], axis=0)
    assert f'removes {100.0 * np.sum(lost) / np.sum(power):.2g} % of the power' in note
    assert np.any(lost > 0.005 * power) and np.any(lost < 0.1 * power)
    for name, x, y in zip(arm.velocity_names, lost, power):
        assert (f'{name} {100.0 * x / y:.2g} % ({np.sqrt(x):.2g} N m RMS)' in note) == (
            x > 0.005 * y)


def test_a_given_cutoff_is_used(arm, usual):
    samples = prepare(arm, usual, cutoff=4.0, delay=0.0)
    assert samples.cutoff == 4.0
    assert largest(samples.tau - low_pass(usual.effort, samples.rate, 4.0)) < SAME * largest(
        usual.effort)
    assert largest(samples.raw - usual.effort) < SAME * largest(usual.effort)


@pytest.mark.parametrize('delay', [0.03, 0.8, -0.8])
def test_a_given_delay_is_removed(arm, delay):
    follow, time = motion(), times()
    late, right = (prepare(arm, recorded(arm, follow, time, delay=x), cutoff=5.0, delay=x)
                   for x in (delay, 0.0))
    assert late.delay == late.delay_removed == delay and late.delay_deviation == 0.0
    inner = np.any(late.usable, axis=1)
    for label in ('tau', 'raw'):
        difference = getattr(late, label) - getattr(right, label)
        assert largest(difference[inner]) < EDGES * largest(right.tau)


def test_continuous_joints_are_unwrapped(wheel):
    time = times()
    follow = motion(2)
    one = recorded(wheel, follow, time)
    turning = one.position + np.array([2.0, 0.0]) * time[:, None]
    wrapped = np.stack((np.remainder(turning[:, 0] + np.pi, 2.0 * np.pi) - np.pi, turning[:, 1]),
                       axis=1)
    velocity = one.velocity + np.array([2.0, 0.0])
    got, expected = (prepare(wheel, replace(one, position=x, velocity=velocity), cutoff=5.0)
                     for x in (wrapped, turning))
    assert largest(np.diff(got.q, axis=0)) < 0.1
    assert largest(got.q - expected.q - (got.q - expected.q)[0]) < SAME * largest(expected.q)
    # A joint with limits may be anywhere between them: its leaps are its own.
    leaping = one.position.copy()
    leaping[2500:, 1] += 2.0 * np.pi
    got = prepare(wheel, replace(one, position=leaping), cutoff=5.0)
    assert got.q[3000, 1] - got.q[2000, 1] > np.pi


# -- Velocities that are none. -------------------------------------------------------------------

@pytest.mark.parametrize('wrong', [
    lambda v: 0.0 * v, np.rad2deg, lambda v: -v, lambda v: v[:, [1, 0, 2, 3, 4, 5]]],
    ids=['zero', 'degrees', 'sign', 'swapped'])
def test_velocities_that_contradict_the_positions_are_left_out(arm, usual, wrong):
    samples = prepare(arm, replace(usual, velocity=wrong(usual.velocity)), delay=0.0)
    expected = prepare(arm, replace(usual, velocity=None), delay=0.0)
    assert np.array_equal(samples.v, expected.v) and np.array_equal(samples.a, expected.a)
    assert any('contradict the positions' in note and 'shoulder_pan_joint' in note
               for note in samples.notes)


def test_noisy_velocities_are_kept(arm, usual):
    noise = 0.1 * np.random.default_rng(4).normal(size=usual.velocity.shape)
    samples = prepare(arm, replace(usual, velocity=usual.velocity + noise), delay=0.0)
    assert not any('contradict' in note for note in samples.notes)


# -- Gaps. ---------------------------------------------------------------------------------------

def test_gaps_are_not_interpolated(arm):
    follow, time = motion(), times(30.0)
    kept = (time < 10.0) | ((time > 11.5) & (time < 18.0)) | (time > 18.1)
    samples = prepare(arm, recorded(arm, follow, time[kept]), cutoff=5.0)
    assert not np.any((samples.time > 10.0) & (samples.time < 11.5))
    assert not np.any((samples.time > 18.0 + 1.0 / RATE) & (samples.time < 18.1))
    assert list(np.unique(samples.segment)) == [0, 1, 2]
    borders = np.flatnonzero(np.diff(samples.segment))
    assert np.all(np.diff(samples.time)[borders] > 0.09)
    # No sample near a border is usable: the filter has edges there.
    for border in borders:
        near = np.abs(samples.time - samples.time[border]) < 1.4 / samples.cutoff
        assert not np.any(samples.usable[near & (samples.segment == samples.segment[border])])
    inner = np.any(samples.usable, axis=1)
    assert largest((samples.a - follow(samples.time, 2))[inner]) < EDGES * largest(samples.a)
    assert any('2 gaps longer than 20 ms, the longest 1.51 s' in note for note in samples.notes)
    # Each stretch is filtered on its own.
    first = samples.segment == 0
    alone = prepare(arm, recorded(arm, follow, time[time < 10.0]), cutoff=5.0, delay=0.0)
    assert largest(samples.v[first] - alone.v) < 1e-6
    measured = follow(time[kept], 1)
    assert largest(samples.low_pass(measured) - samples.v) < SAME


def test_single_lost_states_are_not_gaps(arm):
    time = times()
    time = np.delete(time, np.random.default_rng(5).choice(len(time), 500, replace=False))
    assert not np.any(prepare(arm, recorded(arm, motion(), time), delay=0.0).segment)


def test_segments_shorter_than_the_filter_edges_are_left_out(arm):
    time = times()
    kept = (time < 10.0) | ((time > 10.5) & (time < 10.8)) | (time > 11.3)
    samples = prepare(arm, recorded(arm, motion(), time[kept]), cutoff=5.0)
    assert not np.any((samples.time > 10.4) & (samples.time < 10.9))
    assert any('1 segments between gaps left out' in note for note in samples.notes)


# -- Masks. --------------------------------------------------------------------------------------

def test_a_joint_at_rest_is_masked_without_the_other_joints(arm, usual):
    position, velocity = usual.position.copy(), usual.velocity.copy()
    position[:, 2], velocity[:, 2] = 0.7, 0.0
    samples = prepare(arm, replace(usual, position=position, velocity=velocity))
    assert not np.any(samples.moving[:, 2]) and not np.any(samples.usable[:, 2])
    others = np.delete(samples.usable, 2, axis=1)
    assert np.all(np.mean(others, axis=0) > 0.8)
    assert np.array_equal(samples.moving, np.abs(samples.v) > samples.threshold)
    speed = largest(np.delete(samples.v, 2, axis=1), np.delete(samples.usable, 2, axis=1))
    assert np.all(samples.threshold <= 0.03 * speed)


@pytest.mark.parametrize('noise', [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize('velocity', [True, False])
def test_a_robot_at_rest_gives_no_usable_samples(arm, noise, velocity):
    rng = np.random.default_rng(6)
    shape = (3000, 6)
    one = Recording('still', arm.velocity_names, np.arange(3000) / RATE,
                    0.3 + noise * rng.normal(size=shape),
                    noise * rng.normal(size=shape) if velocity else None,
                    5.0 + noise * rng.normal(size=shape))
    samples = prepare(arm, one)
    # Noise of 4 standard deviations comes up once in 16,000 independent samples.
    assert np.mean(samples.usable) < 1e-3
    assert samples.delay_removed == 0.0
    assert not np.any(samples.saturated)


def test_creeping_counts_as_standstill(arm):
    time = times()
    creep = 0.3 + 5e-4 * np.sin(time)[:, None] * np.ones(6)
    one = Recording('creeping', arm.velocity_names, time, creep, np.gradient(creep, time, axis=0),
                    creep)
    samples = prepare(arm, one)
    assert np.all(samples.threshold >= 1e-3) and not np.any(samples.usable)


def test_given_thresholds_are_used(arm, usual):
    for given in (np.linspace(0.1, 0.6, 6), 0.2):
        samples = prepare(arm, usual, standstill=given, delay=0.0)
        assert np.array_equal(samples.threshold, np.broadcast_to(given, 6))


def test_drives_at_their_limit_are_masked(arm, usual):
    time, one = times(), usual
    top = 0.6 * np.max(one.effort[:, 0])
    assert top > 0.0
    effort = one.effort.copy()
    effort[:, 0] = np.minimum(effort[:, 0], top)
    samples = prepare(arm, replace(one, effort=effort), cutoff=10.0)
    at_limit = one.effort[:, 0] >= top
    assert 0.05 < np.mean(at_limit) < 0.95
    moving = samples.moving[:, 0]
    assert np.all(samples.saturated[at_limit & moving, 0])
    assert not np.any(samples.usable[at_limit, 0])
    # The filter smears the corner, half a period of the cut-off to each side.
    reach = int(0.5 / 10.0 * samples.rate) + 2
    wide = np.convolve(at_limit, np.ones(2 * reach + 1), mode='same') > 0
    assert not np.any(samples.saturated[~wide])
    near = np.convolve(at_limit, np.ones(2 * reach - 5), mode='same') > 0
    assert np.sum(near) > np.sum(at_limit) + reach
    assert np.all(samples.saturated[near & moving, 0])
    # Also at uneven times.
    rng = np.random.default_rng(9)
    time = np.sort(time + rng.uniform(-0.3, 0.3, len(time)) / RATE)
    one = recorded(arm, motion(), time)
    effort = np.minimum(one.effort, [top, *[1e9] * 5])
    samples = prepare(arm, replace(one, effort=effort), cutoff=10.0)
    at_limit = np.interp(samples.time, time, one.effort[:, 0]) >= top
    assert np.all(samples.saturated[at_limit & samples.moving[:, 0], 0])
    assert not np.any(np.delete(samples.saturated, 0, axis=1))
    assert any('saturated: shoulder_pan_joint (' in note for note in samples.notes)


@pytest.mark.parametrize('first', [True, False])
def test_saturation_is_not_smeared_across_a_gap(arm, first):
    follow, time = motion(), times(24.0)
    kept = time[(time < 10.0) | (time > 12.0)]
    one = recorded(arm, follow, kept)
    effort = one.effort.copy()
    # At the limit for 0.4 s on one side of the gap, up to its edge.
    limit = ((kept > 9.6) & (kept < 10.0)) if first else ((kept > 12.0) & (kept < 12.4))
    effort[limit, 0] = 1.5 * largest(one.effort[:, 0])
    samples = prepare(arm, replace(one, effort=effort), cutoff=10.0, standstill=0.0)
    assert list(np.unique(samples.segment)) == [0, 1]
    touched, other = (samples.segment == k for k in ((0, 1) if first else (1, 0)))
    assert np.all(samples.saturated[touched & (np.abs(samples.time - 11.0) < 1.35), 0])
    assert not np.any(samples.saturated[other])
    # Efforts of the other side are as if nothing had been at its limit.
    away = other & (np.abs(samples.time - 11.0) > 1.0 + 1.6 / 10.0) & (samples.time > 0.2) & (
        samples.time < 23.8)
    assert np.all(samples.usable[away, 0])


def test_noise_at_the_known_limit_is_saturation_too(wheel):
    rng = np.random.default_rng(7)
    time = times()
    one = recorded(wheel, motion(2), time)
    effort = np.clip(40.0 * one.effort, -9.0, 9.0)
    effort = effort + 0.02 * rng.normal(size=effort.shape)
    samples = prepare(wheel, replace(one, effort=effort), cutoff=10.0)
    at_limit = np.abs(40.0 * one.effort) > 10.0
    assert np.mean(at_limit) > 0.1
    assert np.mean(samples.saturated[at_limit & samples.moving]) > 0.99
    # A limit that efforts exceed is none.
    effort = 40.0 * one.effort
    assert largest(effort) > 9.2
    assert not np.any(prepare(wheel, replace(one, effort=effort), cutoff=10.0).saturated)


@pytest.mark.parametrize('step', [0.02, 0.5, 2.0])
def test_quantized_efforts_are_not_saturated(arm, usual, step):
    rounded = replace(usual, effort=step * np.round(usual.effort / step))
    assert not np.any(prepare(arm, rounded, delay=0.0).saturated)


def test_a_drive_that_holds_its_highest_effort_at_rest_is_not_saturated():
    robot = (rbd_ros.ModelBuilder('pendulum').link('base')
             .link('rod', 2.0, com=(0.0, 0.0, -0.4), inertia=(0.1, 0.1, 0.01))
             .joint('hinge', 'revolute', 'base', 'rod', axis=(0, 1, 0), lower=-3.0, upper=3.0,
                    effort=50.0, velocity=5.0).build())

    def swing(time, derivative=0):
        angle = 2.0 * (np.asarray(time)[:, None] - 3.0)
        moved = 0.5 * np.pi * 2.0 ** derivative * np.cos(angle + 0.5 * np.pi * derivative)
        return np.where(angle > 0.0, moved, 0.5 * np.pi if derivative == 0 else 0.0)

    one = recorded(robot, swing, times())
    assert np.sum(one.effort == np.max(one.effort)) > 500
    assert not np.any(prepare(robot, one).saturated)


# -- What is refused. ----------------------------------------------------------------------------

@pytest.mark.parametrize('options, said', [
    ({'cutoff': 200.0}, r'cutoff must be in \(0, 125\] Hz, up to half the rate'),
    ({'cutoff': 0.0}, 'cutoff must be in'), ({'cutoff': np.nan}, 'cutoff must be finite'),
    ({'delay': 'none'}, "delay must be seconds or 'estimate'"),
    ({'delay': np.inf}, 'delay must be finite'),
    ({'standstill': -0.1}, 'standstill must not be negative'),
    ({'standstill': [0.1, 0.2]}, r'standstill has the shape \(2,\)'),
])
def test_arguments_that_are_out_of_range_are_refused(arm, usual, options, said):
    with pytest.raises(StateError, match=said):
        prepare(arm, usual, **options)


def test_efforts_that_were_not_recorded_are_named(arm, usual):
    effort = usual.effort.copy()
    effort[:, 4] = np.nan
    for given, named in ((None, 'shoulder_pan_joint, shoulder_lift'), (effort, 'wrist_2_joint')):
        with pytest.raises(RecordingError, match=f'efforts of {named}.* were not recorded'):
            prepare(arm, replace(usual, effort=given))


@pytest.mark.parametrize('seconds, options, said', [
    (0.003, {}, 'it has 1 states'),
    (0.019, {}, 'no segment without a gap has more than 5 states'),
    (2.0, {'cutoff': 1.0}, 'longer than the edges of the filter, 3 s')])
def test_recordings_that_are_too_short_are_refused(arm, usual, seconds, options, said):
    with pytest.raises(RecordingError, match=said):
        prepare(arm, usual.part(stop=seconds), **options)


def test_robots_whose_state_is_no_joint_state_are_refused(arm, usual):
    with pytest.raises(ModelError, match=r'the orientation of .* is not recorded'):
        prepare(rbd_ros.with_floating_base(arm), usual)
    fixed = rbd_ros.with_locked_joints(arm, dict.fromkeys(arm.velocity_names, 0.0))
    with pytest.raises(ModelError, match='has no joint that moves'):
        prepare(fixed, usual)
