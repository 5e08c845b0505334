# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of the dynamics node: their descriptions, ranges and checks."""

from dataclasses import dataclass
from math import isfinite

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import ParameterUninitializedException
from rclpy.parameter import Parameter

MISSING_VELOCITY = ('withhold', 'zero')
FACTORIZATIONS = ('christoffel', 'body')
EXECUTORS = ('single', 'events')


class BadParameter(Exception):
    """A parameter has a value that cannot be used; the message says which and what would do."""


@dataclass(frozen=True)
class Parameters:
    """What the parameters of a node say; see `declare`."""

    publish_rate: float
    gravity: tuple
    command_joints: tuple
    state_timeout: float
    missing_velocity: str
    coriolis_factorization: str
    strict_urdf: bool
    executor: str
    autostart: bool


def _range(low, high):
    return {'floating_point_range': [FloatingPointRange(from_value=low, to_value=high)]}


_DESCRIPTIONS = {
    'publish_rate': (0.0, 'How often outputs are published, Hz; 0: once for every joint state.',
                     _range(0.0, 10000.0)),
    'gravity': ([0.0, 0.0, -9.81], 'Acceleration of gravity in the axes of the root link, '
                'm/s^2.', {}),
    'command_joints': (Parameter.Type.STRING_ARRAY, 'Joints of ~/effort_commands, in the order of '
                       'the controller; not set: those of the model.', {}),
    'state_timeout': (0.5, 'Greatest age of the state of a joint, s.', _range(0.001, 3600.0)),
    'missing_velocity': ('withhold', 'What to do where joint states have no velocity: withhold '
                         'what needs it, or take it as zero.',
                         {'additional_constraints': 'One of ' + ', '.join(MISSING_VELOCITY)}),
    'coriolis_factorization': ('christoffel', 'Which Coriolis matrix: by Christoffel symbols, or '
                               'by body twists (Garofalo et al.). C v is the same.',
                               {'additional_constraints': 'One of ' + ', '.join(FACTORIZATIONS)}),
    'strict_urdf': (False, 'Refuse descriptions that otherwise are warned of.', {}),
    'executor': ('single', "rclpy's executor: single, or events, which takes half the CPU time "
                 'and is newer.', {'additional_constraints': 'One of ' + ', '.join(EXECUTORS)}),
    'autostart': (True, 'Configure and activate the node when it starts.', {}),
}


def declare(node):
    """Declare the parameters of a node; all are read-only once it has started."""
    for name, (default, description, more) in _DESCRIPTIONS.items():
        node.declare_parameter(name, default, ParameterDescriptor(
            description=description, read_only=True, **more))


def read(node):
    """
    Return what the parameters of a node say.

    Raises
    ------
    BadParameter
        If a value cannot be used.

    """
    values = {}
    for name in _DESCRIPTIONS:
        try:
            value = node.get_parameter(name).value
        except ParameterUninitializedException:
            value = ()
        values[name] = value if isinstance(value, (str, bool, float)) else tuple(value)
    gravity = values['gravity']
    if len(gravity) != 3 or not all(isfinite(x) for x in gravity):
        raise BadParameter(f'gravity must be three finite numbers, m/s^2, got {list(gravity)}')
    for name, choices in (('missing_velocity', MISSING_VELOCITY),
                          ('coriolis_factorization', FACTORIZATIONS), ('executor', EXECUTORS)):
        if values[name] not in choices:
            raise BadParameter(f"{name} must be one of {', '.join(choices)}, got '{values[name]}'")
    return Parameters(**values)
