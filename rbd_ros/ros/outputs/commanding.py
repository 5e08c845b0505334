# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Effort commands: for each state, repeated while none arrives, and at the end."""

from collections.abc import Iterator, Sequence
from math import isfinite
from time import sleep
from typing import Any

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.control import EffortConvention
from rbd_ros.ros.commands.effort_commands import COMPLETE, EffortCommands
from rbd_ros.ros.control.compensation import Law
from rbd_ros.ros.messages.topics import CommandMessages, COMMANDS
from rbd_ros.ros.outputs.terms import PublishingSettings
from rbd_ros.ros.outputs.withheld import NOT_CONFIRMED, Withheld
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.part import Part, steady_timer
from rbd_ros.ros.runtime.report import ERROR, guarded, Lasting, Log, OK, Report, WARN
from rbd_ros.workspace.memory.results import DynamicsTerms
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher

# The default event callbacks of publishers cost the executor a tenth of a core at 1 kHz.
NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)
COMMAND_PERIOD = 0.01    # s between two commands while no states arrive
# s between two searches for subscribers; searching at every state takes 3 % of a core at 1 kHz
LISTENERS_PERIOD = 0.1
# A measured effort is not the commanded one if it differs by more than each of: N m or N; a share
# of the command; a share of the largest command. Friction and sensors behind gears explain less.
MIN_DIFFERENCE, DIFFERENCE_RATIO, NOISE_RATIO = 1.0, 0.5, 0.1
MAX_END_TIME = 4.5    # s after which the node ends even if commands have not reached zero


