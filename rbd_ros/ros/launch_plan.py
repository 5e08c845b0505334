# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The nodes that `ros2 launch rbd_ros dynamics.launch.py` starts, decided before any of them starts.

A launch that failed halfway would leave nodes behind that command a robot.

"""

from collections.abc import Callable, Iterable, Mapping
import os
from pathlib import Path
import re
import shlex
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias
import warnings

import numpy as np
from rbd_ros.errors import ModelWarning, RbdError
from rbd_ros.model.urdf import decode, load_urdf_string
from rbd_ros.model.xacro_files import expand_xacro, SUFFIX
from rbd_ros.ros.parameter_checks import MODES
from rbd_ros.ros.share_directory import share
from rbd_ros.ros.simulated_control import ROBOT, write

# rad, where the demo arm begins: bent forward, so that there is a load to hold
DEMO_POSITIONS = (0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0)
NONE = 'none'
# Parameters that follow from a simulated robot. It is removed when launch ends.
FOLDER = TemporaryDirectory(prefix='rbd_ros_')
# Empty, or the name of a topic or namespace.
ROS_NAME = r'(~?/?([A-Za-z_]\w*/)*[A-Za-z_]\w*)?'

Arguments: TypeAlias = Mapping[str, tuple[str, str]]
# Given a package and an executable, or None for the package alone, says whether it is there.
Finder: TypeAlias = Callable[[str, str | None], bool]

# Default and description; booleans are those whose default is true or false, or empty.
ARGUMENTS = {
    'model': ('', 'URDF or xacro file of the robot; empty: the demo arm; none: somebody else '
              'publishes the description'),
    'xacro_args': ('', 'arguments of a xacro file, as in  xacro_args:="mass:=5 side:=left"'),
    'joint_states': ('joint_states', 'topic of the joint states'),
    'commands': ('', 'topic of the effort commands, of dynamics node and simulated robot alike; '
                 'empty: ~/effort_commands'),
    'params': ('', 'parameter file of the dynamics node; several with : in between, the last '
               'counts most; empty: the defaults'),
    'robot': ('', 'what efforts of the robot mean: franka, generic, kinova, kuka_fri or ur, files '
              'in config/robots; what params says counts more; empty: the defaults'),
    'mode': ('', 'what the robot does; with one of its modes the torque controller is started in '
             'place of the dynamics node'),
    'frame_prefix': ('', 'prefix of the names of links in frame names'),
    'namespace': ('', 'namespace of all nodes'),
    'use_sim_time': ('false', 'whether time comes from /clock'),
    'sim': ('', 'whether to simulate the robot: true, false, or mujoco for its motion by MuJoCo; '
            'empty: true for the demo arm alone'),
    'robot_state_publisher': ('true', 'whether to start robot_state_publisher, which publishes '
                              'the description and the frames that RViz needs'),
    'rviz': ('false', 'whether to start RViz'),
    'view': ('false', 'whether to show the robot in a browser, at http://localhost:8080'),
}
# Debian names of the packages that may be missing.
PACKAGES = {'controller_manager': 'controller-manager',
            'forward_command_controller': 'forward-command-controller',
            'joint_state_broadcaster': 'joint-state-broadcaster',
            'robot_state_publisher': 'robot-state-publisher', 'rviz2': 'rviz2'}


class LaunchError(Exception):
    """Nothing is started; the message says why and what to do."""


class Process(NamedTuple):
    """
    A node to start.

    Attributes
    ----------
    package, executable : str
        What to run.
    name : str or None
        Name of the node; None: its default.
    parameters : tuple of (dict or str)
        Values by name, or the path of a file.
    remappings : tuple of (str, str)
        Pairs (from, to).
    arguments : tuple of str
        Arguments of the command line.
    required : bool
        Whether its end also ends the others.

    """

    package: str
    executable: str
    name: str | None = None
    parameters: tuple[Any, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    required: bool = True


def plan(values: Mapping[str, str], find: Finder | None = None) -> list[Process]:
    """
    Return the nodes to start.

    Parameters
    ----------
    values : mapping of str to str
        Values of `ARGUMENTS`; those that are left out have their defaults.
    find : callable, optional
        Given a package and an executable, returns whether it is there; default: looks in the ament
        index.

    Returns
    -------
    list of Process
        The dynamics node, or the torque controller in its place, first.

    Raises
    ------
    LaunchError
        If an argument is wrong, a file cannot be read, or a program is missing.

    """
    values = complete(values, ARGUMENTS)
    if values['model'] == NONE and values['xacro_args']:
        raise LaunchError('xacro_args needs a xacro file: model:=robot.urdf.xacro')
    is_demo = not values['model']
    text, root = None, None
    if values['model'] != NONE:
        text, root = description(values['model'], values['xacro_args'])
    common: dict[str, Any] = {'use_sim_time': truth(values, 'use_sim_time')}
    given = {} if text is None else {'robot_description': text}
    publisher = text is not None and truth(values, 'robot_state_publisher')
    states = ('joint_states', values['joint_states'])
    mujoco = values['sim'].lower() == 'mujoco'
    simulated = mujoco or truth(values, 'sim', empty=is_demo, other=' or mujoco')
    start: dict[str, Any] = {'initial_positions': list(DEMO_POSITIONS)} if is_demo else {}
    tuned: tuple[Path, ...] = ()
    if simulated and text is not None and values['mode']:
        try:
            tuned = write(text, start.get('initial_positions'), Path(FOLDER.name))
        except (RbdError, np.linalg.LinAlgError) as error:
            raise LaunchError(f'the robot cannot be simulated: {error}') from None
        start.update(ROBOT, drives=str(tuned[0]))

    own = dict(common)
    if values['frame_prefix']:
        own['frame_prefix'] = values['frame_prefix']
    if not publisher:
        own.update(given)
    commands = (('~/effort_commands', values['commands']),) if values['commands'] else ()
    processes = [own_node(values, own, (states, *commands), tuned)]
    name = processes[0].name
    if publisher:
        processes.append(Process(
            'robot_state_publisher', 'robot_state_publisher', None,
            ({**given, **common, 'frame_prefix': values['frame_prefix']},), (states,)))
    if simulated:
        if text is None:
            raise LaunchError(f"sim:={values['sim']} needs the model that it simulates: "
                              'model:=robot.urdf')
        if values['robot']:
            raise LaunchError('robot: the simulated robot reports and takes full torques, and '
                              'adds none by itself: leave robot out, or sim:=false')
        processes.append(Process(
            'rbd_ros', 'mujoco_robot' if mujoco else 'simulated_robot', None,
            ({**given, **common, **start},),
            (states, ('~/commands', values['commands'] or f'{name}/effort_commands'))))
    if truth(values, 'rviz'):
        frame = ('-f', values['frame_prefix'] + root) if root else ()
        markers = (('dynamics/markers', f'{name}/markers'),) if name != 'dynamics' else ()
        # It may be closed while the robot moves.
        processes.append(Process('rviz2', 'rviz2', None, (common,), markers, (
            '-d', str(share('config', 'dynamics.rviz')), *frame), required=False))
    if truth(values, 'view'):
        seen = tuple((f'dynamics/{topic}', f'{name}/{topic}') for topic in (
            'dynamics', 'external_torques', 'external_wrench')) if name != 'dynamics' else ()
        processes.append(Process('rbd_ros', 'viewer', None, (
            {**common, **({} if publisher else given), 'frame_prefix': values['frame_prefix']},),
            (states, *seen), required=False))
    check_installed(processes, find)
    return processes


def complete(values: Mapping[str, str], arguments: Arguments) -> dict[str, str]:
    """Return the values of all arguments, the defaults for those that are left out."""
    unknown = sorted(set(values) - set(arguments))
    if unknown:
        raise LaunchError(f"there is no argument '{unknown[0]}', only " + ', '.join(arguments))
    values = {name: values.get(name, default) for name, (default, _) in arguments.items()}
    if values['mode'] not in ('', *MODES):
        raise LaunchError(f"mode: there is no '{values['mode']}', only " + ', '.join(MODES))
    for name in ('joint_states', 'commands', 'namespace'):
        if not re.fullmatch(ROS_NAME, values.get(name, '')):
            raise LaunchError(f"{name}: '{values[name]}' is not a valid name in ROS: use letters, "
                              'digits and _, separated by /')
    return values


def own_node(values: Mapping[str, str], parameters: Mapping[str, Any],
             remappings: tuple[tuple[str, str], ...], defaults: tuple[Path, ...] = ()) -> Process:
    """Return the dynamics node, or with a mode the torque controller."""
    given = dict(parameters)
    executable, name = 'dynamics_node', 'dynamics'
    if values['mode']:
        executable = name = 'torque_controller'
        given['mode'] = values['mode']
    return Process('rbd_ros', executable, name, (*parameter_files(values, defaults), given),
                   remappings)


def truth(values: Mapping[str, str], name: str, empty: bool | None = None,
          other: str = '') -> bool | None:
    """Return whether an argument is true; `other` is what else it could have been."""
    text = values[name].lower()
    if text not in ('true', 'false') and (text or empty is None):
        raise LaunchError(f"{name} must be true or false{other}, got '{values[name]}'")
    return text == 'true' if text else empty


def parameter_files(values: Mapping[str, str], defaults: tuple[Path, ...]) -> list[str]:
    """Return the paths of the parameter files; those named here stay whatever `params` is."""
    if values['params']:
        paths = [*defaults, *(existing_file('params', path)
                              for path in values['params'].split(os.pathsep))]
    else:
        files = ['dynamics', 'torque_controller'] if values['mode'] else ['dynamics']
        paths = [*(share('config', f'{name}.param.yaml') for name in files), *defaults]
    if values['robot']:
        presets = {path.stem: path for path in sorted(share('config', 'robots').glob('*.yaml'))}
        if values['robot'] not in presets:
            raise LaunchError(f"robot: there is no '{values['robot']}', only "
                              + ', '.join(presets))
        # The files that come later count more.
        paths = [presets[values['robot']], *paths]
    return [str(path) for path in paths]


def existing_file(argument: str, path: str) -> Path:
    """Return the path of a file that an argument names."""
    found = _expanded(path)
    if not found.is_file():
        raise LaunchError(f'{argument}: there is no file {found}')
    return found


def _expanded(path: str) -> Path:
    """Return a path with ``~`` expanded."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise LaunchError(f'{path}: {error}') from None


