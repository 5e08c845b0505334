# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A dynamics node whose efforts move the robot by a control mode and its reference."""

from collections.abc import Sequence
from dataclasses import replace
from types import NoneType
from typing import ClassVar

from geometry_msgs.msg import PoseStamped
from rbd_msgs.msg import ReferenceStatus
from rbd_msgs.srv import SetMode
from rbd_ros._internal.setting import Setting, settings_of
from rbd_ros.errors import RbdError
from rbd_ros.ros.control.compensation import compensates_itself, Law
from rbd_ros.ros.control.control_modes import ControlModes
from rbd_ros.ros.control.law_factory import ControlSettings, LAWS
from rbd_ros.ros.control.reference_receiver import LawSettings
from rbd_ros.ros.messages.topics import EFFORT_TRAJECTORY
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.outputs.commanding import NO_EVENTS
from rbd_ros.ros.parameters.parameters import BadParameter
from rbd_ros.ros.runtime.part import Entity
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

STATUS_DEPTH = 50    # Depth of the queue of statuses of references


class TorqueController(DynamicsNode):
    """A dynamics node whose ~/effort_commands are those of a control law, `modes`."""

    node_name = program = 'torque_controller'
    kinds = *DynamicsNode.kinds, ControlSettings
    settings: ClassVar[dict[str, Setting]] = {
        **DynamicsNode.settings, **settings_of((ControlSettings,)),
        'limit_efforts': replace(DynamicsNode.settings['limit_efforts'], default=True)}
    command_topics = *DynamicsNode.command_topics, EFFORT_TRAJECTORY

    @property
    def mode(self) -> str:
        """Return the current mode."""
        return self.parameters.select(ControlSettings).mode

    def _make_law(self) -> Law:
        publisher = self.create_publisher(ReferenceStatus, '~/reference_status', STATUS_DEPTH,
                                          event_callbacks=NO_EVENTS)
        self._add(Entity(self.destroy_publisher, publisher))
        select = self.parameters.select
        self.modes = self._add(ControlModes(
            select(LawSettings), select(ControlSettings), self.clocks, self.commands, self.report,
            self._log, self.worker, publisher.publish), LawSettings, ControlSettings)
        return self.modes

    def _make_parts(self) -> None:
        super()._make_parts()
        for kind, topic, callback in (
                (JointTrajectory, '~/joint_trajectory', self.modes.on_joint_trajectory),
                (PoseStamped, '~/pose_target', self.modes.on_pose_target)):
            self._add(Entity(self.destroy_subscription,
                             self.create_subscription(kind, topic, callback, 10)))
        self._add(Entity(self.destroy_service,
                         self.create_service(SetMode, '~/set_mode', self._set_mode)))

    def check_parameters(self, changes: Sequence[Parameter]) -> SetParametersResult:
        """Return whether parameters may change; if not, the law stays unchanged."""
        result = super().check_parameters(changes)
        if not result.successful or self.robot is None:
            return result
        try:
            control = self._read(changes).select(ControlSettings)
            if control != self.parameters.select(ControlSettings):
                self.modes.check(control, self.robot)
        except (BadParameter, RbdError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        return result

    def _set_mode(self, request: SetMode.Request, response: SetMode.Response) -> SetMode.Response:
        if request.mode == self.mode:
            response.success, response.message = True, f'mode is {request.mode} already'
            return response
        result, = self.set_parameters([Parameter('mode', value=request.mode)])
        response.success = result.successful
        response.message = self._mode_now() if result.successful else result.reason
        log = self._log.info if result.successful else self._log.warning
        log(f'~/set_mode: {response.message}')
        return response

    def _mode_now(self) -> str:
        mode = self.mode
        if self.robot is None:
            return f'mode is {mode}: it is not checked before there is a robot'
        if LAWS[mode].reference_type is not NoneType:
            return f'mode is {mode}: the robot is held where it is'
        return f'mode is {mode}: ' + (compensates_itself(self.parameters.effort_convention)
                                      or 'gravity torques alone hold the robot')
