# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The torque controller node in a control loop with MuJoCo."""

from harness import Harness, joint_state
import numpy as np
import pinocchio
from rbd_msgs.msg import ReferenceStatus
from rbd_ros import with_locked_joints
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.simulation.mujoco_robot import MujocoRobot
from rclpy.serialization import serialize_message
from robots import load_quietly
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


class BlockedRobot:
    """
    A robot without mimics, simulated by Pinocchio and semi-implicit Euler steps, at first at rest.

    An obstacle holds the joints that are ``blocked``; ``push`` are external torques, N m.

    """

    def __init__(self, urdf, start, *, step=1e-3):
        self._model = pinocchio.buildModelFromUrdf(str(urdf))
        self._data, self._step = self._model.createData(), step
        self._limit = np.array(self._model.effortLimit)
        self.q, self.v = np.array(start, float), np.zeros(self._model.nv)
        self.blocked, self.push = np.zeros(self._model.nv, bool), np.zeros(self._model.nv)

    def advance(self, tau, steps):
        """Simulate some steps under a command, within the limits of the drives."""
        tau = np.clip(tau, -self._limit, self._limit) + self.push
        for _ in range(steps):
            if not self.blocked.any():
                self.v += self._step * pinocchio.aba(self._model, self._data, self.q, self.v, tau)
                self.q += self._step * self.v
                continue
            M = pinocchio.crba(self._model, self._data, self.q)
            M = np.triu(M) + np.triu(M, 1).T
            b = pinocchio.nonLinearEffects(self._model, self._data, self.q, self.v)
            self.v[self.blocked], free = 0.0, ~self.blocked
            self.v[free] += self._step * np.linalg.solve(M[np.ix_(free, free)], (tau - b)[free])
            self.q += self._step * self.v


class Loop:
    """
    A torque controller and a robot, at first at rest, in simulated time.

    The controller does not know the load. Physics have steps of ``step``, s, commands of
    ``period``; states are ``late``, s. ``commands`` answer the true configurations ``q``.

    """

    def __init__(self, urdf, start, *, locked=(), load=None, step=1e-3, period=2e-3, robot=None,
                 **parameters):
        self.model = with_locked_joints(load_quietly(urdf), dict.fromkeys(locked, 0.0))
        self.robot = robot or MujocoRobot(urdf.read_text(), self.model, start, step=step,
                                          load=load)
        self.period, self._steps, self.late = period, round(period / step), 0.0
        if locked:
            parameters['locked_joints'] = list(locked)
        self.harness = Harness(kind=TorqueController, topics=['~/effort_commands'],
                               **{'state_timeout': 60.0, 'implausible_velocity': 3.0,
                                  **parameters})
        self.node, self.now = self.harness.node, 100.0
        # Pauses of this machine are none of the robot's.
        clocks = self.node.clocks
        clocks.steady_time = clocks.age_time = clocks.stamp_time = lambda: self.now
        self.commands, self.q = [], []
        self._sent = self._kept(self.node.commanding)
        self._told = self._kept(self.node.modes)
        self.harness.describe(urdf.read_text())
        self.harness.spin_until(lambda: self.node.robot is not None)
        self._publishers, self.statuses = {}, []
        topic = f'{self.harness.name}/reference_status'
        self.harness.peer.create_subscription(ReferenceStatus, topic, self.statuses.append, 50)
        self.harness.spin_until(lambda: self.harness.peer.count_publishers(topic) > 0)

    @staticmethod
    def _kept(part):
        """Return a list of all that a part of the node publishes from now on."""
        kept, publish = [], part._publish

        def keep_and_publish(one):
            kept.append(one.copy() if isinstance(one, np.ndarray) else one)
            publish(one)
        part._publish = keep_and_publish
        return kept

    def close(self):
        self.harness.close()

    def stamp(self, seconds=0.0):
        """Return the stamp, s and ns, of a time relative to now, s."""
        return divmod(round(1e9 * (self.now + seconds)), 10 ** 9)

    def answer(self, q, v):
        """Return the command for a state one period after the previous one, or None."""
        self.now += self.period
        count = len(self._sent)
        # Not over the network, which would take most of the time.
        self.node.listening._answer(serialize_message(joint_state(
            self.model.velocity_names, q, v, stamp=self.stamp(-self.late))))
        self.harness.executor.spin_once(timeout_sec=0.0)
        return np.array(self._sent[-1]) if len(self._sent) > count else None

    def run(self, seconds, each=lambda q, v, tau: None):
        """Let the robot move under the commands of the node for some seconds."""
        if not self.commands:
            # Brakes hold the robot until the first command, which needs two states.
            self.answer(self.robot.q, self.robot.v)
        for _ in range(round(seconds / self.period)):
            q, v = self.robot.q, self.robot.v
            tau = self.answer(q, v)
            # A controller keeps its last command.
            tau = self.commands[-1] if tau is None else tau
            each(q, v, tau)
            self.commands.append(tau)
            self.q.append(q.copy())
            self.robot.advance(tau, self._steps)
        heard = self.harness.heard['~/effort_commands']
        self.harness.spin_until(lambda: np.array_equal(heard[-1].data, self._sent[-1])
                                and len(self.statuses) == len(self._told))

    def ask(self, topic, message):
        """Send a reference; return whether it was accepted."""
        harness, name = self.harness, f'{self.harness.name}/{topic}'
        if topic not in self._publishers:
            self._publishers[topic] = harness.peer.create_publisher(type(message), name, 10)
            harness.spin_until(lambda: self._publishers[topic].get_subscription_count() > 0)
        count = len(self.statuses)
        self._publishers[topic].publish(message)
        harness.spin_until(lambda: len(self.statuses) > count)
        return self.statuses[count].accepted

    def follow(self, goal, seconds, names=None, **fields):
        """Request a motion to one point, with further fields; return whether it was accepted."""
        point = JointTrajectoryPoint(positions=list(map(float, goal)), **fields)
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(1e9 * (seconds % 1.0))
        return self.ask('joint_trajectory', JointTrajectory(
            joint_names=list(names or self.model.velocity_names), points=[point]))
