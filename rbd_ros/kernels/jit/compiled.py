# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How the kernels are compiled: the one place for numba's settings and its cache.

Without numba, or with ``NUMBA_DISABLE_JIT=1`` in the environment, the same source runs
interpreted.

Kernels are compiled for contiguous float64 vectors only. Called with anything else, such as a list
or a slice, or for the first time, a kernel converts its vectors and is compiled if necessary: this
costs time, but a type that was not expected never stops a control loop to compile.

What it gains: without numba's counting of references a call from Python takes two thirds of the
time, without names of arguments 8 % less.
What guards it: kernels allocate nothing, and tests call them with all kinds of arguments.
What breaks it: ``_nrt``, ``_fold_args``, ``_compile_for_args`` and ``_cache`` are internal to
numba (0.58 to 0.68 have them).

"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
import gc
from inspect import signature
from threading import RLock
from typing import Any

import numpy as np
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.compiler import COMPILES
from rbd_ros.kernels.jit.kernel_cache import cache_directory, Directory, KernelCache

if COMPILES:
    import numba
    from numba.core.registry import CPUDispatcher
    # They tell the compiler what it has to know of lanes and of angles.
    from rbd_ros.kernels.lanes import compiled_lanes    # noqa: F401
    from rbd_ros.kernels.lanes import compiled_sines    # noqa: F401

# 'contract' lets a*b + c become one instruction, 'nsz' lets x + 0 become x whatever the sign of a
# zero; sums are never reordered.
_OPTIONS = {'fastmath': {'contract', 'nsz'}, 'error_model': 'numpy'}
_preparing = RLock()
_urgent: list[object] = []
_elsewhere: Any = None
_directory = Directory(cache_directory()) if COMPILES else None
# Parameters of kernels that are vectors of the user.
VECTORS = {'q', 'v', 'a', 'tau', 'motion', 'v_r', 'a_r', 'dq', 'dv', 'da', 'given_da',
           'given_dtau', 'x', 'y', 'z'}
MASK = 'prescribed'
FLOAT, BOOL = np.dtype(float), np.dtype(bool)


def real_array(value: object) -> np.ndarray | None:
    """
    Return a new array of float64, or None if the value is not real numbers.

    Parameters
    ----------
    value : object
        Anything.

    """
    try:
        if isinstance(value, np.ma.MaskedArray):
            return None             # masked entries would be taken for numbers
        array = np.asarray(value)
        return np.array(array, float) if array.dtype.kind in 'fiu' else None
    except Exception:
        # It cannot be converted: libraries raise errors of their own.
        return None


def vector_places(function: Callable[..., Any]) -> list[tuple[int, np.dtype[Any]]]:
    """Return which arguments of a kernel are vectors or masks of the user, and of what type."""
    return [(k, BOOL if name == MASK else FLOAT)
            for k, name in enumerate(signature(function).parameters)
            if name in VECTORS or name == MASK]


def with_vectors(places: Iterable[tuple[int, np.dtype[Any]]],
                 arguments: Iterable[Any]) -> list[Any] | None:
    """Return arguments with all vectors as kernels take them; None if one is not a vector."""
    converted = list(arguments)
    for k, dtype in places:
        x = converted[k]
        if not (type(x) is np.ndarray and x.dtype is dtype and x.ndim == 1 and x.flags.carray):
            if dtype is BOOL:
                x = x.copy() if type(x) is np.ndarray and x.dtype is BOOL else None
            else:
                x = real_array(x)
            if x is None or x.ndim != 1:
                return None
            converted[k] = x
    return converted


if COMPILES:
    class PositionalDispatcher(CPUDispatcher):
        """A compiled function without names and defaults of arguments, which take time."""

        _fold_args = False
        vectors: list[tuple[int, np.dtype[Any]]]

        def _compile_for_args(self, *arguments: Any) -> Callable[..., Any]:
            """Return what numba calls in place of the kernel with arguments of other types."""
            return self.convert_and_run

        def convert_and_run(self, *arguments: Any) -> Any:
            """Run the kernel with its vectors converted; False if one of them is not a vector."""
            converted = with_vectors(self.vectors, arguments)
            return False if converted is None else prepare(self, *converted)(*converted)

    class StatesDispatcher(PositionalDispatcher):
        """The same for many states, whose arrays are converted elsewhere: it refuses others."""

        def _compile_for_args(self, *arguments: Any) -> Callable[..., Any]:
            """Refuse the arguments."""
            raise TypeError('the kernel was not prepared for arguments of these types')


def helper(function: Callable[..., Any]) -> Any:
    """Make a function that becomes part of the kernels that call it."""
    if not COMPILES:
        return function
    return numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
                      **_OPTIONS)(function)


