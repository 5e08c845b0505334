# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The current robot of a dynamics node, and its replacement by descriptions and requests."""

from collections.abc import Callable, Iterator
from contextlib import suppress
import gc
from math import hypot
from typing import Annotated, NamedTuple

import numpy as np
from rbd_ros import Model, neutral, RbdError, SingularError, with_gravity
from rbd_ros._internal.setting import Setting
from rbd_ros._internal.text import listed
from rbd_ros.kernels.jit.numba_backend import WAY
from rbd_ros.model.plausibility import nothing_to_compute
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.parameters.parameters import NO_GRAVITY
from rbd_ros.ros.robot.read_model import (
    gravity_in_root, read_model, require_stated_efforts, RobotSettings)
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log, Report, WARN
from rbd_ros.ros.runtime.worker import Worker
from rbd_ros.workspace.machine_methods import make_ready


class ChangeSettings(NamedTuple):
    """The parameters that determine which changes are accepted, and what is warned about."""

    model_changes: Annotated[str, Setting(
        'while_disabled', 'Whether another description is accepted: always, never, or unless '
        'commands are enabled and have a subscriber.',
        choices=('accept', 'while_disabled', 'never'), changeable=True)]
    friction: bool
    limit_efforts: bool


def read_robot(text: str, settings: RobotSettings, limit_efforts: bool) -> Robot:
    """Return the robot of a description, or raise RbdError if the node cannot use it."""
    robot = Robot(text, read_model(text, settings), settings)
    if limit_efforts:
        require_stated_efforts(robot.model, robot.possible_commands)
    return robot


