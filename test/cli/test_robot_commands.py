# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros check``, ``torques`` and ``compare``, and xacro files."""

import json
from pathlib import Path
import re
import sys
from types import ModuleType
from xml.etree import ElementTree

from command_line import ARM, code_of, one_line
import numpy as np
from optional import Optional
import pytest
import rbd_ros
from rbd_ros.cli.main import main
from robots import all_example_urdfs, example_urdf, load_quietly
import yaml

parquet = Optional('pyarrow.parquet')

# Numbers are printed with nine digits.
PRINTED = 1e-8
# Files have 13 digits.
WRITTEN = 1e-11
XACRO = """<robot name="one" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="1"/>
<link name="a"/><link name="b"><inertial><mass value="$(arg mass)"/>
<inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" effort="9" velocity="2"/></joint></robot>"""


# -- check. ---------------------------------------------------------------------------------------

def test_check_prints_order_tree_masses_and_warnings(capsys):
    assert main(['check', str(example_urdf('panda.urdf'))]) == 0
    text = capsys.readouterr().out
    assert 'panda: 13 links, 12 joints, 8 degrees of freedom, 17.4519 kg' in text
    assert text.index('0  panda_joint1 ') < text.index('7  panda_finger_joint1 ')
    assert 'panda_finger_joint2 [prismatic = 1 panda_finger_joint1 +0]' in text
    assert text.count('\n  7 joints, panda_joint1, ') == 1
    assert 'unknown attributes of <dynamics> are not used: D, K, mu_coulomb, mu_viscous' in text
    assert main(['check', str(example_urdf('ur5_robot.urdf'))]) == 0
    assert 'No warnings.' in capsys.readouterr().out
    assert main(['check', '--floating-base', str(example_urdf('anymal-kinova.urdf'))]) == 0
    text = capsys.readouterr().out
    assert 'base_wx' in text
    assert 'Positions: base_qx' in text
    assert 'no body has' in text


def test_a_robot_may_be_named_as_in_robot_descriptions(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for kind in ('URDF_PATH', 'MJCF_PATH'):
        package, module = ModuleType('robot_descriptions'), ModuleType('one')
        path = tmp_path / f'{kind}.xml'
        path.write_text(Path(ARM).read_text() if kind == 'URDF_PATH' else
                        '<mujoco model="other"><worldbody><body><joint/><geom size=".1"/></body>'
                        '</worldbody></mujoco>')
        setattr(module, kind, str(path))
        package.__path__ = []
        monkeypatch.setitem(sys.modules, 'robot_descriptions', package)
        monkeypatch.setitem(sys.modules, 'robot_descriptions.one_description', module)
        assert main(['check', 'one_description']) == 0
        assert ('demo_arm: ' if kind == 'URDF_PATH' else 'other: ') in capsys.readouterr().out
    # Files come first, and other names are files.
    Path('one_description').write_text('Dear reader')
    assert code_of('check', 'one_description') == 1
    assert 'not XML' in one_line(capsys)
    monkeypatch.setitem(sys.modules, 'robot_descriptions.nobody_description', ModuleType('none'))
    assert code_of('check', 'nobody_description') == 1
    assert 'nobody_description' in one_line(capsys)


def test_robots_of_robot_descriptions_may_be_xacro_files_or_out_of_reach(
        capsys, monkeypatch, tmp_path):
    package = ModuleType('robot_descriptions')
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, 'robot_descriptions', package)
    for name, text in {
            'made': f'print("Cloning")\nXACRO_PATH, OUT = "arm.xacro", {ARM!r}\n',
            'far': 'print("Cloning")\nraise RuntimeError("could not\\n  resolve host")',
            'bare': 'XACRO_PATH = "arm.xacro"\nOUT = None',
            '_xacro': 'def get_urdf_path(module):\n    if module.OUT is None:\n'
                      '        raise ModuleNotFoundError("pip install xacrodoc")\n'
                      '    return module.OUT\n'}.items():
        (tmp_path / f'{name}.py').write_text(text)
        monkeypatch.delitem(sys.modules, f'robot_descriptions.{name}', raising=False)
    # What it prints is no part of the output.
    assert main(['check', '--json', 'made']) == 0
    assert json.loads(capsys.readouterr().out)['name'] == 'demo_arm'
    for name, reason in (('far', 'could not resolve host; the first use of a name needs git and '
                          'a network'), ('bare', 'pip install xacrodoc')):
        assert code_of('check', name) == 1
        assert f"refused: '{name}' of robot_descriptions: {reason}" in capsys.readouterr().err


