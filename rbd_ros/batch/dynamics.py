# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse, forward and hybrid dynamics of many states, and their terms."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import lanes_for, lanes_of
from rbd_ros.batch.coupled import solve_dense
from rbd_ros.batch.results import as_written, Quantity, results_of
from rbd_ros.batch.tasks import Given, Problem, problem_of, solve, Task
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.kernels.batch import (all_terms_states, forward_dynamics_states,
                                   gravity_torques_states, hybrid_dynamics_states,
                                   inverse_dynamics_states)
from rbd_ros.model.arguments import check_model, masks, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.results import DynamicsTerms, term_layout


@lru_cache
def parts_of_terms(n: int) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """Return what takes the `DynamicsTerms` of n velocities from what kernels write."""
    return itemgetter(*((slice(None), *where) for where in term_layout(n).places))


def cut_terms(blocks: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `DynamicsTerms` in what kernels write."""
    return parts_of_terms(blocks.shape[1] // 2 - 3)(blocks)


def fold_terms(G: np.ndarray, blocks: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `DynamicsTerms` of a robot with mimicking joints."""
    M, C, *vectors, com = cut_terms(blocks)
    return [*(G.T @ X @ G for X in (M, C)), *(x @ G for x in vectors), com]


TORQUES = Quantity(lambda model, n: [(n,)], as_written, lambda G, tau: [tau @ G])
BOTH = Quantity(lambda model, n: [(n,), (n,)], as_written, lambda G, a, tau: [a @ G, tau @ G])
TERMS = Quantity(lambda model, n: [term_layout(n).shape], cut_terms, fold_terms)

INVERSE_DYNAMICS = Task(
    inverse_dynamics_states, ('Q', 'V', 'A'), TORQUES, lanes_for('qva'),
    lambda w, *state, **options: [w.inverse_dynamics(*state, **options)], True)
GRAVITY_TORQUES = Task(gravity_torques_states, ('Q',), TORQUES, lanes_for('q'),
                       lambda w, q: [w.gravity_torques(q)])
FORWARD_DYNAMICS = Task(
    forward_dynamics_states, ('Q', 'V', 'Tau'), TORQUES, lanes_for('qvat'),
    lambda w, *state, **options: [w.forward_dynamics(*state, **options)], True)
HYBRID_DYNAMICS = Task(hybrid_dynamics_states, ('Q', 'V', 'A', 'Tau'), BOTH, lanes_for('qvat'),
                       lambda w, *state, **options: w.hybrid_dynamics(*state, **options), True)
ALL_TERMS = Task(all_terms_states, ('Q', 'V'), TERMS, lanes_for('qv', lanes_of(TERMS)),
                 lambda w, *state, **options: w.all_terms(*state, **options))


def inverse_dynamics(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, *,
                     external_wrenches: Wrenches | None = None,
                     out: np.ndarray | None = None, threads: int | None = None,
                     progress: Progress | None = None) -> np.ndarray:
    """
    Return the torques of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    external_wrenches : mapping of str to array_like of shape (6,) or (states, 6), optional
        Moment and force on links, at their origins and in their axes, N m and N.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv)
        N m or N.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, INVERSE_DYNAMICS, (Q, V, A), out, threads, progress,
                 external_wrenches=external_wrenches)[0]


def gravity_torques(model: Model, Q: npt.ArrayLike, *, out: np.ndarray | None = None,
                    threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the torques that hold the robot still, of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q : array_like, shape (states, nq)
        Configurations; rad or m.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv)
        N m or N.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, GRAVITY_TORQUES, (Q,), out, threads, progress)[0]


def forward_dynamics(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, Tau: npt.ArrayLike, *,
                     external_wrenches: Wrenches | None = None,
                     out: np.ndarray | None = None, threads: int | None = None,
                     progress: Progress | None = None) -> np.ndarray:
    """
    Return the accelerations of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, Tau : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and torques; rad or m, per s, N m or N.
    external_wrenches : mapping of str to array_like of shape (6,) or (states, 6), optional
        Moment and force on links, at their origins and in their axes, N m and N.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv)
        rad/s^2 or m/s^2.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    SingularError
        If a joint moves no inertia.

    """
    check_model(model)
    if model.coordinates.is_identity:
        return solve(model, FORWARD_DYNAMICS, (Q, V, Tau), out, threads, progress,
                     external_wrenches=external_wrenches)[0]
    problem = problem_of(model, FORWARD_DYNAMICS, (Q, V, Tau), external_wrenches)
    q, v, tau = problem.states
    arrays, _ = results_of(model, TORQUES, problem.named_states(), len(q), out)
    _solve_dense(problem, [q, v, np.zeros_like(v), tau], np.zeros(model.nv, bool), arrays, threads,
                 progress)
    return arrays[0]


def hybrid_dynamics(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, Tau: npt.ArrayLike,
        prescribed: npt.ArrayLike, *, external_wrenches: Wrenches | None = None,
        out: tuple[np.ndarray, np.ndarray] | None = None, threads: int | None = None,
        progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the accelerations and torques of many states, given one of the two for each joint.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A, Tau : array_like, shape (states, nq), then (states, nv)
        Configurations, velocities, accelerations and torques; entries that are not given are
        ignored.
    prescribed : array_like of bool, shape (nv,) or (states, nv)
        For each velocity, whether its acceleration is given (true) or its torque (false). States
        are computed side by side with others in which the same is given.
    external_wrenches : mapping of str to array_like of shape (6,) or (states, 6), optional
        Moment and force on links, at their origins and in their axes, N m and N.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    A, Tau : ndarray, shape (states, nv)
        rad/s^2 or m/s^2, N m or N.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    SingularError
        If a joint whose torque is given moves no inertia.

    """
    problem = problem_of(model, HYBRID_DYNAMICS, (Q, V, A, Tau), external_wrenches)
    count = len(problem.states[0])
    prescribed = masks(model, 'prescribed', prescribed, count)
    arrays, raw = results_of(model, BOTH, problem.named_states(), count, out)
    if prescribed.ndim == 1:
        _solve_hybrid(problem, prescribed, arrays, raw, threads, progress)
        return arrays[0], arrays[1]
    done = 0
    kinds, kind = np.unique(prescribed, axis=0, return_inverse=True)
    for k, given in enumerate(kinds):
        numbers = np.flatnonzero(kind.reshape(-1) == k)
        part = problem._replace(states=[x[numbers] for x in problem.states], numbers=numbers,
                                pushes=problem.pushes.picked(numbers))
        found = results_of(model, BOTH, {}, len(numbers), None)
        told = None if progress is None else (
            lambda now, _, before=done: progress(before + now, count))
        _solve_hybrid(part, given, *found, threads, told)
        for array, x in zip(arrays, found.arrays):
            array[numbers] = x
        done += len(numbers)
    return arrays[0], arrays[1]


