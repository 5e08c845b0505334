# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings with one mistake each: what ``rbd_ros identify`` and ``rbd_ros replay`` say."""

from dataclasses import replace
import json

from bag_files import joint_state, write_bag
from command_line import code_of as code_of_texts
from covering import covering
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import Recording, write_recording

RATE, SECONDS = 100.0, 10.0
URDF = """<robot name="arm"><link name="base"/>""" + ''.join(f"""
<link name="{child}"><inertial><origin xyz="0.02 0.03 {com}"/><mass value="{mass}"/>
<inertia ixx="0.05" iyy="0.06" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="0 0 0.3"/><axis xyz="{axis}"/>
<limit lower="-6.2" upper="6.2" effort="{limit}" velocity="6"/></joint>""" for (
    name, parent, child, axis, mass, com, limit) in (
        ('pan', 'base', 'trunk', '0 0 1', 4.0, 0.1, 90),
        ('lift', 'trunk', 'upper', '0 1 0', 3.0, 0.2, 90),
        ('elbow', 'upper', 'lower', '0 1 0', 2.0, 0.2, 60),
        ('wrist', 'lower', 'hand', '1 0 0', 1.0, 0.1, 30))) + '</robot>'
GAINS = np.array([80.0, 110.0, 130.0, 200.0])


def code_of(*arguments):
    return code_of_texts(*map(str, arguments))


@pytest.fixture(autouse=True)
def plots_and_error_bars_are_left_out(monkeypatch):
    """Leave out what takes longest and is looked at nowhere here."""
    monkeypatch.setattr('rbd_ros.identification.report._panels', lambda *_, **__: '')
    monkeypatch.setattr('rbd_ros.cli.identify._with_uncertainty', lambda found, *_: found.model)


@pytest.fixture(scope='module')
def arm(tmp_path_factory):
    """Return the path of a URDF, and a good recording of the robot it describes, with friction."""
    path = tmp_path_factory.mktemp('arm') / 'arm.urdf'
    path.write_text(URDF)
    return path, record(rbd_ros.load_urdf(path))


def record(model, offset=0.0):
    """Return a recording of a robot with drives, 1 % of noise and an offset of the positions."""
    rng = np.random.default_rng(4)
    true = measured.with_drives(model, rng)
    t, q, v, a = measured.swing(true, rng, SECONDS, RATE)
    q = q + offset
    tau = measured.efforts(true, q, v, a)
    tau += 0.01 * np.sqrt(np.mean(tau ** 2, axis=0)) * rng.normal(size=tau.shape)
    return Recording('motion', model.velocity_names, t, q + 1e-4 * rng.normal(size=q.shape),
                     v + 1e-3 * rng.normal(size=v.shape), tau)


def scaled(factor):
    return lambda model, one: replace(one, effort=factor * one.effort)


def timed(factor, first=0.0):
    return lambda model, one: replace(one, time=first + factor * one.time)


def without_gravity(model, one):
    return replace(one, effort=one.effort - rbd_ros.batch.gravity_torques(model, one.position))


def wrapped(model, one):
    """Wrap positions, two of which turn past pi."""
    one = record(model, np.array([3.0, 0.0, 3.0, 0.0]))
    assert np.max(one.position) > np.pi + 0.3
    return replace(one, position=(one.position + np.pi) % (2.0 * np.pi) - np.pi)


def doubled(**second):
    """Return a recording in which every other state is of a second publisher."""
    def change(model, one):
        rows = np.repeat(np.arange(len(one)), 2)
        odd = np.arange(len(rows)) % 2 == 1
        late = np.where(odd, np.maximum(rows - second.get('late', 0), 0), rows)
        effort = one.effort[late]
        if 'effort' in second:
            effort[odd] = second['effort']
        return replace(one, time=one.time[rows] + odd * 0.4 / RATE, position=one.position[late],
                       velocity=one.velocity[late], effort=effort)
    return change


