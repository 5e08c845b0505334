# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The services of the dynamics node."""

from time import monotonic

from rbd_msgs.srv import DynamicsTerms, ForwardDynamics, HybridDynamics, InverseDynamics
from rbd_ros import RbdError
from rbd_ros.ros.requests import BadRequest, Order, wrenches


class Services:
    """
    What a dynamics node answers.

    Parameters
    ----------
    node : DynamicsNode
        Its robot, as it is when a request comes, is what is asked about.

    """

    def __init__(self, node):
        self._node = node

    def create(self):
        """Return the services, made on the node."""
        return [self._node.create_service(kind, name, callback) for kind, name, callback in (
            (InverseDynamics, '~/inverse_dynamics', self._inverse),
            (ForwardDynamics, '~/forward_dynamics', self._forward),
            (HybridDynamics, '~/hybrid_dynamics', self._hybrid),
            (DynamicsTerms, '~/dynamics_terms', self._terms))]

    def _answer(self, request, response, compute):
        """Fill in a response, or say in it why that is not possible."""
        try:
            robot = self._node.robot
            if robot is None:
                raise BadRequest('no robot description has arrived yet')
            order = Order(robot.model, request.joint_names)
            q = (order.read('position', request.position) if len(request.position)
                 else self._measured_position(robot))
            v = (order.read('velocity', request.velocity) if len(request.velocity)
                 else self._measured_velocity(robot))
            compute(robot, order, q, v)
            response.success = True
        except (BadRequest, RbdError) as error:
            response.success, response.message = False, str(error)
        except Exception as error:
            response.success, response.message = False, f'{type(error).__name__}: {error}'
            self._node.report.last_error = response.message
            self._node.get_logger().error(f'a request failed: {response.message}')
        return response

    def _measured_position(self, robot):
        missing = robot.states.missing(monotonic(), self._node.parameters.state_timeout)
        if missing:
            raise BadRequest('the request gives no position and none was measured lately of '
                             + ', '.join(missing))
        return robot.states.q

    def _measured_velocity(self, robot):
        v = self._node.velocity(robot)
        if v is None:
            raise BadRequest('the request gives no velocity and none was measured of '
                             + ', '.join(robot.states.missing_velocities()))
        return v

    def _inverse(self, request, response):
        def compute(robot, order, q, v):
            tau = robot.workspace.inverse_dynamics(
                q, v, order.read('acceleration', request.acceleration),
                external_wrenches=wrenches(request.external_wrenches))
            response.joint_names, response.effort = order.names, order.write(tau)
        return self._answer(request, response, compute)

    def _forward(self, request, response):
        def compute(robot, order, q, v):
            a = robot.workspace.forward_dynamics(
                q, v, order.read('effort', request.effort),
                external_wrenches=wrenches(request.external_wrenches))
            response.joint_names, response.acceleration = order.names, order.write(a)
        return self._answer(request, response, compute)

    def _hybrid(self, request, response):
        def compute(robot, order, q, v):
            a, tau = robot.workspace.hybrid_dynamics(
                q, v, order.read('acceleration', request.acceleration),
                order.read('effort', request.effort),
                order.read('acceleration_prescribed', request.acceleration_prescribed),
                external_wrenches=wrenches(request.external_wrenches))
            response.joint_names = order.names
            response.acceleration, response.effort = order.write(a), order.write(tau)
        return self._answer(request, response, compute)

    def _terms(self, request, response):
        def compute(robot, order, q, v):
            terms = robot.workspace.all_terms(
                q, v, factorization=self._node.parameters.coriolis_factorization)
            stamp = robot.stamp
            if len(request.position) or stamp is None:
                stamp = self._node.get_clock().now().to_msg()
            response.dynamics = robot.outputs.message(
                '~/dynamics', stamp, {'q': q, 'v': v, **terms._asdict()})
        return self._answer(request, response, compute)
