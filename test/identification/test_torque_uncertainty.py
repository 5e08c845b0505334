# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Intervals of torques: how often those of other motions are within them."""

from dataclasses import replace

from covering import covering
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, batch, identification
from rbd_ros.identification.parameters import LoadParameters, States
from rbd_ros.identification.reduction import samples_of
from rbd_ros.identification.torque_uncertainty import (
    covariance_factor, Residuals, torque_uncertainty)
from rbd_ros.model import (load_drives, save_drives, Uncertainty, with_drive_parameters,
                           with_friction, with_inertial_parameters)
from rbd_ros.model.constraints import attach

# Intervals of 90 % are as wide as those of a normal distribution.
WIDTH = 1.6449
# Fits, and samples of other motions for each: 10,000 in all.
RUNS, FRESH = 4, 2500
GRAVITY = 9.81


@pytest.fixture(scope='module')
def arm():
    """Return a shoulder and an elbow that swing in the vertical plane, and a wrist across it."""
    inertia = (0.02, 0.02, 0.01)
    return (rbd_ros.ModelBuilder('arm').link('base')
            .link('upper', mass=3.0, com=(0.0, 0.02, 0.2), inertia=inertia)
            .link('lower', mass=2.0, com=(0.01, 0.0, 0.15), inertia=inertia)
            .link('hand', mass=1.0, com=(0.03, 0.02, 0.05), inertia=inertia)
            .joint('shoulder', 'continuous', 'base', 'upper', axis=(0, 1, 0), damping=0.3,
                   friction=0.4)
            .joint('elbow', 'continuous', 'upper', 'lower', xyz=(0, 0, 0.4), axis=(0, 1, 0),
                   damping=0.2, friction=0.2)
            .joint('wrist', 'continuous', 'lower', 'hand', xyz=(0, 0, 0.3), axis=(1, 0, 0),
                   damping=0.1, friction=0.1)
            .link('tool').joint('flange', 'fixed', 'hand', 'tool', xyz=(0.4, -0.3, 0.5)).build())


def pendulum(**drive):
    """Return one link that swings about the y axis, with its centre of mass on the z axis."""
    return (rbd_ros.ModelBuilder('pendulum').link('base')
            .link('rod', mass=2.0, com=(0.0, 0.0, 0.5), inertia=(0.1, 0.1, 0.1))
            .joint('pivot', 'continuous', 'base', 'rod', axis=(0, 1, 0), **drive).build())


def with_uncertainty(model, samples):
    """Return the robot that samples show, with its uncertainty."""
    part = identification.partial(model, samples, threads=1)
    return identification.with_uncertainty(identification.fit(model, part), part, samples)


def identified(true, guess, seed, seconds, noise):
    """Return the robot that noisy torques of a motion show, and how often it holds others."""
    robot = None
    for stage, (start, duration) in enumerate(((seed, seconds), (1000 + seed, FRESH / 50.0))):
        rng = np.random.default_rng(start)
        t, q, v, a = measured.swing(true, rng, duration, 50.0)
        tau = measured.efforts(true, q, v, a) + noise(rng, v)
        if not stage:
            samples = samples_of(guess, q, v, a, tau, t)
            robot = with_uncertainty(guess, samples)
    model = batch.inverse_dynamics(robot, q, v, a) + rbd_ros.friction_torques(robot, v)
    deviation = analysis.torque_deviation(robot, q, v, a)
    return robot, np.abs(v), np.abs(tau - model) <= WIDTH * deviation


def white(rng, v):
    """Return noise of another size at each joint."""
    return rng.normal(size=v.shape) * [1.0, 0.5, 0.2]


def persistent(rng, v):
    """Return errors that persist and are not normal, like those of a position."""
    return np.sin(measured.coloured(rng, *v.shape, 3.0) * 2.0) * 0.5


@pytest.mark.parametrize('noise, seconds', [(white, 12.0), (persistent, 40.0)])
def test_intervals_of_90_percent_hold_so_many_torques_of_other_motions(arm, noise, seconds):
    within = []
    for seed in range(RUNS):
        true = measured.changed(arm, np.random.default_rng(seed))
        within.append(identified(true, arm, seed, seconds, noise)[2])
    within = np.concatenate(within)
    assert within.shape == (RUNS * FRESH, arm.nv)
    assert np.all((np.mean(within, axis=0) >= 0.88) & (np.mean(within, axis=0) <= 0.92))


