# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of the dynamics node: their descriptions, ranges and checks."""

from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from math import hypot, isfinite
from typing import NamedTuple, TypeVar

from rbd_ros.texts import listed
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterValueException
from rclpy.parameter import Parameter

CHOICES = {
    'missing_velocity': ('withhold', 'zero', 'differentiate'),
    'on_stale': ('stop', 'hold', 'ramp_down'),
    'model_changes': ('accept', 'while_disabled', 'never'),
    'coriolis_factorization': ('christoffel', 'body'),
    'executor': ('single', 'events'),
}
# m/s^2; less is no gravity to speak of
NO_GRAVITY = 0.01
# Hz; a timer with a longer period is none
LOWEST_RATE = 0.01

Settings = TypeVar('Settings', bound=NamedTuple)


class BadParameter(Exception):
    """A parameter has a value that cannot be used; the message says which and what would do."""


@dataclass(frozen=True)
class Parameters:
    """The values of all parameters of a node; see `declare`."""

    robot_description: str
    publish_rate: float
    gravity: tuple
    gravity_limit: float
    command_joints: tuple
    joints: tuple
    locked_joints: tuple
    locked_positions: tuple
    armature_joints: tuple
    armature: tuple
    floating_base: bool
    friction: bool
    model_changes: str
    max_joints: int
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

    def select(self, kind: type[Settings]) -> Settings:
        """Return the settings of one part of the node: the parameters that its fields name."""
        return kind._make(getattr(self, name) for name in kind._fields)


NAMES, NUMBERS = Parameter.Type.STRING_ARRAY, Parameter.Type.DOUBLE_ARRAY

# Default, or the type of an empty array; description. Then the limits of numbers.
DESCRIPTIONS = {
    'robot_description': ('', 'URDF of the robot; empty: it comes on the topic of this name.'),
    'publish_rate': (0.0, 'How often outputs are published, Hz, 0.01 at least; 0: once for every '
                     'joint state.', 0.0, 10000.0),
    'gravity': ([0.0, 0.0, -9.81], 'Acceleration of gravity in the axes of the root link, or of '
                'the world around a floating base, m/s^2.'),
    'gravity_limit': (29.43, 'Greatest gravity that is believed, m/s^2.', NO_GRAVITY, 1000.0),
    'command_joints': (NAMES, 'Joints of ~/effort_commands, in the order of the controller; '
                       'empty: those of the model, without the coordinates of a floating base.'),
    'joints': (NAMES, 'Joints that move; all others are locked at zero. Empty: all.'),
    'locked_joints': (NAMES, 'Joints that are locked, their links kept as masses.'),
    'locked_positions': (NUMBERS, 'Where they are locked, rad or m; empty: at zero.'),
    'armature_joints': (NAMES, 'Joints whose rotors have an inertia.'),
    'armature': (NUMBERS, 'Inertia of those rotors as the joints feel them, kg m^2 or kg.'),
    'floating_base': (False, 'Whether the root link floats; its state comes on the topic odom.'),
    'friction': (False, 'Whether ~/effort_commands bring up the friction and damping of the URDF '
                 'too.'),
    'model_changes': ('while_disabled', 'Whether another description is accepted: always '
                      '(accept), unless commands are enabled and somebody listens to them '
                      '(while_disabled), or never.'),
    'max_joints': (2000, 'Most joints of a description, fixed ones included.', 1, 100000),
    'state_timeout': (0.5, 'Greatest age of the state of a joint, s.', 0.001, 3600.0),
    'check_stamps': (True, 'Drop states whose stamps are older than state_timeout, or as far '
                     'ahead of the clock, or before those that came earlier. Zeros pass.'),
    'missing_velocity': ('withhold', 'What to do where joint states have no velocity: withhold '
                         'what needs it, take it as zero, or differentiate the positions.'),
    'velocity_filter': (0.02, 'Time constant of the low-pass filter of differentiated positions, '
                        's.', 0.0, 10.0),
    'on_stale': ('stop', 'What ~/effort_commands say when no states come: nothing, the last ones '
                 '(hold), or a ramp to zero (ramp_down).'),
    'ramp_time': (1.0, 'How long that ramp takes, s, 0.25 at least.', 0.0, 4.0),
    'blend_time': (0.0, 'How long the first commands take from zero to their full size, s.',
                   0.0, 60.0),
    'effort_rate_limit': (0.0, 'Fastest change of ~/effort_commands, N m/s or N/s; 0: none.',
                          0.0, 1e9),
    'limit_efforts': (False, 'Keep ~/effort_commands within the effort limits of the URDF.'),
    'marker_rate': (30.0, 'Most arrays of markers a second; 0: none.', 0.0, 1000.0),
    'frame_prefix': ('', 'What frame names have before the names of links, as in '
                     'robot_state_publisher.'),
    'task_link': ('', 'The link of ~/task_inertia and of requests that name none; empty: none.'),
    'condition_limit': (2e3, 'Condition number of the task beyond which its inertia is damped.',
                        1.0, 1e7),
    'coriolis_factorization': ('christoffel', 'Which Coriolis matrix: by Christoffel symbols, or '
                               'by body twists (Garofalo et al.). C v is the same.'),
    'strict_urdf': (False, 'Refuse descriptions that otherwise are warned of.'),
    'executor': ('single', "rclpy's executor: single, or events, which takes half the CPU time "
                 'and is newer.'),
    'autostart': (True, 'Configure and activate the node when it starts.'),
}
# Those that may be set while the node runs.
CHANGEABLE = ('publish_rate', 'gravity', 'gravity_limit', 'friction', 'model_changes',
              'state_timeout', 'check_stamps', 'missing_velocity', 'velocity_filter', 'on_stale',
              'ramp_time', 'blend_time', 'effort_rate_limit', 'limit_efforts', 'marker_rate',
              'condition_limit', 'coriolis_factorization')
