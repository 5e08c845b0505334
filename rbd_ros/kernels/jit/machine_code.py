# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Machine code of functions of robots: calls, and compilation of what a program needs meanwhile.

Without numba, a program requests code for a function of a robot when it first needs it. Another
process traces the function and compiles it; see `rbd_ros.codegen.machine_code.methods`. Robots
that differ in payloads and gravity share their code, which takes these as an input. It is kept on
disk by what it was made from, as compiled kernels are.

"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
import ctypes
from functools import cache
import io
import logging
from math import prod
import os
from pathlib import Path
import pickle
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import numpy as np
from rbd_ros._internal.arrays import FLOAT
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit import c_compiler
from rbd_ros.kernels.jit.compile_process import CompileProcess
from rbd_ros.kernels.jit.numba_backend import SLOW

_log = logging.getLogger('rbd_ros')
# What makes code, by modules above this one: a function that returns a pickled `Made`.
MAKER = 'rbd_ros.codegen.machine_code.methods', 'code_of_method'
WORKERS = 2         # processes that compile
MOST_ROBOTS = 16    # whose code a program keeps in memory, the latest ones, besides what is in use
Function = tuple[str, tuple[Any, ...]]      # its name, and values of options
IDLE = 20.0         # s without requests after which the process ends
ROOMS = ('analysis', 'codegen', 'kernels', 'model', 'workspace')    # whose sources influence code


class Made(NamedTuple):
    """Machine code of a function of a robot."""

    code: bytes                 # empty: there is none
    inputs: Mapping[str, int]   # their sizes
    shapes: Sequence[tuple[int, ...]]   # of the outputs
    # How these make up the result: None for an array, else a class of tuples and its parts.
    structure: Any
    operations: int
    caller: bytes = b''          # of the extension module that calls it, or empty
    reason: str = ''            # why there is no code


