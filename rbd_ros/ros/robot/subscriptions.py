# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The subscriptions of the dynamics node: descriptions, joint states and odometry."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import inf, isfinite
from typing import Annotated, NamedTuple

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rbd_ros._internal.cdr import JointStateContent, Stamp
from rbd_ros._internal.setting import Setting
from rbd_ros._internal.text import listed
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.ros import convert
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.rclpy_workarounds import QosOverrides, WaitingMessages
from rbd_ros.ros.runtime.report import ERROR, guarded, Lasting, Log, Report, STALE, WARN
from rbd_ros.ros.state.joint_states import Rejected, TimeWentBack
from rbd_ros.ros.state.sources import prefix_hint
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

DESCRIPTION_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE,
                             durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Reliable if all publishers are; with a depth of ten no state is lost at 1 kHz.
STATE_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_AVAILABLE)
MAX_AHEAD = 0.5    # s: clocks may be ahead by this, or by a longer state_timeout
RECENT = 3.0    # s: publishers are compared if both were heard since then
MAX_AGES = 64    # Number of ages of joint states that are reported, the largest first
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class Backlog:
    """Detects that joint states arrive faster than they are processed."""

    # Weight of the latest answer in the running mean, and the share of answers with a waiting
    # state that counts as overload: more than a backlog of ten states can cause.
    WEIGHT, OVERLOAD_SHARE = 0.02, 0.9

    def __init__(self) -> None:
        self._share = 0.0

    def is_overload(self) -> bool:
        """Return whether the node is overloaded."""
        return self._share > self.OVERLOAD_SHARE

    def note(self, waiting: bool) -> None:
        """Record whether the next state was already waiting after an answer."""
        self._share += self.WEIGHT * (waiting - self._share)


class ListeningSettings(NamedTuple):
    """The parameters of the subscriptions, and of the states that are accepted."""

    floating_base: bool
    publish_rate: float
    state_timeout: Annotated[float, Setting(
        0.5, 'Largest age of the state of a joint.', 's', 0.001, 3600.0, changeable=True)]
    check_stamps: Annotated[bool, Setting(
        True, 'Drop states whose stamps are older than state_timeout, more than that ahead of the '
        'clock, or out of order. Zero stamps are not checked.', changeable=True)]
    missing_velocity: Annotated[str, Setting(
        'withhold', 'Handling of joint states without velocity: withhold outputs that need it, '
        'assume zero, or differentiate the positions.',
        choices=('withhold', 'zero', 'differentiate'), changeable=True)]
    velocity_filter: Annotated[float, Setting(
        0.02, 'Time constant of the low-pass filter of differentiated positions.', 's', 0.0, 10.0,
        changeable=True)]
    implausible_velocity: Annotated[float, Setting(
        3.0, 'A sample is ignored if its velocity, or the change of its position, exceeds this '
        'multiple of the velocity limit (20 rad/s or 5 m/s without a limit); 0: never.',
        'times the limit', 0.0, 1e12, 1.0, changeable=True)]


