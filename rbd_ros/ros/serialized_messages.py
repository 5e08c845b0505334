# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Serialized messages that are kept, and whose numbers are written where they are.

What it gains: to convert the names of 32 joints and to serialize them takes longer than all else
that it takes to publish a message, and they are the same each time.
What guards it: where the numbers are is looked for in what the middleware makes of numbers that
stand out, and a second message, filled with others, must read as the middleware's own.
What breaks it: a middleware that compresses, or that serializes numbers in another order than this
machine's. Messages are then converted and serialized each time, and a warning says so.

"""

from array import array
from collections.abc import Callable, Mapping
import logging
import struct
from typing import Any

from builtin_interfaces.msg import Time
import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

# The shape of an array in a message, and a function that writes it there.
Field = tuple[tuple[int, ...], Callable[['array[float]'], None]]

# Seconds and nanoseconds of a stamp.
STAMP = struct.Struct('=iI')
_log = logging.getLogger('rbd_ros')


class _Elsewhere(Exception):
    """The numbers of a message are not where they were looked for."""


class Template:
    """
    A serialized message of which only numbers change.

    To make a template takes as long as to publish several messages.

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

    """

    def __init__(self, message: Any, headers: list[Any],
                 fields: Mapping[Any, Field]) -> None:
        self._message, self._headers, self._fields = message, headers, fields
        self._data: bytearray | None = None
        try:
            self._data, self._stamps, self._views = self._layout()
            self._check()
        except _Elsewhere:
            self._data = None
            _log.warning('messages of the type %s are serialized one by one, which costs time: '
                         'another RMW_IMPLEMENTATION may have their numbers in a row',
                         type(message).__name__)

    def _marks(self, seed: int) -> tuple[Time, dict[Any, np.ndarray]]:
        """Return a stamp and numbers that stand out."""
        rng = np.random.default_rng(seed)
        return (Time(sec=int(rng.integers(2 ** 29, 2 ** 30)), nanosec=int(rng.integers(2 ** 29))),
                {name: rng.random(shape) for name, (shape, _) in self._fields.items()})

    def _layout(self) -> tuple[bytearray, list[int], list[tuple[np.ndarray, Any]]]:
        """Return a serialized message, where its stamps are, and views of its numbers by name."""
        stamp, marks = self._marks(0)
        data, found = bytearray(self._serialized(stamp, marks)), 0

        def find(mark: bytes, start: int) -> int:
            # Beyond the message there may be anything, what was sent before too; the first counts.
            place = data.find(mark, start)
            if place < 0:
                raise _Elsewhere
            return place

        stamps, views = [], []
        for _ in self._headers:
            found = find(STAMP.pack(stamp.sec, stamp.nanosec), found + 1)
            stamps.append(found)
        for name, values in marks.items():
            if values.size:
                view = np.frombuffer(data, count=values.size, offset=find(values.tobytes(), 0))
                views.append((view.reshape(values.shape), name))
        return data, stamps, views

    def _check(self) -> None:
        """Compare a filled message with a serialized one."""
        stamp, marks = self._marks(1)
        # Both as the middleware reads them, which rounds colors.
        filled, whole = (deserialize_message(data, type(self._message))
                         for data in (self.fill(stamp, marks), self._serialized(stamp, marks)))
        if filled != whole:
            raise _Elsewhere

    def _serialized(self, stamp: Any, values: Mapping[Any, np.ndarray]) -> bytes:
        """Return the message as the middleware makes it."""
        for name, (_, write) in self._fields.items():
            write(array('d', np.asarray(values[name], float).tobytes()))
        for header in self._headers:
            header.stamp = stamp
        return serialize_message(self._message)

    def fill(self, stamp: Any, values: Mapping[Any, np.ndarray]) -> bytes:
        """
        Return the serialized message.

        Parameters
        ----------
        stamp : builtin_interfaces.msg.Time or None
            For all headers; None where there are none.
        values : mapping
            By the keys of the fields, arrays of their shapes.

        Returns
        -------
        bytes

        """
        if self._data is None:
            return self._serialized(stamp, values)
        for offset in self._stamps:
            STAMP.pack_into(self._data, offset, stamp.sec, stamp.nanosec)
        for view, name in self._views:
            view[...] = values[name]
        return bytes(self._data)


def field(message: Any, name: str, shape: tuple[int, ...]) -> Field:
    """Return a field of a message for `Template`, an array of numbers."""
    return shape, lambda numbers: setattr(message, name, numbers)


def numbers(message: Any, *names: str) -> Field:
    """Return fields of a message for `Template` that are one number each and lie in a row."""
    def write(flat: 'array[float]') -> None:
        for name, x in zip(names, flat):
            setattr(message, name, x)
    return (len(names),), write
