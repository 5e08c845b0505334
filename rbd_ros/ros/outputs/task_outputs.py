# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Contents of the topics of the task link: its pose, motion and equations of motion."""

import numpy as np
from rbd_ros.ros import convert
from rbd_ros.ros.messages.topics import (
    TASK_BIAS, TASK_INERTIA, TASK_JACOBIAN, TASK_POSE)
from rbd_ros.ros.robot.robot import Robot


def task_values(topic: str, robot: Robot, q: np.ndarray, v: np.ndarray | None,
                M: np.ndarray, limit: float) -> dict[str, np.ndarray]:
    """
    Return the terms in one of `TASK_TOPICS`, by the keys of `Outputs`.

    v may be None for topics that do not need it, M is the mass matrix. Beyond the condition number
    `limit` of the Jacobian, the task inertia is damped; ``condition`` holds that number and the
    limit.

    """
    workspace, link = robot.workspace, robot.task_link
    if topic == TASK_INERTIA:
        Lambda, condition = workspace.task_inertia(M, q, link, condition_limit=limit,
                                                   length=robot.task_length)
        return {'Lambda': Lambda, 'condition': np.array([condition, limit])}
    J, T = workspace.body_jacobian(q, link)
    if topic == TASK_JACOBIAN:
        return {'J': J}
    if topic == TASK_POSE:
        return convert.parts_of_pose('pose', T)
    assert v is not None
    if topic == TASK_BIAS:
        return convert.parts_of_motion('bias', workspace.jacobian_dot_v(q, v, link))
    task = workspace.task_space_dynamics(q, v, link, condition_limit=limit)
    return {'J': J, 'Lambda': task.Lambda, 'condition': np.array([task.condition, limit]),
            **convert.parts_of_pose('pose', T), **convert.parts_of_motion('twist', J @ v),
            **convert.parts_of_motion('bias', task.J_dot @ v),
            **convert.parts_of_wrench('eta', task.eta)}
