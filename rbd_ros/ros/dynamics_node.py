# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The node that turns a robot's description and joint states into its dynamics."""

from functools import wraps
import gc
from time import monotonic, perf_counter
import warnings

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
from rbd_ros import load_urdf_string, ModelError, ModelWarning, RbdError, Workspace
from rbd_ros.ros import parameters
from rbd_ros.ros.diagnostics import Report
from rbd_ros.ros.joint_states import JointStates, Rejected
from rbd_ros.ros.markers import Markers, PERIOD as MARKER_PERIOD
from rbd_ros.ros.outputs import Outputs, TOPICS, VELOCITY_TOPICS
from rbd_ros.ros.run import run
from rbd_ros.ros.services import Services
from rbd_ros.warmup import warm_up
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

DESCRIPTION_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE,
                             durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Takes what a reliable or a best-effort publisher sends; ten deep, none is lost at 1 kHz.
STATE_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_AVAILABLE)
# The default callbacks on events of outputs cost the executor a tenth of a core at 1 kHz.
QUIETLY = PublisherEventCallbacks(use_default_callbacks=False)
# s, between two log lines of one kind
QUIET = 5.0


def guarded(callback):
    """Catch what a callback of the node raises: it is logged and reported, and the node lives."""
    @wraps(callback)
    def wrapper(self, *arguments):
        try:
            return callback(self, *arguments)
        except Exception as error:
            if not self.context.ok():
                return None             # ROS was shut down in the middle of it
            self.report.counts['errors'] += 1
            self.report.last_error = f'{callback.__name__}: {error}'
            self.get_logger().error(f'{callback.__name__}: {type(error).__name__}: {error}',
                                    throttle_duration_sec=QUIET)
            return None
    return wrapper


class Robot:
    """All that belongs to one description; a new one replaces it as a whole."""

    def __init__(self, text, model, model_id, command_joints):
        self.text, self.model, self.model_id = text, model, model_id
        self.workspace = Workspace(model)
        self.states = JointStates(model)
        self.outputs = Outputs(model, model_id, command_joints)
        self.markers = Markers(model)
        self.stamp = None               # of the latest complete state
        self.state_is_new = False


