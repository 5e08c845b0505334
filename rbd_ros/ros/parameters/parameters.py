# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
ROS parameters of a node, derived from the settings that its parts declare.

Each part of a node has a NamedTuple with the parameters that it uses. A field with a declaration,
``name: Annotated[type, Setting(...)]``, creates the parameter of this name; one without refers to
a parameter that another part declares. A `check` method of the NamedTuple raises `BadParameter`
if values do not fit together.

"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, TYPE_CHECKING, TypeVar

from rbd_ros._internal.setting import declared, Group, Setting
from rbd_ros._internal.text import did_you_mean, first_twice, listed
from rbd_ros.ros.runtime.rclpy_workarounds import overrides
from rbd_ros.ros.runtime.report import Log
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

CONDITIONS: dict[str, Callable[[float], bool]] = {
    'finite numbers': isfinite, 'finite numbers other than 0': lambda x: isfinite(x) and x != 0.0,
    'positive numbers': lambda x: isfinite(x) and x > 0.0}


class BadParameter(Exception):
    """A parameter value is rejected; the message names the parameter and the accepted values."""


def checked_value(name: str, setting: Setting, value: Any) -> Any:
    """Return a value converted to the type of its setting; raise if it is not accepted."""
    default = setting.default
    if isinstance(default, tuple):
        return _checked_list(name, setting, value)
    if value is None:
        raise BadParameter(f'{name} must have a value')
    if isinstance(default, (bool, str)):
        if not isinstance(value, type(default)):
            what = 'true or false' if isinstance(default, bool) else 'a string'
            raise BadParameter(f'{name} must be {what}, got {value!r}')
        if setting.choices and value not in setting.choices:
            raise BadParameter(f"{name} must be one of {', '.join(setting.choices)}, got "
                               f"'{value}'")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, type(default))):
        what = 'an integer' if isinstance(default, int) else 'a number'
        raise BadParameter(f'{name} must be {what}, got {value!r}')
    if not (isfinite(value) and _in_range(setting, value)):
        raise BadParameter(f'{name} must be between {setting.low:g} and {setting.high:g}, got '
                           f'{value}')
    if 0.0 < value < setting.smallest:
        raise BadParameter(f'{name} must be 0 or at least {setting.smallest:g} {setting.unit}, '
                           f'got {value}')
    return type(default)(value)


def _in_range(setting: Setting, value: float) -> bool:
    return setting.high is None or setting.low is None or setting.low <= value <= setting.high


def _checked_list(name: str, setting: Setting, value: Any) -> tuple[Any, ...]:
    if value is None and setting.default:
        raise BadParameter(f'{name} must have a value')
    value = () if value is None or isinstance(value, bytes) else value
    if isinstance(value, (str, bool, int, float)):
        raise BadParameter(f'{name} must be a list, got {value!r}')
    value = tuple(value)
    if setting.entry is str:
        # YAML and launch files cannot express an empty list of strings: [''] stands for it.
        value = () if value == ('',) else value
        if not all(isinstance(one, str) for one in value):
            raise BadParameter(f'{name} must be a list of names, got {list(value)}')
        if (twice := first_twice(value)) is not None:
            raise BadParameter(f"{name} has '{twice}' twice: {listed(value)}")
        return value
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in value):
        raise BadParameter(f'{name} must be a list of numbers, got {list(value)}')
    if not all(_in_range(setting, one) for one in value):
        raise BadParameter(f'{name} must be numbers between {setting.low:g} and '
                           f'{setting.high:g}, got {list(value)}')
    what = setting.condition or 'numbers'
    good = CONDITIONS.get(setting.condition, lambda _: True)
    detail = ''.join(f', {one}' for one in (setting.entries, setting.unit) if one)
    if setting.sizes:
        what = f"{' or '.join(map(str, setting.sizes))} {what}"
    if not all(map(good, value)) or (setting.sizes and len(value) not in setting.sizes):
        raise BadParameter(f'{name} must be {what}{detail}, got {list(value)}')
    return tuple(float(one) for one in value)


NO_GRAVITY = 0.01    # m/s^2; less counts as zero gravity

PartSettings = TypeVar('PartSettings', bound=NamedTuple)
# Overrides that rclpy handles itself.
_OF_RCLPY = ('use_sim_time', 'qos_overrides.', 'start_type_description_service')


