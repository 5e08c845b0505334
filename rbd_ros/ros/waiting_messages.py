# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Messages that wait in the queue of a subscription, taken without asking the executor for each.

What it gains: an executor looks at all that a node hears before it hands out one message. Where
states come faster than they are answered, only this finds the newest.
What guards it: an rclpy that has no such call, or another, is found out at the first one; from
then on every message comes by way of the executor, in its turn.
What breaks it: `take_message` belongs to the inner part of rclpy (7.1 to 9.1 have it). Without it
the node takes more of a processor, and under too much load answers states that are up to ten old.

"""

import logging

from rclpy.exceptions import InvalidHandle
from rclpy.subscription import Subscription

_log = logging.getLogger('rbd_ros')


class WaitingMessages:
    """
    Takes serialized messages of one kind.

    Parameters
    ----------
    kind : type
        The class of the messages.

    """

    def __init__(self, kind: type) -> None:
        self._kind, self._possible = kind, True

    def take(self, subscription: Subscription) -> bytes | None:
        """
        Return the serialized message that has waited longest.

        Parameters
        ----------
        subscription : rclpy.subscription.Subscription
            Of that kind, and raw.

        Returns
        -------
        bytes or None
            None: none waits, the subscription is closed, or this rclpy cannot be asked.

        """
        if not self._possible:
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
