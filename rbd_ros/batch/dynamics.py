# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Matrices, biases, forward and hybrid dynamics of many states, and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros import derivatives, dynamics
from rbd_ros.batch.results import results_of
from rbd_ros.batch.tasks import Given, Problem, problem_of, solve
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.derivatives import shape_of_derivatives
from rbd_ros.kernels.states.batch_dynamics import (
    coupled_derivatives_states, coupled_forward_states, coupled_hybrid_states,
    forward_derivatives_states, forward_dynamics_states, hybrid_dynamics_states)
from rbd_ros.model.arguments import check_model, masks, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.documentation import documented_for_states
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import (
    as_written, Closed, lanes_of, Outputs, scratch_buffers, shape, Task)
from rbd_ros.workspace.memory.results import (
    cut_derivatives, cut_terms, Derivatives)
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import task_of


def _path(workspace: RobotArrays) -> np.ndarray:
    """Return a buffer for the indices of the joints on the path to the root."""
    return np.zeros(workspace._nv, np.int64)


ALL = 'Q', 'V', 'A', 'Tau'
FORWARD = Task(
    forward_dynamics_states, ('Q', 'V', 'Tau'), Outputs(shape(-1), as_written),
    scratch_buffers(ALL),
    lambda w, *state, **options: [w.forward_dynamics(*state, **options)], True,
    closed=Closed('closed_forward_states', lambda w: w._solver))
HYBRID = Task(
    hybrid_dynamics_states, ALL,
    Outputs(lambda model, n: [(n,), (n,)], as_written), scratch_buffers(ALL),
    lambda w, *state, **options: w.hybrid_dynamics(*state, **options), True)
DERIVATIVES = Task(
    forward_derivatives_states, ('Q', 'V', 'Tau'),
    Outputs(shape_of_derivatives, cut_derivatives),
    scratch_buffers(ALL, lanes_of(shape_of_derivatives), lanes_of(shape(-1, -1)), _path,
                    lanes_of(shape_of_derivatives)),
    lambda w, *state, **options: w.forward_dynamics_derivatives(*state, **options), True,
    closed=Closed('closed_forward_derivatives_states', lambda w: w._derivative_arrays()))


def _of_terms(part: int, one: Callable[..., np.ndarray]) -> Task:
    """Return the task of a matrix that `all_terms` computes with the others."""
    terms = task_of('all_terms')
    outputs = terms.outputs._replace(cut=lambda rows: cut_terms(rows)[part:part + 1])
    return terms._replace(outputs=outputs, one=lambda w, q, v: [one(w, q, v)])


MASS = _of_terms(0, lambda w, q, v: w.mass_matrix(q))
CORIOLIS = _of_terms(1, lambda w, q, v: w.coriolis_matrix(q, v))


# For robots whose joints share coordinates, with lanes for M, b and L.
EQUATIONS = (lambda w: w._kept(scratch.elimination_table)[0], lanes_of(shape(-1, -1)),
             lanes_of(shape(-1)), lanes_of(shape(-1, -1)))
COUPLED = {
    FORWARD: FORWARD._replace(kernel=coupled_forward_states,
                              scratch=scratch_buffers(ALL, *EQUATIONS)),
    HYBRID: HYBRID._replace(kernel=coupled_hybrid_states,
                            scratch=scratch_buffers(ALL, *EQUATIONS)),
    DERIVATIVES: DERIVATIVES._replace(
        kernel=coupled_derivatives_states, scratch=scratch_buffers(
            ALL, *EQUATIONS, lanes_of(shape_of_derivatives), _path,
            lanes_of(shape_of_derivatives)))}


def _for_robot(model: Model, task: Task) -> Task:
    """Return the task of a robot."""
    check_model(model)
    return task if model.coordinates.is_identity or model.loops is not None else COUPLED[task]


def _zeros(model: Model, states: ArrayLike) -> np.ndarray:
    check_model(model)
    return np.zeros((len(states) if np.ndim(states) else 0, model.nv))     # type: ignore[arg-type]


@documented_for_states(dynamics.mass_matrix)
def mass_matrix(model: Model, Q: ArrayLike, *, out: np.ndarray | None = None,
                threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return M(q) of many states; `all_terms` takes as long and has the other terms, too."""
    return solve(model, MASS, (Q, _zeros(model, Q)), out, threads, progress)[0]


@documented_for_states(dynamics.coriolis_matrix)
def coriolis_matrix(model: Model, Q: ArrayLike, V: ArrayLike, *, out: np.ndarray | None = None,
                    threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the Christoffel form of C(q, v) of many states, in the time of `all_terms`."""
    return solve(model, CORIOLIS, (Q, V), out, threads, progress)[0]


@documented_for_states(dynamics.bias_torques)
def bias_torques(model: Model, Q: ArrayLike, V: ArrayLike, *,
                 external_wrenches: Wrenches | None = None, out: np.ndarray | None = None,
                 threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the torques at zero acceleration, C v + g - sum J^T f, of many states."""
    return solve(model, task_of('inverse_dynamics'), (Q, V, _zeros(model, Q)), out, threads,
                 progress, external_wrenches=external_wrenches)[0]


@documented_for_states(dynamics.forward_dynamics)
def forward_dynamics(model: Model, Q: ArrayLike, V: ArrayLike, Tau: ArrayLike, *,
                     external_wrenches: Wrenches | None = None, out: np.ndarray | None = None,
                     threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the accelerations that the torques Tau produce, for each of many states."""
    return solve(model, _for_robot(model, FORWARD), (Q, V, Tau), out, threads,
                 progress, external_wrenches=external_wrenches)[0]


@documented_for_states(dynamics.hybrid_dynamics)
def hybrid_dynamics(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, Tau: ArrayLike,
                    prescribed: ArrayLike, *, external_wrenches: Wrenches | None = None,
                    out: tuple[np.ndarray, np.ndarray] | None = None, threads: int | None = None,
                    progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return all accelerations and torques of many states, given one of the two for every joint.

    ``prescribed`` is (nv,) or (states, nv); states with the same mask are vectorized together.

    """
    task = _for_robot(model, HYBRID)
    problem = problem_of(model, task, (Q, V, A, Tau), external_wrenches)
    count = len(problem.states[0])
    prescribed = masks(model, 'prescribed', prescribed, count)
    arrays, raw = results_of(model, task.outputs, problem.named_states(), count, out)
    if prescribed.ndim == 1:
        _solve_hybrid(problem, prescribed, arrays, raw, threads, progress)
        return arrays[0], arrays[1]
    done = 0
    different, kind = np.unique(prescribed, axis=0, return_inverse=True)
    for k, mask in enumerate(different):
        numbers = np.flatnonzero(kind.reshape(-1) == k)
        part = problem._replace(states=[x[numbers] for x in problem.states], numbers=numbers,
                                wrenches=problem.wrenches.take(numbers))
        found = results_of(model, task.outputs, {}, len(numbers), None)
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
    compute(len(problem.states[0]), lambda start, stop: problem.fill(arrays, raw, start, stop),
            threads, progress)


@documented_for_states(derivatives.forward_dynamics_derivatives)
def forward_dynamics_derivatives(
        model: Model, Q: ArrayLike, V: ArrayLike, Tau: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: Derivatives | None = None,
        threads: int | None = None, progress: Progress | None = None) -> Derivatives:
    """Return the derivatives of the accelerations with respect to q, v and tau of many states."""
    return Derivatives(*solve(
        model, _for_robot(model, DERIVATIVES), (Q, V, Tau), out, threads,
        progress, external_wrenches=external_wrenches))
