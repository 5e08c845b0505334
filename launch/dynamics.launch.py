# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start the dynamics node, and optionally a simulated robot and displays.

Without arguments: the demo arm, simulated, held by its gravity torques. The plan comes from
`rbd_ros.ros.launch.launch_plan`.

"""

from launch import LaunchDescription
from launch.actions import GroupAction
from launch.logging import get_logger
from launch_ros.actions import PushRosNamespace
from rbd_ros.ros.launch.launch_actions import actions, make_node, watch
from rbd_ros.ros.launch.launch_plan import ARGUMENTS, plan
from rbd_ros.ros.launch.published_description import published_description


def start(values, was_interrupted):
    """Return the nodes and their event handlers, once the values of the arguments are known."""
    processes = plan(
        values, hear=lambda topic: published_description(topic, was_interrupted),
        log=get_logger('rbd_ros').warning)
    nodes = [make_node(process) for process in processes]
    handlers = [handler for node, process in zip(nodes, processes)
                for handler in watch(node, process)]
    return [*handlers, GroupAction([PushRosNamespace(values['namespace']), *nodes])]


def generate_launch_description():
    """Return what `ros2 launch rbd_ros dynamics.launch.py` starts."""
    return LaunchDescription(actions(ARGUMENTS, __file__, start))
