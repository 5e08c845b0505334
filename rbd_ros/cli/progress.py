# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of long work, for users at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import sys
from time import monotonic

PERIOD = 0.1  # Time between two updates of the line, s.
Update = Callable[[float, float], None]


@contextmanager
def progress(label: str) -> Iterator[Update]:
    """Context manager: yield a thread-safe function (done, total) for progress at a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
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
            sys.stderr.write(f'\r{label}: {100.0 * done / max(total, 1e-300):3.0f} %')
            sys.stderr.flush()
    try:
        yield update
    finally:
        sys.stderr.write('\r\x1b[K')
        sys.stderr.flush()
