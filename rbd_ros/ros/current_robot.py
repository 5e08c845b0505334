# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot that a dynamics node speaks of: from descriptions, under changes, one at a time."""

import gc
from math import hypot
from typing import NamedTuple

import numpy as np
from rbd_ros import neutral, RbdError, with_gravity
from rbd_ros.ros.parameters import NO_GRAVITY
from rbd_ros.ros.robot import read_model, Robot, RobotSettings
from rbd_ros.texts import listed


class ChangeSettings(NamedTuple):
    """The parameters of a node that say which robot it takes on, and what to warn of."""

    model_changes: str
    friction: bool


class CurrentRobot:
    """
    The present robot of a node, and how it becomes another.

    What takes long is done by the worker: meanwhile the robot that is there goes on.

    Parameters
    ----------
    settings : ChangeSettings
        Of the node.
    robot_settings : RobotSettings
        By which robots are made.
    commands : EffortCommands
        They follow the robot.
    worker : Worker
        It makes robots.
    report : Report
        Of the node.
    log : Log
        Of the node.
    is_commanding : callable
        Returns whether somebody listens to commands, and they flow.
    alone : bool
        Whether the process is all the node's, so that it may tune the garbage collector.

    Attributes
    ----------
    robot : Robot or None
        As the latest description that was good has it.

    """

    def __init__(self, settings, robot_settings, commands, worker, report, log, is_commanding,
                 alone):
        self._settings, self._robot_settings = settings, robot_settings
        self._commands, self._worker = commands, worker
        self._report, self._log, self._alone = report, log, alone
        self._is_commanding = is_commanding
        self.robot, self._count, self._newest = None, 0, None

    def configure(self, settings: ChangeSettings, robot_settings: RobotSettings) -> None:
        """Use other settings from now on; `follow_gravity` lets the robot have theirs."""
        self._settings, self._robot_settings = settings, robot_settings

    # -- Descriptions. ---------------------------------------------------------------------------

    def describe(self, text):
        """
        Take on another robot as a whole, or keep the present one if its text is bad or not wanted.

        Parameters
        ----------
        text : str
            URDF.

        """
        if text == self._newest or (self.robot is not None and text == self.robot.text):
            return
        if self._is_unwanted():
            return
        self._newest = text
        self._worker.submit(lambda: self._make(text), self._take)

    def _is_unwanted(self):
        """Return whether no other description is wanted now, and say so."""
        policy = self._settings.model_changes
        if self.robot is None or policy == 'accept' or (
                policy == 'while_disabled' and not self._is_commanding()):
            return False
        todo = ('' if policy == 'never' else ': disable ~/effort_commands and publish it again, '
                'or set model_changes to accept')
        self._refuse(f'another robot description is not accepted, model_changes is {policy}{todo}')
        return True

    def _refuse(self, text):
        self._report.fail('descriptions refused', text)
        if self.robot is None:
            self._log.error(f'{text}; waiting for another description')
        else:
            self._log.warning(f"{text}; '{self.robot.model.name}' stays in use")

    def _make(self, text):
        """Return the robot of a description, or what is wrong with it; None if it is outdated."""
        if text != self._newest:
            return None
        settings = self._robot_settings
        try:
            model = read_model(text, settings)
            robot = Robot(text, model, settings)
            # Whatever is not compiled yet, a new kind of joint perhaps, is compiled now.
            for workspace in (robot.workspace, robot.service_workspace):
                workspace.all_terms(neutral(model), np.zeros(model.nv))
            return robot
        except RbdError as error:
            return f'robot description refused: {error}'

    def _take(self, robot):
        """Go on with a robot that was made, if it is still wanted."""
        if robot is None:
            return
        self._newest = None
        if isinstance(robot, str):
            self._refuse(robot)
            return
        if self._is_unwanted():
            return
        payloads = self.robot.payloads() if self.robot else {}
        if payloads:
            self._log.warning('the new description comes without the loads on ' + listed(payloads))
        if self.robot is not None and self._is_commanding():
            self._log.warning('the robot changes while its commands flow; model_changes is '
                              f'{self._settings.model_changes}')
        first = self.robot is None
        self.change(robot)
        model = robot.model
        if self._alone and first:
            # What is there now stays: without it the garbage collector stops the node for 50 ms
            # at times to look through all that the compiler has left behind. A later robot adds
            # little, and states wait for no collection.
            gc.collect()
            gc.freeze()
        for note in model.warnings:
            self._log.warning(note)
        if self._settings.friction and robot.lacks_friction():
            self._log.warning(f"friction is true, but '{model.name}' has neither friction nor "
                              'damping: ~/effort_commands are those without it')
        self._log.info(f"model {robot.model_id}: '{model.name}', {len(model.links)} links, "
                       f'{model.mass:.4g} kg, {model.nv} joints: {listed(model.velocity_names)}')
        self.follow_gravity()

    # -- Changes. --------------------------------------------------------------------------------

    def change(self, robot, before=None):
        """
        Go on with another robot.

        Parameters
        ----------
        robot : Robot
            The other one.
        before : Robot, optional
            The present one, if the other is the same under another load or gravity.

        """
        self._count += 1
        robot.become(self._count, self._commands, before)
        self.robot = robot
        if self._commands.mismatch:
            self._report.fail('commands ended', self._commands.mismatch)
            self._log.error(self._commands.mismatch)

    def with_model(self, robot, model):
        """Return a robot with another model under the same description."""
        return Robot(robot.text, model, self._robot_settings)

    def enable_commands(self, wanted):
        """Let commands flow (again) for the present robot, or bring them to an end."""
        if not wanted:
            self._commands.disable()
            return
        self._commands.enable()
        if self.robot is not None:
            self.robot.arrange_commands(self._commands)

    def follow_gravity(self):
        """Let the robot have the gravity that the settings say."""
        robot, gravity = self.robot, self._robot_settings.gravity
        if robot is None or tuple(robot.model.gravity) == gravity:
            return

        def take(changed):
            # Meanwhile another change may have come: this one is then made of what is there now.
            if self.robot is robot:
                self.change(changed, robot)
                self.say_gravity()
            self.follow_gravity()
        self._worker.submit(
            lambda: self.with_model(robot, with_gravity(robot.model, gravity)), take)

    def say_gravity(self):
        """Log the gravity that the robot has."""
        x, y, z = self.robot.model.gravity
        none = ': none, so gravity torques are zero' if hypot(x, y, z) < NO_GRAVITY else ''
        self._log.warning(f'gravity is now [{x:.6g}, {y:.6g}, {z:.6g}] m/s^2{none}')
