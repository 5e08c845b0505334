# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Takes waiting messages from the queue of a subscription, without the executor.

Why: an executor checks everything that a node waits for before it hands out one message. If states
arrive faster than they are answered, only this finds the newest.
Safeguard: if rclpy has no such call, or another one, the first call shows it; then the executor
delivers all messages.
Limits: `take_message` is internal to rclpy (7.1 to 9.1 have it). Without it the node takes more
processor time, and under overload answers states that are up to ten old.

"""

import logging

from rclpy.exceptions import InvalidHandle
from rclpy.subscription import Subscription

_log = logging.getLogger('rbd_ros')


class WaitingMessages:
    """Takes serialized messages of one type."""

    def __init__(self, kind: type) -> None:
        self._kind, self._possible = kind, True

    def take(self, subscription: Subscription) -> bytes | None:
        """Return the serialized message that has waited longest in a raw subscription, or None."""
        if not self._possible:          # this rclpy has no such call
            return None
        try:
            handle = subscription.handle
            with handle:
                taken = handle.take_message(self._kind, True)
            return None if taken is None else taken[0]
        except InvalidHandle:
            return None
        except (AttributeError, TypeError) as error:
            self._possible = False
            _log.warning('messages are taken one by one, which costs time: this rclpy has another '
                         'take_message: %s', error)
            return None
