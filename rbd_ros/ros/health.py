# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How a dynamics node is: once a second, on /diagnostics."""

from collections import Counter
from math import isfinite

from diagnostic_msgs.msg import DiagnosticArray
from rbd_ros.ros.diagnostics import ERROR, OK, STALE, WARN
from rbd_ros.ros.guarded import guarded
from rclpy.clock import Clock, ClockType


class Health:
    """
    The reports of a dynamics node.

    Parameters
    ----------
    node : DynamicsNode
        Which is reported on.

    """

    def __init__(self, node):
        self._node, self._deaf = node, set()

    def create(self, inputs, outputs):
        """
        Return the publisher and the timer of the reports.

        Parameters
        ----------
        inputs : Inputs
            Of the node.
        outputs : list of Publisher
            Of the node.

        """
        self._inputs, self._outputs = inputs, outputs
        self._publisher = self._node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        # Simulated time may stand still.
        timer = self._node.create_timer(1.0, self._publish,
                                        clock=Clock(clock_type=ClockType.STEADY_TIME))
        return self._publisher, timer

    @guarded
    def _publish(self):
        """Say how things are."""
        node = self._node
        findings = [*self._findings_on_states(), *self._findings_on_commands(),
                    *self._findings_on_graph()]
        self._publisher.publish(node.report.message(
            node.get_fully_qualified_name(), node.get_clock().now().to_msg(),
            findings or [(OK, 'publishing')], self._facts()))

    def _facts(self):
        """Return what there is to say that is neither good nor bad."""
        node, robot = self._node, self._node.robot
        facts = {'commands': 'enabled' if node.commands.enabled else 'disabled',
                 'on_stale': node.parameters.on_stale}
        if robot is None:
            return facts
        facts |= {'robot': robot.model.name, 'model id': str(robot.model_id),
                  'joints': ', '.join(robot.model.velocity_names),
                  'mass, kg': f'{robot.model.mass:.6g}',
                  'loads, kg': ', '.join(f'{link}: {mass:.6g}' for link, mass
                                         in robot.payloads().items()) or 'none'}
        for name, age in robot.ages(node.clocks.age_time()).items():
            facts[f'age of {name}, s'] = f'{age:.3f}' if isfinite(age) else 'never came'
        return facts

    def _findings_on_states(self):
        """Say what is wrong with the node, its robot and its states."""
        node, robot, recent = self._node, self._node.robot, self._node.report.recent
        parameters = node.parameters
        if not node.active:
            yield WARN, 'inactive'
        if node.clocks.simulated and not node.clocks.stamp_time():
            yield WARN, 'use_sim_time is set and nothing comes on /clock: stamps are not checked'
        if robot is None:
            yield WARN, 'waiting for a robot description'
        else:
            now = node.clocks.age_time()
            missing = robot.missing(now, parameters.state_timeout)
            ages = robot.ages(now).values()
            if ages and not any(isfinite(age) for age in ages):
                yield STALE, 'no outputs: no state has come yet'
            if missing and recent('joint states'):
                yield ERROR, 'no outputs: no recent position of ' + ', '.join(missing)
            elif missing and any(isfinite(age) for age in ages):
                yield ERROR, ('no outputs: no joint states come any longer; no recent position of '
                              + ', '.join(missing))
            without_velocity = robot.states.missing_velocities()
            if not missing and without_velocity:
                yield WARN, (f'no velocity of {", ".join(without_velocity)}: ' + {
                    'withhold': 'Coriolis terms are withheld', 'zero': 'taken as zero',
                    'differentiate': 'taken from the change of positions'}[
                        parameters.missing_velocity])
        for what, text in (
                ('joint states dropped', 'joint states were dropped'),
                ('odometry dropped', 'odometry was dropped'),
                ('descriptions refused', 'a robot description was refused'),
                ('joint states without a stamp', 'joint states have no stamp: their age is not '
                                                 'known, that of their receipt counts'),
                ('overruns', 'states come faster than they can be answered: some were skipped'),
                ('time jumps', 'time jumped'), ('errors', 'an error happened: see last error')):
            if recent(what):
                yield WARN, f'{text} ({recent(what)})'

    def _findings_on_commands(self):
        """Say what is odd about the commands."""
        node = self._node
        if not node.commands.enabled:
            yield WARN, '~/effort_commands are disabled'
        beyond = node.commands.beyond_limits()
        if beyond:
            yield WARN, ('efforts beyond the limits of the URDF, '
                         + ('clamped: ' if node.parameters.limit_efforts else 'not clamped: ')
                         + ', '.join(beyond))

    def _findings_on_graph(self):
        """Say who should not be there, and who does not hear whom."""
        node = self._node
        own = (node.get_name(), node.get_namespace())
        count = Counter(node.get_node_names_and_namespaces())[own]
        if count > 1:
            yield ERROR, f'{count} nodes are called {node.get_fully_qualified_name()}'
        states = self._inputs.all['joint_states'].topic_name
        if node.count_publishers(states) > 1:
            names = [f'{info.node_namespace.rstrip("/")}/{info.node_name}'
                     for info in node.get_publishers_info_by_topic(states)]
            yield WARN, f'{len(names)} publishers of {states}: {", ".join(sorted(names))}'
        # What the graph knows and the middleware has not matched. Discovery may be under way:
        # it is said the second time.
        deaf = {topic: f'a publisher of {one.topic_name} is not heard'
                for topic, one in self._inputs.all.items()
                if node.count_publishers(one.topic_name) > one.get_publisher_count()}
        for topic in deaf:
            self._inputs.listen_to_all(topic)
        deaf = {*deaf.values(), *(
            f'a listener on {one.topic_name} hears nothing' for one in self._outputs
            if node.count_subscribers(one.topic_name) > one.get_subscription_count())}
        for text in sorted(deaf & self._deaf):
            yield WARN, f'{text}: its quality of service or type does not fit'
        self._deaf = deaf
