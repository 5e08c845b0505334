# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot in MuJoCo: the same robot, its delay, its sensors, its load."""

import sys

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import with_friction
from rbd_ros.simulation.mujoco_robot import Load, mujoco_urdf, MujocoRobot
from robots import example_urdf, load_quietly

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

# Two programs compute the same: rounding.
EXACT = 1e-10
URDFS = {'panda': example_urdf('panda.urdf'), 'ur10': example_urdf('ur10_robot.urdf')}
TOOLS = {'panda': 'panda_hand', 'ur10': 'tool0'}
LOAD = 1.0, (0.0, 0.05, 0.04), np.diag([1e-3, 2e-3, 2.5e-3])


def model_of(name):
    """Return a robot with drives, its fingers locked where they are not zero."""
    model = load_quietly(URDFS[name])
    model = rbd_ros.with_locked_joints(model, {joint: 0.02 for joint in model.velocity_names
                                               if 'finger' in joint})
    names = model.velocity_names
    return rbd_ros.with_armature(
        with_friction(model, damping=dict.fromkeys(names, 1.0), friction=dict.fromkeys(names, 2.0),
                      effort_offset=dict(zip(names, 0.1 * np.arange(len(names))))),
        dict(zip(names, 0.1 + 0.05 * np.arange(len(names)))))


def robot_of(name, q=None, **options):
    """Return the same robot in MuJoCo."""
    return MujocoRobot(URDFS[name].read_text(), model_of(name), q, **options)


def some_state(model):
    rng = np.random.default_rng(5)
    return rbd_ros.random_configuration(model, rng), *rng.normal(size=(2, model.nv))


def test_mujoco_agrees_with_a_robot_whose_orientations_are_quaternions():
    # Products of inertia and joint axes depend on every one of the three quaternions.
    inertial = ('<inertial><origin xyz="0.1 0.2 0.3" quat_xyzw="{}"/><mass value="2"/>'
                '<inertia ixx="0.3" ixy="0.02" ixz="-0.01" iyy="0.4" iyz="0.03" izz="0.5"/>'
                '</inertial>')
    joint = ('<joint name="{0}" type="continuous"><origin xyz="0.3 0.1 0.2" quat_xyzw="{1}"/>'
             '<parent link="{2}"/><child link="{3}"/><axis xyz="0 0.6 0.8"/></joint>')
    text = ('<robot name="r" version="1.2"><link name="a"/>'
            f'<link name="b">{inertial.format("0.1 0.7 -0.3 0.4")}</link>'
            f'<link name="c">{inertial.format("-0.5 0.2 0.6 0.1")}</link>'
            + joint.format('j', '0.3 -0.2 0.5 0.6', 'a', 'b')
            + joint.format('k', '0.7 0.1 -0.4 0.2', 'b', 'c') + '</robot>')
    model = rbd_ros.load_urdf_string(text)
    q, v, a = some_state(model)
    robot, still = MujocoRobot(text, model), np.zeros(2)
    assert np.allclose(robot.inverse_dynamics(q, v, a), rbd_ros.inverse_dynamics(model, q, v, a),
                       rtol=0.0, atol=EXACT)
    g = robot.inverse_dynamics(q, still, still)
    M = np.transpose([robot.inverse_dynamics(q, still, one) - g for one in np.eye(2)])
    assert np.allclose(M, rbd_ros.mass_matrix(model, q), rtol=0.0, atol=EXACT)


@pytest.mark.parametrize('name', URDFS)
def test_mujoco_agrees_with_inverse_dynamics_with_and_without_a_payload(name):
    model = model_of(name)
    state = some_state(model)
    assert np.allclose(robot_of(name).inverse_dynamics(*state),
                       rbd_ros.inverse_dynamics(model, *state), rtol=0.0, atol=EXACT)
    # The principal axes of the last two are not those of the link; the last one is a thin rod.
    skew = np.array([[0.5, 0.05, 0.1], [0.05, 0.6, -0.08], [0.1, -0.08, 0.4]])
    rod = np.eye(3) - np.outer([0.48, 0.6, 0.64], [0.48, 0.6, 0.64])
    for load in (LOAD, (2.0, (0.1, 0.0, 0.2), skew), (2.0, (0.1, 0.0, 0.2), rod)):
        loaded = rbd_ros.with_payload(model, TOOLS[name], *load)
        assert np.allclose(robot_of(name, load=Load(TOOLS[name], *load)).inverse_dynamics(*state),
                           rbd_ros.inverse_dynamics(loaded, *state), rtol=0.0, atol=EXACT)


