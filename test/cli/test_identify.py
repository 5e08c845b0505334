# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros identify``: from recordings of a robot that Pinocchio simulates to files, and back."""

from contextlib import redirect_stdout
import io
import json
import os
from pathlib import Path
import re
import signal
import time

from command_line import code_of, one_line, running
from covering import covering
import numpy as np
import pinocchio as pin
import pytest
import rbd_ros
from rbd_ros.control import with_contact_calibration
from rbd_ros.identification import read_recording, report, write_table
from rbd_ros.identification.pipeline import map_recordings
from rbd_ros.model import load_drives
from robots import example_urdf, load_quietly

URDF = str(example_urdf('ur5_robot.urdf'))
RATE = 100.0
DAMPING = np.array([8.0, 9.0, 7.0, 2.0, 2.5, 1.5])
FRICTION = np.array([6.0, 7.0, 5.0, 1.5, 1.2, 1.0])
OFFSET = np.array([0.5, -0.8, 0.3, 0.1, -0.2, 0.15])
ROTORS = np.array([1.2, 1.4, 1.0, 0.3, 0.3, 0.2])
# Standard deviation of the measured efforts, N m: about 1 % of the largest.
NOISE = 0.3
# Torques of the identified robot in other motions, as a share of their size: what that noise
# leaves, with margin.
ERROR = 0.02


def true_robot():
    """Return the robot that is recorded: its URDF is wrong about masses, and knows no drives."""
    robot = pin.buildModelFromUrdf(URDF)
    rng = np.random.default_rng(1)
    for inertia in list(robot.inertias)[1:]:
        inertia.mass *= rng.uniform(0.7, 1.4)
        inertia.lever = inertia.lever + rng.normal(scale=0.02, size=3)
    robot.armature = ROTORS
    return robot


