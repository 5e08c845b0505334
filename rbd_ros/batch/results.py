# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays for the results of many states: new ones, or those of the user."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from rbd_ros.batch.result_memory import result_bytes, SMALLEST
from rbd_ros.errors import StateError
from rbd_ros.kernels.lanes.lanes import LINE, on_lines
from rbd_ros.model.arguments import shown
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.lanes import as_written, States


def new_array(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array for a kernel, aligned if it is large: it may be written past the caches."""
    size = 8 * prod(shape)
    return np.empty(shape) if size < SMALLEST else on_lines(result_bytes(size + LINE), shape)


def results_of(model: Model, task: States, states: Mapping[str, np.ndarray], count: int,
               out: object) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray] | None]:
    """
    Return new arrays for results, or check those of the user against ``states``.

    Also return the arrays, of which these are views, that the kernel writes to; None if results
    are copied.

    """
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
                states: Mapping[str, np.ndarray]) -> list[np.ndarray]:
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


def _check_apart(arrays: Sequence[np.ndarray], states: Mapping[str, np.ndarray]) -> None:
    """Raise if arrays for results share memory with each other or with the states."""
    for k, array in enumerate(arrays):
        for label, other in (*states.items(), *((f'out[{j}]', arrays[j]) for j in range(k))):
            if not apart(array, other):
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
    return raw if len(parts) == len(arrays) and all(
        x is y or same_place(x, y) for x, y in zip(arrays, parts)) else None


def same_place(x: Any, y: np.ndarray) -> bool:
    """Return whether two arrays are the same writable view of the same memory."""
    return (isinstance(x, np.ndarray) and x.dtype == y.dtype and x.shape == y.shape
            and x.strides == y.strides and x.flags.writeable and x.ctypes.data == y.ctypes.data)
