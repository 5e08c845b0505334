# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Choices and errors of the demo, and its modes with real nodes."""

from contextlib import nullcontext
from itertools import pairwise
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.demo import gravity, motions, picture, session
from rbd_ros.ros.demo.command import main, MODES, prepare
from rbd_ros.ros.demo.robots import choose_engine, DemoFailed, heavy_position, tip, too_weak
from rbd_ros.ros.demo.session import Phase, Sample, Session
from rbd_ros.ros.demo.table import fixed
from rbd_ros.ros.demo.torque_modes import (
    AdaptiveMode, ComputedTorqueMode, hanging, HybridMode, ImpedanceMode)
from rbd_ros.ros.nodes.simulated_control import with_rotors
from rbd_ros.ros.runtime.share_directory import share
from robots import example_urdf, load_quietly

# A mass of 1 kg on a rod of 1 m, which needs up to 9.81 N m about y.
ROD = """<robot name="rod"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 1"/>
 <mass value="1"/><inertia ixx="1e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="1e-6"/></inertial>
 </link><joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
 <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="{effort}" velocity="10"/></joint>
 </robot>"""


@pytest.fixture
def robot():
    """Return the demo arm as text and model."""
    text = share('urdf', 'demo_arm.urdf').read_text()
    return text, rbd_ros.load_urdf_string(text)


# -- Physics engines. ----------------------------------------------------------------------------

def test_the_demo_runs_in_mujoco_by_default(robot):
    pytest.importorskip('mujoco')
    q = heavy_position(robot[1])
    for wanted in ('', 'mujoco'):
        node, line = choose_engine(wanted, *robot, q)
        assert node == 'mujoco_robot' and 'MuJoCo' in line and '\n' not in line
    node, line = choose_engine('own', *robot, q)
    assert node == 'simulated_robot' and 'MuJoCo' not in line


def test_without_mujoco_the_extra_to_install_is_named(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    q = heavy_position(robot[1])
    node, line = choose_engine('', *robot, q)
    assert node == 'simulated_robot' and 'rbd_ros[mujoco]' in line
    with pytest.raises(rbd_ros.ModelError, match=r'rbd_ros\[mujoco\]'):
        choose_engine('mujoco', *robot, q)


def test_a_robot_rejected_by_mujoco_is_simulated_by_rbd_ros_with_the_reason():
    pytest.importorskip('mujoco')
    path = example_urdf('hyq_no_sensors.urdf')
    _, node, line = prepare('gravity', path.read_text(), load_quietly(path), '')
    assert node == 'simulated_robot' and 'MuJoCo refuses' in line
    with pytest.raises(DemoFailed, match=r'MODE=adaptive needs MuJoCo.*MuJoCo refuses'):
        prepare('adaptive', path.read_text(), load_quietly(path), '')


def test_the_hardest_pose_is_one_that_the_drives_can_hold():
    strong, weak = (rbd_ros.load_urdf_string(ROD.format(effort=effort)) for effort in (100, 5))
    assert abs(np.sin(heavy_position(strong)[0])) > 0.99
    load = 9.81 * abs(np.sin(heavy_position(weak)[0]))
    assert 0.6 * 5.0 < load <= 0.7 * 5.0
    assert too_weak(weak, heavy_position(weak)) == ''


def test_drives_that_can_hold_no_pose_are_named_with_their_limits():
    pytest.importorskip('mujoco')
    text = ROD.format(effort=1e-3)
    model = rbd_ros.load_urdf_string(text)
    q = heavy_position(model)
    words = rf"'hinge' needs {9.81 * abs(np.sin(q[0])):.3g} N m, .* at most 0.001 N m"
    node, line = choose_engine('', text, model, q)
    assert node == 'simulated_robot' and re.search(words, line)
    assert choose_engine('mujoco', text, model, q)[0] == 'mujoco_robot'
    assert re.search(words, gravity.why_it_fell(model, q, 0.001, 0.002))


# -- Poses and motions. --------------------------------------------------------------------------

@pytest.mark.parametrize('name', ['demo_arm', 'ur10_robot.urdf', 'talos_reduced.urdf'])
def test_the_free_joint_starts_where_it_hangs_at_rest(name):
    model = load_quietly(share('urdf', 'demo_arm.urdf') if name == 'demo_arm'
                         else example_urdf(name))
    q, k = hanging(model)
    assert abs(rbd_ros.gravity_torques(model, q)[k]) < 1e-9
    # It is pulled back from both sides.
    for way in (0.1, -0.1):
        away = q.copy()
        away[k] += way
        assert way * rbd_ros.gravity_torques(model, away)[k] > 0.0
    assert model.lower[k] < q[k] < model.upper[k]


def test_motions_stay_within_all_limits_and_their_derivatives_fit(robot):
    model = with_rotors(robot[1])
    q = heavy_position(model)
    motion = motions.Motion(model, q, 6.0, (2,))
    message = motion.message(1e9 + 0.25)
    assert message.joint_names == [name for k, name in enumerate(model.velocity_names) if k != 2]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (10 ** 9, 250_000_000)
    rows = [np.array([getattr(point, label) for point in message.points])
            for label in ('positions', 'velocities', 'accelerations')]
    t = np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
                  for point in message.points])
    assert t[0] == 1.0 and t[-1] == 7.0
    for values, rates in pairwise(rows):
        assert np.max(np.abs(np.gradient(values, t, axis=0)[1:-1] - rates[1:-1])) < 0.02
    moving = [k for k in range(model.nv) if k != 2]
    assert np.all(np.ptp(rows[0], axis=0) > 0.1)
    assert np.allclose(rows[0][[0, -1]], q[moving]) and np.allclose(rows[1][[0, -1]], 0.0)
    assert np.allclose(motion.at(3.0)[moving], rows[0][150]) and motion.at(3.0)[2] == q[2]
    assert np.all(np.abs(rows[1]) <= model.velocity_limit[moving])


