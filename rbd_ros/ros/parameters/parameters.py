# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of the dynamics node: their descriptions, ranges and checks."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields as dataclass_fields
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from rbd_ros._internal.text import did_you_mean, listed
from rbd_ros.control.effort_convention import EffortConvention
from rbd_ros.model.joints import DRIVE
from rbd_ros.ros.parameters.parameter_checks import BadParameter, check, CHOICES
from rbd_ros.ros.runtime.log import Log
from rbd_ros.ros.runtime.rclpy_workarounds import overrides
from rbd_ros.workspace.results import Factorization
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

# m/s^2; less counts as zero gravity
NO_GRAVITY = 0.01

Settings = TypeVar('Settings', bound=NamedTuple)


@dataclass(frozen=True)
class Parameters:
    """The values of all parameters of a node; see `declare`."""

    robot_description: str
    publish_rate: float
    gravity: tuple[float, ...]
    gravity_limit: float
    command_joints: tuple[str, ...]
    joints: tuple[str, ...]
    locked_joints: tuple[str, ...]
    locked_positions: tuple[float, ...]
    drives: dict[str, tuple[Any, ...]]
    effort_convention: EffortConvention
    payload_link: str
    payload_mass: float
    payload_com: tuple[float, ...]
    payload_inertia: tuple[float, ...]
    mounting_rpy: tuple[float, ...]
    floating_base: bool
    friction: bool
    friction_dead_band: float
    model_changes: str
    max_joints: int
    state_timeout: float
    check_stamps: bool
    missing_velocity: str
    velocity_filter: float
    implausible_velocity: float
    on_stale: str
    ramp_time: float
    blend_time: float
    effort_rate_limit: float
    limit_efforts: bool
    marker_rate: float
    frame_prefix: str
    task_link: str
    condition_limit: float
    observer_joints: tuple[str, ...]
    observer_gain: tuple[float, ...]
    contact_threshold: tuple[float, ...]
    contact_margin: float
    contact_release: float
    contact_calibration_time: float
    coriolis_factorization: Factorization
    strict_urdf: bool
    executor: str
    autostart: bool

    def select(self, kind: type[Settings]) -> Settings:
        """Return the settings of one part of the node: the parameters that its fields name."""
        return kind._make(getattr(self, name) for name in kind._fields)


NAMES, NUMBERS = Parameter.Type.STRING_ARRAY, Parameter.Type.DOUBLE_ARRAY

