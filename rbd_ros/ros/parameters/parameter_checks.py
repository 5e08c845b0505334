# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the values of parameters must be, alone and beside each other."""

from math import hypot, isfinite
from typing import Any

from rbd_ros.control.effort_convention import CONVENTIONS
from rbd_ros.model.joints import DRIVE

CHOICES = {
    'missing_velocity': ('withhold', 'zero', 'differentiate'),
    'on_stale': ('stop', 'hold', 'ramp_down'),
    'model_changes': ('accept', 'while_disabled', 'never'),
    'coriolis_factorization': ('christoffel', 'body'),
    'executor': ('single', 'events'),
    'effort_convention.states': CONVENTIONS,
    'effort_convention.commands': CONVENTIONS,
}
# Of the torque controller.
MODES = ('gravity', 'pd_gravity', 'computed_torque', 'joint_impedance', 'cartesian_impedance',
         'slotine_li', 'hybrid')
# Hz, the lowest rate that is accepted
LOWEST_RATE = 0.01


class BadParameter(Exception):
    """A parameter has a value that cannot be used; the message names it and what is accepted."""


def check(values: dict[str, Any]) -> None:
    """Raise if values are out of range or do not fit together."""
    if 0.0 < values['publish_rate'] < LOWEST_RATE:
        raise BadParameter(f'publish_rate must be 0 or at least {LOWEST_RATE} Hz, got '
                           f"{values['publish_rate']}")
    if 0.0 < values['implausible_velocity'] < 1.0:
        raise BadParameter('implausible_velocity must be 0, or at least 1 times the velocity '
                           f"limit, got {values['implausible_velocity']}")
    gravity = values['gravity']
    if len(gravity) != 3 or not all(map(isfinite, gravity)):
        raise BadParameter(f'gravity must be three finite numbers, m/s^2, got {list(gravity)}')
    if hypot(*gravity) > values['gravity_limit']:
        raise BadParameter(
            f'gravity is {hypot(*gravity):.4g} m/s^2, more than gravity_limit, '
            f"{values['gravity_limit']:g}: is the unit m/s^2? If so, raise gravity_limit")
    for name, choices in CHOICES.items():
        if values[name] not in choices:
            raise BadParameter(f"{name} must be one of {', '.join(choices)}, got '{values[name]}'")
    for label in DRIVE:
        count = len(values[f'drives.{label}'])
        if count not in (0, len(values['drives.joints'])):
            raise BadParameter(f'drives.{label} has {count} entries, drives.joints has '
                               f"{len(values['drives.joints'])}: the numbers must be equal")
    if not all(map(isfinite, values['locked_positions'])):
        raise BadParameter('locked_positions must be finite numbers, got '
                           f"{list(values['locked_positions'])}")
    if values['locked_positions'] and not values['locked_joints']:
        raise BadParameter('locked_positions is set, but locked_joints is not')
    _check_efforts(values)
    _check_load(values)


def _check_efforts(values: dict[str, Any]) -> None:
    """Raise if what is said about efforts, or what is derived from them, does not fit together."""
    for label in ('state_constants', 'command_constants'):
        constants = values[f'effort_convention.{label}']
        if len(constants) not in (0, len(values['effort_convention.joints'])):
            raise BadParameter(f'effort_convention.{label} has {len(constants)} entries, '
                               'effort_convention.joints has '
                               f"{len(values['effort_convention.joints'])}: the numbers must be "
                               'equal')
        if not all(isfinite(x) and x for x in constants):
            raise BadParameter(f'effort_convention.{label} must be finite numbers other than 0, '
                               f'N m or N per unit of effort, got {list(constants)}')
    count = len(values['observer_joints'])
    for name, what in (('observer_gain', '1/s'), ('contact_threshold', 'N m or N')):
        numbers = values[name]
        if len(numbers) not in (1, count) and (numbers or name == 'observer_gain'):
            raise BadParameter(f'{name} has {len(numbers)} entries, observer_joints has {count}: '
                               'give one number, or one for each of observer_joints')
        if not all(isfinite(x) and x > 0.0 for x in numbers):
            raise BadParameter(f'{name} must be positive numbers, {what}, got {list(numbers)}')


def _check_load(values: dict[str, Any]) -> None:
    """Raise if the load, or how the robot is mounted, cannot be."""
    for name, count, what in (('payload_com', 3, 'x, y and z, m'),
                              ('payload_inertia', 6, 'ixx, iyy, izz, ixy, ixz, iyz, kg m^2'),
                              ('mounting_rpy', 3, 'roll, pitch and yaw, rad')):
        if len(values[name]) != count or not all(map(isfinite, values[name])):
            raise BadParameter(f'{name} must be {count} finite numbers, {what}, got '
                               f'{list(values[name])}')
    if bool(values['payload_link']) != (values['payload_mass'] > 0.0):
        raise BadParameter('payload_link and payload_mass belong together: name the link, and '
                           f"give a mass above 0, got '{values['payload_link']}' and "
                           f"{values['payload_mass']:g} kg")
    if values['floating_base'] and any(values['mounting_rpy']):
        raise BadParameter('mounting_rpy is for robots that are fixed: the odometry of a floating '
                           'base says how it is turned')
