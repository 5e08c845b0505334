# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the commands read and print: arguments, one-line messages, and progress of long work."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
import re
import signal
import sys
from threading import current_thread, Event, main_thread, Thread
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

from rbd_ros._internal.text import printable
from rbd_ros.errors import RbdError

NEGATIVE = 2    # exit code of a command that ran, but whose result is negative
# Time between two updates of the line at a terminal, and between two lines without one, s.
PERIOD, SILENCE = 0.1, 4.0
Update = Callable[[float, float], None]
_work = ['still working']   # What is being done; the last one is the innermost.
_interrupted = Event()  # Ctrl-C was pressed; in a destructor, an exception would be lost.


class UsageError(RbdError, ValueError):
    """Wrong usage of a command; the message names the option."""


def print_error(text: str, code: int = 1) -> int:
    """Print a text on one line of standard error, and return the exit code."""
    print(printable(text), file=sys.stderr)
    return code


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors, exit code 1, and numbers like -1e-3 as arguments."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        # argparse takes -1e-3 for an option; no public setting changes that.
        self._negative_number_matcher = re.compile(r'^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$')

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 1."""
        self.exit(1, f'{self.prog}: {printable(message)}; see {self.prog} --help\n')


@contextmanager
def heartbeat(command: str) -> Iterator[Event]:
    """Context manager: print what a command is doing every `SILENCE`, until an event is set."""
    ended, handler = Event(), signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler and current_thread() is main_thread():
        signal.signal(signal.SIGINT, _interrupt)

    def beat() -> None:
        while not ended.wait(SILENCE):
            if len(_work) == 1 or not sys.stderr.isatty():
                print(f'{command}: {_work[-1]}', file=sys.stderr, flush=True)
    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, handler)
        _interrupted.clear()
        ended.set()
        thread.join()


def _interrupt(_: int, frame: FrameType | None) -> None:
    _interrupted.set()
    while frame is not None:
        if frame.f_code.co_name == '__del__':
            return
        frame = frame.f_back
    raise KeyboardInterrupt


@contextmanager
def progress(label: str) -> Iterator[Update]:
    """Context manager: yield a thread-safe function (done, total) that shows progress."""
    place, last, shown = len(_work), -PERIOD, sys.stderr.isatty()
    _work.append(label)

    def update(done: float, total: float) -> None:
        nonlocal last
        if _interrupted.is_set():
            raise KeyboardInterrupt
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
