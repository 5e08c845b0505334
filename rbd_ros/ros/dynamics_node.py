# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The node that turns a robot's description and joint states into its dynamics."""

from functools import wraps
import gc
from time import monotonic, perf_counter

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
import numpy as np
from rbd_ros import friction_torques, neutral, RbdError, with_gravity
from rbd_ros.ros import parameters
from rbd_ros.ros.diagnostics import Report
from rbd_ros.ros.joint_states import Rejected
from rbd_ros.ros.markers import PERIOD as MARKER_PERIOD
from rbd_ros.ros.outputs import TOPICS, VELOCITY_TOPICS
from rbd_ros.ros.robot import read_model, Robot
from rbd_ros.ros.run import run
from rbd_ros.ros.services import Services
from rbd_ros.warmup import warm_up
from rcl_interfaces.msg import SetParametersResult
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
# rad/s or m/s, at which Coulomb friction counts by three quarters: measured speeds are never zero
FRICTION_SPEED = 0.05


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


class DynamicsNode(LifecycleNode):
    """
    Publishes the dynamics of the robot in /robot_description for every joint state.

    The topics, services and parameters are listed in the README.

    """

    def __init__(self, **options):
        super().__init__('dynamics', **options)
        parameters.declare(self)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
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
        for name, seconds in warm_up(floating_base=self.parameters.floating_base):
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
        if self.parameters.floating_base:
            subscriptions.append(self.create_subscription(Odometry, 'odom', self._on_odometry,
                                                          STATE_QOS))
        services = Services(self).create()
        timers = [self.create_timer(1.0, self._publish_report, clock=wall)]
        self._start_timer()
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
        if self._parts:
            self._stop_timer()
        for destroy, parts in self._parts:
            for part in parts:
                destroy(part)
        self._parts = []

    def _start_timer(self):
        """Answer at a fixed rate, if the parameter publish_rate says so."""
        self._timer = None
        if self.parameters.publish_rate > 0.0:
            self._timer = self.create_timer(1.0 / self.parameters.publish_rate, self._on_timer,
                                            clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _stop_timer(self):
        if self._timer is not None:
            self.destroy_timer(self._timer)

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
        if self.parameters.publish_rate != before.publish_rate:
            self._stop_timer()
            self._start_timer()
        if self.parameters.gravity != before.gravity and self.robot is not None:
            self.change(self.robot.changed(
                with_gravity(self.robot.model, self.parameters.gravity), self.next_model_id()))

    # -- Input. ----------------------------------------------------------------------------------

    @guarded
    def _on_description(self, message):
        """Take on another robot as a whole, or keep the present one if its text is bad."""
        if self.robot is not None and message.data == self.robot.text:
            return
        log = self.get_logger()
        try:
            model = read_model(message.data, self.parameters)
            robot = Robot(message.data, model, self.next_model_id(),
                          self.parameters.command_joints)
            # Whatever is not compiled yet, a new kind of joint perhaps, is compiled now.
            robot.workspace.all_terms(neutral(model), np.zeros(model.nv))
        except RbdError as error:
            self.report.counts['descriptions refused'] += 1
            self.report.last_error = f'robot description refused: {error}'
            if self.robot is None:
                log.error(f'robot description refused: {error}; waiting for another')
            else:
                log.warning(f"robot description refused: {error}; '{self.robot.model.name}' "
                            'stays in use')
            return
        payloads = self.robot.payloads() if self.robot else {}
        if payloads:
            log.warning('the new description comes without the loads on ' + ', '.join(payloads))
        self.change(robot)
        # What is there now stays: without it the garbage collector stops the node for 50 ms at
        # times to look through all that the compiler has left behind.
        gc.collect()
        gc.freeze()
        for note in model.warnings:
            log.warning(note)
        log.info(f"model {robot.model_id}: '{model.name}', {len(model.links)} links, "
                 f'{model.mass:.4g} kg, {model.nv} joints: {", ".join(model.velocity_names)}')

    def next_model_id(self):
        """Return the number that the next robot has."""
        return self._model_count + 1

    def change(self, robot):
        """Go on with another robot, or with the same one under another load or gravity."""
        self._model_count, self.robot = robot.model_id, robot

    @guarded
    def _on_odometry(self, message):
        """Take over the state of the floating base."""
        self.report.counts['odometry'] += 1
        if self.robot is None or self.robot.base_states is None:
            return
        try:
            self.robot.base_states.update(message, monotonic())
        except Rejected as error:
            self.report.counts['odometry dropped'] += 1
            self.report.last_error = f'odometry dropped: {error}'
            self.get_logger().error(self.report.last_error, throttle_duration_sec=QUIET)

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
        robot.join_base(message.header.stamp, now, self.parameters.state_timeout)
        missing = robot.missing(now, self.parameters.state_timeout)
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
                and not robot.missing(now, self.parameters.state_timeout)):
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
        values = {'q': q, 'v': v, 'efforts': terms.g, **terms._asdict()}
        needs_velocity = VELOCITY_TOPICS
        if self.parameters.friction:
            needs_velocity = (*VELOCITY_TOPICS, '~/effort_commands')
            if v is not None:
                values['efforts'] = terms.g + friction_torques(robot.model, v,
                                                               smooth=FRICTION_SPEED)
        for topic in wanted:
            if v is not None or topic not in needs_velocity:
                self._publishers_of[topic].publish(
                    robot.outputs.message(topic, robot.stamp, robot.frame, values))
        self.report.counts['outputs'] += 1
        if markers_wanted:
            self._markers_due = now + MARKER_PERIOD
            self._marker_publisher.publish(robot.markers.update(
                robot.stamp, robot.frame, robot.workspace.place_links(q), terms))

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
                     'joints': ', '.join(robot.model.velocity_names),
                     'mass, kg': f'{robot.model.mass:.6g}',
                     'loads, kg': ', '.join(f'{link}: {mass:.6g}' for link, mass
                                            in robot.payloads().items()) or 'none'}
            missing = robot.missing(now, self.parameters.state_timeout)
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
