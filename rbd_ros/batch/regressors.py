# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The regressors of many states: products with vectors, normal equations and R factors.

Regressors are not stored, and the memory is constant. With Y the `torque_regressor` of a state,
tau its torques and w the weights of its rows, the parameters pi that explain the torques best
minimize the sum of w (Y pi - tau)^2. Errors are those of `rbd_ros.batch`.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.analysis.regressors import number_of_parameters
from rbd_ros.batch.tasks import Given, Problem, problem_of, solve
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.errors import StateError
from rbd_ros.kernels.lanes.lanes import WIDTH, zeros_for_lanes
from rbd_ros.kernels.states.batch_dynamics import (
    inverse_dynamics_states, transposed_product_states)
from rbd_ros.kernels.tree.layout import ARMATURE, INERTIA
from rbd_ros.model.arguments import finite_vector, one_or_rows, rows
from rbd_ros.model.body_table import PSEUDO_ENTRIES
from rbd_ros.model.changes.inertial import check_parameters, pseudo_inertia_of_parameters
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.lanes import Scratch, shape, States
from rbd_ros.workspace.memory.scratch import body_table
from rbd_ros.workspace.quantity import QUANTITIES
from rbd_ros.workspace.workspace import workspace_of

# Rows that are reduced at once, in units of their length: with fewer, most of the time would go
# into the factor of the rows before.
BLOCK_HEIGHT = 4
PRODUCT = States(
    inverse_dynamics_states, shape(-1), labels=('Q', 'V', 'A'), wrenched=True,
    single=lambda w, *state, pi, external_wrenches: [w.torque_regressor(*state) @ pi])
TRANSPOSED_PRODUCT = States(
    transposed_product_states, lambda model, n: [(number_of_parameters(model),)], [
        lambda w: w._kept(body_table),
        lambda w: zeros_for_lanes((len(w._kept(body_table)), 10, WIDTH))],
    labels=('Q', 'V', 'A', 'X'),
    single=lambda w, q, v, a, x: [w.torque_regressor(q, v, a).T @ x])


class NormalEquations(NamedTuple):
    """Result of `normal_equations`: ``matrix @ pi = vector`` for the best parameters."""

    matrix: np.ndarray      # sum of Y^T W Y, shape (parameters, parameters)
    vector: np.ndarray      # sum of Y^T W tau, shape (parameters,)
    square: float           # sum of tau^T W tau


def normal_equations(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, Tau: ArrayLike, *,
                     weights: ArrayLike | None = None, threads: int | None = None,
                     progress: Progress | None = None) -> NormalEquations:
    """
    Return the sums of Y^T W Y, of Y^T W tau and of tau^T W tau over many states.

    Rounding depends on which thread takes which states. The robot's parameters pi are not used.

    Parameters
    ----------
    model, Q, V, A, Tau
        Robot; states in rows, (states, nq), then (states, nv); rad or m, N m or N. The torques
        exclude rotors, friction and external wrenches.
    weights : array_like, shape (nv,) or (states, nv), optional
        The diagonal of W, not negative; default: 1.
    threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    NormalEquations
        Parameters are in the order of `rbd_ros.model.inertial_parameter_names`. If they are almost
        linearly dependent, `regressor_factor` has twice as many digits.

    """
    total = _reduce(model, (Q, V, A), Tau, weights, lambda total, X: total + X.T @ X, threads,
                    progress)
    return NormalEquations(total[:-1, :-1].copy(), total[:-1, -1].copy(), float(total[-1, -1]))


