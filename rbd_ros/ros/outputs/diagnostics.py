# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The health of the dynamics node, published once per second on /diagnostics."""

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.model.plausibility import nothing_to_compute
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.control.compensation import Law
from rbd_ros.ros.messages.topics import COMMANDS
from rbd_ros.ros.outputs.external_forces import ExternalForces
from rbd_ros.ros.outputs.publishing import Publishing
from rbd_ros.ros.parameters.parameters import NO_GRAVITY
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.effort_check import EffortCheck
from rbd_ros.ros.robot.subscriptions import Subscriptions
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.kernels import Kernels
from rbd_ros.ros.runtime.report import ERROR, guarded, Log, OK, Report, STALE, WARN
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

RECENT = 3.0     # s: publishers are compared if both were heard since then
# A measured effort is not the commanded one if it differs by more than each of: N m or N; a share
# of the command; a share of the largest command. Friction and sensors behind gears explain less.
MIN_DIFFERENCE, DIFFERENCE_RATIO, NOISE_RATIO = 1.0, 0.5, 0.1
MAX_AGES = 64    # Number of ages of joint states that are reported, the largest first


class HealthSettings(NamedTuple):
    """The parameters that are reported, or that the health depends on."""

    on_stale: str
    model_changes: str
    state_timeout: float
    missing_velocity: str
    friction: bool
    limit_efforts: bool


