# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a dynamics node hears: descriptions, joint states and odometry."""

import gc

from nav_msgs.msg import Odometry
import numpy as np
from rbd_ros import neutral, RbdError
from rbd_ros.ros import convert
from rbd_ros.ros.guarded import guarded, QUIET
from rbd_ros.ros.joint_states import Rejected, TimeWentBack
from rbd_ros.ros.reader import Reader
from rbd_ros.ros.robot import read_model, Robot
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

DESCRIPTION_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE,
                             durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Reliable where the publishers there are allow it; ten deep, none is lost at 1 kHz.
STATE_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_AVAILABLE)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class Load:
    """Whether joint states come faster than they are answered."""

    # Of the latest answer in the mean, and of answers after which the next state is there already:
    # a delay of ten states is caught up with, one that lasts is not.
    WEIGHT, TOO_MANY = 0.02, 0.9

    def __init__(self):
        self._share = 0.0

    def is_too_much(self):
        """Say so for now."""
        return self._share > self.TOO_MANY

    def note(self, waiting):
        """Take note whether after an answer the next state was there already."""
        self._share += self.WEIGHT * (waiting - self._share)


class Inputs:
    """
    The subscriptions of a dynamics node.

    Parameters
    ----------
    node : DynamicsNode
        Its robot takes over what is heard.

    """

    def __init__(self, node):
        self._node, self._load, self._reader = node, Load(), Reader()

    def create(self):
        """Make the subscriptions."""
        node = self._node
        self.all = {'robot_description': node.create_subscription(
            String, 'robot_description', self._on_description, DESCRIPTION_QOS)}
        self._listen('joint_states', STATE_QOS)
        if node.parameters.floating_base:
            self._listen('odom', STATE_QOS)

    def _listen(self, topic, qos):
        kind, callback = {'joint_states': (JointState, self._on_joint_state),
                          'odom': (Odometry, self._on_odometry)}[topic]
        self.all[topic] = self._node.create_subscription(kind, topic, callback, qos,
                                                         raw=kind is JointState)

    def close(self):
        """Take the subscriptions down."""
        for subscription in self.all.values():
            self._node.destroy_subscription(subscription)

    def listen_to_all(self, topic):
        """
        Hear best-effort publishers, too.

        The middleware has settled on a reliability when the subscription was made, perhaps before
        there was any publisher.

        """
        if topic != 'robot_description' and self.all[topic].qos_profile is not BEST_EFFORT:
            self._node.destroy_subscription(self.all[topic])
            self._listen(topic, BEST_EFFORT)
            self._node.get_logger().info(f'{topic} comes as best effort')

    def on_jump(self, what):
        """Take no state as known any longer: time jumped."""
        node = self._node
        node.report.fail('time jumps', what)
        node.get_logger().warning(f'{what}: waiting for new states')
        if node.robot is not None:
            node.robot.forget()

    # -- Descriptions. ---------------------------------------------------------------------------

    @guarded
    def _on_description(self, message):
        """Take on another robot as a whole, or keep the present one if its text is bad."""
        node, log = self._node, self._node.get_logger()
        if node.robot is not None and message.data == node.robot.text:
            return
        try:
            model = read_model(message.data, node.parameters)
            robot = Robot(message.data, model, node.next_model_id(), node.parameters)
            # Whatever is not compiled yet, a new kind of joint perhaps, is compiled now.
            robot.workspace.all_terms(neutral(model), np.zeros(model.nv))
        except RbdError as error:
            node.report.fail('descriptions refused', f'robot description refused: {error}')
            if node.robot is None:
                log.error(f'robot description refused: {error}; waiting for another')
            else:
                log.warning(f"robot description refused: {error}; '{node.robot.model.name}' "
                            'stays in use')
            return
        payloads = node.robot.payloads() if node.robot else {}
        if payloads:
            log.warning('the new description comes without the loads on ' + ', '.join(payloads))
        node.change(robot)
        if node.alone:
            # What is there now stays: without it the garbage collector stops the node for 50 ms
            # at times to look through all that the compiler has left behind.
            gc.unfreeze()
            gc.collect()
            gc.freeze()
        for note in model.warnings:
            log.warning(note)
        log.info(f"model {robot.model_id}: '{model.name}', {len(model.links)} links, "
                 f'{model.mass:.4g} kg, {model.nv} joints: {", ".join(model.velocity_names)}')

    # -- States. ---------------------------------------------------------------------------------

    def _age(self, stamp):
        """
        Return the age of a stamp, s; 0 where it has none that could be compared with a clock.

        Raises
        ------
        Rejected
            If it lies too far back or ahead.

        """
        now = self._node.clocks.stamp_time() if stamp else 0.0
        if not now:
            return 0.0
        age, limit = now - stamp, self._node.parameters.state_timeout
        if age > limit:
            raise Rejected(f'its stamp is {age:.6g} s old, state_timeout {limit:.6g} s: do the '
                           'clocks agree, and is use_sim_time set where it should be?',
                           'old stamp')
        if age < -limit:
            raise Rejected(f'its stamp lies {-age:.6g} s ahead of the clock: do the clocks agree, '
                           'and is use_sim_time set where it should be?', 'future stamp')
        return max(age, 0.0)

    def _drop(self, what, error):
        """Count a message that cannot be used, and say why."""
        node = self._node
        node.report.fail(f'{what} dropped', f'{what} dropped: {error}')
        node.report.counts[f'{what} dropped: {error.kind}'] += 1
        node.get_logger().error(f'{what} dropped: {error}', throttle_duration_sec=QUIET)

    @guarded
    def _on_odometry(self, message):
        """Take over the state of the floating base."""
        node = self._node
        node.report.counts['odometry'] += 1
        if node.robot is None or node.robot.base_states is None:
            return
        try:
            age = (self._age(convert.seconds(message.header.stamp))
                   if node.parameters.check_stamps else 0.0)
            node.robot.base_states.update(message, node.clocks.age_time() - age)
        except Rejected as error:
            self._drop('odometry', error)

    def _on_joint_state(self, raw):
        """Take over joint states, as many as a queue may hold, and answer them."""
        # Under too much load services and timers have their turn in between.
        for _ in range(1 if self._load.is_too_much() else STATE_QOS.depth):
            self._answer(raw)
            raw = self._next()
            self._load.note(raw is not None)
            if raw is None:
                return
        self._answer(raw)

    def _next(self):
        """Return the serialized joint state that waits to be taken, None if there is none."""
        handle = self.all['joint_states'].handle
        with handle:
            taken = handle.take_message(JointState, True)
        return None if taken is None else taken[0]

    @guarded
    def _answer(self, raw):
        """Take over a joint state, and answer it if the state is complete."""
        node = self._node
        state = self._merge(self._reader.read(raw))
        if self._load.is_too_much():
            # The newest is answered, not one after the other what has waited.
            while (raw := self._next()) is not None:
                node.report.counts['overruns'] += 1
                state = self._merge(self._reader.read(raw)) or state
        robot = node.robot
        if state is None or robot is None:
            return
        now, timeout = node.clocks.age_time(), node.parameters.state_timeout
        robot.join_base(state.stamp, now, timeout)
        missing = robot.missing(now, timeout)
        if missing:
            node.report.counts['joint states incomplete'] += 1
            node.get_logger().warning('no outputs: no recent position of ' + ', '.join(missing),
                                      throttle_duration_sec=QUIET)
            return
        robot.stamp, robot.state_is_new = state.stamp, True
        if node.parameters.publish_rate == 0.0:
            node.answers.answer(robot, now)

    def _merge(self, state):
        """Take over a joint state; return it if it says anything of this robot, else None."""
        node, counts, parameters = self._node, self._node.report.counts, self._node.parameters
        robot = node.robot
        counts['joint states'] += 1
        if robot is None:
            counts['joint states before a description'] += 1
            return None
        states = robot.states
        known, stamp = len(states.unknown_names), convert.seconds(state.stamp)
        if not stamp:
            counts['joint states without a stamp'] += 1
        if not parameters.check_stamps:
            stamp = 0.0
        filter_time = (parameters.velocity_filter
                       if parameters.missing_velocity == 'differentiate' else None)
        try:
            came = node.clocks.age_time() - self._age(stamp)
            try:
                is_ours = states.update(state, came, stamp, parameters.state_timeout,
                                        filter_time)
            except TimeWentBack as error:
                self.on_jump(str(error))
                is_ours = states.update(state, came, stamp, parameters.state_timeout,
                                        filter_time)
        except Rejected as error:
            self._drop('joint states', error)
            return None
        if len(states.unknown_names) > known:
            node.get_logger().info('joint states of joints that the robot has not are ignored: '
                                   + ', '.join(sorted(states.unknown_names)))
        return state if is_ours else None
