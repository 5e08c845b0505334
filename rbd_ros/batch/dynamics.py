# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Forward and hybrid dynamics of many states, and the derivatives of forward dynamics."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros import derivatives, dynamics
from rbd_ros.batch.results import results_of
from rbd_ros.batch.tasks import Given, Problem, problem_of, run_kernel, solve
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.derivatives import shape_of_derivatives
from rbd_ros.kernels.batch_dynamics import (
    dense_hybrid_dynamics_states, forward_derivatives_states, forward_dynamics_states,
    hybrid_dynamics_states)
from rbd_ros.model.arguments import check_model, masks, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.documentation import documented_for_states
from rbd_ros.workspace.lanes import (
    as_written, lanes_of, Outputs, Scratch, scratch_buffers, shape, Task)
from rbd_ros.workspace.maps import matrix, torques
from rbd_ros.workspace.quantity import task_of
from rbd_ros.workspace.results import cut_derivatives, Derivatives
from rbd_ros.workspace.workspace import Workspace, workspace_of


def _path(workspace: Workspace) -> np.ndarray:
    """Return a buffer for the indices of the joints on the path to the root."""
    return np.zeros(workspace._nv, np.int64)


ALL = 'Q', 'V', 'A', 'Tau'
FORWARD = Task(
    forward_dynamics_states, ('Q', 'V', 'Tau'), Outputs(shape(-1), as_written, [torques]),
    scratch_buffers(ALL),
    lambda w, *state, **options: [w.forward_dynamics(*state, **options)], True)
HYBRID = Task(
    hybrid_dynamics_states, ALL,
    Outputs(lambda model, n: [(n,), (n,)], as_written, [torques, torques]), scratch_buffers(ALL),
    lambda w, *state, **options: w.hybrid_dynamics(*state, **options), True)
DERIVATIVES = Task(
    forward_derivatives_states, ('Q', 'V', 'Tau'),
    Outputs(shape_of_derivatives, cut_derivatives, [matrix] * 3),
    scratch_buffers(ALL, lanes_of(shape_of_derivatives), lanes_of(shape(-1, -1)), _path,
                    lanes_of(shape_of_derivatives)),
    lambda w, *state, **options: w.forward_dynamics_derivatives(*state, **options), True)