class Parameters:
    """The checked values of all parameters of a node, one attribute for each declared field."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            """Return a value."""

    def select(self, kind: type[PartSettings]) -> PartSettings:
        """Return the settings of one part of the node."""
        return kind._make(getattr(self, name) for name in kind._fields)


@cache
def _parameters_type(kinds: tuple[type, ...]) -> type[Parameters]:
    return make_dataclass('Parameters', [name for kind in kinds for name in declared(kind)],
                          bases=(Parameters,), frozen=True)


def declare(node: Node, settings: Mapping[str, Setting], log: Log) -> dict[str, str]:
    """Declare parameters, and log unknown ones; return why overrides are rejected, for `read`."""
    for name in sorted(set(overrides(node)) - set(settings)):
        if not name.startswith(_OF_RCLPY):
            log.warning(f"there is no parameter '{name}'"
                        + did_you_mean(name, settings, '; it has no effect'))
    refused = {}
    for name, setting in settings.items():
        is_list = isinstance(setting.default, tuple)
        value = (list(setting.default) or None) if is_list else setting.default
        descriptor = _descriptor(setting)
        try:
            node.declare_parameter(name, value, descriptor)
        except InvalidParameterValueException as error:
            refused[name] = str(error)
            node.declare_parameter(name, value, descriptor, ignore_override=True)
        if value is None and node.get_parameter(name).value is None:
            # rclpy cannot infer the type of the entries of an empty list.
            kind = Parameter.Type
            node.set_parameters([Parameter(
                name, kind.STRING_ARRAY if setting.entry is str else kind.DOUBLE_ARRAY, [])])
        if not setting.changeable:
            node.set_descriptor(name, _descriptor(setting, read_only=True))
    return refused


def _descriptor(setting: Setting, *, read_only: bool = False) -> ParameterDescriptor:
    # Integers are accepted as floats; wrong types are reported in one place, by `read`.
    result = ParameterDescriptor(description=setting.description, dynamic_typing=True,
                                 read_only=read_only)
    if setting.low is not None and setting.high is not None:
        if isinstance(setting.default, int):
            result.integer_range = [IntegerRange(from_value=int(setting.low),
                                                 to_value=int(setting.high))]
        else:
            result.floating_point_range = [FloatingPointRange(from_value=float(setting.low),
                                                              to_value=float(setting.high))]
    if setting.choices:
        result.additional_constraints = 'One of ' + ', '.join(setting.choices)
    return result


def usage(program: str, purpose: str, settings: Mapping[str, Setting]) -> str:
    """Return the text that an executable prints with `--help`: its purpose and parameters."""
    lines = [purpose.strip(), '', f'usage: {program} --ros-args [-p NAME:=VALUE ...] '
             '[--params-file FILE] [-r FROM:=TO ...]', '', 'Parameters:']
    for name, setting in settings.items():
        default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
        lines += [f'  {name} (default {default!r})', f'      {setting.description}']
    return '\n'.join(lines)


def read(node: Node, settings: Mapping[str, Setting], changes: Sequence[Parameter],
         refused: Mapping[str, str]) -> dict[str, Any]:
    """Return the checked values of declared parameters, with changes; or raise BadParameter."""
    values = {name: node.get_parameter(name).value for name in settings}
    new = {change.name: change.value for change in changes if change.name in values}
    for name, reason in refused.items():
        if name in values and name not in new:
            raise BadParameter(reason)
    return check_values(settings, {**values, **new})


def check_values(settings: Mapping[str, Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values converted to the types of their settings, or raise BadParameter."""
    result = {name: checked_value(name, settings[name], value) for name, value in values.items()}
    for name, setting in settings.items():
        if not setting.per:
            continue
        count, expected = len(result[name]), len(result[setting.per])
        accepted = ({1, expected} if setting.single else {expected}) - {0}
        if count in accepted or (count == 0 and not setting.default):
            continue
        raise BadParameter(f'{name} has {count} entries, {setting.per} has {expected}: '
                           + (f'give one number, or one for each of {setting.per}'
                              if setting.single else 'both must have the same length'))
    return result


def check(kinds: tuple[type, ...], values: Mapping[str, Any]) -> Parameters:
    """Return the fields that settings declare, from checked values; they must fit together."""
    result = _parameters_type(kinds)(**{
        name: one.make({label: values[label] for label in one.settings})
        if isinstance(one, Group) else values[name]
        for kind in kinds for name, one in declared(kind).items()})
    for kind in kinds:
        if hasattr(kind, 'check'):
            result.select(kind).check()
    return result
