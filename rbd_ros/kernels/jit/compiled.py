# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Decorators that make kernels, and their compilation: the one place for numba's settings.

Without numba, or with ``NUMBA_DISABLE_JIT=1`` in the environment, the same source runs
interpreted.

Kernels are compiled for contiguous float64 vectors only. Called with other vectors, such as lists
or slices, a kernel converts them: that costs time, but an unexpected type never interrupts a
control loop for a compilation.

Benefit: a call from Python takes two thirds of the time without numba's reference counting, and
8 % less without keyword arguments. Compiling takes 13 % less time, a third less for the largest
kernels, as functions that are inlined are neither optimized nor translated by themselves.
Safeguard: kernels allocate nothing; tests call them with arguments of all kinds.
Risk: ``_nrt``, ``_fold_args``, ``_compile_for_args``, ``_cache`` and the methods of a library are
internal to numba (present in 0.58 to 0.68).

"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from operator import is_
from threading import local, RLock
from typing import Any

import numpy as np
from rbd_ros._internal.arrays import FLOAT, real_array
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.kernel_cache import cache_directory, Directory, KernelCache
from rbd_ros.kernels.jit.numba_backend import COMPILES, without_collecting

if COMPILES:
    import numba
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.registry import CPUDispatcher

# 'contract' allows a*b + c in one instruction, 'nsz' allows x + 0 = x for either sign of zero;
# sums are never reordered.
_OPTIONS = {'fastmath': {'contract', 'nsz'}, 'error_model': 'numpy'}
_compiling = RLock()
_foreground: list[object] = []
_compile_process: Any = None
_directory = Directory(cache_directory()) if COMPILES else None
# Parameters of kernels that are vectors of the user.
VECTORS = {'q', 'v', 'a', 'tau', 'motion', 'v_r', 'a_r', 'dq', 'dv', 'da', 'given_da',
           'given_dtau', 'x', 'y', 'z'}
MASK = 'prescribed'
BOOL, SEQUENCES, array = np.dtype(bool), {list, tuple}, np.array
VectorTypes = list[tuple[int, np.dtype[Any]]]


# -- Conversion of arguments. -------------------------------------------------------------------
def vector_types(function: Callable[..., Any]) -> VectorTypes:
    """Return index and type of the arguments of a kernel that are the user's vectors or masks."""
    return [(k, BOOL if name == MASK else FLOAT)
            for k, name in enumerate(signature(function).parameters)
            if name in VECTORS or name == MASK]


def convert_vectors(types: VectorTypes, arguments: Iterable[Any]) -> list[Any] | None:
    """Return arguments with their vectors converted; None if one cannot be converted."""
    converted = list(arguments)
    for k, dtype in types:
        x = converted[k]
        if type(x) in SEQUENCES and dtype is FLOAT:     # the most usual case, without a call
            try:
                x = array(x)
            except Exception:
                return None
            if x.dtype is FLOAT and x.ndim == 1:
                converted[k] = x
                continue
        if not (type(x) is np.ndarray and x.dtype is dtype and x.ndim == 1 and x.flags.carray):
            if dtype is BOOL:
                x = x.copy() if type(x) is np.ndarray and x.dtype is BOOL else None
            else:
                x = real_array(x)
            if x is None or x.ndim != 1:
                return None
            converted[k] = x
    return converted


# -- Decorators. --------------------------------------------------------------------------------
if COMPILES:
    # Otherwise compiled functions ignore masks, although numba compiles none for masked arrays.
    np.ma.MaskedArray.__numba_array_subtype_dispatch__ = True    # type: ignore[attr-defined]

    class KernelDispatcher(CPUDispatcher):
        """A compiled function without keyword and default arguments, which would take time."""

        _fold_args = False
        vectors: VectorTypes

        def _compile_for_args(self, *arguments: Any) -> Callable[..., Any]:
            """Return the function that numba calls for arguments of other types."""
            return self.convert_and_run

        def convert_and_run(self, *arguments: Any) -> Any:
            """Run the kernel with its vectors converted; False if one cannot be converted."""
            converted = convert_vectors(self.vectors, arguments)
            if converted is None:
                return False
            if all(map(is_, arguments, converted)):
                return prepare(self, *converted)(*converted)
            return self(*converted)     # faster than `prepare`, once it is compiled

    class StatesDispatcher(KernelDispatcher):
        """A kernel for many states, whose caller converts the arrays: rejects other types."""

        def _compile_for_args(self, *arguments: Any) -> Callable[..., Any]:
            raise TypeError('the kernel was not prepared for arguments of these types')

    class HelperLibrary(JITCodeLibrary):
        """The code of a helper, which is optimized as part of the kernels that contain it."""

        class codegen:
            """Has no addresses, since it makes no machine code."""

            @staticmethod
            def set_env(name: str, environment: Any) -> None:
                pass

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    class HelperCompiler(Compiler):
        """Compiles helpers, whose code goes to a `HelperLibrary`."""

        def define_pipelines(self) -> Any:
            self.state.library = HelperLibrary(self.state.targetctx.codegen(),
                                               self.state.func_id.func_qualname)
            return super().define_pipelines()


