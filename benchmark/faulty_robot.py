# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot in MuJoCo with glitches and blocked joints, and the torque controller as a node."""

from collections.abc import Callable
from pathlib import Path
import sys
from typing import TypeAlias

import numpy as np
from rbd_ros.model.joints import DRIVE
from rbd_ros.simulation.mujoco_robot import MujocoRobot

# s: of the motion that is disturbed, and before it is
MOTION, UNDISTURBED = 2.0, 0.7
# N m, of what holds a blocked joint
HOLD = 1e5
# The other finger of the Panda mimics it.
FINGER = 'panda_finger_joint1'


class FaultyRobot:
    """
    A robot as its sensors show it, with glitches and blocked joints.

    Parameters
    ----------
    physics : MujocoRobot
        The robot.

    Attributes
    ----------
    fastest : ndarray, shape (model.nv,)
        Largest speed of each joint since it was last set to zero, rad/s or m/s.

    """

    def __init__(self, physics: MujocoRobot) -> None:
        self.model, self._physics, self._sample = physics.model, physics, physics.measure()
        self._glitch: tuple[str, int, float] = '', 0, 0.0
        self.fastest = np.zeros(physics.model.nv)

    @property
    def q(self) -> np.ndarray:
        """Return the measured positions."""
        return self._shown('q')

    @property
    def v(self) -> np.ndarray:
        """Return the measured velocities."""
        return self._shown('v')

    def _shown(self, what: str) -> np.ndarray:
        x = getattr(self._sample, what).copy()
        glitched, joint, change = self._glitch
        if glitched == what:
            x[joint] += change
        return x

    def advance(self, tau: np.ndarray, steps: int) -> None:
        """Let steps pass under a command."""
        self._glitch = '', 0, 0.0
        self._physics.advance(tau, steps)
        self._sample = self._physics.measure()
        np.maximum(self.fastest, np.abs(self._physics.v), out=self.fastest)

    def show(self, what: str, joint: int, change: float) -> None:
        """Change a number of the next sample: q or v of a joint."""
        self._glitch = what, joint, change

    def block(self, joint: int | None = None) -> None:
        """Hold a joint, and release all others."""
        friction = self.model.friction.copy()
        if joint is not None:
            friction[joint] = HOLD
        self._physics._robot.dof_frictionloss[self._physics._v_of] = friction


Act: TypeAlias = tuple[Callable[[FaultyRobot], object], float]


def disturb(urdf: Path, physics: FaultyRobot, goal: np.ndarray, kp: np.ndarray, step: float,
            period: float, *acts: Act) -> tuple[np.ndarray, np.ndarray]:
    """
    Move all joints by computed torque, through the node, and disturb the robot meanwhile.

    Parameters
    ----------
    urdf : pathlib.Path
        The description that the node gets; it gets the drives of the robot as parameters.
    physics : FaultyRobot
        The robot.
    goal : ndarray, shape (model.nv,)
        Where the motion ends, rad.
    kp : ndarray, shape (model.nv,)
        1/s^2.
    step, period : float
        Of the physics, and between samples, s.
    *acts : tuple of (callable, float)
        What to do with the robot, and how long to wait then, s.

    Returns
    -------
    commands : ndarray, shape (samples, model.nv)
        All commands of the node as shares of the effort limits.
    fastest : ndarray, shape (model.nv,)
        Largest speeds since the last act as shares of the velocity limits.

    """
    # The node in a loop with a robot is that of the tests.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))
    from harness import ros
    from rclpy.logging import LoggingSeverity, set_logger_level
    from torque_loop import Loop
    sys.path.pop(0)

    model, names = physics.model, list(physics.model.velocity_names)
    with ros():
        set_logger_level('torque_controller', LoggingSeverity.ERROR)
        loop = Loop(urdf, physics.q, robot=physics, step=step, period=period,
                    locked=[joint.name for joint in model.joints if joint.name == FINGER],
                    mode='computed_torque', control_joints=names, friction=True, **{
                        'computed_torque.kp': kp.tolist(), 'drives.joints': names,
                        **{f'drives.{label}': getattr(model, label).tolist() for label in DRIVE}})
        try:
            loop.run(0.1)
            if not loop.follow(goal, MOTION):
                raise RuntimeError(loop.statuses[-1].reason)
            loop.run(UNDISTURBED)
            for act, seconds in acts:
                physics.fastest[:] = 0.0
                act(physics)
                loop.run(seconds)
        finally:
            loop.close()
    return np.array(loop.commands) / model.effort_limit, physics.fastest / model.velocity_limit
