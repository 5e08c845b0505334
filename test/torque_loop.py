# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The torque controller, as a node, in a loop with MuJoCo."""

from harness import Harness
import numpy as np
from rbd_ros import with_locked_joints
from rbd_ros.mujoco_robot import MujocoRobot
from rbd_ros.ros.torque_controller import TorqueController
from robots import load_quietly
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


class Loop:
    """
    A torque controller and MuJoCo's robot, in simulated time.

    Parameters
    ----------
    urdf : path
        The robot.
    start : ndarray
        Where it begins, at rest.
    locked : sequence of str
        Joints that do not move.
    load : Load, optional
        What the robot carries and the controller does not know.
    step, period : float
        s, of the physics and between commands.
    parameters
        Of the node.

    Attributes
    ----------
    commands, q : list of ndarray
        Each command, N m, and the true configuration that it answers, rad.

    """

    def __init__(self, urdf, start, *, locked=(), load=None, step=1e-3, period=2e-3,
                 **parameters):
        self.model = with_locked_joints(load_quietly(urdf), dict.fromkeys(locked, 0.0))
        self.robot = MujocoRobot(urdf.read_text(), self.model, start, step=step, load=load)
        self.period, self._steps = period, round(period / step)
        if locked:
            parameters['locked_joints'] = list(locked)
        self.harness = Harness(kind=TorqueController, topics=['~/effort_commands'],
                               state_timeout=60.0, **parameters)
        self.node, self.now = self.harness.node, 100.0
        # Pauses of this machine are none of the robot's.
        clocks = self.node.clocks
        clocks.steady_time = clocks.age_time = clocks.stamp_time = lambda: self.now
        self.commands, self.q = [], []
        self.harness.describe(urdf.read_text())
        self.harness.spin_until(lambda: self.node.robot is not None)
        self._publishers = {}

    def close(self):
        """Take the node down."""
        self.harness.close()

    def stamp(self, seconds=0.0):
        """Return the time in so many seconds, s and ns."""
        return divmod(round(1e9 * (self.now + seconds)), 10 ** 9)

    def answer(self, q, v):
        """Return the command for a state, one period after the one before."""
        self.now += self.period
        return np.array(self.harness.answer(self.model.velocity_names, q, v,
                                            topic='~/effort_commands', stamp=self.stamp()).data)

    def run(self, seconds, each=lambda q, v, tau: None):
        """Let the robot move under the commands of the node, and show each of them."""
        for _ in range(round(seconds / self.period)):
            q, v = self.robot.q, self.robot.v
            tau = self.answer(q, v)
            each(q, v, tau)
            self.commands.append(tau)
            self.q.append(q.copy())
            self.robot.advance(tau, self._steps)

    def ask(self, topic, message):
        """Send a reference; return whether it was accepted."""
        harness, name = self.harness, f'{self.harness.name}/{topic}'
        if topic not in self._publishers:
            self._publishers[topic] = harness.peer.create_publisher(type(message), name, 10)
            harness.spin_until(lambda: self._publishers[topic].get_subscription_count() > 0)
        before, counts = self.node.modes._motions._parts, self.node.report.counts
        refused = counts['references refused']
        self._publishers[topic].publish(message)
        harness.spin_until(lambda: counts['references refused'] > refused
                           or self.node.modes._motions._parts is not before)
        return counts['references refused'] == refused

    def follow(self, goal, seconds, names=None, **fields):
        """Ask for a motion to one point, with further fields; return whether it was accepted."""
        point = JointTrajectoryPoint(positions=list(map(float, goal)), **fields)
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(1e9 * (seconds % 1.0))
        return self.ask('joint_trajectory', JointTrajectory(
            joint_names=list(names or self.model.velocity_names), points=[point]))
