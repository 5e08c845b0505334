# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The outputs of the dynamics node: the dynamics of each state."""

from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from rbd_ros import spring_torques
from rbd_ros._internal.text import listed
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.ros.messages.topics import (
    COMMANDED, EXTERNAL, EXTERNAL_TORQUES, GRAVITY, TASK, TOPICS)
from rbd_ros.ros.outputs.commanding import Commanding, LISTENERS_PERIOD, NO_EVENTS
from rbd_ros.ros.outputs.external_forces import ExternalForces
from rbd_ros.ros.outputs.terms import NO_TASK_LINK, PublishingSettings, Source, SOURCES, Terms
from rbd_ros.ros.outputs.withheld import Withheld
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.part import Part, steady_timer
from rbd_ros.ros.runtime.report import guarded, Lasting, Report, WARN
from rbd_ros.workspace.memory.results import DynamicsTerms
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.timer import Timer
from visualization_msgs.msg import MarkerArray

NO_VELOCITY = 'the velocity is unknown'
MARKERS = '~/markers'


class Publishing(Part):
    """The outputs of a dynamics node; each state is passed on to its commands, too."""

    def __init__(self, node: Node, settings: PublishingSettings, clocks: Clocks,
                 current: CurrentRobot, commanding: Commanding, forces: ExternalForces,
                 withheld: Withheld, report: Report) -> None:
        self._node, self._settings, self._clocks = node, settings, clocks
        self._current, self._commanding, self._forces = current, commanding, forces
        self._withheld, self._report, self._log = withheld, report, withheld.log
        self._mismatched = Lasting()     # subscribers that receive nothing
        self._timer: Timer | None = None
        self._markers_due = self._listeners_due = 0.0
        # The topics with subscribers, and the robot they were last searched for.
        self._searched_for: Robot | None = None
        self._subscribed: list[str] = []
        self._markers_subscribed = False
        self._sources: dict[str, Source] = {
            **SOURCES, COMMANDED: lambda topic, values, robot, settings: commanding.last(),
            EXTERNAL: lambda topic, values, robot, settings: forces.values(topic, robot,
                                                                           values['q'])}
        self._publishers: dict[str, Publisher] = {
            topic: node.create_publisher(one.kind, topic, 10, event_callbacks=NO_EVENTS)
            for topic, one in TOPICS.items()}
        self._marker_publisher = node.create_publisher(MarkerArray, MARKERS, 10,
                                                       event_callbacks=NO_EVENTS)
        self._start_timer()

    def configure(self, settings: PublishingSettings) -> None:
        before, self._settings = self._settings, settings
        if settings.publish_rate != before.publish_rate:
            self._stop_timer()
            self._start_timer()

    def _start_timer(self) -> None:
        if self._settings.publish_rate > 0.0:
            self._timer = steady_timer(self._node, 1.0 / self._settings.publish_rate,
                                       self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def publishers(self) -> list[Any]:
        """Return the publishers of outputs and commands."""
        return [*self._commanding.publishers(), *self._publishers.values(),
                self._marker_publisher]

    def close(self) -> None:
        self._stop_timer()
        for publisher in (*self._publishers.values(), self._marker_publisher):
            self._node.destroy_publisher(publisher)

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
            self._commanding.find_subscribers(now)
            self._subscribed = [topic for topic, publisher in self._publishers.items()
                                if publisher.get_subscription_count()]
            self._markers_subscribed = self._marker_publisher.get_subscription_count() > 0
            self._forces.wanted = self._markers_subscribed or any(
                TOPICS[topic].source == EXTERNAL for topic in self._subscribed)
            if self._commanding.active and not robot.task_link:
                for topic in [topic for topic in self._subscribed
                              if TOPICS[topic].in_link or TOPICS[topic].source == TASK]:
                    self._subscribed.remove(topic)
                    self._withheld.note(topic, NO_TASK_LINK)

    def answer(self, robot: Robot, now: float) -> None:
        """Publish the dynamics of the latest, complete state on topics with subscribers."""
        settings = self._settings
        robot.state_is_new = False
        moment = self._clocks.steady_time()
        self._find_subscribers(robot, now, moment)
        markers_due = (self._markers_subscribed and moment >= self._markers_due
                       and settings.marker_rate > 0.0)
        commands = self._commanding.subscribed
        if not self._commanding.active or not (commands or self._subscribed or markers_due):
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
        if commands:       # all topics are one output
            self._withheld.attempt(commands[0], partial(self._commanding.answer, robot, v, terms,
                                                        now))
        ready: list[tuple[str, bytes]] = []
        for topic in self._subscribed:
            self._withheld.attempt(topic, partial(self._make, topic, values, robot, ready))
        for topic, message in ready:
            self._send(topic, message)
        self._report.count('outputs')
        if markers_due:
            self._markers_due = moment + 1.0 / settings.marker_rate
            self._publish_markers(robot, q, v, terms)
        if commands:
            self._commanding.note_duration(perf_counter() - start)

    def _holding(self, robot: Robot, q: np.ndarray, g: np.ndarray) -> np.ndarray:
        return g + spring_torques(robot.model, q) if self._settings.springs else g

    def _answer_early(self, robot: Robot, q: np.ndarray, error: KernelNotReady) -> None:
        """Publish gravity torques while the code of other terms is being compiled."""
        for topic in (*self._commanding.subscribed[:1], *self._subscribed):
            if topic == GRAVITY:
                g = robot.workspace.gravity_torques(q)
                self._send(topic, robot.outputs.message(
                    topic, robot.stamp, robot.frame, {'holding': self._holding(robot, q, g)}))
            else:
                self._withheld.kernels[topic] = error
                self._withheld.note(topic, str(error))

    def _publish_markers(self, robot: Robot, q: np.ndarray, v: np.ndarray | None,
                         terms: DynamicsTerms) -> None:
        external = self._forces.values(EXTERNAL_TORQUES, robot, q)
        try:
            poses = robot.workspace.forward_kinematics(q)
        except KernelNotReady as error:
            self._withheld.kernels[MARKERS] = error
            return
        for message in robot.markers.update(
                robot.stamp, robot.frame, poses, terms,
                None if v is None else terms.coriolis_torques,
                None if isinstance(external, str)
                else np.nan_to_num(external['external_torques'])):
            self._marker_publisher.publish(message)

    def findings(self) -> Iterator[tuple[bytes, str]]:
        if not self._commanding.active:
            yield WARN, 'inactive'
        if awaited := self._withheld.awaited():
            yield WARN, f'kernels are being compiled for {listed(awaited)}'
        for text in self._mismatched.update({
                one.topic_name: f'a subscriber of {one.topic_name} receives nothing: its quality '
                'of service or type does not match' for one in self.publishers()
                if self._node.count_subscribers(one.topic_name) > one.get_subscription_count()}):
            yield WARN, text

    def _make(self, topic: str, values: Terms, robot: Robot,
              ready: list[tuple[str, bytes]]) -> str | None:
        """Append the message of a topic to `ready`, or return why not."""
        if values['v'] is None and TOPICS[topic].needs_velocity:
            return NO_VELOCITY
        if source := TOPICS[topic].source:
            found = self._sources[source](topic, values, robot, self._settings)
            if isinstance(found, str):
                return found
            if found.get('condition', 0.0) > self._settings.condition_limit:
                self._report.count('task inertia damped')
            values.update(found)
        ready.append((topic, robot.outputs.message(topic, robot.stamp, robot.frame, values)))
        return None

    def _send(self, topic: str, message: bytes) -> None:
        try:
            self._publishers[topic].publish(message)
        except Exception as error:
            self._withheld.fail(topic, error)
