# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Serialized ROS messages (CDR) of which only numbers change: read and written in place.

Reading in place saves 8 to 15 % of a node's CPU time per state (with all topics, or few, in use; 7
and 32 joints), writing in place 18 to 36 %. A joint state is read in place only if all its texts
and counts are equal, byte by byte, to those of a message that the middleware has converted; an
output is written in place only if the middleware reads a filled template like a message that it
serialized itself. With a middleware that compresses, or uses another byte order, every message
goes through it, with the same result, but slower.

"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
import logging
from operator import itemgetter
import struct
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

# Whether messages are read and written in place; else the middleware converts every message.
SHORTCUTS = True
# Plain little-endian CDR begins with these bytes; the stamp (s, ns) follows.
ENCAPSULATION = b'\x00\x01\x00\x00'
STAMP = struct.Struct('<4xiI')
COUNT = struct.Struct('<I')
NATIVE_STAMP = struct.Struct('=iI')  # A stamp in the byte order of this machine.
# s between two attempts to learn a layout, each of which takes longer than converting a message
LEARNING_PERIOD = 1.0
MAX_LAYOUTS = 8

# The shape of an array in a message, and a function that writes it there.
Field = tuple[tuple[int, ...], Callable[['array[float]'], None]]
_log = logging.getLogger('rbd_ros')


class Stamp(NamedTuple):
    """A time stamp, four times faster to create than a builtin_interfaces/Time."""

    sec: int
    nanosec: int


class JointStateContent(NamedTuple):
    """The content of a sensor_msgs/JointState; the numbers are arrays of float64."""

    stamp: Stamp
    name: Sequence[str]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


