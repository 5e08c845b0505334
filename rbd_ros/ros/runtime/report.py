# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of events in a node, their report on /diagnostics, and a guard for callbacks."""

# diagnostic_updater adds nothing that one status per second needs, and is not on PyPI.

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from time import monotonic
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np
from rbd_ros._internal.text import printable
import rclpy

T = TypeVar('T')

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
STALE, ERROR = DiagnosticStatus.STALE, DiagnosticStatus.ERROR
SEVERITY = [OK, WARN, STALE, ERROR]    # From good to bad
MAX_ERROR_LENGTH = 500    # Characters of the last error, which is sent once per second


class Report:
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
        """Count an event."""
        self.counts[what] += 1

    def recent(self, what: str) -> int:
        """Return how often an event happened since the last report."""
        return self.counts[what] - self._before[what]

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
        status = DiagnosticStatus(
            level=findings[0][0], name=f'{name}: dynamics',
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
        except Exception as error:
            if rclpy.ok():       # otherwise ROS was shut down during the callback
                text = f'{callback.__name__}: {type(error).__name__}: {error}'
                self._report.fail('errors', text)
                self._log.error(text, callback.__name__)
            return None
    return wrapper
