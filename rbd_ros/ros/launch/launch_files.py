# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Files named in launch arguments: the robot and parameters."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
import re
import shlex
from typing import Any

from rbd_ros._internal.text import listed
from rbd_ros._internal.yaml_files import read_yaml
from rbd_ros.errors import RbdError
from rbd_ros.model.files.any_format import read_description
from rbd_ros.model.files.xacro_files import SUFFIX
from rbd_ros.model.model import Model
from rbd_ros.ros.robot.read_model import load_quietly
from rbd_ros.ros.runtime.share_directory import share


class LaunchError(Exception):
    """Nothing is started; the message contains the reason and a remedy."""


def existing_file(argument: str, path: str) -> Path:
    """Return the path of a file that an argument names."""
    found = _expanded(path)
    if not found.is_file():
        raise LaunchError(f'{argument}: there is no file {found}')
    return found


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise LaunchError(f'{path}: {error}') from None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise LaunchError(f'{text}: {error}') from None


def check_parameters(path: Path, node: str) -> None:
    """Raise LaunchError if a parameter file has nothing for a node, given by its full name."""
    # ROS would not report it.
    names = list(nodes_with_parameters(read_parameters(path)))
    if not names:
        raise LaunchError(f'params: {path} has no parameters: they belong below the name of the '
                          f'node, and below that ros__parameters, as in  {node}: '
                          '{ros__parameters: {publish_rate: 100.0}}')
    if any(_matches(name, node) for name in names):
        return
    raise LaunchError(f'params: {path} has no parameters for the node {node}, only for '
                      f"{listed(names)}: did you mean '{node}'? '/**' is for every node")


def _matches(name: str, node: str) -> bool:
    # ** matches any number of parts of a name, * matches one part.
    pattern = re.escape(name).replace(r'/\*\*', '(/[^/]+)*').replace(r'\*', '[^/]+')
    return re.fullmatch(pattern, node) is not None


def values_for(parameters: Iterable[Any], node: str) -> dict[str, Any]:
    """Return the parameters of a node from files and mappings; later ones override earlier."""
    def flat(values: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
        for key, value in values.items():
            if isinstance(value, dict):
                yield from flat(value, f'{prefix}{key}.')
            else:
                yield f'{prefix}{key}', value

    result: dict[str, Any] = {}
    for one in parameters:
        sections = [one] if isinstance(one, dict) else [
            section for name, section in nodes_with_parameters(read_parameters(Path(one))).items()
            if _matches(name, node) and isinstance(section, dict)]
        for section in sections:
            result.update(flat(section))
    return result


def nodes_with_parameters(content: Mapping[str, Any], namespace: str = '') -> dict[str, Any]:
    """Return the parameters in a file, by the full names or patterns of their nodes."""
    found = {}
    for key, section in content.items():
        name = f"{namespace}/{str(key).strip('/')}"
        if isinstance(section, dict):
            if 'ros__parameters' in section:
                found[name] = section['ros__parameters']
            else:
                found.update(nodes_with_parameters(section, name))
    return found


def read_parameters(path: Path) -> dict[str, Any]:
    """Return the content of a parameter file."""
    content = read_yaml(path, LaunchError)
    if not isinstance(content, dict):
        raise LaunchError(f'{path} has no parameters')
    return content


def description(model: str, xacro_args: str = '') -> tuple[str, Model]:
    """
    Return the description of a robot, and the robot.

    `model` is the path of a URDF, xacro or MJCF file, which may begin with ``~`` and contain
    spaces, optionally followed by arguments of xacro; empty: the demo arm. `xacro_args` are
    ``name:=value``, quoted as in a shell. Raise LaunchError if the file does not exist, xacro
    fails or the result is not a robot.

    """
    path, more = _split(model) if model else (share('urdf', 'demo_arm.urdf'), [])
    arguments = more + _words(xacro_args)
    if not path.is_file():
        raise LaunchError(f'model: there is no file {path}')
    if arguments and path.suffix != SUFFIX:
        raise LaunchError(f'{path} is not a xacro file, its name does not end in {SUFFIX}: it '
                          f'takes no arguments, got {" ".join(arguments)}')
    try:
        text = read_description(path, arguments)
        robot = load_quietly(text)
    except RbdError as error:
        raise LaunchError(f'{path}: {error}') from None
    if not robot.links:
        raise LaunchError(f'{path}: the robot has no links')
    return text, robot


def _split(model: str) -> tuple[Path, list[str]]:
    path = _expanded(model)
    found = re.fullmatch(r'(.+?)((?:\s+\w+:=\S*)+)', model)
    if path.exists() or not found:
        return path, []
    return _expanded(found[1]), _words(found[2])
