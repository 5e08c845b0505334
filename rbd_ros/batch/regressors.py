# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Regressors of many states, and their products with vectors, for which they are not stored."""

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import lanes_for, lanes_of, Room
from rbd_ros.batch.dynamics import TORQUES
from rbd_ros.batch.results import as_written, Quantity
from rbd_ros.batch.tasks import Given, solve, Task, tree_workspace
from rbd_ros.batch.threads import Progress
from rbd_ros.kernels.batch import (inverse_dynamics_states, torque_regressor_states,
                                   transposed_product_states)
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.kernels.layout import ARMATURE, INERTIA
from rbd_ros.model.inertial import check_parameters, pseudo_inertia_of_parameters
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace, workspace_of
from rbd_ros.workspace.scratch import body_table


def columns_of(model: Model) -> int:
    """Return how many inertial parameters the moving bodies have."""
    return 10 * len(workspace_of(model)._kept(body_table))


def entries_of_links(workspace: Workspace) -> np.ndarray:
    """Return lanes for ten numbers of each link."""
    return Room('entries', (len(workspace._kept(body_table)), 10, WIDTH))(workspace)


REGRESSORS = Quantity(lambda model, n: [(n, columns_of(model))], as_written,
                      lambda G, Y: [G.T @ Y])
TORQUE_REGRESSOR = Task(
    torque_regressor_states, ('Q', 'V', 'A'), REGRESSORS,
    lanes_for('qva', lambda w: w._kept(body_table), lanes_of(REGRESSORS)),
    lambda w, *state: [w.torque_regressor(*state)])
PRODUCT = Task(inverse_dynamics_states, ('Q', 'V', 'A'), TORQUES, lanes_for('qva'),
               lambda w, *state, pi, external_wrenches: [w.torque_regressor(*state) @ pi], True)
OF_PARAMETERS = Quantity(lambda model, n: [(columns_of(model),)], as_written, lambda G, y: [y])
TRANSPOSED_PRODUCT = Task(
    transposed_product_states, ('Q', 'V', 'A', 'X'), OF_PARAMETERS,
    lanes_for('qvat', lambda w: w._kept(body_table), entries_of_links),
    lambda w, q, v, a, x: [w.torque_regressor(q, v, a).T @ x])
# Entries of a 4x4 pseudo-inertia in the order of the kernels: Sigma (6), h (3), m.
ENTRIES = (0, 1, 2, 0, 0, 1, 0, 1, 2, 3), (0, 1, 2, 1, 2, 2, 3, 3, 3, 3)


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


def torque_regressor_product(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike,
                             pi: npt.ArrayLike, *, out: np.ndarray | None = None,
                             threads: int | None = None,
                             progress: Progress | None = None) -> np.ndarray:
    """
    Return Y pi of many states, the torques of parameters, with `torque_regressor` Y.

    It takes as long as inverse dynamics, and no regressor is stored.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    pi : array_like, shape (parameters,)
        In the order of `rbd_ros.model.inertial_parameter_names`; such bodies need not exist.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, nv)
        Without the torques of rotors, N m or N.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a non-finite entry.

    """
    pi = check_parameters(model, pi)
    workspace = tree_workspace(model)
    bodies = workspace._kept(body_table)
    turns = np.tile(np.eye(4), (len(bodies), 1, 1))
    turns[:, :3, :3] = bodies[:, 1:].reshape(-1, 3, 3).transpose(0, 2, 1)
    P = turns @ pseudo_inertia_of_parameters(pi.reshape(-1, 10)) @ turns.transpose(0, 2, 1)
    robot = workspace.robot.copy()
    robot[workspace._columns(INERTIA, 10)] = 0.0
    robot[workspace._columns(ARMATURE, 1)] = 0.0
    robot[workspace._columns(INERTIA, 10)[bodies[:, 0].astype(int)]] = P[:, ENTRIES[0],
                                                                         ENTRIES[1]]
    return solve(model, PRODUCT, (Q, V, A), out, threads, progress,
                 given=Given((), {'pi': pi}, robot=robot))[0]


def torque_regressor_transposed_product(
        model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, A: npt.ArrayLike, X: npt.ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """
    Return Y^T x of many states, with `torque_regressor` Y.

    In a time that grows with the number of joints, as that of inverse dynamics does; no regressor
    is stored.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    Q, V, A : array_like, shape (states, nq), (states, nv) and (states, nv)
        Configurations, velocities and accelerations; rad or m, per s, per s^2.
    X : array_like, shape (states, nv)
        What the rows of Y are multiplied by, such as errors of torques.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, parameters)
        In the order of `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a non-finite entry.

    """
    return solve(model, TRANSPOSED_PRODUCT, (Q, V, A, X), out, threads, progress)[0]
