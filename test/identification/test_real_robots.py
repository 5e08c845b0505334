# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Parameters of real robots, judged by recordings that were held out.

RBD_ROS_DATA names a folder with the recordings, see `benchmark/trust.py`; they are not part of
this package.

"""

from dataclasses import replace
import os
from pathlib import Path
import runpy

from covering import covering
import numpy as np
import pytest
from rbd_ros import identification
from rbd_ros.identification import prepare

TRUST = runpy.run_path(str(Path(__file__).parents[2] / 'benchmark' / 'trust.py'))
# Those of the recordings with which tests are run.
ROBOTS = 'UR10', 'Panda'
DATA = Path(os.environ.get('RBD_ROS_DATA', 'data'))

needs_data = pytest.mark.skipif(
    not (DATA / 'ur10_bags').exists() or not (DATA / 'panda_gaz').exists(),
    reason='recordings of real robots are not there: RBD_ROS_DATA must name their folder')


def test_the_error_of_a_mean_allows_for_errors_that_last():
    # A first-order process that forgets within 0.1 s, 400 s of it.
    rng, step, share = np.random.default_rng(3), 0.01, np.exp(-0.1)
    x = np.zeros(40_000)
    for k in range(1, len(x)):
        x[k] = share * x[k - 1] + rng.normal()
    time = step * np.arange(len(x))
    mean, error = TRUST['mean_and_error'](time, x + 5.0)
    # The long-run variance of that process, 1 / (1 - share)^2, over the number of samples; and
    # one in 20 from 400 stretches of a second.
    expected = 1.0 / (1.0 - share) / np.sqrt(len(x))
    assert abs(error / expected - 1.0) < 0.15
    assert abs(mean - 5.0) < 3.0 * expected


@needs_data
def test_the_identified_ur10_predicts_the_held_out_half():
    free, consistent = TRUST['evaluate'](*TRUST['ur10'](DATA), 0.5)
    # What a plain weighted least squares reaches on this recording, N m.
    assert np.all(free.held_out.rms <= [3.6, 3.1, 1.9, 0.6, 0.7, 1.9])
    assert np.all(consistent.held_out.rms <= [4.0, 3.4, 2.1, 0.7, 0.8, 2.1])
    assert np.all(free.urdf.rms > [15.0, 15.0, 10.0, 3.0, 3.0, 4.0])
    assert free.believable and consistent.believable


@pytest.mark.long
@needs_data
def test_the_identified_panda_predicts_the_held_out_part():
    free, consistent = TRUST['evaluate'](*TRUST['panda'](DATA), 0.7)
    assert free.held_out.relative <= 0.014
    assert consistent.held_out.relative <= 0.016
    assert free.urdf.relative > 0.15
    assert free.believable and consistent.believable


@needs_data
@pytest.mark.parametrize('name, parts', covering(
    [('UR10', 4), ('UR10', 6), ('Panda', 6)], ('UR10', 4)))
def test_intervals_of_90_percent_hold_torques_that_were_held_out(name, parts, monkeypatch):
    monkeypatch.setitem(TRUST['coverage'].__globals__, 'HELD_OUT', parts)
    within = TRUST['coverage'](*TRUST['CASES'][name][0](DATA))
    assert np.all((within >= 0.85) & (within <= 0.95))


@needs_data
@pytest.mark.parametrize('name', covering(ROBOTS, 'UR10'))
def test_contacts_are_detected_at_pushes_only(name):
    source, share = TRUST['CASES'][name]
    found = TRUST['contacts'](*source(DATA), share)
    assert np.all(found.largest < 1.0)
    assert found.noticed == found.pushes > 10


@pytest.mark.long
@needs_data
@pytest.mark.parametrize('name', ROBOTS)
def test_identified_real_robots_have_zero_mean_external_torque(name):
    source, share = TRUST['CASES'][name]
    model, recording = source(DATA)
    urdf, found = TRUST['residuals'](model, recording, share)
    assert np.all(np.abs(found.mean) < 3.0 * found.error)
    assert np.all(np.abs(found.mean) < 0.05 * found.torque)
    assert found.is_zero.all() and not urdf.is_zero.all()
    # A constant push on each joint of a tenth of its torques would be noticed.
    pushed = replace(recording, effort=recording.effort - 0.1 * found.torque)
    held = pushed.part(start=share * (pushed.time[-1] - pushed.time[0])).for_robot(model)
    used = prepare(model, recording.part(stop=share * (pushed.time[-1] - pushed.time[0])))
    robot = identification.fit(model, identification.partial(model, used)).model
    seen = TRUST['observe'](robot, held, used.threshold)
    assert not seen.is_zero.any()
    assert np.all(np.abs(seen.mean - found.mean - 0.1 * found.torque) < 0.02 * found.torque)


@pytest.mark.long
@needs_data
@pytest.mark.parametrize('name', ROBOTS)
def test_mistakes_with_real_recordings_are_named(name):
    source, _ = TRUST['CASES'][name]
    model, recording = source(DATA)
    first, third = model.velocity_names[0], model.velocity_names[2]
    flipped, order, late = np.ones(model.nv), np.arange(model.nv), 1.0
    flipped[2], order[[0, 2]] = -1.0, (2, 0)
    k = int(late / np.mean(np.diff(recording.time)))
    changes = {
        'wrong sign': {'effort': -recording.effort},
        f'the efforts of {third} have the wrong sign': {'effort': flipped * recording.effort},
        'degrees': {'position': np.degrees(recording.position),
                    'velocity': np.degrees(recording.velocity)},
        f"'{first}' and '{third}' seem to be exchanged": {
            label: getattr(recording, label)[:, order]
            for label in ('position', 'velocity', 'effort')},
        's later than positions': {
            'time': recording.time[k:], 'position': recording.position[k:],
            'velocity': recording.velocity[k:], 'effort': recording.effort[:-k]}}
    for said, change in changes.items():
        samples = prepare(model, replace(recording, **change))
        part = identification.partial(model, samples)
        found = identification.verdict(model, part, identification.fit(model, part), samples)
        assert not found.believable
        assert len(found.reasons) == 1, found.reasons
        assert said in found.reasons[0]
