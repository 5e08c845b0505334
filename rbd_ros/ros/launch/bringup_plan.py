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
from rbd_ros._internal.text import listed
from rbd_ros.model.files.mjcf import is_mjcf
from rbd_ros.model.files.urdf import load_urdf_string
from rbd_ros.model.files.xml_elements import parse
from rbd_ros.model.model import Model
from rbd_ros.ros.commands.controllers import (
    Call, controllers as running_controllers, differences, EFFORTS, MANAGER, STATES)
from rbd_ros.ros.launch.arguments import BRINGUP as ARGUMENTS, complete, full_name
from rbd_ros.ros.launch.launch_files import (
    description, existing_file, LaunchError, read_parameters, robot_of, values_for)
from rbd_ros.ros.launch.launch_plan import (
    already_described, Bringup, check_installed, DEMO_POSITIONS, Finder, FOLDER,
    Hearer, NONE, own_node, Process, tuned_files)
from rbd_ros.ros.nodes.simulated_robot import rest_position
from rbd_ros.ros.runtime.share_directory import share
import yaml

TYPE = 'forward_command_controller/ForwardCommandController'
BROADCASTER = 'joint_state_broadcaster/JointStateBroadcaster'
MIN_PATIENCE = 0.5    # s without commands, after which the controller is stopped
# Packages of the controllers, which are plugins.
PLUGINS = 'joint_state_broadcaster', 'forward_command_controller'
UNMEASURED = (': commands start at the measured efforts, unless params has blend_time: 0 and '
              'effort_rate_limit: 0, and the controller is not active yet')
TRAJECTORIES = 'joint_trajectory_controller'
OF_NODES = 'params', 'robot', 'mode', 'task_link', 'autostart'    # arguments
# s within which a controller manager must have appeared
MANAGER_TIMEOUT = 60
INTERFACES = 'position', 'velocity', 'effort'
# Switch all controllers of a request or none, as spawners request. Others may leave it open, and
# before Lyrical then deactivate the effort controller even if its successor cannot be activated.
STRICT = {'defaults.switch_controller.strictness': 'strict'}


def plan(values: Mapping[str, str], find: Finder | None = None, hear: Hearer | None = None,
         log: Callable[[str], object] = print, call: Call | None = None) -> Bringup:
    """
    Return the programs to start.

    As `launch_plan.plan`; `call` asks a controller manager that runs already, whose controllers
    must fit the file of controllers, or LaunchError is raised.

    """
    values, folder = complete(values, ARGUMENTS), Path(mkdtemp(dir=FOLDER.name))
    loaded = running_controllers(call) if call else None
    heard = hear(full_name(values, 'robot_description')) if (
        loaded is not None and hear) else None
    if not heard and (values['model'] == NONE or (loaded is not None and not values['model'])):
        raise LaunchError('model: ros2_control needs the description of the robot: '
                          'model:=robot.urdf')
    if heard:
        text, robot = heard[1], robot_of(heard[1], f'the description of {heard[0]}')
        if values['model'] not in ('', NONE):
            log(already_described(*heard, description(values['model'], values['xacro_args'])[0],
                                  values['model']))
    else:
        text, robot = description(values['model'], values['xacro_args'])
    if is_mjcf(text):
        raise LaunchError('model: ros2_control needs a URDF, this is MJCF')
    common = {'use_sim_time': values['use_sim_time']}
    is_demo = not (values['model'] or heard)
    plain = text
    if loaded is None and parse(text).find('ros2_control') is None:
        text = with_mock_hardware(text, DEMO_POSITIONS if is_demo else None)

    def first(path: Path) -> list[Process]:
        publisher = Process('robot_state_publisher', 'robot_state_publisher',
                            ({'robot_description': text, **common},))
        own_manager = Process('controller_manager', 'ros2_control_node',
                              (str(path), {**common, **STRICT}))
        return [*([] if heard else [publisher]), *([own_manager] if loaded is None else [])]
    if values['controller']:
        path, spawners = generated_controller(values, robot, text, loaded or {})
        bringup = Bringup(first(path), spawners)
        check_installed((*bringup.robot, *spawners), find, (PLUGINS[0], TRAJECTORIES), ARGUMENTS)
        return bringup
    if values['controllers']:
        path = existing_file('controllers', values['controllers'])
    else:
        controllers = read_parameters(share('config', 'ros2_control', 'controllers.yaml'))
        controllers[f'/**/{EFFORTS}']['ros__parameters']['joints'] = single_joints(robot)
        path = folder / 'controllers.yaml'
        path.write_text(yaml.safe_dump(controllers, sort_keys=False), encoding='utf-8')
    given, manager = (values_for([path], full_name(values, name)) for name in (EFFORTS, MANAGER))
    given['type'] = manager.get(f'{EFFORTS}.type', given.get('type'))
    joints = commanded_joints(given, robot, path)
    loading, active = check_loaded(loaded or {}, call, given)
    node, used = own_node(values, {**common, 'command_joints': joints},
                          (('~/effort_commands', f'{EFFORTS}/commands'),),
                          (*(tuned_files(values, plain, True, folder) if is_demo else ()),
                           share('config', 'ros2_control', 'commands.param.yaml')), robot)
    # Commands start at the measured efforts, at once if a controller acts on them already.
    starts_measured = used.blend_time > 0.0 or used.effort_rate_limit > 0.0
    check_interfaces(text, joints, INTERFACES if active or starts_measured else INTERFACES[:2])
    patience = MIN_PATIENCE + used.state_timeout + (
        2.0 / used.publish_rate if used.publish_rate else 0.0)
    guard = Process('rbd_ros', 'controller_guard', arguments=(f'{patience:g}', json.dumps(given)))
    bringup = Bringup(first(path), [_spawner(name, path, *options)
                                    for name, options in loading.items()], node, guard)
    check_installed((*bringup.robot, *bringup.loading, node, guard), find, PLUGINS, ARGUMENTS)
    return bringup


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
    path = existing_file(*(('controllers', values['controllers']) if values['controllers'] else
                           ('controller', str(folder / 'controllers.yaml'))))
    joints = values_for([path], full_name(values, TRAJECTORIES)).get('joints')
    known = single_joints(robot)
    if not isinstance(joints, list) or not set(joints) <= set(known):
        raise LaunchError(f'{path}: {TRAJECTORIES} has the joints {joints}, the robot has '
                          + listed(known))
    check_interfaces(text, joints, INTERFACES[:1])
    if there := [one for one in (name, TRAJECTORIES) if one in loaded]:
        raise LaunchError(f'{listed(there)} is loaded already, with parameters of its own: ros2 '
                          f'run controller_manager unspawner {" ".join(reversed(there))}')
    broadcasts = any(one.type == BROADCASTER and one.state == 'active' for one in loaded.values())
    return path, [_spawner(one, path) for one in (
        *(() if broadcasts else (STATES,)), name, TRAJECTORIES)]


