# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The outputs of the dynamics node: the dynamics of each state, and effort commands."""

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from time import perf_counter, sleep
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from rbd_ros import RbdError, SingularError, spring_torques
from rbd_ros._internal.setting import Setting
from rbd_ros._internal.text import listed
from rbd_ros.batch.torque_deviation import torque_deviation
from rbd_ros.control import EffortConvention
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.ros.commands.effort_commands import COMPLETE, EffortCommands
from rbd_ros.ros.control.compensation import Law
from rbd_ros.ros.messages.topics import (
    C_RATE, COMMANDED, CommandMessages, COMMANDS, EXTERNAL_TOPICS, EXTERNAL_TORQUES,
    EXTERNAL_WRENCH, FULL_STATES, GRAVITY, RATE_TOPICS, TASK_TOPICS, TOPICS,
    TORQUE_DEVIATION, VELOCITY_TOPICS)
from rbd_ros.ros.outputs.external_forces import ExternalForces
from rbd_ros.ros.outputs.task_outputs import task_values
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import ERROR, guarded, Lasting, Log, OK, Report, WARN
from rbd_ros.ros.state.joint_states import all_within
from rbd_ros.workspace.memory.results import DynamicsTerms, Factorization, MatricesDot
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.timer import Timer
from visualization_msgs.msg import MarkerArray

NO_VELOCITY = 'the velocity is unknown'
NOT_CONFIRMED = 'a second sample must agree with the first one of each joint'
NO_TASK_LINK = 'the parameter task_link is not set'
MARKERS = '~/markers'
NEED_TASK_LINK = {*TASK_TOPICS, EXTERNAL_WRENCH}
# The default event callbacks of publishers cost the executor a tenth of a core at 1 kHz.
NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)
COMMAND_PERIOD = 0.01    # s between two commands while no states arrive
# s between two searches for subscribers; searching at every state takes 3 % of a core at 1 kHz
LISTENERS_PERIOD = 0.1
# A measured effort is not the commanded one if it differs by more than each of: N m or N; a share
# of the command; a share of the largest command. Friction and sensors behind gears explain less.
MIN_DIFFERENCE, DIFFERENCE_RATIO, NOISE_RATIO = 1.0, 0.5, 0.1
MAX_END_TIME = 4.5    # s after which the node ends even if commands have not reached zero

Terms: TypeAlias = dict[str, Any]    # Terms of one state, by the keys of `Outputs.message`


class PublishingSettings(NamedTuple):
    """The parameters that the outputs depend on."""

    publish_rate: Annotated[float, Setting(0.0, 'Rate of the outputs; 0: once per joint state.',
                                           'Hz', 0.0, 10000.0, 0.01, changeable=True)]
    on_stale: str
    state_timeout: float
    missing_velocity: str
    friction: bool
    limit_efforts: bool
    friction_dead_band: float
    effort_convention: EffortConvention
    springs: bool
    marker_rate: Annotated[float, Setting(
        30.0, 'Largest rate of the markers; 0: no markers.', 'Hz', 0.0, 1000.0, changeable=True)]
    condition_limit: Annotated[float, Setting(
        2e3, "Condition number of the Jacobian, with lengths in units of the robot's reach, "
        'beyond which task inertias are damped.', '', 1.0, 1e7, changeable=True)]
    coriolis_factorization: Annotated[Factorization, Setting(
        'christoffel', 'Factorization of the Coriolis matrix: Christoffel symbols, or body twists '
        '(Garofalo et al.). C v is the same.', choices=('christoffel', 'body'), changeable=True)]


