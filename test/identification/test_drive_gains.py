# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Gains of drives that are found from what a known load adds."""

from dataclasses import replace

import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from robots import example_urdf, load_quietly, relative_error

LOAD = (3.0, np.array([0.02, 0.0, 0.1]), 0.01 * np.eye(3))
GAINS = np.array([1.5, 0.7, 2.0, 10.0, -1.2, 3.0])
# Columns of all sizes, and nothing believed beforehand.
RECOVERED = 1e-4


@pytest.fixture(scope='module')
def robots():
    """Return what the URDF says of an arm, the arm, and the arm with the load."""
    urdf, rng = load_quietly(example_urdf('ur5_robot.urdf')), np.random.default_rng(0)
    true = measured.with_drives(measured.changed(urdf, rng), rng)
    return urdf, true, rbd_ros.with_payload(true, 'tool0', *LOAD)


def currents(model, seed, **options):
    """Return samples whose efforts are what makes torques when multiplied by the gains."""
    some = measured.samples(model, seed, 30.0, speed=3.0, **options)
    return replace(some, tau=some.tau / GAINS)


def test_gains_are_found_with_and_without_noise(robots):
    urdf, true, loaded = robots
    found = identification.identify_drive_gains(urdf, 'tool0', *LOAD, currents(true, 0),
                                                currents(loaded, 1))
    assert relative_error(found.gains / GAINS, np.ones(6)) < RECOVERED
    distances = []
    for seed in range(5):
        found = identification.identify_drive_gains(
            urdf, 'tool0', *LOAD, currents(true, seed, noise=0.02, memory=3.0),
            [currents(loaded, 100 + seed, noise=0.02, memory=3.0)])
        distances.append((found.gains - GAINS) / found.deviation)
        assert np.all(found.deviation < 0.1 * np.abs(GAINS))
    # 95 percent are meant, of 30.
    assert np.sum(np.abs(distances) < 2.0) >= 27
    assert np.max(np.abs(distances)) < 5.0


def test_a_payload_that_a_joint_does_not_feel_determines_no_gain_of_it(robots):
    urdf, true, _ = robots
    # A point on the axis of the last joint: its weight turns the others.
    loaded = rbd_ros.with_payload(true, 'tool0', 3.0)
    found = identification.identify_drive_gains(
        urdf, 'tool0', 3.0, np.zeros(3), np.zeros(3), currents(true, 0, noise=0.01),
        currents(loaded, 1, noise=0.01))
    assert np.isinf(found.deviation[5])
    assert np.all(found.deviation[1:5] < 0.1 * np.abs(GAINS[1:5]))


def test_known_friction_is_not_identified_again(robots):
    urdf, true, loaded = robots
    known = rbd_ros.model.with_friction(urdf, damping=true.damping, friction=true.friction,
                                        effort_offset=true.effort_offset)
    known = rbd_ros.with_armature(known, true.armature)
    found = identification.identify_drive_gains(known, 'tool0', *LOAD, currents(true, 0),
                                                currents(loaded, 1), friction=(), rotors=False)
    assert relative_error(found.gains / GAINS, np.ones(6)) < RECOVERED


def test_one_kind_of_recordings_is_not_enough(robots):
    urdf, true, _ = robots
    for some, said in (([], 'unloaded'), (currents(true, 0), ' loaded')):
        with pytest.raises(rbd_ros.StateError, match=said.strip() + ' holds no recordings'):
            identification.identify_drive_gains(urdf, 'tool0', *LOAD, some, [])
