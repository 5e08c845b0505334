# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How many states reach the kernels, and how their results come back: in pieces, and with errors.

Kernels take several states side by side. Where one of them cannot be computed these are computed
one by one, by methods of `Workspace`, whose errors name what is wrong.

"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import Room, table_of_lanes
from rbd_ros.batch.results import new_array, Quantity, ready_made, results_of
from rbd_ros.batch.threads import CHUNK, compute, Progress
from rbd_ros.batch.wrenches import NOTHING_PUSHES, Pushes, pushes
from rbd_ros.errors import RbdError
from rbd_ros.kernels.batch import DONE
from rbd_ros.kernels.jit.compiled import prepare
from rbd_ros.kernels.jit.compiler import COMPILES
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.model.arguments import rows, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace, workspace_of

# Numbers of results that are computed at once where the kernels do not write them in place: they
# are still in the processor's cache when they are copied.
PIECE = 2 ** 16
NO_WRENCHES = NOTHING_PUSHES[:2]
# Types of what kernels are tried with at once: they would take masked arrays, too.
ARRAYS = {np.ndarray}


class Task(NamedTuple):
    """
    What is computed for every state, of whatever robot.

    Attributes
    ----------
    kernel : callable
        Takes the arrays of the robot, the states, external wrenches if there can be such, what
        is the same in all states, ``room``, and the arrays that it writes results to.
    labels : tuple of str
        The names of the arrays of states. Those that begin with Q are configurations.
    quantity : Quantity
        What the kernel writes.
    room : callable
        What makes the arrays that the kernel works in, for a workspace, which keeps them.
    one : callable
        Given a workspace, the vectors of a state and the options of the method of `Workspace`,
        returns the results of the state.
    pushed : bool
        Whether there can be external wrenches.

    """

    kernel: Callable[..., Any]
    labels: tuple[str, ...]
    quantity: Quantity
    room: Callable[[Workspace], tuple[Any, ...]]
    one: Callable[..., Sequence[np.ndarray]]
    pushed: bool = False


class Given(NamedTuple):
    """
    What is the same in all states.

    Attributes
    ----------
    to_kernel : tuple
        Arguments of the kernel.
    to_method : mapping
        Arguments of the method of `Workspace`, by name.
    prescribed : ndarray of bool, shape (velocities,), or None
        Which accelerations are given; None: none.
    robot : ndarray or None
        The bodies, as `rbd_ros.kernels.layout` has them, if they are not those of the robot.

    """

    to_kernel: tuple[Any, ...] = ()
    to_method: Mapping[str, Any] = MappingProxyType({})
    prescribed: np.ndarray | None = None
    robot: np.ndarray | None = None


NOTHING = Given()


