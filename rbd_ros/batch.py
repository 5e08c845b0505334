# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of many states at once, on all cores.

The functions are those of the same names in `rbd_ros`, without external wrenches. Arguments and
results have one state per row. Threads take the states in chunks and run compiled code; the memory
needed besides arguments and results does not grow with the number of states. Robots whose joints
mimic others are computed one state after the other.

Every function takes ``threads``, their number (default: one per core), and ``progress``, which is
called as ``progress(done, states)`` after every chunk.

"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
import os
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import RbdError
from rbd_ros.kernels.batch import (all_terms_states, forward_derivatives_states,
                                   hybrid_dynamics_states, inverse_derivatives_states,
                                   inverse_dynamics_states, torque_regressor_states)
from rbd_ros.kernels.compiled import prepare
from rbd_ros.kernels.lanes import WIDTH
from rbd_ros.model.model import Model
from rbd_ros.validation import mask, rows, whole_number
from rbd_ros.workspace import Workspace, workspace_of
from rbd_ros.workspace.derivatives import derivatives_and_factor, of_unknowns
from rbd_ros.workspace.regressors import moving_links
from rbd_ros.workspace.results import Derivatives, DynamicsTerms, term_layout

# States in a chunk: enough to make the cost of a call from Python negligible.
CHUNK = 1024
# Kernels that are compiled, each for robots without screws or with.
_ready: set[tuple[Callable[..., Any], bool]] = set()
# Process, number and pool of the threads that are kept.
_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def inverse_dynamics(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, *,
                     threads: int | None = None,
                     progress: Callable[[int, int], object] | None = None) -> np.ndarray:
    """
    Return the torques of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    threads, progress
        See the module.

    Returns
    -------
    ndarray, shape (states, nv)
        N m or N.

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    Tau = np.zeros((len(Q), model.nv))
    _compute(model, inverse_dynamics_states, {'Q': Q, 'V': V, 'A': A},
             lambda workspace: workspace._kept(_lanes)[:4], [Tau], [Tau],
             lambda workspace, *state: [workspace.inverse_dynamics(*state)], threads, progress)
    return Tau


def forward_dynamics(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, Tau: npt.ArrayLike, *,
                     threads: int | None = None,
                     progress: Callable[[int, int], object] | None = None) -> np.ndarray:
    """
    Return the accelerations of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, Tau : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and torques; rad or m, per s, N m or N.
    threads, progress
        See the module.

    Returns
    -------
    ndarray, shape (states, nv)
        rad/s^2 or m/s^2.

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.
    SingularError
        If a joint moves no inertia.

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    return hybrid_dynamics(model, Q, V, np.zeros((len(Q), model.nv)), Tau,
                           np.zeros(model.nv, bool), threads=threads, progress=progress)[0]


