# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Run kernels for many states in pieces, and report errors.

Kernels vectorize over states, and so does machine code of the C compiler where numba is missing.
If one of these cannot be computed, they are computed one by one with methods of `Workspace`, whose
errors name the cause.

"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.results import new_array, ready_made, results_of
from rbd_ros.batch.threads import CHUNK, compute, Progress
from rbd_ros.batch.wrenches import batch_wrenches, BatchWrenches, NO_WRENCHES
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.compiled import prepare
from rbd_ros.kernels.jit.machine_code import Runner
from rbd_ros.kernels.jit.numba_backend import COMPILES, WAY
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.kernels.states import closed_loops
from rbd_ros.kernels.states.batch_dynamics import DONE
from rbd_ros.model.arguments import mask, rows, Wrenches
from rbd_ros.model.body_table import inertial_constants
from rbd_ros.model.model import Model
from rbd_ros.workspace.machine_methods import runner_of_states, WRENCHES
from rbd_ros.workspace.memory.lanes import Scratch, scratch_table, States
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.workspace import workspace_of

# Numbers of results that are computed at once where the kernels do not write them in place: they
# are still in the processor's cache when they are copied.
PIECE = 2 ** 16
# States from which on machine code that computes several at a time is worth compiling.
MANY = 64
UNWRENCHED = NO_WRENCHES[:2]    # the arguments of kernels if there are no wrenches
# Only these are passed to kernels without conversion.
ARRAYS = {np.ndarray}


class Given(NamedTuple):
    """Arguments that are the same in all states."""

    to_kernel: tuple[Any, ...] = ()
    to_method: Mapping[str, Any] = MappingProxyType({})     # of `Workspace`, by name
    prescribed: np.ndarray | None = None    # bool (nv,), which accelerations are given; None: none
    robot: np.ndarray | None = None         # the table of bodies, if not that of the robot


NOTHING = Given()