@pytest.mark.parametrize('name, text, message', [
    ('a.urdf', 'Dear reader,\n', "this is not XML: a URDF begins with <robot>, this with 'Dear"),
    ('a.csv', 'time,elbow/position\n', 'this is not XML'), ('a.urdf', '', 'this is not XML'),
    ('a.urdf', '<html/>', 'the outermost element is <html>, expected <robot>'),
    ('a.png', '\x89PNG', 'this is not XML')])
def test_a_file_that_is_no_robot_is_refused_as_a_file(capsys, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    assert code_of('check', str(tmp_path / name)) == 1
    line = one_line(capsys)
    assert f'{name}: ' in line and message in line
    assert 'pass' not in line.replace(str(tmp_path), '')


def test_check_exits_with_1_on_refusal(capsys):
    assert main(['check', '--strict', str(example_urdf('alex_psyonic_hands.urdf'))]) == 1
    assert 'refused: ' in capsys.readouterr().err


def test_check_as_json_has_limits_damping_and_friction_of_every_coordinate(capsys, tmp_path):
    arm = Path(ARM).read_text().replace('friction="0"', 'friction="0.7"', 1)
    arm = arm.replace('type="revolute"', 'type="continuous"', 1)
    (tmp_path / 'arm.urdf').write_text(arm)
    model = load_quietly(tmp_path / 'arm.urdf')
    assert main(['check', '--json', str(tmp_path / 'arm.urdf')]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one['name'] for one in found['coordinates']] == list(model.velocity_names)
    for label in ('lower', 'upper', 'velocity_limit', 'effort_limit', 'damping', 'friction'):
        assert [one[label] for one in found['coordinates']] == [
            x if np.isfinite(x) else None for x in getattr(model, label)], label
    assert found['coordinates'][0]['lower'] is None
    assert 0.7 in [one['friction'] for one in found['coordinates']]
    assert found['coordinates'][0]['unit'] == 'rad'
    assert sum(link['mass'] for link in found['links']) == pytest.approx(model.mass)
    assert [joint['child'] for joint in found['joints']] == list(model.link_names[1:])
    assert found['warnings'] == list(model.warnings)


def test_check_takes_every_robot_of_example_robot_data(capsys):
    for path in all_example_urdfs():
        assert main(['check', str(path)]) == 0
        text = capsys.readouterr().out
        assert main(['check', '--json', str(path)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert re.search(rf": {len(found['links'])} links?, {len(found['joints'])} joints?,", text)
        assert {link['name'] for link in found['links']} == {
            link.get('name') for link in ElementTree.parse(path).getroot().findall('link')}
        assert 'nan' not in text


# -- xacro. ---------------------------------------------------------------------------------------

def test_xacro_files_are_taken_like_urdf(capsys, tmp_path):
    path = tmp_path / 'one.urdf.xacro'
    path.write_text(XACRO)
    assert main(['torques', str(path), '--xacro-args', 'mass:=3']) == 0
    assert float(capsys.readouterr().out.split()[1]) == pytest.approx(3 * 9.81)
    assert rbd_ros.load_urdf(path).mass == 1.0
    assert rbd_ros.load_urdf(path, xacro_arguments=['mass:=4']).mass == 4.0


@pytest.mark.parametrize('text, arguments, message', [
    (XACRO, ['mass=3'], "arguments of xacro are name:=value, got 'mass=3'"),
    (XACRO.replace('arg mass', 'arg weight'), [], 'xacro failed: .*weight'),
    (XACRO.replace('1"/>', '${1/0}"/>'), [], 'xacro failed'), ('hello', [], 'xacro failed')])
def test_xacro_files_that_fail_are_refused_in_one_line(capsys, tmp_path, text, arguments, message):
    (tmp_path / 'one.xacro').write_text(text)
    more = ['--xacro-args', *arguments] if arguments else []
    assert code_of('check', str(tmp_path / 'one.xacro'), *more) == 1
    line = one_line(capsys)
    assert 'one.xacro: ' in line and re.search(message, line)


def test_without_xacro_the_error_names_the_package_to_install(capsys, tmp_path, monkeypatch):
    (tmp_path / 'one.xacro').write_text(XACRO)
    monkeypatch.setitem(sys.modules, 'xacro', None)
    assert code_of('check', str(tmp_path / 'one.xacro')) == 1
    assert 'pip install xacro' in one_line(capsys)


# -- torques. -------------------------------------------------------------------------------------

def printed_torques(capsys):
    """Return names, numbers and units of the lines that were printed."""
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    return [one[0] for one in lines], [float(one[1]) for one in lines], [one[2] for one in lines]


def test_torques_are_those_of_inverse_dynamics(capsys):
    model = rbd_ros.load_urdf(ARM)
    q, v, a = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 7))
    v[0] = -1e-5
    words = [['--' + label, *(repr(float(x)) for x in vector)]
             for label, vector in (('q', q), ('v', v), ('a', a))]
    assert main(['torques', ARM, *words[0], *words[1], *words[2]]) == 0
    names, numbers, units = printed_torques(capsys)
    expected = rbd_ros.inverse_dynamics(model, q, v, a)
    assert names == list(model.velocity_names) and set(units) == {'N m'}
    assert np.allclose(numbers, expected, rtol=PRINTED)
    assert main(['torques', ARM, *words[0], *words[1], *words[2], '--friction']) == 0
    with_friction = printed_torques(capsys)[1]
    assert np.allclose(with_friction, expected + rbd_ros.friction_torques(model, v), rtol=PRINTED)


def test_torques_take_joints_by_name_in_several_pieces(capsys):
    model = rbd_ros.load_urdf(ARM)
    assert main(['torques', ARM, '--q', 'elbow=-1', 'wrist_pitch=.5', '--q', 'shoulder_lift=1',
                 'shoulder_lift=2', '--gravity', '0', '-9.81', '0']) == 0
    q = np.zeros(7)
    q[1], q[3], q[5] = 2.0, -1.0, 0.5
    expected = rbd_ros.gravity_torques(rbd_ros.with_gravity(model, (0.0, -9.81, 0.0)), q)
    assert np.allclose(printed_torques(capsys)[1], expected, rtol=PRINTED)


def test_torques_of_robots_with_locked_joints_and_of_slides(capsys):
    path = str(example_urdf('panda.urdf'))
    assert main(['torques', path]) == 0
    assert printed_torques(capsys)[2] == ['N m'] * 7 + ['N']
    assert main(['torques', path, '--lock', 'panda_finger_joint1=0.02', 'panda_joint7']) == 0
    model = rbd_ros.with_locked_joints(
        load_quietly(path), {'panda_finger_joint1': 0.02, 'panda_joint7': 0.0})
    names, numbers, _ = printed_torques(capsys)
    assert names == list(model.velocity_names)
    assert np.allclose(numbers, rbd_ros.gravity_torques(model, np.zeros(6)), rtol=PRINTED)


def test_torques_beyond_limits_are_printed_with_a_warning_for_each(capsys, tmp_path):
    assert main(['torques', ARM, '--q', 'elbow=9', 'shoulder_pan=-2.9', '--v', 'elbow=-2.5',
                 'shoulder_pan=2.0', '--lock', 'flange_roll=3', 'wrist_pitch=2']) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 5
    assert err.splitlines() == [
        "warning: 'flange_roll': the position is 3 rad, its limits are -2.9 ... 2.9",
        "warning: 'elbow': the position is 9 rad, its limits are -2.3 ... 2.3",
        "warning: 'elbow': the velocity is -2.5 rad/s, its limit is 2.4"]
    # A slide that lifts 3 kg at 1e3 m/s^2: 3030 N.
    (tmp_path / 'one.xacro').write_text(XACRO)
    assert main(['torques', str(tmp_path / 'one.xacro'), '--xacro-args', 'mass:=3', '--a', '1e3',
                 '--q', '-0.1']) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: 'j': the position is -0.1 m, its limits are 0 ... 1",
        "warning: 'j': the effort is 3029 N, its limit is 9"]
    assert main(['torques', ARM, '--floating-base', '--q', 'base_x=99', 'elbow=2.3000005']) == 0
    assert capsys.readouterr().err == ''


