# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: a bar at a terminal, else a line every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
import sys
from threading import Event, Thread
from time import monotonic

PERIOD = 0.1  # Time between two updates of the line, s.
SILENCE = 4.0  # Time between two lines about work that shows no bar, s.
Update = Callable[[float, float], None]


@dataclass
class _Work:
    label: str
    has_bar: bool
    share: str = ''     # How much of it is done.


_work: list[_Work] = []     # What is being done; the last one is the innermost.


@contextmanager
def heartbeat(command: str, ended: Event | None = None) -> Iterator[Event]:
    """
    Context manager: print what a command is doing whenever `SILENCE` has passed without a bar.

    It yields an event; nothing is printed after it is set.

    """
    ended = Event() if ended is None else ended

    def beat() -> None:
        while not ended.wait(SILENCE):
            now = _work[-1] if _work else _Work('still working', False)
            if not now.has_bar:
                print(f'{command}: {now.label}{now.share}', file=sys.stderr, flush=True)
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
    work = _Work(label, sys.stderr.isatty())

    def note(done: float, total: float) -> None:
        work.share = f', {_percent(done, total)}'
    _work.append(work)
    try:
        with _bar(label) if work.has_bar else nullcontext(note) as update:
            yield update
    finally:
        _work.pop()


def _percent(done: float, total: float) -> str:
    return f'{100.0 * done / max(total, 1e-300):.0f} %'


@contextmanager
def _bar(label: str) -> Iterator[Update]:
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        with _plain_line(label) as update:
            yield update
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _plain_line(label: str) -> Iterator[Update]:
    """Print a percentage, update it in place, and erase it at the end."""
    last = -PERIOD

    def update(done: float, total: float) -> None:
        nonlocal last
        if monotonic() - last >= PERIOD:
            last = monotonic()
            sys.stderr.write(f'\r{label}: {_percent(done, total):>5}')
            sys.stderr.flush()
    try:
        yield update
    finally:
        sys.stderr.write('\r\x1b[K')
        sys.stderr.flush()
