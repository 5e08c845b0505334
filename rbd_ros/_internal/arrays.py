# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion of users' arrays."""

import numpy as np


class ByValue:
    """Base of dataclasses, with ``eq=False``, that are equal if all fields are, arrays too."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(map(np.array_equal, vars(self).values(), vars(other).values()))

    __hash__ = None     # type: ignore[assignment]


def real_array(value: object) -> np.ndarray | None:
    """Return a new float64 array, or None if the value (any object) is not real numbers."""
    try:
        if isinstance(value, np.ma.MaskedArray):
            return None             # NumPy would convert masked entries to numbers
        array = np.asarray(value)
        return np.array(array, float) if array.dtype.kind in 'fiu' else None
    except Exception:
        # Array-likes of other libraries raise exceptions of their own.
        return None