# Default (the type of an array that is empty by default), description and limits of a number.
DESCRIPTIONS: dict[str, tuple[Any, ...]] = {
    'robot_description': ('', 'URDF of the robot; empty: it is read from the topic of this name.'),
    'publish_rate': (0.0, 'Rate of the outputs, Hz, at least 0.01; 0: once per joint state.',
                     0.0, 10000.0),
    'gravity': ([0.0, 0.0, -9.81], 'Acceleration of gravity in the axes of the root link, or of '
                'the world around a floating base, m/s^2.'),
    'gravity_limit': (29.43, 'Largest gravity that is accepted, m/s^2.', NO_GRAVITY, 1000.0),
    'command_joints': (NAMES, 'Joints of ~/effort_commands, in the order of the controller; '
                       'empty: those of the model, without the coordinates of a floating base.'),
    'joints': (NAMES, 'Joints that move; all others are locked at zero. Empty: all.'),
    'locked_joints': (NAMES, 'Joints that are locked; the masses of their links are kept.'),
    'locked_positions': (NUMBERS, 'Positions of the locked joints, rad or m; empty: zeros.'),
    'drives.joints': (NAMES, 'Joints of the other drives.* parameters, in order; joints that '
                      'mimic others may be among them.'),
    'drives.damping': (NUMBERS, 'Viscous friction, N m s/rad or N s/m.'),
    'drives.damping_asymmetry': (NUMBERS, 'By how much viscous friction is larger than '
                                 'drives.damping in the positive direction, and smaller in the '
                                 'negative one, N m s/rad or N s/m.'),
    'drives.friction': (NUMBERS, 'Coulomb friction, N m or N.'),
    'drives.friction_asymmetry': (NUMBERS, 'By how much Coulomb friction is larger than '
                                  'drives.friction in the positive direction, and smaller in the '
                                  'negative one, N m or N.'),
    'drives.stribeck_friction': (NUMBERS, 'Additional Coulomb friction near rest, N m or N.'),
    'drives.stribeck_velocity': (NUMBERS, 'Speed at which 1/e of it is left, rad/s or m/s.'),
    'drives.effort_offset': (NUMBERS, 'Effort of the drive at zero torque, N m or N.'),
    'drives.armature': (NUMBERS, 'Rotor inertias, reflected to the joint side, kg m^2 or kg.'),
    'effort_convention.states': ('full', 'What efforts in joint states contain: all torques of '
                                 'the joint, all without the gravity torques, or all without '
                                 'gravity and Coriolis torques.'),
    'effort_convention.commands': ('full', 'What the robot expects in effort commands, in the '
                                   'same words: it adds the rest by itself.'),
    'effort_convention.joints': (NAMES, 'Joints of the constants, in order.'),
    'effort_convention.state_constants': (NUMBERS, 'Torque per unit of effort in joint states, '
                                          'N m/A for currents; negative: the driver counts the '
                                          'other way. Empty: 1.'),
    'effort_convention.command_constants': (NUMBERS, 'The same for effort commands, which are '
                                            'divided by them.'),
    'effort_convention.states_have_friction': (True, 'Whether efforts in joint states contain the '
                                               'friction of the joint, as those of motors do; '
                                               'those of torque sensors do not.'),
    'payload_link': ('', 'Link that carries a load from the start on; empty: none does.'),
    'payload_mass': (0.0, 'Mass of that load, kg.', 0.0, 1e6),
    'payload_com': ([0.0, 0.0, 0.0], 'Its centre of mass in the frame of the link, m.'),
    'payload_inertia': ([0.0] * 6, 'Its inertia about that centre, in the axes of the link: ixx, '
                        'iyy, izz, ixy, ixz, iyz, kg m^2; zeros: a point mass.'),
    'mounting_rpy': ([0.0, 0.0, 0.0], 'Roll, pitch and yaw of the root link in the world, rad, as '
                     'in URDF; gravity is then in the axes of the world.'),
    'floating_base': (False, 'Whether the root link floats; its state is read from the topic '
                      'odom.'),
    'friction': (False, 'Whether ~/effort_commands compensate friction and effort offsets too.'),
    'friction_dead_band': (0.02, 'Largest error of velocities, rad/s or m/s, with which friction '
                           'compensation never drives a joint; slower joints get none.', 0.0,
                           10.0),
    'model_changes': ('while_disabled', 'Whether another description is accepted: always '
                      '(accept), unless commands are enabled and have a subscriber '
                      '(while_disabled), or never.'),
    'max_joints': (2000, 'Largest number of joints in a description, fixed ones included.', 1,
                   100000),
    'state_timeout': (0.5, 'Largest age of the state of a joint, s.', 0.001, 3600.0),
    'check_stamps': (True, 'Drop states whose stamps are older than state_timeout, more than that '
                     'ahead of the clock, or out of order. Zero stamps are not checked.'),
    'missing_velocity': ('withhold', 'What to do when joint states have no velocity: withhold '
                         'outputs that need it, assume zero, or differentiate the positions.'),
    'velocity_filter': (0.02, 'Time constant of the low-pass filter of differentiated positions, '
                        's.', 0.0, 10.0),
    'implausible_velocity': (3.0, 'Velocity, in multiples of the velocity limit of the joint '
                             '(20 rad/s or 5 m/s if it has none), beyond which a sample is '
                             'ignored, as is a position that would need it; 0: none is ignored.',
                             0.0, 1e12),
    'on_stale': ('stop', 'What ~/effort_commands do when states stop: stop too, hold the last '
                 'command, or go to zero (ramp_down).'),
    'ramp_time': (1.0, 'Duration of the ramp to zero, s, at least 0.25.', 0.0, 4.0),
    'blend_time': (0.0, 'Time in which the first commands rise from zero to their full size, s.',
                   0.0, 60.0),
    'effort_rate_limit': (0.0, 'Largest rate of change of ~/effort_commands, N m/s or N/s; 0: '
                          'no limit.', 0.0, 1e9),
    'limit_efforts': (False, 'Keep ~/effort_commands within the effort limits of the URDF.'),
    'marker_rate': (30.0, 'Largest rate of the markers, Hz; 0: no markers.', 0.0, 1000.0),
    'frame_prefix': ('', 'Prefix of the names of links in frame names, as in '
                     'robot_state_publisher.'),
    'task_link': ('', 'Link of the topics ~/task_* and ~/external_wrench, and of '
                  '~/task_space_dynamics requests that name none; empty: none.'),
    'condition_limit': (2e3, 'Condition number of the Jacobian beyond which task inertias are '
                        'damped.', 1.0, 1e7),
    'observer_joints': (NAMES, 'All joints of the robot, in the order of observer_gain and '
                        'contact_threshold where these have several entries.'),
    'observer_gain': ([25.0], 'Gain of the observer of external torques, 1/s, that is 1 over its '
                      'time constant: one number, or one for each joint.'),
    'contact_threshold': (NUMBERS, 'External torque beyond which there is contact, N m or N: one '
                          'number, or one for each joint, and the least that a calibration finds. '
                          'Empty: ~/contact needs ~/calibrate_contact.'),
    'contact_margin': (2.0, 'How many times larger than external torques of the free robot the '
                       'thresholds are.', 1.0, 1000.0),
    'contact_release': (0.5, 'Share of the thresholds to which external torques must fall before '
                        'a contact ends.', 0.0, 1.0),
    'contact_calibration_time': (10.0, 'Duration of ~/calibrate_contact, s.', 0.1, 600.0),
    'coriolis_factorization': ('christoffel', 'Factorization of the Coriolis matrix: by '
                               'Christoffel symbols, or by body twists (Garofalo et al.). C v is '
                               'the same.'),
    'strict_urdf': (False, 'Refuse descriptions that otherwise cause warnings.'),
    'executor': ('single', "rclpy's executor: single, or events, which is newer and takes half "
                 'the CPU time.'),
    'autostart': (True, 'Configure and activate the node when it starts.'),
}
# Parameters that may be set while the node runs.
CHANGEABLE = ('publish_rate', 'gravity', 'gravity_limit', 'friction', 'friction_dead_band',
              'model_changes', 'state_timeout', 'check_stamps', 'missing_velocity',
              'velocity_filter', 'implausible_velocity', 'on_stale', 'ramp_time', 'blend_time',
              'effort_rate_limit', 'limit_efforts', 'marker_rate', 'task_link', 'condition_limit',
              'coriolis_factorization')
