# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start the dynamics node and what belongs to it.

Without any argument: the demo arm, simulated, held by its gravity torques. What is started with
which arguments is decided in `rbd_ros.ros.launch_plan`.

"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import PushRosNamespace
from rbd_ros.ros.launch_actions import make_node
from rbd_ros.ros.launch_plan import ARGUMENTS, LaunchError, plan


def make_nodes(context):
    """Return the nodes, once the values of the arguments are known."""
    values = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    try:
        processes = plan(values)
    except LaunchError as error:
        raise RuntimeError(str(error)) from None
    return [GroupAction([PushRosNamespace(values['namespace']), *map(make_node, processes)])]


def generate_launch_description():
    """Return what `ros2 launch rbd_ros dynamics.launch.py` starts."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=description)
          for name, (default, description) in ARGUMENTS.items()),
        OpaqueFunction(function=make_nodes)])
