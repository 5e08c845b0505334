# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Build launch_ros actions from a launch plan (imported by launch files only)."""

from collections.abc import Callable
import os
from pathlib import Path
import signal
from typing import Any

from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument, EmitEvent, IncludeLaunchDescription, OpaqueFunction,
    RegisterEventHandler, Shutdown)
from launch.event_handlers import OnExecutionComplete, OnProcessStart
from launch.events import matches_action
from launch.events.process import SignalProcess
from launch.launch_context import LaunchContext
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.utilities import prefix_namespace
from rbd_ros.ros.launch.launch_plan import Arguments, choices, OF_LAUNCH, Process


def actions(arguments: Arguments, file: str,
            start: Callable[[dict[str, str], Callable[[], bool]], list[Action]]) -> list[Action]:
    """
    Return the actions of a launch file: its arguments, and what it starts.

    `start` returns the actions for their values; its second argument tells whether Ctrl-C was
    pressed meanwhile: then nothing is started.

    """
    def begin(context: LaunchContext) -> list[Action]:
        was_interrupted = leave_interrupts_to_launch(context)
        started = start(read(context, arguments, file), was_interrupted)
        return [] if was_interrupted() else started

    declared = [DeclareLaunchArgument(name, default_value=default, description=description,
                                      choices=choices(name))
                for name, (default, description) in arguments.items()]
    return [*declared, OpaqueFunction(function=begin)]


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


def make_node(process: Process, **options: Any) -> Node:
    """Return the action that starts a node, with further options of `launch_ros.actions.Node`."""
    # Strings that look like YAML must stay strings.
    parameters = [{name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
                   for name, value in one.items()} if isinstance(one, dict) else one
                  for one in process.parameters]
    if process.name:
        options['name'] = process.name
    return Node(package=process.package, executable=process.executable, parameters=parameters,
                remappings=process.remappings, arguments=process.arguments, output='screen',
                **options)


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