# Overrides that rclpy handles itself.
_OF_RCLPY = ('use_sim_time', 'qos_overrides.', 'start_type_description_service')


class Table(NamedTuple):
    """
    Parameters that are declared and read together.

    Attributes
    ----------
    descriptions : dict
        By name: default (the type of an array that is empty by default), description, and limits
        of a number.
    changeable : collection of str
        Those that may be set while the node runs.
    choices : dict
        The words that those may be which are one of several.

    """

    descriptions: Mapping[str, tuple[Any, ...]]
    changeable: Collection[str]
    choices: Mapping[str, Sequence[str]]


TABLE = Table(DESCRIPTIONS, CHANGEABLE, CHOICES)


def declare(node: Node, table: Table = TABLE) -> dict[str, str]:
    """
    Declare the parameters of a table on a node.

    Returns
    -------
    dict of str to str
        By name of the parameter, why the value given at the start cannot be used. The parameter
        then has its default, and `read` raises the reason.

    """
    refused = {}
    for name, (default, *_) in table.descriptions.items():
        is_empty = isinstance(default, Parameter.Type)
        value = None if is_empty else default
        try:
            node.declare_parameter(name, value, _descriptor(table, name))
        except InvalidParameterValueException as error:
            refused[name] = str(error)
            node.declare_parameter(name, value, _descriptor(table, name), ignore_override=True)
        if is_empty and node.get_parameter(name).value is None:
            # rclpy cannot infer the type of the entries of an empty list.
            node.set_parameters([Parameter(name, default, [])])
        if name not in table.changeable:
            node.set_descriptor(name, _descriptor(table, name, read_only=True))
    return refused


def _descriptor(table: Table, name: str, *, read_only: bool = False) -> ParameterDescriptor:
    """Return the description of a parameter."""
    _, description, *limits = table.descriptions[name]
    # Integers are accepted as floats; wrong types are reported in one place, by `read`.
    result = ParameterDescriptor(description=description, dynamic_typing=True,
                                 read_only=read_only)
    if limits and isinstance(limits[0], int):
        result.integer_range = [IntegerRange(from_value=limits[0], to_value=limits[1])]
    elif limits:
        result.floating_point_range = [FloatingPointRange(from_value=limits[0],
                                                          to_value=limits[1])]
    if name in table.choices:
        result.additional_constraints = 'One of ' + ', '.join(table.choices[name])
    return result


