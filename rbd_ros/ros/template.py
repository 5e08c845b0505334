# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Serialized messages that are kept, and whose numbers are written where they are."""

from array import array
import struct

import numpy as np
from rclpy.serialization import serialize_message

# Seconds and nanoseconds of a stamp.
STAMP = struct.Struct('=iI')


class Template:
    """
    A serialized message of which only numbers change.

    To convert the names of 32 joints and to serialize them takes longer than all else that it
    takes to publish a message, and they are the same each time.

    Parameters
    ----------
    message : ROS message
        With all that does not change.
    headers : list of std_msgs.msg.Header
        Those in it that are stamped.
    fields : dict of str to tuple
        By the names of what they hold, arrays of doubles that lie in a row in the message: the
        shape of each, and a function that writes it, as a flat `array.array`, to the message.

    Raises
    ------
    RuntimeError
        If the middleware has serialized the numbers in another way.

    """

    def __init__(self, message, headers, fields):
        rng = np.random.default_rng(0)
        # Numbers that stand out, by which the places are found in what the middleware makes of it.
        marks = {name: rng.random(shape) for name, (shape, _) in fields.items()}
        for name, (_, write) in fields.items():
            write(array('d', marks[name].tobytes()))
        seconds, nanoseconds = rng.integers(2 ** 29, 2 ** 30, 2).tolist()
        for header in headers:
            header.stamp.sec, header.stamp.nanosec = seconds, nanoseconds
        self._data = bytearray(serialize_message(message))
        self._stamps = self._find(STAMP.pack(seconds, nanoseconds), len(headers))
        self._views = [(self._view(mark), name) for name, mark in marks.items() if mark.size]

    def _find(self, mark, number):
        """Return the offsets at which a mark stands, as often as it must."""
        offsets, found = [], self._data.find(mark)
        while found >= 0:
            offsets.append(found)
            found = self._data.find(mark, found + 1)
        if len(offsets) != number:
            raise RuntimeError('the outputs rely on a middleware that serializes numbers in a row '
                               'and in the order of this machine: use another RMW_IMPLEMENTATION')
        return offsets

    def _view(self, mark):
        offset, = self._find(mark.tobytes(), 1)
        return np.frombuffer(self._data, count=mark.size, offset=offset).reshape(mark.shape)

    def fill(self, stamp, values):
        """
        Return the serialized message.

        Parameters
        ----------
        stamp : builtin_interfaces.msg.Time
            For all headers.
        values : mapping of str to array_like
            What the fields hold.

        """
        for offset in self._stamps:
            STAMP.pack_into(self._data, offset, stamp.sec, stamp.nanosec)
        for view, name in self._views:
            view[...] = values[name]
        return bytes(self._data)


def field(message, name, shape):
    """Return a field of a message for `Template`, an array of numbers."""
    return shape, lambda numbers: setattr(message, name, numbers)


def numbers(message, *names):
    """Return fields of a message for `Template` that are one number each and lie in a row."""
    def write(flat):
        for name, x in zip(names, flat):
            setattr(message, name, x)
    return (len(names),), write
