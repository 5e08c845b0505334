# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Kernels compiled by another process, for a program that must go on meanwhile.

What it gains: the compiler holds Python's interpreter, so that a thread in which it runs delays
every other one; of states at 1 kHz, a node answered a fifth. From another process compiled kernels
come as bytes, which take 20 ms to load.
What guards it: the process ends when its input does, however the program that started it ends. If
it fails, kernels are compiled in the program, and that is logged.

"""

from collections.abc import Callable
from importlib import import_module
import logging
import os
import pickle
from queue import SimpleQueue
import subprocess
import sys
from threading import RLock, Thread
from typing import Any, BinaryIO

from rbd_ros.kernels.jit import compiled
from rbd_ros.kernels.jit.kernel_cache import serialized

_log = logging.getLogger('rbd_ros')


class Elsewhere:
    """
    Another process that compiles kernels; it is started when it is first needed.

    Parameters
    ----------
    may_wait : callable
        Returns whether the thread that calls it may wait for a kernel.

    """

    def __init__(self, may_wait: Callable[[], bool]) -> None:
        self.may_wait = may_wait
        self._process: subprocess.Popen[bytes] | None = None
        self._works, self._stays, self._turn = True, True, RLock()
        self._requested: set[Any] = set()

    def compile_kernel(self, kernel: Any, types: tuple[Any, ...]) -> bytes | None:
        """
        Return a compiled kernel as `rbd_ros.kernels.jit.kernel_cache.serialized` does.

        Parameters
        ----------
        kernel : kernel
            A global name of its module.
        types : tuple of numba types
            Of its arguments.

        Returns
        -------
        bytes or None
            None: it has to be compiled in this process.

        """
        if not self._works:
            return None
        function = kernel.py_func
        try:
            with self._turn:
                process = self._running()
                pickle.dump((function.__module__, function.__qualname__, types), process.stdin)
                process.stdin.flush()
                found: bytes | None = pickle.load(process.stdout)
                if not self._stays:
                    self._end()
            return found
        except (OSError, EOFError, pickle.PickleError, AttributeError) as error:
            self._works = False
            self._end()
            _log.warning('kernels are compiled in this process, which may delay states, because '
                         f'another one failed to: {error!r}')
            return None

    def _running(self) -> Any:
        """Return the process; start it if need be."""
        if self._process is None:
            # It is to find the modules that this process has found.
            path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
            self._process = subprocess.Popen(
                [sys.executable, '-m', __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                start_new_session=True,     # Ctrl-C is for this process
                env={**os.environ, 'PYTHONPATH': path, 'PYTHONSAFEPATH': '1'})
        return self._process

    def is_running(self) -> bool:
        """Return whether the process is there: kernels had to be compiled."""
        return self._process is not None

    def request(self, kernel: Any, types: tuple[Any, ...]) -> None:
        """Compile a kernel soon, in a thread of its own."""
        if (kernel, types) not in self._requested:
            self._requested.add((kernel, types))
            Thread(target=compiled.compile_for, args=(kernel, types), name='request',
                   daemon=True).start()

    def close(self) -> None:
        """End the process; from now on, it is started for one kernel at a time."""
        self._stays = False
        self._end()

    def _end(self) -> None:
        with self._turn:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                process.communicate()


def _compile_all(requests: 'SimpleQueue[tuple[str, str, tuple[Any, ...]]]',
                 replies: BinaryIO) -> None:
    """Compile one kernel after the other."""
    while True:
        module, name, types = requests.get()
        try:
            kernel = getattr(import_module(module), name)
            compiled.compile_for(kernel, types)
            data = serialized(kernel.overloads[types])
        except Exception:
            data = None         # the other side meets the same error
        pickle.dump(data, replies)
        replies.flush()


def main() -> None:
    """Compile what the input asks for, until it ends."""
    # The cache belongs to the other side.
    compiled.keep_in_no_file()
    replies = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)
    requests: SimpleQueue[tuple[str, str, tuple[Any, ...]]] = SimpleQueue()
    Thread(target=_compile_all, args=(requests, replies), daemon=True).start()
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    except EOFError:
        os._exit(0)             # not when the present kernel is compiled


if __name__ == '__main__':
    main()