# -- Reading joint states. ------------------------------------------------------------------------
class JointStateLayout:
    """
    The places of all fields in the serialized joint states of one sender.

    A message with the same texts and counts at the same places has the same joints. The padding
    between them is not compared. ValueError: the message, ``raw``, has another layout, for example
    a text padded with NULs, or `SHORTCUTS` is off.

    """

    def __init__(self, raw: bytes, frame: str, names: Sequence[str], position: np.ndarray,
                 velocity: np.ndarray, effort: np.ndarray) -> None:
        if not SHORTCUTS:
            raise ValueError('shortcuts are switched off')
        self.names, self._spans = names, []
        # The bytes to compare (0xff), and their expected values.
        self._compared, self._bytes = bytearray(len(raw)), bytearray(len(raw))
        self._end = 0
        self._expect(ENCAPSULATION)
        self._end = STAMP.size
        self._expect_text(frame)
        self._expect(COUNT.pack(len(names)), align=4)
        for text in names:
            self._expect_text(text)
        for numbers in (position, velocity, effort):
            self._expect(COUNT.pack(len(numbers)), align=4)
            if len(numbers):
                self._align(8)
            span = self._end, self._end + 8 * len(numbers)
            if raw[span[0]:span[1]] != bytes(numbers):
                raise ValueError('the numbers are at other places')
            self._spans.append(span)
            self._end = span[1]
        # Each as one integer: comparing two integers is fast.
        self._mask = int.from_bytes(self._compared, 'little')
        self._expected = int.from_bytes(self._bytes, 'little')
        # All bytes except the stamp and the numbers; mostly equal to those of the last message.
        ends = [len(ENCAPSULATION), STAMP.size, *chain(*self._spans), len(raw)]
        self._rest = itemgetter(*map(slice, [0, *ends[1::2]], ends[::2]))
        self._last: tuple[bytes, ...] | None = None
        if not self.fits(raw):
            raise ValueError('the texts are at other places')

    def _align(self, size: int) -> None:
        self._end += -(self._end - len(ENCAPSULATION)) % size

    def _expect(self, data: bytes, align: int = 1) -> None:
        self._align(align)
        start, self._end = self._end, self._end + len(data)
        self._bytes[start:self._end] = data
        self._compared[start:self._end] = b'\xff' * len(data)

    def _expect_text(self, text: str) -> None:
        data = text.encode() + b'\x00'
        self._expect(COUNT.pack(len(data)), align=4)
        self._expect(data)

    def fits(self, raw: bytes) -> bool:
        """Return whether a message of the same length has this layout."""
        rest = self._rest(raw)
        if rest == self._last:
            return True
        if int.from_bytes(raw, 'little') & self._mask != self._expected:
            return False
        self._last = rest
        return True

    def read(self, raw: bytes) -> tuple[Any, ...]:
        """Return s, ns, positions, velocities and efforts of a message that fits."""
        # Copies, in which the numbers are aligned.
        return (*STAMP.unpack_from(raw),
                *[np.frombuffer(bytearray(raw[start:stop])) for start, stop in self._spans])

    def read_block(self, block: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return stamps, ns, positions, velocities and efforts (messages, joints or 0)."""
        def numbers(start: int, stop: int, kind: str) -> np.ndarray:
            return np.ascontiguousarray(block[:, start:stop]).view(kind)

        stamp = (numbers(4, 8, '<i4')[:, 0].astype(np.int64) * 1_000_000_000
                 + numbers(8, 12, '<u4')[:, 0])
        return stamp, *[numbers(start, stop, '<f8') for start, stop in self._spans]


class JointStateReader:
    """Reads serialized joint states; only those with a new layout go through the middleware."""

    def __init__(self, deserialize: Callable[[bytes], Any]) -> None:
        self._deserialize = deserialize
        self._layouts: dict[int, JointStateLayout] = {}  # By length of the message.
        self._learning_due = 0.0

    def read(self, raw: bytes) -> JointStateContent:
        """Return the content of a serialized sensor_msgs/JointState."""
        layout = self._layouts.get(len(raw))
        if layout is not None and layout.fits(raw):
            seconds, nanoseconds, *numbers = layout.read(raw)
            return JointStateContent(Stamp(seconds, nanoseconds), layout.names, *numbers)
        message = self._deserialize(raw)
        stamp = message.header.stamp
        content = JointStateContent(Stamp(stamp.sec, stamp.nanosec), message.name,
                                    message.position, message.velocity, message.effort)
        if monotonic() >= self._learning_due:
            self._learning_due = monotonic() + LEARNING_PERIOD
            self._layouts.pop(len(raw), None)
            if len(self._layouts) >= MAX_LAYOUTS:
                self._layouts.clear()
            with suppress(ValueError):
                self._layouts[len(raw)] = JointStateLayout(raw, message.header.frame_id,
                                                           *content[1:])
        return content


# -- Writing messages. ----------------------------------------------------------------------------
class _NotFound(Exception):
    """The numbers of a message were not found in its serialized form."""


class Template:
    """
    A serialized message of which only stamps and numbers change.

    Creating a template takes as long as publishing several messages. ``message`` is complete
    except for the stamps of ``headers`` and the numbers of ``fields``: contiguous arrays of
    doubles by key, each with its shape and a function that writes it, as a flat `array.array`, to
    the message. ``serialize`` and ``deserialize`` are those of the middleware.

    """

    def __init__(self, message: Any, headers: list[Any], fields: Mapping[Any, Field],
                 serialize: Callable[[Any], bytes],
                 deserialize: Callable[[bytes, type], Any]) -> None:
        self._serialize, self._deserialize = serialize, deserialize
        self._message, self._headers, self._fields = message, headers, fields
        self._data: bytearray | None = None
        if not SHORTCUTS:
            return
        try:
            self._data, self._stamps, self._views = self._find_numbers()
            self._check()
        except _NotFound:
            self._data = None
            _log.warning('messages of the type %s are serialized one by one, which costs time: '
                         'another RMW_IMPLEMENTATION may have their numbers in a row',
                         type(message).__name__)

    def _marks(self, seed: int) -> tuple[Stamp, dict[Any, np.ndarray]]:
        rng = np.random.default_rng(seed)
        return (Stamp(int(rng.integers(2 ** 29, 2 ** 30)), int(rng.integers(2 ** 29))),
                {name: rng.random(shape) for name, (shape, _) in self._fields.items()})

    def _find_numbers(self) -> tuple[bytearray, list[int], list[tuple[np.ndarray, Any]]]:
        """Return a serialized message, the places of its stamps, and views of its numbers."""
        stamp, marks = self._marks(0)
        data, found = bytearray(self._serialized(stamp, marks)), 0

        def find(mark: bytes, start: int) -> int:
            # Stale bytes may follow the message: the first match counts.
            place = data.find(mark, start)
            if place < 0:
                raise _NotFound
            return place

        stamps, views = [], []
        for _ in self._headers:
            found = find(NATIVE_STAMP.pack(*stamp), found + 1)
            stamps.append(found)
        for name, values in marks.items():
            if values.size:
                view = np.frombuffer(data, count=values.size, offset=find(values.tobytes(), 0))
                views.append((view.reshape(values.shape), name))
        return data, stamps, views

    def _check(self) -> None:
        """Compare a filled message with one that the middleware serialized."""
        stamp, marks = self._marks(1)
        # Both as the middleware reads them, because it rounds colors.
        filled, whole = (self._deserialize(data, type(self._message))
                         for data in (self.fill(stamp, marks), self._serialized(stamp, marks)))
        if filled != whole:
            raise _NotFound

    def _serialized(self, stamp: Any, values: Mapping[Any, np.ndarray]) -> bytes:
        for name, (_, write) in self._fields.items():
            write(array('d', np.asarray(values[name], float).tobytes()))
        for header in self._headers:
            header.stamp.sec, header.stamp.nanosec = stamp.sec, stamp.nanosec
        return self._serialize(self._message)

    def fill(self, stamp: Any, values: Mapping[Any, np.ndarray]) -> bytes:
        """Return the serialized message with a stamp (None without headers) and values by key."""
        if self._data is None:
            return self._serialized(stamp, values)
        for offset in self._stamps:
            NATIVE_STAMP.pack_into(self._data, offset, stamp.sec, stamp.nanosec)
        for view, name in self._views:
            view[...] = values[name]
        return bytes(self._data)


def field(message: Any, name: str, shape: tuple[int, ...]) -> Field:
    """Return an array of numbers in a message as a field of a `Template`."""
    return shape, lambda numbers: setattr(message, name, numbers)


def numbers(message: Any, *names: str) -> Field:
    """Return consecutive scalars of a message as one field of a `Template`."""
    def write(flat: 'array[float]') -> None:
        for name, x in zip(names, flat):
            setattr(message, name, x)
    return (len(names),), write
