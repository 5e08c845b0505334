# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Efforts along a trajectory, and the time scaling that keeps it within the limits of the robot.

If all durations are multiplied by c, the path is unchanged, with the torques tau_s of springs

    tau(c) = g(q) + tau_s(q) + (M a + C v) / c^2 + tau_f(v / c)

and velocities, accelerations and jerks are divided by c, c^2 and c^3.

"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros import batch
from rbd_ros._internal.text import listed
from rbd_ros.dynamics import friction_torques, spring_torques
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, finite_array, rows
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import independent_positions
from rbd_ros.motions.limits import least_time_scale, slowdown


class TrajectoryEfforts(NamedTuple):
    """Result of `trajectory_efforts`; arrays have the shape (points, nv)."""

    velocity: np.ndarray        # as given or interpolated, rad/s or m/s
    acceleration: np.ndarray    # likewise, rad/s^2 or m/s^2
    effort: np.ndarray          # N m or N
    # Factor for the durations that brings velocities, their rates and efforts within the limits: 1
    # if they are, inf if efforts are not even at standstill.
    time_scale: float


def trajectory_efforts(model: Model, time: ArrayLike, q: ArrayLike, v: ArrayLike | None = None,
                       a: ArrayLike | None = None, *, friction: bool = True,
                       springs: bool = True) -> TrajectoryEfforts:
    """
    Return the efforts that a robot needs at the points of a trajectory.

    Missing velocities are those of a cubic spline through the positions that starts and ends at
    rest; missing accelerations are the rates of that spline, or of one through given velocities.
    ModelError is raised if rates are missing and a joint has several coordinates.

    Parameters
    ----------
    model, time, q
        Robot; increasing times, s, (points,); positions, rad or m, (points, nq).
    v, a : array_like, shape (points, nv), optional
        Velocities, rad/s or m/s, and accelerations, rad/s^2 or m/s^2.
    friction : bool
        Whether the efforts include damping and friction.
    springs : bool
        Whether they include `rbd_ros.spring_torques`.

    """
    check_model(model)
    time = finite_array('time', time, (None,))
    q = rows(model, 'q', q, len(time), positions=True)
    if np.any(np.diff(time) <= 0.0):
        k = int(np.argmax(np.diff(time) <= 0.0))
        raise StateError(f'times must increase: point {k + 1} is at {time[k + 1]:g} s, the point '
                         f'before it at {time[k]:g} s')
    v, a = _rates(model, time, q, None if v is None else rows(model, 'v', v, len(time)),
                  None if a is None else rows(model, 'a', a, len(time)))
    efforts = effort_of_pace(model, q, v, a, friction=friction, springs=springs)
    least = np.max(slowdown(model, time, v, a), initial=1.0)
    return TrajectoryEfforts(v, a, efforts(1.0),
                             least_time_scale(model.effort_limit, least, efforts))


def effort_of_pace(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, *,
                   friction: bool = True, springs: bool = True
                   ) -> Callable[[float], np.ndarray]:
    """Return the efforts (states, nv) of states as a function of the pace: 1 / time scale."""
    still = np.zeros_like(v)
    gravity = batch.inverse_dynamics(model, q, still, still)
    moving = batch.inverse_dynamics(model, q, v, a) - gravity
    resting = gravity + spring_torques(model, q) if springs else gravity

    def efforts(pace: float) -> np.ndarray:
        tau = resting + pace ** 2 * moving
        return tau + friction_torques(model, pace * v, q=q) if friction else tau
    return efforts


def _rates(model: Model, time: np.ndarray, q: np.ndarray, v: np.ndarray | None,
           a: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities and accelerations, interpolated where they are missing."""
    if v is not None and a is not None:
        return v, a
    names = [joint.name for joint, _, _ in model.moving_joints if joint.nq != joint.nv]
    if names:
        raise ModelError(f'{listed(names)} has several coordinates, whose rates are not '
                         'interpolated: give velocities and accelerations')
    if len(time) < 2:
        zero = np.zeros((len(time), model.nv))
        return zero if v is None else v, zero if a is None else a
    if v is not None:
        # Parabolas through three points: a short interval has no effect on distant ones.
        return v, np.gradient(v, time, axis=0, edge_order=1 if len(time) == 2 else 2)
    from scipy.interpolate import CubicSpline
    spline = CubicSpline(time, q[:, independent_positions(model)], bc_type='clamped')
    return spline(time, 1), spline(time, 2) if a is None else a