def helper(function: Callable[..., Any]) -> Any:
    """Make a function that is inlined into the kernels that call it."""
    if not COMPILES:
        return function
    return numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
                      pipeline_class=HelperCompiler, **_OPTIONS)(function)


def kernel(function: Callable[..., Any], **options: bool) -> Any:
    """Make a kernel; its machine code is kept in the cache directory."""
    return _dispatcher(KernelDispatcher, function, options) if COMPILES else interpreted(function)


def long_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel that releases Python's global interpreter lock."""
    return kernel(function, nogil=True)


def states_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel for many states: a `long_kernel` that raises TypeError on other types."""
    return (_dispatcher(StatesDispatcher, function, {'nogil': True}) if COMPILES
            else without_warnings(function))


def _dispatcher(kind: type, function: Callable[..., Any], options: dict[str, bool]) -> Any:
    dispatcher = kind(function, targetoptions={
        'boundscheck': None, '_nrt': False, 'no_cfunc_wrapper': True, **_OPTIONS, **options})
    # Set after construction: numba then treats arguments it has no type for as wrong types.
    dispatcher.targetoptions['nopython'] = True
    dispatcher.vectors = vector_types(function)
    if _directory is not None:
        dispatcher._cache = KernelCache(function, _directory, compiled_elsewhere)
    return dispatcher


_interpreting = local()


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is not compiled."""
    types, run = vector_types(function), without_warnings(function)

    @wraps(function)
    def converted(*arguments: Any) -> Any:
        if getattr(_interpreting, 'kernel', False):     # called by another kernel
            return function(*arguments)
        vectors = convert_vectors(types, arguments)
        return False if vectors is None else run(*vectors)
    return converted


def without_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an interpreted kernel in which NumPy does not warn of non-finite numbers."""
    @wraps(function)
    def run(*arguments: Any) -> Any:
        # As compiled kernels, it checks its results in the end.
        _interpreting.kernel = True
        try:
            with np.errstate(all='ignore'):
                return function(*arguments)
        finally:
            _interpreting.kernel = False
    return run


def disable_disk_cache() -> None:
    """Keep kernels that are defined from now on in memory only."""
    global _directory
    _directory = None


# -- Compilation. -------------------------------------------------------------------------------
BEING_COMPILED = 'kernels that it needs are being compiled'


class KernelNotReady(RbdError):
    """A kernel is being compiled, and the thread that needs it must not wait."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        super().__init__(f'{BEING_COMPILED}; that happens once, and takes up to a minute')
        self.is_over = is_over      # returns whether it has been compiled in the meantime


def use_compile_process(process: Any) -> None:
    """Compile in a `CompileProcess` from now on; None: in this process."""
    global _compile_process
    _compile_process = process


def may_wait() -> bool:
    """Return whether this thread may wait for the compiler."""
    return _compile_process is None or _compile_process.may_wait()


@contextmanager
def foreground() -> Iterator[None]:
    """Give the work in this context precedence over compiling kernels in advance."""
    mark = object()
    _foreground.append(mark)
    try:
        yield
    finally:
        _foreground.remove(mark)


def foreground_busy() -> bool:
    """Return whether a thread works in a `foreground` context."""
    return bool(_foreground)


def compiled_elsewhere(function: Callable[..., Any], types: tuple[Any, ...]) -> bytes | None:
    """Return a kernel from the `CompileProcess`; None: compile it here."""
    return None if _compile_process is None else _compile_process.compile_kernel(function, types)


def prepare(kernel: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a compiled kernel; raise KernelNotReady if this thread must not wait for it."""
    if not COMPILES:
        return kernel
    types = tuple(numba.typeof(argument) for argument in arguments)
    if types not in kernel.overloads:
        if may_wait():
            compile_for(kernel, types)
        elif not load(kernel, types):
            _compile_process.request(kernel, types)
            raise KernelNotReady(lambda: types in kernel.overloads)
    return kernel.overloads[types].entry_point


def load(kernel: Any, types: tuple[Any, ...]) -> bool:
    """Load a kernel from the cache unless another thread compiles; return whether it is ready."""
    if not _compiling.acquire(blocking=False):
        return False
    try:
        if kernel._cache.holds(types, kernel.targetctx):
            compile_for(kernel, types)
        return types in kernel.overloads
    finally:
        _compiling.release()


def compile_for(kernel: Any, types: tuple[Any, ...]) -> None:
    """Compile a kernel for these types of arguments, or load it from the cache."""
    # numba compiles in one thread at a time anyway.
    with foreground(), _compiling:
        if types not in kernel.overloads:
            with without_collecting():      # a quarter of the time
                kernel.compile(types)