def test_noise_is_found_by_joint_and_speed(arm):
    robot, v, within = identified(arm, arm, 0, 120.0, lambda rng, v: rng.normal(
        size=v.shape) * (1.0 + v ** 2) * [1.0, 0.5, 0.2])
    known = robot.uncertainty
    # The slowest, the middle and the fastest third.
    assert known.speed.shape == (arm.nv, 3) and np.all(np.diff(known.speed) > 0.0)
    expected = (1.0 + known.speed ** 2) * np.array([1.0, 0.5, 0.2])[:, None]
    assert np.all(np.abs(known.noise[0] / expected - 1.0) < 0.25)
    for j in range(arm.nv):
        order = np.argsort(v[:, j])
        thirds = np.array_split(within[order, j], 3)
        assert np.all(np.abs([np.mean(one) - 0.9 for one in thirds]) < 0.07)


# The noise is a quantile of about 120 independent values where it is filtered most, which varies
# by 3 %, and parameters are as wrong as they are for one robot: so single robots hold 90 +- 6 %.
ROBOTS, ONE, ALL = 2, (0.84, 0.96), (0.87, 0.94)


def growing(rng, v):
    """Return noise that is three times as large at 1 rad/s as at rest."""
    return white(rng, v) * (1.0 + 2.0 * np.abs(v))


def test_intervals_hold_for_the_bandwidth_with_which_torques_are_compared(arm):
    shares, wrong = [], []
    for seed in range(ROBOTS):
        rng = np.random.default_rng(40 + seed)
        true, recorded = measured.changed(arm, rng), []
        for seconds in (40.0, 60.0):
            t, q, v, a = measured.swing(true, rng, seconds, 200.0)
            recorded.append(identification.Recording(
                'motion', arm.velocity_names, t, q, v,
                measured.efforts(true, q, v, a) + 0.3 * growing(rng, v)))
        used, other = (identification.prepare(arm, one, delay=0.0, cutoff=6.0)
                       for one in recorded)
        robot = with_uncertainty(arm, used)
        assert np.array_equal(robot.uncertainty.bandwidth, [1.5, 6.0, 100.0])
        # The states that were recorded are those of the motion.
        states = q, v, a
        error = recorded[1].effort - batch.inverse_dynamics(
            robot, *states) - rbd_ros.friction_torques(robot, v)
        inner = other.usable & ((t > 1.0) & (t < 59.0))[:, None]

        def share(error, bandwidth, inner=inner, robot=robot, states=states):
            deviation = analysis.torque_deviation(robot, *states, bandwidth=bandwidth)
            return np.mean((np.abs(error) <= WIDTH * deviation)[inner])

        narrow, wide = (replace(other, cutoff=x).low_pass(error) for x in (1.5, 30.0))
        shares.append([share(other.low_pass(error), 6.0), share(narrow, 1.5),
                       share(error, np.inf), share(wide, 30.0)])
        wrong.append([share(narrow, 6.0), share(error, 6.0)])
    shares, wrong = np.array(shares), np.mean(wrong, axis=0)
    assert np.all((shares >= ONE[0]) & (shares <= ONE[1]))
    assert np.all((np.mean(shares, axis=0) >= ALL[0]) & (np.mean(shares, axis=0) <= ALL[1]))
    # With the deviations of another bandwidth they hold too many torques, and too few.
    assert wrong[0] > 0.96 and wrong[1] < 0.6


