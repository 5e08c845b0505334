# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Files of a launch: the robot, parameters, and what RViz needs to show the robot."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
import os
from pathlib import Path
import re
import shlex
from typing import Any
import warnings

from rbd_ros import ModelWarning, save_urdf, subtree
from rbd_ros._internal.text import listed
from rbd_ros._internal.yaml_files import node_parameters, read_yaml
from rbd_ros.errors import RbdError
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.files.any_format import read_description
from rbd_ros.model.files.urdf import SUFFIX
from rbd_ros.model.files.urdf_document import SINGLE
from rbd_ros.model.model import Model
from rbd_ros.ros.robot.read_model import base_joint, load_quietly
from rbd_ros.ros.runtime.share_directory import share


NONE = 'none'    # The model, if another node publishes the description


class LaunchError(RuntimeError):
    """Nothing is started; the message contains the reason and a remedy."""


@contextmanager
def refusing(what: str, *errors: type[Exception]) -> Iterator[None]:
    """Raise LaunchError for such errors, with `what` before their reason."""
    try:
        yield
    except errors as error:
        raise LaunchError(f'{what}: {error}') from None


def existing_file(argument: str, path: str) -> Path:
    """Return the path of a file that an argument names."""
    with refusing(path, RuntimeError):
        found = Path(path).expanduser()
    if not found.is_file():
        raise LaunchError(f'{argument}: there is no file {found}')
    return found


def check_parameters(path: Path, node: str) -> None:
    """Raise LaunchError if a parameter file has nothing for a node, given by its full name."""
    # ROS would not report it.
    names = [name for name, _ in node_parameters(read_parameters(path))]
    if not names:
        raise LaunchError(f'params: {path} has no parameters: they belong below the name of the '
                          f'node, and below that ros__parameters, as in  {node}: '
                          '{ros__parameters: {publish_rate: 100.0}}')
    if not any(_matches(name, node) for name in names):
        raise LaunchError(f'params: {path} has no parameters for the node {node}, only for '
                          f"{listed(names)}: did you mean '{node}'? '/**' is for every node")


def _matches(name: str, node: str) -> bool:
    # ** matches any number of parts of a name, * matches one part.
    pattern = re.escape(name).replace(r'/\*\*', '(/[^/]+)*').replace(r'\*', '[^/]+')
    return re.fullmatch(pattern, node) is not None


def values_for(parameters: Iterable[Any], node: str) -> dict[str, Any]:
    """Return the parameters of a node from files and mappings; later ones override earlier."""
    found = [section for one in parameters for name, section in (
        [(node, one)] if isinstance(one, dict) else node_parameters(read_parameters(Path(one))))
        if _matches(name, node)]
    return {name: value for section in found for name, value in _flat(section)}


def _flat(values: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Yield parameters, which may be nested, by names with dots."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _flat(value, f'{name}.{key}' if name else key)
    elif name:
        yield name, values


def read_parameters(path: Path) -> dict[str, Any]:
    """Return the content of a parameter file."""
    content = read_yaml(path, LaunchError)
    if not isinstance(content, dict):
        raise LaunchError(f'{path} has no parameters')
    return content


def description(values: Mapping[str, Any]) -> tuple[str, Model | None]:
    """
    Return the description of a robot, and the robot; '' and None with ``model:=none``.

    `model` is the path of a URDF, xacro or MJCF file, which may begin with ``~`` and contain
    spaces, optionally followed by arguments of xacro; empty: the demo arm. `xacro_args` are
    ``name:=value``, quoted as in a shell. Raise LaunchError if the file does not exist, xacro
    fails or the result is not a robot.

    """
    model, arguments = values['model'], values['xacro_args']
    if model == NONE:
        if arguments:
            raise LaunchError('xacro_args needs a xacro file: model:=robot.urdf.xacro')
        return '', None
    parts = re.fullmatch(r'(.+?)((?:\s+\w+:=\S*)+)', model)
    if parts and not os.path.exists(os.path.expanduser(model)):
        model, arguments = parts[1], f'{parts[2]} {arguments}'
    path = existing_file('model', model) if model else share('urdf', 'demo_arm.urdf')
    with refusing(arguments, ValueError):
        words = shlex.split(arguments)
    if words and path.suffix != SUFFIX:
        raise LaunchError(f'{path} is not a xacro file, its name does not end in {SUFFIX}: it '
                          f'takes no arguments, got {" ".join(words)}')
    with refusing(str(path), RbdError):
        text = read_description(path, words)
    return text, robot_of(text, str(path))


def robot_of(text: str, where: str) -> Model:
    """Return the robot of a description, or raise LaunchError, which says where it comes from."""
    with refusing(where, RbdError):
        robot = load_quietly(text)
    if not robot.links:
        raise LaunchError(f'{where}: the robot has no links')
    return robot


# Topic of a description for RViz alone
SHOWN = 'shown_robot_description'
FAR = 1e6    # rad or m, and so on: limits that nothing reaches


def root_frame(robot: Model) -> str:
    """Return the link that stands still, or the base of a robot whose base floats."""
    base = base_joint(robot)
    return base.child if base else robot.link_names[0]


def frames_urdf(robot: Model, folder: Path) -> str:
    """Return a URDF with the frames of a robot, for robot_state_publisher; it has no shapes."""
    robot = subtree(robot.unconstrained, root_frame(robot))
    joints = []
    # Other programs refuse a URDF without limits.
    for joint in robot.joints:
        if joint.kind in ('revolute', 'prismatic'):
            joint = replace(joint, lower=(-FAR,), upper=(FAR,))
        joints.append(replace(joint, velocity=(FAR,), effort=(FAR,)) if joint.kind in SINGLE
                      else joint)
    path = folder / 'frames.urdf'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)       # drives are left out
        save_urdf(rebuild(robot, joints=joints), path)
    return path.read_text(encoding='utf-8')


def configuration(folder: Path, prefix: str, *, has_shapes: bool) -> Path:
    """Return the configuration of RViz; without shapes, ellipsoids of inertia show the robot."""
    path = share('config', 'dynamics.rviz')
    text = before = path.read_text(encoding='utf-8')
    if prefix:      # RViz puts a / after its prefix
        for name in ('Description Source:', 'Robot Description:'):
            text = text.replace(name, f"TF Prefix: '{prefix.rstrip('/')}'\n      {name}")
    if not has_shapes:
        text = text.replace('ellipsoids: false', 'ellipsoids: true')
    if text != before:
        path = folder / 'dynamics.rviz'
        path.write_text(text, encoding='utf-8')
    return path