# Overrides that are not for `declare`, but for rclpy.
_OF_RCLPY = ('use_sim_time', 'qos_overrides.', 'start_type_description_service')


def declare(node):
    """
    Declare the parameters of a node.

    Returns
    -------
    dict of str to str
        Why values that the node was started with cannot be used, by the name of the parameter;
        `read` refuses them. Their parameters have their defaults.

    """
    refused = {}
    for name, (default, *_) in DESCRIPTIONS.items():
        is_empty = isinstance(default, Parameter.Type)
        value = None if is_empty else default
        try:
            node.declare_parameter(name, value, _descriptor(name))
        except InvalidParameterValueException as error:
            refused[name] = str(error)
            node.declare_parameter(name, value, _descriptor(name), ignore_override=True)
        if is_empty and node.get_parameter(name).value is None:
            # rclpy cannot tell what an empty list is a list of.
            node.set_parameters([Parameter(name, default, [])])
        if name not in CHANGEABLE:
            node.set_descriptor(name, _descriptor(name, read_only=True))
    return refused


def _descriptor(name, *, read_only=False):
    """Return the description of a parameter."""
    _, description, *limits = DESCRIPTIONS[name]
    # Whole numbers pass for others, and what is wrong is said in one place: in `read`.
    result = ParameterDescriptor(description=description, dynamic_typing=True,
                                 read_only=read_only)
    if limits and isinstance(limits[0], int):
        result.integer_range = [IntegerRange(from_value=limits[0], to_value=limits[1])]
    elif limits:
        result.floating_point_range = [FloatingPointRange(from_value=limits[0],
                                                          to_value=limits[1])]
    if name in CHOICES:
        result.additional_constraints = 'One of ' + ', '.join(CHOICES[name])
    return result


def unknown_overrides(node):
    """Return a sentence for every value that a node was started with and has no parameter for."""
    # There is no public way to ask rclpy for them.
    given = getattr(node, '_parameter_overrides', {})
    for name in sorted(set(given) - set(DESCRIPTIONS)):
        if not name.startswith(_OF_RCLPY):
            near = get_close_matches(name, DESCRIPTIONS, 1)
            yield (f"there is no parameter '{name}'"
                   + (f", did you mean '{near[0]}'?" if near else '; it has no effect'))


