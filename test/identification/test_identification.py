# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Base parameters, and parameters and loads that are found again from torques."""

from dataclasses import replace
import pathlib
import runpy

import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification.physical_consistency import nearest_consistent
from rbd_ros.model.configurations import random_configuration
from rbd_ros.model.inertial import pseudo_inertia_of_parameters
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import rebuild
from rbd_ros.textbook.sums_over_links import armature_matrix
from robots import example_urdf, load_quietly, random_tree, relative_error

# Both sides are exact: rounding, a hundred times below on the worst tree.
EXACT = 1e-9
# Torques without noise, from a fit that takes them to have a noise of 1e-6.
RECOVERED = 1e-6
TREES = 50
EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples' / 'identify_payload.py'


def random_robot(seed):
    """Return a random tree of all kinds of joints, with armature."""
    model = random_tree(seed, 3 + seed % 4, kinds=list(KINDS))
    rng = np.random.default_rng(seed)
    return rebuild(model, joints=[replace(joint, armature=tuple(rng.uniform(0.0, 0.2, joint.nv)))
                                  for joint in model.joints])


def record(model, seed, samples, noise=0.0):
    """Return q, v, a and tau at random states."""
    rng = np.random.default_rng(seed)
    q = np.array([random_configuration(model, rng) for _ in range(samples)])
    v, a = rng.normal(size=(2, samples, model.nv))
    tau = np.array([rbd_ros.inverse_dynamics(model, *state) for state in zip(q, v, a)])
    return q, v, a, tau + noise * rng.normal(size=tau.shape)


def changed(model, seed, share=0.2):
    """Return the robot with other inertial parameters that bodies can have."""
    rng = np.random.default_rng(seed)
    return rebuild(model, links=[
        replace(link, mass=link.mass * rng.uniform(1.0 - share, 1.0 + share),
                com=link.com + share * 0.02 * rng.normal(size=3),
                inertia=link.inertia * rng.uniform(1.0 - share, 1.0 + share))
        for link in model.links])


@pytest.fixture(scope='module')
def ur5():
    """Return an arm with six joints."""
    return load_quietly(example_urdf('ur5_robot.urdf'))


def panda_arm():
    """Return a Panda whose fingers are locked."""
    model = load_quietly(example_urdf('panda.urdf'))
    return rbd_ros.with_locked_joints(model, {'panda_finger_joint1': 0.02})


def check_base_parameters(model, base, seed):
    """Compare base parameters with the regressor at states they were not made from."""
    rng = np.random.default_rng(seed)
    states = 2 + 20 * len(model.links) // model.nv
    Y = np.vstack([rbd_ros.torque_regressor(model, random_configuration(model, rng),
                                            *rng.normal(size=(2, model.nv)))
                   for _ in range(states)])
    assert relative_error(Y[:, base.independent] @ base.combination, Y) < EXACT
    # They are as many as the rank, and so none of them can be left out.
    size = np.linalg.svd(Y, compute_uv=False)
    rank = len(base.independent)
    assert size[rank - 1] > 1e-7 * size[0]
    assert not size[rank:].size or size[rank] < 1e-12 * size[0]
    names = rbd_ros.model.inertial_parameter_names(model)
    assert base.names == tuple(names[k] for k in base.independent)
    assert np.array_equal(base.combination[:, base.independent], np.eye(rank))


@pytest.mark.parametrize('seed', range(TREES))
def test_base_parameters_carry_the_whole_regressor_of_trees_of_all_kinds(seed):
    model = random_robot(seed)
    check_base_parameters(model, identification.base_parameters(model), 100 + seed)


def test_base_parameters_of_real_arms_are_as_many_as_the_literature_says(ur5):
    # 36 for arms like the Puma and the UR5 (Gautier and Khalil's rules), 43 for the Panda
    # (Gaz et al. 2019).
    for model, count in ((ur5, 36), (panda_arm(), 43)):
        base = identification.base_parameters(model)
        assert len(base.names) == count
        check_base_parameters(model, base, 1)


def test_base_parameters_of_a_pendulum_are_its_inertia_and_its_moments():
    model = (rbd_ros.ModelBuilder('pendulum').link('a').link('b', 1.0)
             .joint('j', 'revolute', 'a', 'b', axis=(0, 0, 1)).build(gravity=(0, -9.81, 0)))
    base = identification.base_parameters(model)
    assert base.names == ('b/mcx', 'b/mcy', 'b/Izz')