def kernel(function: Callable[..., Any], **options: bool) -> Any:
    """Make a kernel; its machine code is kept in the cache directory."""
    return _dispatcher(PositionalDispatcher, function, options) if COMPILES else interpreted(
        function)


def long_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel that lets other Python threads run while it does."""
    return kernel(function, nogil=True)


def states_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel for many states: a `long_kernel` that raises TypeError on other types."""
    return (_dispatcher(StatesDispatcher, function, {'nogil': True}) if COMPILES
            else quietly(function))


def _dispatcher(kind: type, function: Callable[..., Any], options: dict[str, bool]) -> Any:
    """Return a function that numba compiles."""
    dispatcher = kind(function, targetoptions={
        'boundscheck': None, '_nrt': False, 'no_cfunc_wrapper': True, **_OPTIONS, **options})
    # Set later, it lets numba treat arguments without a type as others of a wrong one.
    dispatcher.targetoptions['nopython'] = True
    dispatcher.vectors = vector_places(function)
    if _directory is not None:
        dispatcher._cache = KernelCache(function, _directory)
    return dispatcher


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is not compiled."""
    places, run = vector_places(function), quietly(function)

    @wraps(function)
    def converted(*arguments: Any) -> Any:
        vectors = with_vectors(places, arguments)
        return False if vectors is None else run(*vectors)
    return converted


def quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function during which NumPy does not warn of numbers that are not finite."""
    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        # What is not finite is seen in the end, as in compiled kernels.
        with np.errstate(all='ignore'):
            return function(*arguments)
    return quiet


def keep_in_no_file() -> None:
    """Keep kernels that are made from now on in memory alone."""
    global _directory
    _directory = None


BEING_COMPILED = 'kernels that it needs are being compiled'


class NotCompiled(RbdError):
    """
    A kernel is being compiled, and the thread that needs it must not wait for that.

    Parameters
    ----------
    kernel : kernel
        The kernel.
    types : tuple of numba types
        Of its arguments.

    """

    def __init__(self, kernel: Any, types: tuple[Any, ...]) -> None:
        super().__init__(f'{BEING_COMPILED}; that happens once, and takes up to a minute')
        self._kernel, self._types = kernel, types

    def is_over(self) -> bool:
        """Return whether the kernel has been compiled meanwhile."""
        return self._types in self._kernel.overloads


def compile_elsewhere(process: Any) -> None:
    """From now on, let another process compile: an `rbd_ros.kernels.jit.elsewhere.Elsewhere`."""
    global _elsewhere
    _elsewhere = process


@contextmanager
def urgent() -> Iterator[None]:
    """Mark what is done as more urgent than compiling what nobody needs yet."""
    mark = object()
    _urgent.append(mark)
    try:
        yield
    finally:
        _urgent.remove(mark)


def is_urgent() -> bool:
    """Return whether something urgent is being done, in any thread."""
    return bool(_urgent)


def prepare(kernel: Any, *arguments: Any) -> Callable[..., Any]:
    """
    Compile a kernel for the types of these arguments, or load it from the cache.

    Returns
    -------
    callable
        The kernel for these types.

    Raises
    ------
    NotCompiled
        If this thread must not wait; the kernel is then compiled in the background.

    """
    if not COMPILES:
        return kernel
    types = tuple(numba.typeof(argument) for argument in arguments)
    if types not in kernel.overloads:
        if _elsewhere is None or _elsewhere.may_wait():
            compile_for(kernel, types)
        elif not load(kernel, types):
            _elsewhere.request(kernel, types)
            raise NotCompiled(kernel, types)
    return kernel.overloads[types].entry_point


def load(kernel: Any, types: tuple[Any, ...]) -> bool:
    """Load a kernel if it is in the cache, and no other thread compiles; return whether it is."""
    if not _preparing.acquire(blocking=False):
        return False
    try:
        if kernel._cache.holds(types, kernel.targetctx):
            compile_for(kernel, types)
        return types in kernel.overloads
    finally:
        _preparing.release()


def compile_for(kernel: Any, types: tuple[Any, ...]) -> None:
    """Do what `prepare` does for types of arguments, in any thread."""
    # numba compiles in one thread at a time anyway.
    with urgent(), _preparing:
        if types in kernel.overloads:
            return
        if _elsewhere is not None:
            kernel._cache.obtain(types, kernel.targetctx,
                                 partial(_elsewhere.compile_kernel, kernel, types))
        # A quarter of the time would go to the garbage collector, which finds nothing.
        collecting = gc.isenabled()
        gc.disable()
        try:
            kernel.compile(types)
        finally:
            if collecting:
                gc.enable()
