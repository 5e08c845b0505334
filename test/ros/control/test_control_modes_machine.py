# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whatever happens in whatever order, modes and references keep their invariant, and so do commands.

A witness notes where the robot was when something happened after which no reference may be left,
and which motions were asked for since; the efforts must be those of a law of its own for that, and
the commands those that `CommandWatch` allows. A motion that the robot does not follow is aborted,
and each message is answered: accepted or refused, and if accepted, it ends once.

"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from builtin_interfaces.msg import Duration, Time
from command_watch import CommandWatch, LONGEST_STEP, Settings, SHORTEST_GAP
from covering import covering
from geometry_msgs.msg import PoseStamped
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
from rbd_msgs.msg import ReferenceStatus
import rbd_ros
from rbd_ros import all_terms, inverse_dynamics, with_gravity
from rbd_ros.control import (CartesianImpedance, EffortConvention, Hybrid, JointImpedance,
                             JointReference, PoseMotion, PoseReference, SlotineLi)
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.control.control_modes import ControlModes
from rbd_ros.ros.control.law_factory import ControlSettings
from rbd_ros.ros.control.reference_receiver import LawSettings
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.parameters.parameters import check
from rbd_ros.ros.runtime.report import Report
from rbd_ros.ros.runtime.worker import Worker
from scipy.spatial.transform import Rotation
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# N m in some hundreds, between two laws and two ways to interpolate.
AGREEMENT = 1e-6
STEP = 0.01
ARM = rbd_ros.load_urdf(Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf')
MODELS = [with_gravity(ARM, (0.0, 0.0, -9.81)),
          rbd_ros.with_payload(with_gravity(ARM, (0.0, 4.0, -8.0)), 'tool', 0.5)]
MODELS = [replace(model, lower=np.full(model.nv, -3.0), upper=np.full(model.nv, 3.0),
                  velocity_limit=np.full(model.nv, 20.0)) for model in MODELS]
LINK, ROOT, HOME = 'tool', ARM.link_names[0], np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
MODES = ('gravity', 'pd_gravity', 'computed_torque', 'joint_impedance', 'slotine_li', 'hybrid',
         'cartesian_impedance')
STIFFNESS, DAMPING, KP, RATE, ADAPTATION = 50.0, 5.0, 100.0, 4.0, 20.0
ALONG_AND_ABOUT, POSTURE, FREE = [30.0] * 3 + [300.0] * 3, 10.0, 'elbow'
# rad and s: tolerances that the states drawn here exceed now and then; rad and m
PATH, GOAL, GOAL_TIME = 0.8, 0.5, 0.3
CARTESIAN_PATH, CARTESIAN_GOAL = (1.2, 0.6), (0.7, 0.4)
# m/s and rad/s; and how much faster than the mean a motion with the least jerk is in its middle
SPEED, ANGULAR_SPEED, PEAK = 0.2, 1.0, 1.875
# s, of the shortest motion of a pose, and of one that stops
SHORTEST, STOP = 0.5, 0.25
# rad and s: a step of the reference or of its velocity would be hundreds of times larger.
CONTINUOUS = 1e-3
DEFAULTS = {name: one.default for name, one in TorqueController.settings.items()}
MOSTLY = st.sampled_from([True, True, True, False])


def chosen_gains(**changes):
    """Return settings with which each mode differs from the others, with changes."""
    return check(TorqueController.kinds, {
        **DEFAULTS, 'mode': 'pd_gravity', 'task_link': LINK, 'slotine_li.rate': (RATE,),
        'slotine_li.adaptation': ADAPTATION, 'slotine_li.links': (LINK,),
        'hybrid.free_joints': (FREE,), 'cartesian_speed': SPEED, 'angular_speed': ANGULAR_SPEED,
        'path_tolerance': (PATH,), 'goal_tolerance': (GOAL,), 'goal_time': GOAL_TIME,
        'cartesian_path_tolerance': CARTESIAN_PATH, 'cartesian_goal_tolerance': CARTESIAN_GOAL,
        **changes}).select(ControlSettings)


class Robot:
    """What the node's robot is to the modes."""

    def __init__(self, model):
        self.model, self.task_link, self.prefix = model, LINK, ''
        self.workspace = rbd_ros.Workspace(model)
        self.states = SimpleNamespace(q=np.zeros(model.nv), missing_velocities=lambda: ['joint'])

    def ages(self, now):
        """Return the ages of positions, s."""
        return dict.fromkeys(self.model.joint_names, 0.0)


class Curve:
    """A motion of third order from one point to another, where it rests; efforts go on a line."""

    def __init__(self, model, begin, span, start, goal, tau):
        self.model, self.begin, self.span, self.goal, self.tau = model, begin, span, goal, tau
        self.end = begin + span
        self.q, self.v, self.first = start.q, start.v, start.tau

    def at(self, t):
        """Return the reference."""
        s, h = t - self.begin, self.span
        if s >= h:
            return JointReference(self.model, self.goal, tau=self.tau)
        # q + v s + b s^2 + c s^3 with the goal, and rest, at the end.
        way = self.goal - self.q
        b, c = 3.0 * way / h ** 2 - 2.0 * self.v / h, -2.0 * way / h ** 3 + self.v / h ** 2
        return JointReference(
            self.model, self.q + self.v * s + b * s ** 2 + c * s ** 3,
            self.v + 2.0 * b * s + 3.0 * c * s ** 2, 2.0 * b + 6.0 * c * s,
            self.first + s / h * (self.tau - self.first))


def line(begin, span, start, goal):
    """Return a motion of the task link."""
    return SimpleNamespace(begin=begin, end=begin + span,
                           at=PoseMotion(start.T, goal, span, begin, start.V).at)


class Rest:
    """A reference that stays."""

    begin = -np.inf

    def __init__(self, reference):
        self._reference = reference

    def at(self, t):
        """Return the reference."""
        return self._reference


class ModeMachine(RuleBasedStateMachine):
    """The modes between states and commands, and what is known of them."""

    def __init__(self):
        super().__init__()
        self.now, self.settings = 100.0, Settings()
        self.gains = chosen_gains()
        self.logged = []
        clocks = SimpleNamespace(age_time=lambda: self.now, steady_time=lambda: self.now,
                                 stamp_time=lambda: 1000.0 + self.now, stamp=Time)
        self.report = Report()
        self.commands, self.watch = EffortCommands(self.settings), CommandWatch()
        self.modes = ControlModes(
            LawSettings(False, 0.02, False, EffortConvention(), 'withhold', 0.5, True), self.gains,
            clocks, self.commands, self.report,
            SimpleNamespace(warning=lambda text, *_: self.logged.append(text)),
            Worker(lambda: None, self.fail), self.hear)
        self.statuses, self.asked = {}, 0
        self.heard = True
        # The witness: the reference, or None where the next state is it; motions by their
        # beginning.
        self.motions, self.last, self.law, self.judged, self.aborted = None, None, None, None, 0
        self.change_robot(0)
        self.commands.begin()

    @staticmethod
    def fail(error):
        """Raise an exception of the worker."""
        raise error

    def hear(self, status):
        """Check what is told of a reference: one answer, and one end if it was accepted."""
        told = self.statuses.setdefault(status.id, [])
        assert status.id == self.asked if not told else told == [ReferenceStatus.ACCEPTED]
        assert status.accepted == (status.state != ReferenceStatus.REFUSED)
        assert (status.state in (ReferenceStatus.ACCEPTED, ReferenceStatus.REFUSED)) == (not told)
        told.append(status.state)

    def unfinished(self):
        """Return how many references have been accepted and have not ended."""
        return sum(told == [ReferenceStatus.ACCEPTED] for told in self.statuses.values())

    # -- The witness. ----------------------------------------------------------------------------

    def _reference(self, t):
        return next(one for one in reversed(self.motions) if one.begin <= t).at(t)

    def _lose(self):
        """Note that no reference may be left."""
        self.motions = None

    def _begin(self, q):
        """Note that the robot is held from now on, by a law that knows nothing yet."""
        model = self.robot.model
        self.last = self.judged = None
        self.motions = [Rest(
            PoseReference(rbd_ros.forward_kinematics(model, q)[model.link_index(LINK)])
            if self.gains.mode == 'cartesian_impedance' else JointReference(model, q))]
        self.law = {
            'joint_impedance': lambda: JointImpedance(model, STIFFNESS, friction_speed=None),
            'cartesian_impedance': lambda: CartesianImpedance(
                model, LINK, ALONG_AND_ABOUT, posture=q, posture_stiffness=POSTURE,
                friction_speed=None),
            'slotine_li': lambda: SlotineLi(model, RATE, 2.0 * DAMPING, ADAPTATION, links=[LINK],
                                            friction_speed=None),
            'hybrid': lambda: Hybrid(model, [name != FREE for name in model.velocity_names], KP,
                                     friction_speed=None)}.get(self.gains.mode, lambda: None)()

    def _expected(self, q, v):
        reference = self._reference(self.now)
        if self.law is not None:
            return self.law.update(self.now, q, v, reference)
        terms = all_terms(self.robot.model, q, v)
        if self.gains.mode == 'gravity':
            return terms.g - self.gains.gains['gravity']['damping'][0] * v
        e, e_dot = reference.q - q, reference.v - v
        if self.gains.mode == 'pd_gravity':
            return STIFFNESS * e + DAMPING * e_dot + terms.g
        a = reference.a + 2.0 * np.sqrt(KP) * e_dot + KP * e
        return inverse_dynamics(self.robot.model, q, v, a)

    def _is_lost(self, q):
        """Return whether the robot is too far from the motion that it follows."""
        motion = next(one for one in reversed(self.motions) if one.begin <= self.now)
        if isinstance(motion, Rest) or motion is self.judged:
            return False
        reference, path, goal = motion.at(self.now), PATH, GOAL
        if self.gains.mode == 'cartesian_impedance':
            model = self.robot.model
            T = rbd_ros.forward_kinematics(model, q)[model.link_index(LINK)]
            error = np.array([Rotation.from_matrix(T[:3, :3].T @ reference.T[:3, :3]).magnitude(),
                              np.linalg.norm(T[:3, 3] - reference.T[:3, 3])])
            path, goal = np.array(CARTESIAN_PATH), np.array(CARTESIAN_GOAL)
        else:
            follows = [name != FREE or self.gains.mode != 'hybrid'
                       for name in self.robot.model.velocity_names]
            error = np.abs(q - reference.q)[follows]
        if np.any(error > path):
            return True
        if self.now >= motion.end and np.all(error <= goal):
            self.judged = motion        # it has been reached
            return False
        return self.now - motion.end > GOAL_TIME

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
        q += HOME
        for _ in range(times):
            self.now += pause
            if self.motions is not None and self.now - self.computed > SHORTEST_GAP * 0.999:
                usual = max(float(np.median(pauses[-5:])) if pauses else 0.0
                            for pauses in (self.watch.pauses, self.watch.groups))
                if self.now - self.computed > min(0.5, max(SHORTEST_GAP, 5 * usual)):
                    self._lose()
            self.robot.states.q = q
            if not (self.heard and self.commands.enabled):
                continue
            self._state(q, v if with_velocity else None)

    def _state(self, q, v):
        terms = all_terms(self.robot.model, q, np.zeros_like(q) if v is None else v)
        anew = self.commands.starts_blend(self.now)
        efforts = self.modes.efforts(self.robot, v, terms, self.now, anew)
        if v is None:
            assert isinstance(efforts, str) and 'velocities' in efforts
            return
        aborted = self.motions is not None and self._is_lost(q)
        if aborted:
            self.watch.disturb()
            assert 'motion aborted' in self.report.last_error
        assert self.report.counts['motions aborted'] == self.aborted + aborted
        self.aborted += aborted
        if self.motions is None or aborted:
            self._begin(q)
            assert not self.unfinished()
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
        if self.modes._following is None:
            return
        one = self.modes._following.at(self.now)
        before = self.modes._following.at(self.now - 1e-6)
        if self.last is not None:
            for label in ('q', 'v', 'tau') if isinstance(one, JointReference) else ('T', 'V'):
                assert np.max(np.abs(getattr(one, label) - getattr(before, label))) < CONTINUOUS
        self.last = one

    @rule(seed=st.integers(0, 9), span=st.sampled_from([0.5, 2.0]), with_efforts=st.booleans(),
          delay=st.sampled_from([0.0, 0.0, 0.3]),
          wrong=st.sampled_from([None] * 4 + ['name', 'fast', 'late']))
    def follow(self, seed, span, with_efforts, delay, wrong):
        """Ask for a motion, perhaps one that cannot be."""
        model, rng = self.robot.model, np.random.default_rng(seed)
        names = list(model.velocity_names)
        order = rng.permutation(model.nv)[:rng.integers(1, model.nv + 1)]
        goal = HOME[order] + 0.2 * rng.normal(size=len(order))
        efforts = rng.normal(size=len(order))
        message = JointTrajectory(joint_names=[names[k] for k in order])
        point = JointTrajectoryPoint(positions=goal.tolist(), time_from_start=Duration(
            sec=int(span), nanosec=round(1e9 * (span % 1.0))))
        if with_efforts:
            point.effort = efforts.tolist()
        message.points = [point]
        delay = self._stamp(message, -9.0 if wrong == 'late' else delay)
        if wrong == 'name':
            message.joint_names[0] = 'finger'
        elif wrong == 'fast':
            point.positions[0], point.time_from_start = 0.9, Duration(nanosec=1000)
        if not self._ask(self.modes.on_joint_trajectory, message,
                         'cartesian_impedance' != self.gains.mode and not wrong):
            return
        begin = self.now + delay
        start = self._reference(begin)
        whole, tau = start.q.copy(), start.tau.copy()
        whole[order] = goal
        if with_efforts and self.gains.mode == 'hybrid':
            tau[order] = efforts
        self._note(Curve(model, begin, span, start, whole, tau))

    def _stamp(self, message, delay):
        """Let a message begin later; return how much, as far as its stamp can say that."""
        if not delay:
            return 0.0
        stamp = 1000.0 + self.now + delay
        message.header.stamp.sec = int(stamp)
        message.header.stamp.nanosec = round(1e9 * (stamp % 1.0))
        return (int(stamp) + 1e-9 * message.header.stamp.nanosec) - (1000.0 + self.now)

    def _ask(self, follow, message, sound):
        """Send a reference; return whether it is followed, as it must be if it is sound."""
        counts = self.report.counts
        before = counts['references refused'], len(self.logged)
        sound = (sound and self.commands.enabled and self.motions is not None
                 and not self.commands.starts_blend(self.now) and self.gains.mode != 'gravity')
        self.asked += 1
        follow(message)
        assert self.asked in self.statuses
        assert not counts['errors'], self.report.last_error
        refused = counts['references refused'] - before[0]
        assert refused == len(self.logged) - before[1]
        if sound and refused:
            assert 'motions are already waiting' in self.report.last_error
        else:
            assert refused == (not sound)
        return not refused

    def _note(self, motion):
        """Note a motion, in place of all that would begin later."""
        self.motions = [one for one in self.motions if one.begin < motion.begin]
        self.motions.append(motion)

    @rule(seed=st.integers(0, 9), wrong=st.sampled_from([None] * 4 + ['frame', 'number']))
    def follow_pose(self, seed, wrong):
        """Ask for a pose, perhaps one that cannot be."""
        rng = np.random.default_rng(seed)
        turn, shift = rng.normal(scale=0.2, size=3), rng.normal(scale=0.05, size=3)
        model = self.robot.model
        T = rbd_ros.forward_kinematics(model, HOME)[model.link_index(LINK)].copy()
        T[:3, :3], T[:3, 3] = Rotation.from_rotvec(turn).as_matrix() @ T[:3, :3], T[:3, 3] + shift
        message = PoseStamped()
        message.header.frame_id = 'camera' if wrong == 'frame' else ROOT
        # Its stamp is not read.
        message.header.stamp.sec = 1
        pose = message.pose
        pose.position.x, pose.position.y, pose.position.z = map(float, T[:3, 3])
        for name, x in zip('xyzw', Rotation.from_matrix(T[:3, :3]).as_quat()):
            setattr(pose.orientation, name, float(x))
        if wrong == 'number':
            pose.position.y = np.nan
        if not self._ask(self.modes.on_pose_target, message,
                         'cartesian_impedance' == self.gains.mode and not wrong):
            return
        start = self._reference(self.now)
        angle = Rotation.from_matrix(T[:3, :3] @ start.T[:3, :3].T).magnitude()
        way = np.linalg.norm(T[:3, 3] - start.T[:3, 3])
        span = max(SHORTEST, PEAK * way / SPEED, PEAK * angle / ANGULAR_SPEED)
        self._note(line(self.now, span, start, T))

    @rule(delay=st.sampled_from([0.0, 0.3]))
    def stop(self, delay):
        """Ask the reference to stop."""
        message = JointTrajectory()
        delay = self._stamp(message, delay)
        if not self._ask(self.modes.on_joint_trajectory, message, True):
            return
        begin = self.now + delay
        start = self._reference(begin)
        self._note(line(begin, STOP, start, start.T) if isinstance(start, PoseReference) else
                   Curve(self.robot.model, begin, STOP, start, start.q, 0.0 * start.tau))

    @rule(seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)),
          delay=st.sampled_from([0.0, 0.3]), mode=st.sampled_from(MODES[1:]))
    def follow_one_after_the_other(self, seeds, delay, mode):
        """Ask for a motion while another is going on, as programs do."""
        self.set_gains(mode, 0.0)
        self.states(1, STEP, 20, True)
        for seed in seeds:
            if mode == 'cartesian_impedance':
                self.follow_pose(seed, None)
            else:
                self.follow(seed, 0.5, True, delay, None)
            self.states(2, STEP, 20, True)
        self.states(3, STEP, 60, True)

    @rule(mode=st.sampled_from(MODES), damping=st.sampled_from([0.0, 3.0]))
    def set_gains(self, mode, damping):
        """Change mode or gains, as the node does."""
        gains = chosen_gains(mode=mode, gravity_damping=(damping,))
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
        self.commands.set_joints(names, [np.inf] * len(names))
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
            self.commands.note_no_subscriber(self.now)
            self.watch.nobody_listens(self.now)
            self.now += seconds


@pytest.mark.parametrize('runs', covering([8, 60], 8))
def test_modes_and_references_keep_their_invariant(runs):
    assert LONGEST_STEP > STEP
    run_machine(ModeMachine, runs, 40)