def motion(seed, seconds):
    """Return sums of sines, and their exact derivatives."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / RATE)
    frequency = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.53])
    amplitude = rng.uniform(0.2, 0.5, (4, 6)) / frequency[:, None] ** 0.7
    phase = rng.uniform(0.0, 2.0 * np.pi, (4, 6))
    angle = frequency[:, None, None] * t[:, None] + phase[:, None]
    q = np.sum(amplitude[:, None] * np.sin(angle), axis=0)
    v = np.sum((frequency[:, None] * amplitude)[:, None] * np.cos(angle), axis=0)
    a = np.sum(-(frequency[:, None] ** 2 * amplitude)[:, None] * np.sin(angle), axis=0)
    return t, q, v, a


def torques(robot, q, v, a):
    """Return what drives bring up, by Pinocchio and the law of friction."""
    data = robot.createData()
    return (np.array([pin.rnea(robot, data, *state) for state in zip(q, v, a)])
            + DAMPING * v + FRICTION * np.sign(v) + OFFSET)


@pytest.fixture
def no_error_bars(monkeypatch):
    """Leave out the fits without a part of the samples, which take longest."""
    monkeypatch.setattr('rbd_ros.cli.identify._with_uncertainty', lambda found, *_: found.model)


def record(path, robot, seed=0, seconds=20.0, change=lambda t, q, v, tau: (t, q, v, tau)):
    t, q, v, a = motion(seed, seconds)
    rng = np.random.default_rng(100 + seed)
    tau = torques(robot, q, v, a) + rng.normal(scale=NOISE, size=v.shape)
    t, q, v, tau = change(t, q, v, tau)
    names, columns = ['time'], [t]
    for k, joint in enumerate(list(robot.names)[1:]):
        names += [f'{joint}/position', f'{joint}/velocity', f'{joint}/effort']
        columns += [q[:, k], v[:, k], tau[:, k]]
    write_table(path, names, *columns)
    return str(path)


@pytest.fixture(scope='module', autouse=True)
def drawn():
    """Leave out the plots of reports that are not read; return what draws them."""
    with pytest.MonkeyPatch.context() as patch:
        panels = report._panels
        patch.setattr(report, '_panels', lambda *_, **__: '')
        yield panels


@pytest.fixture(scope='module')
def found(tmp_path_factory):
    """Return a directory with recordings, and the directory of an identification from them."""
    home = tmp_path_factory.mktemp('identify')
    robot = true_robot()
    paths = [record(home / f'run{k}.csv', robot, k, 40.0) for k in range(3)]
    with redirect_stdout(io.StringIO()) as printed:
        code = code_of('identify', URDF, *paths[:2], '--validate', paths[2], '-o',
                       str(home / 'out'), '--workers', '1', '--residuals',
                       str(home / 'residuals.parquet'))
    (home / 'printed').write_text(printed.getvalue())
    return home, paths, code


def content(directory):
    return json.loads((directory / 'identification.json').read_text(encoding='utf-8'))


def test_a_good_recording_is_believable_and_explains_a_validation_recording(found):
    home, paths, code = found
    result = content(home / 'out')
    assert (code, result['verdict'], result['reasons']) == (0, 'believable', [])
    error = result['relative_error']
    assert error['urdf'] > 0.2
    assert error['fit'] < 0.05 and error['validation'][paths[2]] < 0.05
    # What is left is the noise that the filter lets through.
    for joint in result['per_joint'].values():
        assert joint['fit'] < NOISE < joint['urdf']
        assert joint['samples'] > 1000 and joint['validation'][paths[2]] < NOISE
        assert list(joint['coverage']) == paths[2:]
        assert 0.83 < joint['coverage'][paths[2]] < 0.97
    assert set(result['standstill']) == set(paths)
    assert all(0.0 < x < 0.2 for one in result['standstill'].values() for x in one.values())


def test_the_written_urdf_and_drives_load_as_the_identified_robot(found):
    home, paths, _ = found
    model = rbd_ros.load_urdf(home / 'out' / 'robot.urdf', strict=True)
    model = load_drives(model, home / 'out' / 'dynamics.param.yaml')
    robot = true_robot()
    assert list(robot.names)[1:] == list(model.velocity_names)
    _, q, v, a = motion(7, 20.0)
    expected = torques(robot, q, v, a)
    got = rbd_ros.batch.inverse_dynamics(model, q, v, a) + rbd_ros.friction_torques(model, v)
    assert np.linalg.norm(got - expected) < ERROR * np.linalg.norm(expected)
    described = load_quietly(URDF)
    # The noise that the filter lets through, and hardly any doubt about the parameters.
    deviation = rbd_ros.analysis.torque_deviation(model, q, v, a, bandwidth=5.0)
    assert np.all((deviation > 0.05 * NOISE) & (deviation < NOISE))
    raw = rbd_ros.analysis.torque_deviation(model, q, v, a)
    assert np.all(np.abs(raw / NOISE - 1.0) < 0.2)
    # Without noise, errors are those of the parameters.
    assert np.mean(np.abs(got - expected) < 1.645 * deviation) > 0.9
    # Contacts are recognized by what the recordings of the fit show.
    again = with_contact_calibration(model, [read_recording(one) for one in paths[:2]]).uncertainty
    assert np.allclose(model.uncertainty.external, again.external, rtol=1e-4)
    assert np.all(again.external > 0.0)
    before = rbd_ros.batch.inverse_dynamics(described, q, v, a)
    assert np.linalg.norm(before - expected) > 10.0 * ERROR * np.linalg.norm(expected)


def test_parameters_lie_within_their_deviations(found):
    home, _, _ = found
    values = {row['name']: row for row in content(home / 'out')['parameters']}
    joints = list(true_robot().names)[1:]
    for label, truth, unit in (('damping', DAMPING, 'N m s/rad'), ('friction', FRICTION, 'N m'),
                               ('effort_offset', OFFSET, 'N m')):
        for joint, x in zip(joints, truth):
            row = values[f'{joint}.{label}']
            assert abs(row['value'] - x) < 5.0 * row['deviation'] < 0.5
            assert row['unit'] == unit


def test_undetermined_parameters_are_marked(found):
    home, _, _ = found
    printed = (home / 'printed').read_text()
    for joint in list(true_robot().names)[1:]:
        for label in ('damping', 'friction', 'effort_offset'):
            assert re.search(rf'{joint}\.{label} .* -> .*, deviation 0\.\d+\n', printed)
    # A fixed base: which of two links has a mass, no torque tells.
    for name in ('shoulder_link/m', 'forearm_link/m', 'wrist_3_link/m', 'forearm_link centre of '
                 'mass'):
        assert re.search(rf'{name} .* -> .*, not determined\n', printed)
    rows = {row['name']: row for row in content(home / 'out')['parameters']}
    # Moments about axes that a joint turns against gravity are felt by themselves.
    marks = {name: rows[name]['determined'] for name in (
        'upper_arm_link/mcx', 'forearm_link/mcx', 'wrist_3_link/mcx', 'elbow_joint.armature',
        'upper_arm_link/m', 'forearm_link/mcz', 'forearm_link/Ixx', 'shoulder_pan_joint.armature',
        # By itself, too, but hardly.
        'wrist_3_link/Iyz')}
    assert list(marks.values()) == [True] * 4 + [False] * 5
    # They are right: each lies within its deviation.
    for k, inertia in enumerate(list(true_robot().inertias)[1:], 1):
        name = true_robot().names[k].replace('_joint', '_link').replace('_pan', '').replace(
            'shoulder_lift', 'upper_arm').replace('elbow', 'forearm')
        for axis, x in zip('xyz', inertia.mass * inertia.lever):
            row = rows[f'{name}/mc{axis}']
            if row['determined']:
                assert abs(row['value'] - x) < 5.0 * row['deviation']
    page = (home / 'out' / 'report.html').read_text(encoding='utf-8')
    assert page.count(' (not determined)</td>') == sum(
        not row['determined'] for row in rows.values())


def test_the_report_is_a_single_file(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(report, '_panels', drawn)
    paths = [record(tmp_path / f'run{k}.csv', true_robot(), k, 8.0) for k in range(2)]
    code_of('identify', URDF, paths[0], '--validate', paths[1], '-o', str(tmp_path), '--lock',
            *list(true_robot().names)[2:])
    text = (tmp_path / 'report.html').read_text(encoding='utf-8')
    assert text.count('src="data:image/png;base64,') >= 2 * 2 + 1
    assert not re.search(r'(src|href)="(?!data:)', text)
    for needed in ('believable', 'shoulder_pan_joint.damping', f'{paths[1]} (validation)',
                   'within 90 %'):
        assert needed in text.replace('B', 'b')


def test_residuals_are_one_table(found):
    from pyarrow import parquet

    home, paths, _ = found
    table = parquet.read_table(home / 'residuals.parquet').to_pydict()
    assert set(table['recording']) == {*paths[:2], f'{paths[2]} (validation)'}
    assert set(table['joint']) == set(list(true_robot().names)[1:])
    left = np.array(table['measured']) - np.array(table['fit'])
    use = np.array(table['usable'])
    assert 0.0 < np.sqrt(np.mean(left[use] ** 2)) < NOISE


@pytest.mark.long
def test_several_processes_identify_the_same_parameters_as_one(found, tmp_path):
    home, paths, _ = found
    assert code_of('identify', URDF, *paths[:2], '--workers', '2', '-o', str(tmp_path)) == 0
    one, two = content(home / 'out'), content(tmp_path)
    assert one['parameters'] == two['parameters']


def test_a_short_motion_that_explains_the_next_is_believable_for_similar_motions(tmp_path, capsys):
    short, after = (
        record(tmp_path / f'{name}.csv', true_robot(),
               change=lambda *columns, of=part: [x[int(of[0] * RATE):int(of[1] * RATE)]
                                                 for x in columns])
        for name, part in (('short', (3.0, 6.0)), ('after', (6.0, 10.0))))
    code = code_of('identify', URDF, short, '--validate', after, '-o', str(tmp_path / 'out'))
    result = content(tmp_path / 'out')
    assert result['relative_error']['validation'][after] < 0.1
    assert (code, result['verdict']) == (0, 'good for motions like these')
    reason, = result['reasons']
    assert reason.startswith('torques in other poses are uncertain')
    printed = capsys.readouterr().out
    assert f'good for motions like these: {reason}' in printed
    share = 100.0 * result['per_joint']['shoulder_pan_joint']['coverage'][after]
    assert f'{after}: intervals of 90 % hold shoulder_pan_joint {share:.3g} %, ' in printed
    assert '<b>Good for motions like these:</b>' in (tmp_path / 'out' / 'report.html').read_text(
        encoding='utf-8')
    # Nobody knows that without the other recording.
    assert code_of('identify', URDF, short, '-o', str(tmp_path / 'alone')) == 2
    assert content(tmp_path / 'alone')['verdict'] == 'not believable'


@pytest.mark.usefixtures('no_error_bars')
def test_a_recording_given_twice_counts_once_and_notes_are_printed(tmp_path, capsys):
    gap = record(tmp_path / 'gap.csv', true_robot(), seconds=12.0, change=lambda t, *rest: [
        x[(t < 6.0) | (t > 7.0)] for x in (t, *rest)])
    assert code_of('identify', URDF, gap, gap, '--validate', gap, '-o', str(tmp_path / 'a'),
                   '--workers', '1') == 0
    lines = capsys.readouterr().err.splitlines()
    assert {f'warning: {gap} is named twice, and counts once',
            f'warning: {gap} is used for the fit and for --validate: hold out another one'
            } <= set(lines)
    result = content(tmp_path / 'a')
    assert result['recordings'] == [gap]
    assert result['notes'][gap]
    assert [line for line in lines if line.startswith('note: ')] == [
        f'note: {gap}: {note}' for note in result['notes'][gap]]


def test_the_payload_of_a_known_robot_is_identified(found, tmp_path, capsys):
    home, _, _ = found
    robot = true_robot()
    load = pin.Inertia(1.5, np.array([0.02, 0.05, -0.03]), 0.004 * np.eye(3))
    robot.inertias[6] += load
    path = record(tmp_path / 'loaded.csv', robot, 5)
    assert code_of('identify', str(home / 'out' / 'robot.urdf'), path, '--payload', 'wrist_3_link',
                   '--params', str(home / 'out' / 'dynamics.param.yaml'),
                   '-o', str(tmp_path / 'out')) == 0
    found_load = content(tmp_path / 'out')['payload']
    assert abs(found_load['mass'] - 1.5) < 0.05
    # Two standard deviations are 95 %.
    assert (f"within {2.0 * found_load['mass_deviation']:.2g} kg (95 %)"
            in capsys.readouterr().out)
    assert np.allclose(found_load['com'], load.lever, atol=0.01)
    model = rbd_ros.load_urdf(tmp_path / 'out' / 'robot.urdf', strict=True)
    before = rbd_ros.load_urdf(home / 'out' / 'robot.urdf')
    assert abs(model.mass - before.mass - found_load['mass']) < 1e-6


def test_refused_arguments_are_reported_before_the_fit_and_write_no_file(found, tmp_path, capsys,
                                                                         monkeypatch):
    home, paths, _ = found
    # Before the fit, which takes long.
    monkeypatch.delattr('rbd_ros.cli.identify.fit')
    (tmp_path / 'file').touch()
    load = paths[0], '--payload', 'wrist_3_link'
    drives = '--params', str(home / 'out' / 'dynamics.param.yaml')
    for arguments, message in (
            (load, '--params'), ((*load, *drives, '--friction', 'none'), '--friction'),
            ((*load, *drives, '--no-rotors'), '--no-rotors'),
            # Root may write anywhere but where there is no file system to write to.
            ((paths[0], '-o', '/proc/nothing/here'), '/proc cannot be written to'),
            ((paths[0], '-o', str(tmp_path / 'file')), 'file is not a directory'),
            ((paths[0], '-o', str(tmp_path / 'file' / 'deeper')), 'file is not a directory'),
            ((paths[0], '--residuals', 'x.csv'), '.parquet'),
            ((paths[0], '--friction', 'viscous,none'), "'none'"),
            ((str(tmp_path / 'none.csv'),), 'no such file'),
            ((paths[0], '--validate', str(tmp_path / 'none.csv')), 'no such file'),
            ((paths[0], '--friction', 'magic'), 'magic'),
            ((paths[0], '--friction', ''), "--friction: there is no '', only viscous, "),
            ((paths[0], '--rename', 'knee=elbow_joint'), 'knee'),
            ((paths[0], '--workers', '0'), 'workers'),
            ((paths[0], '--from', '30', '--to', '10'), 'no states')):
        assert code_of('identify', URDF, '-o', str(tmp_path / 'out'), *arguments) == 1
        assert message in one_line(capsys)
    assert list(tmp_path.iterdir()) == [tmp_path / 'file']


def delayed(t, q, v, tau):
    """Let efforts come 40 ms late, as from a slow filter."""
    return t[4:], q[4:], v[4:], tau[:-4]


@pytest.mark.long
def test_validation_takes_the_delay_of_the_fit(tmp_path):
    robot = true_robot()
    late, also_late = (record(tmp_path / f'late{seed}.csv', robot, seed, 20.0, delayed)
                       for seed in (0, 1))
    early = record(tmp_path / 'early.csv', robot, 1, 20.0)
    code_of('identify', URDF, late, '--validate', also_late, early, '-o', str(tmp_path / 'out'))
    error = content(tmp_path / 'out')['relative_error']['validation']
    assert error[also_late] < 0.5 * ERROR and error[early] > 1.5 * ERROR


@pytest.mark.usefixtures('no_error_bars')
@pytest.mark.parametrize('factor', [1.0, 1.4])
def test_torques_that_differ_much_from_those_of_the_urdf_are_mentioned(factor, tmp_path, capsys):
    robot = pin.buildModelFromUrdf(URDF)
    path = record(tmp_path / 'run.csv', robot, 0, 20.0, lambda t, q, v, tau: (
        t, q, v, factor * tau))
    assert code_of('identify', URDF, path, '-o', str(tmp_path / 'out'), '--workers', '1') == 0
    said = 'torques of the bodies are 1.4'
    assert (said in capsys.readouterr().out) == (factor == 1.4)


@pytest.mark.usefixtures('no_error_bars')
def test_a_part_of_a_recording_is_fitted_with_scaled_efforts(found, tmp_path):
    _, paths, _ = found
    joints = list(true_robot().names)[1:]
    assert code_of('identify', URDF, paths[0], '--from', '2', '--to', '18', '--no-rotors',
                   '--friction', 'viscous,coulomb', '--scale', f'{joints[0]}=1.5',
                   '-o', str(tmp_path / 'out')) == 0
    values = {row['name']: row['value'] for row in content(tmp_path / 'out')['parameters']}
    assert not any(name.endswith(('.armature', '.effort_offset')) for name in values)
    assert values[f'{joints[0]}.damping'] == pytest.approx(1.5 * DAMPING[0], rel=0.1)


def test_a_worker_that_dies_has_its_recordings_done_by_another(tmp_path):
    from distributed import LocalCluster

    paths = [str(tmp_path / f'{k}') for k in range(8)]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        done = dict(map_recordings(_die_once, paths, scheduler=cluster.scheduler_address))
    assert done == {k: path[-1] for k, path in enumerate(paths)}
    assert (tmp_path / 'died').exists()


def _die_once(path):
    """Return the last letter of a path; the first process that comes to 3 is killed."""
    if path.endswith('3'):
        mark = Path(path).with_name('died')
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return path[-1]


LONG_WORK = """
import pathlib, sys, time
from rbd_ros.identification.pipeline import map_recordings

