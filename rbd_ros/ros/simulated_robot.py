# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A node that stands in for a robot: forward dynamics, integrated in real time."""

from math import isfinite
from pathlib import Path
from time import monotonic
import warnings

import numpy as np
from rbd_ros import load_urdf_string, ModelWarning, RbdError, StateError
from rbd_ros.ros.guarded import QUIET
from rbd_ros.ros.inputs import DESCRIPTION_QOS
from rbd_ros.ros.run import run
from rbd_ros.ros.share import share
from rbd_ros.simulation import Simulator
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

# s: of simulated time in one go; a machine that is slower than this slows the robot down.
LONGEST_CATCH_UP = 0.1
# s, after which another node's robot description would have been heard of
PATIENCE = 2.0


class SimulatedRobot(Node):
    """
    Moves the robot of a URDF under the efforts on ~/commands, and publishes its joint states.

    It holds its last command for ever, as a forward_command_controller does. Until the first one
    arrives its brakes are on.

    """

    def __init__(self, **options):
        super().__init__('simulated_robot', **options)
        text = self._declare('robot_description', '', 'URDF of the robot; empty: see urdf.')
        path = self._declare('urdf', '', 'Path of a URDF file; empty: the demo arm.')
        rate = self._declare('rate', 500.0, 'Rate of the joint states, Hz.', 1.0, 5000.0)
        step = self._declare('step', 0.001, 'Step of the integration, s.', 1e-6, 0.1)
        start = self._declare('initial_positions', Parameter.Type.DOUBLE_ARRAY,
                              'Where the joints begin, rad or m, in the order of the model; not '
                              'set: at zero, or in the middle of limits that exclude it.')
        order = self._declare('command_joints', Parameter.Type.STRING_ARRAY,
                              'Order of the commands; not set: that of the model.')
        self._text = text or (Path(path) if path else share('urdf', 'demo_arm.urdf')).read_text()
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            model = load_urdf_string(self._text)
        names = list(model.velocity_names)
        if model.nq != model.nv:
            raise StateError(f"'{model.name}' has joints with quaternions: no joint state holds "
                             'them, so it cannot be simulated here')
        self._order = np.array([names.index(name) for name in order or names], int)
        q = np.array(start) if start else rest_position(model)
        self._simulator = Simulator(model, q, step=step)
        # The first step compiles the kernels, and shows whether the robot can be simulated at all.
        Simulator(model, q, step=step).advance(np.zeros(model.nv))
        self._tau = None
        self._simulated_until = monotonic()
        self._state = JointState(name=list(model.position_names))
        self._publisher = self.create_publisher(JointState, 'joint_states', 10)
        self.create_subscription(Float64MultiArray, '~/commands', self._on_command, 10)
        wall = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0 / rate, self._on_timer, clock=wall)
        self._patience = self.create_timer(PATIENCE, self._describe, clock=wall)
        self.get_logger().info(f"simulating '{model.name}': {model.nv} joints, "
                               f'{model.mass:.4g} kg; brakes on until the first command')

    def _declare(self, name, default, description, *limits):
        descriptor = ParameterDescriptor(description=description, read_only=True)
        if limits:
            descriptor.floating_point_range = [FloatingPointRange(from_value=limits[0],
                                                                  to_value=limits[1])]
        self.declare_parameter(name, default, descriptor)
        try:
            return self.get_parameter(name).value
        except ParameterUninitializedException:
            return None

    def _describe(self):
        """Publish the robot's description if nobody else does."""
        self.destroy_timer(self._patience)
        if self.count_publishers('robot_description') == 0:
            self._description_publisher = self.create_publisher(
                String, 'robot_description', DESCRIPTION_QOS)
            self._description_publisher.publish(String(data=self._text))
            self.get_logger().info('publishing the robot description')

    def _on_command(self, message):
        """Take over efforts; those that are no numbers, or not as many as joints, are ignored."""
        efforts = np.array(message.data)
        if len(efforts) != len(self._order) or not isfinite(efforts.sum()):
            self.get_logger().error(
                f'command ignored: {len(self._order)} finite efforts expected, got {efforts}',
                throttle_duration_sec=QUIET)
            return
        if self._tau is None:
            self.get_logger().info('first command: brakes off')
            self._tau, self._simulated_until = np.zeros(self._simulator.model.nv), monotonic()
        self._tau[self._order] = efforts

    def _on_timer(self):
        """Simulate up to now and publish the state."""
        now = monotonic()
        if self._tau is not None:
            self._simulated_until = max(self._simulated_until, now - LONGEST_CATCH_UP)
            steps = int((now - self._simulated_until) / self._simulator.step)
            self._simulated_until += steps * self._simulator.step
            try:
                self._simulator.advance(self._tau, steps)
            except StateError as error:
                self.get_logger().error(f'the motion has got out of hand, brakes on: {error}')
                self._simulator.v[:] = 0.0
                self._tau = None
        state, simulator = self._state, self._simulator
        state.header.stamp = self.get_clock().now().to_msg()
        state.position, state.velocity = simulator.q.tolist(), simulator.v.tolist()
        state.effort = simulator.v.tolist() if self._tau is None else self._tau.tolist()
        self._publisher.publish(state)


def rest_position(model):
    """Return zeros, or the middle of the limits of joints that cannot be at zero."""
    q = np.zeros(model.nv)
    excluded = (model.lower > 0.0) | (model.upper < 0.0)
    q[excluded] = 0.5 * (model.lower + model.upper)[excluded]
    return q


def main(args=None):
    """Run the node until it is told to end."""
    try:
        run(SimulatedRobot, args)
    except (RbdError, OSError) as error:
        raise SystemExit(f'simulated_robot: {error}') from None


if __name__ == '__main__':
    main()