def test_limits_without_room_for_a_motion_are_an_error():
    model = rbd_ros.load_urdf_string(ROD.format(effort=1e-3))
    with pytest.raises(DemoFailed, match="limits of 'rod'"):
        motions.Motion(model, np.array([1.0]), 6.0)


def test_tip_is_the_last_link_moved_by_the_most_joints():
    assert tip(load_quietly(example_urdf('ur10_robot.urdf'))) == 'tool0'


@pytest.mark.parametrize('value, form, text', [
    (-0.001, '.2f', '+0.00'), (-0.0, '.2e', '+0.00e+00'), (-0.006, '.2f', '-0.01'),
    (1.5, '.4f', '+1.5000'), (-2.5e-4, '.2e', '-2.50e-04')])
def test_no_number_is_minus_zero(value, form, text):
    assert fixed(value, form) == text


# -- The command. --------------------------------------------------------------------------------

@pytest.fixture
def domain(monkeypatch):
    """Put the variables back that the command sets."""
    monkeypatch.setenv('ROS_DOMAIN_ID', '0')
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')


@pytest.mark.parametrize('arguments, words', [
    (['--mode', 'flying'], 'MODE must be one of gravity, computed_torque, hybrid'),
    (['--engine', 'bullet'], "ENGINE must be one of own, mujoco, got 'bullet'"),
    (['--mode', 'impedance', '--engine', 'own'], 'MODE=impedance needs MuJoCo'),
    (['--mode', 'adaptive', '--engine', 'own'], 'MODE=adaptive needs MuJoCo'),
    (['--urdf', '/nowhere.urdf'], '/nowhere.urdf')])
def test_invalid_options_print_one_line_and_exit_with_code_1(arguments, words, capfd, domain):
    assert main(['--headless', *arguments]) == 1
    out, err = capfd.readouterr()
    assert words in out and out.count('\n') == 1 and err == ''


@pytest.mark.parametrize('mode', [
    pytest.param(mode, marks=[pytest.mark.long] if k else []) for k, mode in enumerate(MODES)])
def test_each_mode_runs_with_real_nodes_and_its_exit_code_is_that_of_its_checks(
        mode, capfd, domain, monkeypatch, tmp_path):
    pytest.importorskip('mujoco')
    for module, name, seconds in (
            (gravity, 'COMPENSATED', 1.0), (gravity, 'RELEASED', 1.0),
            (ComputedTorqueMode, 'MOTION', 4.0), (HybridMode, 'MOTION', 4.0),
            (ImpedanceMode, 'FREE', 0.6), (ImpedanceMode, 'PUSHED', 1.0),
            (AdaptiveMode, 'WITHOUT', 4.0), (AdaptiveMode, 'WITH', 4.0),
            (AdaptiveMode, 'COMPARED', 1.0)):
        monkeypatch.setattr(module, name, seconds)
    # Criteria may fail on a busy machine; they are tested in simulated time elsewhere.
    monkeypatch.setattr('rbd_ros.ros.demo.session.ATTEMPTS', 1)
    checks, processes = [], []
    for kind in MODES.values():
        run = kind.run
        monkeypatch.setattr(kind, 'run', lambda *args, run=run: (
            checks.extend(run(*args)) or checks))
    start = Session._start
    monkeypatch.setattr(Session, '_start', lambda session, name, *args: (
        start(session, name, *args), processes.append(session._processes[name]))[0])
    plot = tmp_path / 'demo.png'
    code = main(['--headless', '--mode', mode, '--plot', str(plot)])
    out, _ = capfd.readouterr()
    assert checks and code == int(not all(check.passed for check in checks))
    for check in checks:
        assert ('' if check.passed else 'FAILED: ') + check.text in out.splitlines()
    assert 'Physics by MuJoCo' in out and '-0.00' not in out.replace('-0.00e', '')
    assert plot.read_bytes().startswith(b'\x89PNG')
    # No process is left behind, whether the demo passed or not.
    assert len(processes) == 2 and all(one.poll() is not None for one in processes)