def test_a_trajectory_beyond_joint_limits_causes_a_warning(tmp_path, capsys):
    points = [(t, {'positions': [0.0, x], 'velocities': [0.0, 0.0], 'accelerations': [0.0, 0.0]})
              for t, x in ((0.0, 0.0), (1.0, -2.5), (9.0, 2.4))]
    assert main(['torques', ARM, message(tmp_path / 'far.yaml', points=points), *LOCKED]) == 0
    assert capsys.readouterr().err == (
        "warning: 'elbow': the position is -2.5 rad, its limits are -2.3 ... 2.3\n")


def test_torques_of_a_floating_base_begin_at_its_neutral_quaternion(capsys):
    assert main(['torques', ARM, '--floating-base']) == 0
    names, numbers, _ = printed_torques(capsys)
    assert numbers[names.index('base_vz')] == pytest.approx(22.7 * 9.81)


# -- torques along a trajectory. ------------------------------------------------------------------

def message(path, *, points, names=('shoulder_lift', 'elbow')):
    path.write_text(yaml.safe_dump({'joint_names': list(names), 'points': [
        {**fields, 'time_from_start': {'sec': int(t), 'nanosec': round(t % 1.0 * 1e9)}}
        for t, fields in points]}))
    return str(path)


LOCKED = ('--lock', 'shoulder_pan', 'upper_arm_roll', 'forearm_roll', 'wrist_pitch', 'flange_roll')
WAY = [[0, 0], [0.4, 0.8], [1, 1]]
STATES = [(0.0, [0.1, 0.2], [0.3, 0.0], [1.0, -1.0]), (1.5, [0.3, 0.4], [0.0, -0.2], [2.0, 0.5])]
POINTS = [(t, {'positions': q, 'velocities': v, 'accelerations': a}) for t, q, v, a in STATES]


