# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Planted mistakes are named first, with their size; clean recordings are not doubted."""

from dataclasses import replace
from html import escape
import json

from command_line import code_of
from covering import covering, seeds
import measured
import numpy as np
from planted import Case, robot, ROBOTS
import pytest
import rbd_ros
from rbd_ros import batch, with_armature
from rbd_ros.errors import RecordingError, StateError
from rbd_ros.identification import diagnose, prepare, write_recording
from rbd_ros.identification.diagnosis.hypotheses import (
    Change, FACTORS, HYPOTHESES, leaves, words)
from rbd_ros.identification.diagnosis.motion import motion_of
from rbd_ros.model import save_drives, with_friction, with_springs
from rbd_ros.model.changes.inertial import body_names, inertial_parameters
from rbd_ros.model.constraints import rebuild
from robots import example_urdf

# Pairs in which one mistake hides the other's shape.
PAIRS = [('payload', 'gravity_direction'), ('gain', 'torque_offset'), ('delay', 'payload'),
         ('sign', 'spring'), ('common_gain', 'zero_offset'), ('friction', 'link_mass')]


def planted(name, kinds, seed, joints=None):
    """Return a case of a robot with planted mistakes."""
    one = Case(name, np.random.default_rng(seed), kinds, joints)
    for kind in kinds:
        one.plant(kind)
    return one


def case(kinds, number, joints=3):
    """Return a case of some robot with planted mistakes."""
    return planted(ROBOTS[number % len(ROBOTS)], kinds, (number, 5), joints)


@pytest.mark.parametrize('joints', covering((3, 5), 3))
@pytest.mark.parametrize('number, kind', [*enumerate(HYPOTHESES)])
def test_a_planted_mistake_is_named_first_with_its_size(number, kind, joints):
    one = case((kind,), number, joints)
    found = diagnose(one.described, one.recording()).findings
    assert found and found[0].kind == kind, found
    place, value = one.planted[kind]
    assert place in ('', found[0].place, *found[0].joints[:1])
    assert found[0].advice and found[0].undo
    if found[0].deviation is not None and value is not None:
        # Tenths of a per cent of systematic error remain.
        assert found[0].value == pytest.approx(value, abs=3.0 * found[0].deviation)
        assert found[0].deviation < 0.1 * abs(value)
        assert 0.1 < found[0].explains <= 1.0


@pytest.mark.parametrize('number, kinds', covering(
    enumerate(PAIRS), *((k, PAIRS[k]) for k in (3, 5))))
def test_two_mistakes_are_both_among_the_first_three(number, kinds):
    one = case(kinds, number, 5)
    found = diagnose(one.described, one.recording()).findings
    assert {*kinds} <= {finding.kind for finding in found[:3]}, found
    assert found[0].explains >= found[1].explains


@pytest.mark.parametrize('number', seeds(8, few=2))
def test_clean_recordings_give_no_findings(number):
    one = case((), number, 5)
    found = diagnose(one.described, [one.recording(), case((), number, 5).recording()])
    assert found.findings == ()
    assert all(0.0 < share < 0.02 for share in found.residual.values())


def changed(kind, model, middle):
    """
    Return a robot whose torques a change of some kind must add, and the sizes of the change.

    The second joint moves about a middle.

    """
    nv, joint = model.nv, model.velocity_names[1]
    at = np.eye(nv)[1]
    if kind == 'payload':
        com, inertia = np.array([0.03, -0.02, 0.05]), np.diag([0.01, 0.02, 0.015])
        point = 1.2 * (com @ com * np.eye(3) - np.outer(com, com)) + inertia
        return rbd_ros.with_payload(model, leaves(model)[0], 1.2, com, inertia), [
            1.2, *(1.2 * com), *np.diag(point), point[0, 1], point[0, 2], point[1, 2]]
    return {
        'rotor': lambda: (with_armature(model, model.armature + 0.3 * at), [0.3]),
        'torque_offset': lambda: (with_friction(model, effort_offset=2.0 * at), [2.0]),
        'spring': lambda: (with_springs(model, stiffness={joint: 7.0}, spring_reference={
            joint: middle - 0.4}), [7.0, 2.8]),
        'gravity_direction': lambda: (rbd_ros.with_gravity(model, (1.0, -2.0, -9.0)),
                                      [1.0, -2.0, 0.81])}[kind]()


