# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The services that compute the efforts along a trajectory, and the fastest motion along it."""

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from rbd_msgs.srv import FillEfforts, RetimeTrajectory
from rbd_ros import batch, Model
from rbd_ros.model.positions.configurations import independent_positions, out_of_range
from rbd_ros.motions.limits import exceeding
from rbd_ros.motions.retiming import retime
from rbd_ros.motions.trajectory_efforts import trajectory_efforts
from rbd_ros.ros import convert
from rbd_ros.ros.services.background_services import BadRequest, Order, Work
from rbd_ros.ros.services.dynamics_services import Services
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

MAX_POINTS = 100_000    # 100 s at 1 kHz
MAX_WAYPOINTS = 5000    # retiming takes about 0.1 ms for each, or 1 ms where the path turns


class TrajectoryService:
    """Fills in the efforts of trajectories, and retimes them; methods as those of `Services`."""

    answers = FillEfforts, RetimeTrajectory

    def __init__(self, services: Services) -> None:
        self._services = services

    def _checked(self, trajectory: JointTrajectory, most: int) -> tuple[Model, Order]:
        """Return the robot and the order of the joints in a trajectory with enough points."""
        if not trajectory.points:
            raise BadRequest('the trajectory has no points')
        if len(trajectory.points) > most:
            raise BadRequest(f'the trajectory has {len(trajectory.points)} points, at most '
                             f'{most} are accepted')
        model = self._services.robot().model
        return model, Order(model, trajectory.joint_names)

    def retime_trajectory(self, request: RetimeTrajectory.Request,
                          response: RetimeTrajectory.Response) -> Work:
        """Compute the fastest motion along the path of a trajectory."""
        trajectory = request.trajectory
        model, order = self._checked(trajectory, MAX_WAYPOINTS)
        limits = [order.read(name, getattr(request, name)) if len(getattr(request, name)) else None
                  for name in ('velocity_limit', 'acceleration_limit', 'jerk_limit')]

        def work() -> None:
            q = _rows(trajectory.points, 'positions', order.read_position)
            velocity, acceleration, jerk = limits
            found = retime(model, q, velocity_limit=velocity, acceleration_limit=acceleration,
                           jerk_limit=jerk, effort_share=request.effort_share or 1.0)
            response.message = '; '.join(out_of_range(model, found.q))
            positions = found.q[:, independent_positions(model)]
            efforts = [order.write(effort) for effort in self._commands(
                model, found.q, found.v, found.effort)] if request.with_efforts else repeat([])
            response.trajectory = JointTrajectory(
                header=trajectory.header, joint_names=order.names, points=[
                    JointTrajectoryPoint(
                        positions=order.write(position), velocities=order.write(velocity),
                        accelerations=order.write(acceleration) if found.smooth else [],
                        effort=effort, time_from_start=convert.duration(time))
                    for time, position, velocity, acceleration, effort in zip(
                        found.time.tolist(), positions, found.v, found.a, efforts)])
        return work

    def _commands(self, model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return what the drives are told, for torques at states."""
        convention, still = self._services.settings.effort_convention, np.zeros_like(v)
        g = batch.inverse_dynamics(model, q, still, still)
        coriolis = batch.inverse_dynamics(model, q, v, still) - g
        return (convention.subtract_onboard_compensation(tau, g, coriolis)
                / convention.constants_of_commands(model.velocity_names))

    def fill_efforts(self, request: FillEfforts.Request, response: FillEfforts.Response) -> Work:
        """Compute the efforts along a trajectory."""
        trajectory, settings = request.trajectory, self._services.settings
        model, order = self._checked(trajectory, MAX_POINTS)

        def work() -> None:
            points = trajectory.points
            time = np.array([convert.seconds(point.time_from_start) for point in points])
            q = _rows(points, 'positions', order.read_position)
            v, a = (_rows(points, name, partial(order.read, name))
                    if any(len(getattr(point, name)) for point in points) else None
                    for name in ('velocities', 'accelerations'))
            found = trajectory_efforts(model, time, q, v, a, friction=settings.friction,
                                       springs=settings.springs)
            efforts = self._commands(model, q, found.velocity, found.effort)
            filled = [JointTrajectoryPoint(
                positions=point.positions, velocities=order.write(velocity),
                accelerations=order.write(acceleration), effort=order.write(effort),
                time_from_start=point.time_from_start)
                for point, velocity, acceleration, effort in zip(
                    points, found.velocity, found.acceleration, efforts)]
            response.trajectory = JointTrajectory(header=trajectory.header,
                                                  joint_names=order.names, points=filled)
            exceeds = exceeding(model, time, found.velocity, found.acceleration, found.effort)
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
            if not np.all(np.isfinite(values)):
                raise BadRequest(f'not all {name} are finite')
            result.append(read(values))
        except BadRequest as error:
            raise BadRequest(f'point {k}: {error}') from None
    return np.array(result)
