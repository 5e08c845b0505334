# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros replay``: efforts of a model and from outside, of a motion that was simulated."""

import re

from command_line import ARM, code_of, one_line
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.cli.main import main
from rbd_ros.identification import Recording, write_recording
from rbd_ros.model import save_drives, Uncertainty, with_friction
from rbd_ros.model.constraints import attach
from rbd_ros.recordings.tables import read_table

RATE, SECONDS = 250.0, 8.0
# s: what the filter and the observer need after the beginning and before the end.
EDGE = 1.5
# Of the largest effort: what the filter takes off slow sines, and the resampling adds.
FILTERED = 2e-3
# Exact, after rounding of sums.
EXACT = 1e-9
FORCE = np.array([0.5, 0.0, -0.3, 12.0, -8.0, 5.0])


@pytest.fixture(scope='module')
def arm():
    """Return the demo arm with friction that its URDF lacks, smooth for the filter's sake."""
    model = rbd_ros.load_urdf(ARM)
    return with_friction(model, damping=np.full(7, 4.0), effort_offset=np.linspace(-2.0, 2.0, 7))


def motion(t):
    """Return q, v and a of seven joints."""
    omega = 1.0 + 0.25 * np.arange(7.0)
    angle = np.outer(t, omega) + np.arange(7.0)
    return 0.5 * np.sin(angle), 0.5 * omega * np.cos(angle), -0.5 * omega ** 2 * np.sin(angle)


@pytest.fixture(scope='module')
def folder(arm, tmp_path_factory):
    """Return a folder with recordings, and the parameters of the drives."""
    path = tmp_path_factory.mktemp('replay')
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    q, v, a = motion(t)
    efforts = batch.inverse_dynamics(arm, q, v, a) + rbd_ros.friction_torques(arm, v)
    names = arm.velocity_names
    write_recording(path / 'free.csv', Recording('free', names, t, q, v, efforts))
    write_recording(path / 'pushed.csv', Recording(
        'pushed', names, t, q, v, efforts - external(arm, q)))
    write_recording(path / 'other.csv', Recording(
        'other', ('one', *names[1:]), t, q, v, efforts * np.array([0.1] + [1.0] * 6)))
    save_drives(arm, path / 'drives.yaml')
    return path


def external(model, q):
    """Return J^T f of a constant wrench on the tool, at many configurations."""
    return np.array([rbd_ros.body_jacobian(model, one, 'tool').T @ FORCE for one in q])


def replay(folder, recording, *options, code=0, check=False):
    """Return the columns that the command writes, by name, away from both ends."""
    path = folder / 'replay.csv'
    # To check whether efforts are torques takes longest.
    believed = [] if check else ['--efforts-are-torques']
    assert code_of('replay', ARM, str(folder / recording), '-o', str(path), '--params',
                   str(folder / 'drives.yaml'), *believed, *options) == code
    names, data = read_table(path)
    keep = (data[:, 0] > data[0, 0] + EDGE) & (data[:, 0] < data[-1, 0] - EDGE)
    return dict(zip(names, data[keep].T))


def columns(model, table, label):
    return np.stack([table[f'{joint}/{label}'] for joint in model.velocity_names], axis=1)


def test_model_efforts_are_those_of_the_robot_and_nothing_comes_from_outside(arm, folder):
    table = replay(folder, 'free.csv', check=True)
    q, v, a = motion(table['time'])
    expected = batch.inverse_dynamics(arm, q, v, a) + rbd_ros.friction_torques(arm, v)
    size = np.max(np.abs(expected))
    for label in ('model_effort', 'effort'):
        assert np.max(np.abs(columns(arm, table, label) - expected)) < FILTERED * size
    assert np.max(np.abs(columns(arm, table, 'external_effort'))) < FILTERED * size
    assert np.max(np.abs(columns(arm, table, 'position') - q)) < FILTERED
    assert np.max(np.abs(columns(arm, table, 'velocity') - v)) < FILTERED
    assert not any('/M' in name or '/g' in name for name in table)