def check_loaded(loaded: Mapping[str, Any], call: Call | None, given: Mapping[str, Any]
                 ) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Return the controllers to load with options, and whether the effort controller is active."""
    loading: dict[str, tuple[str, ...]] = {STATES: (), EFFORTS: ('--inactive',)}
    if any(one.type == BROADCASTER and one.state == 'active' for one in loaded.values()):
        del loading[STATES]
    elif STATES in loaded:
        raise LaunchError(f'{STATES} is loaded, but {loaded[STATES].state}: ros2 control '
                          f'switch_controllers --strict --activate {STATES}')
    if EFFORTS not in loaded or call is None:
        return loading, False
    if why := differences(call, loaded[EFFORTS], given):
        raise LaunchError(why)
    if loaded[EFFORTS].state != 'unconfigured':
        del loading[EFFORTS]    # spawners clean up and reconfigure what is configured
    return loading, loaded[EFFORTS].state == 'active'


def _spawner(controller: str, path: Path, *options: str) -> Process:
    return Process('controller_manager', 'spawner', arguments=(
        controller, '--param-file', str(path), '--controller-manager', MANAGER,
        '--controller-manager-timeout', str(MANAGER_TIMEOUT), *options), once=True)


def single_joints(robot: Model) -> list[str]:
    """Return the joints with one velocity, which a controller can command, in order."""
    return [joint.name for joint, _, _ in robot.moving_joints if joint.nv == 1]


def commanded_joints(given: Mapping[str, Any], robot: Model, path: Path) -> list[str]:
    """Return the joints of the effort controller, in order, or raise LaunchError."""
    if given['type'] != TYPE:
        raise LaunchError(f"{path}: {EFFORTS} must have the type {TYPE}, got {given['type']}")
    if given.get('interface_name') != 'effort':
        raise LaunchError(f'{path}: interface_name of {EFFORTS} must be effort, got '
                          f"{given.get('interface_name')}")
    joints, known = given.get('joints'), single_joints(robot)
    if not isinstance(joints, list) or not joints:
        raise LaunchError(f'{path}: {EFFORTS} has no joints; those of the robot are '
                          + listed(known))
    for name in joints:
        if name not in known or joints.count(name) > 1:
            raise LaunchError(f"{path}: {EFFORTS} names the joint '{name}' " + (
                'twice' if name in known else 'which the robot lacks; it has ' + listed(known)))
    return joints


def with_mock_hardware(text: str, positions: tuple[float, ...] | None = None) -> str:
    """
    Return a URDF whose hardware is replaced by mock components for all joints with one velocity.

    They accept efforts and report them as measured; positions do not change. The default of
    `positions`, rad or m, is zero, or the middle of limits that exclude zero.

    """
    robot, root = load_urdf_string(text), parse(text, comments=True)
    rest = dict(zip(robot.velocity_names, rest_position(robot)))
    names = single_joints(robot)
    if positions is not None:
        rest.update(zip(names, positions))
    system = etree.SubElement(root, 'ros2_control', name='mock', type='system')
    hardware = etree.SubElement(system, 'hardware')
    etree.SubElement(hardware, 'plugin').text = 'mock_components/GenericSystem'
    for name in names:
        joint = etree.SubElement(system, 'joint', name=name)
        etree.SubElement(joint, 'command_interface', name='effort')
        for interface in INTERFACES:
            state = etree.SubElement(joint, 'state_interface', name=interface)
            if interface == 'position':
                etree.SubElement(state, 'param', name='initial_value').text = f'{rest[name]:.9g}'
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