@pytest.mark.parametrize('name', URDFS)
def test_mujoco_accelerates_as_forward_dynamics_predicts(name):
    model = model_of(name)
    q = rbd_ros.random_configuration(model, 1)
    robot = robot_of(name, q, step=1e-6)
    wrench = np.array([1.0, 2.0, -1.0, 20.0, -30.0, 10.0])
    robot.push(TOOLS[name], wrench)
    tau = rbd_ros.gravity_torques(model, q) + 30.0
    tau = np.clip(tau, -model.effort_limit, model.effort_limit)
    robot.advance(tau, 100)
    assert np.all(robot.v != 0.0)
    J = rbd_ros.world_jacobian(model, q, TOOLS[name])
    expected = rbd_ros.forward_dynamics(
        model, q, np.zeros(model.nv),
        tau + J.T @ wrench - rbd_ros.friction_torques(model, robot.v))
    # Damping and motion change meanwhile.
    assert np.allclose(robot.v / robot.time, expected, rtol=2e-2, atol=1.0)
    assert np.allclose(robot.q - q, 0.5 * robot.v * robot.time, rtol=2e-2)


def test_friction_holds_a_joint_and_lets_it_go():
    model = model_of('panda')
    q = np.array([0.1, -0.3, 0.2, -1.8, 0.1, 1.6, 0.4])
    for more, moves in ((1.8, False), (2.2, True)):
        robot = robot_of('panda', q)
        for _ in range(1000):
            robot.advance(rbd_ros.gravity_torques(model, robot.q) + model.effort_offset + more)
        assert np.all(np.abs(robot.q - q) > 1e-3) if moves else np.all(
            np.abs(robot.q - q) < 1e-5)


def test_sensors_have_noise_of_the_size_that_was_asked_for():
    robot = robot_of('ur10', position_noise=1e-3, velocity_noise=np.linspace(0.0, 0.1, 6), seed=2)
    samples = [robot.measure() for _ in range(4000)]
    assert np.allclose(np.std([s.q for s in samples], axis=0), 1e-3, rtol=0.05)
    assert np.allclose(np.std([s.v for s in samples], axis=0), np.linspace(0.0, 0.1, 6), rtol=0.05)
    assert np.all([s.tau for s in samples] == np.zeros(6))
    assert np.array_equal(robot.q, np.zeros(6))
    again = robot_of('ur10', position_noise=1e-3, velocity_noise=np.linspace(0.0, 0.1, 6), seed=2)
    assert np.array_equal(again.measure().q, samples[0].q)


def test_brakes_hold_until_the_next_command():
    robot = robot_of('ur10', some_state(model_of('ur10'))[0], delay=0.01)
    robot.advance(np.zeros(6), 20)
    assert not robot.v.any()                     # the command has not arrived yet
    robot.advance(np.zeros(6), 200)
    assert np.linalg.norm(robot.v) > 0.01
    robot.brake()
    q = robot.q
    robot.advance(np.ones(6), 20)
    assert np.array_equal(robot.q, q) and not robot.measure().tau.any()


def test_a_wrench_on_the_mujoco_robot_can_be_removed():
    robot = robot_of('ur10')
    robot.push('tool0', np.ones(6))
    robot.push('tool0', np.zeros(6))
    other = robot_of('ur10')
    for one in (robot, other):
        one.advance(np.zeros(6), 100)
    assert np.array_equal(robot.q, other.q)


class DelayMachine(RuleBasedStateMachine):
    """
    Command a robot at any times beside a list of all commands.

    At any time the effort is the last command that is at least as old as the delay, and none
    before the first is.

    """

    @initialize(delay=st.sampled_from([0, 1, 3, 20]))
    def begin(self, delay):
        self.robot, self.delay = robot_of('ur10', delay=delay * 5e-4), delay
        self.given, self.now = [], 0

    @rule(steps=st.sampled_from([0, 1, 2, 7]), seed=st.integers(0, 99))
    def command(self, steps, seed):
        tau = np.random.default_rng(seed).uniform(-500.0, 500.0, 6)
        self.robot.advance(tau, steps)
        self.given.append((self.now, tau))
        self.now += steps

    @rule()
    def brake(self):
        self.robot.brake()
        self.given = []

    @rule()
    def refuse(self):
        with pytest.raises(rbd_ros.StateError):
            self.robot.advance(np.full(6, np.nan))

    @invariant()
    def effort_is_the_last_that_is_old_enough(self):
        """Find the effort of the last step anew."""
        if not hasattr(self, 'robot'):
            return
        arrived = [tau for k, tau in self.given if k + self.delay < self.now]
        expected = np.clip(arrived[-1], -self.robot.model.effort_limit,
                           self.robot.model.effort_limit) if arrived else np.zeros(6)
        assert np.array_equal(self.robot.measure().tau, expected)
        assert self.robot.time == self.now * 5e-4


