# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where the results of many states go: new arrays, or those of the user."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.kernels.lanes.lanes import LINE, on_lines, STREAMED, WIDTH
from rbd_ros.model.arguments import shown
from rbd_ros.model.model import Model


class Quantity(NamedTuple):
    """
    What a kernel writes for each state.

    Attributes
    ----------
    shapes : callable
        Given the robot and the number of velocities, its own or those of its tree, returns the
        shapes of the blocks that the kernel writes.
    cut : callable
        Given these blocks, for many states, returns the results as views of them.
    fold : callable
        Given G of the mimicking joints and these blocks, by the coordinates of the tree, returns
        the results by those of the model.

    """

    shapes: Callable[[Model, int], Sequence[tuple[int, ...]]]
    cut: Callable[..., Sequence[np.ndarray]]
    fold: Callable[..., Sequence[np.ndarray]]

    def written(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """Return the shapes of the arrays, for one state, that the kernel writes blocks to."""
        # What is cut is not contiguous anyway: each state can fill whole registers.
        return shapes if self.cut is as_written else [
            (-(-prod(shape) // WIDTH) * WIDTH,) for shape in shapes]

    def blocks(self, shapes: Sequence[tuple[int, ...]],
               raw: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the blocks in what the kernel has written."""
        return raw if self.cut is as_written else [
            x[:, :prod(shape)].reshape(len(x), *shape) for x, shape in zip(raw, shapes)]

    def results(self, shapes: Sequence[tuple[int, ...]],
                raw: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the results in what the kernel has written."""
        return self.cut(*self.blocks(shapes, raw))


def as_written(*arrays: np.ndarray) -> Sequence[np.ndarray]:
    """Return the arrays that a kernel writes where these are the results."""
    return arrays


def new_array(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array for a kernel to write to, which may do so past the caches if it is large."""
    size = 8 * prod(shape)
    return (np.empty(shape) if size < STREAMED
            else on_lines(np.empty(size + LINE, np.uint8), shape))


class Results(NamedTuple):
    """
    Where results go.

    Attributes
    ----------
    arrays : sequence of ndarray
        What the user gets.
    raw : sequence of ndarray or None
        Arrays for the kernel to write to, of which these are views; None: they are copied.

    """

    arrays: Sequence[np.ndarray]
    raw: Sequence[np.ndarray] | None


def results_of(model: Model, quantity: Quantity, states: Mapping[str, np.ndarray], count: int,
               out: object) -> Results:
    """
    Return new arrays for results, or check those of the user.

    Parameters
    ----------
    model : Model
        The robot.
    quantity : Quantity
        What the kernel writes.
    states : mapping of str to ndarray
        Arrays of the user that are read, by their names.
    count : int
        How many states there are.
    out : ndarray or tuple of ndarray, or None
        The arrays; None: new ones.

    Raises
    ------
    StateError
        If they have another number, type or shape, cannot be written, or share memory with each
        other or with the states.

    """
    shapes, in_place = quantity.shapes(model, model.nv), model.coordinates.is_identity
    if out is None:
        raw = [new_array((count, *shape)) for shape in quantity.written(shapes)]
        return Results(quantity.results(shapes, raw), raw if in_place else None)
    arrays: list[Any] = list(out) if isinstance(out, tuple) else [out]
    whole = _raw_of(arrays, count, quantity, shapes) if in_place else None
    if whole is not None:
        _check_apart(whole, states)
        return Results(arrays, whole)
    wanted = [part.shape for part in quantity.cut(*(np.empty((0, *shape)) for shape in shapes))]
    if len(arrays) != len(wanted):
        raise StateError(f'out must be {_what_is_returned(wanted)}, got {shown(out)}')
    for k, (array, shape) in enumerate(zip(arrays, wanted)):
        label, shape = f'out[{k}]' if len(arrays) > 1 else 'out', (count, *shape[1:])
        if not isinstance(array, np.ndarray) or array.dtype.char not in 'df':
            raise StateError(f'{label} must be an array of float64 or float32, got {shown(array)}')
        if array.shape != shape:
            raise StateError(f'{label} has the shape {array.shape}; it must be {shape}')
        if not array.flags.writeable:
            raise StateError(f'{label} cannot be written to')
    _check_apart(arrays, states)
    return Results(arrays, None)


def ready_made(out: object, count: int, quantity: Quantity, shapes: Sequence[tuple[int, ...]],
               states: Sequence[object]) -> Sequence[np.ndarray] | None:
    """Return arrays of the user as kernels take them; None: that needs a closer look."""
    raw: Any = None
    if isinstance(out, tuple) and quantity.cut is not as_written:
        raw = _raw_of(list(out), count, quantity, shapes)
    elif type(out) is np.ndarray and quantity.cut is as_written:
        raw = (out,) if out.shape == (count, *shapes[0]) else None
    return raw if raw and all(apart(raw[0], x) for x in states) else None


def apart(array: np.ndarray, other: Any) -> bool:
    """Return whether two arrays share no memory."""
    # Those that have memory of their own are quickly told apart.
    if array is not other and array.base is None and other.base is None:
        return True
    return not np.shares_memory(array, other)


def _what_is_returned(wanted: Sequence[tuple[int, ...]]) -> str:
    return 'one array' if len(wanted) == 1 else f'{len(wanted)} arrays, as they are returned'


def _check_apart(arrays: Sequence[np.ndarray], states: Mapping[str, np.ndarray]) -> None:
    """Raise if arrays for results share memory with each other or with the states."""
    for k, array in enumerate(arrays):
        for label, other in (*states.items(), *((f'out[{j}]', arrays[j]) for j in range(k))):
            if not apart(array, other):
                raise StateError(f'out shares memory with {label}; results need their own')


def _raw_of(arrays: list[Any], count: int, quantity: Quantity,
            shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | None:
    """Return what a kernel can write to so that it stands in the arrays, if there is that."""
    layout = [(count, *shape) for shape in quantity.written(shapes)]
    raw = arrays if quantity.cut is as_written else [getattr(arrays[0], 'base', None)]
    raw = [on_lines(x, shape) if isinstance(x, np.ndarray) and x.dtype == np.uint8
           and x.shape == (8 * prod(shape) + LINE,) else x for x, shape in zip(raw, layout)]
    if len(raw) != len(layout) or any(
            not isinstance(x, np.ndarray) or x.dtype != float or not x.flags.carray
            or x.shape != shape for x, shape in zip(raw, layout)):
        return None
    parts = quantity.results(shapes, raw)
    return raw if len(parts) == len(arrays) and all(
        x is y or same_place(x, y) for x, y in zip(arrays, parts)) else None


def same_place(x: Any, y: np.ndarray) -> bool:
    """Return whether two arrays are the same view of the same memory, which can be written."""
    return (isinstance(x, np.ndarray) and x.dtype == y.dtype and x.shape == y.shape
            and x.strides == y.strides and x.flags.writeable and x.ctypes.data == y.ctypes.data)
