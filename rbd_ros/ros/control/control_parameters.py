# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters that the torque controller has beside those of the dynamics node."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rbd_ros.ros.parameters.parameter_checks import BadParameter, MODES
from rbd_ros.ros.parameters.parameters import (
    NAMES, NUMBERS, TABLE as DYNAMICS, Table, typed_values)
from rclpy.node import Node
from rclpy.parameter import Parameter

# Upper bounds of gains, N m/rad or N/m, N m s/rad or N s/m, 1/s^2 and 1/s.
MAX_STIFFNESS, MAX_DAMPING, MAX_KP, MAX_KD = 1e5, 1e4, 1e5, 1e3
_EACH = ': one number, or one for each of control_joints'
DESCRIPTIONS: dict[str, tuple[Any, ...]] = {
    'mode': ('gravity', 'What the robot does; ~/set_mode sets it, too.'),
    'control_joints': (NAMES, 'All joints of the robot, in the order of gains that have several '
                       'entries.'),
    'gravity_damping': ([0.0], 'Of the mode gravity: damping, N m s/rad or N s/m' + _EACH + '.',
                        0.0, MAX_DAMPING),
    'pd_gravity.stiffness': ([50.0], 'N m/rad or N/m' + _EACH + '.', 0.0, MAX_STIFFNESS),
    'pd_gravity.damping': ([5.0], 'N m s/rad or N s/m' + _EACH + '.', 0.0, MAX_DAMPING),
    'computed_torque.kp': ([100.0], 'Acceleration per error of position, 1/s^2' + _EACH + '.', 0.0,
                           MAX_KP),
    'computed_torque.kd': (NUMBERS, 'Acceleration per error of velocity, 1/s' + _EACH
                           + '. Empty: 2 sqrt(kp), for no overshoot.', 0.0, MAX_KD),
    'joint_impedance.stiffness': ([50.0], 'N m/rad or N/m' + _EACH + '.', 0.0, MAX_STIFFNESS),
    'joint_impedance.damping_ratio': (1.0, 'Damping ratio of all modes.', 0.0, 10.0),
    'cartesian_impedance.stiffness': ([30.0, 30.0, 30.0, 300.0, 300.0, 300.0],
                                      'About x, y and z, N m/rad, and along them, N/m, in the '
                                      'axes of the root: one number, or six.', 0.0,
                                      MAX_STIFFNESS),
    'cartesian_impedance.damping_ratio': (1.0, 'Damping ratio of all modes.', 0.0, 10.0),
    'cartesian_impedance.posture_stiffness': ([10.0], 'Of motions that do not move task_link, N '
                                              'm/rad or N/m' + _EACH + '.', 0.0, MAX_STIFFNESS),
    'slotine_li.rate': ([5.0], 'How fast errors of position die out, 1/s' + _EACH + '.', 0.0,
                        MAX_KD),
    'slotine_li.damping': ([10.0], 'N m s/rad or N s/m' + _EACH + '.', 0.0, MAX_DAMPING),
    'slotine_li.adaptation': (0.0, 'How fast inertial parameters adapt, 1/J; 0: they stay.', 0.0,
                              1e6),
    'slotine_li.links': (NAMES, 'Links whose inertial parameters adapt; empty: all that move.'),
    'hybrid.kp': ([100.0], 'As computed_torque.kp, of the joints that follow' + _EACH + '.', 0.0,
                  MAX_KP),
    'hybrid.kd': (NUMBERS, 'As computed_torque.kd.', 0.0, MAX_KD),
    'hybrid.free_joints': (NAMES, 'Joints that do not follow, and get the effort of the '
                           'trajectory, or none.'),
    'cartesian_speed': (0.1, 'Largest speed of task_link towards ~/pose_target, m/s.', 1e-4, 10.0),
    'angular_speed': (0.5, 'Largest angular speed of it, rad/s.', 1e-4, 100.0),
    'path_tolerance': ([0.3], 'Largest distance from the reference during a motion, rad or m'
                       + _EACH + '; 0: no limit.', 0.0, 1e3),
    'goal_tolerance': ([0.1], 'Largest distance from the goal of a motion, rad or m' + _EACH
                       + '; 0: no limit.', 0.0, 1e3),
    'goal_time': (2.0, 'Time after the end of a motion in which the goal must be reached, s; 0: '
                  'no limit.', 0.0, 600.0),
    'cartesian_path_tolerance': ([0.5, 0.2], 'Largest angle, rad, and distance, m, of task_link '
                                 'from its reference during a motion; 0: no limit.', 0.0, 1e3),
    'cartesian_goal_tolerance': ([0.0, 0.0], 'Largest angle, rad, and distance, m, from the goal '
                                 'of a motion; 0: no limit.', 0.0, 1e3),
    'soft_stop_zone': (0.1, 'Width of the zones before position limits in which springs push '
                       'joints back, rad or m, at most a tenth of the range; 0: none.', 0.0, 10.0),
    'velocity_guard': (1.0, 'Multiple of the velocity limits beyond which joints are braked; 0: '
                       'they are not.', 0.0, 1e3),
}
TABLE = Table(DESCRIPTIONS, tuple(DESCRIPTIONS), {'mode': MODES})
# The parameters of the dynamics node, but commands are clamped by default.
DYNAMICS_TABLE = DYNAMICS._replace(descriptions={
    **DYNAMICS.descriptions,
    'limit_efforts': (True, *DYNAMICS.descriptions['limit_efforts'][1:])})