class Runner:
    """Machine code of a function, for arrays that are checked."""

    def __init__(self, code: ctypes.CDLL, made: Made, real: np.dtype[Any]) -> None:
        self.sizes, self.shapes, self.real = [*made.inputs.values()], made.shapes, real
        self._types = (ctypes.c_void_p * len(self.sizes), ctypes.c_long * len(self.sizes),
                       ctypes.c_void_p * len(self.shapes))
        # Not `code.run`, which runners of other threads may share, with types of their own.
        self._run = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, *self._types)(
            ('run', code))
        self.address = ctypes.cast(self._run, ctypes.c_void_p).value or 0

    def arguments(self, count: int, inputs: Sequence[np.ndarray],
                  outputs: Sequence[np.ndarray]) -> list[Any]:
        """Return the arguments of the code for contiguous arrays; one-dimensional: all states."""
        types = self._types
        return [types[0](*(x.ctypes.data for x in inputs)),
                types[1](*(x.size // count if x.ndim > 1 else 0 for x in inputs)),
                types[2](*(x.ctypes.data for x in outputs))]

    def run_some(self, first: int, end: int, arguments: Sequence[Any]) -> int:
        """Compute states before ``end``; return the first without an answer, or -1."""
        return self._run(first, end, *arguments)

    def run(self, count: int, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> int:
        """Compute all states; return the first that the code cannot vouch for, or -1."""
        return self.run_some(0, count, self.arguments(count, inputs, outputs)) if count else -1

    def new(self, *count: int) -> list[np.ndarray]:
        """Return arrays for results."""
        return [np.empty((*count, *shape), self.real) for shape in self.shapes]

    def kept(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return an array for all results, and these as views of it."""
        # One array, so that one comparison shows whether an argument lies in it.
        sizes = [prod(shape) for shape in self.shapes]
        memory = np.zeros(sum(sizes), self.real)
        parts = np.split(memory, np.cumsum(sizes)[:-1])
        return memory, [x.reshape(shape) for x, shape in zip(parts, self.shapes)]

    def bound(self, caller: Any, others: Callable[..., Any], memory: np.ndarray,
              parts: Sequence[np.ndarray], result: Any, options: Sequence[Any] = (),
              further: int = 0, fixed: Sequence[np.ndarray] = (),
              several: np.ndarray | None = None) -> Callable[..., Any]:
        """
        Return the function of one state that returns ``result``, made up of kept arrays.

        Arguments are those of a state, options, for whose values the code is, and ``further``
        ones; ``fixed`` are the last inputs of the code, which are no arguments. With ``several``,
        which holds the address of the code of many states or 0, ``out`` and ``threads`` may be
        given. What is not as the code needs it is left to ``others``, as are failures.

        """
        if caller is None:
            return self._by_pointers(others, parts, result, fixed)
        count = len(self.sizes) - len(fixed)
        layout = np.array([
            self.address, 0 if several is None else several.ctypes.data, self.real.num,
            self.real.itemsize, count - further, len(options), count, len(self.shapes), len(fixed),
            *self.sizes[:count], *map(prod, self.shapes), *(x.ctypes.data for x in fixed)],
            np.int64)
        return caller.bind(others, result, memory, layout, *options)

    def _by_pointers(self, others: Callable[..., Any], parts: Sequence[np.ndarray],
                     result: Any, fixed: Sequence[np.ndarray]) -> Callable[..., Any]:
        """Return a function whose arrays are copied to kept ones, which code takes by ctypes."""
        count, run, real = len(self.sizes) - len(fixed), self._run, self.real
        inputs = [np.zeros(size, real) for size in self.sizes[:count]]
        arguments = self.arguments(1, [*inputs, *fixed], parts)

        def call(*values: Any, **named: Any) -> Any:
            if len(values) == count and not named:
                for x, value in zip(inputs, values):
                    if type(value) is not np.ndarray or value.shape != x.shape or (
                            value.dtype is not real):
                        break
                    x[:] = value
                else:
                    if run(0, 1, *arguments) < 0:
                        return result
            return others(*values, **named)
        return call


class Code:
    """Machine code of a function of a robot: being made, ready, or impossible."""

    def __init__(self) -> None:
        self.made: Made | None = None
        self.runner: Runner | None = None
        self.caller: Any = None
        self.over = Event()

    def take(self, data: bytes | None) -> bool:
        """Load code, as `MAKER` returns it; return whether it is worth keeping."""
        try:
            self.made = failed('another process failed to compile them') if data is None else (
                pickle.loads(data))
            if self.made.code:
                self.caller = caller_of(self.made.caller)
                self.runner = Runner(c_compiler.opened(self.made.code), self.made, FLOAT)
        except RbdError as error:
            self.made = failed(str(error))
        is_failure = self.made.reason.startswith(failed('').reason)
        if is_failure:
            _warn(self.made.reason)
        self.over.set()
        return not is_failure


def no_code(reason: str) -> Made:
    """Return that there is no code, and why."""
    return Made(b'', {}, (), None, 0, reason=reason)


def failed(why: str) -> Made:
    """Return that the tools, not the function, are why there is no code."""
    return no_code(f'dynamics are interpreted, {SLOW}: {why}')


@cache
def _warn(text: str) -> None:
    """Log a warning once."""
    _log.warning(text)


@cache
def caller_of(data: bytes) -> Any:
    """Return the module that calls functions, or None if there is no code of it."""
    try:
        return c_compiler.opened(data, c_compiler.open_module) if data else None
    except RbdError:
        return None


class Codes:
    """The machine code of all robots of a program."""

    def __init__(self) -> None:
        # By robot, those used last at the end.
        self._codes: OrderedDict[bytes, dict[Function, Code]] = OrderedDict()
        self._requests: SimpleQueue[tuple[str, Code, tuple[Any, ...]]] = SimpleQueue()
        self._lock, self._begun = Lock(), False
        self._directory = c_compiler.code_directory(None)

    def find(self, robot: bytes, name: str, options: tuple[Any, ...]) -> Code:
        """Return the code of a function of a robot, as `pickled`; request what is not kept."""
        with self._lock:
            of_robot = self._codes.setdefault(robot, {})
            self._codes.move_to_end(robot)
            if len(self._codes) > MOST_ROBOTS:
                self._codes.popitem(last=False)
            if (name, options) in of_robot:
                return of_robot[name, options]
            code = of_robot[name, options] = Code()
        file = c_compiler.code_name(robot.hex(), name, repr(options), *tools())
        data = self._directory.read(file)
        if data is not None:
            code.take(data)
            return code
        self.begin()
        self._requests.put((file, code, (robot, name, options)))
        return code

    def begin(self) -> None:
        """Start what compiles, unless it was started."""
        with self._lock:
            begins, self._begun = not self._begun, True
        for k in range(WORKERS * begins):
            Thread(target=self._make_all, args=(k == 0,), name='machine code', daemon=True).start()

    def missing(self) -> int:
        """Return how many functions are being compiled."""
        with self._lock:
            return sum(not code.over.is_set() for of_robot in self._codes.values()
                       for code in of_robot.values())

    def _make_all(self, early: bool) -> None:
        """Have code made in the order of the requests, by another process; start it early."""
        process = CompileProcess(lambda: True)
        if early:
            process.call(MAKER[0], 'begin', ())
        while True:
            try:
                self._make(process, *self._requests.get(timeout=IDLE))
            except Empty:
                process.end()

    def _make(self, process: CompileProcess, file: str, code: Code,
              arguments: tuple[Any, ...]) -> None:
        data = process.call(*MAKER, arguments)
        if code.take(data) and data is not None:
            self._directory.write(file, data)


def tools() -> tuple[str, ...]:
    """Return what influences code besides the robot and the function."""
    try:
        found = c_compiler.find_compiler()
    except RbdError as error:       # the process that compiles reports it
        return str(error),
    return (*found.words, found.description, *c_compiler.OPTIONS, *c_compiler.abi(), _sources())


@cache
def _sources() -> str:
    """Return a digest of the sources that influence code."""
    package = Path(__file__).parents[2]
    paths = [path for room in ROOMS for path in (package / room).rglob('*')]
    return c_compiler.code_name(*(path.read_text('utf-8') for path in sorted(
        [*paths, *package.glob('*.py')]) if path.suffix in ('.py', '.in')))


def pickled(robot: Any) -> bytes:
    """Return a robot as bytes that depend only on what it is."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    # Otherwise they depend on which equal objects are one object.
    pickler.fast = True
    pickler.dump(robot)
    return file.getvalue()


CODES = Codes()


def _begin_anew() -> None:
    """Forget the process and the thread of the program that was forked."""
    global CODES
    CODES = Codes()


os.register_at_fork(after_in_child=_begin_anew)
