# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion of users' arrays, and LAPACK."""

from functools import cache
from typing import Any

import numpy as np

FLOAT = np.dtype(float)
PLAIN = {list, tuple, np.ndarray, float, int}


class ByValue:
    """Base of dataclasses, with ``eq=False``, that are equal if all fields are, arrays too."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(map(np.array_equal, vars(self).values(), vars(other).values()))

    __hash__ = None     # type: ignore[assignment]


def real_array(value: object) -> np.ndarray | None:
    """Return a new float64 array, or None if the value (any object) is not real numbers."""
    # Masked entries are none, and the numbers of data frames have names instead of an order.
    try:
        array = np.array(value)
        if type(value) not in PLAIN and (_is_labelled(value) or np.ma.is_masked(value)):
            return None
        if array.dtype is FLOAT:
            return array
        return array.astype(float) if array.dtype.kind in 'fiu' else None
    except Exception:
        # Array-likes of other libraries raise exceptions of their own.
        return None


@cache
def lapack() -> Any:
    """Return the module of LAPACK's functions, which for small matrices are twice as fast."""
    # Imported lazily: SciPy is slow to import.
    from scipy.linalg import lapack
    return lapack


def _is_labelled(value: object) -> bool:
    """Return whether a value is a data frame, or a series whose labels are names."""
    index = getattr(value, 'index', None)
    return hasattr(value, 'columns') or (
        hasattr(value, 'to_numpy') and not callable(index) and index is not None
        and any(isinstance(label, str) for label in index))
