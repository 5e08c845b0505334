# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Topics that need more than the terms of every state, and the parameters of all outputs."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from rbd_ros import SingularError, spring_torques
from rbd_ros._internal.setting import Setting
from rbd_ros.batch.torque_deviation import torque_deviation
from rbd_ros.control import EffortConvention
from rbd_ros.ros import convert
from rbd_ros.ros.messages.topics import (
    C_RATE, DEVIATION, FULL_STATES, RATES, TASK, TASK_BIAS, TASK_INERTIA, TASK_JACOBIAN, TASK_POSE)
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.state.joint_states import all_within
from rbd_ros.workspace.memory.results import Factorization, MatricesDot


class PublishingSettings(NamedTuple):
    """The parameters that the outputs depend on."""

    publish_rate: Annotated[float, Setting(0.0, 'Rate of the outputs; 0: once per joint state.',
                                           'Hz', 0.0, 10000.0, 0.01, changeable=True)]
    on_stale: str
    state_timeout: float
    missing_velocity: str
    friction: bool
    limit_efforts: bool
    friction_dead_band: float
    effort_convention: EffortConvention
    springs: bool
    marker_rate: Annotated[float, Setting(
        30.0, 'Largest rate of the markers; 0: no markers.', 'Hz', 0.0, 1000.0, changeable=True)]
    condition_limit: Annotated[float, Setting(
        2e3, "Condition number of the Jacobian, with lengths in units of the robot's reach, "
        'beyond which task inertias are damped.', '', 1.0, 1e7, changeable=True)]
    coriolis_factorization: Annotated[Factorization, Setting(
        'christoffel', 'Factorization of the Coriolis matrix: Christoffel symbols, or body twists '
        '(Garofalo et al.). C v is the same.', choices=('christoffel', 'body'), changeable=True)]


NO_TASK_LINK = 'the parameter task_link is not set'

Terms: TypeAlias = dict[str, Any]    # Terms of one state, by the keys of `Outputs.message`
# Returns the terms of a topic, or why there are none.
Source: TypeAlias = Callable[[str, Terms, Robot, PublishingSettings], Terms | str]


def rates(topic: str, values: Terms, robot: Robot, settings: PublishingSettings) -> Terms | str:
    """Compute the time derivatives of M, C and g; that of C needs the acceleration."""
    if 'g_dot' not in values:
        q, v, why_not = values['q'], values['v'], ''
        effort, a = robot.measured_torques(v), np.zeros_like(v)
        if settings.coriolis_factorization != 'christoffel':
            why_not = 'coriolis_factorization is not christoffel'
        elif not all_within(effort, np.inf):
            why_not = 'joint states have no efforts'
        else:
            try:
                a = robot.workspace.forward_dynamics(q, v, effort - spring_torques(robot.model, q))
            except SingularError as error:
                why_not = str(error)
        values.update(zip(MatricesDot._fields, robot.workspace.matrices_dot(q, v, a)),
                      why_no_c_rate=why_not)
    return (topic == C_RATE and values['why_no_c_rate']) or {}


def deviation(topic: str, values: Terms, robot: Robot, settings: PublishingSettings
              ) -> Terms | str:
    """Compute the deviation of torques without accelerations, which are not measured."""
    if robot.model.uncertainty is None:
        return ('the robot has no uncertainty: identify it with rbd_ros identify, and load the '
                'URDF and the parameter file that it writes')
    q, v = values['q'], values['v']
    return {'torque_deviation': torque_deviation(
        robot.model, q, v, np.zeros_like(v), smooth=settings.friction_dead_band)}


def task(topic: str, values: Terms, robot: Robot, settings: PublishingSettings) -> Terms | str:
    """Compute the pose and motion of the task link, and its equations of motion, damped or not."""
    workspace, link, q, v = robot.workspace, robot.task_link, values['q'], values['v']
    limit = settings.condition_limit
    if not link:
        return NO_TASK_LINK
    if 'eta' in values:
        return {}           # computed for ~/task_dynamics, which comes first
    if topic == TASK_INERTIA:
        Lambda, condition = workspace.task_inertia(values['M'], q, link, condition_limit=limit)
        return {'Lambda': Lambda, 'condition': condition}
    J, T = workspace.body_jacobian(q, link)
    if topic == TASK_JACOBIAN:
        return {'J': J}
    if topic == TASK_POSE:
        return {'pose': convert.pose_numbers(T)}
    if topic == TASK_BIAS:
        return {'bias': convert.linear_first(workspace.jacobian_dot_v(q, v, link))}
    task = workspace.task_space_dynamics(q, v, link, condition_limit=limit)
    return {'J': J, 'Lambda': task.Lambda, 'condition': task.condition, 'condition_limit': limit,
            'pose': convert.pose_numbers(T), 'twist': convert.linear_first(J @ v),
            'bias': convert.linear_first(task.J_dot @ v), 'eta': convert.linear_first(task.eta)}


# By the `source` of a topic.
SOURCES: dict[str, Source] = {
    RATES: rates, TASK: task, DEVIATION: deviation,
    FULL_STATES: lambda topic, values, robot, settings: robot.all_joints(values['v'])}
