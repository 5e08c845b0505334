# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A decorator that keeps exceptions in callbacks from ending the node."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import rclpy

T = TypeVar('T')


def guarded(callback: Callable[..., T]) -> Callable[..., T | None]:
    """Log and report exceptions of a method whose object has a ``_log`` and a ``_report``."""
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
