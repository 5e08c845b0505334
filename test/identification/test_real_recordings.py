# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Recordings of real robots, which are not part of this package.

RBD_ROS_DATA names a folder with them: `ur10_bags/ur10_exciting_trajectory.db3` from
unisa-acg/inverse-dynamics-solver (commit 41e196de, BSD-3-Clause), and `panda_gaz/` from
marcocognetti/FrankaEmikaPandaDynModel (commit 24d85ce4, GPL-3.0).

"""

import os
from pathlib import Path

import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import prepare, read_recording, Recording, write_recording
from robots import example_urdf, load_quietly

DATA = Path(os.environ.get('RBD_ROS_DATA', 'data'))
UR10 = DATA / 'ur10_bags' / 'ur10_exciting_trajectory.db3'
PANDA = DATA / 'panda_gaz'

pytestmark = pytest.mark.skipif(
    not (UR10.exists() and PANDA.exists()),
    reason='recordings of real robots are not there: RBD_ROS_DATA must name their folder')


def ur10():
    """Return a UR10 and its recording."""
    return load_quietly(example_urdf('ur10_robot.urdf')), read_recording(UR10)


def panda():
    """Return a Panda, its fingers locked, and its recording."""
    arm = load_quietly(example_urdf('panda.urdf'))
    arm = rbd_ros.with_locked_joints(arm, {name: 0.0 for name in arm.velocity_names
                                           if 'finger' in name})
    time, *numbers = [np.loadtxt(PANDA / f'exciting_traj_{name}.txt')
                      for name in ('time', 'positions', 'velocity', 'torques')]
    return arm, Recording('panda', [f'panda_joint{k}' for k in range(1, 8)], time,
                          *[x.reshape(-1, 7) for x in numbers])


def test_bag_of_the_ur10_is_read():
    robot, recording = ur10()
    assert recording.joint_names == robot.velocity_names and recording.notes == ()
    assert recording.position.shape == (3441, 6)
    assert np.allclose(np.diff(recording.time), 0.008, rtol=0.0, atol=2e-9)
    # Three of its numbers, as sqlite3 and struct find them in its bytes.
    assert recording.position[0, 0] == 0.6197782590517766
    assert recording.velocity[-1, 5] == -0.03530929979130404
    assert recording.effort[1000, 1] == 61.01549353564337


@pytest.mark.parametrize('robot', [ur10, panda])
def test_samples_agree_with_the_velocities_that_were_measured(robot):
    model, recording = robot()
    samples = prepare(model, recording)
    bare = prepare(model, Recording('bare', recording.joint_names, recording.time,
                                    recording.position, None, recording.effort),
                   cutoff=samples.cutoff)
    inner = np.any(samples.usable, axis=1)
    for x, y, tolerance in ((samples.v, bare.v, 0.01), (samples.a, bare.a, 0.05)):
        assert np.std((x - y)[inner]) < tolerance * np.std(x[inner])


@pytest.mark.parametrize('robot', [ur10, panda])
def test_cutoffs_pass_the_motion_and_delays_are_found_again(robot):
    model, recording = robot()
    samples = prepare(model, recording)
    # Their motions have components up to about 1 Hz, which their authors chose.
    assert 1.5 < samples.cutoff < 10.0
    assert abs(samples.delay) < 3.0 * samples.delay_deviation < 0.03
    assert np.all(np.mean(samples.usable, axis=0) > 0.7)
    assert not np.any(samples.saturated)
    late = np.stack([np.interp(recording.time - 0.05, recording.time, x)
                     for x in recording.effort.T], axis=1)
    shifted = prepare(model, Recording('late', recording.joint_names, recording.time,
                                       recording.position, recording.velocity, late))
    assert abs(shifted.delay - samples.delay - 0.05) < 0.002
    assert shifted.delay_removed == shifted.delay


@pytest.mark.parametrize('robot', [ur10, panda])
@pytest.mark.parametrize('part', [(0.0, 0.5), (0.5, 1.0), (0.7, 1.0)])
def test_what_a_description_lacks_is_not_taken_for_a_delay(robot, part):
    # Parts alone look as if efforts were up to 16 ms early or late, but explain hardly more so.
    model, recording = robot()
    start, stop = np.multiply(part, recording.time[-1] - recording.time[0])
    samples = prepare(model, recording.part(start=start, stop=stop))
    assert samples.delay != 0.0 and samples.delay_removed == 0.0


def test_tables_say_the_same_as_the_bag(tmp_path):
    _, recording = ur10()
    for name in ('ur10.csv', 'ur10.parquet'):
        write_recording(tmp_path / name, recording)
        again = read_recording(tmp_path / name)
        for label in ('time', 'position', 'velocity', 'effort'):
            assert np.array_equal(getattr(again, label), getattr(recording, label))
