# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of many states at once, on all cores.

The functions are those of the same names in `rbd_ros`. Arguments and results have one state per
row. Several states are computed side by side in the registers of the processor, and threads take
them in chunks; the memory needed besides arguments and results does not grow with the number of
states.

Every function takes ``threads``, their number (default: one per core), ``progress``, which is
called as ``progress(done, states)`` after every chunk, and ``out``: arrays that results are
written to and that are returned, in place of new ones. They are as an earlier call returned them,
or of the same shapes, and of float64 or float32. After an error their content is undefined. Of
``external_wrenches`` each is one moment and force (6,) for all states, or one a state (states, 6).

"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rbd_ros.kernels.batch import (all_terms_states, dense_hybrid_dynamics_states,
                                   forward_derivatives_states, forward_dynamics_states,
                                   hybrid_dynamics_states, inverse_derivatives_states,
                                   inverse_dynamics_states, torque_regressor_states)
from rbd_ros.kernels.lanes import WIDTH
from rbd_ros.many_states import (CHUNK, compute, Problem, Progress, Pushes, pushes,
                                 Quantity, Results, results_of, Room, solve, table_of_lanes)
from rbd_ros.model.model import Model
from rbd_ros.validation import masks, rows, Wrenches
from rbd_ros.workspace import Workspace, workspace_of
from rbd_ros.workspace.regressors import moving_links
from rbd_ros.workspace.results import Derivatives, DynamicsTerms, term_layout

__all__ = ['all_terms', 'CHUNK', 'forward_dynamics', 'forward_dynamics_derivatives',
           'hybrid_dynamics', 'inverse_dynamics', 'inverse_dynamics_derivatives',
           'torque_regressor']