@pytest.mark.parametrize('kind', ['payload', 'rotor', 'torque_offset', 'spring',
                                  'gravity_direction'])
@pytest.mark.parametrize('name', covering(ROBOTS[:3], ROBOTS[1]))
def test_columns_are_the_torques_of_a_robot_that_is_changed(kind, name):
    model = robot(name)
    motion = motion_of(model, [prepare(model, measured.recording(model, 1, 8.0), delay=0.0)])
    q, v, a, _ = motion.states
    other, sizes = changed(kind, model, np.mean(q[:, 1]))
    expected = (batch.inverse_dynamics(other, q, v, a) + rbd_ros.friction_torques(other, v)
                + rbd_ros.spring_torques(other, q)
                - batch.inverse_dynamics(model, q, v, a) - rbd_ros.friction_torques(model, v))
    change = next(one for one in HYPOTHESES[kind].changes(motion)
                  if one.place in ('', leaves(model)[0], model.velocity_names[1]))
    # The payload's inertia is about the centre of mass, its column about the link.
    assert np.allclose(change.columns @ sizes, expected, rtol=0.0,
                       atol=1e-9 * np.max(np.abs(expected)))


def test_a_heavier_last_link_is_also_reported_as_a_payload():
    model = robot('ur5_robot.urdf')
    true = rebuild(model, links=[
        replace(link, mass=4.0 * link.mass, inertia=4.0 * link.inertia)
        if link.name == 'wrist_3_link' else link for link in model.links])
    found, = diagnose(model, measured.recording(true, 2)).findings
    assert found.kind == 'link_mass' and found.place == 'wrist_3_link'
    assert any(text.startswith('payload tool0 (a turn of') and text.endswith('would tell)')
               for text in found.alternatives)


def test_the_link_that_carries_the_payload_can_be_named():
    one = Case('ur5_robot.urdf', np.random.default_rng(3))
    one.true = rbd_ros.with_payload(one.true, 'forearm_link', 0.8, (0.1, 0.05, 0.0))
    found = diagnose(one.described, one.recording(), payload_link='forearm_link').findings
    assert found[0].kind == 'payload' and found[0].place == 'forearm_link'
    assert found[0].value == pytest.approx(0.8, abs=3.0 * found[0].deviation)


def test_a_rotor_at_a_vertical_axis_is_no_link_of_many_times_its_mass():
    one = Case('z1.urdf', np.random.default_rng(3))
    size = 0.3 * np.diag(rbd_ros.mass_matrix(one.true, rbd_ros.neutral(one.true)))[0]
    one.true = with_armature(one.true, one.true.armature + size * np.eye(one.true.nv)[0])
    found, = diagnose(one.described, one.recording()).findings
    assert (found.kind, found.place) == ('rotor', 'joint1')
    assert found.value == pytest.approx(size, abs=3.0 * found.deviation)


def test_diagnose_does_not_report_negative_inertias():
    one = Case('z1.urdf', np.random.default_rng(3), joints=4)
    bare = with_armature(one.true, np.zeros(one.true.nv))
    recording, at = one.recording(), np.eye(one.true.nv)[0]
    M = rbd_ros.mass_matrix(bare, rbd_ros.neutral(bare))[0, 0]
    wrong = replace(recording, effort=recording.effort - 2.0 * M * at * one.a)
    found = diagnose(bare, wrong).findings
    own = dict(zip(body_names(bare), inertial_parameters(bare)[::10]))
    assert found and all(x.value > -own.get(x.place, 0.0) for x in found
                         if x.kind in ('rotor', 'link_mass'))