def hybrid_dynamics(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, Tau: npt.ArrayLike,
        prescribed: npt.ArrayLike, *, threads: int | None = None,
        progress: Callable[[int, int], object] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the accelerations and torques of many states, given one of the two for each joint.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A, Tau : array_like, shape (states, nq), then (states, nv)
        Configurations, velocities, accelerations and torques; entries that are not given are
        ignored.
    prescribed : array_like of bool, shape (nv,)
        For each velocity, whether its acceleration is given (true) or its torque (false), in all
        states alike.
    threads, progress
        See the module.

    Returns
    -------
    A, Tau : ndarray, shape (states, nv)
        rad/s^2 or m/s^2, N m or N.

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.
    SingularError
        If a joint whose torque is given moves no inertia.

    """
    prescribed = mask(model, 'prescribed', prescribed)
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    # Results are filled in beside what is given: in copies, not in the arrays of the user.
    A, Tau = (rows(model, label, x, len(Q), finite=False).copy()
              for label, x in (('A', A), ('Tau', Tau)))
    A[:, ~prescribed], Tau[:, prescribed] = 0.0, 0.0
    states = {'Q': Q, 'V': V, 'A': A, 'Tau': Tau}

    def buffers(workspace: Workspace) -> tuple[np.ndarray, ...]:
        workspace.prescribe(prescribed)
        return workspace._kept(_lanes)

    _compute(model, hybrid_dynamics_states, states, buffers, [], [states['A'], states['Tau']],
             lambda workspace, *state: workspace.hybrid_dynamics(*state, prescribed), threads,
             progress)
    return states['A'], states['Tau']


def all_terms(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, *, threads: int | None = None,
              progress: Callable[[int, int], object] | None = None) -> DynamicsTerms:
    """
    Return M, C, g, C v, J_CoM and the centre of mass of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V : array_like, shape (states, nq) and (states, nv)
        Configurations and velocities; rad or m, per s.
    threads, progress
        See the module.

    Returns
    -------
    DynamicsTerms
        Of arrays with one more axis, the first, for the states; C is the Christoffel form.

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    blocks = np.zeros((len(Q), 2 * model.nv + 6, max(model.nv, 3)))
    terms = DynamicsTerms(*(np.moveaxis(part, -1, 0) for part in term_layout(model.nv).cut(
        np.moveaxis(blocks, 0, -1))))
    _compute(model, all_terms_states, {'Q': Q, 'V': V},
             lambda workspace: (*workspace._kept(_lanes)[:3], workspace._kept(_lanes_of_terms)),
             [blocks], terms,
             lambda workspace, *state: workspace.all_terms(*state), threads, progress)
    return terms


def inverse_dynamics_derivatives(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, *,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None) -> Derivatives:
    """
    Return the derivatives of the torques of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    threads, progress
        See the module.

    Returns
    -------
    Derivatives
        Of arrays of the shape (states, nv, nv).

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    jacobians = np.zeros((len(Q), model.nv, 3 * model.nv))
    derivatives = Derivatives(*np.split(jacobians, 3, axis=2))
    _compute(model, inverse_derivatives_states, {'Q': Q, 'V': V, 'A': A},
             lambda workspace: (), [jacobians], derivatives,
             lambda workspace, *state: workspace.inverse_dynamics_derivatives(*state), threads,
             progress)
    return derivatives


def forward_dynamics_derivatives(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, Tau: npt.ArrayLike, *,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None) -> Derivatives:
    """
    Return the derivatives of the accelerations of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, Tau : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and torques; rad or m, per s, N m or N.
    threads, progress
        See the module.

    Returns
    -------
    Derivatives
        Of arrays of the shape (states, nv, nv).

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.
    SingularError
        If a joint moves no inertia.

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    solved = np.zeros((len(Q), model.nv, 3 * model.nv))
    derivatives = Derivatives(*np.split(solved, 3, axis=2))

    def one(workspace: Workspace, q: np.ndarray, v: np.ndarray, _: np.ndarray,
            tau: np.ndarray) -> Derivatives:
        return workspace.forward_dynamics_derivatives(q, v, tau)

    def buffers(workspace: Workspace) -> tuple[np.ndarray, ...]:
        X, lanes, _ = of_unknowns(workspace)
        return *derivatives_and_factor(workspace), X, lanes

    states = {'Q': Q, 'V': V, 'A': np.zeros((len(Q), model.nv)), 'Tau': Tau}
    _compute(model, forward_derivatives_states, states, buffers, [solved], derivatives, one,
             threads, progress)
    return derivatives


def torque_regressor(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, *,
                     threads: int | None = None,
                     progress: Callable[[int, int], object] | None = None) -> np.ndarray:
    """
    Return the regressors of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    threads, progress
        See the module.

    Returns
    -------
    ndarray, shape (states, nv, parameters)
        See `rbd_ros.torque_regressor`.

    Raises
    ------
    StateError
        If an array has the wrong shape, or a state has a non-finite entry.

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    links = moving_links(model)
    Y = np.zeros((len(Q), model.nv, 10 * len(links)))
    _compute(model, torque_regressor_states, {'Q': Q, 'V': V, 'A': A},
             lambda workspace: (links,), [Y], [Y],
             lambda workspace, *state: [workspace.torque_regressor(*state)], threads, progress)
    return Y


def _compute(model: Model, kernel: Callable[..., Any], states: Mapping[str, npt.ArrayLike],
             buffers: Callable[[Workspace], tuple[np.ndarray, ...]], raw: Sequence[np.ndarray],
             results: Sequence[np.ndarray], one: Callable[..., Sequence[np.ndarray]],
             threads: int | None, progress: Callable[[int, int], object] | None) -> None:
    """
    Run a kernel on all states.

    Parameters
    ----------
    model : Model
        The robot.
    kernel : callable
        Takes the robot's arrays, the states, the buffers and ``raw``, and writes to the latter.
    states : dict of str to array_like
        Arrays of states by name.
    buffers : callable
        Given the workspace of a thread, returns the buffers that the kernel needs.
    raw, results : sequence of ndarray
        Arrays that the kernel writes, and views of them that the user gets.
    one : callable
        Given a workspace and one state, returns the values of ``results``, or raises an error.
    threads, progress
        As the user gave them.

    """
    states = _checked(model, states)
    count = len(states['Q'])
    chunks = iter([slice(k, min(k + CHUNK, count)) for k in range(0, count, CHUNK)])
    done, lock = [0], Lock()

    def advance(chunk: slice) -> None:
        with lock:
            done[0] += chunk.stop - chunk.start
            if progress is not None:
                progress(done[0], count)

    def compute_one(workspace: Workspace, k: int) -> Sequence[np.ndarray]:
        try:
            return one(workspace, *(x[k] for x in states.values()))
        except RbdError as error:
            raise type(error)(f'state {k}: {error}') from None

    def arguments(workspace: Workspace, chunk: slice) -> tuple[Any, ...]:
        return (workspace.robot, model.tree.screws, *(x[chunk] for x in states.values()),
                *buffers(workspace), *(x[chunk] for x in raw))

    def work() -> None:
        workspace = workspace_of(model)
        try:
            for chunk in chunks:
                if model.folding is None:
                    bad = kernel(*arguments(workspace, chunk))
                    if bad >= 0:
                        compute_one(workspace, chunk.start + bad)
                else:
                    for k in range(chunk.start, chunk.stop):
                        for result, value in zip(results, compute_one(workspace, k)):
                            result[k] = value
                advance(chunk)
        finally:
            workspace.prescribe(False)
            for _ in chunks:
                pass                # after an error or Ctrl-C, leave nothing for the others

    kind = kernel, model.tree.screws is None
    if count and model.folding is None and kind not in _ready:
        # The recursion itself is compiled for one state, then the loop over states, in one thread.
        compute_one(workspace_of(model), 0)
        prepare(kernel, *arguments(workspace_of(model), slice(0, 1)))
        _ready.add(kind)
    threads = None if threads is None else whole_number('threads', threads)
    if count <= CHUNK or threads == 1:
        work()
        return
    helpers = min(threads or os.cpu_count() or 1, -(-count // CHUNK)) - 1
    futures = [_helpers(helpers).submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        # Helpers that have not begun, because others keep them, find nothing left to do.
        wait([future for future in futures if not future.cancel()])
    for future in futures:
        if not future.cancelled():
            future.result()


def _lanes(workspace: Workspace) -> tuple[np.ndarray, ...]:
    """Return a table of bodies for states side by side, and buffers for q, v, a and tau."""
    model = workspace.model
    v, a, tau = np.zeros((3, model.nv, WIDTH))
    return np.zeros((len(workspace.robot), WIDTH)), np.zeros((model.nq, WIDTH)), v, a, tau


def _lanes_of_terms(workspace: Workspace) -> np.ndarray:
    """Return a buffer for the terms of states side by side."""
    return np.zeros((*term_layout(workspace.model.nv).shape, WIDTH))


def _helpers(count: int) -> ThreadPoolExecutor:
    """Return threads, at least so many, which are kept, and their workspaces with them."""
    global _pool
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < count:
        # Threads do not survive a fork.
        _pool = os.getpid(), count, ThreadPoolExecutor(count, 'rbd_ros.batch')
    return _pool[2]


def _checked(model: Model, states: Mapping[str, npt.ArrayLike]) -> dict[str, np.ndarray]:
    """Return the states as arrays that need no further conversion for the kernels."""
    count = len(np.asarray(states['Q']))
    return {label: rows(model, label, x, count, positions=label == 'Q', finite=False)
            for label, x in states.items()}
