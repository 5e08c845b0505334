# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Regressors of many states."""

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.results import as_written, Quantity
from rbd_ros.batch.rooms import lanes_for, lanes_of
from rbd_ros.batch.tasks import solve, Task
from rbd_ros.batch.threads import Progress
from rbd_ros.kernels.batch import torque_regressor_states
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.regressors import body_table


def columns_of(model: Model) -> int:
    """Return how many inertial parameters the moving bodies have."""
    return 10 * len(workspace_of(model)._kept(body_table))


REGRESSORS = Quantity(lambda model, n: [(n, columns_of(model))], as_written,
                      lambda G, Y: [G.T @ Y])
TORQUE_REGRESSOR = Task(
    torque_regressor_states, ('Q', 'V', 'A'), REGRESSORS,
    lanes_for('qva', lambda w: w._kept(body_table), lanes_of(REGRESSORS)),
    lambda w, *state: [w.torque_regressor(*state)])


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
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv, parameters)
        See `rbd_ros.torque_regressor`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, TORQUE_REGRESSOR, (Q, V, A), out, threads, progress)[0]
