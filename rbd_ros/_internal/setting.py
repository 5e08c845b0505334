# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Declarations of the values that users set: gains of control laws and parameters of nodes.

ROS parameters, checks, files and tables of the documentation are derived from annotations like
``ramp_time: Annotated[float, Setting(1.0, 'Duration of the ramp.', 's')]``.

"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints


@dataclass(frozen=True)
class Setting:
    """A value that a user may set; lists of names and of numbers have tuples as defaults."""

    default: Any
    meaning: str
    unit: str = ''
    # Range of a number, or of each number of a list.
    low: float | None = None
    high: float | None = None
    smallest: float = 0.0  # Smallest value other than 0.
    choices: Sequence[str] = ()  # The words that are accepted.
    changeable: bool = False  # Whether it may change while a node runs.
    # Lists: type and meaning of the entries, and the accepted lengths.
    entry: type = float
    entries: str = ''
    sizes: tuple[int, ...] = ()
    # Lists with one number for each joint in this parameter; if `single`, one number may stand for
    # all joints.
    per: str = ''
    single: bool = True
    # Condition on the numbers of a list: a key of the conditions that the checks know.
    condition: str = ''
    # Files of robots, which are read before the file of defaults, set it.
    of_robot: bool = False

    def __repr__(self) -> str:
        return 'Setting(...)'    # Signatures of functions show it.

    @property
    def description(self) -> str:
        """Return meaning, length and unit as sentences."""
        return (self.meaning + (f' One number, or one for each of {self.per}.'
                                if self.per and self.single else '')
                + (f' Entries: {self.entries}.' if self.entries else '')
                + (f' Unit: {self.unit}.' if self.unit else ''))


@dataclass(frozen=True)
class Group:
    """Settings, by the names of their parameters, that become one value."""

    settings: Mapping[str, Setting]
    make: Callable[[dict[str, Any]], Any]


@cache
def declared(kind: type) -> dict[str, Setting | Group]:
    """Return the declarations in the annotations of a class, by field."""
    return {name: one for name, hint in get_type_hints(kind, include_extras=True).items()
            for one in getattr(hint, '__metadata__', ()) if isinstance(one, (Setting, Group))}


def settings_of(kinds: Sequence[type]) -> dict[str, Setting]:
    """Return all settings that classes declare, by the names of their parameters."""
    found: dict[str, Setting] = {}
    for kind in kinds:
        for name, one in declared(kind).items():
            for label, setting in (one.settings if isinstance(one, Group)
                                   else {name: one}).items():
                assert label not in found, f'{label} is declared twice'
                found[label] = setting
    return found
