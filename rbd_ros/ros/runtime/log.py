# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The log of a node: printable and limited in rate, whatever other nodes send."""

from time import monotonic
from typing import Any

from rbd_ros._internal.text import printable

QUIET = 5.0    # s between two lines of one kind


class Log:
    """
    A logger whose methods return whether they logged the text.

    Of texts of one kind, at most `most` different ones are logged within `QUIET` seconds.

    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        # Texts logged in the last QUIET seconds with their times, by kind.
        self._logged: dict[str, dict[str, float]] = {}

    # rclpy identifies a log call by its line in the source: each severity needs its own line.
    def info(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log a status."""
        if may := self._may(text, kind, most):
            self._logger.info(printable(text))
        return may

    def warning(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log a problem that an operator should look at."""
        if may := self._may(text, kind, most):
            self._logger.warning(printable(text))
        return may

    def error(self, text: str, kind: str | None = None, most: int = 1) -> bool:
        """Log a problem that keeps the node from working."""
        if may := self._may(text, kind, most):
            self._logger.error(printable(text))
        return may

    def _may(self, text: str, kind: str | None, most: int) -> bool:
        if kind is None:
            return True
        now = monotonic()
        logged = self._logged[kind] = {
            one: when for one, when in self._logged.get(kind, {}).items() if now - when < QUIET}
        if text in logged or len(logged) >= most:
            return False
        logged[text] = now
        return True
