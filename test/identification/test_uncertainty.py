# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Deviations of estimates with errors correlated in time: how often the truth is within them."""

import measured
import numpy as np
import pytest
from rbd_ros import identification
from rbd_ros.identification.parameters import robot_parameters
from robots import example_urdf, load_quietly

USUAL = ('viscous', 'coulomb', 'offset')
RUNS = 50
# Standard deviations within which 95 percent of normal numbers are.
NORMAL = 1.96


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
def test_intervals_hold_the_truth_as_often_as_they_say(name, memory, consistent):
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
