# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The node that turns a robot's description and joint states into its dynamics."""

from functools import partial, wraps
from math import isfinite
from time import perf_counter

from rbd_ros import with_gravity
from rbd_ros.ros import parameters
from rbd_ros.ros.answers import Answers
from rbd_ros.ros.clocks import Clocks
from rbd_ros.ros.commands import Commands
from rbd_ros.ros.diagnostics import Report
from rbd_ros.ros.guarded import guarded
from rbd_ros.ros.health import Health
from rbd_ros.ros.inputs import Inputs
from rbd_ros.ros.run import run
from rbd_ros.ros.services import Services
from rbd_ros.warmup import warm_up
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from std_srvs.srv import SetBool


def transition(callback):
    """Say what a transition of the life cycle raises; the node then is unconfigured."""
    @wraps(callback)
    def wrapper(self, state):
        try:
            return callback(self, state)
        except Exception as error:
            if self.context.ok():
                text = f'{callback.__name__}: {type(error).__name__}: {error}'
                self.report.fail('errors', text)
                self.get_logger().error(text)
            return TransitionCallbackReturn.ERROR
    return wrapper


class DynamicsNode(LifecycleNode):
    """
    Publishes the dynamics of the robot in /robot_description for every joint state.

    The topics, services and parameters are listed in the README.

    Parameters
    ----------
    alone : bool
        Whether the process is all its own, so that it may tune the garbage collector.

    Attributes
    ----------
    robot : Robot or None
        As the latest description that was good has it.
    active : bool
        Whether outputs may flow.

    """

    def __init__(self, *, alone=False, **options):
        super().__init__('dynamics', **options)
        parameters.declare(self)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
        self.alone, self.active, self.robot, self._model_count = alone, False, None, 0
        self.report, self.commands = Report(), Commands()
        self._parts = []
        if (self.get_parameter('autostart').value
                and self.trigger_configure() == TransitionCallbackReturn.SUCCESS):
            self.trigger_activate()

    # -- Lifecycle. ------------------------------------------------------------------------------

    @transition
    def on_configure(self, state):
        """Read the parameters, compile the kernels and make all topics and services."""
        try:
            self.parameters = parameters.read(self)
        except parameters.BadParameter as error:
            self.report.fail('errors', f'not configured: {error}')
            self.get_logger().error(f'not configured: {error}')
            return TransitionCallbackReturn.FAILURE
        start = perf_counter()
        for name, seconds in warm_up(floating_base=self.parameters.floating_base):
            if not self.context.ok():
                return TransitionCallbackReturn.FAILURE
            if seconds > 1.0:
                self.get_logger().info(f'compiled {name} in {seconds:.1f} s')
        self.get_logger().info(f'kernels ready after {perf_counter() - start:.2f} s')

        self._inputs, self.answers = Inputs(self), Answers(self)
        self.clocks = Clocks(self.get_clock(), self._inputs.on_jump)
        self._parts.append((Clocks.close, self.clocks))
        outputs = self.answers.create()
        self._parts += [(self.destroy_publisher, one) for one in outputs]
        self._inputs.create()
        self._parts.append((Inputs.close, self._inputs))
        services = [*Services(self).create(), self.create_service(
            SetBool, '~/enable_commands', self._enable_commands)]
        self._parts += [(self.destroy_service, one) for one in services]
        self.health = Health(self)
        publisher, timer = self.health.create(self._inputs, outputs)
        self._parts += [(self.destroy_publisher, publisher), (self.destroy_timer, timer)]
        self.get_logger().info('ready: waiting for a robot description')
        return super().on_configure(state)

    @transition
    def on_activate(self, state):
        """Let outputs flow."""
        if self.commands.enabled:
            self.commands.begin()
        self.active = True
        return super().on_activate(state)

    @transition
    def on_deactivate(self, state):
        """Bring commands to an end and stop the outputs; services go on answering."""
        self.finish()
        return super().on_deactivate(state)

    @transition
    def on_cleanup(self, state):
        """Take down what on_configure made."""
        self._take_down()
        return super().on_cleanup(state)

    @transition
    def on_shutdown(self, state):
        """Bring commands to an end and take down what is there."""
        self.finish()
        self._take_down()
        return super().on_shutdown(state)

    @transition
    def on_error(self, state):
        """Take down what is there: the node is unconfigured, and may be configured again."""
        self._take_down()
        return TransitionCallbackReturn.SUCCESS

    def finish(self):
        """Bring commands to an end, and stop all outputs."""
        if self.active:
            self.answers.finish()
        self.active = False

    def _take_down(self):
        self.active, self.robot = False, None
        if self._parts:
            self.answers.stop_timers()
        while self._parts:
            destroy, part = self._parts.pop()
            destroy(part)

    def destroy_node(self):
        """Take down what is there, and the node."""
        self._take_down()
        super().destroy_node()
        # rclpy leaves it to the garbage collector, and until then the node in the graph.
        self._state_machine = None

    # -- Parameters. -----------------------------------------------------------------------------

    def _check_parameters(self, changes):
        """Say whether parameters may change, and why not."""
        try:
            parameters.read(self, changes)
        except parameters.BadParameter as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    @guarded
    def _apply_parameters(self, changes):
        """Go on with parameters that have changed."""
        if not self._parts:
            return
        before, self.parameters = self.parameters, parameters.read(self)
        if (self.parameters.publish_rate, self.parameters.on_stale) != (
                before.publish_rate, before.on_stale):
            self.answers.start_timers()
        if self.parameters.gravity != before.gravity and self.robot is not None:
            self.change(self.robot.changed(
                with_gravity(self.robot.model, self.parameters.gravity), self.next_model_id()))

    # -- The robot. ------------------------------------------------------------------------------

    def next_model_id(self):
        """Return the number that the next robot has."""
        return self._model_count + 1

    def change(self, robot):
        """Go on with another robot, or with the same one under another load or gravity."""
        self._model_count, self.robot = robot.model_id, robot
        self.commands.follow(robot.command_joints, robot.model.effort_limit[robot.command_order])

    def velocity(self, robot):
        """Return the velocity to compute with, or None where it is not known."""
        if not robot.states.missing_velocities():
            return robot.states.v
        if self.parameters.missing_velocity == 'zero':
            return robot.states.velocity_or(0.0)
        if self.parameters.missing_velocity == 'differentiate':
            v = robot.states.velocity_or(None)
            return v if isfinite(v.sum()) else None
        return None

    def _enable_commands(self, request, response):
        """Let ~/effort_commands flow, or bring them to an end."""
        self.commands.enabled = request.data
        (self.commands.begin if request.data else self.commands.end)()
        response.success = True
        response.message = 'commands are ' + ('enabled' if request.data else 'disabled')
        self.get_logger().warning(f'~/effort_commands: {response.message}')
        return response


def main(args=None):
    """Run the node until it is told to end."""
    run(partial(DynamicsNode, alone=True), args,
        events=lambda node: node.get_parameter('executor').value == 'events')


if __name__ == '__main__':
    main()
