# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The control laws of the demo arm, with the gains that launch gives it."""

from pathlib import Path

import numpy as np
from rbd_ros.control.controller import Circumstances
from rbd_ros.ros.control.law_factory import ControlSettings, damping_warning, make_controller
from rbd_ros.ros.launch import launch_plan
from rbd_ros.ros.launch.launch_files import values_for
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.parameters.parameters import check, check_values
from rbd_ros.ros.robot.read_model import read_model, RobotSettings

DEMO = Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
LINK = 'tool'
FASTEST, SLOWEST, PRECISION = 1e-4, 10.0, 1.0005    # s, periods; ratio


def launched(mode):
    """Return the parameters of the torque controller that launch starts in a mode."""
    node = launch_plan.plan({'mode': mode, 'task_link': LINK})[0]
    return values_for(node.parameters, '/torque_controller')


def made(values):
    """Return settings, law and configuration of the demo arm with some parameters."""
    settings = check(TorqueController.kinds, check_values(TorqueController.settings, {
        name: values.get(name, one.default) for name, one in TorqueController.settings.items()}))
    model = read_model(DEMO.read_text(), settings.select(RobotSettings))
    q, control = np.array(launch_plan.DEMO_POSITIONS), settings.select(ControlSettings)
    law = make_controller(control, Circumstances(model, LINK, q, False, 0.0, True))
    return control, law, q


def warning(of_arm, period, age):
    """Return the warning of damping of what is `made` at states with a period and an age, s."""
    control, law, q = of_arm
    return damping_warning(law, control, q, period, np.full(law.model.nv, age))


def slowest_rate(of_arm, age=None):
    """Return the smallest rate of states with an age, s, without a warning; inf: there is none."""
    # None: a period.
    fast, slow = FASTEST, SLOWEST
    if warning(of_arm, fast, fast if age is None else age):
        return np.inf
    while slow > PRECISION * fast:
        period = np.sqrt(slow * fast)
        if warning(of_arm, period, period if age is None else age):
            slow = period
        else:
            fast = period
    return 1.0 / fast
