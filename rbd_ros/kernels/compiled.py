# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How the kernels are compiled: the one place for numba's settings and its cache.

Without numba, or with ``NUMBA_DISABLE_JIT=1`` in the environment, the same source runs
interpreted; kernels refuse what they would refuse compiled.

What it gains: without numba's counting of references a call from Python takes two thirds of the
time, without names of arguments 8 % less, and a call with another type is an error, not
seconds of compiling in a control loop.
What guards it: kernels allocate nothing, and tests call one with what it was not prepared for.
What breaks it: ``_nrt``, ``_fold_args``, ``_explain_matching_error``, ``_can_compile`` and
``_cache`` are internal to numba (0.58 to 0.68 have them). Without the last two, kernels would be
compiled when they are first called.

"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
import gc
from threading import RLock
from typing import Any

import numpy as np
from rbd_ros.compiler import COMPILES
from rbd_ros.errors import RbdError
from rbd_ros.kernel_cache import cache_directory, Directory, KernelCache

if COMPILES:
    import numba
    from numba.core.registry import CPUDispatcher
    # They tell the compiler what it has to know of lanes and of angles.
    from rbd_ros.kernels import compiled_lanes, compiled_sines    # noqa: F401

# 'contract' lets a*b + c become one instruction, 'nsz' lets x + 0 become x whatever the sign of a
# zero; sums are never reordered.
_OPTIONS = {'fastmath': {'contract', 'nsz'}, 'error_model': 'numpy'}
_preparing = RLock()
_urgent: list[object] = []
_elsewhere: Any = None
_directory = Directory(cache_directory()) if COMPILES else None
_NumbaError: type[Exception] = numba.core.errors.NumbaError if COMPILES else TypeError
# What a kernel raises on a type that it was not compiled for, on an empty list, while another
# thread compiles it, and on a kind of array that numba does not know.
NOT_A_VECTOR = (TypeError, ValueError, RuntimeError, _NumbaError)


if COMPILES:
    class ByPlace(CPUDispatcher):
        """A compiled function without names and defaults of arguments, which take time."""

        _fold_args = False

        def _explain_matching_error(self, *arguments: Any) -> None:
            """Refuse the arguments: who calls converts them, and says what is wrong with them."""
            raise TypeError('the kernel was not prepared for arguments of these types')


def helper(function: Callable[..., Any]) -> Any:
    """Make a function that becomes part of the kernels that call it."""
    if not COMPILES:
        return function
    return numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
                      **_OPTIONS)(function)


def kernel(function: Callable[..., Any], **options: bool) -> Any:
    """
    Make a kernel: a function that `prepare` compiles for exactly the types of its arguments.

    Called with other types it raises TypeError, rather than stopping a control loop for seconds to
    compile itself again. The machine code is kept in the cache directory.

    """
    if not COMPILES:
        return interpreted(function)
    dispatcher = ByPlace(function, targetoptions={
        'nopython': True, 'boundscheck': None, '_nrt': False, 'no_cfunc_wrapper': True, **_OPTIONS,
        **options})
    if _directory is not None:
        dispatcher._cache = KernelCache(function, _directory)
    # As disable_compile() does, which requires a compiled signature.
    dispatcher._can_compile = False
    return dispatcher


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is not compiled, and takes what it was prepared for, as if it were."""
    prepared: set[tuple[Any, ...]] = set()

    @wraps(function)
    def checked(*arguments: Any) -> Any:
        if _types(arguments) not in prepared:
            raise TypeError('the kernel was not prepared for arguments of these types')
        # What is not finite is seen in the end, as in compiled kernels.
        with np.errstate(all='ignore'):
            return function(*arguments)
    checked.overloads = prepared        # type: ignore[attr-defined]
    return checked


def _types(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what an interpreted kernel distinguishes arguments by."""
    return tuple((x.dtype, x.ndim) if isinstance(x, np.ndarray) else type(x) for x in arguments)


def long_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel that lets other Python threads run while it does."""
    return kernel(function, nogil=True)


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
    """From now on, let another process compile: an `rbd_ros.kernels.elsewhere.Elsewhere`."""
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


def prepare(kernel: Any, *arguments: Any) -> bool:
    """
    Compile a kernel for the types of these arguments, or load it from the cache.

    Returns
    -------
    bool
        Whether there was something to do.

    Raises
    ------
    NotCompiled
        If this thread must not wait; the kernel is then compiled in the background.

    """
    if not COMPILES:
        types, known = _types(arguments), len(kernel.overloads)
        kernel.overloads.add(types)
        return len(kernel.overloads) > known
    types = tuple(numba.typeof(argument) for argument in arguments)
    if types in kernel.overloads:
        return False
    if _elsewhere is None or _elsewhere.may_wait():
        return compile_for(kernel, types)
    if _preparing.acquire(blocking=False):
        try:
            if kernel._cache.holds(types, kernel.targetctx):
                return compile_for(kernel, types)
        finally:
            _preparing.release()
    _elsewhere.request(kernel, types)
    raise NotCompiled(kernel, types)


def compile_for(kernel: Any, types: tuple[Any, ...]) -> bool:
    """Do what `prepare` does for types of arguments, in any thread."""
    # One at a time: another thread would end the permission to compile.
    with urgent(), _preparing:
        if types in kernel.overloads:
            return False
        if _elsewhere is not None:
            # Before compiling is permitted: calls in other threads would wait for it.
            kernel._cache.obtain(types, kernel.targetctx,
                                 partial(_elsewhere.compile_kernel, kernel, types))
        kernel.disable_compile(False)
        # A quarter of the time would go to the garbage collector, which finds nothing.
        collecting = gc.isenabled()
        gc.disable()
        try:
            kernel.compile(types)
        finally:
            if collecting:
                gc.enable()
            # numba requires a signature for that; after an error there is none.
            if kernel.signatures:
                kernel.disable_compile()
        return True