class Problem(NamedTuple):
    """
    A task for states of a robot.

    Attributes
    ----------
    model : Model
        The robot.
    task : Task
        What is computed.
    states : list of ndarray
        Arrays of states, as ``task.labels`` says.
    pushes : Pushes
        External wrenches.
    given : Given
        What is the same in all states.
    numbers : ndarray of int, or None
        What errors call the states; None: 0, 1 ...

    """

    model: Model
    task: Task
    states: list[np.ndarray]
    pushes: Pushes = NOTHING_PUSHES
    given: Given = NOTHING
    numbers: np.ndarray | None = None

    def run(self, start: int, stop: int, raw: Sequence[np.ndarray]
            ) -> list[tuple[int, list[np.ndarray]]]:
        """
        Compute some states.

        Returns the numbers and results of those that were computed one by one. These are not
        in ``raw``, the arrays for the kernel to write to.

        """
        workspace, task, given = tree_workspace(self.model), self.task, self.given
        room, apart, first = workspace._kept(task.room), [], start
        robot = workspace.robot if given.robot is None else given.robot
        try:
            while True:
                if given.prescribed is not None:
                    workspace.prescribe(given.prescribed)
                bad = run_kernel(
                    task.kernel, robot, workspace._screws, *self._expanded(first, stop),
                    *(self.pushes.of_chunk(first, stop) if task.pushed else ()),
                    *given.to_kernel, *room,
                    *(raw if first == start else [x[first - start:] for x in raw]))
                if bad < 0:
                    break
                bad += first
                first = min(bad + WIDTH, stop)
                apart += [(k, self.alone(k)) for k in range(bad, first)]
                if first == stop:
                    break
        finally:
            if given.prescribed is not None:
                workspace.prescribe(False)
            if self.pushes.of_links:
                workspace._kept(table_of_lanes)['robot'][:] = 0.0
        return apart

    def alone(self, k: int) -> list[np.ndarray]:
        """Return copies of the results of one state; errors name it."""
        options = self.given.to_method
        if self.task.pushed:
            options = {**options, 'external_wrenches': self.pushes.of_state(k)}
        try:
            return [np.array(x) for x in self.task.one(
                workspace_of(self.model), *(x[k] for x in self.states), **options)]
        except RbdError as error:
            number = k if self.numbers is None else self.numbers[k]
            raise type(error)(f'state {number}: {error}') from None

    def _expanded(self, start: int, stop: int) -> list[np.ndarray]:
        """Return states by the coordinates of the tree."""
        coordinates, states = self.model.coordinates, self.states
        if stop - start < len(states[0]):
            states = [x[start:stop] for x in states]
        if coordinates.is_identity:
            return states
        return [coordinates.position(x) if label == 'Q' else coordinates.velocity(x)
                for label, x in zip(self.task.labels, states)]

    def piece(self, start: int, stop: int) -> Sequence[np.ndarray]:
        """Return the results of a few states, in arrays that are kept."""
        workspace, quantity = tree_workspace(self.model), self.quantity
        shapes = quantity.shapes(self.model, workspace._nv)
        raw = [workspace._kept(Room(f'piece {k}', (self.states_in_piece(), *shape)))
               [:stop - start] for k, shape in enumerate(quantity.written(shapes))]
        apart, blocks = self.run(start, stop, raw), quantity.blocks(shapes, raw)
        coordinates = self.model.coordinates
        parts = (quantity.cut(*blocks) if coordinates.is_identity
                 else quantity.fold(coordinates.G, *blocks))
        for k, values in apart:
            for part, value in zip(parts, values):
                part[k - start] = value
        return parts

    @property
    def quantity(self) -> Quantity:
        """Return what the kernel writes."""
        return self.task.quantity

    def states_in_piece(self) -> int:
        """Return how many states `piece` takes at most."""
        shapes = self.quantity.shapes(self.model, len(self.model.tree.robot) - 1)
        return max(WIDTH, min(CHUNK, PIECE // max(1, *(int(np.prod(x)) for x in shapes))))

    def fill(self, results: Sequence[np.ndarray], raw: Sequence[np.ndarray] | None,
             start: int, stop: int) -> None:
        """Write the results of some states; ``raw`` is as `Results` has it."""
        if raw is not None:
            if stop - start < len(self.states[0]):
                raw = [x[start:stop] for x in raw]
            for k, values in self.run(start, stop, raw):
                for result, value in zip(results, values):
                    result[k] = value
            return
        step = self.states_in_piece()
        for first in range(start, max(stop, start + 1), step):
            last = min(first + step, stop)
            for result, part in zip(results, self.piece(first, last)):
                result[first:last] = part

    def solve(self, out: object, threads: int | None,
              progress: Progress | None) -> Sequence[np.ndarray]:
        """Return the results of all states."""
        count = len(self.states[0])
        arrays, raw = results_of(self.model, self.quantity, self.named_states(), count, out)
        compute(count, lambda start, stop: self.fill(arrays, raw, start, stop), threads, progress)
        return arrays

    def named_states(self) -> dict[str, np.ndarray]:
        """Return the arrays of states by their names."""
        return dict(zip(self.task.labels, self.states))


def tree_workspace(model: Model) -> Workspace:
    """Return the workspace whose arrays kernels use in this thread."""
    return workspace_of(model.spanning_tree)


def run_kernel(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Run a kernel on arguments that are known to be right, after compiling it if necessary."""
    try:
        return kernel(*arguments)
    except TypeError:
        return prepare(kernel, *arguments)(*arguments)


def states_of(model: Model, task: Task, values: Sequence[npt.ArrayLike]) -> list[np.ndarray]:
    """Return states as arrays that need no further conversion for the kernels."""
    Q = rows(model, task.labels[0], values[0], positions=True, finite=False)
    return [Q, *(rows(model, label, x, len(Q), positions=label[0] == 'Q', finite=False)
                 for label, x in zip(task.labels[1:], values[1:]))]


def problem_of(model: Model, task: Task, values: Sequence[npt.ArrayLike],
               external_wrenches: Wrenches | None = None, given: Given = NOTHING) -> Problem:
    """Return the `Problem` that a user poses, checked."""
    states = states_of(model, task, values)
    return Problem(model, task, states, pushes(model, external_wrenches, len(states[0]))
                   if task.pushed else NOTHING_PUSHES, given)


def solve(model: Model, task: Task, values: Sequence[npt.ArrayLike], out: object,
          threads: int | None, progress: Progress | None, *,
          external_wrenches: Wrenches | None = None,
          given: Given = NOTHING) -> Sequence[np.ndarray]:
    """
    Return the results of states that a user gives.

    Parameters
    ----------
    model : Model
        The robot.
    task : Task
        What is computed.
    values : sequence of array_like
        The states.
    out, threads, progress, external_wrenches
        See `rbd_ros.batch`.
    given : Given
        What is the same in all states.

    """
    # Of few states every check counts, as of one: the kernel is tried first.
    if (COMPILES and progress is None and external_wrenches is None and given.robot is None
            and (threads is None or (type(threads) is int and threads > 0))):
        workspace, quantity = workspace_of(model), task.quantity
        try:
            count = len(values[0])      # type: ignore[arg-type]  # TypeError
            if model.coordinates.is_identity and count <= CHUNK and {*map(type, values)} == ARRAYS:
                shapes = quantity.shapes(model, workspace._nv)
                raw: Any = ([new_array((count, *shape)) for shape in quantity.written(shapes)]
                            if out is None
                            else ready_made(out, count, quantity, shapes, values))
                if raw and task.kernel(workspace.robot, workspace._screws, *values,
                                       *(NO_WRENCHES if task.pushed else ()), *given.to_kernel,
                                       *workspace._kept(task.room), *raw) == DONE:
                    return (quantity.results(shapes, raw) if out is None
                            else out if isinstance(out, tuple) else (out,))
        except TypeError:
            pass
    return problem_of(model, task, values, external_wrenches, given).solve(out, threads, progress)