@pytest.fixture(scope='module')
def arm():
    """Return the arm of which two joints are left."""
    return rbd_ros.with_locked_joints(rbd_ros.load_urdf(ARM), dict.fromkeys(LOCKED[1:], 0.0))


@pytest.mark.parametrize('end', ['yaml', 'csv', 'parquet'])
def test_a_trajectory_is_filled_with_its_efforts(tmp_path, capsys, arm, end):
    path = message(tmp_path / 'way.yaml', points=POINTS)
    filled = tmp_path / f'filled.{end}'
    assert main(['torques', ARM, path, '-o', str(filled), *LOCKED]) == 0
    out = capsys.readouterr().out
    assert out.startswith('2 points in 1.5 s') and 'shoulder_lift' in out and 'rad/s at' in out
    expected = [rbd_ros.inverse_dynamics(arm, q, v, a) for _, q, v, a in STATES]
    # What is written can be read: the same efforts again, now of the file.
    for k, effort in enumerate(expected):
        for joint, x in zip(arm.velocity_names, effort):
            assert efforts_in(filled, joint)[k] == pytest.approx(x, rel=WRITTEN)
    again = tmp_path / 'again.yaml'
    assert main(['torques', ARM, str(filled), '-o', str(again), *LOCKED]) == 0
    for joint in arm.velocity_names:
        assert efforts_in(again, joint) == pytest.approx(efforts_in(filled, joint), rel=WRITTEN)


def efforts_in(path, joint):
    """Return the efforts of a joint in a file, by other readers."""
    if path.suffix == '.yaml':
        read = yaml.safe_load(path.read_text())
        column = read['joint_names'].index(joint)
        return [point['effort'][column] for point in read['points']]
    if path.suffix == '.parquet':
        return parquet.read_table(path)[f'{joint}/effort'].to_pylist()
    names, *rows = (line.split(',') for line in path.read_text().splitlines())
    return [float(row[names.index(f'{joint}/effort')]) for row in rows]