class Subscriptions(Part):
    """The subscriptions of a dynamics node."""

    def __init__(self, node: QosOverrides, settings: ListeningSettings, clocks: Clocks,
                 current: CurrentRobot, answer: Callable[[Robot, float], None],
                 collect: Sequence[Callable[[Robot], None]],
                 on_jump: Callable[..., None], report: Report, log: Log) -> None:
        # `answer` is called with the robot and the time, s, when its state is complete; before
        # it, each of `collect` with the robot. `on_jump` is called with an explanation and, if
        # joints moved instead of time, the event to count, when known states become invalid.
        self._node, self._settings, self._clocks = node, settings, clocks
        self._current, self._answer_state, self._on_jump = current, answer, on_jump
        self._collect = collect
        self._report, self._log = report, log
        self._backlog, self._reader, self._named = Backlog(), convert.joint_state_reader(), 0
        self._waiting, self._mismatched = WaitingMessages(JointState), Lasting()
        self._closed = False
        self.all = {'robot_description': node.create_subscription(
            String, 'robot_description', self._on_description, DESCRIPTION_QOS)}
        self._listen('joint_states', STATE_QOS)
        if settings.floating_base:
            self._listen('odom', STATE_QOS)

    def _listen(self, topic: str, qos: QoSProfile) -> None:
        kind, callback = {'joint_states': (JointState, self._on_joint_state),
                          'odom': (Odometry, self._on_odometry)}[topic]
        # `listen_to_all` chooses another reliability than the parameters of the topic.
        self.all[topic] = self._node.create_subscription(
            kind, topic, callback, qos, raw=kind is JointState,
            overridable=qos is not BEST_EFFORT)

    def close(self) -> None:
        self._closed = True
        for subscription in self.all.values():
            self._node.destroy_subscription(subscription)

    def listen_to_all(self, topic: str) -> None:
        """Receive from best-effort publishers, too."""
        # The reliability was chosen on creation, perhaps before there was a publisher.
        if topic != 'robot_description' and self.all[topic].qos_profile is not BEST_EFFORT:
            self._node.destroy_subscription(self.all[topic])
            self._listen(topic, BEST_EFFORT)
            self._log.info(f'{topic} is now received as best effort')

    @guarded
    def _on_description(self, message: String) -> None:
        self._current.describe(message.data)

    def _lag(self, stamp: float) -> float | None:
        """Return how late a stamp is, s; None: unknown; raise Rejected if it is out of range."""
        now = self._clocks.stamp_time() if stamp else 0.0
        if not now:
            return None
        lag, limit = now - stamp, self._settings.state_timeout
        if lag > limit:
            raise Rejected(f'its stamp is {lag:.6g} s old, state_timeout is {limit:.6g} s: '
                           'synchronise the clocks, and check use_sim_time, or raise '
                           'state_timeout', 'old stamp')
        if -lag > max(limit, MAX_AHEAD):
            raise Rejected(f'its stamp is {-lag:.6g} s ahead of the clock: synchronise the '
                           'clocks, and check use_sim_time', 'future stamp')
        return lag

    def _stamp(self, message_stamp: Time | Stamp) -> float:
        """Return a stamp, s; 0 if it is zero, or if stamps are not checked."""
        return convert.seconds(message_stamp) if self._settings.check_stamps else 0.0

    def _drop(self, what: str, error: Rejected) -> None:
        self._report.fail(f'{what} dropped', f'{what} dropped: {error}')
        self._report.count(f'{what} dropped: {error.kind}')
        self._log.error(f'{what} dropped: {error}', f'{what} {error.kind}')

    @guarded
    def _on_odometry(self, message: Odometry) -> None:
        self._report.count('odometry')
        robot = self._current.robot
        if robot is None or robot.odometry is None:
            return
        try:
            lag = self._lag(self._stamp(message.header.stamp))
            moved = robot.odometry.update(message, self._clocks.age_time() - max(lag or 0.0, 0.0),
                                          self._settings.implausible_velocity or inf)
            if moved:
                self._on_jump(moved, 'moved joints')
        except Rejected as error:
            self._drop('odometry', error)

    @guarded
    def _on_joint_state(self, raw: bytes) -> None:
        """Answer this joint state and the waiting ones, at most a queue of them."""
        if self._closed:
            return          # this message was already in the executor's queue
        # Under overload, services and timers are served after each state.
        for _ in range(1 if self._backlog.is_overload() else STATE_QOS.depth):
            self._answer(raw)
            raw = self._next()
            self._backlog.note(raw is not None)
            if raw is None:
                return
        self._answer(raw)

    def _next(self) -> bytes | None:
        # An answer to the last one may have destroyed the subscription.
        return None if self._closed else self._waiting.take(self.all['joint_states'])

    @guarded
    def _answer(self, raw: bytes) -> None:
        """Take a joint state, and answer it if the state is complete."""
        state = self._merge(self._reader.read(raw))
        if self._backlog.is_overload():
            while (raw := self._next()) is not None:
                self._report.count('overruns')
                state = self._merge(self._reader.read(raw)) or state
        robot = self._current.robot
        if state is None or robot is None:
            return
        now, timeout = self._clocks.age_time(), self._settings.state_timeout
        robot.join_base(convert.seconds(robot.time_stamp), now, timeout,
                        not self._settings.check_stamps)
        missing = robot.missing(now, timeout)
        if missing:
            self._report.count('joint states incomplete')
            self._log.warning(robot.why_missing(missing), 'missing')
            return
        robot.state_is_new = True
        for collect in self._collect:
            with suppress(KernelNotReady):         # later states will be collected
                collect(robot)
        if self._settings.publish_rate == 0.0:
            self._answer_state(robot, now)

    def _merge(self, state: JointStateContent) -> JointStateContent | None:
        """Take a joint state; return it if it names joints of the robot, else None."""
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

        def update() -> bool:
            return robot.states.update(
                state, self._clocks.age_time(), stamp, settings.state_timeout, filter_time,
                settings.implausible_velocity or inf, self._lag(stamp))
        try:
            try:
                is_ours = update()
            except TimeWentBack as error:
                self._on_jump(str(error))
                is_ours = update()
        except Rejected as error:
            self._drop('joint states', error)
            return None
        self._log_unknown(robot)
        if not is_ours:
            return None
        back = robot.note_stamp(state.stamp, self._clocks.age_time(), settings.state_timeout)
        if back:
            text = f'stamps jumped back by {back:.6g} s'
            self._report.fail('time jumps', text)
            self._log.warning(text, 'time jumps')
        for text in robot.states.sources.clock_notes(robot.states.names):
            self._log.warning(text)
        judge = robot.states.judge
        if judge.implausible:
            for text in judge.implausible:
                self._report.fail('implausible samples', f'implausible: {text}')
            self._log.warning(f"implausible: {'; '.join(judge.implausible)}. These samples are "
                              'ignored; if the joint is that fast, raise implausible_velocity',
                              'implausible')
        if judge.moved:
            self._on_jump('; '.join(judge.moved), 'moved joints')
        return state

    def _log_unknown(self, robot: Robot) -> None:
        """Log names of joints that the robot does not have, once or at most every few seconds."""
        names = robot.states.unknown_names
        if len(names) < self._named:
            self._named = 0         # it is another robot
        if len(names) > self._named and self._log.info(
                'joint states of joints that the robot does not have are ignored: '
                + listed(sorted(names)) + prefix_hint(robot.states.names, names), 'unknown names'):
            self._named = len(names)

    def facts(self) -> dict[str, str]:
        """Return the largest ages of states by joint."""
        robot = self._current.robot
        ages = robot.ages(self._clocks.age_time()) if robot is not None else {}
        oldest = sorted(ages.items(), key=lambda pair: -pair[1])[:MAX_AGES]
        return {f'age of {name}, s': f'{age:.3f}' for name, age in oldest}

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield what is wrong with states and their publishers."""
        if self._current.robot is not None:
            yield from self._findings_on_states(self._current.robot)
        yield from self._findings_on_publishers()

    def _findings_on_states(self, robot: Robot) -> Iterator[tuple[bytes, str]]:
        settings, received = self._settings, self._report.recent('joint states')
        now = self._clocks.age_time()
        missing, ages = robot.missing(now, settings.state_timeout), robot.ages(now).values()
        if ages and not any(map(isfinite, ages)):
            yield STALE, 'no outputs: no state has arrived yet'
        if missing and received:
            yield ERROR, robot.why_missing(missing)
        elif missing and any(map(isfinite, ages)):
            yield ERROR, ('no outputs: joint states have stopped; no recent position of '
                          + listed(missing))
        if not missing and self._clocks.simulated and not received:
            yield WARN, ('no joint states arrived since the last report; while /clock stands '
                         'still, the last ones do not age')
        without_velocity = robot.states.missing_velocities()
        if not missing and without_velocity:
            yield WARN, (f'no velocity of {listed(without_velocity)}: ' + {
                'withhold': 'Coriolis terms are withheld', 'zero': 'taken as zero',
                'differentiate': 'positions are differentiated'}[settings.missing_velocity])

    def _findings_on_publishers(self) -> Iterator[tuple[bytes, str]]:
        node = self._node
        for which in ('joint_states', 'robot_description'):
            topic = self.all[which].topic_name
            if node.count_publishers(topic) > 1:
                names = [f'{info.node_namespace.rstrip("/")}/{info.node_name}'
                         for info in node.get_publishers_info_by_topic(topic)]
                shared = self._shared_joints(len(names)) if which == 'joint_states' else ''
                if shared is not None:
                    text = f'{len(names)} publishers of {topic}: {listed(sorted(names))}{shared}'
                    self._log.warning(text, f'publishers of {topic}')
                    yield WARN, text
        unmatched = {topic: f'nothing is received from a publisher of {one.topic_name}: '
                     'its quality of service or type does not match'
                     for topic, one in self.all.items()
                     if node.count_publishers(one.topic_name) > one.get_publisher_count()}
        for topic in unmatched:
            self.listen_to_all(topic)
        for text in self._mismatched.update(unmatched):
            yield WARN, text

    def _shared_joints(self, publishers: int) -> str | None:
        """Return what is wrong with several publishers of joint states; None: nothing."""
        robot = self._current.robot
        if robot is None:
            return ''
        sources, since = robot.states.sources, self._clocks.age_time() - RECENT
        if shared := [name for k, name in enumerate(robot.states.names)
                      if len(sources.of(k, since)) > 1]:
            return f'; several publish {listed(shared)}: stop all but one of these'
        return '' if len(sources.by_names) < publishers else None
