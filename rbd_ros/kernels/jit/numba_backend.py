# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How kernels run: the one place that looks for numba.

The environment variable ``RBD_ROS_KERNELS`` chooses one of `WAYS`. By default, numba compiles
them. Where it is missing or too old, they are traced for each robot, and the system's C compiler
compiles that; see `rbd_ros.kernels.jit.machine_code`. Without either, or with
``NUMBA_DISABLE_JIT=1``, the same source is interpreted: with equal results up to rounding, but
more than a thousand times slower.

"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import gc
import os
import shlex
import shutil
import sys

from rbd_ros.errors import RbdError

VARIABLE = 'RBD_ROS_KERNELS'
RUN_AS = {'numba': 'kernels compiled by numba', 'cc': 'machine code of the C compiler',
          'python': 'interpreted Python'}
WAYS = tuple(RUN_AS)
OLDEST = 0, 58
REQUIREMENT = f'numba>={".".join(map(str, OLDEST))}'


@contextmanager
def without_collecting() -> Iterator[None]:
    """Stop the garbage collector, which finds nothing, but takes time, where much is created."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@without_collecting()       # a tenth of the time
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


def _chosen() -> tuple[str, str]:
    """Return why numba is not used, or an empty text, and how kernels run."""
    wanted = os.environ.get(VARIABLE, '')
    if wanted not in ('', *WAYS):
        raise RbdError(f"{VARIABLE} is '{wanted}': set it to one of {', '.join(WAYS)}, or unset "
                       'it')
    if wanted in WAYS[1:]:
        return f'numba is not used ({VARIABLE} is {wanted})', wanted
    if obstacle := _obstacle():
        if wanted:
            raise RbdError(f'{VARIABLE} is {wanted}, but {obstacle}: pip install "{REQUIREMENT}", '
                           f'or unset {VARIABLE}')
        return obstacle, 'cc' if shutil.which(compiler_command()[0]) else 'python'
    return '', 'python' if sys.modules['numba'].config.DISABLE_JIT else 'numba'


def compiler_command() -> tuple[str, ...]:
    """Return the words of the command that compiles C: those of ``CC``, else ``cc``."""
    return tuple(shlex.split(os.environ.get('CC', '')) or ('cc',))


OBSTACLE, WAY = _chosen()
COMPILES = WAY == 'numba'
SLOW = 'correct but more than a thousand times slower'
_pending = [
    f'{OBSTACLE}, and there is no C compiler: dynamics are interpreted, {SLOW}. Install one: '
    f'apt install gcc, or pip install "{REQUIREMENT}" in a virtual environment'
] if WAY == 'python' and OBSTACLE and not os.environ.get(VARIABLE) else []


def warning() -> str:
    """Return a warning about interpreted kernels, once per program; else an empty text."""
    if _pending:
        from multiprocessing import parent_process
        if parent_process() is None:        # worker processes do not repeat it
            with suppress(IndexError):
                return _pending.pop()
    return ''
