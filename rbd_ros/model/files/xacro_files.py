# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Expands xacro files to URDF, with the program xacro."""

from collections.abc import Iterable
from os import PathLike

from rbd_ros._internal.text import did_you_mean, listed, printable
from rbd_ros.errors import UrdfError

SUFFIX = '.xacro'


def xacro_mappings(arguments: Iterable[str]) -> dict[str, str]:
    """Return the arguments ``name:=value`` of xacro by name."""
    mappings = {}
    for argument in arguments:
        name, mark, value = argument.partition(':=')
        if not mark or not name:
            raise UrdfError('arguments of xacro are name:=value, got '
                            f"'{printable(argument, 120)}'")
        mappings[name] = value
    return mappings


class _Arguments(dict[str, str]):
    """Arguments of a xacro file, which ignores those it does not ask for."""

    def __init__(self, arguments: dict[str, str]) -> None:
        super().__init__(arguments)
        self.asked_for = set[str]()

    def __contains__(self, name: object) -> bool:
        self.asked_for.add(str(name))
        return super().__contains__(name)


# What helps against errors of xacro with these words.
_HINTS = {'Undefined substitution argument': 'give it as NAME:=VALUE by --xacro-args or '
                                             'xacro_arguments',
          'PackageNotFoundError': 'source the workspace that contains the package'}


def expand_xacro(path: str | PathLike[str], arguments: Iterable[str] = ()) -> str:
    """Return the URDF that xacro makes of a file; raise UrdfError if it fails or is missing."""
    mappings = _Arguments(xacro_mappings(arguments))
    given = list(mappings)
    try:
        import xacro
    except ImportError:
        raise UrdfError('the file needs xacro: pip install xacro, or sudo apt install '
                        'ros-$ROS_DISTRO-xacro') from None
    try:
        text = str(xacro.process_file(str(path), mappings=mappings).toxml())
    except Exception as error:          # of any kind: a file may evaluate whatever it likes
        hint = next((f'; {hint}' for mark, hint in _HINTS.items() if mark in str(error)), '')
        raise UrdfError(f'xacro failed: {type(error).__name__}: '
                        f'{printable(str(error))}{hint}') from None
    if unknown := [name for name in given if name not in mappings.asked_for]:
        known = sorted(mappings.asked_for)
        raise UrdfError(f"the file has no xacro argument '{printable(unknown[0], 120)}'"
                        + did_you_mean(unknown[0], known, ', only ' + (listed(known) or 'none')))
    return text
