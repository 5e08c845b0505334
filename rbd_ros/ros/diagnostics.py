# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node says about itself on /diagnostics."""

from collections import Counter

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np


class Report:
    """
    What happened since the last report.

    Attributes
    ----------
    counts : Counter of str
        How often something happened: states that came, were answered, dropped for a reason ...
    compute_times : list of float
        How long the computations took, s.
    last_error : str
        The last thing that went wrong, ever.

    """

    def __init__(self):
        self.counts = Counter()
        self.compute_times = []
        self.last_error = ''

    def message(self, name, stamp, period, level, summary, facts):
        """
        Return a report on the time since the last one, and begin the next.

        Parameters
        ----------
        name : str
            Of the node.
        stamp : builtin_interfaces.msg.Time
            Now.
        period : float
            Time since the last report, s.
        level : bytes
            A level of DiagnosticStatus.
        summary : str
            A sentence for an operator.
        facts : dict of str to str
            What else there is to say.

        Returns
        -------
        diagnostic_msgs.msg.DiagnosticArray
            With one status.

        """
        values = dict(facts)
        for what in ('joint states', 'outputs'):
            values[f'{what} per second'] = f'{self.counts.pop(what, 0) / period:.1f}'
        for what, count in sorted(self.counts.items()):
            values[what] = str(count)
        if self.compute_times:
            p50, p99 = np.percentile(self.compute_times, (50, 99)) * 1e6
            values['compute time, us'] = f'p50 {p50:.1f}, p99 {p99:.1f}'
        values['last error'] = self.last_error or 'none'
        self.counts.clear()
        self.compute_times.clear()
        status = DiagnosticStatus(
            level=level, name=f'{name}: dynamics', message=summary,
            hardware_id=facts.get('robot', ''),
            values=[KeyValue(key=key, value=value) for key, value in values.items()])
        report = DiagnosticArray(status=[status])
        report.header.stamp = stamp
        return report
