# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Why a node is not configured, published once per second on /diagnostics."""

from diagnostic_msgs.msg import DiagnosticArray
from rbd_ros.ros.runtime.report import ERROR, guarded, Log, Report
from rclpy.clock import Clock, ClockType
from rclpy.node import Node


class Refusal:
    """Publishes the last error of a node that could not be configured, until `close`."""

    def __init__(self, node: Node, report: Report, log: Log) -> None:
        self._node, self._report, self._log = node, report, log
        self._reason = report.last_error or 'not configured'
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        # A steady clock, because simulated time may stand still.
        self._timer = node.create_timer(1.0, self._publish,
                                        clock=Clock(clock_type=ClockType.STEADY_TIME))

    @guarded
    def _publish(self) -> None:
        self._publisher.publish(self._report.message(
            self._node.get_fully_qualified_name(), self._node.get_clock().now().to_msg(),
            [(ERROR, self._reason)], {}))

    def close(self) -> None:
        """Stop reporting."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)