def test_external_efforts_follow_a_wrench_at_the_observer_gain(arm, folder):
    for gain in (10.0, 50.0):
        table = replay(folder, 'pushed.csv', '--gain', '3', *(
            f'{joint}={gain}' for joint in arm.velocity_names))
        time, found = table['time'], columns(arm, table, 'external_effort')
        # dr/dt = gain (push - r), from a time so early that its beginning is forgotten.
        fine = np.arange(0.0, SECONDS, 1e-3)
        push = external(arm, motion(fine)[0])
        r = np.zeros_like(push)
        for k in range(1, len(fine)):
            mean = 0.5 * (push[k] + push[k - 1])
            r[k] = mean + (r[k - 1] - mean) * np.exp(-gain * 1e-3)
        expected = np.array([np.interp(time, fine, column) for column in r.T]).T
        assert np.max(np.abs(expected)) > 5.0
        assert np.max(np.abs(found - expected)) < 0.02 * np.max(np.abs(expected))


def test_without_drives_friction_counts_as_external_torque(arm, folder):
    path = folder / 'rigid.parquet'
    assert main(['replay', ARM, str(folder / 'free.csv'), '-o', str(path),
                 '--efforts-are-torques']) == 0
    names, data = read_table(path)
    table = dict(zip(names, data[400:-400].T))
    difference = columns(arm, table, 'effort') - columns(arm, table, 'model_effort')
    urdf = rbd_ros.load_urdf(ARM)
    v = motion(table['time'])[1]
    expected = rbd_ros.friction_torques(arm, v) - rbd_ros.friction_torques(urdf, v)
    assert np.max(np.abs(difference - expected)) < 0.02 * np.max(np.abs(expected))


def waiting(seconds, rate, joints):
    """Return t, and q, v, a of moves of 1.5 s with waits of 1.5 s between them."""
    t = np.arange(0.0, seconds, 1.0 / rate)
    number, since = np.divmod(t, 3.0)
    u = np.clip(since / 1.5, 0.0, 1.0)
    sign = np.where(number % 2, -1.0, 1.0)
    way = sign * (u ** 3 * (10.0 - 15.0 * u + 6.0 * u ** 2)) + number % 2
    speed = sign * 30.0 * u ** 2 * (1.0 - u) ** 2 / 1.5
    change = sign * 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / 1.5 ** 2
    size = np.linspace(0.5, 1.0, joints)
    return t, *(np.outer(x, size) for x in (way, speed, change))


@pytest.mark.parametrize('noise', [0.0, 1e-3])
def test_joints_at_rest_have_no_dry_friction_and_no_external_torque(noise, tmp_path):
    # Of the size of a UR10's: to switch it by the ringing of the filter would look like a push.
    dry, offset = np.linspace(10.0, 20.0, 7), np.linspace(-1.0, 1.0, 7)
    arm = with_friction(rbd_ros.load_urdf(ARM), damping=np.full(7, 5.0), friction=dry,
                        effort_offset=offset)
    t, q, v, a = waiting(12.0, RATE, 7)
    tau = batch.inverse_dynamics(arm, q, v, a) + 5.0 * v + dry * np.sign(v) + offset
    rng = np.random.default_rng(1)
    write_recording(tmp_path / 'waits.csv', Recording(
        'waits', arm.velocity_names, t, q + 0.1 * noise * rng.normal(size=q.shape),
        v + noise * rng.normal(size=q.shape), tau))
    save_drives(arm, tmp_path / 'drives.yaml')
    table = replay(tmp_path, 'waits.csv', '--terms', 'friction')
    at_rest = np.remainder(table['time'], 3.0)
    at_rest = (at_rest > 2.2) & (at_rest < 2.7)
    assert np.sum(at_rest) > 300
    friction, model, measured, outside = (columns(arm, table, label)[at_rest] for label in (
        'friction', 'model_effort', 'effort', 'external_effort'))
    # Noise of 1e-3 rad/s, a twentieth of the dead band, less what the filter takes of it.
    most = 0.05 * dry if noise else 1e-3 * dry
    assert np.all(np.abs(friction - offset) < most)
    assert np.all(np.abs(measured - model) < most + 0.1)
    assert np.all(np.abs(outside) < most + 0.1)


