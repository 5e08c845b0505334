# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Validates arguments: the only place where they become arrays of real numbers.

Anything but real numbers (None, strings, dicts, ragged lists, complex numbers, tracers of other
libraries) is rejected with a StateError that names the argument by its ``label``.

"""

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rbd_ros._internal.arrays import real_array
from rbd_ros._internal.text import listed, shown
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.model import check_model, Model

Wrenches: TypeAlias = Mapping[str, npt.ArrayLike]  # Moment and force by the names of links.


def finite_array(label: str, value: object, *shapes: tuple[int | None, ...]) -> np.ndarray:
    """Return an array of finite numbers with one of the shapes; None is any length."""
    array = real_array(value)
    if array is None or not any(_fits(array.shape, shape) for shape in shapes):
        wanted = ' or '.join(_describe(shape) for shape in shapes)
        raise StateError(f'{_mismatch(label, value, array)}; it must be {wanted}')
    if not np.all(np.isfinite(array)):
        raise StateError(f'{label} must be finite, got {shown(value)}')
    return array


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(b is None or a == b for a, b in zip(shape, wanted))


def _describe(shape: tuple[int | None, ...]) -> str:
    if not shape:
        return 'a real number'
    return 'real numbers of the shape (' + ', '.join(
        'any' if n is None else str(n) for n in shape) + (',)' if len(shape) == 1 else ')')


def sizes(label: str, value: object, count: int) -> np.ndarray:
    """Return finite numbers that are not negative, from one for all or one for each."""
    array = finite_array(label, value, (), (count,))
    if np.any(array < 0.0):
        raise StateError(f'{label} must not be negative, got {shown(value)}')
    return np.broadcast_to(array, (count,)).copy()


def number(label: str, value: object, least: float = -np.inf, most: float = np.inf) -> float:
    """Return a finite real number between limits."""
    if type(value) is float and least <= value <= most and isfinite(value):
        return value        # the usual case, in a tenth of the time
    x = float(finite_array(label, value, ()))
    if not least <= x <= most:
        raise StateError(f'{label} must lie between {least:g} and {most:g}, got {x:g}')
    return x


def whole_number(label: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return an integer between limits."""
    if (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least
            or (most is not None and value > most)):
        wanted = f'at least {least}' if most is None else f'from {least} to {most}'
        raise StateError(f'{label} must be a whole number, {wanted}, got {shown(value)}')
    return int(value)


def choice(label: str, value: object, choices: Collection[str]) -> str:
    """Return one of several strings."""
    if not isinstance(value, str) or value not in choices:
        raise StateError(f"{label} must be {' or '.join(map(repr, choices))}, got {shown(value)}")
    return value


def refuse_loops(model: Model, what: str) -> None:
    """Raise ModelError if a robot has closed loops, for functions that are for trees only."""
    check_model(model)
    if model.loops is not None:
        raise ModelError(f"robot '{model.name}' has closed loops, for which {what} is not "
                         'available; model.unconstrained is the tree without its constraints')


def vector(model: Model, label: str, value: object, *, positions: bool = False) -> np.ndarray:
    """Return one real number, possibly infinite or NaN, per velocity, or per position."""
    check_model(model)
    names = model.position_names if positions else model.velocity_names
    array = real_array(value)
    if array is None or array.shape != (len(names),):
        raise StateError(f"{_mismatch(label, value, array)}, robot '{model.name}' needs "
                         f'({len(names)},): {listed(names)}')
    return array


def _mismatch(label: str, value: object, array: np.ndarray | None) -> str:
    """Return the first half of a message about an array of a wrong shape."""
    if array is None and hasattr(value, 'to_numpy'):
        return (f'{label} must be real numbers in the order of the joints, got names with a '
                f'{type(value).__name__}: give its to_numpy() in that order')
    if array is None and np.ma.is_masked(value):
        return f'{label} must be real numbers, got a masked array: fill or drop its masked entries'
    if array is None:
        return f'{label} must be real numbers, got {shown(value)}'
    return f'{label} has the shape {array.shape}'


def split_motion(model: Model, value: object) -> list[np.ndarray]:
    """Return q, v and a, possibly infinite or NaN, from one array (nq + 2 nv,)."""
    array, size = real_array(value), model.nq + 2 * model.nv
    if array is None or array.shape != (size,):
        raise StateError(f"{_mismatch('motion', value, array)}, robot '{model.name}' needs "
                         f'({size},): q, v and a concatenated')
    return np.split(array, [model.nq, model.nq + model.nv])


