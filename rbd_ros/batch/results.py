# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Arrays for the results of many states: new ones, or those of the user.

The memory of new ones is reused once no array refers to it. Benefit: the system clears every page
before its first use, which takes as long as computing most results. Reused memory has been
cleared, and huge pages are cleared faster than small ones. Safeguard: memory returns only when the
last array that refers to it is gone; results stay the caller's own. At most `KEPT` bytes are idle,
and the system may take them at any time. Risk: `MADV_HUGEPAGE` and `MADV_FREE` are Linux's;
without them, nothing but speed is lost.

"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
import mmap
import os
from typing import Any

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.kernels.lanes.lanes import LINE, on_lines
from rbd_ros.model.arguments import shown
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.lanes import as_written, States

# Size of results for which NumPy's allocation begins to be slow, and of a huge page, bytes.
SMALLEST, HUGE = 2 ** 18, 2 ** 21
# Idle memory, bytes: at most a sixteenth of the machine's.
KEPT = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 16
# Idle pages by size. All changes are single operations of lists, which need no lock: memory may
# return in any thread, and in the middle of any other function.
_idle: dict[int, list[mmap.mmap]] = {}


def new_array(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array for a kernel, aligned if it is large: it may be written past the caches."""
    size = 8 * prod(shape)
    return np.empty(shape) if size < SMALLEST else on_lines(result_bytes(size + LINE), shape)


def results_of(model: Model, task: States, states: Mapping[str, np.ndarray], count: int,
               out: object) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray] | None]:
    """Return arrays for results, and those that the kernel writes to; None: results are copied."""
    shapes, in_place = task.shapes(model, model.nv), model.loops is None
    if out is None:
        raw = [new_array((count, *shape)) for shape in task.written(shapes)]
        return task.results(shapes, raw), raw if in_place else None
    arrays: list[Any] = list(out) if isinstance(out, tuple) else [out]
    whole = _raw_of(arrays, count, task, shapes) if in_place else None
    if whole is not None:
        _check_apart(whole, states)
        return arrays, whole
    parts = task.cut(*(np.empty((0, *shape)) for shape in shapes))
    return checked_out(out, [(count, *part.shape[1:]) for part in parts], states), None


def checked_out(out: object, wanted: Sequence[tuple[int, ...]],
                states: Mapping[str, Any]) -> list[np.ndarray]:
    """Return the arrays that a user gives for results of these shapes, or raise StateError."""
    arrays: list[Any] = list(out) if isinstance(out, tuple) else [out]
    if len(arrays) != len(wanted):
        expected = ('one array' if len(wanted) == 1 else
                    f'{len(wanted)} arrays, as they are returned')
        raise StateError(f'out must be {expected}, got {shown(out)}')
    for k, (array, shape) in enumerate(zip(arrays, wanted)):
        label = f'out[{k}]' if len(arrays) > 1 else 'out'
        if not isinstance(array, np.ndarray) or array.dtype.char not in 'df':
            raise StateError(f'{label} must be an array of float64 or float32, got {shown(array)}')
        if array.shape != shape:
            raise StateError(f'{label} has the shape {array.shape}; it must be {shape}')
        if not array.flags.writeable:
            raise StateError(f'{label} cannot be written to')
    _check_apart(arrays, states)
    return arrays


def ready_made(out: object, count: int, task: States, shapes: Sequence[tuple[int, ...]],
               states: Sequence[object]) -> Sequence[np.ndarray] | None:
    """Return arrays of the user as kernels take them; None if they need further checks."""
    raw: Any = None
    if isinstance(out, tuple) and task.cut is not as_written:
        raw = _raw_of(list(out), count, task, shapes)
    elif type(out) is np.ndarray and task.cut is as_written:
        raw = (out,) if out.shape == (count, *shapes[0]) else None
    return raw if raw and all(apart(raw[0], x) for x in states) else None


def apart(array: np.ndarray, other: Any) -> bool:
    """Return whether two arrays share no memory."""
    # The quick case: both own their memory.
    if array is not other and array.base is None and other.base is None:
        return True
    return not np.shares_memory(array, other)


def _check_apart(arrays: Sequence[np.ndarray], states: Mapping[str, Any]) -> None:
    """Raise if arrays for results share memory with each other or with arguments."""
    for k, array in enumerate(arrays):
        for label, other in (*states.items(), *((f'out[{j}]', arrays[j]) for j in range(k))):
            if isinstance(other, np.ndarray) and not apart(array, other):
                raise StateError(f'out shares memory with {label}; results need their own')


def _raw_of(arrays: list[Any], count: int, task: States,
            shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | None:
    """Return the arrays underlying those of the user if a kernel can write to them, or None."""
    layout = [(count, *shape) for shape in task.written(shapes)]
    raw = arrays if task.cut is as_written else [getattr(arrays[0], 'base', None)]
    raw = [on_lines(x, shape) if isinstance(x, np.ndarray) and x.dtype == np.uint8
           and x.shape == (8 * prod(shape) + LINE,) else x for x, shape in zip(raw, layout)]
    if len(raw) != len(layout) or any(
            not isinstance(x, np.ndarray) or x.dtype != float or not x.flags.carray
            or x.shape != shape for x, shape in zip(raw, layout)):
        return None
    parts = task.results(shapes, raw)
    # Whether they are the same views of the same memory.
    return raw if len(parts) == len(arrays) and all(x is y or (
        isinstance(x, np.ndarray) and x.dtype == y.dtype and x.shape == y.shape
        and x.strides == y.strides and x.flags.writeable and x.ctypes.data == y.ctypes.data)
        for x, y in zip(arrays, parts)) else None


# -- Memory. --------------------------------------------------------------------------------------
class _Loan:
    """Pages in use; the arrays made of them refer to it."""

    def __init__(self, pages: mmap.mmap, size: int) -> None:
        self._pages = pages
        self.__array_interface__ = np.frombuffer(pages, np.uint8, size).__array_interface__

    def __del__(self) -> None:
        """Keep pages for later, instead of the largest ones if there are too many."""
        # Small pages would be mapped again one by one.
        if len(self._pages) >= HUGE:
            _advise(self._pages, 'MADV_FREE')
        _idle.setdefault(len(self._pages), []).append(self._pages)
        while idle_bytes() > KEPT:
            largest = max((size for size, same in list(_idle.items()) if same), default=0)
            try:
                _idle[largest].pop(0)
            except (KeyError, IndexError):
                return      # another thread was faster


def result_bytes(size: int) -> np.ndarray:
    """Return an array of bytes whose content is arbitrary; MemoryError if there are too few."""
    # Powers of two serve results of similar sizes, too; what is not kept needs no rounding.
    whole = 1 << (size - 1).bit_length() if size <= KEPT else size
    try:
        pages = _idle[whole].pop()
    except (KeyError, IndexError):
        pages = _new_pages(whole)
    return np.asarray(_Loan(pages, size))


def _new_pages(size: int) -> mmap.mmap:
    """Return new pages, huge ones if the system has them."""
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        raise MemoryError(f'results need {size / 1e9:.3g} GB; compute fewer states at '
                          'once') from None
    _advise(pages, 'MADV_HUGEPAGE')
    return pages


def idle_bytes() -> int:
    """Return how many bytes wait for their next use."""
    return sum(size * len(pages) for size, pages in list(_idle.items()))


def _advise(pages: mmap.mmap, advice: str) -> None:
    """Advise the system on pages, if it knows that advice."""
    with suppress(AttributeError, OSError):
        pages.madvise(getattr(mmap, advice))