def read(node, changes=(), refused=None):
    """
    Return what the parameters of a node say.

    Parameters
    ----------
    node : rclpy.node.Node
        They are declared on it.
    changes : sequence of rclpy.parameter.Parameter
        Values that some of them are about to take.
    refused : dict of str to str, optional
        Values that it was started with and that cannot be used, with the reason.

    Raises
    ------
    BadParameter
        If a value cannot be used.

    """
    values = {name: node.get_parameter(name).value for name in DESCRIPTIONS}
    new = {change.name: change.value for change in changes if change.name in values}
    for name, reason in (refused or {}).items():
        if name not in new:
            raise BadParameter(reason)
    values = {name: _typed(name, value) for name, value in {**values, **new}.items()}
    _check(values)
    return Parameters(**values)


def _typed(name, value):
    """Return a value as what its parameter holds, or refuse it."""
    default, _, *limits = DESCRIPTIONS[name]
    if value is None and not isinstance(default, Parameter.Type):
        raise BadParameter(f'{name} must have a value')
    if isinstance(default, (bool, str)):
        if not isinstance(value, type(default)):
            what = 'true or false' if isinstance(default, bool) else 'a text'
            raise BadParameter(f'{name} must be {what}, got {value!r}')
        return value
    if isinstance(default, (int, float)) and not isinstance(default, Parameter.Type):
        if isinstance(value, bool) or not isinstance(value, (int, type(default))):
            what = 'a whole number' if isinstance(default, int) else 'a number'
            raise BadParameter(f'{name} must be {what}, got {value!r}')
        if not isfinite(value) or (limits and not limits[0] <= value <= limits[1]):
            raise BadParameter(f'{name} must lie between {limits[0]:g} and {limits[1]:g}, got '
                               f'{value}')
        return type(default)(value)
    value = () if value is None or isinstance(value, bytes) else value
    if isinstance(value, (str, bool, int, float)):
        raise BadParameter(f'{name} must be a list, got {value!r}')
    value = tuple(value)
    if default is NAMES:
        # A list of one empty name is what some have in place of an empty list.
        value = () if value == ('',) else value
        if not all(isinstance(one, str) for one in value):
            raise BadParameter(f'{name} must be a list of names, got {list(value)}')
        twice = [one for one, count in Counter(value).items() if count > 1]
        if twice:
            raise BadParameter(f"{name} has '{twice[0]}' twice: {listed(value)}")
        return value
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in value):
        raise BadParameter(f'{name} must be a list of numbers, got {list(value)}')
    return tuple(float(one) for one in value)


def _check(values):
    """Refuse values that are good one by one, but not for what they are for or together."""
    if 0.0 < values['publish_rate'] < LOWEST_RATE:
        raise BadParameter(f'publish_rate must be 0 or at least {LOWEST_RATE} Hz, got '
                           f"{values['publish_rate']}")
    gravity = values['gravity']
    if len(gravity) != 3 or not all(map(isfinite, gravity)):
        raise BadParameter(f'gravity must be three finite numbers, m/s^2, got {list(gravity)}')
    if hypot(*gravity) > values['gravity_limit']:
        raise BadParameter(
            f'gravity is {hypot(*gravity):.4g} m/s^2, more than gravity_limit, '
            f"{values['gravity_limit']:g}: is the unit m/s^2? Raise gravity_limit if it is meant")
    for name, choices in CHOICES.items():
        if values[name] not in choices:
            raise BadParameter(f"{name} must be one of {', '.join(choices)}, got '{values[name]}'")
    for numbers, names in (('armature', 'armature_joints'), ('locked_positions', 'locked_joints')):
        if not all(map(isfinite, values[numbers])):
            raise BadParameter(f'{numbers} must be finite numbers, got {list(values[numbers])}')
        if values[numbers] and not values[names]:
            raise BadParameter(f'{numbers} is set, and {names} is not')
    if len(values['armature']) != len(values['armature_joints']):
        raise BadParameter('armature and armature_joints must have as many entries, they have '
                           f"{len(values['armature'])} and {len(values['armature_joints'])}")
