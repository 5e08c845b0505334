# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros excite``: what it writes, and when it writes nothing."""

import re
import signal

from command_line import ARM, code_of, one_line, running
import numpy as np
import pytest
import rbd_ros
from rbd_ros.cli.main import main
from rbd_ros.identification import read_recording
import yaml

# Numbers of messages have 13 digits.
WRITTEN = 1e-12
QUICK = ('--duration', '4', '--harmonics', '3', '--steps', '32', '--rate', '50')
LIMITED = ('--velocity', '1', 'elbow=0.5', '--lower', 'elbow=-1', '--upper', 'elbow=0',
           'wrist_pitch=1', '--acceleration', 'elbow=2', '--effort', 'elbow=30', '--lock',
           'flange_roll=0.3')


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return the table and the message of one motion."""
    folder = tmp_path_factory.mktemp('excite')
    paths = folder / 'new' / 'a.csv', folder / 'other' / 'a.yaml'
    assert code_of('excite', ARM, *QUICK, *LIMITED, '-o', str(paths[0]), str(paths[1])) in (0, 2)
    return paths


def test_the_table_is_a_recording_within_the_limits_of_options(files):
    model = rbd_ros.with_locked_joints(rbd_ros.load_urdf(ARM), {'flange_roll': 0.3})
    recording = read_recording(files[0]).for_robot(model)
    assert len(recording) == 201 and recording.time[-1] == 4.0
    q, v = recording.position, recording.velocity
    elbow, wrist = (model.velocity_names.index(name) for name in ('elbow', 'wrist_pitch'))
    assert np.all(np.abs(q[:, elbow] + 0.5) <= 0.45) and np.max(q[:, wrist]) <= 1.0
    assert np.all(np.abs(v) <= 0.9) and np.max(np.abs(v[:, elbow])) <= 0.45
    a = np.gradient(v[:, elbow], recording.time)
    assert np.max(np.abs(a)) <= 1.8
    assert np.allclose(v[[0, -1]], 0.0, atol=1e-9)
    # Rates of the positions are the velocities: half a step of 0.02 s apart.
    middle = np.diff(q, axis=0) / np.diff(recording.time)[:, None]
    assert np.allclose(middle, 0.5 * (v[1:] + v[:-1]), atol=2e-2)


def test_the_message_is_one_of_ros_with_the_numbers_of_the_table(files):
    message = yaml.safe_load(files[1].read_text())
    # trajectory_msgs/JointTrajectory and JointTrajectoryPoint; effort may be empty.
    assert message['header'] == {'stamp': {'sec': 0, 'nanosec': 0}, 'frame_id': ''}
    assert set(message) == {'header', 'joint_names', 'points'}
    for point in message['points']:
        assert set(point) == {'positions', 'velocities', 'accelerations', 'time_from_start'}
        assert all(type(x) is int for x in point['time_from_start'].values())
        assert all(type(x) is float for x in point['positions'] + point['accelerations'])
    names, *rows = (line.split(',') for line in files[0].read_text().splitlines())
    table = np.array(rows, float)
    joints = message['joint_names']
    assert names == ['time', *(f'{joint}/{what}' for joint in joints
                               for what in ('position', 'velocity', 'acceleration'))]
    times = [point['time_from_start'] for point in message['points']]
    assert np.allclose([t['sec'] + 1e-9 * t['nanosec'] for t in times], table[:, 0], atol=1e-9)
    for k, label in enumerate(('positions', 'velocities', 'accelerations')):
        numbers = np.array([point[label] for point in message['points']])
        assert np.allclose(numbers, table[:, 1 + k::3], atol=WRITTEN)


def test_the_same_options_write_the_same_file(files, tmp_path):
    again = tmp_path / 'b.csv'
    assert code_of('excite', ARM, *QUICK, *LIMITED, '-o', str(again)) in (0, 2)
    assert again.read_bytes() == files[0].read_bytes()


def test_a_bad_motion_is_written_with_exit_code_2(tmp_path, capsys):
    path = tmp_path / 'a.csv'
    arguments = ['excite', ARM, '-o', str(path), '--duration', '2', '--harmonics', '4', '--lower',
                 '-0.02', '--upper', '0.02', '--steps', '1']
    assert main(arguments) == 2
    assert re.match('doubtful: .*--harmonics', capsys.readouterr().err)
    assert path.exists()


@pytest.mark.parametrize('arguments, message', [
    (['-o', 'a.txt'], 'must end in .csv, .parquet or .yaml'), ([], 'required: -o/--output'),
    (['-o', 'a.csv', '--velocity', 'knee=1'], "--velocity: .*'knee'"),
    (['-o', 'a.csv', '--velocity', '0'], "velocity limit of 'shoulder_pan' must be positive"),
    (['-o', 'a.csv', '--effort', '1', '--lower', '0.5', '--upper', '1'],
     "effort limit of 'shoulder_lift'"),
    (['-o', 'a.csv', '--harmonics', '1'], 'harmonics must be at least 2')])
def test_refused_arguments_write_no_file(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert code_of('excite', ARM, *arguments) == 1
    assert re.search(message, one_line(capsys))
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written_are_refused_before_the_search(capsys, monkeypatch):
    monkeypatch.delattr('rbd_ros.cli.excite.excite')
    assert code_of('excite', ARM, '-o', '/proc/a.csv') == 1
    assert '/proc' in one_line(capsys)


def test_ctrl_c_leaves_only_the_previous_file(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('previous')
    with running('-m', 'rbd_ros.cli.main', 'excite', ARM, '-o', str(path),
                 '--steps', '100000') as process:
        assert any(line.startswith('rbd_ros excite: excite')    # it has begun
                   for line in iter(process.stderr.readline, ''))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    # To a shell both are 130: Python dies of the signal if it came in the middle of an exec().
    assert process.returncode in (130, -signal.SIGINT)
    err = re.sub('rbd_ros excite: excite.*\n', '', err)
    assert (out, err) == ('', 'interrupted; no file was changed\n')
    assert [file.name for file in tmp_path.iterdir()] == ['a.csv']
    assert path.read_text() == 'previous'
