# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The service that computes the efforts along a trajectory."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rbd_msgs.srv import FillEfforts
from rbd_ros import batch
from rbd_ros.batch.trajectory_efforts import beyond, slowdown, trajectory_efforts
from rbd_ros.control import EffortConvention
from rbd_ros.ros import convert
from rbd_ros.ros.services.background_services import BadRequest, Order, Work
from rbd_ros.ros.services.dynamics_services import Services
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

MAX_POINTS = 100_000    # 100 s at 1 kHz


class TrajectorySettings(NamedTuple):
    """The parameters that efforts of trajectories depend on."""

    friction: bool
    springs: bool
    effort_convention: EffortConvention


class TrajectoryService:
    """Fills in the efforts of trajectories; the method works like those of `Services`."""

    def __init__(self, services: Services, settings: TrajectorySettings) -> None:
        self._services, self._settings = services, settings

    def configure(self, settings: TrajectorySettings) -> None:
        """Replace the settings."""
        self._settings = settings

    def fill_efforts(self, request: FillEfforts.Request, response: FillEfforts.Response) -> Work:
        """Compute the efforts along a trajectory."""
        model, settings = self._services.robot().model, self._settings
        trajectory = request.trajectory
        if not trajectory.points:
            raise BadRequest('the trajectory has no points')
        if len(trajectory.points) > MAX_POINTS:
            raise BadRequest(f'the trajectory has {len(trajectory.points)} points, at most '
                             f'{MAX_POINTS} are accepted')
        order = Order(model, trajectory.joint_names)

        def work() -> None:
            points = trajectory.points
            time = np.array([convert.seconds(point.time_from_start) for point in points])
            q = _rows(points, 'positions', order.read_position)
            v, a = (_rows(points, name, partial(order.read, name))
                    if any(len(getattr(point, name)) for point in points) else None
                    for name in ('velocities', 'accelerations'))
            found = trajectory_efforts(model, time, q, v, a, friction=settings.friction,
                                       springs=settings.springs)
            convention, still = settings.effort_convention, np.zeros_like(found.velocity)
            g = batch.inverse_dynamics(model, q, still, still)
            coriolis = batch.inverse_dynamics(model, q, found.velocity, still) - g
            efforts = (convention.subtract_onboard_compensation(found.effort, g, coriolis)
                       / convention.constants_of_commands(model.velocity_names))
            filled = [JointTrajectoryPoint(
                positions=point.positions, velocities=order.write(velocity),
                accelerations=order.write(acceleration), effort=order.write(effort),
                time_from_start=point.time_from_start)
                for point, velocity, acceleration, effort in zip(
                    points, found.velocity, found.acceleration, efforts)]
            response.trajectory = JointTrajectory(header=trajectory.header,
                                                  joint_names=order.names, points=filled)
            exceeds = (np.any(beyond(found.effort, model.effort_limit), axis=0)
                       | (slowdown(model, time, found.velocity, found.acceleration) > 1.0))
            response.beyond_limits = [name for name, is_beyond in zip(
                order.names, order.arrange(exceeds)) if is_beyond]
            response.time_scaling = found.time_scale
        return work


def _rows(points: list[Any], name: str, read: Callable[[Any], np.ndarray]) -> np.ndarray:
    result = []
    for k, point in enumerate(points):
        values = getattr(point, name)
        try:
            if not len(values):
                raise BadRequest(f'it has no {name}, other points have' if k else
                                 f'it has no {name}')
            result.append(read(values))
        except BadRequest as error:
            raise BadRequest(f'point {k}: {error}') from None
    return np.array(result)
