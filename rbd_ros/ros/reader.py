# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint states as they come: serialized, and from one sender alike but for their numbers."""

from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from builtin_interfaces.msg import Time
import numpy as np
from rbd_ros.ros.template import field, STAMP, Template
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

NUMBERS = ('position', 'velocity', 'effort')
# s, between two looks at how messages are laid out: a look takes longer than to convert one.
LOOK_PERIOD = 1.0
# Layouts that are known at a time
MOST = 8
# What bytes that are no text become.
REPLACEMENT = '\ufffd'


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
    Where the numbers of a serialized joint state are, and what all else must be like.

    A message that is like one that was converted, in every bit outside its numbers, has the same
    joints. Between its texts and numbers there are bits without a meaning, which may be anything:
    those in which two messages differ that say the same.

    Parameters
    ----------
    raw : bytes
        The message.

    Raises
    ------
    RuntimeError
        If its sender has serialized it in another way than this process would.

    """

    def __init__(self, raw):
        message = deserialize_message(raw, JointState)
        self._content = content(raw, message)
        if any(REPLACEMENT in text for text in (message.header.frame_id, *message.name)):
            raise RuntimeError('texts that are none look alike and are not')
        template = Template(message, [message.header], {
            name: field(message, name, (len(getattr(message, name)),)) for name in NUMBERS})
        if template.encapsulation != raw[:4]:
            raise RuntimeError('joint states are serialized in another way than here')
        self._name, self._stamp = message.name, template.stamps[0]
        self._spans = [template.places.get(name, (0, 0)) for name in NUMBERS]
        counts = bytearray(b'\xff' * len(raw))
        for start, stop in ((self._stamp, self._stamp + STAMP.size), *self._spans):
            counts[start:stop] = bytes(stop - start)
        self._counts = int.from_bytes(counts, 'little')
        self._expected = int.from_bytes(raw, 'little') & self._counts

    def read(self, raw):
        """Return what a message of the same length says, None if it may have other joints."""
        if int.from_bytes(raw, 'little') & self._counts != self._expected:
            return None
        seconds, nanoseconds = STAMP.unpack_from(raw, self._stamp)
        # Slices are copies, in which the numbers begin where numpy reads fast.
        return State(Time(sec=seconds, nanosec=nanoseconds), self._name,
                     *[np.frombuffer(raw[start:stop]) for start, stop in self._spans])

    def learn(self, raw, message):
        """Take note of the bits without a meaning; return whether the message says the same."""
        if content(raw, message) != self._content:
            return False
        self._counts &= ~(int.from_bytes(raw, 'little') ^ self._expected)
        self._expected &= self._counts
        return True


def content(raw, message):
    """Return all that a joint state says but for its stamp and numbers."""
    return (raw[:4], message.header.frame_id, list(message.name),
            [len(getattr(message, name)) for name in NUMBERS])


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
        if not (layout is not None and layout.learn(raw, message)):
            self._look(raw)
        return State(message.header.stamp, message.name, message.position, message.velocity,
                     message.effort)

    def _look(self, raw):
        """Find out how a message is laid out, now and then."""
        if monotonic() < self._look_due:
            return
        self._look_due = monotonic() + LOOK_PERIOD
        if len(self._layouts) >= MOST:
            self._layouts.clear()
        with suppress(RuntimeError):
            self._layouts[len(raw)] = Layout(raw)