@documented_for_states(dynamics.forward_dynamics)
def forward_dynamics(model: Model, Q: ArrayLike, V: ArrayLike, Tau: ArrayLike, *,
                     external_wrenches: Wrenches | None = None, out: np.ndarray | None = None,
                     threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the accelerations that the torques Tau produce, for each of many states."""
    check_model(model)
    if model.coordinates.is_identity or model.loops is not None:
        return solve(model, FORWARD, (Q, V, Tau), out, threads, progress,
                     external_wrenches=external_wrenches)[0]
    problem = problem_of(model, FORWARD, (Q, V, Tau), external_wrenches)
    q, v, tau = problem.states
    arrays, _ = results_of(model, FORWARD.outputs, problem.named_states(), len(q), out)
    _solve_dense(problem, [q, v, np.zeros_like(v), tau], np.zeros(model.nv, bool), arrays, threads,
                 progress)
    return arrays[0]


@documented_for_states(dynamics.hybrid_dynamics)
def hybrid_dynamics(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, Tau: ArrayLike,
                    prescribed: ArrayLike, *, external_wrenches: Wrenches | None = None,
                    out: tuple[np.ndarray, np.ndarray] | None = None, threads: int | None = None,
                    progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return all accelerations and torques of many states, given one of the two for every joint.

    ``prescribed`` is (nv,) or (states, nv); states with the same mask are vectorized together.

    """
    problem = problem_of(model, HYBRID, (Q, V, A, Tau), external_wrenches)
    count = len(problem.states[0])
    prescribed = masks(model, 'prescribed', prescribed, count)
    arrays, raw = results_of(model, HYBRID.outputs, problem.named_states(), count, out)
    if prescribed.ndim == 1:
        _solve_hybrid(problem, prescribed, arrays, raw, threads, progress)
        return arrays[0], arrays[1]
    done = 0
    different, kind = np.unique(prescribed, axis=0, return_inverse=True)
    for k, mask in enumerate(different):
        numbers = np.flatnonzero(kind.reshape(-1) == k)
        part = problem._replace(states=[x[numbers] for x in problem.states], numbers=numbers,
                                wrenches=problem.wrenches.take(numbers))
        found = results_of(model, HYBRID.outputs, {}, len(numbers), None)
        _solve_hybrid(part, mask, *found, threads, _shifted(progress, done, count))
        for array, x in zip(arrays, found.arrays):
            array[numbers] = x
        done += len(numbers)
    return arrays[0], arrays[1]


def _shifted(progress: Progress | None, before: int, count: int) -> Progress | None:
    """Return a progress callback for some of the states, of which ``before`` are done."""
    return None if progress is None else lambda done, _: progress(before + done, count)


def _solve_hybrid(problem: Problem, prescribed: np.ndarray, arrays: Sequence[np.ndarray],
                  raw: Sequence[np.ndarray] | None, threads: int | None,
                  progress: Progress | None) -> None:
    """Write the accelerations and torques of states with the same mask."""
    problem = problem._replace(given=Given((), {'prescribed': prescribed}, prescribed))
    if problem.model.coordinates.is_identity or problem.model.loops is not None:
        compute(len(problem.states[0]), lambda start, stop: problem.fill(arrays, raw, start, stop),
                threads, progress)
    else:
        _solve_dense(problem, problem.states, prescribed, arrays, threads, progress)


def _solve_dense(problem: Problem, states: Sequence[np.ndarray], prescribed: np.ndarray,
                 arrays: Sequence[np.ndarray], threads: int | None,
                 progress: Progress | None) -> None:
    """Solve the equations of motion in the coordinates of the robot [K (33)]."""
    model, (q, v, a, tau) = problem.model, states
    still = np.zeros_like(v)
    bias = problem._replace(task=task_of('inverse_dynamics'), states=[q, v, still], given=Given())
    terms = Problem(model, task_of('all_terms'), [q, still], numbers=problem.numbers)
    step = min(bias.states_in_piece(), terms.states_in_piece())

    def work(start: int, stop: int) -> None:
        workspace = workspace_of(model)     # not of the tree: its buffers are smaller
        for first in range(start, max(stop, start + 1), step):
            last = min(first + step, stop)
            b, M = bias.piece(first, last)[0], np.ascontiguousarray(terms.piece(first, last)[0])
            found, k = np.empty((2, last - first, model.nv)), 0
            while True:
                bad = run_kernel(
                    dense_hybrid_dynamics_states, M[k:], b[k:], a[first + k:last],
                    tau[first + k:last], prescribed,
                    workspace._kept(Scratch('factor', (model.nv, model.nv))), *found[:, k:])
                if bad < 0:
                    break
                k += bad
                values = problem.alone(first + k)
                for x, value in zip(found, values):
                    x[k] = value
                k += 1
                if k == len(b):
                    break
            for array, x in zip(arrays, found):
                array[first:last] = x
    compute(len(a), work, threads, progress)


@documented_for_states(derivatives.forward_dynamics_derivatives)
def forward_dynamics_derivatives(
        model: Model, Q: ArrayLike, V: ArrayLike, Tau: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: Derivatives | None = None,
        threads: int | None = None, progress: Progress | None = None) -> Derivatives:
    """Return the derivatives of the accelerations with respect to q, v and tau of many states."""
    check_model(model)
    if model.coordinates.is_identity or model.loops is not None:
        return Derivatives(*solve(model, DERIVATIVES, (Q, V, Tau), out, threads, progress,
                                  external_wrenches=external_wrenches))
    problem = problem_of(model, DERIVATIVES, (Q, V, Tau), external_wrenches)
    count = len(problem.states[0])
    arrays, _ = results_of(model, DERIVATIVES.outputs, problem.named_states(), count, out)

    def work(start: int, stop: int) -> None:
        # At least one: kernels are compiled in one thread, before others begin.
        for k in range(start, max(stop, start + 1)):
            for array, value in zip(arrays, problem.alone(k)):
                array[k] = value
    compute(count, work, threads, progress)
    return Derivatives(*arrays)