def test_a_trajectory_that_is_too_fast_is_computed_with_a_warning_and_exit_code_2(
        tmp_path, capsys, arm):
    fast = 2.0 * float(arm.velocity_limit[arm.velocity_names.index('elbow')])
    points = [(t, {'positions': [0.0, 0.0], 'velocities': [0.0, v], 'accelerations': [0.0, 0.0]})
              for t, v in ((0.0, 0.0), (1.0, fast))]
    path = message(tmp_path / 'fast.yaml', points=points)
    assert main(['torques', ARM, path, *LOCKED]) == 2
    out, error = capsys.readouterr()
    assert re.search(r'elbow .*!rad/s at 1.000 s', out)
    assert 'multiply all times by 2,' in error


@pytest.mark.parametrize('contained', [
    lambda plan: {'trajectory': plan}, lambda plan: {'joint_trajectory': plan},
    lambda plan: {'trajectory': {'joint_trajectory': plan}},
    lambda plan: {'model_id': 'arm', 'trajectory': [{'joint_trajectory': plan}]}])
def test_goals_and_messages_of_moveit_are_read_as_echo_prints_them(tmp_path, capsys, contained):
    path = tmp_path / 'goal.yaml'
    content = yaml.safe_load(Path(message(path, points=POINTS)).read_text())
    path.write_text(yaml.safe_dump(contained(content)) + '---\n')
    assert main(['torques', ARM, str(path), *LOCKED]) == 0
    assert '2 points' in capsys.readouterr().out


@pytest.mark.parametrize('content, error', [
    ('joint_names: [a, a]\npoints: []', 'joint_names must be a list of different names'),
    ('joint_names: [elbow]\npoints: []', 'the trajectory has no points'),
    ('points: []', "lacks 'joint_names'"),
    ('trajectory: [{points: []}, {points: []}]', 'the message has 2 trajectories, expected one'),
    ("joint_names: [elbow]\npoints: ['...']", 'ros2 topic echo --full-length prints all of them'),
    ('- 1', 'is not a trajectory_msgs/JointTrajectory'),
    ('joint_names: [elbow]\npoints: [{positions: [1], time_from_start: 0.5}]',
     'time_from_start: {sec: 0, nanosec: 0}'),
    ('{', 'this is not YAML'),
    ('joint_names: [elbow]\npoints: [{time_from_start: {sec: 0, nanosec: 0}}]', 'no positions'),
    ('joint_names: [elbow]\npoints: [{positions: [1, 2], time_from_start: {sec: 0, nanosec: 0}}]',
     'positions of point 0 must be 1 numbers'),
    ('joint_names: [elbow]\npoints: [{positions: [1], time_from_start: {sec: 0, nanosec: 0}}]',
     'lacks shoulder_lift: give the position with --lock'),
    ('joint_names: [elbow, shoulder_lift, knee]\n'
     'points: [{positions: [1, 2, 3], time_from_start: {sec: 0, nanosec: 0}}]',
     'no joint knee')])
def test_invalid_trajectory_files_are_refused(tmp_path, capsys, content, error):
    path = tmp_path / 'way.yaml'
    path.write_text(content)
    assert code_of('torques', ARM, str(path), '-o', str(tmp_path / 'out.yaml'), *LOCKED) == 1
    assert error in one_line(capsys)
    assert sorted(tmp_path.iterdir()) == [path]


def test_efforts_that_could_not_be_written_are_not_computed(tmp_path, capsys):
    path = message(tmp_path / 'way.yaml', points=POINTS)
    assert code_of('torques', ARM, path, '-o', f'{path}/out.yaml', *LOCKED) == 1
    out, err = capsys.readouterr()
    assert out == '' and err.endswith('way.yaml is not a directory; choose another one\n')


def test_tables_with_some_columns_of_a_kind_are_refused(tmp_path, capsys):
    path = tmp_path / 'way.csv'
    path.write_text('time,elbow/position,shoulder_lift/position,elbow/velocity\n0,1,2,3\n')
    assert code_of('torques', ARM, str(path), *LOCKED) == 1
    assert "no column 'shoulder_lift/velocity', but has it for other joints" in one_line(capsys)


