# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The health of the dynamics node, published once per second on /diagnostics."""

from collections import Counter
from collections.abc import Iterator, Sequence

from diagnostic_msgs.msg import DiagnosticArray
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import ERROR, guarded, Log, OK, Report
from rclpy.clock import Clock, ClockType
from rclpy.node import Node


class Health(Part):
    """Publishes what the parts of a node report; see doc/faults.md."""

    def __init__(self, node: Node, parts: Sequence[Part], report: Report, log: Log) -> None:
        self._node, self._parts, self._report, self._log = node, parts, report, log
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        # A steady clock, because simulated time may stand still.
        self._timer = node.create_timer(1.0, self._publish,
                                        clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Stop reporting."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    @guarded
    def _publish(self) -> None:
        self._publisher.publish(self.message())

    def message(self) -> DiagnosticArray:
        """Return a report, and begin the next."""
        findings = [one for part in (*self._parts, self) for one in part.findings()]
        facts = {key: value for part in self._parts for key, value in part.facts().items()}
        return self._report.message(
            self._node.get_fully_qualified_name(), self._node.get_clock().now().to_msg(),
            findings or [(OK, 'publishing')], facts)

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield an error if several nodes have the same name."""
        own = self._node.get_name(), self._node.get_namespace()
        count = Counter(self._node.get_node_names_and_namespaces())[own]
        if count > 1:
            yield ERROR, f'{count} nodes are called {self._node.get_fully_qualified_name()}'


class Refusal(Health):
    """Publishes the last error of a node that could not be configured, until `close`."""

    def __init__(self, node: Node, report: Report, log: Log) -> None:
        self._reason = report.last_error or 'not configured'
        super().__init__(node, (), report, log)

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield the reason why the node is not configured."""
        yield ERROR, self._reason
