# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whether kernels can be compiled: the one place that looks for numba.

Without numba, with a version that is too old, or with ``NUMBA_DISABLE_JIT=1``, the same source is
interpreted: with equal results up to rounding, but more than a thousand times slower.

"""

from contextlib import suppress
import gc
import sys

OLDEST = 0, 58
REQUIREMENT = f'numba>={".".join(map(str, OLDEST))}'


def _obstacle() -> str:
    """Return why numba cannot be used; empty if it can."""
    try:
        import llvmlite.binding    # noqa: F401
        import numba
    except (ImportError, OSError) as error:
        if getattr(error, 'name', None) in ('llvmlite', 'numba'):
            return 'numba is not installed'
        # For example, it was built for another NumPy.
        return f'numba cannot be loaded ({error})'
    if numba.version_info.short < OLDEST:
        return f'numba {numba.__version__} is too old'
    return ''


def _without_collecting() -> str:
    """Return `_obstacle` without the garbage collector, a tenth of the time of importing numba."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _obstacle()
    finally:
        if collecting:
            gc.enable()


OBSTACLE = _without_collecting()
COMPILES = not OBSTACLE and not sys.modules['numba'].config.DISABLE_JIT
_pending = [
    f'{OBSTACLE}: dynamics are interpreted, correct but more than a thousand times slower. '
    f'Install it in a virtual environment: pip install "{REQUIREMENT}"'] if OBSTACLE else []


def warning() -> str:
    """Return a warning about interpreted kernels, once per program; else an empty text."""
    if _pending:
        from multiprocessing import parent_process
        if parent_process() is None:        # worker processes do not repeat it
            with suppress(IndexError):
                return _pending.pop()
    return ''
