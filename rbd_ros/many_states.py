# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How many states reach the kernels, and how their results come back: pieces, threads and errors.

Kernels take several states side by side. Where one of them cannot be computed these are computed
one by one, by methods of `Workspace`, whose errors name what is wrong.

"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
import os
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.errors import RbdError, StateError
from rbd_ros.kernels.lanes import WIDTH, zeros_for_lanes
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.validation import shown, whole_number, Wrenches, wrenches_of_states
from rbd_ros.workspace import Workspace, workspace_of

Progress = Callable[[int, int], object]

# States in a chunk: enough to make the cost of a call from Python negligible.
CHUNK = 1024
# Numbers of results that are computed at once where the kernels do not write them in place: they
# are still in the processor's cache when they are copied.
PIECE = 2 ** 16
# Process, number and pool of the threads that are kept.
_pool: tuple[int, int, ThreadPoolExecutor] | None = None


@dataclass(frozen=True)
class Room:
    """
    An array that workspaces keep; all zeros at first.

    Attributes
    ----------
    use : str
        What for, since several may have the same shape.
    shape : tuple of int
        Its shape.

    """

    use: str
    shape: tuple[int, ...]

    def __call__(self, workspace: Workspace) -> np.ndarray:
        """Make it."""
        return zeros_for_lanes(self.shape)


def table_of_lanes(workspace: Workspace) -> tuple[np.ndarray, ...]:
    """Return a table of bodies for states side by side, and lanes for q, v, a and tau."""
    folding, n = workspace._folding, workspace._n
    nq = workspace.model.nq if folding is None else len(folding.source)
    return tuple(Room(use, (size, WIDTH))(workspace) for use, size in (
        ('robot', len(workspace.robot)), ('q', nq), ('v', n), ('a', n), ('tau', n)))


