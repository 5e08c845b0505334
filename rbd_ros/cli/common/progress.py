# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of long work, so that no command is silent for long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import sys
from threading import Event, Thread
from time import monotonic

# Time between two updates of the line at a terminal, and between two lines without one, s.
PERIOD, SILENCE = 0.1, 4.0
Update = Callable[[float, float], None]
_work = ['still working']   # What is being done; the last one is the innermost.


@contextmanager
def heartbeat(command: str, ended: Event | None = None) -> Iterator[Event]:
    """Context manager: print what a command is doing every `SILENCE`, until an event is set."""
    ended = Event() if ended is None else ended

    def beat() -> None:
        while not ended.wait(SILENCE):
            if len(_work) == 1 or not sys.stderr.isatty():
                print(f'{command}: {_work[-1]}', file=sys.stderr, flush=True)
    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        ended.set()
        thread.join()


@contextmanager
def progress(label: str) -> Iterator[Update]:
    """Context manager: yield a thread-safe function (done, total) that shows progress."""
    place, last, shown = len(_work), -PERIOD, sys.stderr.isatty()
    _work.append(label)

    def update(done: float, total: float) -> None:
        nonlocal last
        _work[place] = f'{label}, {100.0 * done / max(total, 1e-300):.0f} %'
        if shown and monotonic() - last >= PERIOD:
            last = monotonic()
            print(f'\r{_work[place]}\x1b[K', end='', file=sys.stderr, flush=True)
    try:
        yield update
    finally:
        _work.pop()
        if shown:
            print('\r\x1b[K', end='', file=sys.stderr, flush=True)