def test_nodes_that_end_unexpectedly_or_with_an_error_are_named():
    ended = Session.__new__(Session)
    ended._processes = {'dynamics_node': SimpleNamespace(
        returncode=3, poll=lambda: 3, wait=lambda timeout: 3, send_signal=lambda number: None)}
    ended._executor = SimpleNamespace(spin_once=lambda **options: None)
    with pytest.raises(DemoFailed, match='dynamics_node ended unexpectedly, exit code 3'):
        ended._wait('joint states', lambda: False)
    with pytest.raises(DemoFailed, match='dynamics_node ended with exit code 3'):
        ended.stop('dynamics_node')


@pytest.mark.parametrize('reasons, refused', [
    ((), ''), (('kernels that it needs are being compiled; wait',) * 2, ''),
    (('mode must be one of gravity, hybrid',), 'mode must be one of')])
def test_setting_a_mode_is_retried_while_its_kernels_are_compiled(monkeypatch, reasons, refused):
    calls, waits, refusals = [], [], list(reasons)

    class Client:
        """Rejects a parameter some times."""

        def __init__(self, node, name):
            assert (node, name) == ('node', 'controller')

        def services_are_ready(self):
            """Return None."""

        def set_parameters(self, wanted):
            calls.append([(one.name, one.value) for one in wanted])
            result = SimpleNamespace(successful=not refusals,
                                     reason=refusals.pop() if refusals else '')
            return SimpleNamespace(done=bool, result=lambda: SimpleNamespace(results=[result]))

    one = Session.__new__(Session)
    one._node, one._controller, one._processes, one._changed = 'node', 'controller', {}, {}
    monkeypatch.setattr(session, 'AsyncParameterClient', Client)
    monkeypatch.setattr(Session, '_wait', lambda self, what, arrived: waits.append(what))
    with pytest.raises(DemoFailed, match=refused) if refused else nullcontext():
        one.set_parameters(mode='hybrid')
    assert one._changed == ({} if refused else {'mode': 'hybrid'})
    attempts = 1 if refused else len(reasons) + 1
    assert calls == [[('mode', 'hybrid')]] * attempts
    assert waits.count('its kernels') == attempts - 1


def test_a_restart_resets_the_robot_and_keeps_the_parameters_of_the_controller(monkeypatch):
    done = []
    one = Session.__new__(Session)
    one._processes = {'mujoco_robot': None, 'torque_controller': None}
    one._node = SimpleNamespace(destroy_subscription=lambda one: done.append('no torques'))
    one._launched = 'torque_controller', {'push_link': 'tip'}, {'mode': 'pd_gravity'}
    one._torques, one._changed = 'torques', {'mode': 'hybrid', 'hybrid__kp': [100.0]}
    monkeypatch.setattr(Session, 'stop', lambda self, name: done.append(f'stop {name}'))

    def launch(self, controller, *, robot, parameters):
        # Old messages must not be taken for those of the new nodes.
        assert self._state is None and not self._torques_known
        self._changed = {}
        done.append((controller, robot, parameters))

    monkeypatch.setattr(Session, 'launch', launch)
    monkeypatch.setattr(Session, 'set_parameters', lambda self, **given: done.append(given))
    one.restart()
    assert done == ['stop mujoco_robot', 'stop torque_controller', 'no torques',
                    ('torque_controller', {'push_link': 'tip'}, {'mode': 'pd_gravity'}),
                    {'mode': 'hybrid', 'hybrid__kp': [100.0]}]


def test_torques_have_one_scale_for_each_unit_and_small_ones_share_a_row():
    robot = rbd_ros.ModelBuilder('mixed').link('base')
    for parent, joint, kind, link in (
            ('base', 'strong', 'revolute', 'a'), ('a', 'slide', 'prismatic', 'b'),
            ('b', 'weak', 'revolute', 'c'), ('c', 'idle', 'revolute', 'd')):
        robot.link(link, 1.0, inertia=[1.0] * 3).joint(joint, kind, parent, link)
    model = robot.build()
    taus = np.array([[-40.0, 3.0, 0.5, 0.0], [10.0, 5.0, -0.7, 0.1]])
    mode = SimpleNamespace(title='', strips=lambda _: [], poses=lambda _: [np.zeros(4)],
                           model=model, error_name='error', tolerance=1.0)
    session = SimpleNamespace(
        mode=mode, phases=[Phase('all', True, 0)],
        samples=[Sample(float(k), np.zeros(4), tau, np.zeros(4)) for k, tau in enumerate(taus)])
    axes = picture.draw(session).axes[1]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ['strong', '2 others, the largest:\nweak', 'slide']
    curves = [np.ptp(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 2
              and line.get_color() == picture.PLAIN]
    # 50 N m fill a strip, as 5 N do.
    np.testing.assert_allclose(curves, 0.8 * np.array([50.0, 1.2, 2.0]) / [50.0, 50.0, 5.0])