class Pushes(NamedTuple):
    """
    What acts on bodies from outside.

    Attributes
    ----------
    places : ndarray of int, shape (bodies,)
        Where the bodies are in the table of the kernels.
    forces : ndarray, shape (bodies, states or 1, 6)
        Moment and force on each, in its axes.
    of_links : dict of str to ndarray, shape (states or 1, 6)
        The same by links, as the user gave them.

    """

    places: np.ndarray
    forces: np.ndarray
    of_links: dict[str, np.ndarray]

    def of_chunk(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what kernels need for some states."""
        if not self.of_links:
            return self.places, self.forces
        if self.forces.shape[1] > 1:
            return self.places, np.ascontiguousarray(self.forces[:, start:stop])
        return self.places, np.repeat(self.forces, stop - start, axis=1)

    def picked(self, states: np.ndarray) -> 'Pushes':
        """Return what acts in some states."""
        def pick(x: np.ndarray) -> np.ndarray:
            return x[..., states, :] if x.shape[-2] > 1 else x
        return Pushes(self.places, pick(self.forces),
                      {link: pick(wrench) for link, wrench in self.of_links.items()})

    def of_state(self, k: int) -> Wrenches | None:
        """Return the wrenches in one state."""
        return {link: wrench[min(k, len(wrench) - 1)]
                for link, wrench in self.of_links.items()} or None


NOTHING_PUSHES = Pushes(np.zeros(0, int), np.zeros((0, 1, 6)), {})


def pushes(model: Model, external_wrenches: object, states: int) -> Pushes:
    """Return the wrenches that a user gives for states, as kernels need them."""
    if external_wrenches is None:
        return NOTHING_PUSHES
    of_links = wrenches_of_states(model, external_wrenches, states)
    if not of_links:
        return NOTHING_PUSHES
    tree = model.tree
    workspace = workspace_of(model)
    links = [model.link_index(link) for link in of_links]
    bodies = sorted({int(tree.link_body[k]) for k in links})
    forces = np.zeros((len(bodies), max(map(len, of_links.values())), 6))
    for k, wrench in zip(links, of_links.values()):
        forces[bodies.index(int(tree.link_body[k]))] += wrench @ Ad(inverse(tree.link_pose[k]))
    return Pushes(workspace._places[bodies], forces, of_links)


class Quantity(NamedTuple):
    """
    What a kernel writes for each state.

    Attributes
    ----------
    shapes : callable
        Given the number of velocities, returns the shapes of the arrays that the kernel writes.
    cut : callable
        Given these arrays, for many states, returns the results as views of them.
    fold : callable
        Given G of the mimicking joints and these arrays, by the coordinates of the tree, returns
        the results by those of the model.

    """

    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    cut: Callable[..., Sequence[np.ndarray]]
    fold: Callable[..., Sequence[np.ndarray]]


@dataclass
class Problem:
    """
    What is computed for every state.

    Attributes
    ----------
    model : Model
        The robot.
    kernel : callable
        Takes the arrays of the robot, ``states``, what ``rest`` returns, and the arrays that it
        writes results to.
    states : dict of str to ndarray
        Arrays of states by name.
    quantity : Quantity
        What the kernel writes.
    rest : callable
        Given a workspace and the first and the last state, returns further arguments.
    one : callable
        Given a workspace, the number of a state and the state, returns its results.
    pushes : Pushes
        External wrenches.
    prescribed : ndarray of bool, shape (velocities,), or None
        Which accelerations are given; None: none.
    numbers : ndarray of int, or None
        What errors call the states; None: 0, 1 ...

    """

    model: Model
    kernel: Callable[..., Any]
    states: dict[str, np.ndarray]
    quantity: Quantity
    rest: Callable[[Workspace, int, int], tuple[Any, ...]]
    one: Callable[..., Sequence[np.ndarray]]
    pushes: Pushes = NOTHING_PUSHES
    prescribed: np.ndarray | None = None
    numbers: np.ndarray | None = None

    def run(self, start: int, stop: int, raw: Sequence[np.ndarray]
            ) -> list[tuple[int, list[np.ndarray]]]:
        """
        Compute some states.

        Returns the numbers and results of those that were computed one by one. These are not
        in ``raw``, the arrays for the kernel to write to.

        """
        workspace, apart, first = workspace_of(self.model), [], start
        try:
            while True:
                if self.prescribed is not None:
                    workspace.prescribe(self.prescribed)
                bad = workspace._call(
                    self.kernel, workspace.robot, workspace._screws,
                    *self._expanded(slice(first, stop)), *self.rest(workspace, first, stop),
                    *(raw if first == start else [x[first - start:] for x in raw]))
                if bad < 0:
                    break
                bad += first
                first = min(bad + WIDTH, stop)
                apart += [(k, self.alone(workspace, k)) for k in range(bad, first)]
                if first == stop:
                    break
        finally:
            if self.prescribed is not None:
                workspace.prescribe(False)
            if self.pushes.of_links:
                workspace._kept(table_of_lanes)[0][:] = 0.0
        return apart

    def alone(self, workspace: Workspace, k: int) -> list[np.ndarray]:
        """Return copies of the results of one state; errors name it."""
        try:
            return [np.array(x) for x in self.one(
                workspace, k, *(x[k] for x in self.states.values()))]
        except RbdError as error:
            number = k if self.numbers is None else self.numbers[k]
            raise type(error)(f'state {number}: {error}') from None

    def _expanded(self, chunk: slice) -> list[np.ndarray]:
        """Return states by the coordinates of the tree."""
        folding = self.model.folding
        if folding is None:
            return [x if chunk.stop - chunk.start == len(x) else x[chunk]
                    for x in self.states.values()]
        column, multiplier = folding.columns[:, 0].astype(int), folding.columns[:, 1]
        return [folding.multiplier * np.take(x[chunk], folding.source, 1) + folding.offset
                if label == 'Q' else multiplier * np.take(x[chunk], column, 1)
                for label, x in self.states.items()]

    def piece(self, start: int, stop: int) -> Sequence[np.ndarray]:
        """Return the results of a few states, in arrays that are kept."""
        workspace, folding = workspace_of(self.model), self.model.folding
        raw = [workspace._kept(Room(f'piece {k}', (self.states_in_piece(), *shape)))
               [:stop - start] for k, shape in enumerate(self.quantity.shapes(workspace._n))]
        apart = self.run(start, stop, raw)
        parts = (self.quantity.cut(*raw) if folding is None
                 else self.quantity.fold(folding.G, *raw))
        for k, values in apart:
            for part, value in zip(parts, values):
                part[k - start] = value
        return parts

    def states_in_piece(self) -> int:
        """Return how many states `piece` takes at most."""
        shapes = self.quantity.shapes(len(self.model.tree.robot) - 1)
        return max(WIDTH, min(CHUNK, PIECE // max(1, *(int(np.prod(x)) for x in shapes))))

    def fill(self, results: Sequence[np.ndarray], raw: Sequence[np.ndarray] | None,
             start: int, stop: int) -> None:
        """Write the results of some states; ``raw`` is as `Results` has it."""
        if raw is not None:
            for k, values in self.run(start, stop, [
                    x if stop - start == len(x) else x[start:stop] for x in raw]):
                for result, value in zip(results, values):
                    result[k] = value
            return
        step = self.states_in_piece()
        for first in range(start, max(stop, start + 1), step):
            last = min(first + step, stop)
            for result, part in zip(results, self.piece(first, last)):
                result[first:last] = part


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
    # Kernels are compiled in one thread.
    work(0, 0)
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
    """Return threads, at least so many, which are kept, and their workspaces with them."""
    global _pool
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < count:
        # Threads do not survive a fork.
        _pool = os.getpid(), count, ThreadPoolExecutor(count, 'rbd_ros.batch')
    return _pool[2]


class Results(NamedTuple):
    """
    Where results go.

    Attributes
    ----------
    arrays : list of ndarray
        What the user gets.
    raw : list of ndarray or None
        Arrays for the kernel to write to, of which these are views; None: they are copied.

    """

    arrays: list[np.ndarray]
    raw: list[np.ndarray] | None


def results_of(model: Model, quantity: Quantity, states: dict[str, np.ndarray],
               out: object) -> Results:
    """
    Return new arrays for results, or check those of the user.

    Parameters
    ----------
    model, quantity, states
        As for `Problem`.
    out : ndarray or tuple of ndarray, or None
        The arrays; None: new ones.

    Raises
    ------
    StateError
        If they have another number, type or shape, cannot be written, or share memory with each
        other or with the states.

    """
    count, shapes = len(states['Q']), quantity.shapes(model.nv)
    if out is None:
        raw = [np.empty((count, *shape)) for shape in shapes]
        return Results(list(quantity.cut(*raw)), raw if model.folding is None else None)
    wanted = [part.shape for part in quantity.cut(*(np.empty((0, *shape)) for shape in shapes))]
    arrays: list[Any] = list(out) if isinstance(out, tuple) else [out]
    if len(arrays) != len(wanted):
        raise StateError(f'out must be {_what_is_returned(wanted)}, got {shown(out)}')
    for k, (array, shape) in enumerate(zip(arrays, wanted)):
        label, shape = f'out[{k}]' if len(arrays) > 1 else 'out', (count, *shape[1:])
        if not isinstance(array, np.ndarray) or array.dtype.char not in 'df':
            raise StateError(f'{label} must be an array of float64 or float32, got {shown(array)}')
        if array.shape != shape:
            raise StateError(f'{label} has the shape {array.shape}; it must be {shape}')
        if not array.flags.writeable:
            raise StateError(f'{label} cannot be written to')
    whole = None if model.folding else _raw_of(arrays, count, quantity, shapes)
    _check_apart(arrays if whole is None else whole, states)
    return Results(arrays, whole)


def _what_is_returned(wanted: Sequence[tuple[int, ...]]) -> str:
    return 'one array' if len(wanted) == 1 else f'{len(wanted)} arrays, as they are returned'


def _check_apart(arrays: Sequence[np.ndarray], states: dict[str, np.ndarray]) -> None:
    """Raise if arrays for results share memory with each other or with the states."""
    for k, array in enumerate(arrays):
        for label, other in (*states.items(), *((f'out[{j}]', arrays[j]) for j in range(k))):
            if np.shares_memory(array, other):
                raise StateError(f'out shares memory with {label}; results need their own')


def _raw_of(arrays: list[np.ndarray], count: int, quantity: Quantity,
            shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | None:
    """Return what a kernel can write to so that it stands in the arrays, if there is that."""
    raw: list[Any] = arrays if len(arrays) == len(shapes) else [arrays[0].base]
    if any(not isinstance(x, np.ndarray) or x.dtype != float or not x.flags.carray
           or x.shape != (count, *shape) for x, shape in zip(raw, shapes)):
        return None
    parts = quantity.cut(*raw)
    return raw if all(x is y or x.__array_interface__ == y.__array_interface__
                      for x, y in zip(arrays, parts)) else None


def solve(problem: Problem, out: object, threads: int | None,
          progress: Progress | None) -> list[np.ndarray]:
    """Return the results of all states."""
    arrays, raw = results_of(problem.model, problem.quantity, problem.states, out)
    compute(len(problem.states['Q']),
            lambda start, stop: problem.fill(arrays, raw, start, stop), threads, progress)
    return arrays
