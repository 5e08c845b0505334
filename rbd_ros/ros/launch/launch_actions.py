# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Build launch descriptions from launch plans (imported by launch files only)."""

from collections.abc import Callable, Mapping, Sequence
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
from rbd_ros.ros.launch.arguments import Argument
from rbd_ros.ros.launch.launch_plan import check_installed, Process

# Arguments of every launch file
OF_LAUNCH = ('emulate_tty', 'launch-prefix', 'launch-prefix-filter', 'sigkill_timeout',
             'sigterm_timeout')


def launch_description(file: str, arguments: Mapping[str, Argument],
                       plan: Callable[[dict[str, str], Any, Callable[[], bool]], list[Process]]
                       ) -> LaunchDescription:
    """
    Return what a launch file declares and starts.

    `plan` is called with the values of the arguments, the log, and a function that tells whether
    Ctrl-C was pressed meanwhile: then nothing is started.

    """
    def begin(context: LaunchContext) -> list[Action]:
        was_interrupted = leave_interrupts_to_launch(context)
        values = read(context, arguments, file)
        processes = plan(values, get_logger('rbd_ros'), was_interrupted)
        check_installed(processes, arguments)
        started = start(processes, values['namespace'])
        return [] if was_interrupted() else started

    return LaunchDescription([*(DeclareLaunchArgument(
        name, default_value=one.default, description=one.description, choices=one.choices)
        for name, one in arguments.items()), OpaqueFunction(function=begin)])


def read(context: LaunchContext, arguments: Mapping[str, Argument], file: str) -> dict[str, str]:
    """Return the values of launch arguments, and of unknown ones on the command line."""
    given = dict(one.split(':=', 1) for one in context.argv if ':=' in one)
    # The event that launch began with, during its first visit of the description.
    root = getattr(getattr(context.locals, 'event', None), 'launch_description', None)
    files = [one.launch_description_source.location for one in getattr(root, 'entities', ())
             if isinstance(one, IncludeLaunchDescription)]
    # They belong to `file` only if launch was started with it, not if it is included.
    if not any(Path(path).exists() and os.path.samefile(path, file) for path in files):
        given = {}
    values = {name: LaunchConfiguration(name).perform(context) for name in arguments}
    # Includes the namespace of a group around this file.
    values['namespace'] = prefix_namespace(
        context.launch_configurations.get('ros_namespace'), values['namespace'])
    return {name: value for name, value in given.items() if name not in OF_LAUNCH} | values


def start(processes: Sequence[Process], namespace: str) -> list[Action]:
    """Return the first nodes, and the event handlers that start the others and end them all."""
    nodes = {make_node(process, namespace): process for process in processes}
    followers = {node: other for node, other in pairwise(nodes) if nodes[other].waits}

    def on_end(event: Any, context: LaunchContext) -> Action | None:
        node, process = event.action, nodes[event.action]
        if context.is_shutdown or not process.required:
            return None
        if node.return_code != 0:
            # All nodes end; only an exception makes launch return 1.
            raise RuntimeError(f'{process.executable} has failed, ' + (
                'it could not be started' if node.return_code is None else
                f'exit code {node.return_code}'))
        return (followers.get(node) if process.once else
                Shutdown(reason=f'{process.executable} has ended'))

    def on_start(event: Any, context: LaunchContext) -> Action | None:
        # The process missed the terminal's SIGINT: without another, launch would wait 5 s for it.
        return EmitEvent(event=SignalProcess(
            signal_number=signal.SIGINT, process_matcher=matches_action(event.action)
        )) if context.is_shutdown else None

    def on_output(event: Any) -> Action | None:
        complete = COMPLETE.encode() in event.text and not nodes[event.action].once
        return followers.pop(event.action, None) if complete else None

    # Registered before the nodes start
    of_nodes = {'target_action': lambda action: action in nodes}
    handlers = (OnProcessStart(on_start=on_start, **of_nodes),
                OnExecutionComplete(on_completion=on_end, **of_nodes),
                OnProcessIO(on_stdout=on_output, on_stderr=on_output, **of_nodes))
    return [*map(RegisterEventHandler, handlers),
            *(node for node, process in nodes.items() if not process.waits)]


def make_node(process: Process, namespace: str) -> Node:
    """Return the action that starts a node."""
    # Strings that look like YAML must stay strings.
    parameters = [{name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
                   for name, value in one.items()} if isinstance(one, dict) else one
                  for one in process.parameters]
    # Groups do not apply to actions of event handlers: each gets its namespace explicitly.
    return Node(package=process.package, executable=process.executable, namespace=namespace,
                name=process.name or None, parameters=parameters, output='screen',
                remappings=process.remappings, arguments=process.arguments)


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
