# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whatever happens in whatever order, modes and references keep their invariant, and so do commands.

A witness notes where the robot was when something happened after which no reference may be left,
and what was asked for since; the efforts must be those of a law of its own for that, and the
commands what `CommandWatch` allows.

"""

from dataclasses import replace
from types import SimpleNamespace

from builtin_interfaces.msg import Duration
from command_watch import CommandWatch, LONGEST_STEP, SHORTEST_GAP
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import invariant, rule, RuleBasedStateMachine
import numpy as np
from rbd_ros import all_terms, inverse_dynamics, with_gravity
from rbd_ros.control import EffortConvention
from rbd_ros.ros.control_modes import ControlModes, LawSettings
from rbd_ros.ros.control_parameters import DESCRIPTIONS, Gains
from rbd_ros.ros.effort_commands import EffortCommands
from rbd_ros.ros.report import Report
from rclpy.parameter import Parameter
from robots import random_tree
from test_effort_commands_machine import Settings
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# N m in some hundreds, between two laws and two ways to interpolate.
AGREEMENT = 1e-6
STEP = 0.01
MODELS = [with_gravity(random_tree(1, 3, kinds=('revolute',)), gravity)
          for gravity in ((0.0, 0.0, -9.81), (0.0, 4.0, -8.0))]
MODELS = [replace(model, lower=np.full(model.nv, -3.0), upper=np.full(model.nv, 3.0),
                  velocity_limit=np.full(model.nv, 20.0)) for model in MODELS]
MODES = ('gravity', 'pd_gravity', 'computed_torque')
STIFFNESS, DAMPING, KP = 50.0, 5.0, 100.0
# rad and s: a step of the reference or of its velocity would be hundreds of times larger.
CONTINUOUS = 1e-3
MOSTLY = st.sampled_from([True, True, True, False])


def default_gains():
    """Return the gains of the parameters' defaults."""
    return Gains(**{name.replace('.', '_'): () if isinstance(default, Parameter.Type)
                    else tuple(default) if isinstance(default, list) else default
                    for name, (default, *_) in DESCRIPTIONS.items()})


class Robot:
    """What the node's robot is to the modes."""

    def __init__(self, model):
        self.model, self.task_link, self.prefix = model, '', ''
        self.states = SimpleNamespace(q=np.zeros(model.nv), missing_velocities=lambda: ['joint'])


class Curve:
    """A motion of third order from one point to another, where it rests."""

    def __init__(self, begin, span, q, v, goal):
        self.begin, self.span, self.q, self.v, self.goal = begin, span, q, v, goal

    def at(self, t):
        """Return position, velocity and acceleration."""
        s = t - self.begin
        if s >= self.span:
            return self.goal, 0.0 * self.v, 0.0 * self.v
        # q + v s + b s^2 + c s^3 with the goal, and rest, at the end.
        h, way = self.span, self.goal - self.q
        b, c = 3.0 * way / h ** 2 - 2.0 * self.v / h, -2.0 * way / h ** 3 + self.v / h ** 2
        return (self.q + self.v * s + b * s ** 2 + c * s ** 3,
                self.v + 2.0 * b * s + 3.0 * c * s ** 2, 2.0 * b + 6.0 * c * s)


