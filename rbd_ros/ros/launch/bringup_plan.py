# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The plan of `ros2 launch rbd_ros bringup.launch.py`, made before anything starts.

The robot's brakes open only when the torques that hold it are commanded: the effort controller is
loaded first, but inactive; then the node starts, and its commands reach their full size; then the
controller is activated, and stopped when commands stop. If a controller manager runs already, it
is used: its controllers must have the parameters in the file of controllers. A generated
controller needs no node: it is spawned, and then joint_trajectory_controller above it.

"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ament_index_python.packages import get_package_share_directory
from lxml import etree
from lxml.builder import E
from rbd_ros._internal.text import listed
from rbd_ros.model.files.mjcf import is_mjcf
from rbd_ros.model.files.urdf import load_urdf_string
from rbd_ros.model.files.xml_elements import parse
from rbd_ros.model.model import Model
from rbd_ros.ros.commands.controllers import (
    Call, controllers as running_controllers, differences, EFFORTS, MANAGER, STATES)
from rbd_ros.ros.launch.arguments import BRINGUP as ARGUMENTS, complete, full_name
from rbd_ros.ros.launch.launch_files import (
    description, existing_file, LaunchError, NONE, read_parameters, values_for)
from rbd_ros.ros.launch.launch_plan import (
    DEMO_POSITIONS, description_in_use, FOLDER, Hearer, own_node, Process, rviz_of,
    state_publisher, tuned_files)
from rbd_ros.ros.nodes.simulated_robot import rest_position
from rbd_ros.ros.runtime.share_directory import share
import yaml

TYPE = 'forward_command_controller/ForwardCommandController'
BROADCASTER = 'joint_state_broadcaster/JointStateBroadcaster'
MIN_PATIENCE = 0.5    # s without commands, after which the controller is stopped
UNMEASURED = (': commands start at the measured efforts, unless params has blend_time: 0 and '
              'effort_rate_limit: 0, and the controller is not active yet')
TRAJECTORIES = 'joint_trajectory_controller'
OF_NODES = 'params', 'robot', 'mode', 'task_link', 'autostart'    # arguments
# Packages of controllers that have other names
PLUGINS = {EFFORTS: 'forward_command_controller'}
# s within which a controller manager must have appeared
MANAGER_TIMEOUT = 60
INTERFACES = 'position', 'velocity', 'effort'
# Switch all controllers of a request or none, as spawners request. Others may leave it open, and
# before Lyrical then deactivate the effort controller even if its successor cannot be activated.
STRICT = {'defaults.switch_controller.strictness': 'strict'}


def plan(values: Mapping[str, str], hear: Hearer | None = None,
         log: Callable[[str], object] = print, call: Call | None = None) -> list[Process]:
    """
    Return the programs to start.

    As `launch_plan.plan`; `call` asks a controller manager that runs already, whose controllers
    must fit the file of controllers, or LaunchError is raised.

    """
    values, folder = complete(values, ARGUMENTS), Path(mkdtemp(dir=FOLDER.name))
    loaded = running_controllers(call) if call else None
    is_demo = loaded is None and not values['model']
    if loaded is not None and not values['model']:
        values['model'] = NONE      # that of the manager
    text, robot, heard = description_in_use(
        values, *description(values), None if loaded is None else hear, log)
    if robot is None:
        raise LaunchError('model: ros2_control needs the description of the robot: '
                          'model:=robot.urdf')
    if is_mjcf(text):
        raise LaunchError('model: ros2_control needs a URDF, this is MJCF')
    common, running = {'use_sim_time': values['use_sim_time']}, loaded or {}
    tuned = tuned_files(values, text, True, folder) if is_demo else ()
    if loaded is None and parse(text).find('ros2_control') is None:
        text = with_mock_hardware(text, DEMO_POSITIONS if is_demo else None)
    if values['controller']:
        path, steps = generated_controller(values, robot, text, running)
    else:
        path = controllers_file(values, robot, folder)
        given, manager = (values_for([path], full_name(values, name))
                          for name in (EFFORTS, MANAGER))
        given['type'] = manager.get(f'{EFFORTS}.type', given.get('type'))
        for what, expected in (('type', TYPE), ('interface_name', 'effort')):
            if given.get(what) != expected:
                raise LaunchError(f'{path}: {what} of {EFFORTS} must be {expected}, got '
                                  f'{given.get(what)}')
        joints = known_joints(given, EFFORTS, robot, path)
        if call and EFFORTS in running and (why := differences(call, running[EFFORTS], given)):
            raise LaunchError(why)
        node, used = own_node(
            values, {**common, 'command_joints': joints},
            (('~/effort_commands', f'{EFFORTS}/commands'),),
            (*tuned, share('config', 'ros2_control', 'commands.param.yaml')), robot)
        state = running[EFFORTS].state if EFFORTS in running else 'unconfigured'
        # Commands start at the measured efforts, at once if a controller acts on them already.
        measures = state == 'active' or used.blend_time > 0.0 or used.effort_rate_limit > 0.0
        check_interfaces(text, joints, INTERFACES if measures else INTERFACES[:2])
        patience = MIN_PATIENCE + used.state_timeout + (
            2.0 / used.publish_rate if used.publish_rate else 0.0)
        guard = Process('rbd_ros', 'controller_guard',
                        arguments=(f'{patience:g}', json.dumps(given)))
        # Spawners clean up and reconfigure what is configured.
        steps = [*spawners([EFFORTS] if state == 'unconfigured' else [], path, running),
                 node, guard]
    return [*([] if heard else [state_publisher({
        'robot_description': text, **common, 'frame_prefix': values['frame_prefix']})]),
            *([Process('controller_manager', 'ros2_control_node', (str(path), {
                **common, **STRICT}))] if loaded is None else []),
            *([rviz_of(values, robot, folder)] if values['rviz'] else []),
            *(one._replace(waits=k > 0) for k, one in enumerate(steps))]


