# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a node reports: log lines, events on /diagnostics, and exceptions of callbacks."""

# diagnostic_updater adds nothing that one status per second needs, and is not on PyPI.

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from time import monotonic
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np
from rbd_ros._internal.text import printable
from rbd_ros.ros.runtime.part import Part, steady_timer
import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node

T = TypeVar('T')

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
STALE, ERROR = DiagnosticStatus.STALE, DiagnosticStatus.ERROR
SEVERITY = [OK, WARN, STALE, ERROR]    # From good to bad
MAX_ERROR_LENGTH = 500    # Characters of the last error, which is sent once per second
QUIET = 5.0    # s between two lines of one kind
# What is reported of events since the last report.
EVENTS = {
    'joint states dropped': 'joint states were dropped',
    'implausible samples': 'implausible samples were ignored',
    'moved joints': 'joints jumped to other positions: the robot is held there',
    'odometry dropped': 'odometry was dropped',
    'descriptions refused': 'a robot description was refused',
    'joint states without a stamp': 'joint states have no stamp: their time of receipt is used',
    'overruns': 'states arrive faster than they are processed: some were skipped',
    'task inertia damped': '~/task_inertia is damped: the task link is near a singular pose',
    'time jumps': 'time jumped',
    'errors': 'an error occurred: see last error'}


class Log:
    """Logs at most one or `most` texts of a kind in `QUIET` seconds; returns whether it did."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        # Texts logged in the last QUIET seconds with their times, by kind.
        self._logged: dict[str, dict[str, float]] = {}

    # rclpy identifies a log call by its line in the source: each severity needs its own line.
    def info(self, text: str, kind: str | None = None) -> bool:
        """Log a status."""
        if may := self._may(text, kind):
            self._logger.info(printable(text))
        return may

    def warning(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log a problem that an operator should look at."""
        if may := self._may(text, kind, most):
            self._logger.warning(printable(text))
        return may

    def error(self, text: str, kind: str | None = None) -> bool:
        """Log a problem that keeps the node from working."""
        if may := self._may(text, kind):
            self._logger.error(printable(text))
        return may

    def _may(self, text: str, kind: str | None, most: int = 1) -> bool:
        if kind is None:
            return True
        now = monotonic()
        logged = self._logged[kind] = {
            one: when for one, when in self._logged.get(kind, {}).items() if now - when < QUIET}
        if text in logged or len(logged) >= most:
            return False
        logged[text] = now
        return True


class Lasting:
    """Texts that two reports in a row find: discovery or a motion may still be under way."""

    def __init__(self) -> None:
        self._before: Iterable[str] = ()

    def update(self, found: Mapping[str, str]) -> list[str]:
        """Return the texts whose keys were found last time, too."""
        texts, self._before = [found[key] for key in found if key in self._before], found
        return texts


class Report(Part):
    """Counts events of a node, since it started and since the last report."""

    def __init__(self) -> None:
        # Number of events by name, now and at the last report.
        self.counts: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        # Durations of the computations since the last report, s.
        self.compute_times: list[float] = []
        self.last_error = ''
        self._reported = monotonic()

    def fail(self, what: str, text: str) -> None:
        """Count an error, and keep its text for an operator."""
        self.counts[what] += 1
        self.last_error = printable(text, MAX_ERROR_LENGTH)

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def recent(self, what: str) -> int:
        """Return how often an event happened since the last report."""
        return self.counts[what] - self._before[what]

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield a warning for each kind of events since the last report."""
        for what, text in EVENTS.items():
            if count := self.recent(what):
                yield WARN, f'{text} ({count})'

    def message(self, name: str, stamp: Time, findings: Sequence[tuple[bytes, str]],
                facts: Mapping[str, str]) -> DiagnosticArray:
        """Return a report of `findings`, levels with sentences, and `facts`; begin the next."""
        now = monotonic()
        period, values = max(now - self._reported, 1e-3), dict(facts)
        for what in ('joint states', 'outputs'):
            values[f'{what} per second'] = f'{self.recent(what) / period:.1f}'
        for what, count in sorted(self.counts.items()):
            values[what] = str(count)
            values[f'{what} since the last report'] = str(self.recent(what))
        for share in (50, 99) if self.compute_times else ():
            microseconds = 1e6 * np.percentile(self.compute_times, share)
            values[f'compute time p{share}, us'] = f'{microseconds:.1f}'
        values['last error'] = self.last_error or 'none'
        self._before, self._reported = self.counts.copy(), now
        self.compute_times.clear()

        findings = sorted(findings, key=lambda finding: -SEVERITY.index(finding[0]))
        status = DiagnosticStatus(level=findings[0][0], name=f'{name}: dynamics',
                                  hardware_id=printable(facts.get('robot', '')),
                                  message=printable('; '.join(text for _, text in findings)),
                                  values=[KeyValue(key=printable(key), value=printable(value))
                                          for key, value in values.items()])
        report = DiagnosticArray(status=[status])
        report.header.stamp = stamp
        return report


def guarded(callback: Callable[..., T]) -> Callable[..., T | None]:
    """Log and report exceptions of a callback whose object has a ``_log`` and a ``_report``."""
    @wraps(callback)
    def wrapper(self: Any, *arguments: Any) -> T | None:
        try:
            return callback(self, *arguments)
        except InvalidHandle:
            return None     # a transition has destroyed its publisher while the callback waited
        except Exception as error:
            if rclpy.ok():       # otherwise ROS was shut down during the callback
                text = f'{callback.__name__}: {type(error).__name__}: {error}'
                self._report.fail('errors', text)
                self._log.error(text, callback.__name__)
            return None
    return wrapper


class Health(Part):
    """Publishes what the parts of a node report, or its last `error`; see doc/faults.md."""

    def __init__(self, node: Node, parts: Sequence[Part], report: Report, log: Log,
                 error: str = '') -> None:
        self._node, self._parts, self._report, self._log = node, parts, report, log
        self._error = error
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._timer = steady_timer(node, 1.0, self._publish)

    def close(self) -> None:
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
        """Yield the error, and one if several nodes have the same name."""
        if self._error:
            yield ERROR, self._error
        own = self._node.get_name(), self._node.get_namespace()
        count = Counter(self._node.get_node_names_and_namespaces())[own]
        if count > 1:
            yield ERROR, f'{count} nodes are called {self._node.get_fully_qualified_name()}'
