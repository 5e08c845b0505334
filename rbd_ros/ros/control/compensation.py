# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The efforts that ~/effort_commands are made of: of any law, and of the dynamics node's own."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from rbd_ros.control import EffortConvention, friction_compensation
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.report import OK
from rbd_ros.workspace.results import DynamicsTerms


class Law(Protocol):
    """What computes the efforts of commands."""

    def prepare(self, robot: Robot) -> None:
        """Have the kernels compiled that efforts for a robot need, before it is used."""

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                anew: bool) -> np.ndarray | str:
        """
        Return the efforts for a state, without those that the robot adds by itself.

        Parameters
        ----------
        robot : Robot
            The present robot, whose state is complete.
        v : ndarray or None
            Its velocity as outputs use it, rad/s or m/s; None: not known.
        terms : DynamicsTerms
            Its dynamics.
        now : float
            Time that ages are computed from, s.
        anew : bool
            Whether commands begin anew with these: the efforts before are no guide.

        Returns
        -------
        ndarray or str
            For all velocities of the model, N m or N; or why there are none.

        """

    def limit(self, robot: Robot, efforts: np.ndarray, commands: np.ndarray) -> np.ndarray:
        """
        Return commands that do not drive joints beyond their limits of position and velocity.

        Parameters
        ----------
        robot : Robot
            The present robot.
        efforts : ndarray
            What `efforts` has just returned.
        commands : ndarray
            What becomes of these in a blend, in the order of commands, N m or N.

        """

    def facts(self, robot: Robot, now: float) -> dict[str, str]:
        """Return values for /diagnostics, and begin to count anew."""

    def findings(self) -> Iterable[tuple[bytes, str]]:
        """Return what is wrong, each with its level."""


def compensates_itself(convention: EffortConvention) -> str:
    """Return that gravity torques are zero because the robot adds them; empty: they are not."""
    if convention.commands == 'full':
        return ''
    return ('this robot compensates gravity itself (effort_convention.commands is '
            f'{convention.commands}): ~/effort_commands contain no gravity torques')


class CompensationSettings(NamedTuple):
    """The parameters that gravity and friction compensation depend on."""

    friction: bool
    friction_dead_band: float
    effort_convention: EffortConvention


class Compensation:
    """
    Gravity torques, and friction if it is to be compensated.

    Parameters
    ----------
    settings : CompensationSettings
        The parameters that it uses.
    commands : EffortCommands
        The commands, which are blended where friction comes or goes.

    """

    def __init__(self, settings: CompensationSettings, commands: EffortCommands) -> None:
        self._settings, self._commands = settings, commands
        self._with_friction = False

    def configure(self, settings: CompensationSettings) -> None:
        """Use other settings from now on."""
        self._settings = settings

    def prepare(self, robot: Robot) -> None:
        """Do nothing: its efforts are among the terms."""

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                anew: bool) -> np.ndarray | str:
        """Return gravity and friction torques; see `Law`."""
        settings, efforts = self._settings, terms.g
        friction = settings.friction and v is not None
        if friction != self._with_friction:
            # Gravity and offsets are brought up whether velocities come or not.
            self._with_friction = friction
            self._commands.disturb()
        if settings.friction:
            # At rest, that is the offset of the efforts alone.
            efforts = efforts + friction_compensation(
                robot.model, np.zeros(robot.model.nv) if v is None else v,
                dead_band=settings.friction_dead_band)
        # These contain no Coriolis torques: a robot that adds such by itself goes on doing so.
        return settings.effort_convention.without_own(efforts, terms.g, np.zeros_like(terms.g))

    def limit(self, robot: Robot, efforts: np.ndarray, commands: np.ndarray) -> np.ndarray:
        """Return commands as they are: nothing here moves the robot."""
        return commands

    def facts(self, robot: Robot, now: float) -> dict[str, str]:
        """Return nothing: the outputs show all there is."""
        return {}

    def findings(self) -> Iterable[tuple[bytes, str]]:
        """Return that the robot compensates gravity itself, if it does."""
        text = compensates_itself(self._settings.effort_convention)
        return [(OK, text)] if text else []
