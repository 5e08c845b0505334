# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Actions of launch_ros, made of what a plan says; for launch files, which alone have launch."""

from launch.actions import Shutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from rbd_ros.ros.launch_plan import Process


def make_node(process: Process, **options: object) -> Node:
    """
    Return the action that starts a node; the end of a required one is that of all.

    Parameters
    ----------
    process : Process
        The node.
    **options
        More options of the action.

    Returns
    -------
    launch_ros.actions.Node
        The action.

    """
    # A text that looks like YAML stays a text.
    parameters = [
        {name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
         for name, value in one.items()} if isinstance(one, dict) else one
        for one in process.parameters]
    if process.name:
        options['name'] = process.name
    if process.required:
        options['on_exit'] = Shutdown(reason=f'{process.executable} has ended')
    return Node(package=process.package, executable=process.executable, parameters=parameters,
                remappings=process.remappings, arguments=process.arguments, output='screen',
                **options)
