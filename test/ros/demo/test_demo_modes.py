# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Each fault fails those acceptance criteria of the demo that it should; in simulated time."""

from copy import copy
from functools import cache

import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.control.controller import Circumstances
from rbd_ros.ros.control.law_factory import ControlSettings, make_controller
from rbd_ros.ros.demo import gravity
from rbd_ros.ros.demo.command import MODES, prepare
from rbd_ros.ros.demo.motions import LEAD
from rbd_ros.ros.demo.robots import DemoFailed
from rbd_ros.ros.demo.session import Phase, Sample, Session
from rbd_ros.ros.demo.torque_modes import (
    AdaptiveMode, ComputedTorqueMode, HybridMode, ImpedanceMode)
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.parameters.parameters import check
from rbd_ros.ros.runtime.share_directory import share
from rbd_ros.simulation.mujoco_robot import Load, MujocoRobot

pytest.importorskip('mujoco')

# s: of the physics, and between commands.
STEP, PERIOD = 2e-3, 4e-3
DEFAULTS = {name: one.default for name, one in TorqueController.settings.items()}


class Lockstep(Session):
    """A session without nodes: a control law, perhaps with a fault, and MuJoCo take turns."""

    def __init__(self, mode, urdf, *, fault=''):
        self.mode, self.model, self.urdf, self.robot = mode, mode.model, urdf, 'mujoco_robot'
        self.note, self.start = '', mode.start
        self.samples, self.phases, self.fault, self.now = [], [], fault, 0.0
        self._delays, self._show, self._law, self._constant = [1e-3], lambda _: None, None, None
        self._own = slice(None) if self.model.loops is None else self.model.loops.own
        self.stopped, self._processes = [], {}

    def launch(self, controller, *, robot=None, parameters=None):
        robot, self._parameters = dict(robot or {}), dict(parameters or {})
        load = (Load(robot['payload_link'], robot['payload_mass'], robot['payload_com'])
                if 'payload_link' in robot else
                Load(self.model.link_names[-1], 2.0, (0.1, 0.0, 0.0))
                if self.fault == 'load' else None)
        self.physics = MujocoRobot(self.urdf.read_text(), self.model, self.start, step=STEP,
                                   load=load)
        self._push_link = robot.get('push_link')
        if controller == 'torque_controller':
            self._begin()

    def _begin(self):
        """Begin with a new law, which holds the robot where it is."""
        given, q = {**DEFAULTS, **self._parameters}, self.physics.q
        self._task = given['task_link']
        friction = given['friction']
        if self.fault == 'stiffness' and 'cartesian_impedance.stiffness' in self._parameters:
            given['cartesian_impedance.stiffness'] = [
                1.07 * x for x in given['cartesian_impedance.stiffness']]
        self._law = make_controller(
            check(TorqueController.kinds, given).select(ControlSettings),
            Circumstances(self.model, self._task, q, friction, 0.02))
        self._reference = (
            PoseReference(rbd_ros.forward_kinematics(self.model, q)[
                self.model.link_index(self._task)]) if self._task
            else JointReference(self.model, q))

    def set_parameters(self, **parameters):
        if self.fault != 'deaf':
            self._parameters.update({name.replace('__', '.'): x for name, x in parameters.items()})
        self._begin()

    def watch(self, name, duration, errors=None, *, accurate=True, reference=None):
        errors = errors or (lambda _, q: q - self.mode.own_start)
        first = len(self.samples)
        self.phases.append(Phase(name, accurate, first))
        for _ in range(round(duration / PERIOD)):
            q, v = self.physics.q, self.physics.v
            if self._law is not None:
                tau = self._law.update(self.now, q, v, reference(self.now) if reference
                                       else self._reference)
                if self.fault == 'driven':
                    tau[self.free] += 1e-3
            else:
                tau = self._gravity_torques(q) if self._constant is None else self._constant
            if self.fault == 'stuck':
                self.physics.brake()
            else:
                self.physics.advance(tau, round(PERIOD / STEP))
            self.now += PERIOD
            q = q[self._own]
            self.samples.append(Sample(self.now, q, tau, errors(self.now, q)))
        return self.samples[first:]

    def _follow(self, name, motion, accurate):
        self._reference = JointReference(self.model, motion.at(0.0))
        self.watch('held at the start', LEAD, accurate=accurate)
        begin = self.now
        samples = self.watch(name, motion.duration, lambda t, q: motion.at(t - begin) - q,
                             accurate=accurate, reference=lambda t: motion._curve.at(t - begin))
        self._reference = JointReference(self.model, motion.at(motion.duration))
        return samples

    def push(self, force):
        self.physics.push(self._push_link, [0.0, 0.0, 0.0, *force])

    def _gravity_torques(self, q):
        if self.fault == 'cut open':
            return rbd_ros.gravity_torques(self.model.unconstrained, q)[self._own]
        return rbd_ros.gravity_torques(self.model, rbd_ros.model.normalize(self.model, q))

    def release(self, torques):
        if self.fault != 'still held':
            self._constant = torques

    def stop(self, name, number=2):
        self.stopped.append(name)


@cache
def prepared(name):
    """Return a mode and the description of its robot: poses to start in take long to find."""
    urdf = share('urdf', MODES[name].urdf)
    return prepare(name, urdf.read_text(), rbd_ros.load_urdf(urdf), '')[0], urdf


