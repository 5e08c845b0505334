# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Contents of the topics with the time derivatives of M, C and g."""

import numpy as np
from rbd_ros import SingularError
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.state.joint_states import all_within
from rbd_ros.workspace.results import Factorization, MatricesDot


def rate_values(robot: Robot, q: np.ndarray, v: np.ndarray, factorization: Factorization
                ) -> tuple[dict[str, np.ndarray], str | None]:
    """
    Return the time derivatives by the keys of `Outputs`, and why that of C is invalid, or None.

    That of C needs the acceleration, which follows from the measured efforts. It is invalid if
    there are no efforts, if forward dynamics is singular, or if C is not in Christoffel form.

    """
    why_no_c_rate = None
    effort, a = robot.measured_torques(v), np.zeros_like(v)
    if factorization != 'christoffel':
        why_no_c_rate = 'coriolis_factorization is not christoffel'
    elif not all_within(effort, np.inf):
        why_no_c_rate = 'joint states have no efforts'
    else:
        try:
            a = robot.workspace.forward_dynamics(q, v, effort)
        except SingularError as error:
            why_no_c_rate = str(error)
    return (dict(zip(MatricesDot._fields, robot.workspace.matrices_dot(q, v, a))), why_no_c_rate)
