# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The plan of `ros2 launch rbd_ros dynamics.launch.py`, made before any node starts."""

# A launch that failed halfway would leave nodes behind that command a robot.

from collections.abc import Callable, Iterable, Mapping
import os
from pathlib import Path
from tempfile import mkdtemp, TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

from ament_index_python.packages import get_package_prefix
import numpy as np
from rbd_ros._internal.text import did_you_mean, listed
from rbd_ros.errors import RbdError
from rbd_ros.model.files.mjcf import is_mjcf
from rbd_ros.model.model import Model
from rbd_ros.ros.launch.arguments import (
    Argument, complete, DYNAMICS as ARGUMENTS, full_name, presets)
from rbd_ros.ros.launch.launch_files import (
    check_parameters, configuration, description, existing_file, frames_urdf, LaunchError,
    refusing, robot_of, root_frame, SHOWN, values_for)
from rbd_ros.ros.nodes.simulated_control import ROBOT, write
from rbd_ros.ros.robot.read_model import gravity_in_root
from rbd_ros.ros.runtime.share_directory import share

# rad, initial positions of the demo arm: bent forward, so that gravity torques are large
DEMO_POSITIONS = (0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0)
# A folder in it for each plan: for files that follow from the robot; removed when launch ends.
FOLDER = TemporaryDirectory(prefix='rbd_ros_')
PACKAGES = ('controller_manager', 'forward_command_controller', 'joint_state_broadcaster',
            'robot_state_publisher', 'rviz2')

# Returns the first node that publishes a description on a topic, and that description, or None.
Hearer: TypeAlias = Callable[[str], tuple[str, str] | None]


class Process(NamedTuple):
    """A node to start."""

    package: str
    executable: str
    parameters: tuple[Any, ...] = ()    # Values by name, or paths of files
    remappings: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()    # Of the command line
    name: str = ''    # Of the node; empty: its default
    required: bool = True    # Whether its end also ends the others
    # Whether it is supposed to end, with exit code 0, while the others continue.
    once: bool = False
    # Whether it is started when the one before it has ended or, if that is not supposed to end,
    # logs that its commands are complete.
    waits: bool = False
    plugin: str = ''    # Package of the plugin that it loads


