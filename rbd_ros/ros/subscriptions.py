# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a dynamics node hears: descriptions, joint states and odometry."""

from typing import NamedTuple

from nav_msgs.msg import Odometry
from rbd_ros.ros import convert
from rbd_ros.ros.callbacks import guarded
from rbd_ros.ros.joint_state_reader import Reader
from rbd_ros.ros.joint_states import Rejected, TimeWentBack
from rbd_ros.ros.waiting_messages import WaitingMessages
from rbd_ros.texts import listed
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


class ListeningSettings(NamedTuple):
    """The parameters of a node that say what it hears, and what it believes."""

    floating_base: bool
    publish_rate: float
    state_timeout: float
    check_stamps: bool
    missing_velocity: str
    velocity_filter: float


class Subscriptions:
    """
    What a dynamics node hears.

    Parameters
    ----------
    node : rclpy.node.Node
        The subscriptions are made on it.
    settings : ListeningSettings
        Of the node.
    clocks : Clocks
        Of the node.
    current : CurrentRobot
        Its robot takes over what is heard.
    answer : callable
        Called with a robot and the time, s, when its state is complete and to be answered.
    on_jump : callable
        Called with a few words when stamps jump back.
    report : Report
        Of the node.
    log : Log
        Of the node.

    Attributes
    ----------
    all : dict of str to rclpy.subscription.Subscription
        By topic.

    """

    def __init__(self, node, settings, clocks, current, answer, on_jump, report, log):
        self._node, self._settings, self._clocks = node, settings, clocks
        self._current, self._answer_state, self._on_jump = current, answer, on_jump
        self._report, self._log = report, log
        self._load, self._reader, self._named = Load(), Reader(), 0
        self._waiting = WaitingMessages(JointState)
        self._closed = False
        self.all = {'robot_description': node.create_subscription(
            String, 'robot_description', self._on_description, DESCRIPTION_QOS)}
        self._listen('joint_states', STATE_QOS)
        if settings.floating_base:
            self._listen('odom', STATE_QOS)

    def configure(self, settings: ListeningSettings) -> None:
        """Use other settings from now on; ``floating_base`` cannot change."""
        self._settings = settings

    def _listen(self, topic, qos):
        kind, callback = {'joint_states': (JointState, self._on_joint_state),
                          'odom': (Odometry, self._on_odometry)}[topic]
        self.all[topic] = self._node.create_subscription(kind, topic, callback, qos,
                                                         raw=kind is JointState)

    def close(self):
        """Take the subscriptions down."""
        self._closed = True
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
            self._log.info(f'{topic} comes as best effort')

    @guarded
    def _on_description(self, message):
        """Take on another robot, or keep the present one."""
        self._current.describe(message.data)

    # -- States. ---------------------------------------------------------------------------------

    def _age(self, stamp):
        """
        Return the age of a stamp, s; 0 where it has none that could be compared with a clock.

        Raises
        ------
        Rejected
            If it lies too far back or ahead.

        """
        now = self._clocks.stamp_time() if stamp else 0.0
        if not now:
            return 0.0
        age, limit = now - stamp, self._settings.state_timeout
        if age > limit:
            raise Rejected(f'its stamp is {age:.6g} s old, state_timeout {limit:.6g} s: do the '
                           'clocks agree, and is use_sim_time set where it should be?',
                           'old stamp')
        if age < -limit:
            raise Rejected(f'its stamp lies {-age:.6g} s ahead of the clock: do the clocks agree, '
                           'and is use_sim_time set where it should be?', 'future stamp')
        return max(age, 0.0)

    def _stamp(self, message_stamp):
        """Return a stamp to compare with others, s; 0 where there is none or none is checked."""
        return convert.seconds(message_stamp) if self._settings.check_stamps else 0.0

    def _drop(self, what, error):
        """Count a message that cannot be used, and say why."""
        self._report.fail(f'{what} dropped', f'{what} dropped: {error}')
        self._report.count(f'{what} dropped: {error.kind}')
        self._log.error(f'{what} dropped: {error}', f'{what} {error.kind}')

    @guarded
    def _on_odometry(self, message):
        """Take over the state of the floating base."""
        self._report.count('odometry')
        robot = self._current.robot
        if robot is None or robot.odometry is None:
            return
        try:
            age = self._age(self._stamp(message.header.stamp))
            robot.odometry.update(message, self._clocks.age_time() - age)
        except Rejected as error:
            self._drop('odometry', error)

    @guarded
    def _on_joint_state(self, raw):
        """Take over joint states, as many as a queue may hold, and answer them."""
        if self._closed:
            return          # the executor had this one in its queue already
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
        # An answer to the last one may have taken the subscription down.
        return None if self._closed else self._waiting.take(self.all['joint_states'])

    @guarded
    def _answer(self, raw):
        """Take over a joint state, and answer it if the state is complete."""
        state = self._merge(self._reader.read(raw))
        if self._load.is_too_much():
            # The newest is answered, not one after the other what has waited.
            while (raw := self._next()) is not None:
                self._report.count('overruns')
                state = self._merge(self._reader.read(raw)) or state
        robot = self._current.robot
        if state is None or robot is None:
            return
        now, timeout = self._clocks.age_time(), self._settings.state_timeout
        robot.join_base(convert.seconds(state.stamp), now, timeout,
                        not self._settings.check_stamps)
        missing = robot.missing(now, timeout)
        if missing:
            self._report.count('joint states incomplete')
            self._log.warning(robot.why_missing(missing), 'missing')
            return
        robot.complete(state.stamp)
        if self._settings.publish_rate == 0.0:
            self._answer_state(robot, now)

    def _merge(self, state):
        """Take over a joint state; return it if it says anything of this robot, else None."""
        settings, robot = self._settings, self._current.robot
        self._report.count('joint states')
        if robot is None:
            self._report.count('joint states before a description')
            return None
        if not (state.stamp.sec or state.stamp.nanosec):
            self._report.count('joint states without a stamp')
        stamp = self._stamp(state.stamp)
        filter_time = (settings.velocity_filter
                       if settings.missing_velocity == 'differentiate' else None)

        def update():
            came = self._clocks.age_time() - self._age(stamp)
            return robot.states.update(state, came, stamp, settings.state_timeout, filter_time)
        try:
            try:
                is_ours = update()
            except TimeWentBack as error:
                self._on_jump(str(error))
                is_ours = update()
        except Rejected as error:
            self._drop('joint states', error)
            return None
        self._tell_unknown(robot.states.unknown_names)
        return state if is_ours else None

    def _tell_unknown(self, names):
        """Say once, or at most every few seconds, which joints are not the robot's."""
        if len(names) < self._named:
            self._named = 0         # it is another robot
        if len(names) > self._named and self._log.info(
                'joint states of joints that the robot does not have are ignored: '
                + listed(sorted(names)), 'unknown names'):
            self._named = len(names)
