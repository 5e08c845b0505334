# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Machine code of C sources, by the system's compiler, kept as compiled kernels are.

Files are named by a digest of what the code is made from, which includes what the compiler says of
itself and of this processor, and its options. Code is loaded from a private copy, which cannot
change between the check of its digest and its use.

"""

import _ctypes
from collections.abc import Callable, Mapping, Sequence
import ctypes
from functools import cache
import hashlib
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
import os
from pathlib import Path
import shlex
import subprocess
import sys
import sysconfig
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.kernel_cache import cache_root, Directory
from rbd_ros.kernels.jit.numba_backend import compiler_command

MODULE = 'rbd_ros_code'     # name of the extension module
# Sums are never reordered; NaN and infinity are those of IEEE 754. Pairs of operations in vectors
# would cost more for arranging them than they save.
OPTIONS = ('-O3', '-fno-tree-slp-vectorize', '-fPIC', '-shared', '-fvisibility=hidden',
           '-fno-math-errno', '-fno-trapping-math', '-fno-signed-zeros',
           *['-undefined', 'dynamic_lookup'] * (sys.platform == 'darwin'))
NATIVE = '-march=native'


class Compiler(NamedTuple):
    """A compiler of C."""

    words: tuple[str, ...]      # of its command
    description: str            # of its version and of the processor


def code_directory(directory: str | os.PathLike[str] | None) -> Directory:
    """Return the directory of machine code; by default beside that of compiled kernels."""
    root = cache_root()
    if directory is not None:
        return Directory(Path(directory).expanduser().absolute())
    return Directory(None if root is None else root / 'code')


def find_compiler() -> Compiler:
    """Return the compiler that ``CC`` names, else ``cc``."""
    return _described(compiler_command())


@cache
def _described(words: tuple[str, ...]) -> Compiler:
    """Return a compiler that works."""
    for command in ((*words, NATIVE), words):
        try:
            done = _run([*command, '-v', '-E', '-x', 'c', os.devnull], os.sep)
        except OSError as error:
            raise RbdError(f'there is no C compiler: {words[0]}: {error.strerror}. Install one, '
                           'such as gcc, or set CC to its name') from None
        if done.returncode == 0:
            return Compiler(command, done.stdout + done.stderr)
    raise RbdError(_failure(words, done))


def _run(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env={**os.environ, 'LC_ALL': 'C'}, text=True,
                          capture_output=True, check=False, errors='replace',
                          stdin=subprocess.DEVNULL)


def _failure(words: tuple[str, ...], done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if 'error' in line] or [
        done.stderr.strip() or 'it says nothing']
    return (f'the C compiler {shlex.join(words)} failed with exit code {done.returncode}: '
            f'{lines[0]}; set CC to one that compiles for this machine')


def headers() -> list[str] | None:
    """Return the options for the headers of Python and NumPy, or None if these are missing."""
    folders = {sysconfig.get_path('include'), sysconfig.get_path('platinclude')}
    wanted = {'Python.h': folders, 'pyconfig.h': folders,
              'numpy/arrayobject.h': {np.get_include()}}
    if all(any(Path(folder, name).is_file() for folder in places)
           for name, places in wanted.items()):
        return [f'-I{folder}' for folder in (*sorted(folders), np.get_include())]
    return None


def machine_code(compiler: Compiler, sources: Mapping[str, str],
                 include: Sequence[str] = ()) -> tuple[bytes, float]:
    """Return the code of the last source, which may include the others, and the time taken, s."""
    with TemporaryDirectory(prefix='rbd_ros.') as folder:
        start, made = perf_counter(), Path(folder, f'{MODULE}.so')
        for file, text in sources.items():
            Path(folder, file).write_text(text)
        done = _run([*compiler.words, *OPTIONS, *include, file, '-o', made.name, '-lm'], folder)
        if done.returncode:
            raise RbdError(_failure(compiler.words, done))
        return made.read_bytes(), perf_counter() - start


def open_library(path: str) -> ctypes.CDLL:
    """Return a library, whose code leaves memory with it and its functions."""
    library = ctypes.CDLL(path)
    finalize(library, _ctypes.dlclose, library._handle).atexit = False
    return library


def opened(data: bytes, open_code: Callable[[str], Any] = open_library) -> Any:
    """Return what ``open_code`` makes of machine code."""
    with TemporaryDirectory(prefix='rbd_ros.') as folder:
        path = Path(folder, f'{MODULE}.so')
        path.write_bytes(data)
        try:
            return open_code(str(path))
        except (ImportError, OSError) as error:
            raise RbdError(f'machine code of the C compiler cannot be loaded: {error}; set CC to '
                           'a compiler for this machine, and TMPDIR to a directory from which '
                           'programs may run') from None


def abi() -> tuple[str, str]:
    """Return the versions of Python and of NumPy that extension modules are made for."""
    return str(sysconfig.get_config_var('SOABI')), np.__version__


def code_name(*facts: str) -> str:
    """Return the name of the file of machine code on which these texts have an influence."""
    digest = hashlib.sha256()
    for text in facts:
        digest.update(text.encode() + b'\0')
    return f'{digest.hexdigest()[:32]}.code'


def open_module(path: str) -> Any:
    """Return an extension module, which others do not see."""
    spec = spec_from_file_location(MODULE, path, loader=ExtensionFileLoader(MODULE, path))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
