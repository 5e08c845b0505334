# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Delays of efforts: found to a fraction of a sample, and doubted where nothing shows them."""

from dataclasses import replace
from itertools import product

from covering import covering
from known_motions import recorded, SineSum
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import estimate_delay, prepare, Recording
from robots import example_urdf, load_quietly

# Of a sample: what noise of 2 % and the corners of Coulomb friction leave at 1 kHz.
PRECISE = 0.25
# Of a sample, without noise and corners: the steps of Gauss and Newton.
EXACT = 1e-3


@pytest.fixture(scope='module')
def arm():
    """Return a UR10."""
    return load_quietly(example_urdf('ur10_robot.urdf'))


@pytest.fixture(scope='module')
def loaded(arm):
    """Return the same with a load that nobody knows."""
    return rbd_ros.with_payload(arm, arm.links[-1].name, 3.0, (0.02, 0.03, 0.08))


def record(robot, delay=0.0, rate=125.0, seconds=20.0, seed=1, **options):
    """Return a recording of a motion that does not repeat itself."""
    rng = np.random.default_rng(seed)
    return recorded(robot, SineSum(robot.nv, rng), np.arange(0.0, seconds, 1.0 / rate),
                    delay=delay, rng=rng, **options)


@pytest.mark.parametrize('rate, samples', covering(
    product([125.0, 1000.0], [0.0, 0.2, -7.0, 7.5]), (125.0, 0.0), (125.0, 0.2), (125.0, -7.0),
    (1000.0, 7.5)))
def test_delays_are_found_to_a_fraction_of_a_sample(arm, loaded, rate, samples):
    delay = samples / rate
    one = record(loaded, delay, rate, viscous=5.0, coulomb=3.0, offset=0.5, noise=0.02)
    got = prepare(arm, one)
    assert abs(got.delay - delay) * rate < PRECISE
    assert abs(got.delay - delay) < 4.0 * got.delay_deviation
    assert got.delay_deviation * rate < PRECISE
    significant = abs(got.delay) > 3.0 * got.delay_deviation
    assert got.delay_removed in (0.0, got.delay)
    # Less than a sample explains little, beside the noise.
    assert (got.delay_removed != 0.0) == (abs(samples) >= 1.0)
    assert significant or samples < 1.0


@pytest.mark.parametrize('delay', [0.0, 0.0007, -0.04])
def test_delays_without_noise_are_exact(arm, delay):
    got = prepare(arm, record(arm, delay, viscous=5.0))
    assert abs(got.delay - delay) * got.rate < EXACT
    inner = np.any(got.usable, axis=1)
    expected = prepare(arm, record(arm, viscous=5.0), delay=0.0).tau
    assert np.max(np.abs((got.tau - expected)[inner])) < 0.01 * np.max(np.abs(expected))


@pytest.mark.parametrize('delay', [1.0, -0.7])
def test_implausible_delays_are_reported_and_not_removed(arm, loaded, delay):
    got = prepare(arm, record(loaded, delay, viscous=5.0, coulomb=3.0, noise=0.01))
    assert abs(got.delay - delay) * got.rate < PRECISE
    assert got.delay_removed == 0.0
    assert f'efforts come {delay:.3g} s later' in got.notes[-1]


@pytest.mark.parametrize('seed', range(4))
def test_the_shortest_of_equally_good_delays_is_chosen(arm, seed):
    rng = np.random.default_rng(seed)

    # Delays of a motion with a period of 1 s are equal up to that.
    def motion(time, order=0):
        wave, phase = 2j * np.pi * np.arange(1, 4), np.linspace(0.0, 5.0, 18).reshape(3, 6)
        return np.real(np.einsum('k,kj,tk->tj', wave ** (order - 1), np.exp(1j * phase),
                                 np.exp(time[:, None] * wave)))

    got = prepare(arm, recorded(arm, motion, np.arange(0.0, 20.0, 8e-3), delay=0.03, rng=rng,
                                viscous=5.0, noise=0.05))
    assert abs(got.delay - 0.03) * got.rate < PRECISE


