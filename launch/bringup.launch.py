# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start ros2_control with an effort controller, and the node that commands it.

Without arguments: the demo arm, with mock components in place of hardware. The plan, what to start
in which order, comes from `rbd_ros.ros.launch.bringup_plan`.

"""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from launch import LaunchDescription
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessIO
from launch.logging import get_logger
from rbd_ros.ros.commands.effort_commands import COMPLETE
from rbd_ros.ros.launch.bringup_plan import ARGUMENTS, plan
from rbd_ros.ros.launch.controllers import caller
from rbd_ros.ros.launch.launch_actions import actions, make_node, watch
from rbd_ros.ros.launch.published_description import published_description, temporary_node

# s: a manager that is not found in time would be started again, on the same hardware.
PATIENCE = 5.0
# Removed when launch ends.
FOLDER = TemporaryDirectory(prefix='rbd_ros_')


def start(values, was_interrupted):
    """Return the first nodes, and the event handlers that start the others."""
    log = get_logger('rbd_ros')
    log.info('looking for a controller manager that runs already')
    with temporary_node(values['namespace']) as parts:
        bringup = plan(values, Path(FOLDER.name),
                       call=parts and caller(*parts, PATIENCE, was_interrupted),
                       log=log.warning,
                       hear=lambda topic: published_description(topic, was_interrupted, PATIENCE))
    processes = [*bringup.robot, *bringup.loading]
    if bringup.node and bringup.guard:
        log.info('waiting for the commands of the node to reach their full size: then the effort '
                 'controller is activated, after half a minute or more the first time')
        processes += [bringup.node, bringup.guard]
    # Groups do not apply to actions of event handlers: each gets its namespace explicitly.
    nodes = [make_node(process, namespace=values['namespace']) for process in processes]
    robot, steps = nodes[:len(bringup.robot)], nodes[len(bringup.robot):]
    activating = [steps.pop()] if bringup.guard else []
    followers = dict(pairwise(steps))
    handlers = [handler for one, process in zip(nodes, processes)
                for handler in watch(one, process, followers.get(one))]
    handlers += [RegisterEventHandler(when_complete(steps[-1], one)) for one in activating]
    return [*handlers, *robot, steps[0]]


def when_complete(node, activating):
    """Return the handler that activates the controller, once, when commands are complete."""
    waiting = [activating]

    def look(event):
        if COMPLETE.encode() in event.text and waiting:
            return waiting.pop()
    return OnProcessIO(target_action=node, on_stdout=look, on_stderr=look)


def generate_launch_description():
    """Return what `ros2 launch rbd_ros bringup.launch.py` starts."""
    return LaunchDescription(actions(ARGUMENTS, __file__, start))
