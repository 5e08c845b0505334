# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots that MuJoCo simulates; `rbd_ros.analysis.Simulator` integrates without it."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'mujoco_robot': ['Load', 'MujocoRobot'],
    'simulator': ['Measurement']})