class Commanding(Part):
    """The commands of a dynamics node, those of `law`, on `topics`; `active`: outputs may flow."""

    def __init__(self, node: Node, settings: PublishingSettings, clocks: Clocks,
                 current: CurrentRobot, commands: EffortCommands, law: Law, withheld: Withheld,
                 report: Report, log: Log, topics: Sequence[str]) -> None:
        self._node, self._settings, self._clocks = node, settings, clocks
        self._current, self._commands, self._law = current, commands, law
        self._withheld, self._report, self._log = withheld, report, log
        self._unlike = Lasting()     # joints that do not follow commands
        self.active = False
        self.subscribed: list[str] = []    # The topics with subscribers
        self._constants_of: tuple[Sequence[str], EffortConvention] | None = None
        self._messages = CommandMessages()
        self._publishers: dict[str, Publisher] = {
            topic: node.create_publisher(CommandMessages.kinds[topic], topic, 10,
                                         event_callbacks=NO_EVENTS) for topic in topics}
        self._start_timer()

    def configure(self, settings: PublishingSettings) -> None:
        before, self._settings = self._settings, settings
        if settings.on_stale != before.on_stale:
            self._node.destroy_timer(self._timer)
            self._start_timer()

    def _start_timer(self) -> None:
        stops = self._settings.on_stale == 'stop'
        self._timer = steady_timer(self._node, LISTENERS_PERIOD if stops else COMMAND_PERIOD,
                                   self._on_silence)

    def close(self) -> None:
        self.active = False
        self._node.destroy_timer(self._timer)
        self._commands.note_no_subscriber(self._clocks.age_time())
        for publisher in self.publishers():
            self._node.destroy_publisher(publisher)

    def publishers(self) -> list[Any]:
        return list(self._publishers.values())

    def is_commanding(self) -> bool:
        """Return whether commands are being sent to a subscriber."""
        return self.active and self._commands.enabled and bool(self._listened_to())

    def _listened_to(self) -> list[str]:
        return [topic for topic, publisher in self._publishers.items()
                if publisher.get_subscription_count()]

    def find_subscribers(self, now: float) -> None:
        """Find the topics with subscribers; tell the commands, also while they are not sent."""
        self.subscribed = self._listened_to()
        note = (self._commands.note_subscriber if self.subscribed
                else self._commands.note_no_subscriber)
        note(now)

    def why_withheld(self) -> str:
        """Return why commands with subscribers are withheld, or ''."""
        return next((self._withheld.reasons[topic] for topic in self.subscribed
                     if topic in self._withheld.reasons), '')

    def last(self) -> dict[str, Any] | str:
        """Return the terms of `COMMANDED` for the state that was answered, or why not."""
        if not self.subscribed:
            return 'nothing listens to ~/effort_commands'
        return self.why_withheld() or {'command_joints': tuple(self._commands.joints),
                                       'commanded': self._commands.last}

    def findings(self) -> Iterator[tuple[bytes, str]]:
        robot, settings, commands = self._current.robot, self._settings, self._commands
        if commands.mismatch:
            yield ERROR, commands.mismatch
        elif not commands.enabled:
            yield WARN, '~/effort_commands are disabled'
        elif why_not := self.why_withheld():
            yield WARN, f'{COMMANDS} is withheld: {why_not}'
        if still := self._unlike.update({} if robot is None else self._unlike_efforts(robot)):
            yield WARN, ('measured efforts are not those commanded, N m or N: '
                         f'{listed(still)}: is the controller active? ros2_control clamps '
                         'commands, and zeroes those that point outwards at a limit '
                         '(enforce_command_limits)')
        if settings.friction and robot is not None and (names := [
                name for name, x in zip(robot.model.velocity_names, robot.known_velocity(
                    settings.missing_velocity)) if not isfinite(x)]):
            yield WARN, (f'commands do not compensate friction of {listed(names)}: velocities are '
                         'unknown')
        if beyond := commands.beyond_limits():
            yield WARN, ('efforts beyond the limits of the URDF, '
                         + ('clamped: ' if settings.limit_efforts else 'not clamped: ')
                         + listed(beyond))

    def _unlike_efforts(self, robot: Robot) -> dict[str, str]:
        """Return measured efforts that are not those commanded, by joint."""
        commands, settings = self._commands, self._settings
        if (not (commands.complete and self.is_commanding())
                or robot.missing(self._clocks.age_time(), settings.state_timeout)):
            return {}
        measured = robot.measured_commands(robot.velocity(settings.missing_velocity))[
            robot.command_columns]
        size = np.abs(commands.last)
        largest = np.maximum(np.maximum(MIN_DIFFERENCE, NOISE_RATIO * size.max(initial=0.0)),
                             DIFFERENCE_RATIO * size)
        return {name: f'{name} {x:.4g} instead of {goal:.4g}' for name, x, goal, most in zip(
            commands.joints, measured, commands.last, largest) if abs(x - goal) > most}

    def answer(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms,
               now: float) -> str | None:
        """Command the efforts of the control law, or return why not."""
        if not self._commands.enabled:
            return 'commands are disabled'
        restarts = self._commands.starts_blend(now)
        if restarts and robot.states.unconfirmed:
            return NOT_CONFIRMED
        start = None
        if self._commands.starts(now):
            start = robot.measured_commands(v)[robot.command_columns]
            if why_not := self._commands.why_not_start(start):
                return why_not
        efforts = self._law.efforts(robot, v, terms, now, restarts)
        if isinstance(efforts, str):
            return efforts
        complete = self._commands.complete
        self._publish(self._commands.update(efforts[robot.command_columns], now,
                                            self._law.guard(robot, efforts), start))
        if self._commands.complete and not complete:
            self._log.info(COMPLETE)
            for level, text in self._law.findings():
                if level == OK:
                    self._log.info(text)
        return None

    def note_duration(self, seconds: float) -> None:
        """Note how long the node took to answer a state, s."""
        self._commands.note_duration(seconds)

    def _publish(self, efforts: np.ndarray) -> None:
        """Publish efforts, N m or N, in the units of the drives."""
        joints, convention = self._commands.joints, self._settings.effort_convention
        if (joints, convention) != self._constants_of:
            self._constants_of = joints, convention
            self._constants = convention.constants_of_commands(joints)
        efforts = efforts / self._constants
        for topic in self.subscribed:
            self._publishers[topic].publish(self._messages.message(topic, joints, efforts))

    def _on_silence(self) -> None:
        # rclpy gives a callback that takes an argument its timer's times.
        self._repeat()

    @guarded
    def _repeat(self, later: float = 0.0) -> bool:
        """Send the command that is due while no states arrive; return whether there was one."""
        now = self._clocks.age_time()
        self.find_subscribers(now + later)
        if not (self.active and self.subscribed):
            return False
        robot = self._current.robot
        states_come = (robot is not None and self._settings.publish_rate > 0.0
                       and not robot.missing(now, self._settings.state_timeout))
        efforts = self._commands.repeat(now + later, states_come)
        if efforts is not None:
            self._publish(efforts)
        return efforts is not None

    def finish(self) -> None:
        """End the commands, then stop all outputs; this takes at most `MAX_END_TIME`."""
        self._commands.end()
        sent, begin, robot_begin = False, self._clocks.steady_time(), self._clocks.age_time()
        # No /clock is received meanwhile: simulated time stands still.
        while self._repeat((self._clocks.steady_time() - begin)
                           - (self._clocks.age_time() - robot_begin)):
            sent = True
            if self._clocks.steady_time() - begin > MAX_END_TIME:
                self._log.error('commands ended before they reached zero: effort_rate_limit is '
                                'too low')
                break
            sleep(COMMAND_PERIOD)
        if sent:
            for publisher in self._publishers.values():
                publisher.wait_for_all_acked(Duration(seconds=0.2))
        self.active = False
