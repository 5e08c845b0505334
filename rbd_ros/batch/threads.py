# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Persistent threads that process many states in chunks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
import os
from threading import Lock

from rbd_ros.model.arguments import whole_number

Progress = Callable[[int, int], object]

CHUNK = 1024    # states in a chunk: enough to make the cost of a call from Python negligible
# Process, number and pool of the threads that are kept.
_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def compute(count: int, work: Callable[[int, int], object], threads: int | None,
            progress: Progress | None) -> None:
    """Call ``work(start, stop)`` for chunks of states, in threads."""
    threads = None if threads is None else whole_number('threads', threads)
    if count <= CHUNK and progress is None:
        if count:
            work(0, count)
        return
    chunks = iter(range(0, count, CHUNK))
    done, lock = [0], Lock()

    def thread() -> None:
        try:
            for start in chunks:
                stop = min(start + CHUNK, count)
                work(start, stop)
                with lock:
                    done[0] += stop - start
                    if progress is not None:
                        progress(done[0], count)
        finally:
            for _ in chunks:
                pass                # after an error or Ctrl-C, leave nothing for the others
    if count <= CHUNK or threads == 1:
        thread()
        return
    work(0, 0)    # kernels are compiled in one thread
    helpers = min(threads or os.cpu_count() or 1, -(-count // CHUNK)) - 1
    futures = [_helpers(helpers).submit(thread) for _ in range(helpers)]
    try:
        thread()
    finally:
        # Helpers that have not begun, because others keep them, find nothing left to do.
        wait([future for future in futures if not future.cancel()])
    for future in futures:
        if not future.cancelled():
            future.result()


def _helpers(count: int) -> ThreadPoolExecutor:
    """Return at least `count` persistent threads, which keep their workspaces."""
    global _pool
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < count:
        # Threads do not survive a fork.
        _pool = os.getpid(), count, ThreadPoolExecutor(count, 'rbd_ros.batch')
    return _pool[2]
