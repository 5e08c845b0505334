# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The modes of the torque controller: a control law, and a reference that never outlives a gap.

The invariant, after any sequence of calls:

1. Efforts are those of the law of the present mode, gains and robot, which has seen nothing but
   the states since the last reset; there is a reset whenever `EffortCommands` begin a blend, or a
   law or robot is new.
2. The reference rests where the robot was at the last reset, until a motion is accepted. It is
   continuous, and so is its velocity: a motion begins where and as fast as the reference is.
3. What is refused changes nothing.
4. Without a measured velocity, or a law that can be, there are no efforts.

That efforts become commands which never step is the invariant of `EffortCommands`.

"""

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
import numpy as np
from rbd_ros import neutral, RbdError
from rbd_ros.control import EffortConvention, JointReference, PoseReference
from rbd_ros.control.controller import Controller
from rbd_ros.model.configurations import difference
from rbd_ros.model.se3 import rotation_vector
from rbd_ros.ros import convert
from rbd_ros.ros.callbacks import guarded
from rbd_ros.ros.clocks import Clocks
from rbd_ros.ros.control_laws import make_controller, WITHOUT_CORIOLIS
from rbd_ros.ros.control_parameters import Gains
from rbd_ros.ros.effort_commands import EffortCommands
from rbd_ros.ros.log import Log
from rbd_ros.ros.parameter_checks import BadParameter
from rbd_ros.ros.references import (Motion, Motions, read_pose, read_trajectory, Refused,
                                    stop_pose)
from rbd_ros.ros.report import ERROR, Report, WARN
from rbd_ros.ros.robot import Robot
from rbd_ros.texts import listed
from rbd_ros.workspace.results import DynamicsTerms
from trajectory_msgs.msg import JointTrajectory


class LawSettings(NamedTuple):
    """The parameters of the node that control laws depend on."""

    friction: bool
    friction_dead_band: float
    effort_convention: EffortConvention
    missing_velocity: str
    state_timeout: float
    check_stamps: bool


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

    Attributes
    ----------
    why_not : str
        Why there is no law; empty: there is one, or none is needed yet.

    """

    def __init__(self, settings: LawSettings, gains: Gains, clocks: Clocks,
                 commands: EffortCommands, report: Report, log: Log) -> None:
        self._settings, self._gains, self._clocks = settings, gains, clocks
        self._commands, self._report, self._log = commands, report, log
        self._robot: Robot | None = None
        self._end('')

    def _end(self, why_not: str) -> None:
        """Have no law, and no reference."""
        self._controller: Controller | None = None
        self._motions: Motions | None = None
        self.why_not = why_not
        # Largest error of each label since the last report; none before a reference.
        self._labels: list[str] = []
        self._errors = np.zeros(0)

    def configure(self, settings: LawSettings, gains: Gains) -> None:
        """Use other settings and gains: the node disturbs the commands, which resets the law."""
        self._settings, self._gains = settings, gains

    def check(self, gains: Gains, robot: Robot) -> None:
        """Raise BadParameter or RbdError if there is no law with these gains for a robot."""
        self._make(gains, robot, neutral(robot.model))

    def _make(self, gains: Gains, robot: Robot, q: np.ndarray) -> Controller:
        settings = self._settings
        return make_controller(gains, robot.model, robot.task_link, q, friction=settings.friction,
                               dead_band=settings.friction_dead_band)

    # -- Efforts. --------------------------------------------------------------------------------

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                anew: bool) -> np.ndarray | str:
        """Return the efforts of the law, or why there are none; see `Law`."""
        # A velocity that is taken as zero damps nothing.
        if robot.states.missing_velocities() and self._settings.missing_velocity == 'zero':
            v = None
        if v is None:
            self._end('no law without velocities, of '
                      + listed(robot.states.missing_velocities()))
            return self.why_not
        q = robot.states.q
        if anew or robot is not self._robot or self._controller is None:
            if not anew:
                self._commands.disturb()
            self._reset(robot, q)
        if self._controller is None:
            return self.why_not
        reference = None if self._motions is None else self._motions.at(now)
        tau = self._controller.update(now, q, v, reference)
        if not np.all(np.isfinite(tau)):
            return 'the efforts of the law are not finite'
        self._note_error(robot, q, reference)
        coriolis = (np.zeros_like(terms.g) if self._gains.mode in WITHOUT_CORIOLIS
                    else terms.coriolis_torques)
        return self._settings.effort_convention.without_own(tau, terms.g, coriolis)

    def _reset(self, robot: Robot, q: np.ndarray) -> None:
        """Begin with a new law, which holds the robot where it is."""
        self._end('')
        self._robot = robot
        try:
            controller = self._make(self._gains, robot, q)
        except (BadParameter, RbdError) as error:
            self._end(str(error))
            return
        self._controller = controller
        if controller.reference_type is JointReference:
            self._motions = Motions(JointReference(robot.model, q))
            self._labels = [f'error of {name}, rad or m' for name in robot.model.velocity_names]
        elif controller.reference_type is PoseReference:
            self._motions = Motions(PoseReference(self._pose(robot, q)))
            self._labels = [f'error of {robot.task_link}, {unit}' for unit in ('rad', 'm')]
        self._errors = np.zeros(len(self._labels))

    def _pose(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """Return the pose of the task link in the root's frame."""
        return robot.workspace.forward_kinematics(q)[
            robot.model.link_index(robot.task_link)].copy()

    def _note_error(self, robot: Robot, q: np.ndarray,
                    reference: JointReference | PoseReference | None) -> None:
        """Remember the largest errors of position."""
        if reference is None:
            return
        if isinstance(reference, PoseReference):
            T = self._pose(robot, q)
            turn = rotation_vector(T[:3, :3].T @ reference.T[:3, :3])
            way = reference.T[:3, 3] - T[:3, 3]
            errors = [sqrt(turn @ turn), sqrt(way @ way)]
        elif robot.model.nq == robot.model.nv:
            errors = np.abs(reference.q - q)
        else:
            errors = np.abs(difference(robot.model, q, reference.q))
        np.maximum(self._errors, errors, out=self._errors)

    # -- References. -----------------------------------------------------------------------------

    @guarded
    def follow_trajectory(self, message: JointTrajectory) -> None:
        """Follow a trajectory of joints, or stop if it has no points."""
        def read(robot: Robot, start: Any) -> tuple[Motion, float]:
            if isinstance(start, JointReference):
                return read_trajectory(message, robot.model, start, self._gains.mode == 'hybrid')
            if message.points:
                raise Refused(f'mode {self._gains.mode} takes ~/pose_target')
            return stop_pose(start)
        self._follow('~/joint_trajectory', read, message.header.stamp)

    @guarded
    def follow_pose(self, message: PoseStamped) -> None:
        """Move the task link to a pose, beginning now."""
        def read(robot: Robot, start: Any) -> tuple[Motion, float]:
            if not isinstance(start, PoseReference):
                raise Refused(f'mode {self._gains.mode} takes ~/joint_trajectory')
            return read_pose(message, robot.prefix + robot.model.link_names[0], start,
                             self._gains.cartesian_speed, self._gains.angular_speed)
        self._follow('~/pose_target', read)

    def _follow(self, topic: str, read: Callable[[Robot, Any], tuple[Motion, float]],
                stamp: Any = None) -> None:
        """Add a motion to the reference, or refuse it."""
        try:
            robot, motions, now = self._robot, self._motions, self._clocks.age_time()
            if self._gains.mode == 'gravity':
                raise Refused('mode gravity follows nothing: set another mode')
            if (robot is None or motions is None or not self._commands.enabled
                    or self._commands.begins_anew(self._clocks.steady_time())):
                raise Refused('nothing is commanded now, and no reference outlives that; '
                              'commands need joint states, a subscriber and ~/enable_commands')
            begin = now + (self._delay(convert.seconds(stamp)) if stamp else 0.0)
            motion, duration = read(robot, motions.at(begin))
            motions.add(now, begin, duration, motion)
        except (Refused, RbdError) as error:
            text = f'{topic} refused: {error}'
            self._report.fail('references refused', text)
            self._log.warning(text, topic)

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
        left = self._motions.left(now) if self._motions is not None else 0.0
        errors, self._errors = self._errors, np.zeros_like(self._errors)
        return {'mode': self._gains.mode,
                'reference': ('none' if self._motions is None else 'moving' if left
                              else 'holding'),
                'reference, seconds left': f'{left:.3f}',
                **{label: f'{x:.6g}' for label, x in zip(self._labels, errors)}}

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield why there is no law, and references that were refused."""
        if self.why_not:
            yield ERROR, f'mode {self._gains.mode} commands nothing: {self.why_not}'
        if self._report.recent('references refused'):
            yield WARN, f"references were refused ({self._report.recent('references refused')})"
