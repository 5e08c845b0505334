# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start ros2_control with an effort controller, and the node that commands it.

Without arguments: the demo arm, with mock components in place of hardware.

"""

from rbd_ros.ros.commands.controllers import caller
from rbd_ros.ros.launch.bringup_plan import ARGUMENTS, plan
from rbd_ros.ros.launch.launch_actions import launch_description
from rbd_ros.ros.launch.published_description import published_description, temporary_node

# s: a manager that is not found in time would be started again, on the same hardware.
PATIENCE = 5.0


def start(values, log, is_over):
    """Return the nodes to start, depending on a controller manager that may run already."""
    log.info('looking for a controller manager that runs already')
    with temporary_node(values['namespace']) as parts:
        processes = plan(values, lambda topic: published_description(topic, is_over, PATIENCE),
                         log.warning, parts and caller(*parts, PATIENCE, is_over))
    if not values['controller']:
        log.info('waiting for the commands of the node to reach their full size: then the effort '
                 'controller is activated, after half a minute or more the first time')
    return processes


def generate_launch_description():
    """Return what `ros2 launch rbd_ros bringup.launch.py` starts."""
    return launch_description(__file__, ARGUMENTS, start)
