# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Efforts of ~/effort_commands: the interface of control laws, and gravity compensation."""

from collections.abc import Callable, Iterable
from typing import Annotated, NamedTuple

import numpy as np
from rbd_ros import spring_torques
from rbd_ros._internal.setting import Setting
from rbd_ros.control import EffortConvention, friction_compensation
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import OK
from rbd_ros.workspace.memory.results import DynamicsTerms


class Law(Part):
    """Computes the efforts of commands."""

    def prepare(self, robot: Robot) -> None:
        """Compile the kernels that efforts for a robot need, if any."""

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                reset: bool) -> np.ndarray | str:
        """
        Return the efforts for a state, less those that the robot adds; or why there are none.

        There is one effort per velocity of the model, N m or N. The state of `robot` is complete;
        `v`, rad/s or m/s, is its velocity as outputs use it, or None if unknown. `now` is the time
        of ages, s. With `reset`, commands start a blend, and the law discards its state.

        """
        raise NotImplementedError

    def guard(self, robot: Robot,
              efforts: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """
        Return a function that keeps commands from driving joints beyond their limits, if needed.

        Its argument are commands blended from `efforts`, the last efforts, and in the order of
        commands, N m or N.

        """
        return None


def compensates_itself(convention: EffortConvention) -> str:
    """Return a note if the robot compensates gravity, so that gravity torques are zero."""
    if convention.commands == 'full':
        return ''
    return ('this robot compensates gravity itself (effort_convention.commands is '
            f'{convention.commands}): ~/effort_commands contain no gravity torques')


class CompensationSettings(NamedTuple):
    """The parameters of the compensation of gravity, friction and springs."""

    friction: Annotated[bool, Setting(
        False, 'Whether ~/effort_commands compensate friction and effort offsets, too; only '
        'offsets of joints without velocities.', changeable=True)]
    friction_dead_band: Annotated[float, Setting(
        0.02, 'Largest velocity error for which friction compensation never drives a joint; '
        'slower joints are not compensated.', 'rad/s or m/s', 0.0, 10.0, changeable=True)]
    springs: Annotated[bool, Setting(
        False, 'Whether ~/effort_commands and ~/gravity_torques include the torques that hold the '
        'springs of the joints; M, C and g do not.', changeable=True)]
    missing_velocity: str
    effort_convention: EffortConvention


class Compensation(Law):
    """Gravity torques, and friction and springs if they are compensated, for `commands`."""

    def __init__(self, settings: CompensationSettings, commands: EffortCommands) -> None:
        self._settings, self._commands = settings, commands
        self._moving = b''     # joints whose friction was compensated

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                reset: bool) -> np.ndarray | str:
        """Return torques of gravity, friction and springs; see `Law`."""
        settings, efforts = self._settings, terms.g
        moving = b''
        if settings.friction:
            # At zero velocity, the compensation is the effort offset.
            v = robot.known_velocity(settings.missing_velocity)
            moving = np.isfinite(v).tobytes()
            efforts = efforts + friction_compensation(
                robot.model, np.nan_to_num(v), dead_band=settings.friction_dead_band,
                q=robot.states.q)
        if moving != self._moving:
            self._moving = moving
            self._commands.disturb()    # friction starts or ends with velocities
        if settings.springs:
            efforts = efforts + spring_torques(robot.model, robot.states.q)
        # These efforts contain no Coriolis torques, so none are subtracted.
        return settings.effort_convention.subtract_onboard_compensation(
            efforts, terms.g, np.zeros_like(terms.g))

    def findings(self) -> Iterable[tuple[bytes, str]]:
        """Return a note if the robot compensates gravity by itself."""
        text = compensates_itself(self._settings.effort_convention)
        return [(OK, text)] if text else []
