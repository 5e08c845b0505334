# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The log of a node, whose lines stay whole, short and few, whatever others send."""

from time import monotonic
from typing import Any

from rbd_ros._internal.text import printable

# s, between two lines of one kind
QUIET = 5.0


class Log:
    """
    A logger for texts with data from outside.

    Its methods take a text and, for texts that may recur, a kind: every `QUIET` seconds at most
    ``most`` lines of a kind are logged, all of them different. They return whether the text was
    logged.

    Parameters
    ----------
    logger : rclpy.impl.rcutils_logger.RcutilsLogger
        The node's logger.

    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        # The texts of each kind that were logged in the last QUIET seconds, and when.
        self._said: dict[str, dict[str, float]] = {}

    # rclpy identifies a log call by its line in the source: each severity needs its own.
    def info(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log what is good to know."""
        if self._may(text, kind, most):
            self._logger.info(printable(text))
            return True
        return False

    def warning(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log what an operator should look at."""
        if self._may(text, kind, most):
            self._logger.warning(printable(text))
            return True
        return False

    def error(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log what keeps the node from its work."""
        if self._may(text, kind, most):
            self._logger.error(printable(text))
            return True
        return False

    def _may(self, text: str, kind: str | None, most: int) -> bool:
        """Return whether a line of a kind may be logged now."""
        if kind is None:
            return True
        now = monotonic()
        said = self._said[kind] = {one: when for one, when in self._said.get(kind, {}).items()
                                   if now - when < QUIET}
        if text in said or len(said) >= most:
            return False
        said[text] = now
        return True
