# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The node that publishes the dynamics of a robot from its description and joint states."""

from collections.abc import Callable, Sequence
from functools import wraps
from math import hypot, isfinite
import sys
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from rbd_msgs.srv import IdentifyPayload
from rbd_ros._internal.setting import Setting, settings_of
from rbd_ros.errors import ModelError, RbdError
from rbd_ros.ros.commands.effort_commands import CommandSettings, EffortCommands
from rbd_ros.ros.control.compensation import Compensation, CompensationSettings, Law
from rbd_ros.ros.messages.topics import COMMANDS
from rbd_ros.ros.outputs.commanding import Commanding
from rbd_ros.ros.outputs.external_forces import ExternalForces, ForceSettings
from rbd_ros.ros.outputs.publishing import Publishing
from rbd_ros.ros.outputs.terms import PublishingSettings
from rbd_ros.ros.outputs.withheld import Withheld
from rbd_ros.ros.parameters.parameters import (
    BadParameter, check, declare, NO_GRAVITY, Parameters, read, usage)
from rbd_ros.ros.robot.current_robot import ChangeSettings, CurrentRobot, read_robot
from rbd_ros.ros.robot.effort_diagnosis import EffortCheck, EffortDiagnosis
from rbd_ros.ros.robot.read_model import check_task_link, require_stated_efforts, RobotSettings
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.robot.subscriptions import ListeningSettings, Subscriptions
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.kernels import Kernels
from rbd_ros.ros.runtime.part import Entity, Part
from rbd_ros.ros.runtime.rclpy_workarounds import forget_life_cycle, guard_services, QosOverrides
from rbd_ros.ros.runtime.report import guarded, Health, Log, Report
from rbd_ros.ros.runtime.worker import Worker
from rbd_ros.ros.services.analysis_services import AnalysisServices
from rbd_ros.ros.services.background_services import BackgroundService, BadRequest, methods
from rbd_ros.ros.services.dynamics_services import CHANGES, Services, ServiceSettings
from rbd_ros.ros.services.payload_identification import CollectingService, PayloadIdentification
from rbd_ros.ros.services.trajectory_service import TrajectoryService
from rbd_ros.workspace.warmup import warm_up
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger

SWITCH_INTERVAL = 2e-4    # s: largest time for which a computing thread keeps the interpreter

P = TypeVar('P', bound=Part)
Transition: TypeAlias = Callable[[Any, LifecycleState], TransitionCallbackReturn]


class NodeSettings(NamedTuple):
    """The parameters that the node itself uses."""

    robot_description: Annotated[str, Setting(
        '', 'URDF or MJCF of the robot; empty: it is read from the topic of this name.')]
    gravity: tuple[float, ...]
    gravity_limit: Annotated[float, Setting(29.43, 'Largest gravity that is accepted.', 'm/s^2',
                                            NO_GRAVITY, 1000.0, changeable=True)]
    floating_base: bool
    executor: Annotated[str, Setting(
        'events', "rclpy's executor; single is older and takes twice the CPU time.",
        choices=('events', 'single'))]
    autostart: Annotated[bool, Setting(True, 'Configure and activate the node when it starts.')]
    exit_unless_configured: Annotated[bool, Setting(
        False, 'End the process with exit code 1 if autostart cannot configure the node; the '
        'launch files set it.')]

    def check(self) -> None:
        """Raise if gravity is rejected."""
        size, limit = hypot(*self.gravity), self.gravity_limit
        if len(self.gravity) != 3 or not all(map(isfinite, self.gravity)):
            raise BadParameter('gravity must be three finite numbers, m/s^2, got '
                               f'{list(self.gravity)}')
        if size > limit:
            raise BadParameter(
                f'gravity is {size:.4g} m/s^2, more than gravity_limit, {limit:g}: is the unit '
                'm/s^2? If so, raise gravity_limit')