def run(name, fault=''):
    """Return mode, session and checks of a mode with the robot of the demo."""
    mode, urdf = prepared(name)
    mode = copy(mode)
    session = Lockstep(mode, urdf, fault=fault)
    session.free = getattr(mode, 'free', 0)
    return mode, session, mode.run(session)


@pytest.fixture(autouse=True)
def short_phases(monkeypatch):
    """Shorten the phases."""
    for module, name, seconds in ((gravity, 'COMPENSATED', 0.6), (gravity, 'RELEASED', 0.6),
                                  (ComputedTorqueMode, 'MOTION', 3.0), (HybridMode, 'MOTION', 3.0),
                                  (ImpedanceMode, 'FREE', 1.0), (ImpedanceMode, 'PUSHED', 2.0),
                                  (AdaptiveMode, 'WITHOUT', 4.0), (AdaptiveMode, 'WITH', 6.0),
                                  (AdaptiveMode, 'COMPARED', 1.0)):
        monkeypatch.setattr(module, name, seconds)


@pytest.mark.parametrize('name, fault, passed', [
    ('gravity', '', [True, True]), ('gravity', 'load', [False, True]),
    ('gravity', 'still held', [True, False]),
    ('loop', '', [True, True]), ('loop', 'cut open', [False, True]),
    ('loop', 'still held', [True, False]),
    ('computed_torque', '', [True, True]), ('computed_torque', 'load', [False, False]),
    pytest.param('computed_torque', 'deaf', [False, False], marks=pytest.mark.long),
    ('hybrid', '', [True, True, True]), ('hybrid', 'load', [False, True, True]),
    ('hybrid', 'driven', [True, True, False]),
    pytest.param('hybrid', 'stuck', [False, False, True], marks=pytest.mark.long),
    ('impedance', '', [True, True, True]), ('impedance', 'stiffness', [False, False, False]),
    ('adaptive', '', [True]), ('adaptive', 'deaf', [False])])
def test_demo_modes_pass_without_faults_and_fail_with_each_fault(name, fault, passed):
    mode, session, checks = run(name, fault)
    assert [check.passed for check in checks] == passed, checks
    # The picture has one value per sample, and poses of this robot.
    strips = mode.strips(session)
    assert all(len(strip.values) == len(session.samples) for strip in strips)
    # Displacements begin with those of the first sample, at rest.
    assert all(abs(strip.values[0]) < 1.0 for strip in strips if strip.unit == 'mm')
    assert all(q.shape == (mode.model.nq,) for q in mode.poses(session))
    assert mode.explain_failure(session)


def test_the_largest_error_is_printed_with_its_joint():
    _, session, checks = run('gravity', 'load')
    samples = session.samples[:session.phases[1].first]
    held = np.abs([sample.error for sample in samples]).max(axis=0)
    name = session.model.velocity_names[int(np.argmax(held))]
    assert f"{held.max():.2g} rad ('{name}')" in checks[0].text


def test_no_error_is_printed_as_zero():
    _, session, checks = run('gravity')
    held = np.abs([sample.error for sample in session.samples[:session.phases[1].first]])
    assert held.max() < 1e-9
    assert 'drift at most 1e-09 rad' in checks[0].text


def test_an_action_disturbed_by_a_pause_is_repeated_from_the_start(capsys, monkeypatch):
    restarts = []
    monkeypatch.setattr(Lockstep, 'restart', lambda self: restarts.append(len(self.samples)))
    _, session, _ = run('gravity')
    first, pauses = len(session.samples), iter([0.3, 0.12, 0.05, 0.2])

    def action():
        session._delays.append(next(pauses))
        return session.watch('again', 0.1)

    samples = session.repeat_after_pause(action)
    assert session.samples[first:] == samples and len(samples) == round(0.1 / PERIOD)
    assert [phase.name for phase in session.phases].count('again') == 1
    assert next(pauses) == 0.2
    # Each starts with the samples of the disturbed attempt dropped.
    assert restarts == [first, first]
    assert capsys.readouterr().out.count('The machine paused for') == 2


def test_a_machine_that_always_pauses_is_too_busy_in_numbers(monkeypatch):
    restarts = []
    monkeypatch.setattr(Lockstep, 'restart', lambda self: restarts.append(self.now))
    _, session, _ = run('gravity')
    pauses = iter([0.3, 0.12, 0.25, 0.2, 0.41])

    def action():
        session._delays.append(next(pauses))
        return session.watch('again', 0.1)

    with pytest.raises(DemoFailed, match='the machine is too busy: in 5 attempts it paused for '
                                         r'0\.12 s to 0\.41 s, .* after 0\.1 s'):
        session.repeat_after_pause(action)
    assert len(restarts) == 4


def test_pauses_between_states_are_found():
    _, session, _ = run('gravity')
    session._delays.clear()
    assert session.longest_pause(0) == pytest.approx(PERIOD)
    late = [sample._replace(t=sample.t + 0.4) for sample in session.samples[10:]]
    session.samples[10:] = late
    assert session.longest_pause(0) == pytest.approx(PERIOD + 0.4)
    assert session.longest_pause(10) == pytest.approx(PERIOD)
