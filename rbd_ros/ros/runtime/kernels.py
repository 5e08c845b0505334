# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of a node."""

from collections.abc import Callable, Iterable
from threading import current_thread, main_thread, Thread, Timer
from time import perf_counter, sleep

from rbd_ros.kernels.jit import compiled
from rbd_ros.kernels.jit.compile_process import CompileProcess
from rbd_ros.kernels.jit.machine_code import CODES
from rbd_ros.kernels.jit.numba_backend import COMPILES, RUN_AS, WAY
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log

# Logged while kernels are not loaded from the cache within so many seconds.
NOTICE_AFTER = 1.0
WAITING = ('waiting for kernels to be compiled, once for this machine: half a minute or more; the '
           'node receives nothing until then')
PAUSE = 0.01    # s between two checks whether the foreground is idle


class Kernels(Part):
    """
    Loads kernels from the cache; compiles missing ones, all but the first in the background.

    If the node has the process to itself (`alone`), another process compiles, and the main thread
    never waits for it once the node is configured. `failed` receives background exceptions.
    Machine code of the C compiler is that of one robot: it is requested when it is needed.

    """

    def __init__(self, log: Log, failed: Callable[[Exception], None], alone: bool) -> None:
        self._log, self._failed = log, failed
        # Whether all kernels that nodes need are ready; whether the main thread waits for them.
        self.ready, self.waits = False, True
        self._thread: Thread | None = None
        self._compile_process: CompileProcess | None = None
        if alone and WAY != 'python':
            self._compile_process = CompileProcess(
                lambda: self.waits or current_thread() is not main_thread())
            compiled.use_compile_process(self._compile_process)
        if WAY == 'cc':
            CODES.begin()

    def make(self, steps: Iterable[tuple[str, float]], ok: Callable[[], bool]) -> bool:
        """Load or compile the kernels in `steps`, of `warm_up`; return False if `ok()` does."""
        if WAY == 'cc' or (self._thread is not None and self._thread.is_alive()):
            return True
        self.ready, self.waits, begin, steps = False, True, perf_counter(), iter(steps)
        notice = Timer(NOTICE_AFTER, self._log.info, [WAITING])
        notice.start()
        try:
            for step in steps:
                if not ok():
                    return False
                self._log_compiled(*step)
                if self._compile_process is not None and self._compile_process.is_running():
                    self._log.info('further kernels are compiled in the background; outputs and '
                                   'services that need them become available when they are ready')
                    self._thread = Thread(target=self._make_rest, args=(steps, begin),
                                          name='kernels', daemon=True)
                    self._thread.start()
                    return True
        finally:
            notice.cancel()
        self._end(begin)
        return True

    def facts(self) -> dict[str, str]:
        """Return how kernels run, and whether some are still missing."""
        missing = CODES.missing() if WAY == 'cc' else not self.ready
        return {'kernels': 'being compiled' if missing else 'ready', 'kernels run as': RUN_AS[WAY]}

    def _log_compiled(self, name: str, seconds: float) -> None:
        if seconds > 1.0:
            self._log.info(f'compiled {name} in {seconds:.1f} s')

    def _make_rest(self, steps: Iterable[tuple[str, float]], begin: float) -> None:
        """Compile the remaining kernels, first those that another thread waits for."""
        assert self._compile_process is not None
        try:
            for step in steps:
                self._log_compiled(*step)
                while compiled.foreground_busy():
                    sleep(PAUSE)
            self._end(begin)
        except Exception as error:
            self._failed(error)
        finally:
            self._compile_process.close()

    def _end(self, begin: float) -> None:
        self.ready = True
        if COMPILES:
            self._log.info(f'kernels ready after {perf_counter() - begin:.2f} s')
