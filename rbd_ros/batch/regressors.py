# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Products of the regressors of many states with vectors, without storing the regressors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.analysis.regressors import number_of_parameters
from rbd_ros.batch.tasks import Given, solve
from rbd_ros.batch.threads import Progress
from rbd_ros.kernels.lanes.lanes import WIDTH, zeros_for_lanes
from rbd_ros.kernels.states.batch_dynamics import (
    inverse_dynamics_states, transposed_product_states)
from rbd_ros.kernels.tree.layout import ARMATURE, INERTIA
from rbd_ros.model.body_table import PSEUDO_ENTRIES
from rbd_ros.model.changes.inertial import check_parameters, pseudo_inertia_of_parameters
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.lanes import shape, States
from rbd_ros.workspace.memory.scratch import body_table
from rbd_ros.workspace.workspace import workspace_of

PRODUCT = States(
    inverse_dynamics_states, shape(-1), labels=('Q', 'V', 'A'), wrenched=True,
    single=lambda w, *state, pi, external_wrenches: [w.torque_regressor(*state) @ pi])
TRANSPOSED_PRODUCT = States(
    transposed_product_states, lambda model, n: [(number_of_parameters(model),)], [
        lambda w: w._kept(body_table),
        lambda w: zeros_for_lanes((len(w._kept(body_table)), 10, WIDTH))],
    labels=('Q', 'V', 'A', 'X'),
    single=lambda w, q, v, a, x: [w.torque_regressor(q, v, a).T @ x])


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
