# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros gains``: from recordings with and without a payload to the factors of the efforts."""

from dataclasses import replace
import re

from command_line import code_of, one_line
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import write_recording
from robots import example_urdf, load_quietly

URDF = str(example_urdf('ur5_robot.urdf'))
GAINS = np.array([12.0, 12.0, 9.0, 0.5, -6.0, 6.0])
COM = ('0.02', '0', '0.1')


def true_robot():
    """Return a robot that is not that of its URDF."""
    rng = np.random.default_rng(0)
    return measured.with_drives(measured.changed(load_quietly(URDF), rng), rng)


def write(path, robot, seed):
    one = measured.recording(robot, seed, 30.0, rate=100.0, speed=3.0)
    write_recording(path, replace(one, effort=one.effort / GAINS))


@pytest.fixture(scope='module')
def recordings(tmp_path_factory):
    """Return the folder of recordings without and with a payload."""
    folder, true = tmp_path_factory.mktemp('currents'), true_robot()
    write(folder / 'empty.csv', true, 1)
    write(folder / 'loaded.csv', rbd_ros.with_payload(
        true, 'tool0', 3.0, com=[float(x) for x in COM], inertia=0.01 * np.eye(3)), 2)
    return folder


def arguments(folder, *more):
    return ('gains', URDF, str(folder / 'empty.csv'), '--loaded', str(folder / 'loaded.csv'),
            '--payload', 'tool0', '--mass', '3', '--inertia', '0.01', '0.01', '0.01', *more)


def test_gains_are_printed_as_factors_for_the_other_commands(recordings, capsys):
    assert code_of(*arguments(recordings, '--com', *COM)) == 0
    printed = capsys.readouterr().out
    found = re.findall(r'^(\w+) +(\S+), deviation (\S+), N m per recorded unit$', printed, re.M)
    names, values, deviations = zip(*found)
    assert names == load_quietly(URDF).velocity_names
    values, deviations = np.array(values, float), np.array(deviations, float)
    assert np.all(np.abs(values / GAINS - 1.0) < 0.1)
    assert np.all(np.abs(values - GAINS) < 5.0 * deviations)
    scale = ' '.join(f'{name}={value:.4g}' for name, value in zip(names, values))
    assert printed.endswith(f'apply them with --scale {scale}\n')
    # With these factors there is nothing left to find.
    again = arguments(recordings, '--com', *COM, '--scale', *scale.split())
    assert code_of(*again) == 0
    values = re.findall(r'^\w+ +(\S+), deviation', capsys.readouterr().out, re.M)
    assert np.allclose(np.array(values, float), 1.0, atol=1e-3)


def test_a_joint_that_does_not_feel_the_payload_is_named(recordings, tmp_path, capsys):
    # A point on the axis of the last joint.
    write(tmp_path / 'loaded.csv', rbd_ros.with_payload(true_robot(), 'tool0', 3.0), 2)
    assert code_of('gains', URDF, str(recordings / 'empty.csv'), '--loaded',
                   str(tmp_path / 'loaded.csv'), '--payload', 'tool0', '--mass', '3') == 2
    out, err = capsys.readouterr()
    assert re.search(r'^wrist_3_joint +not determined$', out, re.M)
    assert ' wrist_2_joint=' in out and ' wrist_3_joint=' not in out
    assert 'doubtful: the payload is hardly felt by wrist_3_joint: ' in err


@pytest.mark.parametrize('more, message', [
    (('--payload', 'nowhere'), "no link 'nowhere'"), (('--mass', '-3'), 'mass'),
    (('--loaded', 'missing.csv'), 'missing.csv: no such file')])
def test_wrong_arguments_are_reported_in_one_line(recordings, capsys, more, message):
    assert code_of(*arguments(recordings, *more)) == 1
    assert message in one_line(capsys)
