# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The log of a node, whose lines stay whole, short and few, whatever others send."""

from time import monotonic
from typing import Any

from rbd_ros.texts import printable

# s, between two lines of one kind
QUIET = 5.0


class Log:
    """
    A logger for texts with data from outside.

    Its methods take a text and, for texts that may recur, a kind: at most one line of a kind is
    logged every `QUIET` seconds. They return whether the text was logged.

    Parameters
    ----------
    logger : rclpy.impl.rcutils_logger.RcutilsLogger
        The node's logger.

    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._said: dict[str, float] = {}

    # rclpy identifies a log call by its line in the source: each severity needs its own.
    def info(self, text: str, kind: str | None = None) -> bool:
        """Log what is good to know."""
        if self._may(kind):
            self._logger.info(printable(text))
            return True
        return False

    def warning(self, text: str, kind: str | None = None) -> bool:
        """Log what an operator should look at."""
        if self._may(kind):
            self._logger.warning(printable(text))
            return True
        return False

    def error(self, text: str, kind: str | None = None) -> bool:
        """Log what keeps the node from its work."""
        if self._may(kind):
            self._logger.error(printable(text))
            return True
        return False

    def _may(self, kind: str | None) -> bool:
        """Return whether a line of a kind may be logged now."""
        now = monotonic()
        if kind is None:
            return True
        if now - self._said.get(kind, -QUIET) < QUIET:
            return False
        self._said[kind] = now
        return True
