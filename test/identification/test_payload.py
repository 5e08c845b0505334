# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Loads that are found again from torques."""

import pathlib
import runpy

import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.model import inertial_parameters
from robots import example_urdf, load_quietly, relative_error

# Torques without noise, from a fit that takes them to have a noise of 1e-6.
RECOVERED = 1e-5
EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples' / '08_identify_payload.py'
LOAD = (0.8, np.array([0.03, -0.02, 0.08]),
        np.array([[0.004, 0.0005, 0.0], [0.0005, 0.0035, -0.0004], [0.0, -0.0004, 0.003]]))


def arm(name='ur5_robot.urdf'):
    """Return an arm with friction and rotors."""
    return measured.with_drives(load_quietly(example_urdf(name)), np.random.default_rng(0))


@pytest.mark.parametrize('name, link', [('ur5_robot.urdf', 'tool0'), ('panda.urdf', 'panda_hand'),
                                        ('talos_reduced.urdf', 'gripper_left_base_link')])
def test_an_added_payload_is_identified(name, link):
    model = arm(name)
    loaded = rbd_ros.with_payload(model, link, *LOAD)
    some = measured.samples(loaded, 4, 3.0)
    load = identification.fit_payload(model, identification.payload_partial(model, link, some))
    assert load.rank == 10
    for got, true in zip(load, LOAD):
        assert relative_error(got, true) < RECOVERED
    again = rbd_ros.with_payload(model, link, *load[:3])
    assert relative_error(inertial_parameters(again), inertial_parameters(loaded)) < RECOVERED
    same = identification.identify_payload(model, link, some.q, some.v, some.a, some.tau,
                                           time=some.time)
    assert relative_error(same.com, load.com) < RECOVERED


def test_the_residual_of_a_payload_fit_is_that_of_the_loaded_robot():
    model = arm()
    some = measured.samples(rbd_ros.with_payload(model, 'tool0', *LOAD), 4, 3.0, noise=0.05)
    load = identification.fit_payload(model, identification.payload_partial(model, 'tool0', some))
    found = rbd_ros.with_payload(model, 'tool0', *load[:3])
    left = some.tau - measured.efforts(found, some.q, some.v, some.a)
    expected = [np.sqrt(np.mean(left[use, k] ** 2)) for k, use in enumerate(some.usable.T)]
    assert relative_error(load.residual, expected) < RECOVERED


def test_two_recordings_identify_a_payload_better_than_one():
    model = arm()
    loaded = rbd_ros.with_payload(model, 'tool0', *LOAD)
    parts = [identification.payload_partial(model, 'tool0', measured.samples(
        loaded, seed, 10.0, noise=0.02, memory=3.0)) for seed in range(4)]
    one, all_four = (identification.fit_payload(model, part)
                     for part in (parts[0], identification.merge(*parts)))
    assert 1.5 < one.deviation[0] / all_four.deviation[0] < 3.0
    assert abs(all_four.mass - LOAD[0]) < 3.0 * all_four.deviation[0]
    first_moment = all_four.mass * all_four.com - LOAD[0] * LOAD[1]
    assert np.all(np.abs(first_moment) < 3.5 * all_four.deviation[1:4])


def test_a_payload_at_rest_determines_mass_and_centre_of_mass():
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    loaded = rbd_ros.with_payload(model, 'tool0', *LOAD)
    q = measured.samples(loaded, 5, 4.0).q
    still = np.zeros_like(q)
    tau = np.array([rbd_ros.gravity_torques(loaded, one) for one in q])
    load = identification.identify_payload(model, 'tool0', q, still, still, tau)
    assert load.rank == 4
    assert abs(load.mass - LOAD[0]) < RECOVERED
    assert relative_error(load.com, LOAD[1]) < RECOVERED
    # An inertia that bodies can have, though nothing was seen of it.
    rbd_ros.with_payload(model, 'tool0', *load[:3])


def test_the_example_identifies_its_payload():
    example = runpy.run_path(str(EXAMPLE))
    load = example['main']()
    assert load.rank == 10
    # Six deviations of noise, and what noisy velocities and accelerations add to them.
    assert abs(load.mass - example['MASS']) < 6 * load.deviation[0]
    assert abs(load.mass - example['MASS']) < 0.01 * example['MASS']
    assert np.max(np.abs(load.com - example['COM'])) < 1e-3
    assert np.max(np.abs(load.inertia - example['INERTIA'])) < 2e-3
