# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the measured efforts of a robot at rest are what their convention says."""

import numpy as np
from rbd_ros.control.effort_convention import convention_mismatch
from rbd_ros.ros import convert
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.log import Log
from rbd_ros.ros.state.joint_states import all_within

# rad/s or m/s, up to which a joint is at rest
REST = 0.01
# s at rest, and states in this time, that the efforts are averaged over
LONG, MANY = 0.5, 20
NOTHING = np.zeros(1)


class EffortCheck:
    """
    Compares the efforts of a robot with its gravity torques, once for each robot, at rest.

    At any time:

    - the mean is that of states of one robot alone, all of them at rest and one after the other;
    - what is said is about the present robot.

    Parameters
    ----------
    log : Log
        The node's log.

    Attributes
    ----------
    finding : str
        What is wrong with the efforts; empty: nothing, as far as is known.

    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._robot: Robot | None = None
        self._done, self.finding = False, ''
        self.reset()

    def reset(self) -> None:
        """Begin again to wait for a robot at rest: time jumped."""
        self._first: float | None = None
        self._count, self._sum = 0, NOTHING

    def note(self, robot: Robot) -> None:
        """Take another complete state of the robot."""
        if robot is not self._robot:
            self._robot, self._done, self.finding = robot, False, ''
            self.reset()
        if self._done or robot.base_joint is not None:
            return
        states = robot.states
        if not (all_within(states.effort, np.inf) and states.effort.any()
                and np.abs(states.v).max(initial=0.0) <= REST):
            # In motion, or nothing is measured: brakes hold robots with efforts of zero.
            self.reset()
            return
        stamp = convert.seconds(robot.stamp)
        if self._first is None or stamp < self._first:
            self.reset()
            self._first = stamp
        self._count, self._sum = self._count + 1, self._sum + states.effort
        if self._count >= MANY and stamp - self._first >= LONG:
            names = robot.model.velocity_names
            constants = robot.convention.constants_of_states(names)
            self.finding = convention_mismatch(
                robot.convention, names, constants * self._sum / self._count,
                robot.workspace.gravity_torques(states.q))
            self._done = True
            if self.finding:
                self._log.warning(self.finding)