def test_noise_of_each_bandwidth_is_that_after_its_filter(arm):
    rng = np.random.default_rng(8)
    t, q, v, a = measured.swing(arm, rng, 120.0, 100.0)
    # Torques near the ends of segments are not compared: there the filter has only one side.
    size = np.where(np.abs(t % 6.0 - 2.9) > 2.8, 10.0, 1.0)[:, None]
    tau = measured.efforts(arm, q, v, a) + size * white(rng, v)
    kept = t % 6.0 < 5.8
    samples = identification.prepare(arm, identification.Recording(
        'motion', arm.velocity_names, *(x[kept] for x in (t, q, v, tau))), cutoff=4.0, delay=0.0)
    assert samples.segment[-1] == 19
    known = with_uncertainty(arm, samples).uncertainty
    # The power of white noise behind the gain 1 / (1 + (f / cutoff)^8), of that up to 50 Hz.
    f = np.linspace(0.0, 50.0, 100_001)
    passed = [np.mean((1.0 + (f / cutoff) ** 8) ** -2.0) for cutoff in (1.0, 4.0)] + [1.0]
    expected = np.sqrt(passed)[:, None] * [1.0, 0.5, 0.2]
    assert np.all(np.abs(np.mean(known.noise, axis=2) / expected - 1.0) < 0.25)
    # Between bandwidths the variance changes linearly; beyond them it is constant.
    low, middle, high, half, raw, narrow = (
        known.noise_at(known.speed.T, x) ** 2 for x in (1.0, 4.0, 50.0, 27.0, np.inf, 0.3))
    assert np.allclose(half, 0.5 * (middle + high), rtol=1e-12)
    assert np.allclose(raw, high) and np.array_equal(narrow, low)


def test_friction_is_filtered_as_the_torques_are(arm):
    # Its steps at reversals are twenty times as large as the noise.
    rng = np.random.default_rng(9)
    t, q, v, a = measured.swing(arm, rng, 60.0, 100.0)
    tau = measured.efforts(arm, q, v, a) + 0.02 * white(rng, v)
    samples = identification.prepare(arm, identification.Recording(
        'motion', arm.velocity_names, t, q, v, tau), cutoff=4.0, delay=0.0)
    known = with_uncertainty(arm, samples).uncertainty
    assert np.all(np.abs(known.noise[2] / (0.02 * np.array([[1.0], [0.5], [0.2]])) - 1.0) < 0.25)


def test_with_few_samples_the_noise_does_not_depend_on_speed(arm):
    robot, _, _ = identified(arm, arm, 0, 12.0, lambda rng, v: 0.3 * measured.coloured(
        rng, *v.shape, 10.0))
    assert robot.uncertainty.speed.shape == (arm.nv, 1)
    v = np.array([[0.0] * 3, [0.5] * 3, [5.0] * 3])
    noise = robot.uncertainty.noise_at(v)
    assert np.allclose(noise, robot.uncertainty.noise[0].T, rtol=1e-12)


@pytest.mark.parametrize('each, level', [
    (2.5, 0.9 * (1.0 + 2.5 / 101)), (10.0, 0.9 * (1.0 + 10.0 / 101)), (90.0, 1.0)])
def test_intervals_widen_as_fewer_residuals_are_independent(arm, each, level):
    q, v, a = np.random.default_rng(2).normal(size=(3, 200, arm.nv))
    part = identification.partial(arm, samples_of(arm, q, v, a, v), threads=1)
    found = replace(identification.fit(arm, part), correlation=np.full(arm.nv, each))
    # Between 0 and 1, evenly: the quantile of a share is the share.
    left = [[[Residuals(np.ones(101), np.linspace(0.0, 1.0, 101))] * arm.nv]]
    assert np.allclose(torque_uncertainty(found, left, np.zeros(1)).noise ** 2, level)
    # Of noise filtered at 1 Hz and sampled at 100 Hz, 50 samples count as one; at 4 Hz 12.5.
    noise = torque_uncertainty(found, [3 * left[0]], np.array([1.0, 4.0, 50.0])).noise
    levels = [np.minimum(0.9 * (1.0 + max(each, few) / 101), 1.0) for few in (50.0, 12.5, 1.0)]
    assert np.allclose(noise ** 2, np.reshape(levels, (3, 1, 1)))


def test_the_noise_of_a_joint_at_rest_covers_its_unexplained_torque(arm):
    rng = np.random.default_rng(0)
    t, q, v, a = measured.swing(arm, rng, 20.0, 50.0)
    usable = np.ones(v.shape, bool)
    usable[:, 1] = False
    tau = measured.efforts(arm, q, v, a) + 0.1 * rng.normal(size=v.shape)
    tau[:, 1] += 5.0 * np.sin(t)
    samples = samples_of(arm, q, v, a, tau, t, usable)
    known = with_uncertainty(arm, samples).uncertainty
    assert np.all(known.noise[0, [0, 2]] < 0.2) and np.all(known.noise[0, 1] > 2.0)


