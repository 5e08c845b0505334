# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The modes of the torque controller: a control law, and a reference that never outlives a gap.

The invariant, after any sequence of calls:

1. Efforts are those of the law of the present mode, gains and robot; `MotionGuard` limits what a
   blend makes of them. The law has seen nothing but states since the last reset; there is a reset
   whenever `EffortCommands` begin a blend, a law or robot is new, or a motion is aborted.
2. The reference rests where the robot was at the last reset, until a motion is accepted. It is
   continuous, and so is its velocity: a motion begins where and as fast as the reference is. A
   motion that the robot does not follow within its tolerances is aborted.
3. A motion that is refused changes nothing. Each one is accepted or refused, and one that is
   accepted ends once: reached, replaced or aborted. Its sender is told.
4. Without a measured velocity, or a law, there are no efforts.

That efforts become commands which never step is the invariant of `EffortCommands`.

"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from math import sqrt
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
import numpy as np
from numpy.linalg import LinAlgError
from rbd_msgs.msg import ReferenceStatus
from rbd_ros import mass_matrix, neutral, RbdError
from rbd_ros._internal.text import listed, printable
from rbd_ros.control import EffortConvention, JointReference, PoseReference
from rbd_ros.control.controller import Controller
from rbd_ros.control.motion_guard import MotionGuard
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.model.configurations import difference
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rotation_vector
from rbd_ros.ros import convert
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.control.compensation import compensates_itself
from rbd_ros.ros.control.control_laws import (
    make_controller, tolerances, too_much_damping, turning, WITHOUT_CORIOLIS)
from rbd_ros.ros.control.control_parameters import Gains
from rbd_ros.ros.control.following import Following
from rbd_ros.ros.control.references import (
    check_reach, Motion, read_pose, read_trajectory, Refused, stop_pose)
from rbd_ros.ros.parameters.parameter_checks import BadParameter
from rbd_ros.ros.robot.robot import Robot, unlimited_efforts
from rbd_ros.ros.runtime.callbacks import guarded
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.log import Log
from rbd_ros.ros.runtime.report import ERROR, OK, Report, WARN
from rbd_ros.workspace.results import DynamicsTerms
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

# Different reasons that are logged in one period for references of one topic.
MOST_REASONS = 10
# Why motions end when the law begins anew.
LOST = ('the robot is held where it is: states are missing, commands are off, or the robot has '
        'changed')


class LawSettings(NamedTuple):
    """The parameters of the node that control laws depend on."""

    friction: bool
    friction_dead_band: float
    effort_convention: EffortConvention
    missing_velocity: str
    state_timeout: float
    check_stamps: bool


class Sender(NamedTuple):
    """Topic, number and header of a message with a reference."""

    topic: str
    number: int
    header: Header


