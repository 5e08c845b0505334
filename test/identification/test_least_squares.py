# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of robots that are found again from torques."""

import warnings

from covering import seeds
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification.parameters import robot_parameters
from rbd_ros.model import drive_parameters, inertial_parameters, with_friction
from rbd_ros.model.changes.drives import with_armature
from rbd_ros.model.changes.inertial import pseudo_inertia_of_parameters
from rbd_ros.model.joints import KINDS
from rbd_ros.model.positions.configurations import random_configuration
from robots import example_urdf, load_quietly, random_tree, relative_error

# Both sides are exact: rounding, a hundred times below on the worst tree.
EXACT = 1e-9
# Torques without noise, from a fit that takes them to have a noise of 1e-6.
RECOVERED = 1e-5
TREES = seeds(50, few=5)
RIGID = {'friction': (), 'rotors': False}
USUAL = ('viscous', 'coulomb', 'offset')
RUNS = 50
# Standard deviations within which 95 percent of normal numbers are.
NORMAL = 1.96


def random_robot(seed):
    """Return a random tree of all kinds of joints, with rotors."""
    model = random_tree(seed, 3 + seed % 4, kinds=list(KINDS))
    return with_armature(model, np.random.default_rng(seed).uniform(0.0, 0.2, model.nv))


def record(model, seed, samples, noise=0.0):
    """Return q, v, a and tau at random states."""
    rng = np.random.default_rng(seed)
    q = np.array([random_configuration(model, rng) for _ in range(samples)])
    v, a = rng.normal(size=(2, samples, model.nv))
    tau = np.array([expected_torques(model, *state) for state in zip(q, v, a)])
    return q, v, a, tau + noise * rng.normal(size=tau.shape)


def changed(model, seed, share=0.2):
    """Return the robot with other inertial parameters."""
    return measured.changed(model, np.random.default_rng(seed), share)


@pytest.fixture(scope='module')
def ur5():
    """Return an arm with six joints."""
    return load_quietly(example_urdf('ur5_robot.urdf'))


def expected_torques(model, q, v, a):
    """Return what motors bring up at one state."""
    return rbd_ros.inverse_dynamics(model, q, v, a) + rbd_ros.friction_torques(model, v)