def fold_square(G: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return G^T X G."""
    return G.T @ X @ G


def cut_terms(blocks: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `DynamicsTerms` in what kernels write."""
    n = blocks.shape[1] // 2 - 3
    return [x.transpose(-1, *range(x.ndim - 1))
            for x in term_layout(n).cut(blocks.transpose(1, 2, 0))]


def fold_terms(G: np.ndarray, blocks: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `DynamicsTerms` of a robot with mimicking joints."""
    M, C, *vectors, com = cut_terms(blocks)
    return [*(fold_square(G, X) for X in (M, C)), *(x @ G for x in vectors), com]


def cut_derivatives(blocks: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `Derivatives` that stand side by side."""
    n = blocks.shape[1]
    return [blocks[:, :, :n], blocks[:, :, n:2 * n], blocks[:, :, 2 * n:]]


TORQUES = Quantity(lambda n: [(n,)], lambda tau: [tau], lambda G, tau: [tau @ G])
ACCELERATIONS = TORQUES
BOTH = Quantity(lambda n: [(n,), (n,)], lambda a, tau: [a, tau],
                lambda G, a, tau: [a @ G, tau @ G])
TERMS = Quantity(lambda n: [term_layout(n).shape], cut_terms, fold_terms)
DERIVATIVES = Quantity(lambda n: [(n, 3 * n)], cut_derivatives, lambda G, blocks: [
    fold_square(G, X) for X in cut_derivatives(blocks)])


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
        See the module.

    Returns
    -------
    ndarray, shape (states, nv)
        N m or N.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    states = _rows(model, Q, V=V, A=A)
    return solve(_of_torques(model, states, pushes(model, external_wrenches, len(states['Q']))),
                 out, threads, progress)[0]


def _of_torques(model: Model, states: dict[str, np.ndarray], pushed: Pushes) -> Problem:
    """Return the problem of inverse dynamics."""
    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        return (*pushed.of_chunk(start, stop), *workspace._kept(table_of_lanes)[:4])

    def one(workspace: Workspace, k: int, q: Any, v: Any, a: Any) -> Sequence[np.ndarray]:
        return [workspace.inverse_dynamics(q, v, a, pushed.of_state(k))]

    return Problem(model, inverse_dynamics_states, states, TORQUES, rest, one, pushed)


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
        See the module.

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
    states = _rows(model, Q, V=V, Tau=Tau)
    pushed = pushes(model, external_wrenches, len(states['Q']))

    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        return (*pushed.of_chunk(start, stop), *workspace._kept(table_of_lanes))

    def one(workspace: Workspace, k: int, q: Any, v: Any, tau: Any) -> Sequence[np.ndarray]:
        return [workspace.forward_dynamics(q, v, tau, pushed.of_state(k))]

    problem = Problem(model, forward_dynamics_states, states, ACCELERATIONS, rest, one, pushed)
    if model.folding is None:
        return solve(problem, out, threads, progress)[0]
    given = {**states, 'A': np.zeros_like(states['V'])}
    arrays = results_of(model, ACCELERATIONS, states, out)[0]
    _solve_dense(problem, given, np.zeros(model.nv, bool), arrays, threads, progress)
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
        See the module.

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
    states = _rows(model, Q, V=V, A=A, Tau=Tau)
    count = len(states['Q'])
    prescribed = masks(model, 'prescribed', prescribed, count)
    pushed = pushes(model, external_wrenches, count)
    results = results_of(model, BOTH, states, out)
    if prescribed.ndim == 1:
        _solve_hybrid(model, states, prescribed, pushed, results, None, threads, progress)
        return results.arrays[0], results.arrays[1]
    done = 0
    kinds, kind = np.unique(prescribed, axis=0, return_inverse=True)
    for k, given in enumerate(kinds):
        numbers = np.flatnonzero(kind.reshape(-1) == k)
        part = {label: x[numbers] for label, x in states.items()}
        found = results_of(model, BOTH, part, None)
        told = None if progress is None else (
            lambda now, _, before=done: progress(before + now, count))
        _solve_hybrid(model, part, given, pushed.picked(numbers), found, numbers, threads, told)
        for array, x in zip(results.arrays, found.arrays):
            array[numbers] = x
        done += len(numbers)
    return results.arrays[0], results.arrays[1]


def _solve_hybrid(model: Model, states: dict[str, np.ndarray], prescribed: np.ndarray,
                  pushed: Pushes, results: Results, numbers: np.ndarray | None,
                  threads: int | None, progress: Progress | None) -> None:
    """Write the accelerations and torques of states in which the same is given."""
    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        return (*pushed.of_chunk(start, stop), *workspace._kept(table_of_lanes))

    def one(workspace: Workspace, k: int, q: Any, v: Any, a: Any,
            tau: Any) -> Sequence[np.ndarray]:
        return workspace.hybrid_dynamics(q, v, a, tau, prescribed,
                                         external_wrenches=pushed.of_state(k))

    problem = Problem(model, hybrid_dynamics_states, states, BOTH, rest, one, pushed, prescribed,
                      numbers)
    if model.folding is None:
        compute(len(states['Q']), lambda start, stop: problem.fill(*results, start, stop),
                threads, progress)
    else:
        _solve_dense(problem, states, prescribed, results.arrays, threads, progress)


def _solve_dense(problem: Problem, given: dict[str, np.ndarray], prescribed: np.ndarray,
                 arrays: Sequence[np.ndarray], threads: int | None,
                 progress: Progress | None) -> None:
    """Solve the equations of motion as they stand [K (33)]: mimics close loops."""
    model = problem.model
    still = np.zeros_like(given['V'])
    bias = _of_torques(model, {'Q': given['Q'], 'V': given['V'], 'A': still}, problem.pushes)
    terms = _of_terms(model, {'Q': given['Q'], 'V': still})
    bias.numbers = terms.numbers = problem.numbers
    step = min(bias.states_in_piece(), terms.states_in_piece())

    def work(start: int, stop: int) -> None:
        workspace = workspace_of(model)
        for first in range(start, max(stop, start + 1), step):
            last = min(first + step, stop)
            b, M = bias.piece(first, last)[0], np.ascontiguousarray(terms.piece(first, last)[0])
            found, k = np.empty((2, last - first, model.nv)), 0
            while True:
                bad = workspace._call(
                    dense_hybrid_dynamics_states, M[k:], b[k:], given['A'][first + k:last],
                    given['Tau'][first + k:last], prescribed,
                    workspace._kept(Room('factor', (model.nv, model.nv))), *found[:, k:])
                if bad < 0:
                    break
                k += bad
                values = problem.alone(workspace, first + k)
                for x, value in zip(found, values):
                    x[k] = value
                k += 1
                if k == len(b):
                    break
            for array, x in zip(arrays, found):
                array[first:last] = x

    compute(len(still), work, threads, progress)


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
        See the module.

    Returns
    -------
    DynamicsTerms
        Of arrays with one more axis, the first, for the states; C is the Christoffel form.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return DynamicsTerms(*solve(_of_terms(model, _rows(model, Q, V=V)), out, threads, progress))


def _of_terms(model: Model, states: dict[str, np.ndarray]) -> Problem:
    """Return the problem of all terms."""
    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        return (*workspace._kept(table_of_lanes)[:3], _lanes(workspace, TERMS))

    def one(workspace: Workspace, k: int, *state: Any) -> Sequence[np.ndarray]:
        return workspace.all_terms(*state)

    return Problem(model, all_terms_states, states, TERMS, rest, one)


def inverse_dynamics_derivatives(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: Derivatives | None = None,
        threads: int | None = None, progress: Progress | None = None) -> Derivatives:
    """
    Return the derivatives of the torques of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    external_wrenches : mapping of str to array_like of shape (6,) or (states, 6), optional
        Moment and force on links, at their origins and in their axes, N m and N.
    out, threads, progress
        See the module.

    Returns
    -------
    Derivatives
        Of arrays of the shape (states, nv, nv).

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    states = _rows(model, Q, V=V, A=A)
    pushed = pushes(model, external_wrenches, len(states['Q']))

    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        return (*pushed.of_chunk(start, stop), *workspace._kept(table_of_lanes)[:4],
                _lanes(workspace, DERIVATIVES))

    def one(workspace: Workspace, k: int, q: Any, v: Any, a: Any) -> Sequence[np.ndarray]:
        return workspace.inverse_dynamics_derivatives(q, v, a, pushed.of_state(k))

    return Derivatives(*solve(Problem(model, inverse_derivatives_states, states, DERIVATIVES, rest,
                                      one, pushed), out, threads, progress))


def forward_dynamics_derivatives(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, Tau: npt.ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: Derivatives | None = None,
        threads: int | None = None, progress: Progress | None = None) -> Derivatives:
    """
    Return the derivatives of the accelerations of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, Tau : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and torques; rad or m, per s, N m or N.
    external_wrenches : mapping of str to array_like of shape (6,) or (states, 6), optional
        Moment and force on links, at their origins and in their axes, N m and N.
    out, threads, progress
        See the module.

    Returns
    -------
    Derivatives
        Of arrays of the shape (states, nv, nv).

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    SingularError
        If a joint moves no inertia.

    """
    states = _rows(model, Q, V=V, Tau=Tau)
    pushed = pushes(model, external_wrenches, len(states['Q']))

    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        n = workspace._n
        return (*pushed.of_chunk(start, stop), *workspace._kept(table_of_lanes),
                _lanes(workspace, DERIVATIVES), workspace._kept(Room('factor', (n, n, WIDTH))),
                np.zeros(n, np.int64), workspace._kept(Room('solved', (n, 3 * n, WIDTH))))

    def one(workspace: Workspace, k: int, q: Any, v: Any, tau: Any) -> Sequence[np.ndarray]:
        return workspace.forward_dynamics_derivatives(q, v, tau, pushed.of_state(k))

    problem = Problem(model, forward_derivatives_states, states, DERIVATIVES, rest, one, pushed)
    if model.folding is None:
        return Derivatives(*solve(problem, out, threads, progress))
    arrays = results_of(model, DERIVATIVES, states, out).arrays

    def work(start: int, stop: int) -> None:
        for k in range(start, stop):
            for array, value in zip(arrays, problem.alone(workspace_of(model), k)):
                array[k] = value

    compute(len(states['Q']), work, threads, progress)
    return Derivatives(*arrays)


def torque_regressor(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, *,
                     out: np.ndarray | None = None, threads: int | None = None,
                     progress: Progress | None = None) -> np.ndarray:
    """
    Return the regressors of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    out, threads, progress
        See the module.

    Returns
    -------
    ndarray, shape (states, nv, parameters)
        See `rbd_ros.torque_regressor`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    states, links = _rows(model, Q, V=V, A=A), moving_links(model)
    rows_of = Quantity(lambda n: [(n, 10 * len(links))], lambda Y: [Y], lambda G, Y: [G.T @ Y])

    def rest(workspace: Workspace, start: int, stop: int) -> tuple[Any, ...]:
        return (links, *workspace._kept(table_of_lanes)[:4], _lanes(workspace, rows_of))

    def one(workspace: Workspace, k: int, *state: Any) -> Sequence[np.ndarray]:
        return [workspace.torque_regressor(*state)]

    return solve(Problem(model, torque_regressor_states, states, rows_of, rest, one), out, threads,
                 progress)[0]


def _lanes(workspace: Workspace, quantity: Quantity) -> np.ndarray:
    """Return a buffer for what a kernel computes side by side; never written entries are zero."""
    return workspace._kept(Room('lanes', (*quantity.shapes(workspace._n)[0], WIDTH)))


def _rows(model: Model, Q: npt.ArrayLike, **states: npt.ArrayLike) -> dict[str, np.ndarray]:
    """Return states as arrays that need no further conversion for the kernels."""
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    return {'Q': Q, **{label: rows(model, label, x, len(Q), finite=False)
                       for label, x in states.items()}}