def test_deviation_of_torques_matches_robots_with_sampled_parameters(arm):
    # Each row of R is one standard deviation of independent parameters.
    known = identified(arm, arm, 3, 12.0, white)[0].uncertainty
    columns, step, rng = ('viscous', 'coulomb', 'offset', 'rotor'), 1e-4, np.random.default_rng(5)
    names = (rbd_ros.model.inertial_parameter_names(arm)
             + rbd_ros.model.drive_parameter_names(arm, columns=columns))
    values = np.concatenate((rbd_ros.model.inertial_parameters(arm),
                             rbd_ros.model.drive_parameters(arm, columns=columns)))
    # A heavier robot with more friction: what is subtracted leaves one that can exist.
    values += 1e-2
    q, v, a = rng.normal(size=(3, 4, arm.nv))
    at = [names.index(name) for name in known.parameters]

    def torques(values):
        robot = with_drive_parameters(with_inertial_parameters(arm, values[:30]), values[30:],
                                      columns=columns)
        return np.array([rbd_ros.inverse_dynamics(robot, *state)
                         + rbd_ros.friction_torques(robot, state[1]) for state in zip(q, v, a)])

    variance = known.noise_at(v) ** 2
    for row in known.factor:
        change = np.zeros(len(names))
        change[at] = step * row
        variance += ((torques(values + change) - torques(values - change)) / (2.0 * step)) ** 2
    many = analysis.torque_deviation(attach(arm, known), q, v, a)
    assert np.allclose(many, np.sqrt(variance), rtol=1e-6)
    one = analysis.torque_deviation(attach(arm, known), q[2], v[2], a[2])
    assert one.shape == (arm.nv,) and np.allclose(one, many[2], rtol=1e-12)


def test_deviations_of_a_pendulum_are_those_of_the_textbook():
    # tau = (Iyy + rotor) a - m c g sin(q) + damping v + friction sign(v) + offset: with z up,
    # gravity acts on the centre of mass at (sin q, cos q).
    names = ('rod/mcz', 'rod/Iyy', 'pivot.damping', 'pivot.friction', 'pivot.effort_offset')
    size = np.array([0.1, 0.02, 0.3, 0.4, 0.05])
    robot = attach(pendulum(), Uncertainty(('pivot',), names, np.diag(size),
                                           np.array([[0.5, 1.5]]), np.array([[0.2, 0.6]]),
                                           np.zeros(1)))
    q, v, a = 0.7, -1.25, 2.0
    rows = size * [GRAVITY * np.sin(q), a, v, np.sign(v), 1.0]
    found = analysis.torque_deviation(robot, [q], [v], [a])
    # Half-way between the speeds and a quarter.
    assert np.isclose(found[0] ** 2, np.sum(rows ** 2) + 0.5 ** 2, rtol=1e-12)
    # Constant beyond them.
    for v, noise in ((0.1, 0.2), (-9.0, 0.6)):
        rows = size * [GRAVITY * np.sin(q), a, v, np.sign(v), 1.0]
        found = analysis.torque_deviation(robot, [q], [v], [a])
        assert np.isclose(found[0] ** 2, np.sum(rows ** 2) + noise ** 2, rtol=1e-12)


def test_dry_friction_has_any_size_at_rest():
    still = Uncertainty(('pivot',), ('rod/mcz',), np.zeros((1, 1)), np.zeros((1, 1)),
                        np.array([[0.3]]), np.zeros(1))
    model = pendulum(friction=2.0, stribeck_friction=1.0, stribeck_velocity=0.1)
    robot = attach(model, still)
    # Uniform between -3 and 3.
    found = analysis.torque_deviation(robot, [0.0], [0.0], [0.0])
    assert np.isclose(found[0] ** 2, 0.3 ** 2 + np.var(np.linspace(-3.0, 3.0, 100_001)), 1e-4)
    assert analysis.torque_deviation(robot, [0.0], [1e-3], [0.0])[0] == 0.3
    smooth = analysis.torque_deviation(robot, [0.0], [0.05], [0.0], smooth=0.05)[0]
    dry = 2.0 + np.exp(-0.25)
    assert np.isclose(smooth ** 2, 0.3 ** 2 + dry ** 2 / 3.0 / np.cosh(1.0) ** 2)