@pytest.mark.parametrize('seed', TREES)
def test_torques_without_noise_give_back_the_base_parameters(seed):
    guess = random_robot(seed)
    true = changed(guess, seed)
    samples = record(true, seed, 10 + 20 * len(guess.links) // guess.nv)
    truth = inertial_parameters(true)
    for consistent in (False, True):
        found = rbd_ros.identify(guess, *samples, **RIGID, consistent=consistent)
        B = found.base.combination
        assert found.rank == len(B)
        assert relative_error(B @ found.pi, B @ truth) < RECOVERED
        assert np.max(found.residual) < RECOVERED * np.max(np.abs(samples[3]))
        # And at other states the torques are right as well.
        q, v, a, tau = record(true, 1000 + seed, 1)
        got = rbd_ros.torque_regressor(guess, q[0], v[0], a[0]) @ found.pi + guess.armature * a[0]
        assert relative_error(got, tau[0]) < RECOVERED


def test_friction_and_rotors_are_found_with_the_bodies(ur5):
    true = measured.with_drives(changed(ur5, 0), np.random.default_rng(0))
    found = identification.fit(ur5, identification.partial(ur5, measured.samples(true, 0)))
    model = found.model
    assert relative_error(drive_parameters(model), drive_parameters(true)) < RECOVERED
    for state in zip(*record(true, 1, 10)):
        assert relative_error(expected_torques(model, *state[:3]), state[3]) < RECOVERED
    # Those of bodies alone leave what friction does.
    rigid = rbd_ros.identify(ur5, *record(true, 2, 200), **RIGID)
    assert rigid.relative_error > 0.05
    # Friction and rotors that the model has right need not be found.
    known = with_armature(with_friction(
        ur5, damping=true.damping, friction=true.friction, effort_offset=true.effort_offset),
        true.armature)
    rigid = rbd_ros.identify(known, *record(true, 2, 200), **RIGID)
    assert rigid.relative_error < RECOVERED
    assert np.array_equal(rigid.model.friction, true.friction)


@pytest.mark.parametrize('seed', seeds(10, few=4))
def test_bodies_change_no_more_than_torques_demand(seed):
    guess = random_robot(seed)
    samples = record(changed(guess, seed), seed, 10 + 20 * len(guess.links) // guess.nv)
    found = rbd_ros.identify(guess, *samples, **RIGID)
    P, P0 = (np.linalg.inv(pseudo_inertia_of_parameters(pi.reshape(-1, 10)))
             for pi in (found.pi, inertial_parameters(guess)))
    # The divergence tr(P0^-1 P) - log det P has no slope along changes that torques do not show.
    _, _, Vt = np.linalg.svd(found.base.combination)
    for direction in Vt[found.rank:]:
        change = pseudo_inertia_of_parameters(direction.reshape(-1, 10))
        terms = np.concatenate([np.einsum('kab,kba->k', x, change) for x in (P0, -P)])
        assert abs(np.sum(terms)) < 1e-4 * np.linalg.norm(terms) + 1e-9


def test_correct_parameters_and_those_of_joints_at_rest_stay(ur5):
    rng = np.random.default_rng(0)
    guess = measured.with_drives(ur5, rng)
    some = measured.samples(guess, 0)
    for consistent in (False, True):
        found = identification.fit(guess, identification.partial(guess, some),
                                   consistent=consistent)
        assert relative_error(found.values, found.parameters.values) < RECOVERED
    # The wrist stands still.
    q, v, a = (x.copy() for x in (some.q, some.v, some.a))
    q[:, 5], v[:, 5], a[:, 5] = 0.3, 0.0, 0.0
    true = measured.with_drives(changed(guess, 1), rng)
    usable = np.tile(np.arange(6) < 5, (len(q), 1))
    tau = measured.efforts(true, q, v, a)
    tau[:, 5] = 1e6
    found = rbd_ros.identify(guess, q, v, a, tau, usable=usable)
    last = [k for k, name in enumerate(found.names) if name.startswith('wrist_3_joint.')]
    assert len(last) == 4
    assert np.allclose(found.values[last], found.parameters.values[last], rtol=1e-3)
    assert np.max(found.residual[:5]) < RECOVERED * np.max(np.abs(tau[:, :5]))


def test_stated_deviations_match_the_spread_of_repeated_experiments(ur5):
    noise = 0.2 * np.array([2.0, 1.0, 0.5, 0.2, 0.1, 0.05])
    q, v, a, tau = record(ur5, 0, 300)
    rng = np.random.default_rng(0)
    runs = [rbd_ros.identify(ur5, q, v, a, tau + noise * rng.normal(size=tau.shape), **RIGID,
                             consistent=False) for _ in range(30)]
    spread = np.std([run.base_values for run in runs], axis=0)
    stated = np.mean([run.base_deviation for run in runs], axis=0)
    # The deviation of a deviation from 30 runs is 13 percent, of one from 32 stretches as well.
    assert np.all(np.abs(np.log(spread / stated)) < np.log(2.0))
    # The jackknife states a little too much.
    assert 0.0 < np.mean(np.log(stated / spread)) < 0.15
    # What torques do not show is uncertain, but never varies.
    B = runs[0].base.combination
    hidden = np.flatnonzero(~np.any(B, axis=0))
    assert len(hidden)
    assert np.all(np.std([run.values for run in runs], axis=0)[hidden] < 1e-9)
    assert np.all(runs[0].deviation[hidden] > 1e-3)
    # Each joint's noise is found, however much the others have, but for what parameters took up.
    ratio = np.mean([run.residual for run in runs], axis=0) / noise
    assert np.all((ratio > 0.95) & (ratio < 1.01))


def test_weights_keep_a_bad_sensor_from_spoiling_the_others(ur5):
    noise = np.array([0.05, 0.05, 20.0, 0.05, 0.05, 0.05])
    q, v, a, tau = record(ur5, 0, 100)
    tau = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    B = identification.base_parameters(ur5).combination
    truth = inertial_parameters(ur5)
    Y = np.vstack([rbd_ros.torque_regressor(ur5, *state) for state in zip(q, v, a)])
    plain = np.linalg.lstsq(Y, tau.ravel() - Y @ truth, rcond=1e-8)[0]
    weighted = rbd_ros.identify(ur5, q, v, a, tau, **RIGID, consistent=False).pi - truth
    assert np.linalg.norm(B @ weighted) < 0.1 * np.linalg.norm(B @ plain)


def test_impossible_bodies_are_named_and_can_be_excluded(ur5):
    noise = np.linspace(1.0, 0.3, 6)
    q, v, a, tau = record(ur5, 1, 150)
    tau = tau + noise * np.random.default_rng(1).normal(size=tau.shape)
    free = rbd_ros.identify(ur5, q, v, a, tau, consistent=False)
    assert free.inconsistent
    assert free.inconsistent == rbd_ros.model.inconsistent_bodies(ur5, free.pi)
    drives = slice(10 * 6, None)
    assert np.min(free.values[drives]) < 0.0
    with pytest.raises(rbd_ros.ModelError):
        _ = free.model
    held = rbd_ros.identify(ur5, q, v, a, tau)
    assert held.inconsistent == ()
    least = np.linalg.eigvalsh(pseudo_inertia_of_parameters(held.pi.reshape(-1, 10)))[:, 0]
    assert np.all(least > 0.0)
    for label in ('damping', 'friction', 'armature'):
        assert np.min(getattr(held.model, label)) >= 0.0
    # The truth is among what is allowed: it explains the torques nearly as well, and is nearer.
    assert np.all(held.residual < 1.1 * noise)
    B, truth = held.base.combination, robot_parameters(ur5, USUAL, True).values
    assert np.linalg.norm(B @ (held.values - truth)) < np.linalg.norm(B @ (free.values - truth))
    assert relative_error(inertial_parameters(held.model), held.pi) < EXACT
    assert not [note for note in held.model.warnings if 'principal' in note]


def test_an_identified_robot_loads_from_its_urdf(ur5, tmp_path):
    # The last link of this robot is hardly denser than air.
    rng = np.random.default_rng(5)
    true = measured.with_drives(measured.changed(ur5, rng), rng)
    found = rbd_ros.identify(ur5, *(getattr(measured.samples(true, 5, 30.0, noise=0.03), name)
                                    for name in ('q', 'v', 'a', 'tau')))
    assert found.relative_error < 0.031
    path = tmp_path / 'robot.urdf'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)   # friction is not part of it
        rbd_ros.save_urdf(found.model, path)
    assert rbd_ros.load_urdf(path, strict=True).nv == 6


def test_friction_is_held_where_it_takes_energy(ur5):
    # Without friction in truth, noise makes half of the coefficients negative.
    columns = ('viscous', 'viscous_asymmetry', 'coulomb', 'coulomb_asymmetry', 'offset')
    some = measured.samples(ur5, 3, noise=0.1)
    part = identification.partial(ur5, some, friction=columns)
    free, held = (identification.fit(ur5, part, consistent=consistent)
                  for consistent in (False, True))
    coefficients = [found.values[60:].reshape(6, 6) for found in (free, held)]
    for damping, damping_asymmetry, friction, friction_asymmetry, _, rotor in coefficients[1]:
        assert damping > abs(damping_asymmetry)
        assert friction > abs(friction_asymmetry)
        assert rotor > 0.0
    damping, asymmetry = coefficients[0].T[:2]
    assert np.any(damping < np.abs(asymmetry))
    # An asymmetry that the model has bounds the friction that is found.
    known = with_friction(ur5, damping=np.full(6, 5.0), damping_asymmetry=np.full(6, 2.0))
    found = identification.fit(known, identification.partial(known, some))
    assert np.all(found.model.damping >= 2.0)


def test_consistent_and_unconstrained_estimates_agree_if_both_are_consistent(ur5):
    true = measured.with_drives(changed(ur5, 3, 0.02), np.random.default_rng(3))
    part = identification.partial(ur5, measured.samples(true, 3, 60.0, noise=1e-4))
    free, held = (identification.fit(ur5, part, consistent=consistent)
                  for consistent in (False, True))
    assert free.inconsistent == ()
    difference = (held.base_values - free.base_values) / free.base_deviation
    assert np.max(np.abs(difference)) < 1.0
    assert np.sqrt(np.mean(difference ** 2)) < 0.2


def test_mimics_are_found_with_their_leaders():
    model = load_quietly(example_urdf('panda.urdf'))
    true = rbd_ros.with_payload(model, 'panda_hand', 0.7, (0.02, 0.0, 0.05), 0.002 * np.eye(3))
    true = measured.with_drives(true, np.random.default_rng(2))
    q, v, a, tau = record(true, 2, 200, noise=0.01)
    found = rbd_ros.identify(model, q, v, a, tau)
    assert found.inconsistent == ()
    assert np.all(found.residual < 0.012)
    for state in zip(*record(true, 3, 10)):
        error = expected_torques(found.model, *state[:3]) - state[3]
        assert np.max(np.abs(error)) < 0.1


def test_wrong_samples_are_refused(ur5):
    q, v, a, tau = record(ur5, 7, 3)
    for samples, message in (((q[0], v, a, tau), 'q has the shape'),
                             ((q, v[:, :5], a, tau), 'v has the shape'),
                             ((q, v, a[:2], tau), r'a has the shape \(2, 6\), .* needs \(3, 6\)'),
                             ((q, v, a, np.full_like(tau, np.nan)), 'tau of state 0'),
                             ((q[:0], v[:0], a[:0], tau[:0]), 'no samples')):
        with pytest.raises(rbd_ros.StateError, match=message):
            rbd_ros.identify(ur5, *samples)
    for options, message in (({'usable': np.ones(3)}, 'usable must be truth values'),
                             ({'usable': np.ones((3, 5), bool)}, 'usable must be truth values'),
                             ({'time': np.zeros(3)}, 'time must increase'),
                             ({'time': np.zeros(2)}, 'time has the shape'),
                             ({'friction': ('sticky',)}, 'columns must be')):
        with pytest.raises(rbd_ros.StateError, match=message):
            rbd_ros.identify(ur5, q, v, a, tau, **options)
    block = rbd_ros.ModelBuilder('block').link('a', 1.0).build()
    with pytest.raises(rbd_ros.ModelError, match='block'):
        rbd_ros.identify(block, *np.zeros((4, 3, 0)))


# -- Errors that are correlated in time. ----------------------------------------------------------
def coverage(model, memory, consistent, seconds=20.0):
    """Return for each run, and each base parameter, how far the truth is away, in deviations."""
    distances = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        true = measured.with_drives(measured.changed(model, rng), rng)
        some = measured.samples(true, seed, seconds, noise=0.02, memory=memory, rate=25.0)
        found = identification.fit(model, identification.partial(model, some, threads=1),
                                   consistent=consistent)
        truth = found.base.combination @ robot_parameters(true, USUAL, True).values
        distances.append((found.base_values - truth) / found.base_deviation)
    return np.array(distances)


@pytest.mark.long
@pytest.mark.parametrize('name, memory, consistent', [
    ('ur5_robot.urdf', 5.0, False), ('ur3_robot.urdf', 2.0, True)])
def test_intervals_contain_the_true_parameters_with_the_stated_frequency(name, memory, consistent):
    distances = coverage(load_quietly(example_urdf(name)), memory, consistent)
    within = np.abs(distances) < NORMAL
    # 95 percent are meant.
    assert 0.92 < np.mean(within) < 0.99
    # And so for nearly every parameter by itself: of 50 runs 42 or more, 45 or more of most.
    assert np.mean(np.mean(within, axis=0) >= 0.9) > 0.8
    assert np.min(np.mean(within, axis=0)) > 0.75


def test_white_noise_counts_every_sample_and_coloured_noise_does_not():
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    for memory, low, high in ((0.0, 1.0, 2.0), (5.0, 5.0, 12.0)):
        # Of a memory of m samples, 2 m count as one.
        some = measured.samples(model, 0, 120.0, noise=0.02, memory=memory, rate=25.0)
        found = identification.fit(model, identification.partial(model, some))
        assert np.all((found.correlation >= low) & (found.correlation < high))