def _solve_hybrid(problem: Problem, prescribed: np.ndarray, arrays: Sequence[np.ndarray],
                  raw: Sequence[np.ndarray] | None, threads: int | None,
                  progress: Progress | None) -> None:
    """Write the accelerations and torques of states in which the same is given."""
    problem = problem._replace(given=Given((), {'prescribed': prescribed}, prescribed))
    if problem.model.coordinates.is_identity:
        compute(len(problem.states[0]), lambda start, stop: problem.fill(arrays, raw, start, stop),
                threads, progress)
    else:
        _solve_dense(problem, problem.states, prescribed, arrays, threads, progress)


def _solve_dense(problem: Problem, states: Sequence[np.ndarray], prescribed: np.ndarray,
                 arrays: Sequence[np.ndarray], threads: int | None,
                 progress: Progress | None) -> None:
    """Solve the equations of motion of a robot whose joints mimic others."""
    q, v, a, tau = states
    still = np.zeros_like(v)
    bias = problem._replace(task=INVERSE_DYNAMICS, states=[q, v, still], given=Given())
    terms = Problem(problem.model, ALL_TERMS, [q, still], numbers=problem.numbers)
    solve_dense(problem, bias, terms, (a, tau, prescribed), arrays, threads, progress)


def all_terms(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, *,
              out: DynamicsTerms | None = None, threads: int | None = None,
              progress: Progress | None = None) -> DynamicsTerms:
    """
    Return M, C, g, C v, J_CoM and the centre of mass of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V : array_like, shape (states, nq) and (states, nv)
        Configurations and velocities; rad or m, per s.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    DynamicsTerms
        Of arrays with one more axis, the first, for the states; C is the Christoffel form.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return DynamicsTerms(*solve(model, ALL_TERMS, (Q, V), out, threads, progress))
