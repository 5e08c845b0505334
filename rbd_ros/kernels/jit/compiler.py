# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whether the kernels can be compiled: the one place that looks for numba.

Without numba, with one that is too old, or with ``NUMBA_DISABLE_JIT=1`` in the environment, the
kernels are interpreted, from the same source: results are the same up to rounding, and
come more than a thousand times later.

"""

from contextlib import suppress
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
        # Made for another NumPy, for example.
        return f'numba cannot be loaded ({error})'
    if numba.version_info.short < OLDEST:
        return f'numba {numba.__version__} is too old'
    return ''


OBSTACLE = _obstacle()
COMPILES = not OBSTACLE and not sys.modules['numba'].config.DISABLE_JIT
_unsaid = [
    f'{OBSTACLE}: dynamics are interpreted, correct but more than a thousand times slower. '
    f'Install it in a virtual environment: pip install "{REQUIREMENT}"'] if OBSTACLE else []


def warning() -> str:
    """
    Return what the user has to know, to whoever asks first.

    Others get an empty text, as do the processes that a command starts to share its work, and
    everyone if there is nothing to say.

    """
    if _unsaid:
        from multiprocessing import parent_process
        if parent_process() is None:
            with suppress(IndexError):
                return _unsaid.pop()
    return ''