def regressor_factor(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike,
                     Tau: ArrayLike, *, weights: ArrayLike | None = None,
                     threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the R factor of W^(1/2) [Y, tau] of many states, stacked; arguments: `normal_equations`.

    Its signs and rounding depend on which thread takes which states.

    Returns
    -------
    ndarray, shape (parameters + 1, parameters + 1)
        R, upper triangular: |R [pi, -1]|^2 is the weighted sum of squares for parameters pi, so
        R[:-1, :-1] pi = R[:-1, -1] for the best ones, and R[-1, -1]^2 is their residual.

    """
    return _reduce(model, (Q, V, A), Tau, weights, triangle, threads, progress)


def triangle(*blocks: np.ndarray) -> np.ndarray:
    """Return the square R factor of stacked matrices."""
    stacked = np.concatenate(blocks)
    width = stacked.shape[1]
    R = np.zeros((width, width))
    factor = np.linalg.qr(stacked, mode='r')
    R[:len(factor)] = factor
    return R


def _reduce(model: Model, states: tuple[ArrayLike, ArrayLike, ArrayLike], Tau: ArrayLike,
            weights: ArrayLike | None, add: Callable[[np.ndarray, np.ndarray], np.ndarray],
            threads: int | None, progress: Progress | None) -> np.ndarray:
    """Return the rows [Y, tau] of all states reduced by ``add``, first for each thread."""
    task = QUANTITIES['torque_regressor'].states
    assert task is not None
    problem = problem_of(model, task, states)
    count = len(problem.states[0])
    Tau = rows(model, 'Tau', Tau, count, finite=False)
    if weights is not None:
        if type(weights) is not np.ndarray:
            weights = one_or_rows(model, 'weights', weights)
        weights = (rows(model, 'weights', weights, count, finite=False) if weights.ndim == 2
                   else np.broadcast_to(finite_vector(model, 'weights', weights), Tau.shape))
    nothing = np.zeros(2 * [number_of_parameters(model) + 1])
    found: dict[int, np.ndarray] = {}

    def work(start: int, stop: int) -> None:
        total = found.get(get_ident(), nothing)
        for block in _blocks(problem, Tau, weights, start, stop):
            total = add(total, block)
        found[get_ident()] = total
    compute(count, work, threads, progress)
    totals = list(found.values()) or [nothing]
    if add is triangle:
        return triangle(*totals)
    return np.sum(totals, axis=0)


def _blocks(problem: Problem, Tau: np.ndarray, weights: np.ndarray | None, start: int,
            stop: int) -> Iterator[np.ndarray]:
    """Yield the weighted rows [Y, tau] of some states at a time, in a buffer that is reused."""
    model = problem.model
    width, step = number_of_parameters(model) + 1, problem.states_in_piece()
    size = max(step, -(-BLOCK_HEIGHT * width // max(model.nv, 1)))
    buffer = workspace_of(model)._kept(Scratch('block', (size, model.nv, width)))
    # At least once: kernels are compiled in one thread, before others begin.
    for first in range(start, max(stop, start + 1), size):
        last = min(first + size, stop)
        block = buffer[:last - first]
        for k in range(first, max(last, first + 1), step):
            end = min(k + step, last)
            block[k - first:end - first, :, :-1] = problem.piece(k, end)[0]
        _check(model, 'Tau', Tau[first:last], first, -np.inf)
        block[:, :, -1] = Tau[first:last]
        if weights is not None:
            _check(model, 'weights', weights[first:last], first, 0.0)
            block *= np.sqrt(weights[first:last])[:, :, None]
        yield block.reshape(-1, width)


def _check(model: Model, label: str, values: np.ndarray, first: int, least: float) -> None:
    """Raise if a number is not finite or too small; the first row is of state ``first``."""
    bad = np.argwhere(~(np.isfinite(values) & (values >= least)))
    if len(bad):
        k, j = bad[0]
        raise StateError(f"state {first + k}: {label} of '{model.velocity_names[j]}' is "
                         f'{values[k, j]}; it must be finite'
                         + (' and not negative' if least == 0.0 else ''))


# -- Products. ------------------------------------------------------------------------------------
def torque_regressor_product(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, pi: ArrayLike,
                             *, out: np.ndarray | None = None, threads: int | None = None,
                             progress: Progress | None = None) -> np.ndarray:
    """
    Return Y pi of many states, the torques of parameters, with `torque_regressor` Y.

    Parameters
    ----------
    model, Q, V, A
        Robot, whose masses and inertias are not used; states in rows, (states, nq), (states, nv),
        (states, nv); rad or m, per s, per s^2.
    pi : array_like, shape (parameters,)
        In the order of `rbd_ros.model.inertial_parameter_names`, physically consistent or not.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv), without the torques of rotors, N m or N

    """
    pi = check_parameters(model, pi)
    workspace = workspace_of(model.unconstrained)
    bodies = workspace._kept(body_table)
    turns = np.tile(np.eye(4), (len(bodies), 1, 1))
    turns[:, :3, :3] = bodies[:, 1:].reshape(-1, 3, 3).transpose(0, 2, 1)
    P = turns @ pseudo_inertia_of_parameters(pi.reshape(-1, 10)) @ turns.transpose(0, 2, 1)
    robot = workspace.robot.copy()
    robot[workspace._columns(INERTIA, 10)] = 0.0
    robot[workspace._columns(ARMATURE, 1)] = 0.0
    robot[workspace._columns(INERTIA, 10)[bodies[:, 0].astype(int)]] = P[PSEUDO_ENTRIES]
    return solve(model, PRODUCT, (Q, V, A), out, threads, progress,
                 given=Given((), {'pi': pi}, robot=robot))[0]


def torque_regressor_transposed_product(
        model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, X: ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """
    Return Y^T x of many states, in O(n), with `torque_regressor` Y.

    Parameters
    ----------
    model, Q, V, A, out, threads, progress
        As for `torque_regressor_product`.
    X : array_like, shape (states, nv)
        Factors of the rows of Y, such as errors of torques.

    Returns
    -------
    ndarray, shape (states, parameters)
        In the order of `rbd_ros.model.inertial_parameter_names`.

    """
    return solve(model, TRANSPOSED_PRODUCT, (Q, V, A, X), out, threads, progress)[0]
