# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Fast reading of serialized joint states from one sender, which differ only in their numbers."""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
import struct
from typing import Any

import numpy as np

# Plain little-endian CDR: the encapsulation header, then the stamp, s and ns.
ENCAPSULATION = b'\x00\x01\x00\x00'
STAMP = struct.Struct('<4xiI')
COUNT = struct.Struct('<I')


class Layout:
    """
    The positions of all fields in a serialized sensor_msgs/JointState.

    A message with the same texts and counts at the same positions has the same joints; padding is
    not compared. The constructor takes a message and its content, already deserialized, and raises
    ValueError if it cannot find that content, for example because a text is padded with NULs.

    """

    def __init__(self, raw: bytes, frame: str, names: Sequence[str], position: np.ndarray,
                 velocity: np.ndarray, effort: np.ndarray) -> None:
        self.names, self._spans = names, []
        # Mask of the compared bytes, and their values.
        self._mask, self._bytes = bytearray(len(raw)), bytearray(len(raw))
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
                raise ValueError('numbers are elsewhere')
            self._spans.append(span)
            self._end = span[1]
        # As integers, all bytes are compared at once.
        self._mask_integer = int.from_bytes(self._mask, 'little')
        self._expected = int.from_bytes(self._bytes, 'little')
        # Everything but the stamp and the numbers, padding included, rarely changes between
        # messages: this comparison comes first.
        ends = [len(ENCAPSULATION), STAMP.size, *chain(*self._spans), len(raw)]
        self._rest = itemgetter(*map(slice, [0, *ends[1::2]], ends[::2]))
        self._last: tuple[bytes, ...] | None = None
        if self.read(raw) is None:
            raise ValueError('texts are elsewhere')

    def _align(self, size: int) -> None:
        """Advance to a multiple of ``size`` bytes."""
        self._end += -(self._end - len(ENCAPSULATION)) % size

    def _expect(self, data: bytes, align: int = 1) -> None:
        self._align(align)
        start, self._end = self._end, self._end + len(data)
        self._bytes[start:self._end] = data
        self._mask[start:self._end] = b'\xff' * len(data)

    def _expect_text(self, text: str) -> None:
        data = text.encode() + b'\x00'
        self._expect(COUNT.pack(len(data)), align=4)
        self._expect(data)

    def read(self, raw: bytes) -> tuple[Any, ...] | None:
        """
        Return s, ns, position, velocity and effort of a message of the same length.

        Return None if the message has another layout.

        """
        rest = self._rest(raw)
        if rest != self._last:
            if int.from_bytes(raw, 'little') & self._mask_integer != self._expected:
                return None
            self._last = rest
        # Slices are copies, so the numbers are aligned.
        return (*STAMP.unpack_from(raw),
                *[np.frombuffer(raw[start:stop]) for start, stop in self._spans])

    def fits(self, block: np.ndarray) -> np.ndarray:
        """Return for each message, a row of uint8, whether it has this layout."""
        return np.all((block & np.frombuffer(self._mask, np.uint8))
                      == np.frombuffer(self._bytes, np.uint8), axis=1)

    def read_block(self, block: np.ndarray) -> tuple[np.ndarray, ...]:
        """
        Return the stamps, ns, and the positions, velocities and efforts of messages in rows.

        All of them must have this layout.

        """
        def numbers(start: int, stop: int, kind: str) -> np.ndarray:
            return np.ascontiguousarray(block[:, start:stop]).view(kind)

        stamp = (numbers(4, 8, '<i4')[:, 0].astype(np.int64) * 1_000_000_000
                 + numbers(8, 12, '<u4')[:, 0])
        return stamp, *[numbers(start, stop, '<f8') for start, stop in self._spans]
