# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start the dynamics node, and optionally a simulated robot and displays.

Without arguments: the demo arm, simulated, held by its gravity torques.

"""

from rbd_ros.ros.launch.launch_actions import launch_description
from rbd_ros.ros.launch.launch_plan import ARGUMENTS, plan
from rbd_ros.ros.launch.published_description import published_description


def generate_launch_description():
    """Return what `ros2 launch rbd_ros dynamics.launch.py` starts."""
    return launch_description(__file__, ARGUMENTS, lambda values, log, is_over: plan(
        values, lambda topic: published_description(topic, is_over), log.warning))
