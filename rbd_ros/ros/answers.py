# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a dynamics node says about the states of its robot, and what it commands."""

from math import isfinite
from time import monotonic, perf_counter, sleep

import numpy as np
from rbd_ros import friction_torques
from rbd_ros.kinematics import world_to_body
from rbd_ros.ros.guarded import guarded
from rbd_ros.ros.outputs import OPTIONAL, RATE_TOPICS, TOPICS, VELOCITY_TOPICS
from rbd_ros.task_space import task_inertia
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from visualization_msgs.msg import MarkerArray

COMMANDS = '~/effort_commands'
TASK_INERTIA = '~/task_inertia'
# The default callbacks on events of outputs cost the executor a tenth of a core at 1 kHz.
QUIETLY = PublisherEventCallbacks(use_default_callbacks=False)
# rad/s or m/s, at which Coulomb friction counts by three quarters: measured speeds are never zero
FRICTION_SPEED = 0.05
# s, between two commands while there are no states
COMMAND_PERIOD = 0.01
# s, after which it is looked who listens: to ask at every state takes 3 % of a core at 1 kHz
LISTENERS_PERIOD = 0.1


class Answers:
    """
    The outputs of a dynamics node.

    Parameters
    ----------
    node : DynamicsNode
        Whose robot it is.

    """

    def __init__(self, node):
        self._node = node
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._timers = []
        self._markers_due = 0.0

    def create(self):
        """Return the publishers, made on the node."""
        self._listeners_due, self._heard, self._markers_heard = 0.0, [], False
        self._publishers = {
            topic: self._node.create_publisher(kind, topic, 10, event_callbacks=QUIETLY)
            for topic, kind in TOPICS.items()}
        self._marker_publisher = self._node.create_publisher(MarkerArray, '~/markers', 10,
                                                             event_callbacks=QUIETLY)
        self.start_timers()
        return [*self._publishers.values(), self._marker_publisher]

    def start_timers(self):
        """Answer and command as often as the parameters say, from now on."""
        self.stop_timers()
        parameters = self._node.parameters
        if parameters.publish_rate > 0.0:
            self._timers.append(self._node.create_timer(1.0 / parameters.publish_rate,
                                                        self._on_timer, clock=self._wall))
        if parameters.on_stale != 'stop':
            self._timers.append(self._node.create_timer(COMMAND_PERIOD, self._repeat_command,
                                                        clock=self._wall))

    def stop_timers(self):
        """Answer and command no longer by themselves."""
        for timer in self._timers:
            self._node.destroy_timer(timer)
        self._timers = []

    def publishers(self):
        """Return all publishers of outputs."""
        return [*self._publishers.values(), self._marker_publisher]

    @guarded
    def _on_timer(self):
        """Answer the latest state, if there is one that is new and still recent."""
        node, robot, start = self._node, self._node.robot, perf_counter()
        now = node.clocks.age_time()
        if (robot is not None and robot.state_is_new
                and not robot.missing(now, node.parameters.state_timeout)):
            self.answer(robot, now)
            if (perf_counter() - start) * node.parameters.publish_rate > 1.0:
                node.report.counts['overruns'] += 1

    def answer(self, robot, now):
        """
        Compute the terms of the latest state and publish them to those who listen.

        Parameters
        ----------
        robot : Robot
            Its state is complete.
        now : float
            Time, s.

        """
        node, parameters = self._node, self._node.parameters
        robot.state_is_new = False
        moment = monotonic()
        if moment >= self._listeners_due:
            self._listeners_due = moment + LISTENERS_PERIOD
            self._heard = [topic for topic, publisher in self._publishers.items()
                           if publisher.get_subscription_count()]
            self._markers_heard = self._marker_publisher.get_subscription_count() > 0
        markers_due = (self._markers_heard and moment >= self._markers_due
                       and parameters.marker_rate > 0.0)
        if not node.active or not (self._heard or markers_due):
            return
        start = perf_counter()
        q, v = robot.states.q, node.velocity(robot)
        if v is None:
            terms = robot.workspace.configuration_terms(q)
            node.report.counts['outputs without velocity'] += 1
        else:
            terms = robot.workspace.all_terms(
                q, v, factorization=parameters.coriolis_factorization)
        node.report.compute_times.append(perf_counter() - start)
        values = {'q': q, 'v': v, **terms._asdict()}
        for topic in self._heard:
            if topic == COMMANDS:
                self._command(robot, v, terms, moment)
                continue
            if v is None and topic in VELOCITY_TOPICS:
                continue
            if topic in RATE_TOPICS and 'g_rate' not in values:
                values.update(self._rates(robot, q, v))
            if topic == TASK_INERTIA:
                values.update(self._task_inertia(robot, q, terms))
            if topic not in OPTIONAL or OPTIONAL[topic] in values:
                self._publishers[topic].publish(
                    robot.outputs.message(topic, robot.stamp, robot.frame, values))
        node.report.counts['outputs'] += 1
        if markers_due:
            self._markers_due = moment + 1.0 / parameters.marker_rate
            for message in robot.markers.update(robot.stamp, robot.frame,
                                                robot.workspace.place_links(q), terms):
                self._marker_publisher.publish(message)

    def _rates(self, robot, q, v):
        """
        Return the rates of the terms.

        That of C needs an acceleration: it is what the measured efforts produce, and left out
        where there are none, or where C is not of the Christoffel form.

        """
        effort, a = robot.states.effort, None
        if (isfinite(effort.sum())
                and self._node.parameters.coriolis_factorization == 'christoffel'):
            a = robot.workspace.forward_dynamics(q, v, effort)
        got = robot.workspace.terms_and_rates(q, v, np.zeros_like(v) if a is None else a)
        rates = {'M_rate': got.M_rate, 'g_rate': got.g_rate}
        return rates if a is None else {**rates, 'C_rate': got.C_rate}

    def _task_inertia(self, robot, q, terms):
        """Return the inertia of the task link, if there is one."""
        link = self._node.parameters.task_link
        if not link:
            return {}
        J, T = robot.workspace.world_jacobian(q, link)
        Lambda, _, condition = task_inertia(terms.M, world_to_body(J, T),
                                            self._node.parameters.condition_limit)
        if condition > self._node.parameters.condition_limit:
            self._node.report.counts['task inertia damped'] += 1
        return {'Lambda': Lambda}

    # -- Commands. -------------------------------------------------------------------------------

    def _command(self, robot, v, terms, moment):
        """Command gravity and friction torques, unless friction needs a velocity that is not."""
        node = self._node
        if not node.commands.enabled or (node.parameters.friction and v is None):
            return
        efforts = terms.g
        if node.parameters.friction:
            efforts = efforts + friction_torques(robot.model, v, smooth=FRICTION_SPEED)
        self._publish_command(robot, node.commands.update(
            efforts[robot.command_order], moment, node.parameters))

    def _publish_command(self, robot, efforts):
        self._publishers[COMMANDS].publish(
            robot.outputs.message(COMMANDS, None, robot.frame, {'commands': efforts}))

    @guarded
    def _repeat_command(self):
        """Command what there is to command while no states come; return whether there is."""
        node = self._node
        if not node.active or node.robot is None:
            return False
        if not self._publishers[COMMANDS].get_subscription_count():
            node.commands.forget()
            return False
        efforts = node.commands.repeat(monotonic(), node.parameters)
        if efforts is not None:
            self._publish_command(node.robot, efforts)
        return efforts is not None

    def finish(self):
        """Bring commands to an end before outputs stop; this takes ramp_time at the most."""
        self._node.commands.end()
        said = False
        while self._repeat_command():
            said = True
            sleep(COMMAND_PERIOD)
        if said:
            self._publishers[COMMANDS].wait_for_all_acked(Duration(seconds=0.2))
