# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads serialized joint states, which differ only in their numbers if they have the same sender.

What it gains: converting the names of 32 joints takes as long as computing the dynamics five
times; here only numbers are read.
What guards it: all texts and counts of a message are compared, byte by byte, with those of one
that the middleware has converted. A message that differs is converted as a whole.
What breaks it: a middleware that does not send plain little-endian CDR. Every message is then
converted as a whole, which gives the same result, but takes longer.

"""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

import numpy as np
from rbd_ros._internal.joint_state_layout import Layout
from rbd_ros.ros.convert import Stamp
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

# s, between two attempts to learn a layout, which take longer than converting a message.
LOOK_PERIOD = 1.0
# The largest number of layouts known at a time.
MOST = 8


class State(NamedTuple):
    """
    The content of a joint state.

    Attributes
    ----------
    stamp : rbd_ros.ros.convert.Stamp
        Stamp of its header.
    name : list of str
        Joints.
    position, velocity, effort : sequence of float
        Arrays of float64.

    """

    stamp: Stamp
    name: Sequence[str]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Reader:
    """
    Reads joint states without converting the names of the joints every time.

    A message that is not known to have the same names is converted as a whole; the result is the
    same in either case.

    """

    def __init__(self) -> None:
        self._layouts: dict[int, Layout] = {}
        self._look_due = 0.0

    def read(self, raw: bytes) -> State:
        """
        Return the content of a message.

        Parameters
        ----------
        raw : bytes
            Serialized sensor_msgs/JointState.

        Returns
        -------
        State

        """
        layout = self._layouts.get(len(raw))
        if layout is not None and (said := layout.read(raw)) is not None:
            seconds, nanoseconds, *numbers = said
            return State(Stamp(seconds, nanoseconds), layout.names, *numbers)
        message = deserialize_message(raw, JointState)
        stamp = message.header.stamp
        state = State(Stamp(stamp.sec, stamp.nanosec), message.name, message.position,
                      message.velocity, message.effort)
        if monotonic() >= self._look_due:
            self._look_due = monotonic() + LOOK_PERIOD
            self._layouts.pop(len(raw), None)
            if len(self._layouts) >= MOST:
                self._layouts.clear()
            with suppress(ValueError):
                self._layouts[len(raw)] = Layout(raw, message.header.frame_id, *state[1:])
        return state
