# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Names of version 0.2; new programs import them from `rbd_ros.simulation`."""

from rbd_ros.simulation.mujoco_robot import Load as Load
from rbd_ros.simulation.mujoco_robot import Measurement as Measurement
from rbd_ros.simulation.mujoco_robot import mujoco_urdf as mujoco_urdf
from rbd_ros.simulation.mujoco_robot import MujocoRobot as MujocoRobot
