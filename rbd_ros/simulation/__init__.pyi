# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.simulation.integrators import (
    explicit_euler as explicit_euler,
    runge_kutta_4 as runge_kutta_4,
    semi_implicit_euler as semi_implicit_euler,
)
from rbd_ros.simulation.mujoco_robot import (
    Load as Load,
    Measurement as Measurement,
    MujocoRobot as MujocoRobot,
)
from rbd_ros.simulation.simulator import (
    Motion as Motion,
    simulate as simulate,
    Simulator as Simulator,
)
