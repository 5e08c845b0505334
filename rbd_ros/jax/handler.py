# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The function that XLA calls on the CPU: it runs `rbd_ros.batch` on the memory of XLA's arrays.

The structures are those of XLA's C API for foreign functions, ``xla/ffi/api/c_api.h`` in the
folder `jax.ffi.include_dir()`. Fields that are not used have names that begin with _.

"""

import atexit
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import (
    byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p, CFUNCTYPE, POINTER,
    py_object, pythonapi, sizeof, Structure)
from functools import cache, partial
from hashlib import sha256
from math import prod
from pickle import dumps
from threading import local
from typing import Any

import jax
import numpy as np
from rbd_ros import batch
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.memory.results import cut_derivatives

TARGET = 'rbd_ros'      # under which XLA knows the handler
VERSION = 0, 3          # of the API, with these structures
METADATA = 1            # the type of an extension
INTERNAL_ERROR = 13
FLOAT = np.dtype(float)
CACHED = 2 ** 18         # numbers of the derivatives that are multiplied at once


def _structure(*fields: tuple[str, Any]) -> type[Structure]:
    return type('_Structure', (Structure,), {'_fields_': fields})


_HEAD = ('_struct_size', c_size_t), ('extension', c_void_p)
_Version = _structure(*_HEAD, ('major', c_int), ('minor', c_int))
_Metadata = _structure(('_struct_size', c_size_t), ('version', _Version), ('_traits', c_uint32),
                       ('_state_type', c_int64))
_Extension = _structure(('_struct_size', c_size_t), ('type', c_int), ('_next', c_void_p),
                        ('metadata', POINTER(_Metadata)))
_NewError = _structure(*_HEAD, ('message', c_char_p), ('code', c_int))
_Api = _structure(*_HEAD, ('version', _Version), ('_internal', c_void_p),
                  ('create_error', CFUNCTYPE(c_void_p, POINTER(_NewError))))
_Buffer = _structure(*_HEAD, ('_dtype', c_int), ('data', c_void_p), ('rank', c_int64),
                     ('lengths', POINTER(c_int64)))
_Buffers = _structure(*_HEAD, ('count', c_int64), ('_types', c_void_p),
                      ('items', POINTER(POINTER(_Buffer))))
_Scalar = _structure(('_dtype', c_int), ('value', POINTER(c_int64)))
_Attributes = _structure(*_HEAD, ('_count', c_int64), ('_types', c_void_p), ('_names', c_void_p),
                         ('items', POINTER(POINTER(_Scalar))))
_Frame = _structure(('_struct_size', c_size_t), ('extension', POINTER(_Extension)),
                    ('api', POINTER(_Api)), ('_context', c_void_p), ('_stage', c_int),
                    ('arguments', _Buffers), ('results', _Buffers), ('attributes', _Attributes))

# By number: a function of states and results, and that of arrays of XLA which returns results.
_functions: dict[int, tuple[Callable[..., Any], Callable[..., Sequence[np.ndarray]]]] = {}
_thread = local()


def block_width(model: Model, name: str) -> int | None:
    """Return the length of the rows to which a kernel writes `Derivatives`; None if it cannot."""
    states = QUANTITIES[name].states
    if states is None or states.cut is not cut_derivatives or model.loops is not None:
        return None
    return states.written(states.shapes(model, model.nv))[0][0]


def _cut(model: Model, name: str, *arrays: np.ndarray) -> Sequence[np.ndarray]:
    """Return the results of which rows of a kernel consist, in place."""
    states = QUANTITIES[name].states
    if states is None or block_width(model, name) is None:
        return arrays
    return tuple(states.results(states.shapes(model, model.nv), arrays))


def _multiply(model: Model, name: str, transposed: bool, *arrays: np.ndarray,
              out: np.ndarray) -> None:
    """Write products of derivatives in rows of a kernel, and of vectors, the last array."""
    # Some states at a time: their derivatives stay in the caches.
    *states, x = arrays
    derivatives, n, width = getattr(batch, name), model.nv, block_width(model, name)
    assert width is not None
    rows = np.empty((min(len(x), max(1, CACHED // width)), width))
    for first in range(0, len(x), len(rows)):
        part = slice(first, min(first + len(rows), len(x)))
        some = rows[:part.stop - first]
        derivatives(model, *(y[part] for y in states), out=_cut(model, name, some))
        J = some[:, :3 * n * n].reshape(-1, n, 3 * n)
        if transposed:
            np.matmul(x[part, None, :], J, out=out[part, None, :])
        else:
            np.matmul(J, x[part, :, None], out=out[part, :, None])


@cache
def number_of(model: Model, name: str, link: str | None, transposed: bool | None = None) -> int:
    """
    Return the number by which compiled programs call a function of `rbd_ros.batch`.

    With ``transposed``, it stands for products of its rows and vectors, see `_multiply`.

    JAX may keep programs on disk and load them in other processes: equal numbers must stand for
    equal robots. Functions and their robots are kept until the process ends, as long as programs
    may exist that call them.

    """
    digest = sha256(dumps((model, name, link, transposed))).digest()
    number = int.from_bytes(digest[:8], 'little', signed=True)
    if transposed is None:
        function = partial(getattr(batch, name), model, **{} if link is None else {'link': link})
        _functions[number] = function, partial(_cut, model, name)
    else:
        _functions[number] = partial(_multiply, model, name, transposed), lambda *arrays: arrays
    return number


def _handle(pointer: Any) -> int | None:
    """Answer a call of XLA; return the address of an error, or None."""
    frame = pointer.contents
    if frame.extension and frame.extension.contents.type == METADATA:
        version = frame.extension.contents.metadata.contents.version
        version.major = VERSION[0]
        version.minor = min(VERSION[1], frame.api.contents.version.minor)
        return None
    try:
        if not hasattr(_thread, 'kept'):
            # Otherwise the state of a thread of XLA, with buffers of robots, ends with the call.
            pythonapi.PyGILState_Ensure()
            _thread.kept = True
        arguments, results = frame.arguments, frame.results
        states = arguments.items[:arguments.count]
        leading = states[0].contents.rank - 1
        function, cut = _functions[frame.attributes.items[0].contents.value[0]]
        compute_rows(function, [_rows(x, leading) for x in states],
                     cut(*[_rows(x, leading) for x in results.items[:results.count]]))
        return None
    except BaseException as error:
        # Without an error XLA would continue with results that have not been written.
        text = f'rbd_ros: {type(error).__name__}: {error}'.encode()
        return frame.api.contents.create_error(byref(
            _NewError(sizeof(_NewError), None, text, INTERNAL_ERROR)))


def _rows(pointer: Any, leading: int) -> np.ndarray:
    """Return an array of XLA, in place, with its leading axes made one."""
    buffer = pointer.contents
    lengths = buffer.lengths[:buffer.rank]
    memory = (c_char * (FLOAT.itemsize * prod(lengths))).from_address(buffer.data or 0)
    return np.ndarray((prod(lengths[:leading]), *lengths[leading:]), FLOAT, memory)


@atexit.register
def _finish() -> None:
    """Wait for programs whose results exist: a thread of XLA that needs Python later blocks."""
    if _functions:
        for array in jax.live_arrays('cpu'):
            with suppress(Exception):   # for instance, no more threads can be started
                array.block_until_ready()


def compute_rows(function: Callable[..., Any], states: Sequence[np.ndarray],
                 results: Sequence[np.ndarray]) -> None:
    """Write the results of states, one per row; those that cannot be computed are NaN."""
    try:
        function(*states, out=results[0] if len(results) == 1 else tuple(results))
        return
    except KernelNotReady:
        raise
    except RbdError:
        count = len(states[0])
    finite = np.all([np.isfinite(x).all(axis=1) for x in states], axis=0)
    if not finite.all():
        found = [x[finite] for x in results]
        compute_rows(function, [x[finite] for x in states], found)
        for x, part in zip(results, found):
            x[finite], x[~finite] = part, np.nan
    elif count > 1:
        for half in (slice(count // 2), slice(count // 2, count)):
            compute_rows(function, [x[half] for x in states], [x[half] for x in results])
    else:
        for x in results:
            x[...] = np.nan


_HANDLER = CFUNCTYPE(c_void_p, POINTER(_Frame))(_handle)
_new_capsule = pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
jax.ffi.register_ffi_target(TARGET, _new_capsule(_HANDLER, None, None), platform='cpu')