@pytest.mark.parametrize('more, message', [
    (['way.yaml', '--q', 'elbow=1'], 'a trajectory or a state, not both'),
    (['-o', 'x.yaml'], 'give a trajectory'),
    (['way.yaml', '-o', 'x.txt'], 'must end in .csv, .parquet or .yaml'),
    (['--retime'], '--retime: requires a trajectory'),
    (['--acceleration', '3'], '--acceleration: is for --retime'),
    (['--jerk', '3'], '--jerk: is for --retime'),
    (['--effort-share', '0.5'], '--effort-share: is for --retime')])
def test_options_that_do_not_belong_together_are_refused(tmp_path, capsys, monkeypatch, more,
                                                         message):
    monkeypatch.chdir(tmp_path)
    assert code_of('torques', ARM, *more) == 1
    assert message in one_line(capsys)


# -- compare. -------------------------------------------------------------------------------------

CHANGES = [
    ('name="elbow" type', 'name="knee" type', ['joints in the first alone: elbow',
                                               'joints in the second alone: knee']),
    ('<mass value="2.7"', '<mass value="2.8"', [
        'mass of the robot: 22.7 / 22.8 kg', "link 'elbow_link': mass: 2.7 / 2.8 kg",
        "gravity torque of 'shoulder_lift': differs by up to"]),
    ('velocity="2.4"', 'velocity="2.5"', ["joint 'upper_arm_roll': velocity limit: 2.4 / 2.5"]),
    ('velocity="2.4"', 'velocity="2.4" acceleration="9" deceleration="8" jerk="70"', [
        f"joint 'upper_arm_roll': {label} limit: inf / {x}" for label, x in (
            ('acceleration', 9), ('deceleration', 8), ('jerk', 70))]),
    ('damping="0.3"', 'damping="0.31"', ["joint 'shoulder_pan': damping: 0.3 / 0.31"]),
    ('upper="2.3"', 'upper="2.2"', ["joint 'elbow': upper limit: 2.3 / 2.2"]),
    ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 -1"/>', [
        "joint 'shoulder_pan': axis: 0 0 1 / 0 0 -1"]),
    ('name="elbow" type="revolute"', 'name="elbow" type="continuous"', [
        "joint 'elbow': kind: revolute / continuous", "joint 'elbow': lower limit: -2.3 / -inf"]),
    ('ixx="0.000485"', 'ixx="0.0004851"', [
        "link 'flange_roll_link': inertia xx yy zz xy xz yz: 0.000485 "]),
]


@pytest.mark.parametrize('old, new, lines', CHANGES)
def test_compare_names_every_difference_and_exits_with_2(capsys, tmp_path, old, new, lines):
    text = Path(ARM).read_text()
    assert old in text
    (tmp_path / 'b.urdf').write_text(text.replace(old, new, 1))
    assert main(['compare', ARM, str(tmp_path / 'b.urdf')]) == 2
    printed = capsys.readouterr().out.splitlines()
    assert all(any(one.startswith(line) for one in printed) for line in lines), printed


def test_compare_finds_robots_equal_within_the_tolerance(capsys, tmp_path):
    (tmp_path / 'b.urdf').write_text(
        Path(ARM).read_text().replace('<mass value="2.7"', '<mass value="2.70001"'))
    other = str(tmp_path / 'b.urdf')
    assert main(['compare', ARM, ARM]) == 0
    assert main(['compare', ARM, other]) == 2
    capsys.readouterr()
    assert main(['compare', ARM, other, '--tolerance', '1e-5']) == 0
    assert capsys.readouterr().out == 'equal within 1e-05\n'


def test_compare_takes_full_turns_of_a_continuous_mimic_for_equal(capsys, tmp_path):
    text = Path(ARM).read_text().replace('name="elbow" type="revolute"', 'name="elbow" '
                                         'type="continuous"')
    joint = text.index('name="elbow" type')
    for name, offset in (('a', 3.0), ('b', 3.0 - 2.0 * np.pi), ('c', 3.5 - 2.0 * np.pi)):
        end = text.index('</joint>', joint)
        (tmp_path / f'{name}.urdf').write_text(
            text[:end] + f'<mimic joint="shoulder_lift" offset="{offset!r}"/>' + text[end:])
    first, *others = (str(tmp_path / f'{name}.urdf') for name in 'abc')
    assert main(['compare', first, others[0]]) == 0
    assert main(['compare', first, others[1]]) == 2
    assert "'elbow': multiplier and offset: 1 3 / 1 3.5" in capsys.readouterr().out


