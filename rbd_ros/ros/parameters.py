# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of the dynamics node: their descriptions, ranges and checks."""

from dataclasses import dataclass
from math import isfinite

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import ParameterUninitializedException
from rclpy.parameter import Parameter

CHOICES = {
    'missing_velocity': ('withhold', 'zero', 'differentiate'),
    'on_stale': ('stop', 'hold', 'ramp_down'),
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
    check_stamps: bool
    missing_velocity: str
    velocity_filter: float
    on_stale: str
    ramp_time: float
    blend_time: float
    effort_rate_limit: float
    limit_efforts: bool
    marker_rate: float
    frame_prefix: str
    task_link: str
    condition_limit: float
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
    'check_stamps': (True, 'Drop states whose stamps are older than state_timeout, or as far '
                     'ahead of the clock, or before those that came earlier. Zeros pass.'),
    'missing_velocity': ('withhold', 'What to do where joint states have no velocity: withhold '
                         'what needs it, take it as zero, or differentiate the positions.'),
    'velocity_filter': (0.02, 'Time constant of the low-pass filter of differentiated positions, '
                        's.', 0.0, 10.0),
    'on_stale': ('stop', 'What ~/effort_commands say when no states come: nothing, the last ones '
                 '(hold), or a ramp to zero (ramp_down).'),
    'ramp_time': (1.0, 'How long that ramp takes, s.', 0.0, 4.0),
    'blend_time': (0.0, 'How long the first commands take from zero to their full size, s.',
                   0.0, 60.0),
    'effort_rate_limit': (0.0, 'Fastest change of ~/effort_commands, N m/s or N/s; 0: none.',
                          0.0, 1e9),
    'limit_efforts': (False, 'Keep ~/effort_commands within the effort limits of the URDF.'),
    'marker_rate': (30.0, 'Most arrays of markers a second; 0: none.', 0.0, 1000.0),
    'frame_prefix': ('', 'What frame names have before the names of links, as in '
                     'robot_state_publisher.'),
    'task_link': ('', 'The link of ~/task_inertia and of requests that name none; empty: none.'),
    'condition_limit': (1e3, 'Condition number of the task beyond which its inertia is damped.',
                        1.0, 1e7),
    'coriolis_factorization': ('christoffel', 'Which Coriolis matrix: by Christoffel symbols, or '
                               'by body twists (Garofalo et al.). C v is the same.'),
    'strict_urdf': (False, 'Refuse descriptions that otherwise are warned of.'),
    'executor': ('single', "rclpy's executor: single, or events, which takes half the CPU time "
                 'and is newer.'),
    'autostart': (True, 'Configure and activate the node when it starts.'),
}
# Those that may be set while the node runs.
CHANGEABLE = ('publish_rate', 'gravity', 'friction', 'state_timeout', 'check_stamps',
              'missing_velocity', 'velocity_filter', 'on_stale', 'ramp_time', 'blend_time',
              'effort_rate_limit', 'limit_efforts', 'marker_rate', 'condition_limit',
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
    for name, value in values.items():
        if value is None:
            raise BadParameter(f'{name} must have a value')
        if isinstance(value, float) and not isfinite(value):
            raise BadParameter(f'{name} must be a finite number, got {value}')
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