def plan(values: Mapping[str, str], hear: Hearer | None = None,
         log: Callable[[str], object] = print) -> list[Process]:
    """
    Return the nodes to start: the dynamics node or the torque controller, then the others.

    `values` are values of `ARGUMENTS`; without `hear`, no other node publishes a description;
    `log` receives warnings for the user. Raise LaunchError if an argument is invalid, or a file
    cannot be read.

    """
    values, folder = complete(values, ARGUMENTS), Path(mkdtemp(dir=FOLDER.name))
    rviz, wanted = values['rviz'], values['robot_state_publisher']
    own_text, own_robot = description(values)
    is_known, is_demo = own_robot is not None, not values['model']
    simulated = is_demo if values['sim'] is None else values['sim']
    if simulated and not is_known:
        raise LaunchError(f'sim:={str(simulated).lower()} needs the model that it simulates: '
                          'model:=robot.urdf')
    if simulated and values['robot']:
        raise LaunchError('robot: the simulated robot reports and takes full torques, and adds '
                          'none by itself: leave robot out, or sim:=false')
    # The description of a simulated robot is its own; RViz needs that of another node.
    listens = rviz if not is_known else not (
        wanted is not None or simulated or is_mjcf(own_text))
    text, robot, heard = description_in_use(
        values, own_text, own_robot, hear if listens else None, log)
    mjcf, given = is_mjcf(text), {'robot_description': text} if is_known and not heard else {}
    if wanted is None:
        wanted = rviz if mjcf else bool(given)
    displayed = robot if wanted else None
    if displayed is not None and mjcf and not rviz:
        raise LaunchError('robot_state_publisher reads URDF, not MJCF: leave it out; rviz:=true '
                          'and view:=true show the robot')
    publishes = displayed is not None and bool(given) and not mjcf      # the description
    start: dict[str, Any] = {'initial_positions': list(DEMO_POSITIONS)} if is_demo else {}
    tuned = tuned_files(values, text, is_demo, folder) if simulated else ()
    if tuned:
        start.update(ROBOT, drives=str(tuned[0]))

    common, prefixed = {'use_sim_time': values['use_sim_time']}, {
        'frame_prefix': values['frame_prefix']}
    of_node = {**common, **({} if publishes else given)}
    states = ('joint_states', values['joint_states'])
    commands = (('~/effort_commands', values['commands']),) if values['commands'] else ()
    # A driver moves a real robot: commands end when states do, start slowly, and are limited.
    safe = (share('config', 'ros2_control', 'commands.param.yaml'),) if (
        values['robot'] or not is_known) else ()
    node, used = own_node(values, of_node, (states, *commands), (*tuned, *safe), robot)
    processes = [node]
    shown: tuple[tuple[str, str], ...] = ()
    if displayed is not None:
        shown = () if publishes else (('robot_description', SHOWN),)
        # Only the node knows the positions of the passive joints of loops.
        known = states if displayed.loops is None else (
            'joint_states', f'{node.name}/full_joint_states')
        frames = frames_urdf(displayed, folder) if mjcf else text
        processes.append(state_publisher({'robot_description': frames, **common, **prefixed},
                                         (known, *shown)))
    if simulated:
        processes.append(Process(
            'rbd_ros', 'mujoco_robot' if simulated == 'mujoco' else 'simulated_robot',
            ({**given, **common, **start, 'publish_description': not publishes,
              'gravity': list(gravity_in_root(used.gravity, used.mounting_rpy))},), (states, (
                '~/commands', values['commands'] or f'{node.name}/effort_commands'))))
    if rviz:
        if robot is None:
            log('no node publishes robot_description yet: set the Fixed Frame of RViz to the root '
                'link of the robot, or start this launch file after that node')
        processes.append(rviz_of(values, robot, folder, shown, has_shapes=not mjcf))
    if values['view']:
        processes.append(Process(
            'rbd_ros', 'viewer', ({**of_node, **prefixed},),
            (states, *renamed(values, 'dynamics', 'external_torques', 'external_wrench',
                              'torque_deviation')), required=False))
    return processes


def node_name(values: Mapping[str, Any]) -> str:
    """Return the name of the node: `dynamics`, or with a mode `torque_controller`."""
    return 'torque_controller' if values['mode'] else 'dynamics'


def renamed(values: Mapping[str, Any], *topics: str) -> tuple[tuple[str, str], ...]:
    """Return the remappings for topics of the node, which displays expect of `dynamics`."""
    return tuple((f'dynamics/{topic}', f'{node_name(values)}/{topic}') for topic in topics
                 if values['mode'])


def rviz_of(values: Mapping[str, Any], robot: Model | None, folder: Path,
            remappings: tuple[tuple[str, str], ...] = (), *, has_shapes: bool = True) -> Process:
    """Return RViz for a robot and the outputs of the node; it may be closed at any time."""
    prefix, config = values['frame_prefix'], values['rviz_config_file']
    frame = () if robot is None else ('-f', prefix + root_frame(robot))
    path = existing_file('rviz_config_file', config) if config else configuration(
        folder, prefix, has_shapes=has_shapes)
    return Process('rviz2', 'rviz2', ({'use_sim_time': values['use_sim_time']},),
                   (*renamed(values, 'markers', 'gravity_torques', 'external_torques'),
                    *remappings), ('-d', str(path), *frame), required=False)


def description_in_use(values: Mapping[str, Any], text: str, robot: Model | None,
                       hear: Hearer | None, log: Callable[[str], object]
                       ) -> tuple[str, Model | None, bool]:
    """Return a description and its robot, or those of another node that publishes one; which."""
    heard = hear(full_name(values, 'robot_description')) if hear else None
    if heard is None:
        return text, robot, False
    publisher, published = heard
    if robot is not None:
        same = f'the same as {values["model"] or "that of the demo arm"}'
        log(f'{publisher} publishes robot_description already, so robot_state_publisher is not '
            'started. That description is ' + (
                same if published.strip() == text.strip() else f'not {same}, which is not used; '
                'robot_state_publisher:=true publishes both'))
    return published, robot_of(published, f'the description of {publisher}'), True


