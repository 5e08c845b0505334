# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Services of the dynamics node: dynamics, gravity and payloads."""

from collections.abc import Callable
from math import hypot
from typing import Any, NamedTuple

import numpy as np
from rbd_msgs.msg import DynamicsStamped
from rbd_msgs.srv import (DynamicsTerms, ForwardDynamics, HybridDynamics, InverseDynamics,
                          SetGravity, SetPayload)
from rbd_ros import with_gravity, with_payload
from rbd_ros._internal.text import listed
from rbd_ros.control import EffortConvention
from rbd_ros.model import without_payload
from rbd_ros.ros import convert
from rbd_ros.ros.parameters.parameters import NO_GRAVITY
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.read_model import gravity_in_root, gravity_in_world
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log
from rbd_ros.ros.services.background_services import Again, BadRequest, Finish, Order, Work
from rbd_ros.workspace.memory.results import Factorization
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message

MAX_WRENCHES = 1000    # External wrenches in one request; reading more would delay the states
# Larger payloads are considered mistakes: multiples of the robot's mass, and distance of the
# centre of mass from the link's origin, m.
MAX_MASS_RATIO, MAX_COM_DISTANCE = 10, 10.0


def _shown_gravity(request: SetGravity.Request) -> str:
    x, y, z = convert.vector(request.gravity.vector)
    return f'[{x:.6g}, {y:.6g}, {z:.6g}] m/s^2'


def _shown_payload(request: SetPayload.Request) -> str:
    mass, (x, y, z), _ = convert.inertia(request.inertia)
    return f"{mass:.6g} kg at [{x:.6g}, {y:.6g}, {z:.6g}] m on '{request.link}'"


def _check_payload(link: str, mass: float, com: np.ndarray, own: float) -> None:
    """Raise BadRequest if a payload is implausible for a robot that weighs `own`, kg."""
    if mass > MAX_MASS_RATIO * own:
        raise BadRequest(f'the payload weighs {mass:.6g} kg, more than {MAX_MASS_RATIO} times '
                         f'the robot itself, {own:.6g} kg: is the unit kg?')
    if hypot(*com) > MAX_COM_DISTANCE:
        raise BadRequest(f'the centre of mass of the payload is {hypot(*com):.4g} m from the '
                         f"origin of '{link}', more than {MAX_COM_DISTANCE:g} m: is the unit m?")


# Services that change the robot, and how rejected requests are logged.
CHANGES = {'~/set_gravity': _shown_gravity, '~/set_payload': _shown_payload}


class ServiceSettings(NamedTuple):
    """The parameters that the answers depend on."""

    state_timeout: float
    missing_velocity: str
    coriolis_factorization: Factorization
    mounting_rpy: tuple[float, ...]
    task_link: str
    condition_limit: float
    friction: bool
    springs: bool
    effort_convention: EffortConvention


