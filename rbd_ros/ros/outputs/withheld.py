# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Topics with subscribers whose messages are withheld, and why."""

from collections.abc import Callable

from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.ros.messages.topics import CommandMessages
from rbd_ros.ros.runtime.report import Log, Report

NOT_CONFIRMED = 'a second sample must agree with the first one of each joint'


class Withheld:
    """The reasons why topics are withheld; each is logged once."""

    def __init__(self, report: Report, log: Log) -> None:
        self._report, self.log = report, log
        self.reasons: dict[str, str] = {}
        # Topics that wait for kernels
        self.kernels: dict[str, KernelNotReady] = {}

    def attempt(self, topic: str, make: Callable[[], str | None]) -> None:
        """Let a function make a message, or return why not; errors are reasons, too."""
        why_not = self._why_not(topic, make)
        if why_not is not None or topic in self.reasons:
            self.note(topic, why_not)

    def _why_not(self, topic: str, make: Callable[[], str | None]) -> str | None:
        if topic in self.kernels and not self.kernels[topic].is_over():
            return str(self.kernels[topic])
        try:
            return make()
        except KernelNotReady as error:
            self.kernels[topic] = error
            return str(error)
        except RbdError as error:
            return str(error)
        except Exception as error:
            return self.fail(topic, error)

    def fail(self, topic: str, error: Exception) -> str:
        """Report an error, and return it as a reason."""
        self._report.fail('errors', f'{topic}: {type(error).__name__}: {error}')
        return self._report.last_error

    def note(self, topic: str, why_not: str | None) -> None:
        """Log once why a topic with subscribers is withheld; None: it is not."""
        if why_not == self.reasons.get(topic):
            return
        is_normal = topic not in CommandMessages.kinds or why_not == NOT_CONFIRMED
        if why_not is None:
            del self.reasons[topic]
        elif (self.log.info if is_normal else self.log.warning)(
                f'{topic} is withheld: {why_not}', f'{topic} is withheld'):
            self.reasons[topic] = why_not

    def awaited(self) -> list[str]:
        """Return the topics with subscribers whose kernels are being compiled."""
        return sorted(topic for topic, one in self.kernels.items() if not one.is_over())
