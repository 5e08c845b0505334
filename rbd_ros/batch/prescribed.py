# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Quantities of many states in which some accelerations are prescribed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.results import results_of
from rbd_ros.batch.tasks import Given, Problem, problem_of
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.model.arguments import masks, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.lanes import Task


def solve_prescribed(
        model: Model, task: Task, values: Sequence[ArrayLike], prescribed: ArrayLike, out: object,
        threads: int | None, progress: Progress | None, *,
        external_wrenches: Wrenches | None) -> Sequence[np.ndarray]:
    """Do `rbd_ros.batch.tasks.solve`, with one mask for all states or one for each."""
    task = task.of_robot(model)
    problem = problem_of(model, task, values, external_wrenches)
    count = len(problem.states[0])
    prescribed = masks(model, 'prescribed', prescribed, count)
    arrays, raw = results_of(model, task.outputs, problem.named_states(), count, out)
    if prescribed.ndim == 1:
        _solve(problem, prescribed, arrays, raw, threads, progress)
        return arrays
    done = 0
    different, kind = np.unique(prescribed, axis=0, return_inverse=True)
    for k, mask in enumerate(different):
        numbers = np.flatnonzero(kind.reshape(-1) == k)
        part = problem._replace(states=[x[numbers] for x in problem.states], numbers=numbers,
                                wrenches=problem.wrenches.take(numbers))
        found = results_of(model, task.outputs, {}, len(numbers), None)
        _solve(part, mask, *found, threads, _shifted(progress, done, count))
        for array, x in zip(arrays, found.arrays):
            array[numbers] = x
        done += len(numbers)
    return arrays


def _shifted(progress: Progress | None, before: int, count: int) -> Progress | None:
    """Return a progress callback for some of the states, of which ``before`` are done."""
    return None if progress is None else lambda done, _: progress(before + done, count)


def _solve(problem: Problem, prescribed: np.ndarray, arrays: Sequence[np.ndarray],
           raw: Sequence[np.ndarray] | None, threads: int | None,
           progress: Progress | None) -> None:
    """Write the results of states with the same mask."""
    problem = problem._replace(given=Given((), {'prescribed': prescribed}, prescribed))
    compute(len(problem.states[0]), lambda start, stop: problem.fill(arrays, raw, start, stop),
            threads, progress)