class Problem(NamedTuple):
    """A task for states of a robot."""

    model: Model
    task: States
    states: list[np.ndarray]            # in the order of ``task.labels``, and zeros
    wrenches: BatchWrenches = NO_WRENCHES
    given: Given = NOTHING
    numbers: np.ndarray | None = None   # of the states in errors; None: 0, 1 ...

    def run(self, start: int, stop: int, raw: Sequence[np.ndarray]
            ) -> list[tuple[int, list[np.ndarray]]]:
        """Compute states into ``raw``; return the numbers and results of those done one by one."""
        compute, prescribed = self._computer(), self.given.prescribed
        if compute is None:
            return [(k, self.alone(k)) for k in range(start, stop)]
        workspace, first = workspace_of(self.model), start
        apart: list[tuple[int, list[np.ndarray]]] = []
        try:
            while True:
                if prescribed is not None:
                    workspace._prescribe(prescribed)
                bad = compute(first, stop, [x[first - start:] for x in raw])
                if bad < 0:
                    return apart
                bad += first
                first = min(bad + WIDTH, stop)
                apart += [(k, self.alone(k)) for k in range(bad, first)]
                if first == stop:
                    return apart
        finally:
            if prescribed is not None:
                workspace._prescribe(False)
            if self.wrenches.of_links and self.model.loops is None:
                workspace._kept(scratch_table)['robot'][:] = 0.0

    def _computer(self) -> Callable[[int, int, Sequence[np.ndarray]], int] | None:
        """Return what computes states as kernels do; None: they are computed one by one."""
        task, given, wrenches = self.task, self.given, self.wrenches
        workspace: Any = workspace_of(self.model)
        if WAY == 'cc' and task.name and given.robot is None:   # machine code stands for kernels
            if len(self.states[0]) < MANY:
                return None
            code = self._code()
            if code is not None or self.model.loops is not None:
                return None if code is None else partial(self._run_code, code)
        if self.model.loops is None:
            robot = workspace.robot if given.robot is None else given.robot
            buffers = workspace._kept(task.buffers)
            return lambda start, stop, raw: run_kernel(
                task.kernel, robot, workspace._traits, *self._part(start, stop),
                *(wrenches.of_chunk(start, stop) if task.wrenched else ()), *given.to_kernel,
                *buffers, *raw)
        if task.closed is None or wrenches.of_links or given is not NOTHING:
            return None
        kernel = getattr(closed_loops, task.closed.kernel), *task.closed.arrays(workspace)
        return lambda start, stop, raw: run_kernel(*kernel, *self._part(start, stop), *raw)

    def _code(self) -> Runner | None:
        """Return the machine code that computes the states; None: it cannot."""
        options = [(label, tuple(x.tolist()) if isinstance(x, np.ndarray) else x)
                   for label, x in self.given.to_method.items()]
        return runner_of_states(self.model, self.task.name, (
            *options, *[(WRENCHES, True)] * bool(self.wrenches.of_links)))

    def _run_code(self, code: Runner, start: int, stop: int, raw: Sequence[np.ndarray]) -> int:
        """Compute states by machine code; return the first without an answer, from 0, or DONE."""
        inputs = self._part(start, stop)[:len(self.task.labels)]
        if self.wrenches.of_links:
            inputs.append(self.wrenches.of_bodies(self.model, start, stop))
        return code.run(stop - start, [*inputs, workspace_of(self.model)._kept(_inertias)], raw)

    def alone(self, k: int) -> list[np.ndarray]:
        """Return copies of the results of one state; errors name it."""
        options = self.given.to_method
        if self.task.wrenched:
            options = {**options, 'external_wrenches': self.wrenches.of_state(k)}
        try:
            return [np.array(x) for x in self.task.single(
                workspace_of(self.model), *(x[k] for x in self.states), **options)]
        except RbdError as error:
            number = k if self.numbers is None else self.numbers[k]
            raise type(error)(f'state {number}: {error}') from None

    def _part(self, start: int, stop: int) -> list[np.ndarray]:
        """Return some of the states."""
        if stop - start < len(self.states[0]):
            return [x[start:stop] for x in self.states]
        return self.states

    @property
    def shapes(self) -> Sequence[tuple[int, ...]]:
        """Return the shapes of the blocks of results for one state."""
        return self.task.shapes(self.model, self.model.nv)

    def piece(self, start: int, stop: int) -> Sequence[np.ndarray]:
        """Return the results of a few states, in arrays that are kept."""
        shapes, workspace = self.shapes, workspace_of(self.model)
        # Kernels for closed loops write the blocks of results themselves.
        raw = [workspace._kept(Scratch(f'piece {k}', (self.states_in_piece(), *shape)))
               [:stop - start] for k, shape in enumerate(
                   self.task.written(shapes) if self.model.loops is None else shapes)]
        parts = self.task.results(shapes, raw)
        for k, values in self.run(start, stop, raw):
            for part, value in zip(parts, values):
                part[k - start] = value
        return parts

    def states_in_piece(self) -> int:
        """Return how many states `piece` takes at most."""
        return max(WIDTH, min(CHUNK, PIECE // max(1, *map(prod, self.shapes))))

    def fill(self, results: Sequence[np.ndarray], raw: Sequence[np.ndarray] | None,
             start: int, stop: int) -> None:
        """Write the results of some states; ``raw`` is as `results_of` returns it."""
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
        count = len(self.states[0])
        arrays, raw = results_of(self.model, self.task, self.named_states(), count, out)
        compute(count, lambda start, stop: self.fill(arrays, raw, start, stop), threads, progress)
        return arrays

    def named_states(self) -> dict[str, np.ndarray]:
        return dict(zip(self.task.labels, self.states))

    def with_mask(self, prescribed: np.ndarray) -> 'Problem':
        """Return the problem in which some accelerations are given in all states."""
        return self._replace(given=Given((), {'prescribed': prescribed}, prescribed))


def _inertias(workspace: RobotArrays) -> np.ndarray:
    return inertial_constants(workspace.model.unconstrained.tree)


def run_kernel(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Run a kernel on arguments that are known to be right, after compiling it if necessary."""
    try:
        return kernel(*arguments)
    except TypeError:
        return prepare(kernel, *arguments)(*arguments)


def problem_of(model: Model, task: States, values: Sequence[npt.ArrayLike],
               external_wrenches: Wrenches | None = None, given: Given = NOTHING) -> Problem:
    """Return a user's problem, checked; its states need no further conversion for the kernels."""
    Q = rows(model, task.labels[0], values[0], positions=True, finite=False)
    states = [Q, *(rows(model, label, x, len(Q), finite=False)
                   for label, x in zip(task.labels[1:], values[1:])),
              *(np.zeros((len(Q), model.nv)) for _ in task.zeros)]
    return Problem(model, task, states, batch_wrenches(model, external_wrenches, len(Q))
                   if task.wrenched else NO_WRENCHES, given)


def solve(model: Model, task: States, values: Sequence[npt.ArrayLike], out: object,
          threads: int | None, progress: Progress | None, *,
          external_wrenches: Wrenches | None = None,
          given: Given = NOTHING) -> Sequence[np.ndarray]:
    """Return the results of a user's states; see `rbd_ros.batch` for the options."""
    if task.coupled is not None:
        task = task.of_robot(model)
    # With few states checks take a large share of the time, so the kernel is tried first.
    if (COMPILES and progress is None and external_wrenches is None and given.robot is None
            and (threads is None or (type(threads) is int and threads > 0))):
        workspace = workspace_of(model)
        try:
            count = len(values[0])      # type: ignore[arg-type]  # TypeError
            if model.loops is None and count <= CHUNK and {*map(type, values)} == ARRAYS:
                if task.zeros:
                    values = *values, *len(task.zeros) * [np.zeros((count, workspace._nv))]
                shapes = task.shapes(model, workspace._nv)
                raw: Any = ([new_array((count, *shape)) for shape in task.written(shapes)]
                            if out is None else ready_made(out, count, task, shapes, values))
                if raw and task.kernel(workspace.robot, workspace._traits, *values,
                                       *(UNWRENCHED if task.wrenched else ()), *given.to_kernel,
                                       *workspace._kept(task.buffers), *raw) == DONE:
                    return (task.results(shapes, raw) if out is None
                            else out if isinstance(out, tuple) else (out,))
        except TypeError:
            pass
    return problem_of(model, task, values, external_wrenches, given).solve(out, threads, progress)


def solve_prescribed(
        model: Model, task: States, values: Sequence[npt.ArrayLike], prescribed: npt.ArrayLike,
        out: object, threads: int | None, progress: Progress | None, *,
        external_wrenches: Wrenches | None) -> Sequence[np.ndarray]:
    """Do `solve` where some accelerations are prescribed: one mask for all states, or for each."""
    task = task.of_robot(model)
    problem = problem_of(model, task, values, external_wrenches)
    count = len(problem.states[0])
    prescribed = mask(model, 'prescribed', prescribed, count)
    if prescribed.ndim == 1:
        return problem.with_mask(prescribed).solve(out, threads, progress)
    arrays, _ = results_of(model, task, problem.named_states(), count, out)
    done = 0
    different, kind = np.unique(prescribed, axis=0, return_inverse=True)
    for k, one in enumerate(different):
        numbers = np.flatnonzero(kind.reshape(-1) == k)
        part = problem.with_mask(one)._replace(
            states=[x[numbers] for x in problem.states], numbers=numbers,
            wrenches=problem.wrenches.take(numbers))
        shifted = None if progress is None else partial(_shifted, progress, done, count)
        for array, x in zip(arrays, part.solve(None, threads, shifted)):
            array[numbers] = x
        done += len(numbers)
    return arrays


def _shifted(progress: Progress, before: int, count: int, done: int, _: int) -> None:
    """Report progress with some of the states, of which ``before`` others are done."""
    progress(before + done, count)
