# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Commands with robots that have closed loops, from URDF and from a file beside it."""

import json

from command_line import code_of, one_line
from loop_closed_forms import four_bar_joints
from loop_robots import document, loop_robot, MOTORS, moved_motors, URDF
from lxml import etree
import numpy as np
import pytest
import rbd_ros
from rbd_ros.cli.main import main
from rbd_ros.model.positions.configurations import closed_along
from rbd_ros.recordings.tables import read_table, write_table
from scipy.interpolate import CubicSpline

# Numbers are printed with nine digits.
PRINTED = 1e-8
FOUR_BAR = str(URDF / 'four_bar.urdf')
PIN = """constraints:
  - {name: pin, kind: revolute, link_a: coupler_link, link_b: rocker_link, xyz_a: [0.5, 0, 0],
     rpy_a: [1.5707963267948966, 0, 0], xyz_b: [0, 0, 0.4], rpy_b: [1.5707963267948966, 0, 0]}
"""


@pytest.fixture
def tree(tmp_path):
    """Return the path of the four-bar without its constraint."""
    root = document('four_bar')
    root.remove(root.find('constraint'))
    path = tmp_path / 'tree.urdf'
    path.write_bytes(etree.tostring(root))
    return str(path)


@pytest.fixture
def loops(tmp_path):
    """Return the path of a file of constraints with some text."""
    def write(text):
        path = tmp_path / 'loops.yaml'
        path.write_text(text)
        return str(path)
    return write


def printed(capsys, *arguments):
    """Return the numbers that `rbd_ros torques` prints, by joint."""
    assert main(['torques', *arguments]) == 0
    return {line.split()[0]: float(line.split()[1]) for line in
            capsys.readouterr().out.splitlines()}


def with_friction(oracle, q, v, a):
    """Return the efforts of the motors, with the friction of all joints."""
    G, tree = oracle.G(q), oracle.tree
    V = G @ v
    tau = tree.damping * V + tree.friction * np.sign(np.where(np.abs(V) < 1e-12, 0.0, V))
    return oracle.inverse_dynamics(q, v, a) + G.T @ tau