def test_efforts_are_the_last_command_that_is_old_enough_within_the_limits_of_the_drives():
    run_machine(DelayMachine, 12, 25)


@pytest.mark.parametrize('options, error, message', [
    ({'load': Load('nose', 1.0)}, rbd_ros.ModelError, "no link 'nose'"),
    ({'load': Load('tool0', -1.0)}, rbd_ros.StateError, "load's mass"),
    ({'load': Load('tool0', 1.0, (0.0, 0.0))}, rbd_ros.StateError, "load's com"),
    ({'delay': -1.0}, rbd_ros.StateError, 'delay'), ({'step': 0.0}, rbd_ros.StateError, 'step'),
    ({'velocity_noise': [1.0]}, rbd_ros.StateError, 'velocity_noise'),
    ({'q': np.zeros(3)}, rbd_ros.StateError, 'q has the shape')])
def test_wrong_settings_are_refused_by_name(options, error, message):
    with pytest.raises(error, match=message):
        robot_of('ur10', **options)


def test_robots_that_do_not_fit_are_refused():
    ur10, panda = URDFS['ur10'].read_text(), model_of('panda')
    with pytest.raises(rbd_ros.ModelError, match='lacks the joints'):
        MujocoRobot(ur10, panda)
    with pytest.raises(rbd_ros.ModelError, match='cannot be read'):
        MujocoRobot('<robot', panda)
    with pytest.raises(rbd_ros.ModelError, match='MuJoCo refuses'):
        MujocoRobot(ur10.replace('type="revolute"', 'type="mystery"', 1), model_of('ur10'))
    with pytest.raises(rbd_ros.ModelError, match='quaternions, or that mimic'):
        MujocoRobot(ur10, rbd_ros.with_floating_base(model_of('ur10')))
    robot = robot_of('ur10')
    with pytest.raises(rbd_ros.ModelError, match='part of the root'):
        robot.push('base_link', np.ones(6))
    with pytest.raises(rbd_ros.StateError, match='wrench'):
        robot.push('tool0', np.ones(3))


def test_without_mujoco_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(rbd_ros.ModelError, match=r"pip install 'rbd_ros\[mujoco\]'"):
        robot_of('ur10')
    assert '<visual' not in mujoco_urdf(URDFS['ur10'].read_text(), model_of('ur10'))


# A robot that a strong motor turns: in one step beyond all numbers.
FEATHER = """<robot name="feather"><link name="base"/><link name="arm"><inertial>
    <mass value="1e-9"/><inertia ixx="1e-9" iyy="1e-9" izz="1e-9" ixy="0" ixz="0" iyz="0"/>
    </inertial></link><joint name="j" type="continuous"><parent link="base"/>
    <child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def test_a_diverging_motion_raises_and_the_robot_stays_where_it_was():
    robot = MujocoRobot(FEATHER, rbd_ros.load_urdf_string(FEATHER), [0.3])
    for _ in range(2):
        with pytest.raises(rbd_ros.StateError, match='no longer finite'):
            robot.advance([1e9], 20)
        assert robot.q == 0.3 and robot.v == 0.0
    # It can go on.
    robot.brake()
    robot.advance([1e-9], 2)
    assert 0.0 < robot.v[0] < 1.0


@pytest.mark.parametrize('name, written', [('MUJOCO_LOG.TXT', False), ('mine.txt', True)])
def test_mujoco_writes_a_log_only_if_the_user_named_it(tmp_path, monkeypatch, name, written):
    import mujoco
    monkeypatch.chdir(tmp_path)
    log = mujoco.MjLogConfig.get()
    before = log.logfile, log.logto_file
    log.logfile, log.logto_file = name, True
    log.set()
    try:
        robot = MujocoRobot(FEATHER, rbd_ros.load_urdf_string(FEATHER))
        with pytest.raises(rbd_ros.StateError):
            robot.advance([1e9], 20)
    finally:
        log.logfile, log.logto_file = before
        log.set()
    assert [path.name for path in tmp_path.iterdir()] == [name] * written
