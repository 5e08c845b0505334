# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Services of the dynamics node for derivatives, regressors and task space."""

from collections.abc import Iterable

import numpy as np
from rbd_msgs.msg import Matrix
from rbd_msgs.srv import (
    HybridDynamicsDerivatives, SpeedLimit, TaskSpaceDynamics, TorqueRegressor)
from rbd_ros.analysis import speed_limit
from rbd_ros.model import inertial_parameter_names, inertial_parameters
from rbd_ros.ros import convert
from rbd_ros.ros.messages.topics import TWIST
from rbd_ros.ros.services.background_services import BadRequest, Work
from rbd_ros.ros.services.dynamics_services import Services


def matrix(rows: Iterable[str], columns: Iterable[str], values: np.ndarray) -> Matrix:
    """Return a message with a matrix whose rows and columns have names."""
    message = Matrix(row_names=list(rows), column_names=list(columns))
    message.data.frombytes(np.ascontiguousarray(values, float).reshape(-1).view(np.uint8))
    return message


class AnalysisServices:
    """Services to analyse and identify a robot; the methods work like those of `Services`."""

    answers = HybridDynamicsDerivatives, TorqueRegressor, TaskSpaceDynamics, SpeedLimit

    def __init__(self, services: Services) -> None:
        self._services = services

    def hybrid_dynamics_derivatives(self, request: HybridDynamicsDerivatives.Request,
                                    response: HybridDynamicsDerivatives.Response) -> Work:
        """Compute hybrid dynamics and its derivatives with respect to q, v and the input."""
        robot, order, q, v = self._services.state(request)

        def work() -> None:
            derivatives, a, tau = robot.service_workspace.hybrid_dynamics_derivatives(
                q, v, order.read('acceleration', request.acceleration),
                order.read('effort', request.effort), order.read_prescribed(request),
                external_wrenches=self._services.wrenches(robot, request))
            response.joint_names = order.names
            response.acceleration, response.effort = order.write(a), order.write(tau)
            for name, values in derivatives._asdict().items():
                setattr(response, name, matrix(order.names, order.names,
                                               order.arrange(order.arrange(values).T).T))
        return work

    def torque_regressor(self, request: TorqueRegressor.Request,
                         response: TorqueRegressor.Response) -> Work:
        """Compute the regressor of the torques, or that of Slotine and Li."""
        robot, order, q, v = self._services.state(request)
        factorization = self._services.settings.coriolis_factorization

        def work() -> None:
            if len(request.reference_velocity) or len(request.reference_acceleration):
                Y = robot.service_workspace.slotine_li_regressor(
                    q, v, order.read('reference_velocity', request.reference_velocity),
                    order.read('reference_acceleration', request.reference_acceleration),
                    factorization=factorization)
            else:
                Y = robot.service_workspace.torque_regressor(
                    q, v, order.read('acceleration', request.acceleration))
            response.parameters = inertial_parameters(robot.model).tolist()
            response.armature = order.write(robot.model.armature)
            response.regressor = matrix(order.names, inertial_parameter_names(robot.model),
                                        order.arrange(Y))
        return work

    def task_space_dynamics(self, request: TaskSpaceDynamics.Request,
                            response: TaskSpaceDynamics.Response) -> Work:
        """Compute the equations of motion of a link."""
        robot, order, q, v = self._services.state(request)
        link = self._link(request.link)
        limit = self._services.settings.condition_limit

        def work() -> None:
            got = robot.service_workspace.task_space_dynamics(q, v, link, condition_limit=limit)
            response.task_inertia = matrix(TWIST, TWIST, got.Lambda)
            response.bias_wrench = got.eta.tolist()
            response.jacobian = matrix(TWIST, order.names, order.arrange(got.J.T).T)
            response.condition_number, response.damped = got.condition, got.damped
        return work

    def speed_limit(self, request: SpeedLimit.Request, response: SpeedLimit.Response) -> Work:
        """Compute the speed at which a contact reaches the limit for a body region."""
        robot, _, q, v = self._services.state(request)
        link = self._link(request.link)
        given = np.array(convert.vector(request.direction))

        def work() -> None:
            found = speed_limit(robot.model, q, v, link, request.body_region,
                                direction=given if given.any() else None, clamped=request.clamped)
            response.effective_mass, response.factor = found.effective_mass, found.factor
            response.speed, response.speed_limit = found.speed, found.limit
        return work

    def _link(self, name: str) -> str:
        link = name or self._services.settings.task_link
        if not link:
            raise BadRequest('name a link, in the request or in the parameter task_link')
        return link
