# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A background thread for slow work, so that it does not delay states."""

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Condition, Thread
from typing import Any

from rbd_ros.kernels.jit.compiled import foreground
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.rclpy_workarounds import hand_over

MAX_WAITING = 8


class Busy(Exception):
    """Too many requests are waiting."""


class Worker(Part):
    """
    A thread that runs functions one after the other, and lets an executor handle their results.

    While `executor()`, which spins the node, is None, work is done in the calling thread. `failed`
    is called with exceptions of the work.

    """

    def __init__(self, executor: Callable[[], Any], failed: Callable[[Exception], None]) -> None:
        self._executor, self._failed = executor, failed
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], object] | None]] = deque()
        self._changed, self._closed = Condition(), False
        self._thread: Thread | None = None

    def submit(self, work: Callable[[], Any], then: Callable[[Any], object] | None = None, *,
               may_wait: bool = True) -> None:
        """Run `work()` in the background, and let the executor call `then` with its result."""
        if self._executor() is None:
            self._do(work, then, lambda function, *arguments: function(*arguments))
            return
        with self._changed:
            if len(self._waiting) >= MAX_WAITING and not may_wait:
                raise Busy
            self._waiting.append((work, then))
            if self._thread is None:
                self._thread = Thread(target=self._run, name='worker', daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Stop after the current piece of work."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                work, then = self._waiting.popleft()
            executor = self._executor()
            if executor is not None:
                self._do(work, then, partial(hand_over, executor))
            del work, then, executor        # not only when the next piece of work arrives

    def _do(self, work: Callable[[], Any], then: Callable[[Any], object] | None,
            hand_over: Callable[..., object]) -> None:
        try:
            with foreground():
                result = work()
        except Exception as error:
            if not self._closed:        # otherwise its node was cleaned up meanwhile
                self._failed(error)
            return
        if then is not None:
            hand_over(self._finish, then, result)

    def _finish(self, then: Callable[[Any], object], result: Any) -> None:
        try:
            if not self._closed:
                then(result)
        except Exception as error:
            self._failed(error)