def state_publisher(parameters: dict[str, Any],
                    remappings: tuple[tuple[str, str], ...] = ()) -> Process:
    """Return the publisher of the description and the frames."""
    return Process('robot_state_publisher', 'robot_state_publisher', (parameters,), remappings)


def tuned_files(values: Mapping[str, Any], text: str, is_demo: bool, folder: Path
                ) -> tuple[Path, ...]:
    """Return parameter files with the drives and gains of a simulated robot in a mode, if any."""
    if not values['mode']:
        return ()
    with refusing('the robot cannot be simulated', RbdError, np.linalg.LinAlgError):
        return write(text, list(DEMO_POSITIONS) if is_demo else None, folder)


def own_node(values: Mapping[str, Any], parameters: Mapping[str, Any],
             remappings: tuple[tuple[str, str], ...], defaults: tuple[Path, ...],
             robot: Model | None) -> tuple[Process, Any]:
    """
    Return the dynamics node, or with a mode the torque controller, and its checked parameters.

    Raise LaunchError if the node would reject them.

    """
    # Imported lazily: ROS is slow to import.
    from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
    from rbd_ros.ros.nodes.torque_controller import TorqueController
    from rbd_ros.ros.parameters.parameters import BadParameter, check, check_values
    kind, executable = ((TorqueController, 'torque_controller') if values['mode'] else
                        (DynamicsNode, 'dynamics_node'))
    name = node_name(values)
    full = full_name(values, name)
    files = [existing_file('params', path) for path in values['params'].split(os.pathsep)
             ] if values['params'] else []
    for path in files:
        check_parameters(path, full)
    standard = ['dynamics', 'torque_controller'] if values['mode'] else ['dynamics']
    # Later ones override earlier ones.
    paths = [*([presets()[values['robot']]] if values['robot'] else []),
             *(share('config', f'{one}.param.yaml') for one in standard if not files),
             *defaults, *files]
    own = {label: values[label] for label in ('mode', 'task_link', 'autostart', 'frame_prefix')
           if values[label] not in ('', None)}
    sources = (*map(str, paths), {**parameters, 'exit_unless_configured': True, **own})
    given = values_for(sources, full)
    with refusing('params', BadParameter):
        used = check(kind.kinds, check_values(kind.settings, {
            label: given.get(label, one.default) for label, one in kind.settings.items()}))
    if robot is not None and used.task_link not in ('', *robot.link_names):
        raise LaunchError(f"task_link: the robot has no link '{used.task_link}'" + did_you_mean(
            used.task_link, robot.link_names, ', only ' + listed(robot.link_names)))
    return Process('rbd_ros', executable, sources, remappings, name=name), used


def check_installed(processes: Iterable[Process], arguments: Mapping[str, Argument]) -> None:
    """Raise LaunchError if a program, or the package of a plugin, is missing."""
    needed = dict.fromkeys((one.package, one.executable) for one in processes)
    needed.update(dict.fromkeys((one.plugin, '') for one in processes if one.plugin))
    for package, executable in needed:
        if _is_installed(package, executable):
            continue
        text = f'{package} is not installed' + (
            f", or has no executable '{executable}'" if executable else '')
        if package not in PACKAGES:
            raise LaunchError(f'{text}: build the workspace with colcon, and source its '
                              'install/setup.bash')
        option = 'rviz' if package == 'rviz2' else package
        raise LaunchError(f'{text}: sudo apt install ros-$ROS_DISTRO-{package.replace("_", "-")}'
                          + (f', or {option}:=false' if option in arguments else ''))


def _is_installed(package: str, executable: str) -> bool:
    try:
        prefix = get_package_prefix(package)
    except LookupError:
        return False
    return not executable or os.access(Path(prefix, 'lib', package, executable), os.X_OK)
