# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node as a controller: efforts that move the robot as a mode and a reference say."""

import sys

from rbd_ros.ros.runtime.entry_points import torque_controller as main

if __name__ == '__main__':
    # Before the imports below: they take a second, in which signals must be handled already.
    main()
    sys.exit()

from collections.abc import Sequence    # noqa: I100
from functools import partial
from typing import ClassVar

from geometry_msgs.msg import PoseStamped
from rbd_msgs.msg import ReferenceStatus
from rbd_msgs.srv import SetMode
from rbd_ros.errors import RbdError
from rbd_ros.ros.control import control_parameters
from rbd_ros.ros.control.compensation import compensates_itself, Law
from rbd_ros.ros.control.control_modes import ControlModes, LawSettings
from rbd_ros.ros.control.control_parameters import Gains
from rbd_ros.ros.messages.messages import EFFORT_TRAJECTORY
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.outputs.publishing import NO_EVENTS
from rbd_ros.ros.parameters import parameters
from rbd_ros.ros.parameters.parameter_checks import BadParameter
from rbd_ros.ros.runtime.rclpy_workarounds import guard_services
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

# Statuses of references that wait for a slow subscriber.
STATUS_DEPTH = 50


class TorqueController(DynamicsNode):
    """
    A dynamics node whose ~/effort_commands are those of a control law.

    Everything else is as in `DynamicsNode`; doc/interfaces.md lists what comes on top.

    Attributes
    ----------
    gains : Gains
        Mode and gains.
    modes : ControlModes
        The law, and its reference.

    """

    gains: Gains
    title = 'torque_controller', 'torque_controller'
    tables: ClassVar[tuple[parameters.Table, ...]] = (control_parameters.DYNAMICS_TABLE,
                                                      control_parameters.TABLE)
    command_topics = *DynamicsNode.command_topics, EFFORT_TRAJECTORY

    def _take_parameters(self) -> bool:
        changed, before = super()._take_parameters(), getattr(self, 'gains', None)
        self.gains = control_parameters.read(self, refused=self._refused)
        return changed or self.gains != before

    def _make_law(self) -> Law:
        publisher = self.create_publisher(ReferenceStatus, '~/reference_status', STATUS_DEPTH,
                                          event_callbacks=NO_EVENTS)
        self._parts.append(partial(self.destroy_publisher, publisher))
        self.modes = ControlModes(self.parameters.select(LawSettings), self.gains, self.clocks,
                                  self.commands, self.report, self._log, publisher.publish)
        return self.modes

    def _configure_law(self) -> None:
        self.modes.configure(self.parameters.select(LawSettings), self.gains)

    def _make_parts(self) -> None:
        super()._make_parts()
        for kind, topic, follow in (
                (JointTrajectory, '~/joint_trajectory', self.modes.follow_trajectory),
                (PoseStamped, '~/pose_target', self.modes.follow_pose)):
            self._parts.append(partial(self.destroy_subscription,
                                       self.create_subscription(kind, topic, follow, 10)))
        mode = self.create_service(SetMode, '~/set_mode', self._set_mode)
        self._parts.append(partial(self.destroy_service, mode))
        guard_services(self, self._log, self.report)

    def check_parameters(self, changes: Sequence[Parameter]) -> SetParametersResult:
        """Return whether parameters may change; if not, the law that there is stays."""
        result = super().check_parameters(changes)
        if not result.successful:
            return result
        try:
            gains = control_parameters.read(self, changes, self._refused)
            link = parameters.read(self, changes, self._refused).task_link
            if self.robot is not None and (gains, link) != (self.gains, self.robot.task_link):
                self.modes.check(gains, self.robot, link)
        except (BadParameter, RbdError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        return result

    def _set_mode(self, request: SetMode.Request, response: SetMode.Response) -> SetMode.Response:
        """Set the parameter of this name."""
        if request.mode == self.gains.mode:
            response.success, response.message = True, f'mode is {request.mode} already'
            return response
        result, = self.set_parameters([Parameter('mode', value=request.mode)])
        response.success = result.successful
        response.message = self._mode_now() if result.successful else result.reason
        log = self._log.info if result.successful else self._log.warning
        log(f'~/set_mode: {response.message}')
        return response

    def _mode_now(self) -> str:
        """Return what a new mode means for the robot."""
        mode = self.gains.mode
        if self.robot is None:
            return f'mode is {mode}: it is not checked before there is a robot'
        if mode != 'gravity':
            return f'mode is {mode}: the robot is held where it is'
        return 'mode is gravity: ' + (compensates_itself(self.parameters.effort_convention)
                                      or 'gravity torques alone hold the robot')
