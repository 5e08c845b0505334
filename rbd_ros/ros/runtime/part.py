# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A part of a node: how its settings change, how it ends, and what it reports."""

from collections.abc import Callable, Iterable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer


class Part:
    """A part of a node; what a part does not override does nothing."""

    def configure(self, *settings: Any, **_: Any) -> None:
        """Replace the settings."""
        self._settings, = settings

    def close(self) -> None:
        """Destroy what the part has created on the node."""

    def facts(self) -> dict[str, str]:
        """Return values without a rating for /diagnostics, one number or word per key."""
        return {}

    def findings(self) -> Iterable[tuple[bytes, str]]:
        """Return levels and sentences for /diagnostics, since the last call."""
        return ()


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Return a timer with a period, s, of the machine's clock: simulated time may stand still."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class Entity(Part):
    """A publisher, subscription or service that only has to be destroyed at the end."""

    def __init__(self, destroy: Callable[[Any], object], entity: Any) -> None:
        self._destroy, self._entity = destroy, entity

    def close(self) -> None:
        self._destroy(self._entity)