def transition(callback: Transition) -> Transition:
    """Log and report exceptions of a life-cycle transition; the node is then unconfigured."""
    @wraps(callback)
    def wrapper(self: Any, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return callback(self, state)
        except Exception as error:
            if self.context.ok():
                text = f'{callback.__name__}: {type(error).__name__}: {error}'
                self.report.fail('errors', text)
                self._log.error(text)
            return TransitionCallbackReturn.ERROR
    return wrapper


class NotConfigured(Exception):
    """The node could not be configured; the message contains the reason."""


class DynamicsNode(QosOverrides, LifecycleNode):
    """Publishes the dynamics of the robot in /robot_description; see doc/interfaces.md."""

    # They are made when the node is configured; only the commands outlive a clean-up.
    parameters: Parameters
    current: CurrentRobot
    commanding: Commanding
    publishing: Publishing
    commands: EffortCommands

    # Exceptions of which only the message is shown to a user.
    errors: tuple[type[Exception], ...] = (NotConfigured,)
    # Names of the node and of its executable, the settings of its parts, and their parameters.
    node_name: ClassVar[str] = 'dynamics'
    program: ClassVar[str] = 'dynamics_node'
    kinds: ClassVar[tuple[type, ...]] = (
        NodeSettings, RobotSettings, ChangeSettings, ListeningSettings, CommandSettings,
        CompensationSettings, PublishingSettings, ForceSettings, ServiceSettings)
    settings: ClassVar[dict[str, Setting]] = settings_of(kinds)
    command_topics: ClassVar[tuple[str, ...]] = (COMMANDS,)

    def __init__(self, *, alone: bool = False, **options: Any) -> None:
        # The parts of the configured node, with the settings of each.
        self._parts: list[tuple[Part, tuple[type, ...]]] = []
        self._refusal: Health | None = None
        super().__init__(self.node_name, **options)
        self._log, self.report = Log(self.get_logger()), Report()
        self._report = self.report
        self._refused = declare(self, self.settings, self._log)
        self.add_on_set_parameters_callback(self.check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
        self._alone, self.kernels = alone, Kernels(self._log, self._failed, alone)
        if alone:       # the node has the process to itself, and may tune the interpreter
            # A request that another thread answers must not delay states.
            sys.setswitchinterval(SWITCH_INTERVAL)
        if self.get_parameter('autostart').value is True:
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                self.trigger_activate()
            elif (alone and self.get_parameter('exit_unless_configured').value is True
                    and self.context.ok()):
                raise NotConfigured(self.report.last_error)
        guard_services(self, self._log, self.report)

    @property
    def robot(self) -> Robot | None:
        """Return the current robot, or None."""
        return self.current.robot if self.configured else None

    @property
    def configured(self) -> bool:
        """Return whether the topics and services exist."""
        return bool(self._parts)

    @property
    def active(self) -> bool:
        """Return whether outputs may flow."""
        return self.configured and self.commanding.active

    @classmethod
    def usage(cls) -> str:
        """Return the text that the executable prints with --help."""
        return usage(cls.program, sys.modules[cls.__module__].__doc__ or '', cls.settings)

    def uses_events(self) -> bool:
        """Return whether the events executor is to spin the node."""
        return self.get_parameter('executor').value == 'events'

    @transition
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters, compile the kernels and create all topics and services."""
        self._end_refusal()
        robot = None
        try:
            self.parameters = self._read()
            if text := self.parameters.robot_description:
                robot = read_robot(text, self.parameters.select(RobotSettings),
                                   self.parameters.limit_efforts)
        except (BadParameter, RbdError) as error:
            self.report.fail('errors', f'not configured: {error}')
            self._log.error(f'not configured: {error}')
            return self._refuse()
        if not self.kernels.make(warm_up(floating_base=self.parameters.floating_base,
                                         analysis=False), self.context.ok):
            return self._refuse()
        self._make_parts()
        guard_services(self, self._log, self.report)
        if robot is not None:
            self.current.describe(text, robot)
        else:
            self._log.info('ready: waiting for a robot description')
        self.kernels.waits = False
        return super().on_configure(state)

    def _refuse(self) -> TransitionCallbackReturn:
        """Publish the last error until the next transition."""
        if self.context.ok():
            self._refusal = Health(self, (), self.report, self._log,
                                   self.report.last_error or 'not configured')
        return TransitionCallbackReturn.FAILURE

    def _end_refusal(self) -> None:
        if self._refusal is not None:
            self._refusal.close()
            self._refusal, self.report.last_error = None, ''

    def _read(self, changes: Sequence[Parameter] = ()) -> Parameters:
        return check(self.kinds, read(self, self.settings, changes, self._refused))

    def _make_law(self) -> Law:
        self.compensation = self._add(Compensation(
            self.parameters.select(CompensationSettings), self.commands), CompensationSettings)
        return self.compensation

    def _make_parts(self) -> None:
        select, report, log, add = self.parameters.select, self.report, self._log, self._add
        if not hasattr(self, 'commands'):
            self.commands = EffortCommands(select(CommandSettings))
        else:
            # Commands that were disabled before a clean-up stay disabled.
            self.commands.configure(select(CommandSettings))
        add(self.commands, CommandSettings)
        add(self.kernels)
        self.worker = worker = add(Worker(lambda: self.executor, self._failed))
        # rclpy's annotations do not state that the clock of a node is a ROSClock.
        self.clocks = clocks = add(
            Clocks(self.get_clock(), self._on_jump))  # type: ignore[arg-type]
        self.current = add(CurrentRobot(
            select(ChangeSettings), select(RobotSettings), self.commands, worker, report, log,
            lambda: self.commanding.is_commanding(), lambda robot: law.prepare(robot),
            self._alone), ChangeSettings, RobotSettings)
        self.forces = add(ExternalForces(select(ForceSettings), clocks, log), ForceSettings)
        self.effort_check = add(EffortCheck(log))
        self.diagnosis = add(EffortDiagnosis(worker, log))
        law = self._make_law()
        withheld = Withheld(report, log)
        self.commanding = add(Commanding(
            self, select(PublishingSettings), clocks, self.current, self.commands, law, withheld,
            report, log, self.command_topics), PublishingSettings)
        self.publishing = add(Publishing(
            self, select(PublishingSettings), clocks, self.current, self.commanding, self.forces,
            withheld, report), PublishingSettings)
        loads = add(PayloadIdentification(self, self.current, report, log))
        self.listening = add(Subscriptions(
            self, select(ListeningSettings), clocks, self.current, self.publishing.answer,
            (self.effort_check.note, self.diagnosis.note, loads.note, self.forces.note),
            self._on_jump, report, log),
            ListeningSettings)
        self.answering = add(Services(
            select(ServiceSettings), clocks, self.current, log, self.check_parameters,
            self.set_parameters), ServiceSettings)
        self.calls = {name: add(BackgroundService(self, kind, name, method, worker, report, log,
                                                  CHANGES.get(name)))
                      for part in (self.answering, AnalysisServices(self.answering),
                                   TrajectoryService(self.answering))
                      for kind, name, method in methods(part)}
        self.calls['~/identify_payload'] = add(CollectingService(
            loads.begin, loads.end, self, IdentifyPayload, '~/identify_payload', loads.identify,
            worker, report, log))
        for kind, name, callback in (
                (Trigger, '~/calibrate_contact', self._calibrate_contact),
                (SetBool, '~/enable_commands', self._enable_commands)):
            add(Entity(self.destroy_service, self.create_service(kind, name, callback)))
        self.health = add(Health(self, [*(part for part, _ in self._parts), report], report, log))

    def _add(self, part: P, *settings: type) -> P:
        """Add a part of the node, which these settings configure, and return it."""
        self._parts.append((part, settings))
        return part

    @transition
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the outputs."""
        self.commands.begin()
        self.commanding.active = True
        return super().on_activate(state)

    @transition
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the commands and stop the outputs; services keep answering."""
        self.finish()
        return super().on_deactivate(state)

    @transition
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy the parts that on_configure created."""
        self._take_down()
        return super().on_cleanup(state)

    @transition
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the commands and destroy all parts."""
        self.finish()
        self._take_down()
        return super().on_shutdown(state)

    @transition
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy all parts: the node is then unconfigured and can be configured again."""
        self._take_down()
        self._refuse()
        return TransitionCallbackReturn.SUCCESS

    def finish(self) -> None:
        """End the commands and stop all outputs."""
        if self.active:
            self.commanding.finish()

    def _take_down(self) -> None:
        self._end_refusal()
        while self._parts:
            self._parts.pop()[0].close()

    def destroy_node(self) -> None:
        """Destroy all parts, and the node."""
        self._take_down()
        super().destroy_node()
        forget_life_cycle(self)

    def check_parameters(self, changes: Sequence[Parameter]) -> SetParametersResult:
        """Return whether parameters may change, with the reason if not."""
        if not any(change.name in self.settings for change in changes):
            return SetParametersResult(successful=True)     # those of rclpy
        try:
            new = self._read(changes)
            if (robot := self.robot) is None:
                return SetParametersResult(successful=True)
            if hypot(*new.gravity) < NO_GRAVITY <= hypot(*robot.model.gravity):
                raise BadParameter(
                    'gravity is zero: commands would no longer hold the robot. If that is '
                    'intended, call ~/set_gravity with allow_zero')
            if new.task_link != self.parameters.task_link:
                check_task_link(robot.model, new.task_link)
            if new.limit_efforts:
                require_stated_efforts(robot.model, robot.possible_commands)
        except (BadParameter, ModelError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    @guarded
    def _apply_parameters(self, changes: Sequence[Parameter]) -> None:
        for change in changes:
            self._refused.pop(change.name, None)
        if not self._parts or not any(change.name in self.settings for change in changes):
            return
        before, self.parameters = self.parameters, self._read()
        if self.parameters != before:
            for part, settings in self._parts:
                if settings:
                    part.configure(*map(self.parameters.select, settings))
            self.commands.disturb()
        self.current.follow_settings()

    def _on_jump(self, what: str, kind: str = 'time jumps') -> None:
        """Discard all states after a jump of time or of a joint."""
        self.report.fail(kind, what)
        self._log.warning(f'{what}: waiting for new states', kind)
        self.commands.disturb()
        self.forces.reset()
        self.effort_check.reset()
        self.diagnosis.reset()
        if self.robot is not None:
            self.robot.forget()

    def _failed(self, error: Exception) -> None:
        text = f'{type(error).__name__}: {error}'
        self.report.fail('errors', text)
        self._log.error(text, 'worker')

    def _enable_commands(self, request: SetBool.Request,
                         response: SetBool.Response) -> SetBool.Response:
        if not self.configured:     # the request waited while the node was cleaned up
            response.message = 'the node is not configured'
            return response
        self.current.enable_commands(request.data)
        response.success = True
        response.message = 'commands are ' + ('enabled' if request.data else 'disabled')
        self._log.warning(f'~/effort_commands: {response.message}')
        return response

    def _calibrate_contact(self, request: Trigger.Request,
                           response: Trigger.Response) -> Trigger.Response:
        try:
            seconds = self.forces.calibrate(self.robot)
        except BadRequest as error:
            response.success, response.message = False, str(error)
            return response
        response.success = True
        response.message = (f'do not touch the robot for {seconds:g} s, and let it move as in '
                            'operation; the thresholds are then logged')
        self._log.warning(f'~/contact is being calibrated: {response.message}')
        return response