def test_gains_and_signs_of_drives_do_not_matter(arm, loaded):
    one = record(loaded, 0.02, viscous=5.0, coulomb=3.0, noise=0.01)
    gains = np.array([1.0, -2.0, 0.1, 5.0, -1.0, 30.0])
    got = prepare(arm, replace(one, effort=gains * one.effort))
    assert abs(got.delay - 0.02) * got.rate < PRECISE


def test_stated_deviations_of_delays_match_the_spread_of_repetitions(arm):
    found = [prepare(arm, record(arm, 0.01, seed=seed, noise=0.02, viscous=5.0), cutoff=4.0)
             for seed in range(12)]
    spread = np.sqrt(np.mean([(one.delay - 0.01) ** 2 for one in found]))
    stated = np.sqrt(np.mean([one.delay_deviation ** 2 for one in found]))
    # 12 repetitions know a deviation to 20 %; motions differ from each other.
    assert 0.5 < spread / stated < 2.0


@pytest.mark.parametrize('stands', [True, False])
def test_standstill_and_unrelated_efforts_give_no_delay(arm, stands):
    noise, one = np.random.default_rng(2).normal(size=(2, 2500, 6)), record(arm)
    one = replace(one, effort=noise[0])
    if stands:
        one = replace(one, position=0.3 + 1e-5 * noise[1], velocity=None)
    got = prepare(arm, one)
    assert got.delay == 0.0 and got.delay_deviation == np.inf and got.delay_removed == 0.0


def test_less_motion_makes_delays_less_certain(arm):
    def deviation(share):
        rng = np.random.default_rng(4)
        time = np.arange(0.0, 20.0, 1.0 / 125.0)
        one = recorded(arm, SineSum(6, np.random.default_rng(1), speed=1.5 * share), time)
        noise = 0.5 * rng.normal(size=one.effort.shape)
        return prepare(arm, replace(one, effort=one.effort + noise), cutoff=5.0,
                       standstill=1e-4).delay_deviation

    assert deviation(0.02) > 10.0 * deviation(1.0)


def test_joints_with_different_delays_make_the_delay_uncertain(arm):
    one, other = record(arm, noise=0.02), record(arm, 0.02, noise=0.02)
    mixed = np.where(np.arange(arm.nv) % 2, one.effort, other.effort)
    got = prepare(arm, replace(one, effort=mixed))
    assert 0.0 < got.delay < 0.02
    # Each of them is sure by a small part of a millisecond.
    assert got.delay_deviation > 0.1 * 0.01


def test_a_removed_delay_is_not_found_again(arm, loaded):
    got = prepare(arm, record(loaded, 0.03, viscous=5.0, noise=0.005))
    assert got.delay_removed > 0.029
    again = estimate_delay(arm, got)
    assert abs(again.seconds) < 4.0 * again.deviation


def test_delays_are_found_across_gaps(arm, loaded):
    one = record(loaded, 0.02, seconds=40.0, viscous=5.0, coulomb=3.0, noise=0.01)
    kept = np.ones(len(one), bool)
    kept[1500:1700] = kept[3000:3020] = False
    cut = Recording('cut', one.joint_names, one.time[kept], one.position[kept],
                    one.velocity[kept], one.effort[kept])
    got = prepare(arm, cut)
    assert len(np.unique(got.segment)) == 3
    assert abs(got.delay - 0.02) * got.rate < PRECISE


def test_one_joint_alone_shows_a_delay():
    robot = (rbd_ros.ModelBuilder('pendulum').link('base')
             .link('rod', 2.0, com=(0.0, 0.0, -0.4), inertia=(0.1, 0.1, 0.01))
             .joint('hinge', 'revolute', 'base', 'rod', axis=(0, 1, 0), lower=-3.0, upper=3.0,
                    effort=50.0, velocity=5.0).build())
    got = prepare(robot, record(robot, 0.012, viscous=0.2, noise=0.01))
    assert abs(got.delay - 0.012) * got.rate < PRECISE
    assert abs(got.delay - 0.012) < 4.0 * got.delay_deviation