def work(path):
    pathlib.Path(path).touch()
    time.sleep(600.0)

if __name__ == '__main__':
    print('ready', flush=True)
    try:
        list(map_recordings(work, sys.argv[1:], workers=2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize('everyone, at_work', covering(
    [(False, False), (False, True), (True, False), (True, True)], (False, True), (True, False)))
def test_ctrl_c_ends_the_workers_without_a_word(tmp_path, everyone, at_work):
    """As they start and as they work, whether Ctrl-C reaches all processes or the first alone."""
    script, marks = tmp_path / 'work.py', [tmp_path / 'a', tmp_path / 'b']
    script.write_text(LONG_WORK, encoding='utf-8')
    with running(str(script), *map(str, marks)) as process:
        assert process.stdout.readline() == 'ready\n'
        assert wait_for(lambda: len(children(process.pid)) >= 3)        # one watches the others
        assert not at_work or wait_for(lambda: all(mark.exists() for mark in marks))
        started = children(process.pid)
        for one in [*(started if everyone else ()), process.pid]:
            os.kill(one, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, '')
    assert wait_for(lambda: not any(Path(f'/proc/{one}').exists() for one in started))


def children(pid):
    return [int(x) for x in Path(f'/proc/{pid}/task/{pid}/children').read_text('utf-8').split()]


def wait_for(condition):
    """Return whether something happens in a minute."""
    end = time.monotonic() + 60.0
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