def test_a_spring_that_hardly_depends_on_the_position_is_an_offset():
    one = Case('ur5_robot.urdf', np.random.default_rng(3), joints=5)
    one.true = with_springs(one.true, stiffness={'wrist_2_joint': 0.2}, spring_reference={
        'wrist_2_joint': 12.0})
    found = diagnose(one.described, one.recording()).findings
    assert (found[0].kind, found[0].place) == ('torque_offset', 'wrist_2_joint')
    assert 'spring' not in {x.kind for x in found}


@pytest.mark.parametrize('factor', [83.0, -1.0])
def test_a_common_gain_of_efforts_does_not_change_the_identified_friction(factor):
    one = case(('friction',), 1)
    recording = one.recording()
    found = diagnose(one.described, replace(recording, effort=factor * recording.effort)).findings
    assert [x.kind for x in found] == ['common_gain' if factor > 0.0 else 'sign', 'friction']
    assert {*found[0].joints} == {*one.names}
    assert found[1].value == pytest.approx(one.planted['friction'][1],
                                           abs=3.0 * found[1].deviation)


@pytest.mark.parametrize('name', covering(ROBOTS[:3], ROBOTS[0]))
def test_efforts_of_the_opposite_sign_are_not_mistaken_for_a_gain(name):
    # Of slow motions, the torques of a vertical axis are mostly friction, which is not declared;
    # offsets are more mistakes than are combined.
    model = robot(name, 3)
    true = measured.with_drives(model, np.random.default_rng(2))
    recording = measured.recording(true, 3, 30.0, speed=0.3)
    for sign in (-1.0, 1.0):
        found = [x for x in diagnose(with_armature(model, true.armature), replace(
            recording, effort=sign * recording.effort)).findings if x.kind in FACTORS]
        assert [{*x.joints} for x in found if x.kind == 'sign'] == [{*model.velocity_names}] * (
            sign < 0.0)
        assert len(found) == (sign < 0.0)


def test_efforts_beyond_the_limits_are_doubted_unless_a_factor_is_found():
    one = case((), 0)
    recording = one.recording()
    limited = replace(one.described, effort_limit=0.5 * np.max(np.abs(recording.effort), axis=0))
    found, = diagnose(limited, recording).findings
    assert found.kind == 'current' and 'exceed the effort limits' in found.advice
    assert not diagnose(limited, recording, without=('current',)).findings
    doubled = replace(recording, effort=2.0 * recording.effort)
    assert [x.kind for x in diagnose(limited, doubled).findings] == ['common_gain']


def test_a_joint_at_rest_is_not_reported_as_stuck():
    one = case((), 0)
    recording = one.recording()
    stands = np.arange(len(one.names)) == 2
    still = replace(recording, velocity=np.where(stands, 0.0, recording.velocity), position=(
        recording.position * ~stands + 1e-5 * stands * np.random.default_rng(0).normal(
            size=recording.position.shape)), effort=np.where(stands, 1.0, recording.effort))
    assert 'stuck' not in {x.kind for x in diagnose(one.described, still).findings}


def test_the_same_mistake_of_two_recordings_is_one_finding():
    one = case(('wrapped',), 3)
    assert [x.kind for x in diagnose(one.described, [one.recording()] * 2).findings] == ['wrapped']


