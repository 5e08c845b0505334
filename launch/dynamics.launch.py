# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start the dynamics node and what belongs to it.

Without any argument: the demo arm, simulated, held by its gravity torques. What is started with
which arguments is decided in `rbd_ros.ros.launch_plan`.

"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterValue
from rbd_ros.ros.launch_plan import ARGUMENTS, LaunchError, plan


def make_nodes(context):
    """Return the nodes, once the values of the arguments are known."""
    values = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    try:
        processes = plan(values)
    except LaunchError as error:
        raise RuntimeError(str(error)) from None
    return [GroupAction([PushRosNamespace(values['namespace']), *map(make_node, processes)])]


def make_node(process):
    """Return the action that starts a node; the end of a required one is that of all."""
    parameters = [
        {name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
         for name, value in one.items()} if isinstance(one, dict) else one
        for one in process.parameters]
    options = {'name': process.name} if process.name else {}
    if process.required:
        options['on_exit'] = Shutdown(reason=f'{process.executable} has ended')
    return Node(package=process.package, executable=process.executable, parameters=parameters,
                remappings=process.remappings, arguments=process.arguments, output='screen',
                **options)


def generate_launch_description():
    """Return what `ros2 launch rbd_ros dynamics.launch.py` starts."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=description)
          for name, (default, description) in ARGUMENTS.items()),
        OpaqueFunction(function=make_nodes)])