class CurrentRobot(Part):
    """Holds the current robot; it stays in use while the worker builds the next one."""

    def __init__(self, settings: ChangeSettings, robot_settings: RobotSettings,
                 commands: EffortCommands, worker: Worker, report: Report, log: Log,
                 is_commanding: Callable[[], bool], prepare: Callable[[Robot], object],
                 alone: bool) -> None:
        # `is_commanding`: whether commands are being sent to a subscriber. `prepare` is called
        # with a new robot in the worker's thread, before it is used. `alone`: whether the node
        # has the process to itself and may tune the garbage collector.
        self._settings, self._robot_settings = settings, robot_settings
        self._commands, self._worker = commands, worker
        self._report, self._log, self._alone = report, log, alone
        self._is_commanding, self._prepare = is_commanding, prepare
        self.robot: Robot | None = None
        self._newest: str | None = None
        self._count = 0

    def configure(self, settings: ChangeSettings, robot_settings: RobotSettings) -> None:
        """Replace the settings; `follow_settings` applies them to the robot."""
        self._settings, self._robot_settings = settings, robot_settings

    def describe(self, text: str, robot: Robot | None = None) -> None:
        """Replace the robot by that of a URDF (`robot`, if it is read), unless it is refused."""
        if text == self._newest:
            return
        if self.robot is not None and text == self.robot.text:
            self._newest = None     # one that is being read is outdated
            return
        if self._is_unwanted():
            return
        self._newest = text
        self._worker.submit(lambda: self._make(text, robot),
                            lambda made: self._take(text, made))

    def _is_unwanted(self) -> bool:
        """Return whether another description is rejected now, and report it."""
        policy = self._settings.model_changes
        if self.robot is None or policy == 'accept' or (
                policy == 'while_disabled' and not self._is_commanding()):
            return False
        todo = ('' if policy == 'never' else ': disable ~/effort_commands and publish it again, '
                'or set model_changes to accept')
        self._refuse(f'another robot description is not accepted, model_changes is {policy}{todo}')
        return True

    def _refuse(self, text: str) -> None:
        self._report.fail('descriptions refused', text)
        if self.robot is None:
            self._log.error(f'{text}; waiting for another description')
        else:
            self._log.warning(f"{text}; '{self.robot.model.name}' stays in use")

    def _make(self, text: str, robot: Robot | None) -> Robot | str | None:
        """Return the robot of a description, an error message, or None if it is outdated."""
        if text != self._newest:
            return None
        try:
            robot = robot or read_robot(text, self._robot_settings, self._settings.limit_efforts)
            # Compile now what every state needs, or what is compiled soonest.
            if WAY == 'cc':
                make_ready(robot.model, 'gravity_torques', 'all_terms')
            with suppress(SingularError):       # the robot may be in another configuration
                robot.workspace.all_terms(neutral(robot.model), np.zeros(robot.model.nv))
        except RbdError as error:
            return f'robot description refused: {error}'
        self._prepare(robot)
        return robot

    def _take(self, text: str, robot: Robot | str | None) -> None:
        """Use what `_make` returned, unless the description is outdated."""
        if robot is None or text != self._newest:
            return
        self._newest = None
        if isinstance(robot, str):
            self._refuse(robot)
            return
        if self._is_unwanted():
            return
        if self.robot is not None and (
                lost := self.robot.payloads().keys() - robot.payloads().keys()):
            self._log.warning('the new description removes the payloads on '
                              + listed(sorted(lost)))
        if self.robot is not None and self._is_commanding():
            self._log.warning('the robot changes while it is being commanded; model_changes is '
                              f'{self._settings.model_changes}')
        first = self.robot is None
        self.change(robot)
        model = robot.model
        if self._alone and first:
            # Garbage collection of the compiler's objects would stop the node for up to 50 ms.
            gc.collect()
            gc.freeze()
        for note in model.warnings:
            self._log.warning(note)
        if self._settings.friction and robot.lacks_friction():
            self._log.warning(f"friction is true, but '{model.name}' has neither friction nor "
                              'damping to compensate')
        self._log.info(f"model {robot.model_id}: '{model.name}', {len(model.links)} links, "
                       f'{model.mass:.4g} kg, {model.nv} joints: {listed(model.velocity_names)}')
        self.follow_settings()

    def change(self, robot: Robot, before: Robot | None = None) -> None:
        """Replace the current robot; `before` is given if only its payload or gravity changes."""
        self._count += 1
        robot.start(self._count, before)
        self._commands.set_joints(robot.possible_commands, robot.command_limits())
        self._set_command_order(robot)
        self.robot = robot
        if self._commands.mismatch:
            self._report.fail('commands ended', self._commands.mismatch)
            self._log.error(self._commands.mismatch)

    def with_model(self, robot: Robot, model: Model) -> Robot:
        """Return a robot with another model under the same description, for a worker."""
        return Robot(robot.text, model, self._robot_settings)

    def _set_command_order(self, robot: Robot) -> None:
        """Set the order of the commanded joints, unless they belong to another robot."""
        if not self._commands.mismatch:
            robot.command_columns = robot.columns(self._commands.joints)

    def enable_commands(self, wanted: bool) -> None:
        """Enable commands (again) for the current robot, or disable them."""
        if not wanted:
            self._commands.disable()
            return
        self._commands.enable()
        if self.robot is not None:
            self._set_command_order(self.robot)

    def follow_settings(self) -> None:
        """Apply the gravity and the task link of the settings to the robot."""
        robot, settings = self.robot, self._robot_settings
        gravity = gravity_in_root(settings.gravity, settings.mounting_rpy)
        if robot is None or (tuple(robot.model.gravity) == gravity
                             and robot.task_link == settings.task_link):
            return

        def take(changed: Robot) -> None:
            # If another change came first, start again with the robot that is now in use.
            if self.robot is robot:
                self.change(changed, robot)
                if tuple(robot.model.gravity) != gravity:
                    self.log_gravity()
            self.follow_settings()
        self._worker.submit(
            lambda: self.with_model(robot, with_gravity(robot.model, gravity)), take)

    def facts(self) -> dict[str, str]:
        """Return names, masses and gravity of the robot."""
        facts = {'model_changes': self._settings.model_changes}
        if self.robot is None:
            return facts
        model = self.robot.model
        return facts | {
            'robot': model.name, 'model id': str(self.robot.model_id),
            'joints': listed(model.velocity_names), 'mass, kg': f'{model.mass:.6g}',
            **{f'gravity {axis}, m/s^2': f'{x:.6g}' for axis, x in zip('xyz', model.gravity)},
            **{f'load on {link}, kg': f'{mass:.6g}'
               for link, mass in self.robot.payloads().items()}}

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield why there is no robot, and what a robot has nothing of."""
        if self.robot is None:
            reason = f'; {self._report.last_error}' if self._report.last_error else ''
            yield WARN, f'waiting for a robot description{reason}'
            return
        model = self.robot.model
        if self._settings.friction and self.robot.lacks_friction():
            yield WARN, 'friction is true, but no joint of the robot has friction or damping'
        for note in nothing_to_compute(model.links, model.joints):
            yield WARN, note
        if hypot(*model.gravity) < NO_GRAVITY:
            yield WARN, 'gravity is zero'

    def log_gravity(self) -> None:
        """Log the gravity of the robot."""
        assert self.robot is not None
        x, y, z = self.robot.model.gravity
        none = ': none, so gravity torques are zero' if hypot(x, y, z) < NO_GRAVITY else ''
        self._log.warning(f'gravity is now [{x:.6g}, {y:.6g}, {z:.6g}] m/s^2{none}')