# -- check. ---------------------------------------------------------------------------------------
def test_check_prints_constraints_degrees_of_freedom_and_the_gap(capsys):
    assert main(['check', FOUR_BAR]) == 0
    text = capsys.readouterr().out
    for part in ('4 links, 3 joints, 1 degree of freedom', 'Positions: crank, coupler, rocker\n',
                 'Independent joints: crank\n', '\npin [revolute] coupler_link, rocker_link\n',
                 'Closed neutral configuration: crank=0 coupler=0 rocker=0\n',
                 "Widest gap: constraint 'pin' is closed\n", 'No warnings.'):
        assert part in text, part
    assert main(['check', FOUR_BAR, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['independent_joints'] == ['crank']
    (pin,) = found['constraints']
    assert (pin['name'], pin['kind'], pin['length']) == ('pin', 'revolute', None)
    assert np.asarray(pin['placement_a'])[:3, 3].tolist() == [0.5, 0.0, 0.0]
    assert main(['check', str(URDF / 'demo_arm.urdf')]) == 0
    assert 'onstraint' not in capsys.readouterr().out


# -- torques. -------------------------------------------------------------------------------------
@pytest.mark.parametrize('name', MOTORS)
def test_positions_of_the_motors_are_enough(name, capsys):
    oracle, motors = loop_robot(name), MOTORS[name]
    rng = np.random.default_rng(3)
    low, high = (np.clip(x[oracle.independent], -0.6, 0.6)
                 for x in (oracle.tree.lower, oracle.tree.upper))
    x, (v, a) = rng.uniform(low, high), rng.uniform(-1.0, 1.0, (2, len(motors)))
    expected = with_friction(oracle, moved_motors(oracle, x), v, a)
    numbers = [[f'{one:.15g}' for one in part] for part in (x, v, a)]
    found = printed(capsys, str(URDF / f'{name}.urdf'), '--friction', *(
        word for label, part in zip(('--q', '--v', '--a'), numbers) for word in (label, *part)))
    assert list(found) == motors
    assert list(found.values()) == pytest.approx(expected, rel=PRINTED, abs=PRINTED)
    by_name = printed(capsys, str(URDF / f'{name}.urdf'), '--friction', *(
        word for label, part in zip(('--q', '--v', '--a'), numbers) for word in (
            label, *(f'{joint}={one}' for joint, one in zip(motors, part)))))
    assert by_name == pytest.approx(found, rel=PRINTED, abs=PRINTED)


def test_positions_of_other_joints_choose_the_branch(capsys):
    model, crank = rbd_ros.load_urdf(FOUR_BAR), 1.2
    near = four_bar_joints(crank)['rocker']
    guess = [crank, 2.0, 3.0]
    far = rbd_ros.model.normalize(model, guess)
    assert abs(far[2] - near) > 0.5     # the other way to assemble it
    for given, q in ((['crank=1.2'], [crank, four_bar_joints(crank)['coupler'], near]),
                     (['1.2', '2', '3'], far), (['crank=1.2', 'rocker=3', 'coupler=2'], far)):
        expected = rbd_ros.gravity_torques(model, rbd_ros.model.normalize(model, q))
        found = printed(capsys, FOUR_BAR, '--q', *given)
        assert found['crank'] == pytest.approx(expected[0], abs=PRINTED), given
    # What is given of passive joints, and is not so, is said.
    assert main(['torques', FOUR_BAR, '--q', 'crank=0.4', 'rocker=0.5']) == 0
    assert "warning: 'rocker' is at" in capsys.readouterr().err
    # Limits of passive joints are checked, too.
    assert main(['torques', FOUR_BAR, '--q', '1.2', '2', '3']) == 0
    assert f"warning: 'rocker': the position is {far[2]:.4g} rad, its limits are -0.6 ... 0.7" in (
        capsys.readouterr().err)


def test_floating_robots_take_quaternions_of_the_base(capsys):
    model, turn = rbd_ros.load_urdf(FOUR_BAR, floating_base=True), np.sqrt(0.5)
    joints = four_bar_joints(1.2)
    q = [turn, 0.0, 0.0, turn, 1.0, 2.0, 3.0, 1.2, joints['coupler'], joints['rocker']]
    expected = dict(zip(model.velocity_names, rbd_ros.gravity_torques(model, q)))
    for given in (['2', '0', '0', '2', '1', '2', '3', '1.2'],
                  ['base_qx=1', 'base_qw=1', 'base_x=1', 'base_y=2', 'base_z=3', 'crank=1.2']):
        found = printed(capsys, FOUR_BAR, '--floating-base', '--q', *given)
        assert found == pytest.approx(expected, rel=PRINTED, abs=PRINTED)
    assert main(['torques', FOUR_BAR, '--floating-base', '--q', 'base_qw=0']) == 1
    assert "quaternion of joint 'base'" in capsys.readouterr().err


def test_trajectories_have_the_joints_with_motors(tmp_path, capsys):
    oracle, time = loop_robot('four_bar'), np.linspace(0.0, 2.0, 81)
    crank, v, a = 3.0 * np.sin(time), 3.0 * np.cos(time), -3.0 * np.sin(time)
    path, out = tmp_path / 'way.csv', tmp_path / 'out.csv'
    write_table(path, ['time', 'crank/position', 'crank/velocity', 'crank/acceleration'], time,
                crank[:, None], v[:, None], a[:, None])
    assert main(['torques', FOUR_BAR, str(path), '--friction', '-o', str(out)]) == 0
    names, columns = read_table(out)
    assert names == ['time'] + [f'crank/{label}' for label in (
        'position', 'velocity', 'acceleration', 'effort')]
    for k in (0, 33, 80):
        q = moved_motors(oracle, [crank[k]], steps=30)
        assert columns[k, 4] == pytest.approx(
            with_friction(oracle, q, [v[k]], [a[k]])[0], abs=1e-7)
    assert '81 points in 2 s' in capsys.readouterr().out


def test_rates_are_those_of_splines_through_the_positions_of_the_motors(tmp_path):
    time, motors = np.linspace(0.0, 2.0, 21), MOTORS['delta']
    x = 0.3 * np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    path, out = tmp_path / 'way.csv', tmp_path / 'out.csv'
    # In another order, and with a passive joint, whose positions are solved.
    write_table(path, ['time', *(f'{name}/position' for name in reversed(motors)),
                       'platform_x/position'], time, x[:, ::-1], 9.0 + time[:, None])
    assert main(['torques', str(URDF / 'delta.urdf'), str(path), '-o', str(out)]) == 0
    names, columns = read_table(out)
    assert [name for name in names if name.endswith('velocity')] == [
        f'{name}/velocity' for name in motors]
    assert names[1:5] == [f'motor_1/{label}' for label in (
        'position', 'velocity', 'acceleration', 'effort')]
    spline = CubicSpline(time, x, bc_type='clamped')
    for k, column in enumerate((spline(time), spline(time, 1), spline(time, 2))):
        assert np.allclose(columns[:, [1 + k, 5 + k, 9 + k]], column, rtol=0.0, atol=1e-9)
    k, oracle = 13, loop_robot('delta')
    tau = oracle.inverse_dynamics(moved_motors(oracle, x[k]), spline(time[k], 1),
                                  spline(time[k], 2))
    assert columns[k, [4, 8, 12]] == pytest.approx(tau, abs=1e-7)


def test_a_point_that_leaves_a_loop_open_is_named():
    slider = rbd_ros.load_urdf(URDF / 'slider_crank.urdf')
    slider = rbd_ros.model.with_constraints(slider, slider.constraints, ['slider'])
    with pytest.raises(rbd_ros.StateError, match=r'from way, point 1, with its positions of the '
                       r'independent joints, slider: .* is open by .* mm'):
        closed_along(slider, np.array([[0.0], [5.0]]), 'way')


# -- A file of constraints. -----------------------------------------------------------------------
def test_a_file_closes_the_loops_of_any_description(tree, loops, capsys):
    state = ['--q', '0.7', '--v', '2', '--a', '-1', '--friction']
    expected = printed(capsys, FOUR_BAR, *state)
    found = printed(capsys, tree, '--constraints', loops(PIN), *state)
    assert found == pytest.approx(expected, rel=PRINTED)
    found = printed(capsys, tree, '--constraints', loops('independent: [rocker]\n' + PIN))
    assert list(found) == ['rocker']
    # The constraints of the description stay if the file has none.
    assert list(printed(capsys, FOUR_BAR, '--constraints', loops('independent: [rocker]'))) == [
        'rocker']
    model = rbd_ros.model.load_constraints(rbd_ros.load_urdf(tree), loops(PIN))
    assert model.velocity_names == ('crank',)


@pytest.mark.parametrize('text, message', [
    (PIN.replace('coupler_link', 'copler'), "constraint 'pin' names link 'copler'"),
    (PIN.replace('revolute', 'hinge'), "constraint 'pin': its kind is 'hinge'"),
    ('independent: [crank, rocker]\n' + PIN, 'has 1 degree of freedom, but the independent'),
    ('independent: [wheel]\n' + PIN, "independent joint 'wheel': robot 'four_bar' has no such"),
    ('independent: [crank]', "it has no constraints, nor has robot 'four_bar'"),
    ('constraint: []', 'constraints: .* are expected, or independent'),
    ('constraints: 3', 'constraints: .* are expected, or independent'),
])
def test_bad_files_are_errors_that_name_them(tree, loops, text, message, capsys):
    path = loops(text)
    assert code_of('check', tree, '--constraints', path) == 1
    line = one_line(capsys)
    assert 'loops.yaml: ' in line
    with pytest.raises(rbd_ros.ModelError, match=message):
        rbd_ros.model.load_constraints(rbd_ros.load_urdf(tree), path)


def test_every_command_that_loads_a_robot_takes_the_file(capsys):
    for command in ('check', 'torques', 'excite', 'diagnose', 'identify', 'replay', 'view',
                    'compare'):
        with pytest.raises(SystemExit):
            main([command, '--help'])
        assert '--constraints FILE' in capsys.readouterr().out, command
    assert main(['check', FOUR_BAR, '--constraints', '/nowhere.yaml']) == 1
    assert '/nowhere.yaml' in capsys.readouterr().err


# -- compare. -------------------------------------------------------------------------------------
def test_compare_names_differences_between_constraints(tmp_path, tree, loops, capsys):
    few = '--configurations', '20'
    assert main(['compare', FOUR_BAR, FOUR_BAR, *few]) == 0
    assert main(['compare', tree, FOUR_BAR, *few, '--constraints', loops(PIN)]) == 0
    capsys.readouterr()
    assert main(['compare', FOUR_BAR, tree, *few]) == 2
    text = capsys.readouterr().out
    assert 'constraints in the first alone: pin' in text
    other = tmp_path / 'other.urdf'
    text = (URDF / 'four_bar.urdf').read_text()
    other.write_text(text.replace('parent_origin xyz="0.5 ', 'parent_origin xyz="0.48 '))
    assert main(['compare', FOUR_BAR, str(other), *few]) == 2
    text = capsys.readouterr().out
    assert "constraint 'pin': position in link a, m: 0.5 0 0 / 0.48 0 0" in text
    assert "gravity torque of 'crank': differs" in text


# -- replay and identify. -------------------------------------------------------------------------
def test_recordings_need_the_motors_only(tmp_path, tree, loops, capsys, monkeypatch):
    # Nobody looks at the plots.
    monkeypatch.setattr('rbd_ros.identification.report._panels', lambda *_, **__: '')
    oracle, time = loop_robot('four_bar'), np.arange(0.0, 4.0, 0.01)
    w = 2.0
    crank, v, a = (np.sin(w * time) * 2.0, 2.0 * w * np.cos(w * time),
                   -2.0 * w ** 2 * np.sin(w * time))
    effort = []
    for k in range(len(time)):
        joints = four_bar_joints(crank[k])
        q = np.array([crank[k], joints['coupler'], joints['rocker']])
        effort.append(with_friction(oracle, q, [v[k]], [a[k]]))
    recording, out = tmp_path / 'run.csv', tmp_path / 'out.csv'
    write_table(recording, ['time', 'crank/position', 'crank/velocity', 'crank/effort'], time,
                crank[:, None], v[:, None], np.array(effort))
    assert main(['replay', FOUR_BAR, str(recording), '-o', str(out), '--cutoff', '30']) == 0
    text = capsys.readouterr().out
    assert 'relative error while joints move' in text
    assert float(text.split('joints move: ')[1].split()[0]) < 0.5     # %, of the filter
    names, columns = read_table(out)
    assert names[:5] == ['time', 'crank/position', 'coupler/position', 'rocker/position',
                         'crank/velocity']
    middle = len(columns) // 2
    joints = four_bar_joints(columns[middle, 1])
    for k, name in ((2, 'coupler'), (3, 'rocker')):
        assert np.sin(0.5 * (columns[middle, k] - joints[name])) == pytest.approx(0.0, abs=1e-6)
    # The robot is written with its constraint, which only the file has.
    path = loops(PIN)
    assert main(['identify', tree, str(recording), '-o', str(tmp_path / 'found'), '--constraints',
                 path, '--cutoff', '30']) in (0, 2)
    found = rbd_ros.load_urdf(tmp_path / 'found' / 'robot.urdf')
    assert [one.name for one in found.constraints] == ['pin']
    assert rbd_ros.inverse_dynamics(found, q, [1.0], [2.0])[0] == pytest.approx(
        oracle.inverse_dynamics(q, np.array([1.0]), np.array([2.0]))[0], rel=0.02)
