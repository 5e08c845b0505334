# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Compiles kernels and machine code in another process, for a program that must not stop meanwhile.

Benefit: the compiler holds Python's interpreter lock; of states at 1 kHz, a node processed one in
five. Kernels compiled by another process arrive as bytes, which take 20 ms to load.
Safeguard: the process ends with its input, however the program that started it ends. If it fails,
kernels are compiled in the program, with a warning.

"""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
import logging
import os
from pathlib import Path
import pickle
from queue import SimpleQueue
import shutil
import subprocess
import sys
import tempfile
from threading import RLock, Thread
from typing import Any, BinaryIO

from rbd_ros.kernels.jit import compiled
from rbd_ros.kernels.jit.kernel_cache import serialized
from rbd_ros.kernels.jit.numba_backend import COMPILES, VARIABLE

_log = logging.getLogger('rbd_ros')
INSTEAD = ('compiled in this process, which may delay states' if COMPILES else
           'interpreted in this process, which delays states')
NICENESS = 10       # of the process, which must not delay states
PATIENCE = 2.0      # s for the process to end by itself
Request = tuple[str, str, tuple[Any, ...]]    # a module, its function, and arguments


class CompileProcess:
    """Another process for compiling; ``may_wait`` returns whether this thread may wait for it."""

    def __init__(self, may_wait: Callable[[], bool]) -> None:
        self.may_wait = may_wait
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ''       # for temporary files of the process
        self._works, self._closed, self._lock = True, False, RLock()
        self._requested: set[Any] = set()

    def compile_kernel(self, function: Any, types: tuple[Any, ...]) -> bytes | None:
        """Return the kernel of a global function as `serialized` does; None: compile it here."""
        return self.call(__name__, compiled_kernel.__name__,
                         (function.__module__, function.__qualname__, types))

    def call(self, *request: Any) -> bytes | None:
        """Return what a function returns there; None if it raises, or the process fails."""
        if not self._works:
            return None
        try:
            with self._lock:
                process = self._running()
                pickle.dump(request, process.stdin)
                process.stdin.flush()
                data: bytes | None = pickle.load(process.stdout)
                if self._closed:
                    self.end()
            return data
        except (OSError, EOFError, pickle.PickleError, AttributeError) as error:
            self._works = False
            self.end()
            _log.warning(f'kernels are {INSTEAD}, because another one failed to: {error!r}')
            return None

    def _running(self) -> Any:
        """Return the process; start it if necessary."""
        if self._process is None:
            # The process must import the modules that this one has found.
            path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
            self._folder = tempfile.mkdtemp(prefix='rbd_ros.')
            self._process = subprocess.Popen(
                [sys.executable, '-m', __name__, self._folder],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                start_new_session=True,     # Ctrl-C is for this process only
                env={**os.environ, 'PYTHONPATH': path, 'PYTHONSAFEPATH': '1',
                     VARIABLE: 'numba' if COMPILES else 'python'})
        return self._process

    def is_running(self) -> bool:
        """Return whether the process has been started because a kernel was missing."""
        return self._process is not None

    def request(self, kernel: Any, types: tuple[Any, ...]) -> None:
        """Compile a kernel in a background thread."""
        if (kernel, types) not in self._requested:
            self._requested.add((kernel, types))
            Thread(target=compiled.compile_for, args=(kernel, types), name='request',
                   daemon=True).start()

    def close(self) -> None:
        """End the process; it is restarted for each further kernel."""
        self._closed = True
        self.end()

    def end(self) -> None:
        """End the process until it is needed again."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                try:
                    process.communicate(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
            # If it did not, or could not, remove it itself.
            shutil.rmtree(self._folder, ignore_errors=True)


def compiled_kernel(module: str, name: str, types: tuple[Any, ...]) -> bytes | None:
    """Return a kernel as `serialized` does."""
    kernel = getattr(import_module(module), name)
    compiled.compile_for(kernel, types)
    return serialized(kernel.overloads[types])


def _answer_all(requests: 'SimpleQueue[Request]', replies: BinaryIO) -> None:
    """Answer one request after the other."""
    while True:
        module, name, arguments = requests.get()
        try:
            data = getattr(import_module(module), name)(*arguments)
        except Exception:
            data = None         # the parent compiles it and meets the same error
        pickle.dump(data, replies)
        replies.flush()


def main() -> None:
    """Compile the kernels that are requested on standard input, until it is closed."""
    os.nice(NICENESS)
    with suppress(OSError):     # Linux may share processors by session, and this is a new one
        Path('/proc/self/autogroup').write_text(str(NICENESS))
    # The parent writes the cache.
    compiled.disable_disk_cache()
    # Of the compiler, too; removed below, however early that is, or by the parent.
    os.environ['TMPDIR'] = tempfile.tempdir = sys.argv[1]
    replies = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)
    requests: SimpleQueue[Request] = SimpleQueue()
    Thread(target=_answer_all, args=(requests, replies), daemon=True).start()
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    except EOFError:
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)
        os._exit(0)             # without finishing the current kernel


if __name__ == '__main__':
    main()
