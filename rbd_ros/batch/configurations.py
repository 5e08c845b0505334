# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Integration and difference of many configurations; a zero quaternion raises StateError, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.results import results_of
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.errors import RbdError
from rbd_ros.model.arguments import number, rows
from rbd_ros.model.model import Model
from rbd_ros.model.positions import configurations
from rbd_ros.model.positions.steps import moved, step_between, with_unit_quaternions
from rbd_ros.workspace.memory.lanes import States


def integrate(model: Model, Q: ArrayLike, V: ArrayLike, dt: float, *,
              out: np.ndarray | None = None, threads: int | None = None,
              progress: Progress | None = None) -> np.ndarray:
    """
    Return many configurations after moving with the velocities V for the time dt.

    Parameters
    ----------
    model, Q, V, dt
        Robot; configurations (states, nq), rad or m; velocities (states, nv), rad/s or m/s; s.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nq), with unit quaternions

    """
    Q = rows(model, 'Q', Q, positions=True, finite=False)
    V, dt = rows(model, 'V', V, len(Q), finite=False), number('dt', dt)
    return _compute(
        model, model.nq, {'Q': Q, 'V': V}, lambda q, v: with_unit_quaternions(
            model, moved(model, with_unit_quaternions(model, q), dt * v)),
        lambda q, v: configurations.integrate(model, q, v, dt), out, threads, progress)


def difference(model: Model, Q_0: ArrayLike, Q_1: ArrayLike, *, out: np.ndarray | None = None,
               threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """
    Return the velocities that lead from configurations to others in unit time.

    Parameters
    ----------
    model, Q_0, Q_1
        Robot; configurations (states, nq), rad or m.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv)
        rad/s and m/s; rotations of ball and free joints by at most pi.

    """
    Q_0 = rows(model, 'Q_0', Q_0, positions=True, finite=False)
    Q_1 = rows(model, 'Q_1', Q_1, len(Q_0), positions=True, finite=False)
    return _compute(
        model, model.nv, {'Q_0': Q_0, 'Q_1': Q_1}, lambda a, b: step_between(
            model, with_unit_quaternions(model, a), with_unit_quaternions(model, b)),
        lambda a, b: configurations.difference(model, a, b), out, threads, progress)


def _compute(model: Model, width: int, states: dict[str, np.ndarray],
             many: Callable[..., np.ndarray], single: Callable[..., np.ndarray], out: object,
             threads: int | None, progress: Progress | None) -> np.ndarray:
    """Return the results of ``many``; of ``single`` where these are not finite, or with loops."""
    first, second = states.values()
    task = States(many, lambda model, n: [(width,)])
    (result,), _ = results_of(model, task, states, len(first), out)

    def work(start: int, stop: int) -> None:
        if model.loops is not None:
            found = np.full((stop - start, width), np.nan)
        else:
            with np.errstate(all='ignore'):
                found = many(first[start:stop], second[start:stop])
        for k in np.flatnonzero(~np.all(np.isfinite(found), axis=1)):
            try:
                found[k] = single(first[start + k], second[start + k])
            except RbdError as error:
                raise type(error)(f'state {start + k}: {error}') from None
        result[start:stop] = found
    compute(len(first), work, threads, progress)
    return result
