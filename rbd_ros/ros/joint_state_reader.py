# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint states as they come: serialized, and from one sender alike but for their numbers."""

from contextlib import suppress
import struct
from time import monotonic
from typing import NamedTuple

from builtin_interfaces.msg import Time
import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

# Plain CDR of a processor that has the least significant byte first: four bytes that say so, then
# the stamp, s and ns.
ENCAPSULATION = b'\x00\x01\x00\x00'
STAMP = struct.Struct('<4xiI')
COUNT = struct.Struct('<I')
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
    name: list
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Layout:
    """
    Where everything is in a serialized joint state.

    A message with the same texts, and the same counts of texts and numbers, at the same places has
    the same joints. Nobody reads what is between them: it may be anything.

    Parameters
    ----------
    raw : bytes
        The message.
    frame : str
        Of its header.
    state : State
        All else that it says.

    Raises
    ------
    ValueError
        If the message is laid out in another way, as a text that is padded with NULs is.

    """

    def __init__(self, raw, frame, state):
        self._name, self._spans = state.name, []
        # What is looked at, and what it must be.
        self._seen, self._bytes = bytearray(len(raw)), bytearray(len(raw))
        self._end = 0
        self._expect(ENCAPSULATION)
        self._end = STAMP.size
        self._expect_text(frame)
        self._expect(COUNT.pack(len(state.name)), align=4)
        for text in state.name:
            self._expect_text(text)
        for numbers in (state.position, state.velocity, state.effort):
            self._expect(COUNT.pack(len(numbers)), align=4)
            if len(numbers):
                self._align(8)
            span = self._end, self._end + 8 * len(numbers)
            if raw[span[0]:span[1]] != bytes(numbers):
                raise ValueError('numbers are elsewhere')
            self._spans.append(span)
            self._end = span[1]
        # As one whole number each, which are compared at once.
        self._mask = int.from_bytes(self._seen, 'little')
        self._expected = int.from_bytes(self._bytes, 'little')
        if self.read(raw) is None:
            raise ValueError('texts are elsewhere')

    def _align(self, size):
        """Go on to where something of a size, in bytes, may begin."""
        self._end += -(self._end - len(ENCAPSULATION)) % size

    def _expect(self, data, align=1):
        self._align(align)
        start, self._end = self._end, self._end + len(data)
        self._bytes[start:self._end] = data
        self._seen[start:self._end] = b'\xff' * len(data)

    def _expect_text(self, text):
        data = text.encode() + b'\x00'
        self._expect(COUNT.pack(len(data)), align=4)
        self._expect(data)

    def read(self, raw):
        """Return what a message of the same length says, None if it has another layout."""
        if int.from_bytes(raw, 'little') & self._mask != self._expected:
            return None
        seconds, nanoseconds = STAMP.unpack_from(raw)
        # Slices are copies, in which the numbers begin where numpy reads fast.
        return State(Time(sec=seconds, nanosec=nanoseconds), self._name,
                     *[np.frombuffer(raw[start:stop]) for start, stop in self._spans])


class Reader:
    """
    Reads joint states without converting the names of the joints time and again.

    To convert the names of 32 joints takes as long as to compute the dynamics five times. A
    message that is not known to have the same ones is converted as a whole: what is read is the
    same in either case.

    """

    def __init__(self):
        self._layouts, self._look_due = {}, 0.0

    def read(self, raw):
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
        state = None if layout is None else layout.read(raw)
        if state is not None:
            return state
        message = deserialize_message(raw, JointState)
        state = State(message.header.stamp, message.name, message.position, message.velocity,
                      message.effort)
        if monotonic() >= self._look_due:
            self._look_due = monotonic() + LOOK_PERIOD
            self._layouts.pop(len(raw), None)
            if len(self._layouts) >= MOST:
                self._layouts.clear()
            with suppress(ValueError):
                self._layouts[len(raw)] = Layout(raw, message.header.frame_id, state)
        return state