class Publishing(Part):
    """The outputs of a dynamics node; the commands, those of `law`, are on `command_topics`."""

    def __init__(self, node: Node, settings: PublishingSettings, clocks: Clocks,
                 current: CurrentRobot, commands: EffortCommands, law: Law, forces: ExternalForces,
                 report: Report, log: Log, command_topics: Sequence[str] = (COMMANDS,)) -> None:
        self._node, self._settings, self._clocks = node, settings, clocks
        self._current, self._commands, self._law = current, commands, law
        self._forces = forces
        # Subscribers that receive nothing, and joints that do not follow commands.
        self._mismatched, self._unlike = Lasting(), Lasting()
        self._report, self._log = report, log
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._timers: list[Timer] = []
        # Why topics with subscribers are withheld, and which wait for kernels.
        self._withheld: dict[str, str] = {}
        self._awaited: dict[str, KernelNotReady] = {}
        self._why_no_c_rate = ''
        self.active = False
        self._markers_due = self._listeners_due = 0.0
        # The topics with subscribers, and the robot they were last searched for.
        self._searched_for: Robot | None = None
        self._subscribed: list[str] = []
        self._subscribed_commands: list[str] = []
        self._markers_subscribed = False
        self._constants_of: tuple[Sequence[str], EffortConvention] | None = None
        self._command_messages = CommandMessages()
        self._terms: dict[str, Callable[[str, Terms, Robot], Terms | str]] = {
            **dict.fromkeys(RATE_TOPICS, self._rates), **dict.fromkeys(TASK_TOPICS, self._task),
            **dict.fromkeys(EXTERNAL_TOPICS, lambda topic, values, robot: forces.values(
                topic, robot, values['q'])),
            COMMANDED: self._commanded,
            FULL_STATES: lambda topic, values, robot: robot.all_joints(values['v']),
            TORQUE_DEVIATION: self._deviation}
        self._publishers = {
            topic: node.create_publisher(kind, topic, 10, event_callbacks=NO_EVENTS)
            for topic, kind in (TOPICS | {one: CommandMessages.kinds[one]
                                          for one in command_topics}).items()}
        self._command_publishers = {topic: self._publishers[topic] for topic in command_topics}
        self._marker_publisher = node.create_publisher(MarkerArray, MARKERS, 10,
                                                       event_callbacks=NO_EVENTS)
        self._start_timers()

    def configure(self, settings: PublishingSettings, *of_law: Any) -> None:
        """Replace the settings, also those of the law."""
        before, self._settings = self._settings, settings
        self._law.configure(*of_law)
        if (settings.publish_rate, settings.on_stale) != (before.publish_rate, before.on_stale):
            self._start_timers()

    def _start_timers(self) -> None:
        self._stop_timers()
        # Commands first: they must continue even if the other timer cannot be created.
        self._timers.append(self._node.create_timer(
            LISTENERS_PERIOD if self._settings.on_stale == 'stop' else COMMAND_PERIOD,
            self._on_silence, clock=self._wall))
        if self._settings.publish_rate > 0.0:
            self._timers.append(self._node.create_timer(1.0 / self._settings.publish_rate,
                                                        self._on_timer, clock=self._wall))

    def _stop_timers(self) -> None:
        for timer in self._timers:
            self._node.destroy_timer(timer)
        self._timers = []

    def publishers(self) -> list[Any]:
        """Return all publishers of outputs."""
        return [*self._publishers.values(), self._marker_publisher]

    def close(self) -> None:
        """Destroy timers and publishers."""
        self.active = False
        self._stop_timers()
        self._commands.note_no_subscriber(self._clocks.age_time())
        for publisher in self.publishers():
            self._node.destroy_publisher(publisher)

    def is_commanding(self) -> bool:
        """Return whether commands are being sent to a subscriber."""
        return self.active and self._commands.enabled and self._find_command_subscribers()

    def _find_command_subscribers(self) -> bool:
        """Find the command topics with subscribers; return whether there are any."""
        self._subscribed_commands = [topic for topic, publisher in self._command_publishers.items()
                                     if publisher.get_subscription_count()]
        return bool(self._subscribed_commands)

    def _note_subscribers(self, now: float) -> None:
        """Tell the commands whether they have subscribers, also while they are not sent."""
        note = (self._commands.note_subscriber if self._subscribed_commands
                else self._commands.note_no_subscriber)
        note(now)

    @guarded
    def _on_timer(self) -> None:
        robot, start = self._current.robot, perf_counter()
        now = self._clocks.age_time()
        if (robot is not None and robot.state_is_new
                and not robot.missing(now, self._settings.state_timeout)):
            self.answer(robot, now)
            if (perf_counter() - start) * self._settings.publish_rate > 1.0:
                self._report.count('overruns')

    def _find_subscribers(self, robot: Robot, now: float, moment: float) -> None:
        """Find, once per LISTENERS_PERIOD, the topics with subscribers that can be answered."""
        if moment >= self._listeners_due or robot is not self._searched_for:
            self._listeners_due, self._searched_for = moment + LISTENERS_PERIOD, robot
            self._find_command_subscribers()
            # All command topics are one output.
            self._subscribed = [*self._subscribed_commands[:1], *(
                topic for topic, publisher in self._publishers.items()
                if topic not in self._command_publishers and publisher.get_subscription_count())]
            self._markers_subscribed = self._marker_publisher.get_subscription_count() > 0
            self._forces.wanted = self._markers_subscribed or any(
                topic in EXTERNAL_TOPICS for topic in self._subscribed)
            self._note_subscribers(now)
            if self.active and not robot.task_link:
                for topic in [topic for topic in self._subscribed if topic in NEED_TASK_LINK]:
                    self._subscribed.remove(topic)
                    self._log_withheld(topic, NO_TASK_LINK)

    def answer(self, robot: Robot, now: float) -> None:
        """Publish the dynamics of the latest, complete state on topics with subscribers."""
        settings = self._settings
        robot.state_is_new = False
        moment = self._clocks.steady_time()
        self._now = now
        self._find_subscribers(robot, now, moment)
        markers_due = (self._markers_subscribed and moment >= self._markers_due
                       and settings.marker_rate > 0.0)
        if not self.active or not (self._subscribed or markers_due):
            return
        start = perf_counter()
        q, v = robot.states.q, robot.velocity(settings.missing_velocity)
        if v is None:
            self._report.count('outputs without velocity')
        try:
            terms = robot.workspace.all_terms(q, np.zeros(robot.model.nv) if v is None else v,
                                              settings.coriolis_factorization)
        except KernelNotReady as error:
            self._answer_early(robot, q, error)
            return
        self._report.compute_times.append(perf_counter() - start)
        values = dict(zip(DynamicsTerms._fields, terms), q=q, v=v,
                      holding=self._holding(robot, q, terms.g))
        # Commands are sent at once, the rest in a row, which is faster: the sending code stays in
        # the processor's caches.
        ready: list[tuple[str, bytes]] = []
        for topic in self._subscribed:
            why_not = self._make(topic, values, robot, terms, ready)
            if why_not is not None or topic in self._withheld:
                self._log_withheld(topic, why_not)
        for topic, message in ready:
            self._send(topic, message)
        self._report.count('outputs')
        if markers_due:
            self._markers_due = moment + 1.0 / settings.marker_rate
            self._publish_markers(robot, q, v, terms)

    def _holding(self, robot: Robot, q: np.ndarray, g: np.ndarray) -> np.ndarray:
        return g + spring_torques(robot.model, q) if self._settings.springs else g

    def _answer_early(self, robot: Robot, q: np.ndarray, error: KernelNotReady) -> None:
        """Publish gravity torques while the code of other terms is being compiled."""
        for topic in self._subscribed:
            if topic == GRAVITY:
                g = robot.workspace.gravity_torques(q)
                self._send(topic, robot.outputs.message(
                    topic, robot.stamp, robot.frame, {'holding': self._holding(robot, q, g)}))
            else:
                self._awaited[topic] = error
                self._log_withheld(topic, str(error))

    def _publish_markers(self, robot: Robot, q: np.ndarray, v: np.ndarray | None,
                         terms: DynamicsTerms) -> None:
        external = self._forces.values(EXTERNAL_TORQUES, robot, q)
        try:
            poses = robot.workspace.forward_kinematics(q)
        except KernelNotReady as error:
            self._awaited[MARKERS] = error
            return
        for message in robot.markers.update(
                robot.stamp, robot.frame, poses, terms,
                None if v is None else terms.coriolis_torques,
                None if isinstance(external, str)
                else np.nan_to_num(external['external_torques'])):
            self._marker_publisher.publish(message)

    def facts(self) -> dict[str, str]:
        """Return the values of the law."""
        robot = self._current.robot
        return {} if robot is None else self._law.facts(robot, self._clocks.age_time())

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield why outputs are missing, and what is wrong with commands."""
        robot, settings, commands = self._current.robot, self._settings, self._commands
        if not self.active:
            yield WARN, 'inactive'
        if awaited := self.awaited():
            yield WARN, f'kernels are being compiled for {listed(awaited)}'
        if commands.mismatch:
            yield ERROR, commands.mismatch
        elif not commands.enabled:
            yield WARN, '~/effort_commands are disabled'
        elif why_not := self.why_no_commands():
            yield WARN, f'{COMMANDS} is withheld: {why_not}'
        if still := self._unlike.update({} if robot is None else self._unlike_efforts(robot)):
            yield WARN, ('measured efforts are not those commanded, N m or N: '
                         f'{listed(still)}: is the controller active? ros2_control clamps '
                         'commands, and zeroes those that point outwards at a limit '
                         '(enforce_command_limits)')
        if settings.friction and robot is not None and (names := [
                name for name, x in zip(robot.model.velocity_names, robot.known_velocity(
                    settings.missing_velocity)) if not isfinite(x)]):
            yield WARN, (f'commands do not compensate friction of {listed(names)}: velocities are '
                         'unknown')
        yield from self._law.findings()
        if beyond := commands.beyond_limits():
            yield WARN, ('efforts beyond the limits of the URDF, '
                         + ('clamped: ' if settings.limit_efforts else 'not clamped: ')
                         + listed(beyond))
        for text in self._mismatched.update({
                one.topic_name: f'a subscriber of {one.topic_name} receives nothing: its quality '
                'of service or type does not match' for one in self.publishers()
                if self._node.count_subscribers(one.topic_name) > one.get_subscription_count()}):
            yield WARN, text

    def _unlike_efforts(self, robot: Robot) -> dict[str, str]:
        """Return measured efforts that are not those commanded, by joint."""
        commands, settings = self._commands, self._settings
        if (not (commands.complete and self.is_commanding())
                or robot.missing(self._clocks.age_time(), settings.state_timeout)):
            return {}
        measured = robot.measured_commands(robot.velocity(settings.missing_velocity))[
            robot.command_columns]
        size = np.abs(commands.last)
        largest = np.maximum(np.maximum(MIN_DIFFERENCE, NOISE_RATIO * size.max(initial=0.0)),
                             DIFFERENCE_RATIO * size)
        return {name: f'{name} {x:.4g} instead of {goal:.4g}' for name, x, goal, most in zip(
            commands.joints, measured, commands.last, largest) if abs(x - goal) > most}

    def why_no_commands(self) -> str:
        """Return why commands with subscribers are withheld, or ''."""
        return next((self._withheld[topic] for topic in self._subscribed_commands
                     if topic in self._withheld), '')

    def awaited(self) -> list[str]:
        """Return the topics with subscribers whose kernels are being compiled."""
        return sorted(topic for topic, one in self._awaited.items() if not one.is_over())

    def _make(self, topic: str, values: Terms, robot: Robot, terms: DynamicsTerms,
              ready: list[tuple[str, bytes]]) -> str | None:
        """Append the message of a topic to `ready`, or return why not, also after an error."""
        if topic in self._awaited and not self._awaited[topic].is_over():
            return str(self._awaited[topic])
        try:
            if topic in self._command_publishers:
                return self._command(robot, values['v'], terms)
            if values['v'] is None and topic in VELOCITY_TOPICS:
                return NO_VELOCITY
            if topic in self._terms:
                found = self._terms[topic](topic, values, robot)
                if isinstance(found, str):
                    return found
                values.update(found)
            ready.append((topic, robot.outputs.message(topic, robot.stamp, robot.frame, values)))
            return None
        except KernelNotReady as error:
            self._awaited[topic] = error
            return str(error)
        except RbdError as error:
            return str(error)
        except Exception as error:
            return self._fail(topic, error)

    def _send(self, topic: str, message: bytes) -> None:
        try:
            self._publishers[topic].publish(message)
        except Exception as error:
            self._fail(topic, error)

    def _fail(self, topic: str, error: Exception) -> str:
        self._report.fail('errors', f'{topic}: {type(error).__name__}: {error}')
        return self._report.last_error

    def _log_withheld(self, topic: str, why_not: str | None) -> None:
        """Log once why a topic with subscribers is withheld."""
        if why_not == self._withheld.get(topic):
            return
        is_normal = topic not in self._command_publishers or why_not == NOT_CONFIRMED
        if why_not is None:
            del self._withheld[topic]
        elif (self._log.info if is_normal else self._log.warning)(
                f'{topic} is withheld: {why_not}', f'{topic} is withheld'):
            self._withheld[topic] = why_not

    # Each of the next methods returns the terms of some topics, or why there are none.
    def _rates(self, topic: str, values: Terms, robot: Robot) -> Terms | str:
        """Compute the time derivatives of M, C and g; that of C needs the acceleration."""
        if 'g_dot' not in values:
            q, v, self._why_no_c_rate = values['q'], values['v'], ''
            effort, a = robot.measured_torques(v), np.zeros_like(v)
            if self._settings.coriolis_factorization != 'christoffel':
                self._why_no_c_rate = 'coriolis_factorization is not christoffel'
            elif not all_within(effort, np.inf):
                self._why_no_c_rate = 'joint states have no efforts'
            else:
                try:
                    a = robot.workspace.forward_dynamics(
                        q, v, effort - spring_torques(robot.model, q))
                except SingularError as error:
                    self._why_no_c_rate = str(error)
            values.update(zip(MatricesDot._fields, robot.workspace.matrices_dot(q, v, a)))
        return (topic == C_RATE and self._why_no_c_rate) or {}

    def _commanded(self, topic: str, values: Terms, robot: Robot) -> Terms | str:
        """Return the command that was computed from this state, in N m or N."""
        if not self._subscribed_commands:
            return 'nothing listens to ~/effort_commands'
        return self.why_no_commands() or {'command_joints': tuple(self._commands.joints),
                                          'commanded': self._commands.last}

    def _deviation(self, topic: str, values: Terms, robot: Robot) -> Terms | str:
        """Compute the deviation of torques without accelerations, which are not measured."""
        if robot.model.uncertainty is None:
            return ('the robot has no uncertainty: identify it with rbd_ros identify, and load '
                    'the URDF and the parameter file that it writes')
        q, v = values['q'], values['v']
        return {'torque_deviation': torque_deviation(
            robot.model, q, v, np.zeros_like(v), smooth=self._settings.friction_dead_band)}

    def _task(self, topic: str, values: Terms, robot: Robot) -> Terms | str:
        if not robot.task_link:
            return NO_TASK_LINK
        limit = self._settings.condition_limit
        found = task_values(topic, robot, values['q'], values['v'], values['M'], limit)
        if 'condition' in found and found['condition'][0] > limit:
            self._report.count('task inertia damped')
        return found

    def _command(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms) -> str | None:
        """Command the efforts of the control law, or return why not."""
        if not self._commands.enabled:
            return 'commands are disabled'
        restarts = self._commands.starts_blend(self._now)
        if restarts and robot.states.unconfirmed:
            return NOT_CONFIRMED
        start = None
        if self._commands.starts(self._now):
            start = robot.measured_commands(v)[robot.command_columns]
            if why_not := self._commands.why_not_start(start):
                return why_not
        efforts = self._law.efforts(robot, v, terms, self._now, restarts)
        if isinstance(efforts, str):
            return efforts
        complete = self._commands.complete
        self._publish_command(self._commands.update(efforts[robot.command_columns], self._now,
                                                    self._law.guard(robot, efforts), start))
        if self._commands.complete and not complete:
            self._log.info(COMPLETE)
            for level, text in self._law.findings():
                if level == OK:
                    self._log.info(text)
        return None

    def _publish_command(self, efforts: np.ndarray) -> None:
        """Publish efforts, N m or N, in the units of the drives."""
        joints, convention = self._commands.joints, self._settings.effort_convention
        if (joints, convention) != self._constants_of:
            self._constants_of = joints, convention
            self._constants = convention.constants_of_commands(joints)
        efforts = efforts / self._constants
        for topic in self._subscribed_commands:
            self._publishers[topic].publish(self._command_messages.message(topic, joints, efforts))

    def _on_silence(self) -> None:
        # rclpy gives a callback that takes an argument its timer's times.
        self._repeat_command()

    @guarded
    def _repeat_command(self, later: float = 0.0) -> bool:
        """Send the command that is due while no states arrive; return whether there was one."""
        now = self._clocks.age_time()
        self._find_command_subscribers()
        self._note_subscribers(now + later)
        if not (self.active and self._subscribed_commands):
            return False
        robot = self._current.robot
        states_come = (robot is not None and self._settings.publish_rate > 0.0
                       and not robot.missing(now, self._settings.state_timeout))
        efforts = self._commands.repeat(now + later, states_come)
        if efforts is not None:
            self._publish_command(efforts)
        return efforts is not None

    def finish(self) -> None:
        """End the commands, then stop the outputs; this takes at most `MAX_END_TIME`."""
        self._commands.end()
        sent, begin, robot_begin = False, self._clocks.steady_time(), self._clocks.age_time()
        # No /clock is received meanwhile: simulated time stands still.
        while self._repeat_command((self._clocks.steady_time() - begin)
                                   - (self._clocks.age_time() - robot_begin)):
            sent = True
            if self._clocks.steady_time() - begin > MAX_END_TIME:
                self._log.error('commands ended before they reached zero: effort_rate_limit is '
                                'too low')
                break
            sleep(COMMAND_PERIOD)
        if sent:
            for publisher in self._command_publishers.values():
                publisher.wait_for_all_acked(Duration(seconds=0.2))
        self.active = False
