# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Messages with references: accepted or refused motions, and their status."""

from collections.abc import Callable
from types import NoneType
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
import numpy as np
from rbd_msgs.msg import ReferenceStatus
from rbd_ros import RbdError
from rbd_ros._internal.text import listed, printable
from rbd_ros.control import EffortConvention, JointReference, PoseMotion, PoseReference
from rbd_ros.ros import convert
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.control.law_factory import ControlSettings, LAWS
from rbd_ros.ros.control.reference_messages import (
    check_reach, Following, Motion, read_pose, read_trajectory, Refused, STOP_TIME)
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.report import guarded, Log, Report
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

MAX_REASONS = 10    # Different reasons that are logged in one period for references of one topic


class LawSettings(NamedTuple):
    """The parameters of the dynamics node that control laws depend on."""

    friction: bool
    friction_dead_band: float
    springs: bool
    effort_convention: EffortConvention
    missing_velocity: str
    state_timeout: float
    check_stamps: bool


class Sender(NamedTuple):
    """Topic, number and header of a message with a reference."""

    topic: str
    number: int
    header: Header


def link_pose(robot: Robot, q: np.ndarray, link: str) -> np.ndarray:
    """Return the pose of a link in the root's frame."""
    return robot.workspace.forward_kinematics(q)[robot.model.link_index(link)].copy()


class ReferenceReceiver:
    """The reference of a control law, and the messages that move it; see `ControlModes`."""

    def __init__(self, settings: LawSettings, control: ControlSettings, clocks: Clocks,
                 commands: EffortCommands, report: Report, log: Log,
                 publish: Callable[[ReferenceStatus], object]) -> None:
        self._settings, self._control, self._clocks = settings, control, clocks
        self._commands, self._report, self._log = commands, report, log
        self._publish, self._count = publish, 0
        # The robot of the law, and its reference; None: the law has none.
        self._robot: Robot | None = None
        self._following: Following | None = None

    @guarded
    def on_joint_trajectory(self, message: JointTrajectory) -> None:
        """Start a joint trajectory, or stop if it has no points."""
        def read(robot: Robot, start: Any) -> tuple[Motion, float, str]:
            if isinstance(start, JointReference):
                return *read_trajectory(message, robot.model, start,
                                        LAWS[self._control.mode].takes_torques), ''
            if message.points:
                raise Refused(f'mode {self._control.mode} takes ~/pose_target')
            return PoseMotion(start.T, start.T, STOP_TIME, twist=start.V), STOP_TIME, ''
        self._accept('joint_trajectory', message.header, read, message.header.stamp)

    @guarded
    def on_pose_target(self, message: PoseStamped) -> None:
        """Start a motion of the task link to a pose."""
        def read(robot: Robot, start: Any) -> tuple[Motion, float, str]:
            if not isinstance(start, PoseReference):
                raise Refused(f'mode {self._control.mode} takes ~/joint_trajectory')
            q, name = robot.states.q, message.header.frame_id
            link = name.removeprefix(robot.prefix)
            if link not in robot.model.link_names or not name.startswith(robot.prefix):
                raise Refused(f"its frame '{name}' is none of the robot's frames: "
                              + listed([robot.prefix + one for one in robot.model.link_names]))
            motion, duration = read_pose(
                message, link_pose(robot, q, link), start, self._control.cartesian_speed,
                self._control.angular_speed)
            return motion, duration, check_reach(motion, duration, robot.model, robot.task_link, q)
        self._accept('pose_target', message.header, read)

    def _accept(self, topic: str, header: Header,
                read: Callable[[Robot, Any], tuple[Motion, float, str]],
                stamp: Any = None) -> None:
        self._count += 1
        sender = Sender(topic, self._count, header)
        try:
            robot, following, now = self._robot, self._following, self._clocks.age_time()
            if LAWS[self._control.mode].reference_type is NoneType:
                raise Refused(f'mode {self._control.mode} takes no references: set another mode')
            if (robot is None or following is None or not self._commands.enabled
                    or self._commands.starts_blend(now)):
                raise Refused('nothing is commanded now, so references are discarded; '
                              'commands need joint states, a subscriber and ~/enable_commands')
            begin = now + (self._delay(convert.seconds(stamp)) if stamp else 0.0)
            motion, duration, note = read(robot, following.at(begin))
            following.add(now, begin, duration, motion.at, sender)
        except Exception as error:
            expected = isinstance(error, (Refused, RbdError))
            reason = str(error) if expected else f'{type(error).__name__}: {error}'
            text = f'~/{topic} refused: {reason}'
            self._report.fail('references refused' if expected else 'errors', text)
            self._log.warning(text, topic, MAX_REASONS)
            self._publish_status(sender, ReferenceStatus.REFUSED, reason)
            return
        if note:
            self._log.warning(f'~/{topic}: {note}', topic, MAX_REASONS)
        self._publish_status(sender, ReferenceStatus.ACCEPTED, note)

    def _publish_status(self, sender: Sender, state: int, reason: str) -> None:
        status = ReferenceStatus(id=sender.number, topic=sender.topic, reference=sender.header,
                                 state=state, accepted=state != ReferenceStatus.REFUSED,
                                 reason=printable(reason))
        status.header.stamp = self._clocks.stamp()
        self._publish(status)

    def _delay(self, stamp: float) -> float:
        """Return the time until a stamp, s; 0 if it is past or zero."""
        now = self._clocks.stamp_time()
        if not (stamp and now):
            return 0.0
        if self._settings.check_stamps and now - stamp > self._settings.state_timeout:
            raise Refused(f'its stamp is {now - stamp:.6g} s old, state_timeout is '
                          f'{self._settings.state_timeout:.6g} s')
        return max(stamp - now, 0.0)

    def _abort(self, reason: str) -> None:
        if self._following is not None:
            self._following.abort(reason)