class DynamicsNode(LifecycleNode):
    """
    Publishes the dynamics of the robot in /robot_description for every joint state.

    The topics, services and parameters are listed in the README.

    """

    def __init__(self, **options):
        super().__init__('dynamics', **options)
        parameters.declare(self)
        self.report = Report()
        self.robot, self._model_count, self._active = None, 0, False
        self._parts = []
        if (self.get_parameter('autostart').value
                and self.trigger_configure() == TransitionCallbackReturn.SUCCESS):
            self.trigger_activate()

    # -- Lifecycle. ------------------------------------------------------------------------------

    def on_configure(self, state):
        """Read the parameters, compile the kernels and make all topics and services."""
        try:
            self.parameters = parameters.read(self)
        except parameters.BadParameter as error:
            self.get_logger().error(f'not configured: {error}')
            return TransitionCallbackReturn.FAILURE
        start = perf_counter()
        for name, seconds in warm_up():
            if seconds > 1.0:
                self.get_logger().info(f'compiled {name} in {seconds:.1f} s')
        self.get_logger().info(f'kernels ready after {perf_counter() - start:.2f} s')

        wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._publishers_of = {
            topic: self.create_publisher(kind, topic, 10, event_callbacks=QUIETLY)
            for topic, kind in TOPICS.items()}
        self._marker_publisher = self.create_publisher(MarkerArray, '~/markers', 1)
        self._markers_due = 0.0
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._reported = monotonic()
        subscriptions = [
            self.create_subscription(String, 'robot_description', self._on_description,
                                     DESCRIPTION_QOS),
            self.create_subscription(JointState, 'joint_states', self._on_joint_state, STATE_QOS)]
        services = Services(self).create()
        timers = [self.create_timer(1.0, self._publish_report, clock=wall)]
        if self.parameters.publish_rate > 0.0:
            timers.append(self.create_timer(1.0 / self.parameters.publish_rate, self._on_timer,
                                            clock=wall))
        self._parts = [
            (self.destroy_publisher, [*self._publishers_of.values(), self._marker_publisher,
                                      self._diagnostics]),
            (self.destroy_subscription, subscriptions), (self.destroy_service, services),
            (self.destroy_timer, timers)]
        self.get_logger().info('ready: waiting for a robot description')
        return super().on_configure(state)

    def on_activate(self, state):
        """Let outputs flow."""
        self._active = True
        return super().on_activate(state)

    def on_deactivate(self, state):
        """Stop the outputs; services go on answering."""
        self._active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state):
        """Take down what on_configure made."""
        self._take_down()
        return super().on_cleanup(state)

    def on_shutdown(self, state):
        """Take down what is there."""
        self._take_down()
        return super().on_shutdown(state)

    def _take_down(self):
        self._active, self.robot = False, None
        for destroy, parts in self._parts:
            for part in parts:
                destroy(part)
        self._parts = []

    # -- Input. ----------------------------------------------------------------------------------

    @guarded
    def _on_description(self, message):
        """Take on another robot as a whole, or keep the present one if its text is bad."""
        if self.robot is not None and message.data == self.robot.text:
            return
        log = self.get_logger()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore', ModelWarning)
                model = load_urdf_string(message.data, gravity=self.parameters.gravity,
                                         strict=self.parameters.strict_urdf)
            for name in self.parameters.command_joints:
                if name not in model.velocity_names:
                    raise ModelError(f"parameter command_joints names '{name}'; the joints of "
                                     f"'{model.name}' are {', '.join(model.velocity_names)}")
            robot = Robot(message.data, model, self._model_count + 1,
                          self.parameters.command_joints)
            # Whatever is not compiled yet, a new kind of joint perhaps, is compiled now.
            robot.workspace.all_terms(np.zeros(model.nq), np.zeros(model.nv))
        except RbdError as error:
            self.report.counts['descriptions refused'] += 1
            self.report.last_error = f'robot description refused: {error}'
            if self.robot is None:
                log.error(f'robot description refused: {error}; waiting for another')
            else:
                log.warning(f"robot description refused: {error}; '{self.robot.model.name}' "
                            'stays in use')
            return
        self._model_count += 1
        self.robot = robot
        # What is there now stays: without it the garbage collector stops the node for 50 ms at
        # times to look through all that the compiler has left behind.
        gc.collect()
        gc.freeze()
        for note in model.warnings:
            log.warning(note)
        log.info(f"model {robot.model_id}: '{model.name}', {len(model.links)} links, "
                 f'{model.mass:.4g} kg, {model.nv} joints: {", ".join(model.velocity_names)}')

    @guarded
    def _on_joint_state(self, message):
        """Merge what came, and answer it if the state is complete."""
        counts, robot = self.report.counts, self.robot
        counts['joint states'] += 1
        if robot is None:
            counts['joint states before a description'] += 1
            return
        now = monotonic()
        known = len(robot.states.unknown_names)
        try:
            holds_ours = robot.states.update(message, now)
        except Rejected as error:
            counts['joint states dropped'] += 1
            self.report.last_error = f'joint state dropped: {error}'
            self.get_logger().error(self.report.last_error, throttle_duration_sec=QUIET)
            return
        if len(robot.states.unknown_names) > known:
            self.get_logger().info('joint states of joints that the robot has not are ignored: '
                                   + ', '.join(sorted(robot.states.unknown_names)))
        if not holds_ours:
            return
        missing = robot.states.missing(now, self.parameters.state_timeout)
        if missing:
            counts['joint states incomplete'] += 1
            self.get_logger().warning('no outputs: no recent position of '
                                      + ', '.join(missing), throttle_duration_sec=QUIET)
            return
        robot.stamp, robot.state_is_new = message.header.stamp, True
        if self.parameters.publish_rate == 0.0:
            self._publish(robot, now)

    @guarded
    def _on_timer(self):
        """Answer the latest state, if there is one that is new and still recent."""
        robot, now = self.robot, monotonic()
        if (robot is not None and robot.state_is_new
                and not robot.states.missing(now, self.parameters.state_timeout)):
            self._publish(robot, now)

    # -- Output. ---------------------------------------------------------------------------------

    def _publish(self, robot, now):
        """Compute the terms of the latest state and publish them to those who listen."""
        robot.state_is_new = False
        wanted = [topic for topic, publisher in self._publishers_of.items()
                  if publisher.get_subscription_count()]
        markers_wanted = (now >= self._markers_due
                          and self._marker_publisher.get_subscription_count() > 0)
        if not self._active or not (wanted or markers_wanted):
            return
        start = perf_counter()
        q, v = robot.states.q, self.velocity(robot)
        if v is None:
            terms = robot.workspace.configuration_terms(q)
            self.report.counts['outputs without velocity'] += 1
        else:
            terms = robot.workspace.all_terms(
                q, v, factorization=self.parameters.coriolis_factorization)
        self.report.compute_times.append(perf_counter() - start)
        values = {'q': q, 'v': v, **terms._asdict()}
        for topic in wanted:
            if v is not None or topic not in VELOCITY_TOPICS:
                self._publishers_of[topic].publish(
                    robot.outputs.message(topic, robot.stamp, values))
        self.report.counts['outputs'] += 1
        if markers_wanted:
            self._markers_due = now + MARKER_PERIOD
            self._marker_publisher.publish(robot.markers.update(
                robot.stamp, robot.workspace.place_links(q), terms))

    def velocity(self, robot):
        """Return the velocity to compute with, or None where it is not known."""
        v = robot.states.v
        if not robot.states.missing_velocities():
            return v
        if self.parameters.missing_velocity == 'zero':
            return np.nan_to_num(v, nan=0.0)
        return None

    @guarded
    def _publish_report(self):
        """Say on /diagnostics how things are."""
        robot, now = self.robot, monotonic()
        level, summary, facts = DiagnosticStatus.OK, 'publishing', {}
        if robot is None:
            level, summary = DiagnosticStatus.WARN, 'waiting for a robot description'
        else:
            facts = {'robot': robot.model.name, 'model id': str(robot.model_id),
                     'joints': ', '.join(robot.model.velocity_names)}
            missing = robot.states.missing(now, self.parameters.state_timeout)
            without_velocity = robot.states.missing_velocities()
            if missing:
                level = DiagnosticStatus.ERROR
                summary = 'no outputs: no recent position of ' + ', '.join(missing)
            elif without_velocity:
                level = DiagnosticStatus.WARN
                summary = (f'no velocity of {", ".join(without_velocity)}: '
                           + {'withhold': 'Coriolis terms are withheld',
                              'zero': 'taken as zero'}[self.parameters.missing_velocity])
        if not self._active:
            level, summary = DiagnosticStatus.WARN, 'inactive'
        self._diagnostics.publish(self.report.message(
            self.get_fully_qualified_name(), self.get_clock().now().to_msg(),
            now - self._reported, level, summary, facts))
        self._reported = now


def main(args=None):
    """Run the node until it is told to end."""
    run(DynamicsNode, args, events=lambda node: node.get_parameter('executor').value == 'events')


if __name__ == '__main__':
    main()
