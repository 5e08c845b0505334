# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Names of version 0.2; new programs import them from `rbd_ros.simulation`."""

from rbd_ros.simulation.mujoco_robot import Load, Measurement, mujoco_urdf, MujocoRobot

__all__ = ['Load', 'Measurement', 'mujoco_urdf', 'MujocoRobot']
