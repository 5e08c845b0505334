# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The torque controller in a loop with physics that others wrote: MuJoCo."""

from harness import Harness, ros
import numpy as np
import pytest
from rbd_msgs.srv import SetMode
from rbd_ros.mujoco_robot import MujocoRobot
from rbd_ros.ros.torque_controller import TorqueController
from rclpy.parameter import Parameter
from robots import example_urdf, load_quietly
from rosgraph_msgs.msg import Clock
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

URDF = example_urdf('ur5_robot.urdf')
# s, of the physics and between commands.
STEP, PERIOD = 1e-3, 2e-3
START = np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.0])
WAY = np.array([0.4, -0.3, 0.3, 0.4, -0.5, 0.6])
# rad: commands stay for 2 ms, kp is 400 1/s^2.
FOLLOWED = 1e-3
# N m: a new law needs some 10 N m more or less at once; 2 ms are less than a hundredth of a blend.
BLENDED = 0.5
# rad: what friction that is not compensated leaves of the way on which the robot comes to rest.
HELD = 0.05


class Loop:
    """A torque controller and MuJoCo's robot, in simulated time."""

    def __init__(self, **parameters):
        self.model = load_quietly(URDF)
        self.robot = MujocoRobot(URDF.read_text(), self.model, START, step=STEP)
        self.node = Harness(kind=TorqueController, use_sim_time=True, **parameters)
        self.time = self.node.peer.create_publisher(Clock, '/clock', 10)
        self.node.spin_until(lambda: self.time.get_subscription_count() > 0)
        self.now = 100.0
        self.commands, self.q = [], []
        # Pauses of this machine are none of the robot's.
        self.node.node.clocks.steady_time = lambda: self.now
        self.tick()
        self.node.describe(URDF.read_text())
        self.node.spin_until(lambda: self.node.node.robot is not None)
        self.trajectories = self.node.peer.create_publisher(
            JointTrajectory, '/torque_controller/joint_trajectory', 10)
        self.node.spin_until(lambda: self.trajectories.get_subscription_count() > 0)

    def stamp(self):
        """Return the time, s and ns."""
        return divmod(round(1e9 * self.now), 10 ** 9)

    def tick(self):
        """Let the node know the time."""
        message = Clock()
        message.clock.sec, message.clock.nanosec = self.stamp()
        self.time.publish(message)
        self.node.spin_until(
            lambda: abs(self.node.node.clocks.age_time() - self.now) < 1e-6)

    def run(self, seconds):
        """Let the robot move under the commands of the node."""
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            self.tick()
            got = self.node.answer(self.model.velocity_names, self.robot.q, self.robot.v,
                                   topic='~/effort_commands', stamp=self.stamp())
            self.commands.append(np.array(got.data))
            self.q.append(self.robot.q.copy())
            for _ in range(round(PERIOD / STEP)):
                self.robot.advance(self.commands[-1])

    def follow(self, goal, seconds):
        """Ask for a motion, and wait until it is accepted."""
        point = JointTrajectoryPoint(positions=goal.tolist())
        point.time_from_start.sec = int(seconds)
        self.trajectories.publish(JointTrajectory(
            joint_names=list(self.model.velocity_names), points=[point]))
        modes = self.node.node.modes
        self.node.spin_until(lambda: modes._motions.left(self.now) > 0.0,
                             lambda: self.node.node.report.last_error)


@pytest.fixture
def loop():
    """Return a loop with computed torque, and springs to change to."""
    with ros():
        one = Loop(mode='computed_torque', state_timeout=60.0,
                   **{'computed_torque.kp': [400.0], 'joint_impedance.stiffness': [20.0]})
        yield one
        one.node.close()


def test_a_trajectory_is_followed_and_a_change_of_mode_is_no_step(loop):
    # The first command is whole, and those after it hold the robot.
    loop.run(0.2)
    assert np.max(np.abs(loop.robot.q - START)) < FOLLOWED
    first = len(loop.q)
    loop.follow(START + WAY, 1)
    loop.run(0.5)
    middle = loop.robot.q.copy()
    # Of third order, without velocities at the ends.
    x = (np.arange(len(loop.q) - first) + 1) * PERIOD
    wanted = START + np.outer(3.0 * x ** 2 - 2.0 * x ** 3, WAY)
    assert np.max(np.abs(np.array(loop.q[first:]) - wanted)) < FOLLOWED

    # Another mode in the middle of the motion: the robot is held where it was.
    before, last = len(loop.commands), loop.commands[-1]
    assert loop.node.call(SetMode, 'set_mode', mode='joint_impedance').success
    loop.run(1.0)
    steps = np.max(np.abs(np.diff([last, *loop.commands[before:]], axis=0)), axis=1)
    assert steps[0] == 0.0
    assert np.max(steps) < BLENDED
    loop.run(0.5)
    assert np.max(np.abs(loop.robot.q - middle)) < HELD

    # The next reference is followed from there.
    held = loop.robot.q.copy()
    loop.node.node.set_parameters([Parameter('mode', value='computed_torque')])
    loop.run(0.5)
    loop.follow(held - 0.5 * WAY, 1)
    loop.run(1.3)
    assert np.max(np.abs(loop.robot.q - (held - 0.5 * WAY))) < FOLLOWED