class ModeMachine(RuleBasedStateMachine):
    """The modes between states and commands, and what is known of them."""

    def __init__(self):
        super().__init__()
        self.now, self.settings = 100.0, Settings()
        self.gains = default_gains()._replace(mode='pd_gravity')
        self.logged = []
        clocks = SimpleNamespace(age_time=lambda: self.now, steady_time=lambda: self.now,
                                 stamp_time=lambda: 1000.0 + self.now)
        self.report = Report()
        self.commands, self.watch = EffortCommands(self.settings), CommandWatch()
        self.modes = ControlModes(
            LawSettings(False, 0.02, EffortConvention(), 'withhold', 0.5, True), self.gains,
            clocks, self.commands, self.report,
            SimpleNamespace(warning=lambda text, kind: self.logged.append(text)))
        self.heard = True
        # The witness: the reference, or None where the next state is it; motions by their
        # beginning.
        self.motions, self.last = None, None
        self.change_robot(0)
        self.commands.begin()

    # -- The witness. ----------------------------------------------------------------------------

    def _reference(self, t):
        return next(one for one in reversed(self.motions) if one.begin <= t).at(t)

    def _lose(self):
        """Note that no reference may be left."""
        self.motions = None

    def _expected(self, q, v):
        terms = all_terms(self.robot.model, q, v)
        if self.gains.mode == 'gravity':
            return terms.g - self.gains.gravity_damping[0] * v
        q_r, v_r, a_r = self._reference(self.now)
        if self.gains.mode == 'pd_gravity':
            return STIFFNESS * (q_r - q) + DAMPING * (v_r - v) + terms.g
        a = a_r + 2.0 * np.sqrt(KP) * (v_r - v) + KP * (q_r - q)
        return inverse_dynamics(self.robot.model, q, v, a)

    # -- What happens. ---------------------------------------------------------------------------

    @invariant()
    def stream(self):
        """Let states keep coming, whatever happened."""
        self.states(0, STEP, 3, True)

    @rule(seed=st.integers(0, 9), pause=st.sampled_from([STEP] * 5 + [0.05, 0.15, 0.7, 3.0]),
          times=st.sampled_from([1, 3, 20]), with_velocity=MOSTLY)
    def states(self, seed, pause, times, with_velocity):
        """Let states come."""
        rng = np.random.default_rng(seed)
        q, v = 0.3 * rng.normal(size=(2, self.robot.model.nv))
        for _ in range(times):
            self.now += pause
            if self.motions is not None and self.now - self.computed > SHORTEST_GAP * 0.999:
                usual = float(np.median(self.watch.pauses[-5:])) if self.watch.pauses else 0.0
                if self.now - self.computed > min(0.5, max(SHORTEST_GAP, 5 * usual)):
                    self._lose()
            self.robot.states.q = q
            if not (self.heard and self.commands.enabled):
                continue
            self._state(q, v if with_velocity else None)

    def _state(self, q, v):
        terms = all_terms(self.robot.model, q, np.zeros_like(q) if v is None else v)
        anew = self.commands.begins_anew(self.now)
        efforts = self.modes.efforts(self.robot, v, terms, self.now, anew)
        if v is None:
            assert isinstance(efforts, str) and 'velocities' in efforts
            self._lose()
            self.watch.disturb()
            return
        if self.motions is None:
            self.motions = [Curve(-np.inf, 0.0, q, 0.0 * q, q.copy())]
            self.last = None
        expected = self._expected(q, v)
        assert np.max(np.abs(efforts - expected)) <= AGREEMENT * (1.0 + np.max(np.abs(expected)))
        self._check_reference()
        got = self.commands.update(efforts, self.now)
        names = self.watch.joints
        self.watch.on_state(got, dict(zip(names, efforts.tolist())),
                            dict.fromkeys(names, np.inf), self.now, self.settings)
        self.computed = self.now

    def _check_reference(self):
        """Check that the reference goes on from where it was."""
        if self.modes._motions is None:
            return
        one = self.modes._motions.at(self.now)
        before = self.modes._motions.at(self.now - 1e-6)
        if self.last is not None:
            assert np.max(np.abs(one.q - before.q)) < CONTINUOUS
            assert np.max(np.abs(one.v - before.v)) < CONTINUOUS
        self.last = one

    @rule(seed=st.integers(0, 9), span=st.sampled_from([0.5, 2.0]),
          delay=st.sampled_from([0.0, 0.0, 0.3]), wrong=st.sampled_from([None] * 4 + [
              'name', 'number', 'times', 'limit', 'size', 'moving', 'fast']))
    def follow(self, seed, span, delay, wrong):
        """Ask for a motion, perhaps one that cannot be."""
        model, rng = self.robot.model, np.random.default_rng(seed)
        names = list(model.velocity_names)
        order = rng.permutation(model.nv)[:rng.integers(1, model.nv + 1)]
        goal = 0.2 * rng.normal(size=len(order))
        message = JointTrajectory(joint_names=[names[k] for k in order])
        point = JointTrajectoryPoint(positions=goal.tolist(), time_from_start=Duration(
            sec=int(span), nanosec=round(1e9 * (span % 1.0))))
        message.points = [point]
        self._spoil(message, point, wrong)
        if delay:
            stamp = 1000.0 + self.now + delay
            message.header.stamp.sec = int(stamp)
            message.header.stamp.nanosec = round(1e9 * (stamp % 1.0))
            delay = (int(stamp) + 1e-9 * message.header.stamp.nanosec) - (1000.0 + self.now)
        counts = self.report.counts
        before = counts['references refused'], len(self.logged)
        sound = (self.heard and self.commands.enabled and self.motions is not None
                 and not self.commands.begins_anew(self.now) and self.gains.mode != 'gravity')
        self.modes.follow_trajectory(message)
        assert not counts['errors'], self.report.last_error
        if not sound or wrong:
            assert (counts['references refused'], len(self.logged)) == (before[0] + 1,
                                                                        before[1] + 1)
            return
        if counts['references refused'] > before[0]:
            assert 'motions wait' in self.report.last_error
            return
        begin = self.now + delay
        q, v, _ = self._reference(begin)
        whole = q.copy()
        whole[order] = goal
        self.motions = [one for one in self.motions if one.begin < begin]
        self.motions.append(Curve(begin, span, q, v, whole))

    @rule(seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)),
          delay=st.sampled_from([0.0, 0.3]), mode=st.sampled_from(MODES[1:]))
    def follow_one_after_the_other(self, seeds, delay, mode):
        """Ask for a motion while another is going on, as programs do."""
        self.set_gains(mode, 0.0)
        self.states(1, STEP, 20, True)
        for seed in seeds:
            self.follow(seed, 0.5, delay, None)
            self.states(2, STEP, 20, True)
        self.states(3, STEP, 60, True)

    def _spoil(self, message, point, wrong):
        if wrong == 'name':
            message.joint_names[0] = 'elbow'
        elif wrong == 'number':
            point.positions[0] = np.nan
        elif wrong == 'times':
            message.points.append(point)
        elif wrong == 'limit':
            point.positions[0] = 100.0
        elif wrong == 'size':
            point.velocities = [0.0] * (len(point.positions) + 1)
        elif wrong == 'moving':
            point.velocities = [0.1] * len(point.positions)
        elif wrong == 'fast':
            point.positions[0], point.time_from_start = 0.9, Duration(nanosec=1000)

    @rule(mode=st.sampled_from(MODES), damping=st.sampled_from([0.0, 3.0]))
    def set_gains(self, mode, damping):
        """Change mode or gains, as the node does."""
        gains = self.gains._replace(mode=mode, gravity_damping=(damping,))
        if gains == self.gains:
            return
        self.gains = gains
        self.modes.configure(self.modes._settings, gains)
        self._disturb()

    @rule(change=st.sampled_from([('blend_time', 0.0), ('blend_time', 1.0),
                                  ('effort_rate_limit', 0.0), ('effort_rate_limit', 100.0)]))
    def set_parameter(self, change):
        """Change a parameter of the commands."""
        self.settings = replace(self.settings, **dict([change]))
        self.commands.configure(self.settings)
        self._disturb()

    @rule()
    def jump(self):
        """Let time jump: the node disturbs the commands."""
        self._disturb()

    def _disturb(self):
        self.commands.disturb()
        self.watch.disturb()
        self._lose()

    @rule(number=st.integers(0, 1))
    def change_robot(self, number):
        """Let another load, gravity or description of the same joints come."""
        self.robot = Robot(MODELS[number])
        names = self.robot.model.velocity_names
        self.commands.follow(names, [np.inf] * len(names))
        self.watch.follow(names)
        self._lose()

    @rule(wanted=MOSTLY)
    def enable(self, wanted):
        """Enable or disable commands."""
        if wanted:
            self.commands.enable()
            self.watch.enable(self.robot.model.velocity_names)
        else:
            self.commands.disable()
        self._lose()

    @rule(wanted=MOSTLY, seconds=st.sampled_from([0.05, 0.3, 2.0]))
    def listen(self, wanted, seconds):
        """Let the controller come or go."""
        self.heard = wanted
        if not wanted:
            self.commands.nobody_listens(self.now)
            self.watch.nobody_listens(self.now)
            self.now += seconds


def test_modes_and_references_keep_their_invariant():
    assert LONGEST_STEP > STEP
    ModeMachine.TestCase.settings = settings(
        max_examples=60, stateful_step_count=40, derandomize=True, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    ModeMachine.TestCase('runTest').runTest()
