# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks that cannot bring the node down."""

from functools import wraps

# s, between two log lines of one kind
QUIET = 5.0


def guarded(callback):
    """
    Catch what a callback raises: it is logged and reported, and the node lives.

    Parameters
    ----------
    callback : callable
        A method of the node, or of something that holds it as ``_node``.

    """
    @wraps(callback)
    def wrapper(self, *arguments):
        try:
            return callback(self, *arguments)
        except Exception as error:
            node = getattr(self, '_node', self)
            if not node.context.ok():
                return None             # ROS was shut down in the middle of it
            text = f'{callback.__name__}: {type(error).__name__}: {error}'
            node.report.fail('errors', text)
            node.get_logger().error(text, throttle_duration_sec=QUIET)
            return None
    return wrapper