class ControlModes:
    """
    The law of the commands of a torque controller.

    Parameters
    ----------
    settings : LawSettings
        The parameters that it uses.
    gains : Gains
        Mode and gains.
    clocks : Clocks
        The node's clocks; references are on that of ages.
    commands : EffortCommands
        What the efforts become.
    report : Report
        Counts events.
    log : Log
        The node's log.
    publish : callable
        Called with each `ReferenceStatus`.

    Attributes
    ----------
    why_not : str
        Why there is no law; empty: there is one, or none is needed yet.

    """

    def __init__(self, settings: LawSettings, gains: Gains, clocks: Clocks,
                 commands: EffortCommands, report: Report, log: Log,
                 publish: Callable[[ReferenceStatus], object] = lambda status: None) -> None:
        self._settings, self._gains, self._clocks = settings, gains, clocks
        self._commands, self._report, self._log = commands, report, log
        self._publish, self._count = publish, 0
        self._robot: Robot | None = None
        self._following: Following | None = None
        self._notes: list[str] = []
        self._damping_said = False
        self._end('')

    def _end(self, why_not: str) -> None:
        """Have no law, and no reference."""
        self._abort(why_not or LOST)
        self._controller: Controller | None = None
        self._following = None
        # Configuration and reference at the last efforts.
        self._q: np.ndarray | None = None
        self._goal: Any = None
        self.why_not = why_not
        # Largest error of each label since the last report; none before a reference.
        self._labels: list[str] = []
        self._errors = np.zeros(0)

    def configure(self, settings: LawSettings, gains: Gains) -> None:
        """Use other settings and gains: the node disturbs the commands, which resets the law."""
        self._settings, self._gains = settings, gains
        self._damping_said = False
        self._abort('mode or parameters have changed: the robot is held where it is')

    def check(self, gains: Gains, robot: Robot, task_link: str) -> None:
        """
        Raise BadParameter or RbdError if there is no law with these gains for a robot.

        KernelNotReady is among them: a law begins when it can go on without a pause.

        """
        model, q = robot.model, neutral(robot.model)
        law = self._make(gains, model, task_link, q)
        try:
            law.update(0.0, q, np.zeros(model.nv), self._rest(law, robot, task_link, q))
            mass_matrix(model, q)       # for `_too_much_damping`
        except KernelNotReady:
            raise
        except (RbdError, LinAlgError):
            pass                        # in this position; the robot is in another one

    def prepare(self, robot: Robot) -> None:
        """Have the kernels of the present law compiled; why there is none is said later."""
        with suppress(Exception):
            self.check(self._gains, robot, robot.task_link)

    def _make(self, gains: Gains, model: Model, task_link: str, q: np.ndarray) -> Controller:
        settings = self._settings
        return make_controller(gains, model, task_link, q, friction=settings.friction,
                               dead_band=settings.friction_dead_band)

    # -- Efforts. --------------------------------------------------------------------------------

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                anew: bool) -> np.ndarray | str:
        """Return the efforts of the law, or why there are none; see `Law`."""
        # A velocity that is taken as zero damps nothing.
        if robot.states.missing_velocities() and self._settings.missing_velocity == 'zero':
            v = None
        if v is None:
            self.why_not = ('no law without velocities, of '
                            + listed(robot.states.missing_velocities()))
            return self.why_not
        q = robot.states.q
        if anew or robot is not self._robot or self._controller is None:
            if not anew:
                self._commands.disturb()
            self._reset(robot, q)
        if self._controller is None:
            return self.why_not
        self.why_not = ''
        reference: Any = None if self._following is None else self._following.at(now)
        q = self._same_turn(q, reference)
        if self._following is not None:
            errors = self._distance(robot, q, reference)
            if reason := self._following.judge(now, errors):
                self._give_up(reason)
                return self.efforts(robot, v, terms, now, True)
            np.maximum(self._errors, errors, out=self._errors)
        self._q, self._goal = q.copy(), reference
        tau = self._controller.update(now, q, v, reference)
        if not np.all(np.isfinite(tau)):
            return 'the efforts of the law are not finite'
        coriolis = (np.zeros_like(terms.g) if self._gains.mode in WITHOUT_CORIOLIS
                    else terms.coriolis_torques)
        efforts = self._settings.effort_convention.without_own(tau, terms.g, coriolis)
        self._state = q, v, (reference.q if isinstance(reference, JointReference) else None)
        self._own = tau - efforts
        return efforts

    def limit(self, robot: Robot, efforts: np.ndarray, commands: np.ndarray) -> np.ndarray:
        """Return commands as the guard of the joints limits them; see `Law`."""
        columns = robot.command_columns
        tau = efforts + self._own
        tau[columns] = commands + self._own[columns]
        limited = self._guard.limit(tau, *self._state)
        return commands if limited is tau else (limited - self._own)[columns]

    def _reset(self, robot: Robot, q: np.ndarray) -> None:
        """Begin with a new law, which holds the robot where it is."""
        self._end('')
        if robot is not self._robot:
            self._robot, self._notes, self._damping_said = robot, [], False
        gains, model = self._gains, robot.model
        try:
            controller = self._make(gains, model, robot.task_link, q)
        except (BadParameter, RbdError) as error:
            self._end(str(error))
            return
        self._controller = controller
        self._posture, self._turning = q.copy(), turning(model)
        self._guard = MotionGuard(model, zone=gains.soft_stop_zone, velocity=gains.velocity_guard)
        reference = self._rest(controller, robot, robot.task_link, q)
        if reference is not None:
            self._labels = ([f'error of {name}, rad or m' for name in model.velocity_names]
                            if isinstance(reference, JointReference) else
                            [f'error of {robot.task_link}, {unit}' for unit in ('rad', 'm')])
            self._following = Following(reference, tolerances(gains, model, robot.task_link),
                                        self._tell)
            self._errors = np.zeros(len(self._labels))
        self._warn_of_missing_limits()

    def _rest(self, law: Controller, robot: Robot, task_link: str,
              q: np.ndarray) -> JointReference | PoseReference | None:
        """Return the reference of a law that rests, or None if the law takes none."""
        if law.reference_type is JointReference:
            return JointReference(robot.model, q)
        if law.reference_type is PoseReference:
            return PoseReference(self._pose(robot, q, task_link))
        return None

    def _same_turn(self, q: np.ndarray, reference: JointReference | PoseReference | None
                   ) -> np.ndarray:
        """Return q with continuous joints at most half a turn from the reference or posture."""
        if not len(self._turning) or reference is None:
            return q
        goal = reference.q if isinstance(reference, JointReference) else self._posture
        q, turn = q.copy(), 2.0 * np.pi
        way = goal[self._turning] - q[self._turning]
        q[self._turning] += turn * np.round(way / turn)
        return q

    def _give_up(self, reason: str) -> None:
        """Abort the motion; the next efforts hold the robot where it is."""
        text = f'motion aborted: {reason}; the robot is held where it is'
        self._report.fail('motions aborted', text)
        self._log.warning(text)
        self._abort(reason)
        self._commands.disturb()

    def _abort(self, reason: str) -> None:
        """End all motions."""
        if self._following is not None:
            self._following.abort(reason)

    def _warn_of_missing_limits(self) -> None:
        """Log once for each robot and mode which joints have springs but no effort limit."""
        notes = []
        if self._robot is not None and self._following is not None and (
                names := unlimited_efforts(self._robot.model)):
            notes = [f'mode {self._gains.mode} has springs, but the description has no effort '
                     f'limit of {listed(names)}: their efforts are not clamped']
        if notes and notes != self._notes:
            self._log.warning(notes[0])
        self._notes = notes

    def _too_much_damping(self) -> str:
        """Return a warning of gains that are too high for the rate of the states; log it once."""
        robot, period = self._robot, self._commands.period()
        if robot is None or self._q is None or not period:
            return ''
        try:
            law = make_controller(self._gains, robot.model, robot.task_link, self._posture,
                                  friction=False, dead_band=self._settings.friction_dead_band)
            text = too_much_damping(law, self._gains, self._q, self._goal, period)
        except (BadParameter, RbdError, np.linalg.LinAlgError):
            return ''           # there is no such law, or a joint moves no inertia
        if text and not self._damping_said:
            self._damping_said = True
            self._log.warning(text)
        return text

    def _distance(self, robot: Robot, q: np.ndarray,
                  reference: JointReference | PoseReference) -> np.ndarray:
        """Return how far the robot is from the reference, for each label."""
        if isinstance(reference, PoseReference):
            T = self._pose(robot, q, robot.task_link)
            turn = rotation_vector(T[:3, :3].T @ reference.T[:3, :3])
            way = reference.T[:3, 3] - T[:3, 3]
            return np.array([sqrt(turn @ turn), sqrt(way @ way)])
        if robot.model.nq == robot.model.nv:
            return np.abs(reference.q - q)
        return np.abs(difference(robot.model, q, reference.q))

    # -- References. -----------------------------------------------------------------------------

    @guarded
    def follow_trajectory(self, message: JointTrajectory) -> None:
        """Follow a trajectory of joints, or stop if it has no points."""
        def read(robot: Robot, start: Any) -> tuple[Motion, float, str]:
            if isinstance(start, JointReference):
                return *read_trajectory(message, robot.model, start,
                                        self._gains.mode == 'hybrid'), ''
            if message.points:
                raise Refused(f'mode {self._gains.mode} takes ~/pose_target')
            return *stop_pose(start), ''
        self._follow('joint_trajectory', message.header, read, message.header.stamp)

    @guarded
    def follow_pose(self, message: PoseStamped) -> None:
        """Move the task link to a pose, beginning now."""
        def read(robot: Robot, start: Any) -> tuple[Motion, float, str]:
            if not isinstance(start, PoseReference):
                raise Refused(f'mode {self._gains.mode} takes ~/joint_trajectory')
            q, name = robot.states.q, message.header.frame_id
            link = name.removeprefix(robot.prefix)
            if link not in robot.model.link_names or not name.startswith(robot.prefix):
                raise Refused(f"its frame is '{name}', none of the robot's: "
                              + listed([robot.prefix + one for one in robot.model.link_names]))
            motion, duration = read_pose(message, self._pose(robot, q, link), start,
                                         self._gains.cartesian_speed, self._gains.angular_speed)
            return motion, duration, check_reach(motion, duration, robot.model, robot.task_link, q)
        self._follow('pose_target', message.header, read)

    def _pose(self, robot: Robot, q: np.ndarray, link: str) -> np.ndarray:
        """Return the pose of a link in the root's frame."""
        return robot.workspace.forward_kinematics(q)[robot.model.link_index(link)].copy()

    def _follow(self, topic: str, header: Header,
                read: Callable[[Robot, Any], tuple[Motion, float, str]],
                stamp: Any = None) -> None:
        """Add a motion to the reference, or refuse it."""
        self._count += 1
        sender = Sender(topic, self._count, header)
        try:
            robot, following, now = self._robot, self._following, self._clocks.age_time()
            if self._gains.mode == 'gravity':
                raise Refused('mode gravity follows nothing: set another mode')
            if (robot is None or following is None or not self._commands.enabled
                    or self._commands.begins_anew(now)):
                raise Refused('nothing is commanded now, and no reference outlives that; '
                              'commands need joint states, a subscriber and ~/enable_commands')
            begin = now + (self._delay(convert.seconds(stamp)) if stamp else 0.0)
            motion, duration, note = read(robot, following.at(begin))
            following.add(now, begin, duration, motion, sender)
        except Exception as error:
            expected = isinstance(error, (Refused, RbdError))
            reason = str(error) if expected else f'{type(error).__name__}: {error}'
            text = f'~/{topic} refused: {reason}'
            self._report.fail('references refused' if expected else 'errors', text)
            self._log.warning(text, topic, MOST_REASONS)
            self._tell(sender, ReferenceStatus.REFUSED, reason)
            return
        if note:
            self._log.warning(f'~/{topic}: {note}', topic, MOST_REASONS)
        self._tell(sender, ReferenceStatus.ACCEPTED, note)

    def _tell(self, sender: Sender, state: int, reason: str) -> None:
        """Publish what became of a reference."""
        status = ReferenceStatus(id=sender.number, topic=sender.topic, reference=sender.header,
                                 state=state, accepted=state != ReferenceStatus.REFUSED,
                                 reason=printable(reason))
        status.header.stamp = self._clocks.stamp()
        self._publish(status)

    def _delay(self, stamp: float) -> float:
        """Return how long it is until a stamp, s; 0: it is past, or there is none."""
        now = self._clocks.stamp_time()
        if not (stamp and now):
            return 0.0
        if self._settings.check_stamps and now - stamp > self._settings.state_timeout:
            raise Refused(f'its stamp is {now - stamp:.6g} s old, state_timeout is '
                          f'{self._settings.state_timeout:.6g} s')
        return max(stamp - now, 0.0)

    # -- Diagnostics. ----------------------------------------------------------------------------

    def facts(self, robot: Robot, now: float) -> dict[str, str]:
        """Return mode, reference and largest errors of position since the last call."""
        if not self._commands.enabled or self._commands.begins_anew(now):
            self._abort(LOST)
        left = self._following.left(now) if self._following is not None else 0.0
        errors, self._errors = self._errors, np.zeros_like(self._errors)
        return {'mode': self._gains.mode,
                'reference': ('none' if self._following is None else 'moving' if left
                              else 'holding'),
                'reference, seconds left': f'{left:.3f}',
                **{label: f'{x:.6g}' for label, x in zip(self._labels, errors)}}

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield why there is no law, and what an operator should know of it."""
        recent = self._report.recent
        if self.why_not:
            yield ERROR, f'mode {self._gains.mode} commands nothing: {self.why_not}'
        if recent('references refused'):
            yield WARN, f"references were refused ({recent('references refused')})"
        if recent('motions aborted'):
            yield WARN, f"motions were aborted ({recent('motions aborted')}): see last error"
        for text in (*self._notes, self._too_much_damping()):
            if text:
                yield WARN, text
        if self._controller is None or self._robot is None:
            return
        names = np.array(self._robot.model.velocity_names)
        for which, what in ((self._guard.stopping, 'soft stops push back'),
                            (self._guard.braking, 'faster than their limits, braked')):
            if which.any():
                yield WARN, f'{what}: {listed(names[which])}'
        if (self._gains.mode == 'gravity'
                and (text := compensates_itself(self._settings.effort_convention))):
            yield OK, text
