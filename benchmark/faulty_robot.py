# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot in MuJoCo with glitches and blocked joints, driven by the torque controller node."""

from collections.abc import Callable
from pathlib import Path
import sys
from typing import TypeAlias

import numpy as np
from rbd_ros.model.joints import DRIVE
from rbd_ros.simulation.mujoco_robot import MujocoRobot

# s: duration of the motion, and the time before it is disturbed
MOTION, UNDISTURBED = 2.0, 0.7
# N m: friction of a blocked joint
HOLD = 1e5
# Mimicked by the other finger of the Panda.
FINGER = 'panda_finger_joint1'


class FaultyRobot:
    """
    A robot as measured by its sensors, with glitches and blocked joints.

    Attributes
    ----------
    fastest : ndarray, shape (model.nv,)
        Largest speed of each joint since it was last reset, rad/s or m/s.

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
        """Simulate some steps with constant efforts."""
        self._glitch = '', 0, 0.0
        self._physics.advance(tau, steps)
        self._sample = self._physics.measure()
        np.maximum(self.fastest, np.abs(self._physics.v), out=self.fastest)

    def show(self, what: str, joint: int, change: float) -> None:
        """Change q or v of a joint in the next sample."""
        self._glitch = what, joint, change

    def block(self, joint: int | None = None) -> None:
        """Block a joint, and release all others."""
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
        Description for the node, which gets the robot's drives as parameters.
    physics : FaultyRobot
        The robot.
    goal, kp : ndarray, shape (model.nv,)
        End of the motion, rad, and gains, 1/s^2.
    step, period : float
        Time steps of the physics and of the samples, s.
    *acts : tuple of (callable, float)
        Disturbances of the robot, and the time to wait after each, s.

    Returns
    -------
    commands, fastest : ndarray, shapes (samples, model.nv) and (model.nv,)
        Commands of the node, and largest speeds since the last disturbance, as shares of the
        limits of effort and velocity.

    """
    # The control loop of node and robot is shared with the tests.
    tests = Path(__file__).resolve().parents[1] / 'test'
    sys.path[:0] = [str(tests / 'rigs'), str(tests / 'subjects')]
    from harness import ros
    from rclpy.logging import LoggingSeverity, set_logger_level
    from torque_loop import Loop
    del sys.path[:2]

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