def finite_vector(model: Model, label: str, value: object, *,
                  positions: bool = False) -> np.ndarray:
    """Return a `vector` of finite numbers; errors name the coordinate that is not finite."""
    array = vector(model, label, value, positions=positions)
    if not np.isfinite(array).all():    # faster than np.all
        k = np.flatnonzero(~np.isfinite(array))[0]
        name = (model.position_names if positions else model.velocity_names)[k]
        raise StateError(f"{label} of '{name}' is {array[k]}; it must be finite")
    return array


def rows(model: Model, label: str, values: object, count: int | None = None, *,
         positions: bool = False, finite: bool = True) -> np.ndarray:
    """Return a contiguous array (count, nv), or (count, nq), with one state per row."""
    # Columns of data frames are found by the names of coordinates.
    check_model(model)
    width = model.nq if positions else model.nv
    array = (values if type(values) is np.ndarray and values.dtype == float else real_array(
        _by_name(label, values, model.position_names if positions else model.velocity_names)))
    if array is None or array.ndim != 2 or array.shape[1] != width or (
            count is not None and len(array) != count):
        states = 'states' if count is None else count
        raise StateError(f"{_mismatch(label, values, array)}, robot '{model.name}' needs "
                         f'({states}, {width})')
    if finite and not np.all(np.isfinite(array)):
        k = np.flatnonzero(~np.all(np.isfinite(array), axis=1))[0]
        raise StateError(f'{label} of state {k} has an entry that is not finite')
    # Kernels require contiguous, aligned, writeable arrays.
    return array if array.flags.carray else np.array(array, order='C')


def _by_name(label: str, values: Any, names: Sequence[str]) -> object:
    """Return the columns of a data frame, of any library, by name; other values as they are."""
    if not hasattr(values, 'columns'):
        return values
    columns = list(values.columns)
    if missing := [name for name in names if columns.count(name) != 1]:
        raise StateError(f'{label} has the columns {listed(map(str, columns))}; it needs one of '
                         f'each name, {listed(names)}: missing or there twice: {listed(missing)}')
    return np.stack([np.asarray(values[name]) for name in names], axis=1)


def one_or_rows(model: Model, label: str, value: object) -> np.ndarray:
    """Return finite velocities or the like: a `vector` of one state or `rows` of several."""
    array = real_array(value)
    if hasattr(value, 'columns') or (array is not None and array.ndim == 2):
        return rows(model, label, value)
    return finite_vector(model, label, value)


def mask(model: Model, label: str, value: object, states: int | None = None) -> np.ndarray:
    """Return one bool per velocity, or, of several states, also a row of them for each."""
    check_model(model)
    try:
        array = np.asarray(value)
        is_mask = not np.ma.is_masked(value) and (array.dtype == bool or array.size == 0 or (
            array.dtype.kind in 'iu' and np.all((array == 0) | (array == 1))))
    except Exception:
        is_mask = False
    if not is_mask or array.shape not in ((model.nv,), (states, model.nv)):
        also = f', or {states} rows of them' if states is not None else ''
        raise StateError(f'{label} must be {model.nv} truth values, one for each velocity of '
                         f"robot '{model.name}'{also}, got {shown(value)}")
    return array.astype(bool)


def wrenches(model: Model, values: object,
             label: str = 'external_wrenches') -> dict[int, np.ndarray]:
    """Return wrenches, each six finite numbers (moment, force), by the indices of links."""
    if values is None:
        return {}
    return {model.link_index(link): wrench
            for link, wrench in _by_link(model, values, label, (6,)).items()}


def wrenches_of_states(model: Model, values: object, states: int) -> dict[str, np.ndarray]:
    """Return wrenches by link, shape (1, 6) if they are equal in all states, else (states, 6)."""
    found = _by_link(model, values, 'external_wrenches', (6,), (states, 6))
    return {link: np.atleast_2d(wrench) for link, wrench in found.items()}


def _by_link(model: Model, values: object, label: str,
             *shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return arrays of finite numbers by the names of links."""
    if not isinstance(values, Mapping):
        raise StateError(f'{label} must be a dict of wrenches by the names of links, got '
                         f'{shown(values)}')
    found = {}
    for link, wrench in values.items():
        model.link_index(link)
        found[link] = finite_array(f"{label} on link '{link}' (moment, force)", wrench, *shapes)
    return found