def test_uncertainty_stays_with_the_robot_it_belongs_to(arm):
    known = Uncertainty(arm.velocity_names, ('hand/m', 'elbow.damping'), np.eye(2),
                        np.zeros((3, 1)), np.ones((3, 1)), np.zeros(3))
    robot = attach(arm, known)
    loaded = rbd_ros.with_payload(robot, 'hand', 1.0)
    for other in (loaded, rbd_ros.with_gravity(robot, (0, 0, -1)),
                  rbd_ros.model.without_payload(loaded, 'hand')):
        assert other.uncertainty is known
    for other in (arm, rbd_ros.with_locked_joints(robot, {'wrist': 0.0}),
                  rbd_ros.with_armature(robot, {'wrist': 1.0}), with_friction(robot, damping={}),
                  with_inertial_parameters(robot, rbd_ros.model.inertial_parameters(robot)),
                  rbd_ros.subtree(robot, 'upper'), rbd_ros.with_floating_base(robot)):
        assert other.uncertainty is None
        with pytest.raises(rbd_ros.ModelError, match='has no uncertainty: identify it'):
            analysis.torque_deviation(other, *np.zeros((3, other.nv)))


def test_uncertainty_is_saved_with_the_drives(arm, tmp_path):
    robot = identified(arm, arm, 1, 12.0, white)[0]
    save_drives(robot, tmp_path / 'drives.yaml')
    back = load_drives(robot, tmp_path / 'drives.yaml')
    assert back.uncertainty is not robot.uncertainty
    assert back.uncertainty.parameters == robot.uncertainty.parameters
    q, v, a = np.random.default_rng(2).normal(size=(3, 20, arm.nv))
    assert np.allclose(analysis.torque_deviation(back, q, v, a),
                       analysis.torque_deviation(robot, q, v, a), rtol=1e-4)
    # It belongs to the robot with and without payloads, but to no other.
    loaded = rbd_ros.with_payload(robot, 'hand', 1.0)
    save_drives(loaded, tmp_path / 'loaded.yaml')
    for one, name in ((loaded, 'drives.yaml'), (robot, 'loaded.yaml')):
        assert load_drives(one, tmp_path / name).uncertainty is not None
    pi = rbd_ros.model.inertial_parameters(robot)
    for body in range(0, len(pi), 10):
        for k, unit in (0, slice(1)), (2, slice(1, 4)), (6, slice(4, 10)):
            other = pi.copy()
            other[body + k] += 1e-3 * np.max(np.abs(pi.reshape(-1, 10)[:, unit]))
            with pytest.warns(rbd_ros.ModelWarning, match=r'drives\.yaml: .* other inertial '):
                other = load_drives(with_inertial_parameters(robot, other),
                                    tmp_path / 'drives.yaml')
            assert other.uncertainty is None and 'is not used' in other.warnings[-1]
    # A file of an earlier version has noise of one bandwidth.
    lines = (tmp_path / 'drives.yaml').read_text().splitlines()
    (tmp_path / 'old.yaml').write_text('\n'.join(
        line for line in lines if not line.startswith('      bandwidth')))
    with pytest.warns(rbd_ros.ModelWarning, match='has no bandwidth and holds for torques fil'):
        old = load_drives(robot, tmp_path / 'old.yaml')
    for bandwidth in (0.1, np.inf):
        assert np.allclose(old.uncertainty.noise_at(v, bandwidth), back.uncertainty.noise_at(v))
    # A file without inertial parameters has the drives alone.
    (tmp_path / 'old.yaml').write_text('\n'.join(
        line for line in lines if not line.startswith('      inertial')))
    with pytest.warns(rbd_ros.ModelWarning, match='has no inertial parameters and is not used'):
        old = load_drives(arm, tmp_path / 'old.yaml')
    assert old.uncertainty is None and np.allclose(old.damping, robot.damping)
    # Other joints: their drives are not there, nor is the uncertainty.
    save_drives(rbd_ros.with_locked_joints(robot, {'wrist': 0.0}), tmp_path / 'other.yaml')
    assert 'uncertainty' not in (tmp_path / 'other.yaml').read_text()