def _words(text: str) -> list[str]:
    """Return the words of a text, quoted as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise LaunchError(f'{text}: {error}') from None


def check_installed(processes: Iterable[Process], find: Finder | None = None,
                    plugins: Iterable[str] = (), arguments: Arguments = ARGUMENTS) -> None:
    """Raise LaunchError if a program, or a package of plugins, is missing."""
    for process in processes:
        if not (find or _is_installed)(process.package, process.executable):
            raise LaunchError(_missing(process, arguments))
    for package in plugins:
        if not (find or _is_installed)(package, None):
            raise LaunchError(f'{package} is not installed: {_apt(package)}')


def _is_installed(package: str, executable: str | None) -> bool:
    """Return whether ROS would find an executable."""
    from ament_index_python.packages import get_package_prefix, PackageNotFoundError
    try:
        prefix = get_package_prefix(package)
    except (PackageNotFoundError, LookupError):
        return False
    return executable is None or os.access(Path(prefix, 'lib', package, executable), os.X_OK)


def _missing(process: Process, arguments: Arguments) -> str:
    """Say what to do about a program that is not there."""
    text = f"{process.package} is not installed, or has no executable '{process.executable}'"
    if process.package not in PACKAGES:
        return f'{text}: build the workspace with colcon, and source its install/setup.bash'
    option = 'rviz' if process.package == 'rviz2' else process.package
    return f'{text}: {_apt(process.package)}' + (f', or {option}:=false' if option in arguments
                                                 else '')


def _apt(package: str) -> str:
    """Return the command that installs a package."""
    return f'sudo apt install ros-$ROS_DISTRO-{PACKAGES[package]}'


# -- The model. -----------------------------------------------------------------------------------

def description(model: str, xacro_args: str = '') -> tuple[str, str]:
    """
    Return the URDF of a robot and its root link.

    Parameters
    ----------
    model : str
        Path of a URDF or xacro file, which may begin with ``~`` and contain spaces; arguments of
        xacro may follow it. Empty: the demo arm.
    xacro_args : str
        Arguments of xacro, ``name:=value``, quoted as in a shell.

    Returns
    -------
    text, root : str
        URDF that the library reads, and the name of the root link.

    Raises
    ------
    LaunchError
        If there is no such file, xacro fails or the result is not a robot.

    """
    path, more = _split(model) if model else (share('urdf', 'demo_arm.urdf'), [])
    arguments = more + _words(xacro_args)
    if not path.is_file():
        raise LaunchError(f'model: there is no file {path}')
    if arguments and path.suffix != SUFFIX:
        raise LaunchError(f'{path} is not a xacro file, its name does not end in {SUFFIX}: it '
                          f'takes no arguments, got {" ".join(arguments)}')
    try:
        if path.suffix == SUFFIX:
            text = expand_xacro(path, arguments)
        else:
            text = path.read_bytes()
        text = decode(text)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            robot = load_urdf_string(text)
    except RbdError as error:
        raise LaunchError(f'{path}: {error}') from None
    if not robot.links:
        raise LaunchError(f'{path}: the robot has no links')
    return text, robot.link_names[0]


def _split(model: str) -> tuple[Path, list[str]]:
    """Return the path of a model, and the arguments of xacro that follow it."""
    path = _expanded(model)
    found = re.fullmatch(r'(.+?)((?:\s+\w+:=\S*)+)', model)
    if path.exists() or not found:
        return path, []
    return _expanded(found[1]), _words(found[2])