def controllers_file(values: Mapping[str, Any], robot: Model, folder: Path) -> Path:
    """Return the file of controllers that was given, or the default one with a robot's joints."""
    if values['controllers']:
        return existing_file('controllers', values['controllers'])
    content = read_parameters(share('config', 'ros2_control', 'controllers.yaml'))
    content[f'/**/{EFFORTS}']['ros__parameters']['joints'] = single_joints(robot)
    path = folder / 'controllers.yaml'
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding='utf-8')
    return path


def generated_controller(values: Mapping[str, Any], robot: Model, text: str,
                         loaded: Mapping[str, Any]) -> tuple[Path, list[Process]]:
    """Return the file of controllers and the spawners for a generated controller."""
    name = values['controller']
    if given := [one for one in OF_NODES if values[one] not in ('', None)]:
        raise LaunchError(f'controller: {listed(given)} would set a node, but {name} needs none; '
                          'its parameters are in the file of controllers')
    try:
        folder = Path(get_package_share_directory(name))
    except (LookupError, ValueError):
        raise LaunchError(f'controller: there is no package {name}; rbd_ros generate --controller '
                          'writes it, and colcon builds it') from None
    path = existing_file('controllers', values['controllers'] or str(folder / 'controllers.yaml'))
    given = values_for([path], full_name(values, TRAJECTORIES))
    joints = known_joints(given, TRAJECTORIES, robot, path)
    check_interfaces(text, joints, INTERFACES[:1])
    if there := [one for one in (name, TRAJECTORIES) if one in loaded]:
        raise LaunchError(f'{listed(there)} is loaded already, with parameters of its own: ros2 '
                          f'run controller_manager unspawner {" ".join(reversed(there))}')
    return path, spawners([name, TRAJECTORIES], path, loaded)


def spawners(names: Sequence[str], path: Path, loaded: Mapping[str, Any]) -> list[Process]:
    """Return the spawners of a broadcaster of states, unless one is active, and of controllers."""
    if not any(one.type == BROADCASTER and one.state == 'active' for one in loaded.values()):
        if STATES in loaded:
            raise LaunchError(f'{STATES} is loaded, but {loaded[STATES].state}: ros2 control '
                              f'switch_controllers --strict --activate {STATES}')
        names = [STATES, *names]
    return [Process(
        'controller_manager', 'spawner', once=True, plugin=PLUGINS.get(name, name), arguments=(
            name, '--param-file', str(path), '--controller-manager', MANAGER,
            '--controller-manager-timeout', str(MANAGER_TIMEOUT),
            *(['--inactive'] if name == EFFORTS else []))) for name in names]


def single_joints(robot: Model) -> list[str]:
    """Return the joints with one velocity, which a controller can command, in order."""
    return [joint.name for joint, _, _ in robot.moving_joints if joint.nv == 1]


def known_joints(given: Mapping[str, Any], controller: str, robot: Model, path: Path) -> list[str]:
    """Return the joints of a controller, in order, or raise LaunchError."""
    joints, known = given.get('joints'), single_joints(robot)
    if not isinstance(joints, list) or not joints:
        raise LaunchError(f'{path}: {controller} has no joints; those of the robot are '
                          + listed(known))
    for name in joints:
        if name not in known or joints.count(name) > 1:
            raise LaunchError(f"{path}: {controller} names the joint '{name}' " + (
                'twice' if name in known else 'which the robot lacks; it has ' + listed(known)))
    return joints


def with_mock_hardware(text: str, positions: tuple[float, ...] | None = None) -> str:
    """
    Return a URDF whose hardware is replaced by mock components for all joints with one velocity.

    They accept efforts and report them as measured; positions do not change. The default of
    `positions`, rad or m, is zero, or the middle of limits that exclude zero.

    """
    robot, root = load_urdf_string(text), parse(text, comments=True)
    names, rest = single_joints(robot), dict(zip(robot.velocity_names, rest_position(robot)))
    rest.update(zip(names, positions or ()))
    root.append(E.ros2_control(
        E.hardware(E.plugin('mock_components/GenericSystem')),
        *(E.joint(E.command_interface(name='effort'),
                  E.state_interface(E.param(f'{rest[name]:.9g}', name='initial_value'),
                                    name='position'),
                  *(E.state_interface(name=other) for other in INTERFACES[1:]), name=name)
          for name in names), name='mock', type='system'))
    return etree.tostring(root, encoding='unicode')


def check_interfaces(text: str, joints: list[str], states: Sequence[str]) -> None:
    """Raise LaunchError if the hardware of a URDF lacks effort commands or states of a joint."""
    found = {joint.get('name'): joint for joint in parse(text).iterfind('ros2_control/joint')}
    needed = [('command_interface', 'effort', ': this hardware cannot be driven by torques'),
              *(('state_interface', state, UNMEASURED if state == 'effort' else '')
                for state in states)]
    for (kind, interface, remedy), name in product(needed, joints):
        if name not in found or found[name].find(f'{kind}[@name="{interface}"]') is None:
            raise LaunchError(f"the element ros2_control of the URDF has no {kind} '{interface}' "
                              f"for the joint '{name}'{remedy}")