def test_compare_measures_gravity_torques_at_configurations_within_limits(capsys, tmp_path):
    # A slide that lifts one kilogram, and then three: 2 * 9.81 N everywhere.
    for name, mass in (('a', 1), ('b', 3)):
        (tmp_path / f'{name}.xacro').write_text(XACRO.replace('default="1"', f'default="{mass}"'))
    assert main(['compare', str(tmp_path / 'a.xacro'), str(tmp_path / 'b.xacro')]) == 2
    assert ("gravity torque of 'j': differs by up to 19.62 N, RMS 19.62 of 9.81"
            in capsys.readouterr().out)


def test_compare_takes_robots_without_a_joint_in_common(capsys):
    assert main(['compare', ARM, str(example_urdf('ur5_robot.urdf'))]) == 2
    assert 'joints in the second alone' in capsys.readouterr().out


# -- torques --retime. ----------------------------------------------------------------------------

def retimed(tmp_path, *more, end='yaml'):
    """Return the exit code and the file that retiming three points writes."""
    out = tmp_path / f'fast.{end}'
    points = [(float(k), {'positions': q}) for k, q in enumerate(WAY)]
    path = message(tmp_path / 'plan.yaml', points=points)
    return main(['torques', ARM, path, '--retime', '-o', str(out), *LOCKED, *more]), out


@pytest.mark.parametrize('more, options, limit', [
    (('--acceleration', '5', 'elbow=3', '--velocity', 'elbow=1'),
     {'acceleration_limit': [5.0, 3.0], 'velocity_limit': [9.0, 1.0]},
     r'rad/s at [\d.]+ s, of 1 '),
    (('--effort-share', '0.4'), {'effort_share': 0.4}, r'N m at [\d.]+ s, of {effort:g}\b'),
    (('--jerk', '80', 'elbow=40'), {'jerk_limit': [80.0, 40.0]}, '')])
def test_retime_writes_the_fastest_motion(tmp_path, capsys, arm, more, options, limit):
    code, out = retimed(tmp_path, *more)
    assert code == 0
    expected = rbd_ros.analysis.retime(arm, WAY, **options)
    read = yaml.safe_load(out.read_text())
    time = [point['time_from_start'] for point in read['points']]
    assert np.allclose([t['sec'] + 1e-9 * t['nanosec'] for t in time], expected.time, atol=1e-9)
    # Only motions with limited jerk have accelerations at every point.
    labels = {'positions': expected.q, 'velocities': expected.v, 'effort': expected.effort,
              **({'accelerations': expected.a} if 'jerk_limit' in options else {})}
    for label, values in labels.items():
        assert np.allclose([point[label] for point in read['points']], values, rtol=WRITTEN,
                           atol=1e-9 if label == 'accelerations' else 1e-11), label
    assert all(point.keys() == {*labels, 'time_from_start'} for point in read['points'])
    text = capsys.readouterr().out
    assert f'{len(expected.time)} points in {expected.time[-1]:g} s' in text and '!' not in text
    effort = 0.4 * arm.effort_limit[arm.velocity_names.index('elbow')]
    assert re.search('elbow .*' + limit.format(effort=effort), text)


def test_tables_of_retimed_motions_have_efforts_and_no_accelerations(tmp_path, arm):
    code, out = retimed(tmp_path, '--effort-share', '0.4', end='csv')
    assert code == 0
    expected = rbd_ros.analysis.retime(arm, WAY, effort_share=0.4)
    for joint, effort in zip(arm.velocity_names, expected.effort.T):
        assert np.allclose(efforts_in(out, joint), effort, rtol=WRITTEN, atol=1e-11)
    assert 'acceleration' not in out.read_text().splitlines()[0]


def test_retime_of_a_path_that_no_torque_holds_is_refused(tmp_path, capsys):
    assert retimed(tmp_path, '--effort-share', '0.01')[0] == 1
    assert "'shoulder_lift' needs" in one_line(capsys)
    assert not (tmp_path / 'fast.yaml').exists()
