# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Serialized messages that are kept, and whose numbers are written where they are."""

from array import array
import struct

from builtin_interfaces.msg import Time
import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

# Seconds and nanoseconds of a stamp.
STAMP = struct.Struct('=iI')
OTHER = ('outputs rely on a middleware that serializes numbers in a row, and in the order of this '
         'machine: use another RMW_IMPLEMENTATION')


class Template:
    """
    A serialized message of which only numbers change.

    To convert the names of 32 joints and to serialize them takes longer than all else that it
    takes to publish a message, and they are the same each time. To make a template takes as long
    as to publish several messages.

    Parameters
    ----------
    message : ROS message
        With all that does not change.
    headers : list of std_msgs.msg.Header
        Those in it that are stamped.
    fields : dict
        By the names of what they hold, or other keys, arrays of doubles that lie in a row in the
        message: the shape of each, and a function that writes it, as a flat `array.array`, to the
        message.

    Raises
    ------
    RuntimeError
        If the middleware has serialized the numbers in another way.

    """

    def __init__(self, message, headers, fields):
        rng = np.random.default_rng(0)

        def mark():
            """Write numbers that stand out to the message and return them."""
            marks = {name: rng.random(shape) for name, (shape, _) in fields.items()}
            for name, (_, write) in fields.items():
                write(array('d', marks[name].tobytes()))
            stamp = Time(sec=int(rng.integers(2 ** 29, 2 ** 30)),
                         nanosec=int(rng.integers(2 ** 29)))
            for header in headers:
                header.stamp = stamp
            return stamp, marks

        # The places of the numbers are found in what the middleware makes of them.
        stamp, marks = mark()
        self._data = bytearray(serialize_message(message))
        found = 0
        self._stamps, self._views = [], []
        for _ in headers:
            found = self._find(STAMP.pack(stamp.sec, stamp.nanosec), found + 1)
            self._stamps.append(found)
        for name, values in marks.items():
            if values.size:
                offset = self._find(values.tobytes(), 0)
                view = np.frombuffer(self._data, count=values.size, offset=offset)
                self._views.append((view.reshape(values.shape), name))
        stamp, marks = mark()
        # Both as the middleware reads them, which rounds colors.
        filled, whole = self.fill(stamp, marks), serialize_message(message)
        if (deserialize_message(filled, type(message))
                != deserialize_message(whole, type(message))):
            raise RuntimeError(OTHER)

    def _find(self, mark, start):
        # Beyond the message there may be anything, what was sent before too; the first counts.
        found = self._data.find(mark, start)
        if found < 0:
            raise RuntimeError(OTHER)
        return found

    def fill(self, stamp, values):
        """
        Return the serialized message.

        Parameters
        ----------
        stamp : builtin_interfaces.msg.Time
            For all headers.
        values : mapping
            By the keys of the fields, arrays of their shapes.

        Returns
        -------
        bytes

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