def test_terms_on_request_are_those_of_the_plain_functions(arm, folder):
    table = replay(folder, 'free.csv', '--terms', 'M,C', 'g', '--terms', 'Cv,friction')
    q, v = columns(arm, table, 'position'), columns(arm, table, 'velocity')
    names = arm.velocity_names
    for k in (0, 100, -1):
        terms = rbd_ros.all_terms(arm, q[k], v[k])
        for term, matrix in (('M', terms.M), ('C', terms.C)):
            found = [[table[f'{row}/{term}/{column}'][k] for column in names] for row in names]
            assert np.allclose(found, matrix, atol=EXACT)
        for term, vector in (('g', terms.g), ('Cv', terms.coriolis_torques)):
            assert np.allclose([table[f'{name}/{term}'][k] for name in names], vector, atol=EXACT)
    friction = columns(arm, table, 'friction')
    assert np.max(np.abs(friction - rbd_ros.friction_torques(arm, v))) < 0.01 * np.max(friction)


def test_joints_are_renamed_efforts_scaled_and_a_part_is_taken(arm, folder):
    first = arm.velocity_names[0]
    table = replay(folder, 'other.csv', '--rename', f'one={first}', '--scale', f'{first}=10',
                   '--from', '2', '--to', '6')
    assert table['time'][0] >= 2.0 + EDGE and table['time'][-1] <= 6.0 - EDGE
    assert np.max(np.abs(columns(arm, table, 'external_effort'))) < FILTERED * np.max(
        np.abs(columns(arm, table, 'effort')))


def test_a_report_has_the_plots_inside(arm, folder):
    replay(folder, 'free.csv', '--plot')
    page = (folder / 'replay.html').read_text()
    assert all(joint in page for joint in arm.velocity_names)
    assert 'data:image/png;base64,' in page and 'src="http' not in page


def test_errors_are_printed_by_joint_and_the_cut_off_is_the_given_one(arm, folder, capsys):
    replay(folder, 'pushed.csv', '--cutoff', '7.5')
    said = capsys.readouterr()
    assert re.search(r'^note: cut-off 7.5 Hz: the filter removes less than 0.01 % of the power '
                     'of the efforts about their means$', said.err, re.MULTILINE)
    *joints, last = said.out.splitlines()
    assert [line.split()[0] for line in joints] == list(arm.velocity_names)
    assert re.match(r'relative error while joints move: [\d.]+ %$', last)


def test_replay_writes_deviations_as_columns_and_names_detectable_forces(arm, folder, capsys):
    # The same deviation at all states; the wrist's joints feel least.
    noise = 0.4 * np.array([9.0, 8.0, 7.0, 3.0, 2.0, 1.0, 0.5])
    known = attach(arm, Uncertainty(
        arm.velocity_names, rbd_ros.model.inertial_parameter_names(arm)[-1:], np.zeros((1, 1)),
        np.zeros((7, 1)), np.array([noise[:, None], 9.0 * noise[:, None]]), np.zeros(7),
        np.array([20.0, 100.0])))
    # Efforts are filtered, and so are external efforts, by the observer.
    tip = arm.moving_joints[-1][0].child
    save_drives(known, folder / 'known.yaml')
    table = replay(folder, 'pushed.csv', '--params', str(folder / 'known.yaml'), '--plot',
                   str(folder / 'other.html'))
    assert (folder / 'other.html').exists()
    assert np.allclose(columns(arm, table, 'effort_deviation'), noise, rtol=1e-5)
    said = next(line for line in capsys.readouterr().out.splitlines() if 'contact at' in line)
    assert said.startswith(f"contact at '{tip}': forces of ")
    forces = [float(x) for x in re.search(r'forces of (.*) N along', said)[1].split(', ')]
    q = motion(np.arange(0.3, SECONDS - 0.3, 0.02))[0]
    expected = np.empty((len(q), 3))
    for k, one in enumerate(q):
        J = rbd_ros.world_jacobian(arm, one, tip)[3:]
        for axis in range(3):
            with np.errstate(divide='ignore'):
                expected[k, axis] = np.min(6.0 * noise / np.abs(J[axis]))
    assert np.allclose(forces, np.median(expected, axis=0), rtol=0.1)
    # The push is felt while it exceeds one of the thresholds.
    share = float(re.search(r'torques exceeded a threshold ([\d.]+) % of the time$', said)[1])
    felt = np.any(np.abs(external(arm, q)) > 6.0 * noise, axis=1)
    assert abs(share - 100.0 * np.mean(felt)) < 5.0 and 0.0 < share < 100.0
    replay(folder, 'free.csv', '--params', str(folder / 'known.yaml'))
    assert 'exceeded a threshold 0 % of the time' in capsys.readouterr().out


