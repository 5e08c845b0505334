# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How the kernels are compiled: the one place for numba's settings and its cache.

With ``NUMBA_DISABLE_JIT=1`` in the environment both decorators return the function itself, so that
the same source runs interpreted.

"""

import gc
import hashlib
import os
from pathlib import Path

import numba

# 'contract' lets a*b + c become one instruction, 'nsz' lets x + 0 become x whatever the sign of a
# zero; sums are never reordered.
_OPTIONS = {'fastmath': {'contract', 'nsz'}, 'error_model': 'numpy'}


def cache_directory():
    """
    Return the directory that holds this version's compiled kernels.

    Its name holds a digest of the package's sources: numba itself only looks at the file of the
    kernel, and would miss a change in a helper that lives in another file.

    Returns
    -------
    pathlib.Path
        A directory below ``$XDG_CACHE_HOME`` (default ``~/.cache``); it need not exist yet.

    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob('*.py')):
        digest.update(source.read_bytes())
    root = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache')
    return root / 'rbd_ros' / digest.hexdigest()[:16]


_CACHE_DIRECTORY = str(cache_directory())

helper = numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
                    **_OPTIONS)


def kernel(function, **options):
    """
    Make a kernel: a function that `prepare` compiles for exactly the types it names.

    Called with others it raises TypeError, rather than stop a control loop for seconds to compile
    itself once more. The machine code is kept in the cache directory.

    """
    chosen_by_user = numba.config.CACHE_DIR
    # numba reads this setting while it decorates, and only then.
    numba.config.CACHE_DIR = chosen_by_user or _CACHE_DIRECTORY
    try:
        # Kernels allocate nothing: without numba's counting of references a call from Python takes
        # two thirds of the time.
        dispatcher = numba.njit(cache=True, _nrt=False, no_cfunc_wrapper=True, **_OPTIONS,
                                **options)(function)
    finally:
        numba.config.CACHE_DIR = chosen_by_user
    # What disable_compile() does, which itself wants a compiled signature first.
    dispatcher._can_compile = False
    return dispatcher


def long_kernel(function):
    """Make a kernel that lets other Python threads run while it does."""
    return kernel(function, nogil=True)


def prepare(kernel, *arguments):
    """
    Compile a kernel for the types of these arguments, or load it from the cache.

    Returns
    -------
    bool
        Whether there was something to do.

    """
    if numba.config.DISABLE_JIT:
        return False
    known = len(kernel.overloads)
    kernel.disable_compile(False)
    # A quarter of the time would go to the garbage collector, which finds nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        kernel.compile(tuple(numba.typeof(argument) for argument in arguments))
    finally:
        if collecting:
            gc.enable()
        # numba wants a signature for that, of which there is none after an error.
        if kernel.signatures:
            kernel.disable_compile()
    return len(kernel.overloads) > known