class Gains(NamedTuple):
    """The values of these parameters, dots in their names as underscores."""

    mode: str
    control_joints: tuple[str, ...]
    gravity_damping: tuple[float, ...]
    pd_gravity_stiffness: tuple[float, ...]
    pd_gravity_damping: tuple[float, ...]
    computed_torque_kp: tuple[float, ...]
    computed_torque_kd: tuple[float, ...]
    joint_impedance_stiffness: tuple[float, ...]
    joint_impedance_damping_ratio: float
    cartesian_impedance_stiffness: tuple[float, ...]
    cartesian_impedance_damping_ratio: float
    cartesian_impedance_posture_stiffness: tuple[float, ...]
    slotine_li_rate: tuple[float, ...]
    slotine_li_damping: tuple[float, ...]
    slotine_li_adaptation: float
    slotine_li_links: tuple[str, ...]
    hybrid_kp: tuple[float, ...]
    hybrid_kd: tuple[float, ...]
    hybrid_free_joints: tuple[str, ...]
    cartesian_speed: float
    angular_speed: float
    path_tolerance: tuple[float, ...]
    goal_tolerance: tuple[float, ...]
    goal_time: float
    cartesian_path_tolerance: tuple[float, ...]
    cartesian_goal_tolerance: tuple[float, ...]
    soft_stop_zone: float
    velocity_guard: float


def read(node: Node, changes: Sequence[Parameter] = (),
         refused: dict[str, str] | None = None) -> Gains:
    """
    Return the values of these parameters, checked; as `rbd_ros.ros.parameters.parameters.read`.

    Raises
    ------
    BadParameter
        If a value cannot be used.

    """
    values = typed_values(node, TABLE, changes, refused)
    if values['mode'] not in MODES:
        raise BadParameter(f"mode must be one of {', '.join(MODES)}, got '{values['mode']}'")
    count = len(values['control_joints'])
    for name, numbers in values.items():
        default = DESCRIPTIONS[name][0]
        if isinstance(default, list) or default is NUMBERS:
            _check_gains(name, numbers, default is NUMBERS, count)
    return Gains(**{name.replace('.', '_'): value for name, value in values.items()})


def _check_gains(name: str, numbers: Sequence[float], may_lack: bool, count: int) -> None:
    """Raise if there is a wrong number of gains."""
    allowed = {'cartesian_impedance.stiffness': (1, 6), 'cartesian_path_tolerance': (2,),
               'cartesian_goal_tolerance': (2,)}.get(name)
    if allowed is not None:
        if len(numbers) not in allowed:
            raise BadParameter(f'{name} has {len(numbers)} entries: give '
                               + ('one number, or six' if 6 in allowed else 'an angle, rad, and a '
                                  'distance, m'))
    elif len(numbers) not in (1, count) and (numbers or not may_lack):
        raise BadParameter(f'{name} has {len(numbers)} entries, control_joints has {count}: '
                           'give one number, or one for each of control_joints')
    if not numbers and not may_lack:
        raise BadParameter(f'{name} must have a value')
