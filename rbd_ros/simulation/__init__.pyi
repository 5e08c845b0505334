# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.simulation.mujoco_robot import Load as Load, MujocoRobot as MujocoRobot
from rbd_ros.simulation.simulator import Measurement as Measurement
