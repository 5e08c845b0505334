# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Centre of mass and centroidal momentum of many states."""

import numpy as np
import numpy.typing as npt
from rbd_ros.batch.buffers import lanes_for, lanes_of
from rbd_ros.batch.kinematics import jacobian_and_rate, JACOBIANS
from rbd_ros.batch.results import as_written, Quantity
from rbd_ros.batch.tasks import solve, Task
from rbd_ros.batch.threads import Progress
from rbd_ros.kernels.batch_kinematics import (center_of_mass_states, com_jacobian_rate_states,
                                              com_jacobian_states, momentum_rate_states,
                                              momentum_states)
from rbd_ros.model.model import Model

POINTS = Quantity(lambda model, n: [(3,)], as_written, lambda G, com: [com])
OF_POINTS = Quantity(lambda model, n: [(3, n)], as_written, lambda G, J: [J @ G])

COM = Task(center_of_mass_states, ('Q',), POINTS,
           lanes_for('q', lanes_of(OF_POINTS), lanes_of(POINTS)),
           lambda w, q: [w.center_of_mass(q)])
COM_JACOBIAN = Task(com_jacobian_states, ('Q',), OF_POINTS, COM.room,
                    lambda w, q: [w.com_jacobian(q)])
COM_RATE = Task(com_jacobian_rate_states, ('Q', 'V'), OF_POINTS,
                lanes_for('qv', jacobian_and_rate), lambda w, q, v: [w.com_jacobian_dot(q, v)])
MOMENTUM = Task(momentum_states, ('Q',), JACOBIANS, lanes_for('q', lanes_of(JACOBIANS)),
                lambda w, q: [w.centroidal_momentum_matrix(q)])
MOMENTUM_RATE = Task(momentum_rate_states, ('Q', 'V'), JACOBIANS, COM_RATE.room,
                     lambda w, q, v: w.centroidal_momentum_matrix_dot(q, v)[1:])


def center_of_mass(model: Model, Q: npt.ArrayLike, *,
                   out: np.ndarray | None = None, threads: int | None = None,
                   progress: Progress | None = None) -> np.ndarray:
    """
    Return the centres of mass of the whole robot, root link included, of many states.

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
    ndarray, shape (states, 3)
        In the root's frame, m; the root's origin for a robot without mass.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, COM, (Q,), out, threads, progress)[0]


def com_jacobian(model: Model, Q: npt.ArrayLike, *,
                 out: np.ndarray | None = None, threads: int | None = None,
                 progress: Progress | None = None) -> np.ndarray:
    """
    Return the Jacobians of the centre of mass of many states.

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
    ndarray, shape (states, 3, nv)
        J v is the velocity of the centre of mass in the root's frame, m/s.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, COM_JACOBIAN, (Q,), out, threads, progress)[0]


def com_jacobian_dot(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, *,
                     out: np.ndarray | None = None, threads: int | None = None,
                     progress: Progress | None = None) -> np.ndarray:
    """
    Return the time derivatives of `com_jacobian` of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V : array_like, shape (states, nq) and (states, nv)
        Configurations and velocities; rad or m, per s.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 3, nv)
        See `rbd_ros.analysis.com_jacobian_dot`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, COM_RATE, (Q, V), out, threads, progress)[0]


def centroidal_momentum_matrix(model: Model, Q: npt.ArrayLike, *,
                               out: np.ndarray | None = None, threads: int | None = None,
                               progress: Progress | None = None) -> np.ndarray:
    """
    Return the matrices that take v to the momentum about the centre of mass, of many states.

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
    ndarray, shape (states, 6, nv)
        See `rbd_ros.analysis.centroidal_momentum_matrix`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, MOMENTUM, (Q,), out, threads, progress)[0]


def centroidal_momentum_matrix_dot(model: Model, Q: npt.ArrayLike, V: npt.ArrayLike, *,
                                   out: np.ndarray | None = None, threads: int | None = None,
                                   progress: Progress | None = None) -> np.ndarray:
    """
    Return the time derivatives of `centroidal_momentum_matrix` of many states.

    Parameters
    ----------
    model : Model
        The robot.
    Q, V : array_like, shape (states, nq) and (states, nv)
        Configurations and velocities; rad or m, per s.
    out, threads, progress
        See `rbd_ros.batch`.

    Returns
    -------
    ndarray, shape (states, 6, nv)
        See `rbd_ros.analysis.centroidal_momentum_matrix_dot`.

    Raises
    ------
    StateError
        If an array, such as ``out``, has the wrong shape, or a state a non-finite entry.

    """
    return solve(model, MOMENTUM_RATE, (Q, V), out, threads, progress)[0]