@pytest.mark.parametrize('seed', range(TREES))
def test_torques_without_noise_give_back_the_base_parameters(seed):
    guess = random_robot(seed)
    true = changed(guess, seed)
    samples = record(true, seed, 10 + 20 * len(guess.links) // guess.nv)
    found = rbd_ros.identify(guess, *samples, tolerance=1e-8)
    base = identification.base_parameters(guess)
    assert found.rank == len(base.independent)
    B, truth = base.combination, rbd_ros.model.inertial_parameters(true)
    assert relative_error(B @ found.pi, B @ truth) < RECOVERED
    assert np.max(found.residual) < RECOVERED * np.max(np.abs(samples[3]))
    # What torques do not show is as it was: the change has no part along the null space of B.
    # Lengths count in tenths of a metre there.
    scale = np.tile(0.1 ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2]), len(truth) // 10)
    change = (found.pi - rbd_ros.model.inertial_parameters(guess)) / scale
    _, _, Vt = np.linalg.svd(B * scale)
    assert np.max(np.abs(Vt[len(B):] @ change), initial=0.0) < RECOVERED * np.max(np.abs(change))
    # And at other states the torques are right as well.
    q, v, a, tau = record(true, 1000 + seed, 1)
    got = (rbd_ros.torque_regressor(guess, q[0], v[0], a[0]) @ found.pi
           + armature_matrix(guess) @ a[0])
    assert relative_error(got, tau[0]) < 10 * RECOVERED


def test_deviations_are_those_of_repeated_experiments(ur5):
    noise = np.array([2.0, 1.0, 0.5, 0.2, 0.1, 0.05])
    q, v, a, tau = record(ur5, 0, 40)
    rng = np.random.default_rng(0)
    runs = [rbd_ros.identify(ur5, q, v, a, tau + noise * rng.normal(size=tau.shape))
            for _ in range(20)]
    spread = np.std([run.pi for run in runs], axis=0)
    expected = np.mean([run.deviation for run in runs], axis=0)
    known = expected > 1e-9
    assert np.count_nonzero(known) >= 36
    # The deviation of a deviation from 20 runs is 16 percent.
    assert np.all(np.abs(np.log(spread[known] / expected[known])) < np.log(1.7))
    assert abs(np.mean(np.log(spread[known] / expected[known]))) < 0.1
    # Each joint's noise is found, however much the others have; 5 percent too little where the
    # parameters took up more of it than their share.
    assert np.allclose(np.mean([run.residual for run in runs], axis=0), noise, rtol=0.1)


def test_weights_keep_a_bad_sensor_from_spoiling_the_others(ur5):
    noise = np.array([0.05, 0.05, 20.0, 0.05, 0.05, 0.05])
    q, v, a, tau = record(ur5, 0, 100)
    tau = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    B = identification.base_parameters(ur5).combination
    truth = rbd_ros.model.inertial_parameters(ur5)
    Y = np.vstack([rbd_ros.torque_regressor(ur5, *state) for state in zip(q, v, a)])
    plain = np.linalg.lstsq(Y, tau.ravel() - Y @ truth, rcond=1e-8)[0]
    weighted = rbd_ros.identify(ur5, q, v, a, tau).pi - truth
    assert np.linalg.norm(B @ weighted) < 0.1 * np.linalg.norm(B @ plain)


def test_bodies_that_cannot_exist_are_named_and_can_be_ruled_out(ur5):
    noise = np.linspace(1.0, 0.3, 6)
    q, v, a, tau = record(ur5, 1, 150)
    tau = tau + noise * np.random.default_rng(1).normal(size=tau.shape)
    free = rbd_ros.identify(ur5, q, v, a, tau)
    assert free.inconsistent
    assert free.inconsistent == rbd_ros.model.inconsistent_bodies(ur5, free.pi)
    held = rbd_ros.identify(ur5, q, v, a, tau, consistent=True)
    assert held.inconsistent == ()
    least = np.linalg.eigvalsh(pseudo_inertia_of_parameters(held.pi.reshape(-1, 10)))[:, 0]
    assert np.all(least > 0.0)
    # The truth is among what is allowed: it explains the torques nearly as well, and is nearer.
    assert np.all(held.residual < 1.1 * noise)
    B = identification.base_parameters(ur5).combination
    truth = rbd_ros.model.inertial_parameters(ur5)
    assert np.linalg.norm(B @ (held.pi - truth)) < np.linalg.norm(B @ (free.pi - truth))
    model = rbd_ros.model.with_inertial_parameters(ur5, held.pi)
    assert relative_error(rbd_ros.model.inertial_parameters(model), held.pi) < EXACT
    assert not [note for note in model.warnings if 'principal' in note]


def test_consistent_estimates_are_the_free_ones_where_those_are_consistent(ur5):
    true = changed(ur5, 3, 0.02)
    samples = record(true, 3, 100, noise=0.01)
    free = rbd_ros.identify(ur5, *samples)
    assert free.inconsistent == ()
    held = rbd_ros.identify(ur5, *samples, consistent=True)
    assert relative_error(held.pi, free.pi) < RECOVERED


def test_least_squares_over_bodies_is_no_worse_than_the_truth_with_mimics():
    model = load_quietly(example_urdf('panda.urdf'))
    true = rbd_ros.with_payload(model, 'panda_hand', 0.7, (0.02, 0.0, 0.05), 0.002 * np.eye(3))
    q, v, a, tau = record(true, 2, 100, noise=0.05)
    found = rbd_ros.identify(model, q, v, a, tau, consistent=True)
    assert found.inconsistent == ()
    assert np.all(found.residual < 0.06)


