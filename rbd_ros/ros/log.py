# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The log of a node: whatever others send, its lines stay whole, short and few."""

from time import monotonic

from rbd_ros.texts import printable

# s, between two lines of one kind
QUIET = 5.0


class Log:
    """
    A logger for texts that hold what others have sent.

    Its methods take a text and, where a text may come time and again, its kind: of one kind there
    is one line every `QUIET` seconds at most. They return whether they have said it.

    Parameters
    ----------
    logger : rclpy.impl.rcutils_logger.RcutilsLogger
        Of the node.

    """

    def __init__(self, logger):
        self._logger, self._said = logger, {}

    # rclpy knows lines by where in the source they are said: each severity has a line of its own.
    def info(self, text, kind=None):
        """Say what is good to know."""
        if self._may(kind):
            self._logger.info(printable(text))
            return True
        return False

    def warning(self, text, kind=None):
        """Say what an operator should look at."""
        if self._may(kind):
            self._logger.warning(printable(text))
            return True
        return False

    def error(self, text, kind=None):
        """Say what keeps the node from its work."""
        if self._may(kind):
            self._logger.error(printable(text))
            return True
        return False

    def _may(self, kind):
        """Return whether a line of a kind may be said now."""
        now = monotonic()
        if kind is not None and now - self._said.get(kind, -QUIET) < QUIET:
            return False
        self._said[kind] = now
        return True
