# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Serialized messages that are kept, with numbers that are updated in place.

What it gains: converting and serializing the names of 32 joints takes longer than everything else
in publishing a message, and they are always the same.
What guards it: the places of the numbers are found by serializing recognizable ones, and a second
message, filled with others, must be read like the middleware's own.
What breaks it: a middleware that compresses, or that serializes numbers in another byte order than
this machine's. Messages are then converted and serialized each time, and a warning is logged.

"""

from array import array
from collections.abc import Callable, Mapping
import logging
import struct
from typing import Any

import numpy as np
from rbd_ros.ros.convert import Stamp, time
from rclpy.serialization import deserialize_message, serialize_message

# The shape of an array in a message, and a function that writes it there.
Field = tuple[tuple[int, ...], Callable[['array[float]'], None]]

# Seconds and nanoseconds of a stamp.
STAMP = struct.Struct('=iI')
_log = logging.getLogger('rbd_ros')


class _Elsewhere(Exception):
    """The numbers of a message were not found."""


class Template:
    """
    A serialized message of which only numbers change.

    Making a template takes as long as publishing several messages.

    Parameters
    ----------
    message : ROS message
        The message, complete but for stamps and numbers.
    headers : list of std_msgs.msg.Header
        The headers in it, which are stamped.
    fields : dict
        The numbers that change, by key: contiguous arrays of doubles, each with its shape and a
        function that writes it, as a flat `array.array`, to the message.

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

    def _marks(self, seed: int) -> tuple[Stamp, dict[Any, np.ndarray]]:
        """Return a recognizable stamp and recognizable numbers."""
        rng = np.random.default_rng(seed)
        return (Stamp(int(rng.integers(2 ** 29, 2 ** 30)), int(rng.integers(2 ** 29))),
                {name: rng.random(shape) for name, (shape, _) in self._fields.items()})

    def _layout(self) -> tuple[bytearray, list[int], list[tuple[np.ndarray, Any]]]:
        """Return a serialized message, the places of its stamps, and views of its numbers."""
        stamp, marks = self._marks(0)
        data, found = bytearray(self._serialized(stamp, marks)), 0

        def find(mark: bytes, start: int) -> int:
            # Behind the message there may be stale bytes, too: the first match counts.
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
        # Compare both as the middleware reads them, because it rounds colors.
        filled, whole = (deserialize_message(data, type(self._message))
                         for data in (self.fill(stamp, marks), self._serialized(stamp, marks)))
        if filled != whole:
            raise _Elsewhere

    def _serialized(self, stamp: Any, values: Mapping[Any, np.ndarray]) -> bytes:
        """Return the message as the middleware makes it."""
        for name, (_, write) in self._fields.items():
            write(array('d', np.asarray(values[name], float).tobytes()))
        for header in self._headers:
            header.stamp = time(stamp)
        return serialize_message(self._message)

    def fill(self, stamp: Any, values: Mapping[Any, np.ndarray]) -> bytes:
        """
        Return the serialized message.

        Parameters
        ----------
        stamp : rbd_ros.ros.convert.Stamp, builtin_interfaces.msg.Time or None
            For all headers; None if there are none.
        values : mapping
            Arrays by the keys of the fields.

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
    """Return consecutive scalar fields of a message as one field for `Template`."""
    def write(flat: 'array[float]') -> None:
        for name, x in zip(names, flat):
            setattr(message, name, x)
    return (len(names),), write
