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

import numpy as np
import pytest
from rbd_ros import identification
from rbd_ros.identification import prepare

TRUST = runpy.run_path(str(Path(__file__).parents[2] / 'benchmark' / 'trust.py'))
DATA = Path(os.environ.get('RBD_ROS_DATA', 'data'))

pytestmark = pytest.mark.skipif(
    not (DATA / 'ur10_bags').exists() or not (DATA / 'panda_gaz').exists(),
    reason='recordings of real robots are not there: RBD_ROS_DATA must name their folder')


def test_ur10_is_known_on_the_half_that_was_held_out():
    free, consistent = TRUST['evaluate'](*TRUST['ur10'](DATA), 0.5)
    # What a plain weighted least squares reaches on this recording, N m.
    assert np.all(free.held_out.rms <= [3.6, 3.1, 1.9, 0.6, 0.7, 1.9])
    assert np.all(consistent.held_out.rms <= [4.0, 3.4, 2.1, 0.7, 0.8, 2.1])
    assert np.all(free.urdf.rms > [15.0, 15.0, 10.0, 3.0, 3.0, 4.0])
    assert free.believable and consistent.believable


def test_panda_is_known_on_the_part_that_was_held_out():
    free, consistent = TRUST['evaluate'](*TRUST['panda'](DATA), 0.7)
    assert free.held_out.relative <= 0.014
    assert consistent.held_out.relative <= 0.016
    assert free.urdf.relative > 0.15
    assert free.believable and consistent.believable


@pytest.mark.parametrize('name', list(TRUST['CASES']))
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
