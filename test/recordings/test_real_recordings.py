# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Recordings of real robots, which are not part of this package.

RBD_ROS_DATA names a folder with them: `ur10_bags/ur10_exciting_trajectory.db3` from
unisa-acg/inverse-dynamics-solver (commit 41e196de, BSD-3-Clause), and `panda_gaz/` from
marcocognetti/FrankaEmikaPandaDynModel (commit 24d85ce4, GPL-3.0).

"""

from functools import cache
import os
from pathlib import Path
import warnings

from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros.cli.main import main
from rbd_ros.control import ContactDetector
from rbd_ros.identification import (fit, partial, prepare, read_recording, Recording,
                                    write_recording)
from rbd_ros.model import save_drives
from rbd_ros.recordings.tables import read_table
from robots import example_urdf, load_quietly

DATA = Path(os.environ.get('RBD_ROS_DATA', 'data'))
UR10 = DATA / 'ur10_bags' / 'ur10_exciting_trajectory.db3'
PANDA = DATA / 'panda_gaz'

# rad/s, below which the observer takes dry friction as less than its full size.
DEAD_BAND = 0.02

pytestmark = pytest.mark.skipif(
    not (UR10.exists() and PANDA.exists()),
    reason='recordings of real robots are not there: RBD_ROS_DATA must name their folder')


@cache
def ur10():
    """Return a UR10 and its recording."""
    return load_quietly(example_urdf('ur10_robot.urdf')), read_recording(UR10)


@cache
def panda():
    """Return a Panda, its fingers locked, and its recording."""
    arm = load_quietly(example_urdf('panda.urdf'))
    arm = rbd_ros.with_locked_joints(arm, {name: 0.0 for name in arm.velocity_names
                                           if 'finger' in name})
    time, *numbers = [np.loadtxt(PANDA / f'exciting_traj_{name}.txt')
                      for name in ('time', 'positions', 'velocity', 'torques')]
    return arm, Recording('panda', [f'panda_joint{k}' for k in range(1, 8)], time,
                          *[x.reshape(-1, 7) for x in numbers])


@cache
def sampled(robot):
    """Return a robot, its recording and the samples of that."""
    return *robot(), prepare(*robot())


both_robots = pytest.mark.parametrize('robot', [ur10, panda])


def test_bag_of_the_ur10_is_read():
    robot, recording = ur10()
    assert recording.joint_names == robot.velocity_names and recording.notes == ()
    assert recording.position.shape == (3441, 6)
    assert np.allclose(np.diff(recording.time), 0.008, rtol=0.0, atol=2e-9)
    # Three of its numbers, as sqlite3 and struct find them in its bytes.
    assert recording.position[0, 0] == 0.6197782590517766
    assert recording.velocity[-1, 5] == -0.03530929979130404
    assert recording.effort[1000, 1] == 61.01549353564337


@both_robots
def test_samples_agree_with_the_velocities_that_were_measured(robot):
    model, recording, samples = sampled(robot)
    bare = prepare(model, Recording('bare', recording.joint_names, recording.time,
                                    recording.position, None, recording.effort),
                   cutoff=samples.cutoff)
    inner = np.any(samples.usable, axis=1)
    for x, y, tolerance in ((samples.v, bare.v, 0.01), (samples.a, bare.a, 0.05)):
        assert np.std((x - y)[inner]) < tolerance * np.std(x[inner])


@both_robots
def test_cutoffs_pass_the_motion_and_delays_are_found_again(robot):
    model, recording, samples = sampled(robot)
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


@both_robots
@pytest.mark.parametrize('part', [(0.0, 0.5), (0.5, 1.0), (0.7, 1.0)])
def test_missing_friction_or_payload_is_not_mistaken_for_a_delay(robot, part):
    # Parts alone look as if efforts were up to 16 ms early or late, but explain hardly more so.
    model, recording = robot()
    start, stop = np.multiply(part, recording.time[-1] - recording.time[0])
    samples = prepare(model, recording.part(start=start, stop=stop))
    assert samples.delay != 0.0 and samples.delay_removed == 0.0


@pytest.fixture(scope='module')
def replayed(tmp_path_factory):
    """Return a function that identifies a robot on a first part, and replays the recording."""
    @cache
    def replay(robot, middle):
        folder = tmp_path_factory.mktemp('replayed')
        model, recording = robot()
        write_recording(folder / 'all.csv', recording)
        used = prepare(model, recording.part(stop=middle))
        found = fit(model, partial(model, used)).model
        with warnings.catch_warnings():
            # What URDF cannot say is in the second file.
            warnings.simplefilter('ignore', rbd_ros.ModelWarning)
            rbd_ros.save_urdf(found, folder / 'robot.urdf')
        save_drives(found, folder / 'drives.yaml')
        assert main(['replay', str(folder / 'robot.urdf'), str(folder / 'all.csv'), '--params',
                     str(folder / 'drives.yaml'), '-o', str(folder / 'out.csv')]) == 0
        names, data = read_table(folder / 'out.csv')
        time = data[:, 0] - data[0, 0]
        inner = (time > 0.5) & (time < time[-1] - 0.5)
        table = dict(zip(names, data[inner].T))
        return (found, time[inner], used.threshold, *(
            np.stack([table[f'{joint}/{label}'] for joint in found.velocity_names], axis=1)
            for label in ('velocity', 'effort', 'model_effort', 'external_effort')))
    return replay


@pytest.mark.parametrize('robot, middle, joints', covering(
    [(ur10, 13.7, 5), (panda, 14.4, 7)], (ur10, 13.7, 5)))
def test_a_replay_without_contact_finds_no_external_torque(replayed, robot, middle, joints):
    # As doc/how_to/external_efforts.md promises, of the part that was not used for the fit.
    _, time, threshold, v, tau, _, external = replayed(robot, middle)
    new = time > middle
    for k in range(joints):
        moves = new & (np.abs(v[:, k]) > threshold[k])
        r, second = external[moves, k], time[moves].astype(int)
        sums, counts = (np.bincount(second - second[0], x) for x in (r, np.ones(len(r))))
        error = np.sqrt(np.sum((sums - np.mean(r) * counts) ** 2)) / len(r)
        # Six seconds say little about their own scatter.
        assert abs(np.mean(r)) < max(3.0 * error, 0.01 * np.sqrt(np.mean(tau[:, k] ** 2)))
        assert abs(np.mean(r)) < 0.05 * np.sqrt(np.mean(tau[:, k] ** 2))


def test_joints_of_the_ur10_at_rest_have_no_external_torque(replayed):
    found, time, _, v, tau, model, external = replayed(ur10, 13.7)
    new = time > 13.7
    # The last joint bears up to 9 N m where it waits, which its friction alone may.
    for k in range(5):
        stands = new & (np.abs(v[:, k]) < DEAD_BAND)
        assert np.sum(stands) > 20
        # With full friction of either sign, up to 0.47 and 0.41 of it are left.
        for x, most in ((tau - model, 0.35), (external, 0.3)):
            assert np.sqrt(np.mean(x[stands, k] ** 2)) < most * found.friction[k]
    # Thresholds of contact, as the node learns them, on the part in which joints wait.
    detector = ContactDetector(found, calibration_time=13.0, margin=1.5, least=0.1)
    contacts = [detector.update(*one) for one in zip(time, external)]
    assert detector.threshold is not None and not any(contacts)