@pytest.mark.parametrize('seed', range(10))
def test_nearest_bodies_that_can_exist_cannot_be_bettered(seed):
    rng = np.random.default_rng(seed)
    A, target = rng.normal(size=(40, 20)), rng.normal(size=40)
    scale = np.ones(10)
    pi = nearest_consistent(np.zeros(20), A, target, scale)
    P = pseudo_inertia_of_parameters(pi.reshape(-1, 10))
    assert np.all(np.linalg.eigvalsh(P) > 0.0)
    # Kuhn and Tucker: the gradient is that of tr(Z P) with a semidefinite Z, and Z P = 0.
    gradient = (A.T @ (A @ pi - target)).reshape(-1, 10)
    for g, P_k in zip(gradient, P):
        Z = np.zeros((4, 4))
        rows, columns = np.tril_indices(4)
        basis = pseudo_inertia_of_parameters(np.eye(10))[:, rows, columns]
        Z[rows, columns] = np.linalg.solve(np.where(rows == columns, 1.0, 2.0) * basis, g)
        Z = Z + np.tril(Z, -1).T
        assert np.min(np.linalg.eigvalsh(Z)) > -1e-6
        assert np.max(np.abs(Z @ P_k)) < 1e-5


LOAD = (0.8, np.array([0.03, -0.02, 0.08]),
        np.array([[0.004, 0.0005, 0.0], [0.0005, 0.0035, -0.0004], [0.0, -0.0004, 0.003]]))


@pytest.mark.parametrize('name, link', [('ur5_robot.urdf', 'tool0'), ('panda.urdf', 'panda_hand'),
                                        ('talos_reduced.urdf', 'gripper_left_base_link')])
def test_a_load_is_found_again(name, link):
    model = load_quietly(example_urdf(name))
    loaded = rbd_ros.with_payload(model, link, *LOAD)
    q, v, a, tau = record(loaded, 4, 20)
    load = identification.identify_payload(model, link, q, v, a, tau)
    assert load.rank == 10
    for got, true in zip(load, LOAD):
        assert relative_error(got, true) < RECOVERED
    again = rbd_ros.with_payload(model, link, *load[:3])
    assert relative_error(rbd_ros.model.inertial_parameters(again),
                          rbd_ros.model.inertial_parameters(loaded)) < RECOVERED


def test_a_load_on_a_robot_that_stands_still_shows_its_mass_and_its_centre(ur5):
    loaded = rbd_ros.with_payload(ur5, 'tool0', *LOAD)
    q, still, _, _ = record(loaded, 5, 20)
    still = np.zeros_like(still)
    tau = np.array([rbd_ros.gravity_torques(loaded, one) for one in q])
    load = identification.identify_payload(ur5, 'tool0', q, still, still, tau)
    assert load.rank == 4
    assert abs(load.mass - LOAD[0]) < RECOVERED
    assert relative_error(load.com, LOAD[1]) < RECOVERED
    # An inertia that bodies can have, though nothing was seen of it.
    rbd_ros.with_payload(ur5, 'tool0', *load[:3])


def test_where_there_is_no_load_none_is_found(ur5):
    load = identification.identify_payload(ur5, 'tool0', *record(ur5, 6, 20))
    assert load.mass < RECOVERED


def test_the_example_finds_its_load():
    example = runpy.run_path(str(EXAMPLE))
    load = example['main']()
    assert load.rank == 10
    # Six deviations of noise, and what noisy velocities and accelerations add to them.
    assert abs(load.mass - example['MASS']) < 6 * load.deviation[0]
    assert abs(load.mass - example['MASS']) < 0.01 * example['MASS']
    assert np.max(np.abs(load.com - example['COM'])) < 1e-3
    assert np.max(np.abs(load.inertia - example['INERTIA'])) < 2e-3


def test_wrong_samples_are_refused(ur5):
    q, v, a, tau = record(ur5, 7, 3)
    for samples, message in (((q[0], v, a, tau), 'q has the shape'),
                             ((q, v[:, :5], a, tau), 'v has the shape'),
                             ((q, v, a[:2], tau), r'a has the shape \(2, 6\), .* needs \(3, 6\)'),
                             ((q, v, a, np.full_like(tau, np.nan)), 'tau of state 0 holds')):
        with pytest.raises(rbd_ros.StateError, match=message):
            rbd_ros.identify(ur5, *samples)
    for link in ('nowhere', ur5.link_names[0]):
        with pytest.raises(rbd_ros.ModelError, match=link):
            identification.identify_payload(ur5, link, q, v, a, tau)
    block = rbd_ros.ModelBuilder('block').link('a', 1.0).build()
    with pytest.raises(rbd_ros.ModelError, match='block'):
        rbd_ros.identify(block, *np.zeros((4, 3, 0)))
