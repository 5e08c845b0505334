# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots in simulation: our integrators, or MuJoCo."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'integrators': ['explicit_euler', 'runge_kutta_4', 'semi_implicit_euler'],
    'mujoco_robot': ['Load', 'Measurement', 'MujocoRobot'],
    'simulator': ['Motion', 'simulate', 'Simulator']})
