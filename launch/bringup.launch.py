# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start ros2_control with an effort controller, and the node whose commands it passes on.

Without any argument: the demo arm, with mock components in place of hardware. What is started with
which arguments, and in which order, is decided in `rbd_ros.ros.bringup_plan`.

"""

from pathlib import Path
from tempfile import TemporaryDirectory

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler, Shutdown)
from launch.event_handlers import OnProcessExit, OnProcessIO
from launch.substitutions import LaunchConfiguration
from rbd_ros.ros.bringup_plan import ARGUMENTS, plan
from rbd_ros.ros.effort_commands import COMPLETE
from rbd_ros.ros.launch_actions import make_node
from rbd_ros.ros.launch_plan import LaunchError

# It is removed when launch ends.
FOLDER = TemporaryDirectory(prefix='rbd_ros_')


def make_nodes(context):
    """Return the first nodes, and what starts the others."""
    values = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    try:
        bringup = plan(values, Path(FOLDER.name))
    except LaunchError as error:
        raise RuntimeError(str(error)) from None

    def make(process):
        # Actions of event handlers know of no group: each is told its namespace.
        return make_node(process, namespace=values['namespace'])

    loading, node = [make(process) for process in bringup.loading], make(bringup.node)
    activating = make(bringup.activating)
    handlers = [when_done(process, then)
                for process, then in zip([*loading, activating], [*loading[1:], node, None])]
    return [*map(make, bringup.robot), *map(RegisterEventHandler, [
        *handlers, when_complete(node, activating)]), loading[0]]


def when_done(process, then):
    """Return the handler that starts what follows a process, or ends all if that has failed."""
    def go_on(event, context):
        if event.returncode != 0:
            return Shutdown(reason=f'{event.process_name} has failed')
        return then
    return OnProcessExit(target_action=process, on_exit=go_on)


def when_complete(node, activating):
    """Return the handler that activates the controller, once, when commands are complete."""
    waiting = [activating]

    def look(event):
        if COMPLETE.encode() in event.text and waiting:
            return waiting.pop()
    return OnProcessIO(target_action=node, on_stdout=look, on_stderr=look)


def generate_launch_description():
    """Return what `ros2 launch rbd_ros bringup.launch.py` starts."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=description)
          for name, (default, description) in ARGUMENTS.items()),
        OpaqueFunction(function=make_nodes)])
