# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The services of the dynamics node for derivatives, regressors and task space."""

import numpy as np
from rbd_msgs.msg import Matrix
from rbd_msgs.srv import HybridDynamicsDerivatives, TaskSpaceDynamics, TorqueRegressor
from rbd_ros import (inertial_parameter_names, inertial_parameters, slotine_li_regressor,
                     task_space_dynamics)
from rbd_ros.ros.outputs import TWIST
from rbd_ros.ros.requests import BadRequest


def matrix(rows, columns, values):
    """Return a message with a matrix whose rows and columns have names."""
    message = Matrix(row_names=list(rows), column_names=list(columns))
    message.data.frombytes(np.ascontiguousarray(values, float).tobytes())
    return message


class AnalysisServices:
    """
    What a dynamics node answers to those who analyse or identify a robot.

    Parameters
    ----------
    node : DynamicsNode
        Its robot, as it is when a request comes, is what is asked about.
    services : Services
        Whose way of reading requests is used.

    """

    def __init__(self, node, services):
        self._node, self._services = node, services

    def create(self):
        """Return the services, made on the node."""
        return [self._node.create_service(kind, name, callback) for kind, name, callback in (
            (HybridDynamicsDerivatives, '~/hybrid_dynamics_derivatives', self._derivatives),
            (TorqueRegressor, '~/torque_regressor', self._regressor),
            (TaskSpaceDynamics, '~/task_space_dynamics', self._task_space))]

    def _derivatives(self, request, response):
        def compute(robot, order, q, v):
            derivatives, a, tau = robot.workspace.hybrid_dynamics_derivatives(
                q, v, order.read('acceleration', request.acceleration),
                order.read('effort', request.effort),
                order.read('acceleration_prescribed', request.acceleration_prescribed),
                external_wrenches=self._services.wrenches(robot, request))
            response.joint_names = order.names
            response.acceleration, response.effort = order.write(a), order.write(tau)
            for name, values in derivatives._asdict().items():
                setattr(response, name, matrix(order.names, order.names,
                                               order.arrange(order.arrange(values).T).T))
        return self._services.answer_for_state(request, response, compute)

    def _regressor(self, request, response):
        def compute(robot, order, q, v):
            if len(request.reference_velocity) or len(request.reference_acceleration):
                Y = slotine_li_regressor(
                    robot.model, q, v,
                    order.read('reference_velocity', request.reference_velocity),
                    order.read('reference_acceleration', request.reference_acceleration),
                    factorization=self._node.parameters.coriolis_factorization)
            else:
                Y = robot.workspace.torque_regressor(
                    q, v, order.read('acceleration', request.acceleration))
            response.regressor = matrix(order.names, inertial_parameter_names(robot.model),
                                        order.arrange(Y))
            response.parameters = inertial_parameters(robot.model).tolist()
        return self._services.answer_for_state(request, response, compute)

    def _task_space(self, request, response):
        def compute(robot, order, q, v):
            link = request.link or self._node.parameters.task_link
            if not link:
                raise BadRequest('name a link, in the request or in the parameter task_link')
            got = task_space_dynamics(
                robot.model, q, v, link,
                condition_limit=self._node.parameters.condition_limit)
            response.task_inertia = matrix(TWIST, TWIST, got.Lambda)
            response.bias_wrench = got.eta.tolist()
            response.jacobian = matrix(TWIST, order.names, order.arrange(got.J.T).T)
            response.condition_number, response.damped = got.condition, got.damped
        return self._services.answer_for_state(request, response, compute)
