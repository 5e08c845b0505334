# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of the launch files: one table, from which help, checks and values derive."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
import re
from typing import Any, NamedTuple

from rbd_ros._internal.text import did_you_mean
from rbd_ros.control.laws import control_laws
from rbd_ros.ros.launch.launch_files import LaunchError
from rbd_ros.ros.runtime.share_directory import share

ROS_NAME = r'(~?/?([A-Za-z_]\w*/)*[A-Za-z_]\w*)?'    # Empty, or the name of a topic or namespace
SWITCH = {**dict.fromkeys(('true', '1', 'yes', 'on'), True),
          **dict.fromkeys(('false', '0', 'no', 'off'), False)}
# Names in the launch files of Universal Robots, and ours.
ALIASES = {'launch_rviz': 'rviz', 'tf_prefix': 'frame_prefix', 'controllers_file': 'controllers'}


class Argument(NamedTuple):
    """An argument of a launch file, and the values that it can have."""

    default: str
    description: str
    kind: str = 'text'    # or the name of a topic or namespace, a switch, or a choice
    # Of a choice, all values but the empty one; of a switch, values besides true and false.
    more: Callable[[], Iterable[str]] = tuple

    @property
    def choices(self) -> list[str] | None:
        """Return the values of a choice, the empty one first, which launch checks; None: any."""
        return ['', *self.more()] if self.kind == 'choice' else None

    def value(self, name: str, text: str) -> Any:
        """Return a text as a value: bool or None (empty) for a switch; or raise LaunchError."""
        if self.kind == 'name' and not re.fullmatch(ROS_NAME, text):
            raise LaunchError(f"{name}: '{text}' is not a valid name in ROS: use letters, digits "
                              'and _, separated by /')
        if self.kind != 'switch':
            return text
        known = {**SWITCH, **{one: one for one in self.more()},
                 **({} if self.default else {'': None})}
        if text.strip().lower() not in known:
            raise LaunchError(f"{name} must be {' or '.join(('true', 'false', *self.more()))}, "
                              f"got '{text}'")
        return known[text.strip().lower()]


def presets() -> dict[str, Path]:
    """Return the files with the effort conventions of robots, by robot."""
    return {path.stem: path for path in sorted(share('config', 'robots').glob('*.yaml'))}


def with_aliases(arguments: Mapping[str, Argument]) -> dict[str, Argument]:
    """Return launch arguments, also under their other names."""
    return {**arguments, **{alias: Argument('', f'another name of {name}')
                            for alias, name in ALIASES.items() if name in arguments}}


DYNAMICS = with_aliases({
    'model': Argument('', 'URDF, xacro or MJCF file of the robot; empty: the demo arm; none: '
                      'another node publishes the description'),
    'xacro_args': Argument('', 'arguments of a xacro file, as in  xacro_args:="mass:=5 '
                           'side:=left"'),
    'joint_states': Argument('joint_states', 'topic of the joint states', 'name'),
    'commands': Argument('', 'topic of the effort commands, for dynamics node and simulated '
                         'robot; empty: ~/effort_commands', 'name'),
    'params': Argument('', 'parameter file of the dynamics node, or several separated by ":", '
                       'where later ones override earlier ones; empty: the defaults'),
    'robot': Argument('', 'effort convention of the robot, a file in config/robots, which params '
                      'overrides; empty: the defaults', 'choice', presets),
    'mode': Argument('', 'control mode: starts the torque controller in place of the dynamics '
                     'node; empty: none', 'choice', control_laws),
    'task_link': Argument('', 'link whose motion in space is computed or controlled; empty: as '
                          'in params'),
    'frame_prefix': Argument('', 'prefix of link names in frame names'),
    'namespace': Argument('', 'namespace of all nodes', 'name'),
    'use_sim_time': Argument('false', 'whether time comes from /clock, true or false', 'switch'),
    'sim': Argument('', 'whether to simulate the robot: true, false, or mujoco for its motion by '
                    'MuJoCo; empty: true for the demo arm alone', 'switch', lambda: ('mujoco',)),
    'robot_state_publisher': Argument(
        '', 'whether to start robot_state_publisher, which publishes the description and the '
        'frames that RViz needs, true or false; empty: only if no other node publishes the '
        'description, and for MJCF only with RViz', 'switch'),
    'autostart': Argument('', 'whether the node configures and activates itself, true or false; '
                          'empty: as in params', 'switch'),
    'rviz': Argument('false', 'whether to start RViz, true or false', 'switch'),
    'rviz_config_file': Argument('', 'configuration of RViz; empty: config/dynamics.rviz, fitted '
                                 'to the robot'),
    'view': Argument('false', 'whether to show the robot in a browser, at http://localhost:8080, '
                     'true or false', 'switch')})
BRINGUP = with_aliases({**{name: DYNAMICS[name] for name in (
    'model', 'xacro_args', 'params', 'robot', 'mode', 'task_link', 'frame_prefix', 'autostart',
    'rviz', 'rviz_config_file', 'namespace', 'use_sim_time')},
    'model': Argument('', 'URDF or xacro file of the robot; empty: the demo arm. If it has no '
                      'element ros2_control, the hardware is replaced by mock components'),
    'controllers': Argument('', 'parameter file of controller_manager, joint_state_broadcaster '
                            'and effort_controller; empty: the defaults, with the joints of the '
                            'robot'),
    'controller': Argument('', 'package that rbd_ros generate --controller has written: this '
                           'controller in place of a node, commanded by '
                           'joint_trajectory_controller; empty: none')})


def complete(values: Mapping[str, str], arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """Return the checked values of all arguments, with defaults for the missing ones."""
    if unknown := sorted(set(values) - set(arguments)):
        raise LaunchError(f"there is no argument '{unknown[0]}'" + did_you_mean(
            unknown[0], list(arguments), ', only ' + ', '.join(arguments)))
    texts = {name: values.get(name, one.default) for name, one in arguments.items()}
    for alias, name in ALIASES.items():
        if other := texts.pop(alias, ''):
            if texts[name] not in (arguments[name].default, other):
                raise LaunchError(f"{alias} is another name of {name}, but they are '{other}' and "
                                  f"'{texts[name]}': give one of them")
            texts[name] = other
    return {name: arguments[name].value(name, text) for name, text in texts.items()}


def full_name(values: Mapping[str, Any], name: str) -> str:
    """Return the name of a node or topic with its namespace."""
    return '/'.join(['', *filter(None, values['namespace'].split('/')), name])
