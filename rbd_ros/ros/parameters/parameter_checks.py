# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of parameter values against their declarations."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from rbd_ros._internal.setting import Setting
from rbd_ros._internal.text import listed

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
        twice = [one for one, count in Counter(value).items() if count > 1]
        if twice:
            raise BadParameter(f"{name} has '{twice[0]}' twice: {listed(value)}")
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


def check_lengths(settings: Mapping[str, Setting], values: Mapping[str, Sequence[Any]]) -> None:
    """Raise if a list that has one number per joint has another length than that of the joints."""
    for name, setting in settings.items():
        if not setting.per:
            continue
        count, expected = len(values[name]), len(values[setting.per])
        accepted = ({1, expected} if setting.single else {expected}) - {0}
        if count in accepted or (count == 0 and not setting.default):
            continue
        raise BadParameter(f'{name} has {count} entries, {setting.per} has {expected}: '
                           + (f'give one number, or one for each of {setting.per}'
                              if setting.single else 'both must have the same length'))