def test_parameters_are_read_before_joints_are_locked(arm, folder):
    locked = rbd_ros.with_locked_joints(arm, {arm.velocity_names[-1]: 0.0})
    for identified, deviations in ((arm, False), (locked, True)):
        size = identified.nv
        save_drives(attach(identified, Uncertainty(
            identified.velocity_names, rbd_ros.model.inertial_parameter_names(identified)[:1],
            np.zeros((1, 1)), np.zeros((size, 1)), np.ones((size, 1)), np.zeros(size))),
            folder / 'locked.yaml')
        table = replay(folder, 'free.csv', '--lock', arm.velocity_names[-1], '--terms', 'friction',
                       '--params', str(folder / 'locked.yaml'))
        v = columns(locked, table, 'velocity')
        assert np.allclose(columns(locked, table, 'friction'),
                           rbd_ros.friction_torques(locked, v), atol=1e-6)
        assert (f'{locked.velocity_names[0]}/effort_deviation' in table) == deviations


def test_without_efforts_the_relative_error_is_not_known(folder, capsys):
    replay(folder, 'free.csv', *(part for name in read_table(folder / 'free.csv')[0]
                                 if name.endswith('/effort')
                                 for part in ('--scale', name.removesuffix('/effort') + '=0')),
           code=2, check=True)
    assert capsys.readouterr().out.endswith('unknown, all efforts are zero\n')


@pytest.mark.parametrize('arguments, message', [
    (['nothing.csv', '-o', 'a.csv'], 'nothing.csv: '),
    (['free.csv', '-o', 'a.txt'], r'the name must end in \.csv or \.parquet'),
    (['free.csv'], 'required: -o/--output'),
    (['free.csv', '-o', 'a.csv', '--terms', 'M,K'], "--terms: there is no 'K', only M, C, g"),
    (['free.csv', '-o', 'a.csv', '--gain', '-3'], '--gain: gains must be positive, 1/s, got -3;'),
    (['free.csv', '-o', 'a.csv', '--gain', 'elbow=0'], '--gain: gains .*, got 0;'),
    (['free.csv', '-o', 'a.csv', '--scale', 'elbow'], "'elbow' is not JOINT=FACTOR"),
    (['free.csv', '-o', 'a.csv', '--rename', 'elbow'], "'elbow' is not OLD=NEW"),
    (['free.csv', '-o', 'a.csv', '--from', '99'], 'no states between'),
    (['free.csv', '-o', './free.csv'], '-o free.csv: this is the recording, which will not be'),
    (['free.csv', '-o', 'free.csv/a.csv'], 'free.csv is not a directory'),
    (['free.csv', '-o', 'a.csv', '--plot', './a.csv'], '--plot a.csv: this is the file of -o'),
    (['free.csv', '-o', 'a.csv', '--html', './a.csv'], '--html ./a.csv: this is the file of -o'),
    (['free.csv', '-o', 'a.csv', '--plot', 'b', '--html', './b'], 'this is the file of --plot'),
    (['other.csv', '-o', 'a.csv'], "'shoulder_pan', which was not recorded"),
    (['free.csv', '-o', 'a.csv', '--params', 'none.yaml'], 'none.yaml cannot be read: No such')])
def test_refused_arguments_write_no_file(folder, capsys, monkeypatch, tmp_path, arguments,
                                         message):
    monkeypatch.chdir(tmp_path)
    for name in ('free.csv', 'other.csv'):
        (tmp_path / name).symlink_to(folder / name)
    assert code_of('replay', ARM, *arguments) == 1
    assert re.search(message, one_line(capsys))
    assert sorted(file.name for file in tmp_path.iterdir()) == ['free.csv', 'other.csv']
