# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Build launch descriptions from launch plans (imported by launch files only)."""

from collections.abc import Callable
from itertools import pairwise
import os
from pathlib import Path
import signal
from typing import Any

from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument, EmitEvent, IncludeLaunchDescription, OpaqueFunction,
    RegisterEventHandler, Shutdown)
from launch.event_handlers import OnExecutionComplete, OnProcessIO, OnProcessStart
from launch.events import matches_action
from launch.events.process import SignalProcess
from launch.launch_context import LaunchContext
from launch.launch_description import LaunchDescription
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.utilities import prefix_namespace
from rbd_ros.ros.commands.effort_commands import COMPLETE
from rbd_ros.ros.launch.arguments import Arguments, OF_LAUNCH
from rbd_ros.ros.launch.launch_plan import Bringup, Process


def launch_description(file: str, arguments: Arguments,
                       plan: Callable[[dict[str, str], Any, Callable[[], bool]], Bringup]
                       ) -> LaunchDescription:
    """
    Return what a launch file declares and starts.

    `plan` is called with the values of the arguments, the log, and a function that tells whether
    Ctrl-C was pressed meanwhile: then nothing is started.

    """
    def begin(context: LaunchContext) -> list[Action]:
        was_interrupted = leave_interrupts_to_launch(context)
        values, log = read(context, arguments, file), get_logger('rbd_ros')
        started = start(plan(values, log, was_interrupted), values['namespace'], log)
        return [] if was_interrupted() else started

    return LaunchDescription([*(DeclareLaunchArgument(
        name, default_value=one.default, description=one.description, choices=one.choices)
        for name, one in arguments.items()), OpaqueFunction(function=begin)])


def start(bringup: Bringup, namespace: str, log: Any) -> list[Action]:
    """Return the first nodes, and the event handlers that start the others."""
    processes = [*bringup.robot, *bringup.loading]
    if bringup.node and bringup.guard:
        log.info('waiting for the commands of the node to reach their full size: then the effort '
                 'controller is activated, after half a minute or more the first time')
        processes += [bringup.node, bringup.guard]
    nodes = [make_node(process, namespace) for process in processes]
    robot, steps = nodes[:len(bringup.robot)], nodes[len(bringup.robot):]
    activating = [steps.pop()] if bringup.guard else []
    followers = dict(pairwise(steps))
    handlers = [handler for node, process in zip(nodes, processes)
                for handler in watch(node, process, followers.get(node))]

    def look(event: Any) -> Action | None:
        """Activate the controller, once, when commands are complete."""
        return activating.pop() if COMPLETE.encode() in event.text and activating else None
    if activating:
        handlers.append(RegisterEventHandler(OnProcessIO(
            target_action=steps[-1], on_stdout=look, on_stderr=look)))
    return [*handlers, *robot, *steps[:1]]


def read(context: LaunchContext, arguments: Arguments, file: str) -> dict[str, str]:
    """Return the values of launch arguments, and of unknown ones on the command line."""
    given = dict(one.split(':=', 1) for one in context.argv if ':=' in one)
    unknown = {name: value for name, value in given.items()
               if name not in arguments and name not in OF_LAUNCH}
    # The event that launch began with, during its first visit of the description.
    root = getattr(getattr(context.locals, 'event', None), 'launch_description', None)
    files = [one.launch_description_source.location for one in getattr(root, 'entities', ())
             if isinstance(one, IncludeLaunchDescription)]
    # Unknown arguments belong to `file` only if launch was started with it, not if it is included.
    if not any(Path(path).exists() and os.path.samefile(path, file) for path in files):
        unknown = {}
    values = {name: LaunchConfiguration(name).perform(context) for name in arguments}
    # Includes the namespace of a group around this file.
    values['namespace'] = prefix_namespace(
        context.launch_configurations.get('ros_namespace'), values['namespace'])
    return unknown | values


def make_node(process: Process, namespace: str) -> Node:
    """Return the action that starts a node."""
    # Strings that look like YAML must stay strings.
    parameters = [{name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
                   for name, value in one.items()} if isinstance(one, dict) else one
                  for one in process.parameters]
    # Groups do not apply to actions of event handlers: each gets its namespace explicitly.
    return Node(package=process.package, executable=process.executable, namespace=namespace,
                parameters=parameters, remappings=process.remappings, output='screen',
                arguments=process.arguments, **({'name': process.name} if process.name else {}))


def watch(node: Node, process: Process, then: Action | None = None) -> list[Action]:
    """Return the event handlers of a node, to be registered before it starts."""
    def end(event: Any, context: LaunchContext) -> Action | None:
        if context.is_shutdown:
            return None
        if node.return_code != 0:
            # All nodes end; only an exception makes launch return 1.
            raise RuntimeError(f'{process.executable} has failed, ' + (
                'it could not be started' if node.return_code is None else
                f'exit code {node.return_code}'))
        return then if process.once else Shutdown(reason=f'{process.executable} has ended')

    def interrupt(event: Any, context: LaunchContext) -> Action | None:
        # The process missed the terminal's SIGINT: without another, launch would wait 5 s for it.
        if not context.is_shutdown:
            return None
        return EmitEvent(event=SignalProcess(signal_number=signal.SIGINT,
                                             process_matcher=matches_action(node)))

    handlers = [OnProcessStart(target_action=node, on_start=interrupt)]
    if process.required:
        handlers.append(OnExecutionComplete(target_action=node, on_completion=end))
    return [RegisterEventHandler(one) for one in handlers]


def leave_interrupts_to_launch(context: LaunchContext) -> Callable[[], bool]:
    """Suppress KeyboardInterrupt while launch runs; return a function: was Ctrl-C pressed."""
    # Launch receives signals through a file descriptor; an additional KeyboardInterrupt at the
    # wrong place would make it lose a node that it is just starting.
    pressed, before = [], signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        pressed.append(number)
        if context.asyncio_loop is None and callable(before):
            before(number, frame)       # launch has ended, but not the program
    signal.signal(signal.SIGINT, handle)
    return lambda: bool(pressed)
