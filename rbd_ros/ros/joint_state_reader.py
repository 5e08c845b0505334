# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Joint states as they come: serialized, and from one sender alike but for their numbers.

What it gains: to convert the names of 32 joints takes as long as to compute the dynamics five
times; here only numbers are read.
What guards it: all texts and counts of a message are compared with those of one that the
middleware has converted, byte by byte. Whatever differs is converted as a whole.
What breaks it: a middleware that does not send plain CDR, least significant byte first. Every
message is then converted as a whole: what is read is the same, and takes longer.

"""

from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from builtin_interfaces.msg import Time
import numpy as np
from rbd_ros.joint_state_layout import Layout
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

# s, between two looks at how messages are laid out: a look takes longer than to convert one.
LOOK_PERIOD = 1.0
# Layouts that are known at a time
MOST = 8


class State(NamedTuple):
    """
    What a joint state says.

    Attributes
    ----------
    stamp : builtin_interfaces.msg.Time
        Of its header.
    name : list of str
        Joints.
    position, velocity, effort : sequence of float
        Arrays of float64.

    """

    stamp: Time
    name: list[str]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Reader:
    """
    Reads joint states without converting the names of the joints time and again.

    A message that is not known to have the same ones is converted as a whole: what is read is the
    same in either case.

    """

    def __init__(self) -> None:
        self._layouts: dict[int, Layout] = {}
        self._look_due = 0.0

    def read(self, raw: bytes) -> State:
        """
        Return what a message says.

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
            return State(Time(sec=seconds, nanosec=nanoseconds), layout.names, *numbers)
        message = deserialize_message(raw, JointState)
        state = State(message.header.stamp, message.name, message.position, message.velocity,
                      message.effort)
        if monotonic() >= self._look_due:
            self._look_due = monotonic() + LOOK_PERIOD
            self._layouts.pop(len(raw), None)
            if len(self._layouts) >= MOST:
                self._layouts.clear()
            with suppress(ValueError):
                self._layouts[len(raw)] = Layout(raw, message.header.frame_id, *state[1:])
        return state
