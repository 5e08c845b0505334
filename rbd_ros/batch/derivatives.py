# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of inverse and forward dynamics of many states."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import lanes_for, lanes_of, Room
from rbd_ros.batch.results import Quantity, results_of
from rbd_ros.batch.tasks import problem_of, solve, Task
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.kernels.batch import forward_derivatives_states, inverse_derivatives_states
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.model.arguments import check_model, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.results import Derivatives


def cut_derivatives(blocks: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `Derivatives` that stand side by side."""
    n = blocks.shape[1]
    return [blocks[:, :, :n], blocks[:, :, n:2 * n], blocks[:, :, 2 * n:]]


def factor(workspace: Workspace) -> np.ndarray:
    """Return lanes for a factor of M."""
    return Room('factor', (workspace._nv, workspace._nv, WIDTH))(workspace)


def path(workspace: Workspace) -> np.ndarray:
    """Return room for the numbers of the joints on the way to the root."""
    return np.zeros(workspace._nv, np.int64)


DERIVATIVES = Quantity(lambda model, n: [(n, 3 * n)], cut_derivatives, lambda G, blocks: [
    G.T @ X @ G for X in cut_derivatives(blocks)])
INVERSE = Task(inverse_derivatives_states, ('Q', 'V', 'A'), DERIVATIVES,
               lanes_for('qva', lanes_of(DERIVATIVES)),
               lambda w, *state, **options: w.inverse_dynamics_derivatives(*state, **options),
               True)
FORWARD = Task(forward_derivatives_states, ('Q', 'V', 'Tau'), DERIVATIVES,
               lanes_for('qvat', lanes_of(DERIVATIVES), factor, path, lanes_of(DERIVATIVES)),
               lambda w, *state, **options: w.forward_dynamics_derivatives(*state, **options),
               True)


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
        See `rbd_ros.batch`.

    Returns
    -------
    Derivatives
        Of arrays of the shape (states, nv, nv).

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return Derivatives(*solve(model, INVERSE, (Q, V, A), out, threads, progress,
                              external_wrenches=external_wrenches))


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
        See `rbd_ros.batch`.

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
    check_model(model)
    if model.coordinates.is_identity:
        return Derivatives(*solve(model, FORWARD, (Q, V, Tau), out, threads, progress,
                                  external_wrenches=external_wrenches))
    problem = problem_of(model, FORWARD, (Q, V, Tau), external_wrenches)
    count = len(problem.states[0])
    arrays, _ = results_of(model, DERIVATIVES, problem.named_states(), count, out)

    def work(start: int, stop: int) -> None:
        # At least one: kernels are compiled in one thread, before others begin.
        for k in range(start, max(stop, start + 1)):
            for array, value in zip(arrays, problem.alone(k)):
                array[k] = value

    compute(count, work, threads, progress)
    return Derivatives(*arrays)
