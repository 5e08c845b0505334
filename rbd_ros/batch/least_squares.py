# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What least squares need of the regressors of many states: sums and factors, in constant memory.

With Y the `torque_regressor` of a state, tau its torques and w the weights of its rows, the
parameters pi that explain the torques best minimize the sum of w (Y pi - tau)^2.

"""

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import Room
from rbd_ros.batch.regressors import columns_of, TORQUE_REGRESSOR
from rbd_ros.batch.tasks import Problem, problem_of
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_vector, one_or_rows, rows
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of

# Rows that are reduced at once, in units of their length: with fewer, a factor of all rows before
# would be read more often than they are.
TALL = 4


class NormalEquations(NamedTuple):
    """
    What `normal_equations` computes: ``matrix @ pi = vector`` for the best parameters.

    Attributes
    ----------
    matrix : ndarray, shape (parameters, parameters)
        Sum of Y^T W Y.
    vector : ndarray, shape (parameters,)
        Sum of Y^T W tau.
    square : float
        Sum of tau^T W tau.

    """

    matrix: np.ndarray
    vector: np.ndarray
    square: float


def normal_equations(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike,
                     Tau: npt.ArrayLike, *, weights: npt.ArrayLike | None = None,
                     threads: int | None = None,
                     progress: Progress | None = None) -> NormalEquations:
    """
    Return the sums of Y^T W Y, of Y^T W tau and of tau^T W tau over many states.

    Their rounding depends on which thread takes which states.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    Q, V, A, Tau : array_like, shape (states, nq), then (states, nv)
        Configurations, velocities, accelerations and torques; rad or m, N m or N. The torques are
        those of the bodies: without rotors, friction and external wrenches.
    weights : array_like, shape (nv,) or (states, nv), optional
        Of the rows, the diagonal of W; default: 1.
    threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    NormalEquations
        Parameters are in the order of `rbd_ros.model.inertial_parameter_names`. For parameters
        that are hard to tell apart `regressor_factor` has twice as many digits.

    Raises
    ------
    StateError
        If an array has the wrong shape, a state a non-finite entry, or a weight is negative.

    """
    total = _reduce(model, (Q, V, A), Tau, weights, add_products, threads, progress)
    return NormalEquations(total[:-1, :-1].copy(), total[:-1, -1].copy(), float(total[-1, -1]))


def regressor_factor(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike,
                     Tau: npt.ArrayLike, *, weights: npt.ArrayLike | None = None,
                     threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the R factor of W^(1/2) [Y, tau] of many states, one below the other.

    Its signs, and its rounding, depend on which thread takes which states.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    Q, V, A, Tau : array_like, shape (states, nq), then (states, nv)
        Configurations, velocities, accelerations and torques; rad or m, N m or N. The torques are
        those of the bodies: without rotors, friction and external wrenches.
    weights : array_like, shape (nv,) or (states, nv), optional
        Of the rows, the diagonal of W; default: 1.
    threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (parameters + 1, parameters + 1)
        R, upper triangular: |R [pi, -1]|^2 is the weighted sum of squares for parameters pi, so
        R[:-1, :-1] pi = R[:-1, -1] for the best, and R[-1, -1]^2 is what they leave.

    Raises
    ------
    StateError
        If an array has the wrong shape, a state a non-finite entry, or a weight is negative.

    """
    return _reduce(model, (Q, V, A), Tau, weights, triangle, threads, progress)


def triangle(*blocks: np.ndarray) -> np.ndarray:
    """Return the square R factor of matrices that stand above each other."""
    stacked = np.concatenate(blocks)
    width = stacked.shape[1]
    R = np.zeros((width, width))
    factor = np.linalg.qr(stacked, mode='r')
    R[:len(factor)] = factor
    return R


def add_products(total: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return a sum of products X^T X with that of one more block."""
    return total + block.T @ block


def _reduce(model: Model, states: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
            Tau: npt.ArrayLike, weights: npt.ArrayLike | None,
            add: Callable[[np.ndarray, np.ndarray], np.ndarray], threads: int | None,
            progress: Progress | None) -> np.ndarray:
    """Return what ``add`` makes of the rows [Y, tau] of all states; one result a thread first."""
    problem = problem_of(model, TORQUE_REGRESSOR, states)
    count = len(problem.states[0])
    Tau = rows(model, 'Tau', Tau, count, finite=False)
    if weights is not None:
        if type(weights) is not np.ndarray:
            weights = one_or_rows(model, 'weights', weights)
        weights = (rows(model, 'weights', weights, count, finite=False) if weights.ndim == 2
                   else np.broadcast_to(finite_vector(model, 'weights', weights), Tau.shape))
    nothing = np.zeros(2 * [columns_of(model) + 1])
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
    """Yield the rows [Y, tau], weighted, of some states at a time, in an array that is kept."""
    model = problem.model
    width, step = columns_of(model) + 1, problem.states_in_piece()
    size = max(step, -(-TALL * width // max(model.nv, 1)))
    room = workspace_of(model)._kept(Room('block', (size, model.nv, width)))
    # At least once: kernels are compiled in one thread, before others begin.
    for first in range(start, max(stop, start + 1), size):
        last = min(first + size, stop)
        block = room[:last - first]
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