def test_too_few_samples_give_no_uncertainty(arm):
    q, v, a = np.random.default_rng(2).normal(size=(3, 1, arm.nv))
    samples = samples_of(arm, q, v, a, v)
    part = identification.partial(arm, samples, threads=1)
    found = identification.fit(arm, part)
    with pytest.raises(rbd_ros.StateError, match='too few'):
        identification.with_uncertainty(found, part, samples)
    with pytest.raises(rbd_ros.StateError, match='no recordings'):
        identification.with_uncertainty(found, part, ())


def payload_distances(arm, robots):
    """
    Return how far true payloads are from the estimates, in deviations of mass and centre.

    The first half is of robots with an uncertainty, the second of the same without one.

    """
    distances, truth = ([], []), (1.2, np.array([0.05, -0.03, 0.1]))
    for seed in range(robots):
        rng = np.random.default_rng(seed)
        true, states = measured.changed(arm, rng), []
        # The robot is identified from a short motion; the payload then moves for longer.
        for robot, seconds in ((true, 16.0), (rbd_ros.with_payload(true, 'hand', *truth), 20.0)):
            t, q, v, a = measured.swing(arm, rng, seconds, 50.0)
            tau = measured.efforts(robot, q, v, a) + 0.5 * white(rng, v)
            states.append(samples_of(arm, q, v, a, tau, t))
        found = identification.fit(arm, identification.partial(arm, states[0], threads=1))
        doubtful = attach(found.model, Uncertainty(
            arm.velocity_names, found.base.names, covariance_factor(found),
            np.zeros((3, 1)), np.ones((3, 1)), np.zeros(3)))
        for model, one in zip((doubtful, found.model), distances):
            load = identification.fit_payload(model, identification.payload_partial(
                model, 'hand', states[1], threads=1))
            one.append(np.append((load.mass - truth[0]) / load.deviation[0],
                                 (load.com - truth[1]) / load.com_deviation))
    return np.array(distances)


@pytest.mark.parametrize('robots', covering([8, 24], 8))
def test_intervals_of_payloads_include_the_uncertainty_of_the_robot(arm, robots):
    within, certain = np.mean(np.abs(payload_distances(arm, robots)) < WIDTH, axis=1)
    # 90 % are meant; of 24, one standard deviation is 6 %.
    assert np.all(within >= 0.75) and 0.82 < np.mean(within) < 0.98
    assert np.mean(certain) < np.mean(within) - 0.1


def test_the_deviation_of_a_centre_of_mass_does_not_depend_on_the_origin(arm):
    rng = np.random.default_rng(8)
    t, q, v, a = measured.swing(arm, rng, 20.0, 50.0)
    tau = measured.efforts(rbd_ros.with_payload(arm, 'hand', 1.2, (0.05, -0.03, 0.1)), q, v, a)
    samples = samples_of(arm, q, v, a, tau + 0.5 * white(rng, v), t)
    hand, tool = (identification.fit_payload(arm, identification.payload_partial(
        arm, link, samples, threads=1)) for link in ('hand', 'tool'))
    # What torques do not determine is as uncertain as for a link, about either origin.
    assert np.allclose(hand.com, tool.com + [0.4, -0.3, 0.5], atol=1e-3)
    assert np.allclose(hand.com_deviation, tool.com_deviation, rtol=0.1)


def test_the_deviation_of_a_payload_fit_follows_from_that_of_the_torques(arm):
    known = identified(arm, arm, 3, 12.0, white)[0].uncertainty
    robot = attach(arm, replace(known, noise=0.0 * known.noise))
    q, v, a = np.random.default_rng(5).normal(size=(3, 4, arm.nv))
    Y = LoadParameters(robot, 'hand', True).regressor(States(q, v, a, np.sign(v)), 1)
    assert np.array_equal(Y[:, :, :10], batch.torque_regressor(arm, q, v, a)[:, :, -10:])
    assert np.allclose(np.sum(Y[:, :, 10:] ** 2, axis=2),
                       analysis.torque_deviation(robot, q, v, a) ** 2, rtol=1e-9)