def test_factors_are_excluded_on_request_and_nothing_is_refused():
    one = case(('common_gain',), 0)
    found = diagnose(one.described, one.recording(), without=('gain', 'common_gain', 'current'))
    assert not {'gain', 'common_gain', 'current'} & {x.kind for x in found.findings}
    with pytest.raises(StateError, match='no recordings'):
        diagnose(one.described, [])
    recording, rng = one.recording(), np.random.default_rng(0)
    with pytest.raises(RecordingError, match='stands still'):
        diagnose(one.described, replace(
            recording, velocity=0.0 * recording.velocity,
            position=1e-5 * rng.normal(size=recording.position.shape)))


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_friction_reveals_the_sign_of_efforts_without_gravity_and_inertia(sign):
    # A light arm that turns slowly about the vertical.
    model = (rbd_ros.ModelBuilder('turntable').link('base')
             .link('arm', mass=0.01, com=(0.01, 0, 0), inertia=1e-6 * np.eye(3))
             .joint('turn', 'revolute', 'base', 'arm', axis=(0, 0, 1)).build())
    true = with_friction(model, damping=[2.0], friction=[3.0])
    one = measured.recording(true, 1, 30.0, noise=0.02, speed=0.5)
    found = diagnose(model, replace(one, effort=sign * one.effort)).findings
    assert [(x.kind, x.place) for x in found] == [('sign', 'turn')] * (sign < 0.0)


@pytest.mark.filterwarnings('error')
def test_a_payload_without_a_mass_has_no_centre():
    nothing = Change('tool', ('elbow',), np.zeros((1, 1, 4)))
    found = words(nothing, np.zeros(4), robot('ur5_robot.urdf'), HYPOTHESES['payload'])
    assert found['centre'] == 'nan, nan, nan'


def written(folder, kinds=(), name='double_pendulum.urdf'):
    """Write a case as files, and return it and the arguments of the command."""
    one = planted(name, kinds, (1, 5))
    write_recording(folder / 'run.csv', one.recording())
    save_drives(one.described, folder / 'drives.yaml')
    return one, [str(example_urdf(name)), str(folder / 'run.csv'), '--params',
                 str(folder / 'drives.yaml')]


# Of two joints, other mistakes look like a payload.
@pytest.mark.parametrize('name, kinds, code', [
    ('double_pendulum.urdf', (), 0), ('ur5_robot.urdf', ('payload',), 2),
    ('double_pendulum.urdf', ('current',), 2), ('double_pendulum.urdf', ('two_publishers',), 2)])
def test_diagnose_prints_its_findings_and_writes_json_and_a_report(name, kinds, code, tmp_path,
                                                                   capsys):
    one, arguments = written(tmp_path, kinds, name)
    assert code_of('diagnose', *arguments, '--json', str(tmp_path / 'a.json'), '--report',
                   str(tmp_path / 'a.html')) == code
    printed = capsys.readouterr().out.splitlines()
    result = json.loads((tmp_path / 'a.json').read_text())
    assert [finding['kind'] for finding in result['findings']] == [*kinds]
    assert all({'kind', 'joints', 'value', 'unit', 'deviation', 'explains', 'advice'}
               <= finding.keys() for finding in result['findings'])
    page = (tmp_path / 'a.html').read_text()
    assert ('data:image/png' in page) == (kinds != ('two_publishers',))
    assert printed[0].startswith(kinds[0] if kinds else one.names[0])
    assert ('nothing found' in '\n'.join(printed)) == (not kinds)
    assert printed[0].count('+-') == {('payload',): 1, ('current',): len(one.names)}.get(kinds, 0)
    if 'payload' in kinds:
        assert 'payload_mass' in printed[0]
        assert {*result['residual']} == {*one.names}
        assert escape(printed[0]) in page


def test_diagnose_refuses_missing_files_and_recordings_without_efforts(tmp_path, capsys):
    one, arguments = written(tmp_path)
    assert code_of('diagnose', arguments[0], str(tmp_path / 'none.csv')) == 1
    assert code_of('diagnose', *arguments, '--json', arguments[1]) == 1
    assert 'will not be replaced' in capsys.readouterr().err
    assert code_of('diagnose', *arguments, '--payload', 'nothing') == 1
    write_recording(tmp_path / 'run.csv', replace(one.recording(), effort=None))
    assert code_of('diagnose', *arguments) == 1
