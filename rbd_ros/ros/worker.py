# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What takes long is done beside the stream of states, in a thread of its own."""

from collections import deque
from threading import Condition, Thread

# How many requests may wait.
MOST_WAITING = 8


class Busy(Exception):
    """As many requests as may wait are waiting already."""


class Worker:
    """
    One thread that does one piece of work after the other.

    Parameters
    ----------
    executor : callable
        Returns the executor that spins the node, which takes over what is done. As long as it
        returns None there is no stream to stand beside, and work is done at once.
    failed : callable
        Told what a piece of work raises.

    """

    def __init__(self, executor, failed):
        self._executor, self._failed = executor, failed
        self._waiting, self._changed = deque(), Condition()
        self._closed, self._thread = False, None

    def submit(self, work, then=None, *, may_wait=True):
        """
        Let a function run beside the stream.

        Parameters
        ----------
        work : callable
            Takes nothing.
        then : callable, optional
            Called by the executor with what ``work`` returned.
        may_wait : bool
            Whether to wait in line however long that is.

        Raises
        ------
        Busy
            If the line is too long.

        """
        if self._executor() is None:
            self._do(work, then, _call)
            return
        with self._changed:
            if len(self._waiting) >= MOST_WAITING and not may_wait:
                raise Busy
            self._waiting.append((work, then))
            if self._thread is None:
                self._thread = Thread(target=self._run, name='worker', daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self):
        """Begin nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self):
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                work, then = self._waiting.popleft()
            executor = self._executor()
            if executor is not None:
                self._do(work, then, executor.create_task)
            del work, then, executor        # not when the next piece of work comes

    def _do(self, work, then, hand_over):
        try:
            result = work()
        except Exception as error:
            self._failed(error)
            return
        if then is not None:
            hand_over(self._finish, then, result)

    def _finish(self, then, result):
        try:
            if not self._closed:
                then(result)
        except Exception as error:
            self._failed(error)


def _call(function, *arguments):
    function(*arguments)