class Health:
    """Publishes the health of a dynamics node; see doc/faults.md."""

    def __init__(self, node: Node, settings: HealthSettings, clocks: Clocks, current: CurrentRobot,
                 publishing: Publishing, subscriptions: Subscriptions, commands: EffortCommands,
                 law: Law, forces: ExternalForces, check: EffortCheck, kernels: Kernels,
                 report: Report, log: Log) -> None:
        self._law, self._forces, self._check, self._kernels = law, forces, check, kernels
        self._node, self._settings, self._clocks = node, settings, clocks
        self._current, self._publishing, self._subscriptions = current, publishing, subscriptions
        self._commands, self._report, self._log = commands, report, log
        # Mismatched connections, and joints that did not follow commands, at the last report.
        self._mismatched: set[str] = set()
        self._unlike: set[str] = set()
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        # A steady clock, because simulated time may stand still.
        self._timer = node.create_timer(1.0, self._publish,
                                        clock=Clock(clock_type=ClockType.STEADY_TIME))

    def configure(self, settings: HealthSettings) -> None:
        """Replace the settings."""
        self._settings = settings

    def close(self) -> None:
        """Stop reporting."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    @guarded
    def _publish(self) -> None:
        self._publisher.publish(self.message())

    def message(self) -> DiagnosticArray:
        """Return a report, and begin the next."""
        findings = [*self._findings_on_states(), *self._event_findings(),
                    *self._findings_on_commands(), *self._findings_on_graph()]
        return self._report.message(self._node.get_fully_qualified_name(), self._clocks.stamp(),
                                    findings or [(OK, 'publishing')], self._facts())

    def _facts(self) -> dict[str, str]:
        """Return values without a rating, one number or word per key."""
        robot = self._current.robot
        facts = {'commands': 'enabled' if self._commands.enabled else 'disabled',
                 'on_stale': self._settings.on_stale,
                 'model_changes': self._settings.model_changes,
                 'kernels': 'ready' if self._kernels.ready else 'being compiled'}
        if robot is None:
            return facts
        facts |= self._forces.facts() | self._law.facts(robot, self._clocks.age_time())
        facts |= {'robot': robot.model.name, 'model id': str(robot.model_id),
                  'joints': listed(robot.model.velocity_names),
                  'command joints': listed(self._commands.joints),
                  'mass, kg': f'{robot.model.mass:.6g}'}
        for axis, x in zip('xyz', robot.model.gravity):
            facts[f'gravity {axis}, m/s^2'] = f'{x:.6g}'
        for link, mass in robot.payloads().items():
            facts[f'load on {link}, kg'] = f'{mass:.6g}'
        ages = sorted(robot.ages(self._clocks.age_time()).items(), key=lambda pair: -pair[1])
        for name, age in ages[:MAX_AGES]:
            facts[f'age of {name}, s'] = f'{age:.3f}'
        return facts

    def _findings_on_states(self) -> Iterator[tuple[bytes, str]]:
        robot, received = self._current.robot, self._report.recent('joint states')
        if not self._publishing.active:
            yield WARN, 'inactive'
        if self._clocks.simulated and not self._clocks.stamp_time():
            yield WARN, ('use_sim_time is set, but nothing arrives on /clock: stamps are not '
                         'checked')
        if robot is None:
            reason = f'; {self._report.last_error}' if self._report.last_error else ''
            yield WARN, f'waiting for a robot description{reason}'
        else:
            now = self._clocks.age_time()
            missing = robot.missing(now, self._settings.state_timeout)
            ages = robot.ages(now).values()
            if ages and not any(isfinite(age) for age in ages):
                yield STALE, 'no outputs: no state has arrived yet'
            if missing and received:
                yield ERROR, robot.why_missing(missing)
            elif missing and any(isfinite(age) for age in ages):
                yield ERROR, ('no outputs: joint states have stopped; no recent position of '
                              + listed(missing))
            if not missing and self._clocks.simulated and not received:
                yield WARN, ('no joint states arrived since the last report; while /clock stands '
                             'still, the last ones do not age')
            without_velocity = robot.states.missing_velocities()
            if not missing and without_velocity:
                yield WARN, (f'no velocity of {listed(without_velocity)}: ' + {
                    'withhold': 'Coriolis terms are withheld', 'zero': 'taken as zero',
                    'differentiate': 'positions are differentiated'}[
                        self._settings.missing_velocity])
        if awaited := self._publishing.awaited():
            yield WARN, f'kernels are being compiled for {listed(awaited)}'
        if self._check.finding:
            yield WARN, self._check.finding

    def _event_findings(self) -> Iterator[tuple[bytes, str]]:
        for what, text in (
                ('joint states dropped', 'joint states were dropped'),
                ('implausible samples', 'implausible samples were ignored'),
                ('moved joints', 'joints jumped to other positions: the robot is held there'),
                ('odometry dropped', 'odometry was dropped'),
                ('descriptions refused', 'a robot description was refused'),
                ('joint states without a stamp', 'joint states have no stamp: their time of '
                                                 'receipt is used'),
                ('overruns', 'states arrive faster than they are processed: some were skipped'),
                ('task inertia damped', '~/task_inertia is damped: the task link is near a '
                                        'singular pose'),
                ('time jumps', 'time jumped'), ('errors', 'an error occurred: see last error')):
            if count := self._report.recent(what):
                yield WARN, f'{text} ({count})'

    def _findings_on_commands(self) -> Iterator[tuple[bytes, str]]:
        robot, settings = self._current.robot, self._settings
        if self._commands.mismatch:
            yield ERROR, self._commands.mismatch
        elif not self._commands.enabled:
            yield WARN, '~/effort_commands are disabled'
        elif why_not := self._publishing.why_no_commands():
            yield WARN, f'{COMMANDS} is withheld: {why_not}'
        yield from self._findings_on_efforts()
        if settings.friction and robot is not None and (names := [
                name for name, x in zip(robot.model.velocity_names, robot.known_velocity(
                    settings.missing_velocity)) if not isfinite(x)]):
            yield WARN, (f'commands do not compensate friction of {listed(names)}: velocities are '
                         'unknown')
        yield from self._law.findings()
        beyond = self._commands.beyond_limits()
        if beyond:
            yield WARN, ('efforts beyond the limits of the URDF, '
                         + ('clamped: ' if settings.limit_efforts else 'not clamped: ')
                         + listed(beyond))
        if settings.friction and robot is not None and robot.lacks_friction():
            yield WARN, 'friction is true, but no joint of the robot has friction or damping'
        for note in nothing_to_compute(robot.model.links, robot.model.joints) if robot else ():
            yield WARN, note
        if robot is not None and np.linalg.norm(robot.model.gravity) < NO_GRAVITY:
            yield WARN, 'gravity is zero'

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

    def _findings_on_efforts(self) -> Iterator[tuple[bytes, str]]:
        """Compare the measured efforts with those commanded, twice: a motion may be fast."""
        robot, commanded = self._current.robot, self._commands.last
        before, self._unlike = self._unlike, set()
        if (robot is None or not (self._commands.complete and self._publishing.is_commanding())
                or robot.missing(self._clocks.age_time(), self._settings.state_timeout)):
            return
        measured = robot.measured_commands(robot.velocity(self._settings.missing_velocity))[
            robot.command_columns]
        size = np.abs(commanded)
        largest = np.maximum(np.maximum(MIN_DIFFERENCE, NOISE_RATIO * size.max(initial=0.0)),
                             DIFFERENCE_RATIO * size)
        unlike = {name: f'{name} {x:.4g} instead of {goal:.4g}' for name, x, goal, most in zip(
            self._commands.joints, measured, commanded, largest) if abs(x - goal) > most}
        self._unlike = set(unlike)
        if still := [text for name, text in unlike.items() if name in before]:
            yield WARN, ('measured efforts are not those commanded, N m or N: '
                         f'{listed(still)}: is the controller active? ros2_control clamps '
                         'commands, and zeroes those that point outwards at a limit '
                         '(enforce_command_limits)')

    def _findings_on_graph(self) -> Iterator[tuple[bytes, str]]:
        node = self._node
        own = (node.get_name(), node.get_namespace())
        count = Counter(node.get_node_names_and_namespaces())[own]
        if count > 1:
            yield ERROR, f'{count} nodes are called {node.get_fully_qualified_name()}'
        for which in ('joint_states', 'robot_description'):
            topic = self._subscriptions.all[which].topic_name
            if node.count_publishers(topic) > 1:
                names = [f'{info.node_namespace.rstrip("/")}/{info.node_name}'
                         for info in node.get_publishers_info_by_topic(topic)]
                shared = self._shared_joints(len(names)) if which == 'joint_states' else ''
                if shared is not None:
                    text = f'{len(names)} publishers of {topic}: {listed(sorted(names))}{shared}'
                    self._log.warning(text, f'publishers of {topic}')
                    yield WARN, text
        # Unmatched endpoints are reported the second time: discovery may still be under way.
        unmatched = {topic: f'nothing is received from a publisher of {one.topic_name}'
                     for topic, one in self._subscriptions.all.items()
                     if node.count_publishers(one.topic_name) > one.get_publisher_count()}
        for topic in unmatched:
            self._subscriptions.listen_to_all(topic)
        mismatched = {*unmatched.values(), *(
            f'a subscriber of {one.topic_name} receives nothing'
            for one in self._publishing.publishers()
            if node.count_subscribers(one.topic_name) > one.get_subscription_count())}
        for text in sorted(mismatched & self._mismatched):
            yield WARN, f'{text}: its quality of service or type does not match'
        self._mismatched = mismatched
