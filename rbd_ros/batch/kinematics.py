# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of links of many states."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import lanes_for, lanes_of, Room
from rbd_ros.batch.results import as_written, Quantity
from rbd_ros.batch.tasks import Given, solve, Task, tree_workspace
from rbd_ros.batch.threads import Progress
from rbd_ros.kernels.batch_kinematics import (jacobian_rate_states, jacobian_states,
                                              link_poses_states)
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.scratch import link_table

POSES = Quantity(lambda model, n: [(len(model.links), 4, 4)], as_written, lambda G, T: [T])
JACOBIANS = Quantity(lambda model, n: [(6, n)], as_written, lambda G, J: [J @ G])


def one_pose(workspace: Workspace) -> np.ndarray:
    """Return lanes for the pose of a link."""
    return Room('pose', (4, 4, WIDTH))(workspace)


def jacobian_and_rate(workspace: Workspace) -> np.ndarray:
    """Return lanes for a matrix of six rows and its rate."""
    return Room('rate', (12, workspace._nv, WIDTH))(workspace)


LINK_POSES = Task(
    link_poses_states, ('Q',), POSES,
    lanes_for('q', lambda w: w._kept(link_table), lanes_of(POSES)),
    lambda w, q: [w.forward_kinematics(q)])
BODY_JACOBIAN, WORLD_JACOBIAN = (
    Task(jacobian_states, ('Q',), JACOBIANS, lanes_for('q', lanes_of(JACOBIANS), one_pose), one)
    for one in (lambda w, q, link: w.body_jacobian(q, link)[:1],
                lambda w, q, link: w.world_jacobian(q, link)[:1]))
BODY_RATE, WORLD_RATE = (
    Task(jacobian_rate_states, ('Q', 'V'), JACOBIANS, lanes_for('qv', jacobian_and_rate), one)
    for one in (lambda w, q, v, link: w.jacobian_dot(q, v, link)[1:],
                lambda w, q, v, link: w.world_jacobian_dot(q, v, link)[1:]))


def forward_kinematics(model: Model, Q: npt.ArrayLike, *,
                       out: np.ndarray | None = None, threads: int | None = None,
                       progress: Progress | None = None) -> np.ndarray:
    """
    Return the poses of all links in the root's frame, of many states.

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
    ndarray, shape (states, len(model.links), 4, 4)
        In the order of ``model.link_names``. T[k, i] maps coordinates in link i to the root's.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, LINK_POSES, (Q,), out, threads, progress)[0]


def body_jacobian(model: Model, Q: npt.ArrayLike, link: str, *,
                  out: np.ndarray | None = None, threads: int | None = None,
                  progress: Progress | None = None) -> np.ndarray:
    """
    Return the Jacobians of a link about its origin, in its own axes, of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q : array_like, shape (states, nq)
        Configurations; rad or m.
    link : str
        The link's name.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        See `rbd_ros.body_jacobian`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    ModelError
        If no link has that name.

    """
    return _of_link(model, BODY_JACOBIAN, (Q,), link, False, out, threads, progress)


def world_jacobian(model: Model, Q: npt.ArrayLike, link: str, *,
                   out: np.ndarray | None = None, threads: int | None = None,
                   progress: Progress | None = None) -> np.ndarray:
    """
    Return the Jacobians of a link about its origin, in the root's axes, of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q : array_like, shape (states, nq)
        Configurations; rad or m.
    link : str
        The link's name.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        See `rbd_ros.world_jacobian`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    ModelError
        If no link has that name.

    """
    return _of_link(model, WORLD_JACOBIAN, (Q,), link, True, out, threads, progress)


def jacobian_dot(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, link: str, *,
                 out: np.ndarray | None = None, threads: int | None = None,
                 progress: Progress | None = None) -> np.ndarray:
    """
    Return the time derivatives of `body_jacobian` of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V : array_like, shape (states, nq) and (states, nv)
        Configurations and velocities; rad or m, per s.
    link : str
        The link's name.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        See `rbd_ros.jacobian_dot`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    ModelError
        If no link has that name.

    """
    return _of_link(model, BODY_RATE, (Q, V), link, False, out, threads, progress)


def world_jacobian_dot(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, link: str, *,
                       out: np.ndarray | None = None, threads: int | None = None,
                       progress: Progress | None = None) -> np.ndarray:
    """
    Return the time derivatives of `world_jacobian` of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V : array_like, shape (states, nq) and (states, nv)
        Configurations and velocities; rad or m, per s.
    link : str
        The link's name.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        See `rbd_ros.analysis.world_jacobian_dot`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.
    ModelError
        If no link has that name.

    """
    return _of_link(model, WORLD_RATE, (Q, V), link, True, out, threads, progress)


def _of_link(model: Model, task: Task, states: Sequence[npt.ArrayLike], link: str, aligned: bool,
             out: object, threads: int | None, progress: Progress | None) -> np.ndarray:
    """Return what belongs to one link, in its own axes or, where ``aligned``, in the root's."""
    check_model(model)
    workspace = tree_workspace(model)
    row = workspace._link_row(link)
    if task.kernel is jacobian_rate_states:
        to_kernel: tuple[object, ...] = row, aligned
    else:
        to_kernel = (row if aligned else workspace._body_rows[link],)
    return solve(model, task, states, out, threads, progress,
                 given=Given(to_kernel, {'link': link}))[0]
