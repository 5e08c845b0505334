# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the torque controller: mode, gains of all laws, speeds and tolerances."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from rbd_ros._internal.setting import Group, Setting
from rbd_ros.control import PoseReference
from rbd_ros.control.laws import control_laws
from rbd_ros.model.model import Model
from rbd_ros.ros.parameters.parameter_checks import BadParameter
from rbd_ros.ros.robot.read_model import per_velocity

LAWS = control_laws()


def parameter_name(mode: str, gain: str) -> str:
    """Return the name of the parameter of a gain."""
    return LAWS[mode].gains[gain].parameter or f'{mode}.{gain}'


def _by_mode(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {mode: {gain: values[parameter_name(mode, gain)] for gain in law.gains}
            for mode, law in LAWS.items()}


_GAINS = Group({parameter_name(mode, gain): declaration for mode, law in LAWS.items()
                for gain, declaration in law.gains.items()}, _by_mode)


def _tolerance(default: tuple[float, ...], meaning: str, unit: str = 'rad or m',
               **options: Any) -> Setting:
    return Setting(default, f'{meaning}; 0: no limit.', unit, 0.0, 1e3, changeable=True, **options)


class ControlSettings(NamedTuple):
    """The parameters that the torque controller adds to those of the dynamics node."""

    mode: Annotated[str, Setting('gravity', 'Control mode; ~/set_mode sets it, too.',
                                 choices=tuple(LAWS), changeable=True)]
    task_link: str
    control_joints: Annotated[tuple[str, ...], Setting(
        (), 'All joints of the robot, in the order of gains with several entries.',
        entry=str, changeable=True)]
    gains: Annotated[dict[str, dict[str, Any]], _GAINS]
    cartesian_speed: Annotated[float, Setting(
        0.1, 'Largest speed of task_link towards ~/pose_target.', 'm/s', 1e-4, 10.0,
        changeable=True)]
    angular_speed: Annotated[float, Setting(
        0.5, 'Largest angular speed of task_link towards ~/pose_target.', 'rad/s', 1e-4, 100.0,
        changeable=True)]
    path_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.3,), 'Largest distance of a joint from its reference during a motion',
        per='control_joints')]
    goal_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.1,), 'Largest distance of a joint from the goal of a motion, after goal_time',
        per='control_joints')]
    goal_time: Annotated[float, Setting(
        2.0, 'Time after the end of a motion in which the goal must be reached; 0: no limit.', 's',
        0.0, 600.0, changeable=True)]
    cartesian_path_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.5, 0.2), 'Largest angle and distance of task_link from its reference during a motion',
        'rad and m', sizes=(2,))]
    cartesian_goal_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.0, 0.0), 'Largest angle and distance of task_link from the goal of a motion, after '
        'goal_time', 'rad and m', sizes=(2,))]
    soft_stop_zone: Annotated[float, Setting(
        0.1, 'Width of the zones before position limits in which springs push joints back, at '
        'most a tenth of the range; 0: none.', 'rad or m', 0.0, 10.0, changeable=True)]
    velocity_guard: Annotated[float, Setting(
        1.0, 'Multiple of the velocity limits beyond which joints are braked; 0: never.',
        'times the limit', 0.0, 1e3, changeable=True)]

    def check(self) -> None:
        """Raise if the mode moves the task link and there is none."""
        if LAWS[self.mode].reference_type is PoseReference and not self.task_link:
            raise BadParameter(f'mode {self.mode} needs the parameter task_link: the link that it '
                               'moves')

    def per_velocity(self, model: Model, numbers: Sequence[float]) -> np.ndarray:
        """Return one number per velocity, from those of control_joints or one for all joints."""
        return per_velocity(model, numbers, self.control_joints)
