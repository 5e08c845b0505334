# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of the dynamics node: their descriptions, ranges and checks."""

from dataclasses import dataclass
from math import isfinite

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import ParameterUninitializedException
from rclpy.parameter import Parameter

CHOICES = {
    'missing_velocity': ('withhold', 'zero'),
    'coriolis_factorization': ('christoffel', 'body'),
    'executor': ('single', 'events'),
}


class BadParameter(Exception):
    """A parameter has a value that cannot be used; the message says which and what would do."""


@dataclass(frozen=True)
class Parameters:
    """What the parameters of a node say; see `declare`."""

    publish_rate: float
    gravity: tuple
    command_joints: tuple
    joints: tuple
    locked_joints: tuple
    locked_positions: tuple
    armature_joints: tuple
    armature: tuple
    floating_base: bool
    friction: bool
    state_timeout: float
    missing_velocity: str
    coriolis_factorization: str
    strict_urdf: bool
    executor: str
    autostart: bool


NAMES, NUMBERS = Parameter.Type.STRING_ARRAY, Parameter.Type.DOUBLE_ARRAY

# Default, or the type of one that has none; description. Then the limits of numbers.
_DESCRIPTIONS = {
    'publish_rate': (0.0, 'How often outputs are published, Hz; 0: once for every joint state.',
                     0.0, 10000.0),
    'gravity': ([0.0, 0.0, -9.81], 'Acceleration of gravity in the axes of the root link, or of '
                'the world around a floating base, m/s^2.'),
    'command_joints': (NAMES, 'Joints of ~/effort_commands, in the order of the controller; not '
                       'set: those of the model, without the coordinates of a floating base.'),
    'joints': (NAMES, 'Joints that move; all others are locked at zero. Not set: all.'),
    'locked_joints': (NAMES, 'Joints that are locked, their links kept as masses.'),
    'locked_positions': (NUMBERS, 'Where they are locked, rad or m; not set: at zero.'),
    'armature_joints': (NAMES, 'Joints whose rotors have an inertia.'),
    'armature': (NUMBERS, 'Inertia of those rotors as the joints feel them, kg m^2 or kg.'),
    'floating_base': (False, 'Whether the root link floats; its state comes on the topic odom.'),
    'friction': (False, 'Whether ~/effort_commands bring up the friction and damping of the URDF '
                 'too.'),
    'state_timeout': (0.5, 'Greatest age of the state of a joint, s.', 0.001, 3600.0),
    'missing_velocity': ('withhold', 'What to do where joint states have no velocity: withhold '
                         'what needs it, or take it as zero.'),
    'coriolis_factorization': ('christoffel', 'Which Coriolis matrix: by Christoffel symbols, or '
                               'by body twists (Garofalo et al.). C v is the same.'),
    'strict_urdf': (False, 'Refuse descriptions that otherwise are warned of.'),
    'executor': ('single', "rclpy's executor: single, or events, which takes half the CPU time "
                 'and is newer.'),
    'autostart': (True, 'Configure and activate the node when it starts.'),
}
# Those that may be set while the node runs.
CHANGEABLE = ('publish_rate', 'gravity', 'friction', 'state_timeout', 'missing_velocity',
              'coriolis_factorization')


def declare(node):
    """Declare the parameters of a node."""
    for name, (default, description, *limits) in _DESCRIPTIONS.items():
        descriptor = ParameterDescriptor(description=description,
                                         read_only=name not in CHANGEABLE)
        if limits:
            descriptor.floating_point_range = [FloatingPointRange(from_value=limits[0],
                                                                  to_value=limits[1])]
        if name in CHOICES:
            descriptor.additional_constraints = 'One of ' + ', '.join(CHOICES[name])
        node.declare_parameter(name, default, descriptor)


def read(node, changes=()):
    """
    Return what the parameters of a node say.

    Parameters
    ----------
    node : rclpy.node.Node
        They are declared on it.
    changes : sequence of rclpy.parameter.Parameter
        Values that some of them are about to take.

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
        values[name] = value
    values.update({change.name: change.value for change in changes if change.name in values})
    values = {name: value if isinstance(value, (str, bool, float)) else tuple(value)
              for name, value in values.items()}
    gravity = values['gravity']
    if len(gravity) != 3 or not all(isfinite(x) for x in gravity):
        raise BadParameter(f'gravity must be three finite numbers, m/s^2, got {list(gravity)}')
    for name, choices in CHOICES.items():
        if values[name] not in choices:
            raise BadParameter(f"{name} must be one of {', '.join(choices)}, got '{values[name]}'")
    for numbers, names in (('armature', 'armature_joints'), ('locked_positions', 'locked_joints')):
        if not all(isfinite(x) for x in values[numbers]):
            raise BadParameter(f'{numbers} must be finite numbers, got {list(values[numbers])}')
        if values[numbers] and not values[names]:
            raise BadParameter(f'{numbers} is set, and {names} is not')
    if len(values['armature']) != len(values['armature_joints']):
        raise BadParameter('armature and armature_joints must have as many entries, they have '
                           f"{len(values['armature'])} and {len(values['armature_joints'])}")
    return Parameters(**values)