class Services(Part):
    """
    Services that compute the dynamics of the robot, or change it.

    Each method is called with a request and its response in the node's thread, and returns a
    function that fills in the response, which the worker runs. That may return another function,
    which the node's thread runs.

    """

    answers = (InverseDynamics, ForwardDynamics, HybridDynamics, DynamicsTerms, SetGravity,
               SetPayload)

    def __init__(self, settings: ServiceSettings, clocks: Clocks, current: CurrentRobot, log: Log,
                 check_parameters: Callable[[list[Parameter]], Any],
                 set_parameters: Callable[[list[Parameter]], Any]) -> None:
        self.settings, self._clocks, self._current, self._log = settings, clocks, current, log
        self._check_parameters, self._set_parameters = check_parameters, set_parameters

    def configure(self, settings: ServiceSettings) -> None:
        """Replace the settings, also those of the other services."""
        self.settings = settings

    def robot(self) -> Robot:
        """Return the robot that a request is about."""
        if self._current.robot is None:
            raise BadRequest('no robot description has arrived yet')
        return self._current.robot

    def state(self, request: Any) -> tuple[Robot, Order, np.ndarray, np.ndarray]:
        """Return robot, order of joints, q and v of a request, both in the robot's order."""
        robot = self.robot()
        order = Order(robot.model, request.joint_names)
        # Measured values are copied: the request is answered in another thread.
        q = (order.read_position(request.position) if len(request.position)
             else self._recent(robot, 'position').states.q.copy())
        v = (order.read('velocity', request.velocity) if len(request.velocity)
             else self._measured_velocity(robot).copy())
        return robot, order, q, v

    def wrenches(self, robot: Robot, request: Any) -> dict[str, np.ndarray]:
        """Return the external wrenches of a request, and let the markers show them."""
        count = len(request.external_wrenches)
        if count > MAX_WRENCHES:
            raise BadRequest(f'external_wrenches has {count} entries, at most {MAX_WRENCHES} '
                             'are accepted')
        wrenches = convert.wrenches(request.external_wrenches, robot.prefix)
        robot.markers.show_wrenches(wrenches)
        return wrenches

    def _recent(self, robot: Robot, left_out: str) -> Robot:
        """Return a robot, or raise BadRequest if the state that a request leaves out is old."""
        missing = robot.missing(self._clocks.age_time(), self.settings.state_timeout)
        if robot.states.why_open:
            raise BadRequest(f'the request gives no {left_out}, and {robot.states.why_open}')
        if missing:
            raise BadRequest(robot.why_missing(
                missing, f'the request gives no {left_out}, and there is no recent one of'))
        return robot

    def _measured_velocity(self, robot: Robot) -> np.ndarray:
        v = self._recent(robot, 'velocity').velocity(self.settings.missing_velocity)
        if v is None:
            raise BadRequest('the request gives no velocity, and none was measured of '
                             + listed(robot.states.missing_velocities()))
        return v

    def inverse_dynamics(self, request: InverseDynamics.Request,
                         response: InverseDynamics.Response) -> Work:
        """Compute the efforts for given accelerations."""
        robot, order, q, v = self.state(request)

        def work() -> None:
            tau = robot.service_workspace.inverse_dynamics(
                q, v, order.read('acceleration', request.acceleration),
                external_wrenches=self.wrenches(robot, request))
            response.joint_names, response.effort = order.names, order.write(tau)
        return work

    def forward_dynamics(self, request: ForwardDynamics.Request,
                         response: ForwardDynamics.Response) -> Work:
        """Compute the accelerations for given efforts."""
        robot, order, q, v = self.state(request)

        def work() -> None:
            a = robot.service_workspace.forward_dynamics(
                q, v, order.read('effort', request.effort),
                external_wrenches=self.wrenches(robot, request))
            response.joint_names, response.acceleration = order.names, order.write(a)
        return work

    def hybrid_dynamics(self, request: HybridDynamics.Request,
                        response: HybridDynamics.Response) -> Work:
        """Compute accelerations and efforts, given one of the two for each joint."""
        robot, order, q, v = self.state(request)

        def work() -> None:
            prescribed = order.read_prescribed(request)
            a = order.read('acceleration', request.acceleration)
            tau = order.read('effort', request.effort)
            # In the request, the quantities to be computed may have any value.
            a, tau = robot.service_workspace.check(a=np.where(prescribed, a, 0.0),
                                                   tau=np.where(prescribed, 0.0, tau))
            a, tau = robot.service_workspace.hybrid_dynamics(
                q, v, a, tau, prescribed, external_wrenches=self.wrenches(robot, request))
            response.joint_names = order.names
            response.acceleration, response.effort = order.write(a), order.write(tau)
        return work

    def dynamics_terms(self, request: DynamicsTerms.Request,
                       response: DynamicsTerms.Response) -> Work:
        """Compute the content of ~/dynamics."""
        robot, _, q, v = self.state(request)
        stamp = robot.stamp
        if len(request.position) or stamp is None:
            stamp = self._clocks.stamp()
        factorization, frame = self.settings.coriolis_factorization, robot.frame

        def work() -> None:
            terms = robot.service_workspace.all_terms(q, v, factorization=factorization)
            response.dynamics = deserialize_message(robot.service_outputs.message(
                '~/dynamics', stamp, frame, {'q': q, 'v': v, **terms._asdict()}),
                DynamicsStamped)
        return work

    def set_gravity(self, request: SetGravity.Request, response: SetGravity.Response) -> Work:
        """Set gravity."""
        robot, frame = self.robot(), request.gravity.header.frame_id
        if frame not in ('', robot.frame):
            raise BadRequest(f"gravity must be given in the frame '{robot.frame}', got "
                             f"'{frame}'")
        gravity = convert.vector(request.gravity.vector)
        in_world = gravity_in_world(gravity.tolist(), self.settings.mounting_rpy)
        changed = Parameter('gravity', value=list(in_world))
        if hypot(*gravity) < NO_GRAVITY:
            if not request.allow_zero:
                raise BadRequest('gravity is zero: commands would no longer hold the robot. Set '
                                 'allow_zero if that is intended, as in free fall')
        else:
            possible = self._check_parameters([changed])
            if not possible.successful:
                raise BadRequest(possible.reason)

        def work() -> Finish:
            # Equals the effect of the parameter exactly, so setting it does not change the robot.
            in_root = gravity_in_root(in_world, self.settings.mounting_rpy)
            other = self._current.with_model(robot, with_gravity(robot.model, in_root))

            def finish() -> None:
                if self._current.robot is not robot:
                    raise Again
                self._current.change(other, robot)
                self._current.log_gravity()
                self._set_parameters([changed])
            return finish
        return work

    def set_payload(self, request: SetPayload.Request, response: SetPayload.Response) -> Work:
        """Attach a payload to a link, or remove it."""
        robot = self.robot()

        def work() -> Finish:
            mass, com, inertia = convert.inertia(request.inertia)
            if mass == 0.0:
                robot.model.link_index(request.link)
                if request.link not in robot.payloads():
                    raise BadRequest(f"the mass is 0, but link '{request.link}' carries no "
                                     'payload to remove: give the mass of a payload, kg')
                model = without_payload(robot.model, request.link)
                text = f"link '{request.link}' no longer carries a payload"
            else:
                model = with_payload(robot.model, request.link, mass, com, inertia)
                own = sum(link.mass for link in robot.model.links if not link.is_load)
                _check_payload(request.link, mass, com, own)
                text = (f"link '{request.link}' now carries {mass:.6g} kg, centre of mass at "
                        f'[{com[0]:.4g}, {com[1]:.4g}, {com[2]:.4g}] m')
                if mass > own:
                    text += f': more than the robot itself, {own:.6g} kg; is the unit kg?'
            other = self._current.with_model(robot, model)

            def finish() -> None:
                if self._current.robot is not robot:
                    raise Again
                self._current.change(other, robot)
                self._log.warning(text)
                response.total_mass, response.message = model.mass, text
            return finish
        return work
