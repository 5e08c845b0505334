# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Check whether the measured efforts of a robot at rest match their convention."""

from collections.abc import Iterator
from itertools import compress

import numpy as np
from rbd_ros import spring_torques
from rbd_ros._internal.text import listed
from rbd_ros.control.effort_convention import convention_mismatch
from rbd_ros.ros import convert
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log, WARN

REST_SPEED = 0.01    # rad/s or m/s: slower joints are at rest
# Efforts are averaged over at least this time, s, and this number of states.
REST_TIME, MIN_STATES = 0.5, 20


class EffortCheck(Part):
    """
    Compares the efforts of each robot with its gravity torques, once, at rest.

    Invariant: the mean is over consecutive states of one robot, all at rest; the finding is about
    the current robot. Joints whose efforts or velocities are not measured are left out.

    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._robot: Robot | None = None
        # What is wrong with the efforts; empty: nothing, as far as is known.
        self._done, self.finding = False, ''
        self.reset()

    def reset(self) -> None:
        """Wait again for a robot at rest: time jumped."""
        self._first: float | None = None
        self._count, self._sum, self._known = 0, np.zeros(1), np.zeros(0, bool)

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield what is wrong with the efforts."""
        if self.finding:
            yield WARN, self.finding

    def note(self, robot: Robot) -> None:
        """Take another complete state of the robot."""
        if robot is not self._robot:
            self._robot, self._done, self.finding = robot, False, ''
            self.reset()
        if self._done or robot.base_joint is not None:
            return
        states = robot.states
        known = np.isfinite(states.effort) & np.isfinite(states.v)
        if not (states.effort[known].any()
                and np.abs(states.v[known]).max(initial=0.0) <= REST_SPEED):
            # It moves, or no effort is measured: efforts are zero while brakes hold a robot.
            self.reset()
            return
        stamp = convert.seconds(robot.time_stamp)
        if self._first is None or stamp < self._first or (known != self._known).any():
            self.reset()
            self._first, self._known = stamp, known
        self._count, self._sum = self._count + 1, self._sum + states.effort
        if self._count >= MIN_STATES and stamp - self._first >= REST_TIME:
            names = robot.model.velocity_names
            constants = robot.convention.constants_of_states(names)
            torques = constants * self._sum / self._count - spring_torques(robot.model, states.q)
            self.finding = convention_mismatch(
                robot.convention, [*compress(names, known)], torques[known],
                robot.workspace.gravity_torques(states.q)[known])
            self._done = True
            if not known.all():
                self._log.info('efforts at rest were compared without those of '
                               f'{listed([*compress(names, ~known)])}, which are not measured')
            if self.finding:
                self._log.warning(self.finding)
