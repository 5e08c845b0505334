# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Serialized joint states of one sender, which differ only in their numbers."""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
import struct
from typing import Any

import numpy as np

# Plain little-endian CDR: four bytes that say so, then the stamp, s and ns.
ENCAPSULATION = b'\x00\x01\x00\x00'
STAMP = struct.Struct('<4xiI')
COUNT = struct.Struct('<I')


class Layout:
    """
    The places of all fields in a serialized joint state.

    A message with the same texts, and the same counts of texts and numbers, at the same places has
    the same joints. The padding between them is not compared.

    Parameters
    ----------
    raw : bytes
        The message: serialized sensor_msgs/JointState.
    frame : str
        Frame of its header.
    names : sequence of str
        Its joints.
    position, velocity, effort : ndarray or array
        Of float64.

    Attributes
    ----------
    names : sequence of str
        The joints.

    Raises
    ------
    ValueError
        If the message has another layout, for example a text that is padded with NULs.

    """

    def __init__(self, raw: bytes, frame: str, names: Sequence[str], position: np.ndarray,
                 velocity: np.ndarray, effort: np.ndarray) -> None:
        self.names, self._spans = names, []
        # Which bytes are compared, and with what.
        self._seen, self._bytes = bytearray(len(raw)), bytearray(len(raw))
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
        # As one integer each, which are compared at once.
        self._mask = int.from_bytes(self._seen, 'little')
        self._expected = int.from_bytes(self._bytes, 'little')
        # All but the stamp and the numbers, padding included: mostly it is as in the last message.
        ends = [len(ENCAPSULATION), STAMP.size, *chain(*self._spans), len(raw)]
        self._rest = itemgetter(*map(slice, [0, *ends[1::2]], ends[::2]))
        self._last: tuple[bytes, ...] | None = None
        if self.read(raw) is None:
            raise ValueError('texts are elsewhere')

    def _align(self, size: int) -> None:
        """Move on to a multiple of a size, in bytes."""
        self._end += -(self._end - len(ENCAPSULATION)) % size

    def _expect(self, data: bytes, align: int = 1) -> None:
        self._align(align)
        start, self._end = self._end, self._end + len(data)
        self._bytes[start:self._end] = data
        self._seen[start:self._end] = b'\xff' * len(data)

    def _expect_text(self, text: str) -> None:
        data = text.encode() + b'\x00'
        self._expect(COUNT.pack(len(data)), align=4)
        self._expect(data)

    def read(self, raw: bytes) -> tuple[Any, ...] | None:
        """
        Return the numbers in a message of the same length.

        Returns
        -------
        seconds, nanoseconds, position, velocity, effort, or None
            Two whole numbers and three arrays; None if the message has another layout.

        """
        rest = self._rest(raw)
        if rest != self._last:
            if int.from_bytes(raw, 'little') & self._mask != self._expected:
                return None
            self._last = rest
        # Slices are copies, in which the numbers are aligned.
        return (*STAMP.unpack_from(raw),
                *[np.frombuffer(raw[start:stop]) for start, stop in self._spans])

    def fits(self, block: np.ndarray) -> np.ndarray:
        """
        Return which of many messages have this layout.

        Parameters
        ----------
        block : ndarray of uint8, shape (messages, length of the message)
            One message in each row.

        Returns
        -------
        ndarray of bool, shape (messages,)

        """
        return np.all((block & np.frombuffer(self._seen, np.uint8))
                      == np.frombuffer(self._bytes, np.uint8), axis=1)

    def read_block(self, block: np.ndarray) -> tuple[np.ndarray, ...]:
        """
        Return the numbers in many messages of this layout.

        Parameters
        ----------
        block : ndarray of uint8, shape (messages, length of the message)
            One message in each row.

        Returns
        -------
        stamp : ndarray of int64, shape (messages,)
            ns.
        position, velocity, effort : ndarray, shape (messages, joints or 0)

        """
        def numbers(start: int, stop: int, kind: str) -> np.ndarray:
            return np.ascontiguousarray(block[:, start:stop]).view(kind)

        stamp = (numbers(4, 8, '<i4')[:, 0].astype(np.int64) * 1_000_000_000
                 + numbers(8, 12, '<u4')[:, 0])
        return stamp, *[numbers(start, stop, '<f8') for start, stop in self._spans]