def fixed_values(node: Node, descriptions: Mapping[str, tuple[Any, ...]],
                 log: Log) -> dict[str, Any]:
    """
    Declare parameters that cannot be set while a node runs.

    Parameters
    ----------
    node : rclpy.node.Node
        The node.
    descriptions : dict
        As those of a `Table`.
    log : Log
        Where names that are unknown are reported.

    Returns
    -------
    dict of str to any
        Their values.

    Raises
    ------
    BadParameter
        If a value cannot be used; the message says why.

    """
    table = Table(descriptions, (), {})
    refused = declare(node, table)
    for text in unknown_overrides(node, descriptions):
        log.warning(text)
    return typed_values(node, table, refused=refused)


def unknown_overrides(node: Node, known: Collection[str]) -> Iterator[str]:
    """Yield a sentence for every override that names none of the known parameters."""
    for name in sorted(set(overrides(node)) - set(known)):
        if not name.startswith(_OF_RCLPY):
            yield (f"there is no parameter '{name}'"
                   + did_you_mean(name, known, '; it has no effect'))


def read(node: Node, changes: Sequence[Parameter] = (),
         refused: dict[str, str] | None = None) -> Parameters:
    """
    Return the values of the parameters of a node, checked.

    Parameters
    ----------
    node : rclpy.node.Node
        The node that declared them.
    changes : sequence of rclpy.parameter.Parameter
        New values that are about to be set.
    refused : dict of str to str, optional
        What `declare` returned.

    Raises
    ------
    BadParameter
        If a value cannot be used.

    """
    values = typed_values(node, TABLE, changes, refused)
    check(values)
    drives = {label: values.pop(f'drives.{label}') for label in ('joints', *DRIVE)}
    convention = EffortConvention(**{one.name: values.pop(f'effort_convention.{one.name}')
                                     for one in dataclass_fields(EffortConvention)})
    return Parameters(**values, drives=drives, effort_convention=convention)


def typed_values(node: Node, table: Table, changes: Sequence[Parameter] = (),
                 refused: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the values of the parameters of a table, of the right types; else as `read`."""
    values = {name: node.get_parameter(name).value for name in table.descriptions}
    new = {change.name: change.value for change in changes if change.name in values}
    for name, reason in (refused or {}).items():
        if name in values and name not in new:
            raise BadParameter(reason)
    return {name: _typed(table, name, value) for name, value in {**values, **new}.items()}


def _typed(table: Table, name: str, value: Any) -> Any:
    """Return a value converted to the type of its parameter; raise if it does not fit."""
    default, _, *limits = table.descriptions[name]
    if value is None and not isinstance(default, Parameter.Type):
        raise BadParameter(f'{name} must have a value')
    if isinstance(default, (bool, str)):
        if not isinstance(value, type(default)):
            what = 'true or false' if isinstance(default, bool) else 'a string'
            raise BadParameter(f'{name} must be {what}, got {value!r}')
        return value
    if isinstance(default, (int, float)) and not isinstance(default, Parameter.Type):
        if isinstance(value, bool) or not isinstance(value, (int, type(default))):
            what = 'an integer' if isinstance(default, int) else 'a number'
            raise BadParameter(f'{name} must be {what}, got {value!r}')
        if not isfinite(value) or (limits and not limits[0] <= value <= limits[1]):
            raise BadParameter(f'{name} must be between {limits[0]:g} and {limits[1]:g}, got '
                               f'{value}')
        return type(default)(value)
    value = () if value is None or isinstance(value, bytes) else value
    if isinstance(value, (str, bool, int, float)):
        raise BadParameter(f'{name} must be a list, got {value!r}')
    value = tuple(value)
    if default is NAMES:
        # YAML and launch files cannot express an empty list of strings: [''] stands for it.
        value = () if value == ('',) else value
        if not all(isinstance(one, str) for one in value):
            raise BadParameter(f'{name} must be a list of names, got {list(value)}')
        twice = [one for one, count in Counter(value).items() if count > 1]
        if twice:
            raise BadParameter(f"{name} has '{twice[0]}' twice: {listed(value)}")
        return value
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in value):
        raise BadParameter(f'{name} must be a list of numbers, got {list(value)}')
    if limits and not all(limits[0] <= one <= limits[1] for one in value):
        raise BadParameter(f'{name} must be numbers between {limits[0]:g} and {limits[1]:g}, got '
                           f'{list(value)}')
    return tuple(float(one) for one in value)