# The change, the exit code, what both commands say (or, of a recording that is right, note), and
# what identify alone says.
CASES = {
    'clean': (lambda model, one: one, 0, (), ('verdict: believable',)),
    'one factor': (scaled(83.0), 2, (
        'efforts are 83', 'times the torques of the URDF, by one factor for all joints',
        '--scale pan=0.012', '--efforts-are-torques', 'exceed the effort limits', 'limit 90'), ()),
    'half': (scaled(0.5), 2, ('efforts are 0.5', 'by one factor for all joints',
                              '--efforts-are-torques'), ()),
    'currents': (scaled(GAINS), 2, (
        'pan 80', 'lift 110', 'elbow 130', 'wrist 200', 'look like currents',
        'rbd_ros gains', '--scale pan=0.0125 lift=0.00', 'exceed the effort limits'), ()),
    'without gravity': (without_gravity, 2, (
        'efforts are without gravity', 'effort_convention.states: without_gravity'), ()),
    'other sign': (scaled(-1.0), 2, (
        'pan, lift, elbow, wrist have the wrong sign', 'pan=-1',
        'effort_convention.state_constants'), ()),
    'ms': (timed(1e3), 1, ('looks like ms', 'divide the times by 1000'), ()),
    'ns': (timed(1e9, 1.7e18), 1, ('looks like ns', 'divide the times by 1e+09'), ()),
    'wrapped': (wrapped, 0, ('note', 'unwrapped', 'pan (', 'elbow ('), ('verdict: believable',)),
    'wrapped, no velocities': (
        lambda model, one: replace(wrapped(model, one), velocity=None), 0,
        ('unwrapped', 'pan (', 'elbow (', 'velocities are derived'), ()),
    'a second publisher without efforts': (
        doubled(effort=0.0), 1, ('two publishers', 'zero efforts', '--topic'), ()),
    'a second publisher of old states': (
        doubled(late=5), 1, ('two publishers', 'positions', '--topic'), ())}


def written(folder, recording, kind):
    """Write a recording as a bag or a table, and return its path."""
    if kind == 'csv':
        path = folder / 'motion.csv'
        write_recording(path, recording)
        return path
    rows = zip(np.rint(1e9 * recording.time).astype(int).tolist(), recording.position,
               recording.velocity, recording.effort)
    return write_bag(folder / 'bag', [('/joint_states', t, joint_state(
        t, recording.joint_names, *x)) for t, *x in rows])


def relative_error(folder):
    return json.loads((folder / 'out' / 'identification.json').read_text())['relative_error']


@pytest.mark.parametrize('name, kind', [
    *covering(((name, 'csv') for name in CASES),
              *((name, 'csv') for name in CASES if name != 'half')),
    *((name, 'bag') for name in ('clean', 'a second publisher of old states'))])
def test_each_mistake_is_named(arm, name, kind, tmp_path, capfd):
    change, code, said, more = CASES[name]
    urdf, recording = arm
    path = written(tmp_path, change(rbd_ros.load_urdf(urdf), recording), kind)
    assert code_of('identify', urdf, path, '-o', tmp_path / 'out') == code
    found = ' '.join(''.join(capfd.readouterr()).split())
    for text in (*said, *more):
        assert text in found
    assert (tmp_path / 'out').exists() == (code != 1)
    if code == 0:
        assert relative_error(tmp_path)['fit'] < 0.01
    assert code_of('replay', urdf, path, '-o', tmp_path / 'replay.csv') == code
    found = ' '.join(''.join(capfd.readouterr()).split())
    for text in said:
        assert text in found
    assert ('doubtful' in found) == (code == 2)


def test_positions_that_leave_the_limits_when_unwrapped_are_in_doubt(arm, tmp_path, capfd):
    # The driver wraps the positions of two joints that turn past pi, where these may not be.
    model = rbd_ros.load_urdf(arm[0])
    narrow = tmp_path / 'narrow.urdf'
    narrow.write_text(URDF.replace('-6.2', '-2.8').replace('6.2', '2.8'))
    path = written(tmp_path, wrapped(model, arm[1]), 'csv')
    for command, output in (('identify', 'out'), ('replay', 'replay.csv')):
        assert code_of(command, narrow, path, '-o', tmp_path / output,
                       '--efforts-are-torques') == 2
        found = ' '.join(''.join(capfd.readouterr()).split())
        assert 'positions unwrapped' in found
        assert 'positions of pan, elbow lie beyond the limits of the URDF' in found


@pytest.mark.parametrize('options, factor', [
    (('--scale', *(f'{name}={1 / 83}' for name in ('pan', 'lift', 'elbow', 'wrist'))), 83.0),
    (('--efforts-are-torques',), 1.8)])
def test_advice_on_factors_can_be_followed(arm, options, factor, tmp_path, capsys):
    urdf, recording = arm
    path = written(tmp_path, replace(recording, effort=factor * recording.effort), 'csv')
    assert code_of('identify', urdf, path, '-o', tmp_path / 'out', *options) == 0
    confirmed = '--efforts-are-torques' in options
    assert ('efforts were not checked' in capsys.readouterr().out) == confirmed
    result = json.loads((tmp_path / 'out/identification.json').read_text())
    assert result['efforts_are_torques'] == confirmed
    assert code_of('replay', urdf, path, '-o', tmp_path / 'replay.csv', *options) == 0


def test_semicolons_and_decimal_commas_are_read(arm, tmp_path):
    path = written(tmp_path, arm[1], 'csv')
    other = tmp_path / 'comma.csv'
    other.write_text(path.read_text().replace(',', ';').replace('.', ','))
    one, two = map(rbd_ros.identification.read_recording, (path, other))
    for label in ('time', 'position', 'velocity', 'effort'):
        assert np.array_equal(getattr(one, label), getattr(two, label))
