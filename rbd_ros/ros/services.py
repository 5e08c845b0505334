# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The services of the dynamics node."""

import numpy as np
from rbd_msgs.msg import DynamicsStamped
from rbd_msgs.srv import (DynamicsTerms, ForwardDynamics, HybridDynamics, InverseDynamics,
                          SetGravity, SetPayload)
from rbd_ros import RbdError, with_payload, without_payload
from rbd_ros.ros import convert
from rbd_ros.ros.analysis_services import AnalysisServices
from rbd_ros.ros.requests import BadRequest, Order
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message

# External wrenches of one request: more would keep the node from its states.
MOST_WRENCHES = 1000


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
            (DynamicsTerms, '~/dynamics_terms', self._terms),
            (SetGravity, '~/set_gravity', self._set_gravity),
            (SetPayload, '~/set_payload', self._set_payload))] + AnalysisServices(
                self._node, self).create()

    def _answer(self, response, compute):
        """Fill in a response, or say in it why that is not possible."""
        try:
            if self._node.robot is None:
                raise BadRequest('no robot description has arrived yet')
            compute(self._node.robot)
            response.success = True
        except (BadRequest, RbdError) as error:
            response.success, response.message = False, str(error)
        except Exception as error:
            response.success, response.message = False, f'{type(error).__name__}: {error}'
            self._node.report.fail('errors', response.message)
            self._node.get_logger().error(f'a request failed: {response.message}')
        return response

    def answer_for_state(self, request, response, compute):
        """Answer what is asked about a state: that of the request, or the measured one."""
        def compute_for_state(robot):
            order = Order(robot.model, request.joint_names)
            q = (order.read_position(request.position) if len(request.position)
                 else self._measured_position(robot))
            v = (order.read('velocity', request.velocity) if len(request.velocity)
                 else self._measured_velocity(robot))
            compute(robot, order, q, v)
        return self._answer(response, compute_for_state)

    def wrenches(self, robot, request):
        """Return the external wrenches of a request, which the markers then show."""
        count = len(request.external_wrenches)
        if count > MOST_WRENCHES:
            raise BadRequest(f'external_wrenches has {count} entries, at most {MOST_WRENCHES} '
                             'are answered')
        wrenches = convert.wrenches(request.external_wrenches,
                                    self._node.parameters.frame_prefix)
        robot.markers.show_wrenches(wrenches)
        return wrenches

    def _measured_position(self, robot):
        missing = robot.missing(self._node.clocks.age_time(),
                                self._node.parameters.state_timeout)
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
                external_wrenches=self.wrenches(robot, request))
            response.joint_names, response.effort = order.names, order.write(tau)
        return self.answer_for_state(request, response, compute)

    def _forward(self, request, response):
        def compute(robot, order, q, v):
            a = robot.workspace.forward_dynamics(
                q, v, order.read('effort', request.effort),
                external_wrenches=self.wrenches(robot, request))
            response.joint_names, response.acceleration = order.names, order.write(a)
        return self.answer_for_state(request, response, compute)

    def _hybrid(self, request, response):
        def compute(robot, order, q, v):
            prescribed = order.read('acceleration_prescribed', request.acceleration_prescribed)
            a = order.read('acceleration', request.acceleration)
            tau = order.read('effort', request.effort)
            # What is asked for may hold anything.
            a, tau = robot.workspace.check(a=np.where(prescribed, a, 0.0),
                                           tau=np.where(prescribed, 0.0, tau))
            a, tau = robot.workspace.hybrid_dynamics(
                q, v, a, tau, prescribed, external_wrenches=self.wrenches(robot, request))
            response.joint_names = order.names
            response.acceleration, response.effort = order.write(a), order.write(tau)
        return self.answer_for_state(request, response, compute)

    def _terms(self, request, response):
        def compute(robot, order, q, v):
            terms = robot.workspace.all_terms(
                q, v, factorization=self._node.parameters.coriolis_factorization)
            stamp = robot.stamp
            if len(request.position) or stamp is None:
                stamp = self._node.get_clock().now().to_msg()
            response.dynamics = deserialize_message(robot.outputs.message(
                '~/dynamics', stamp, robot.frame, {'q': q, 'v': v, **terms._asdict()}),
                DynamicsStamped)
        return self.answer_for_state(request, response, compute)

    def _set_gravity(self, request, response):
        def compute(robot):
            frame = request.gravity.header.frame_id
            if frame not in ('', robot.frame):
                raise BadRequest(f"gravity is wanted in the frame '{robot.frame}', it was given "
                                 f"in '{frame}'")
            result, = self._node.set_parameters([
                Parameter('gravity', value=convert.vector(request.gravity.vector).tolist())])
            if not result.successful:
                raise BadRequest(result.reason)
        return self._answer(response, compute)

    def _set_payload(self, request, response):
        def compute(robot):
            mass, com, inertia = convert.inertia(request.inertia)
            if mass == 0.0:
                model = without_payload(robot.model, request.link)
            else:
                model = with_payload(robot.model, request.link, mass, com, inertia)
            self._node.change(robot.changed(model, self._node.next_model_id()))
            response.total_mass = model.mass
        return self._answer(response, compute)
