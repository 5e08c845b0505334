# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Files that follow from the declarations of parameters and control laws; `make params` writes them.

They are the files of defaults, config/*.param.yaml, and the table of modes in
doc/how_to/torque_controller.md.

"""

from pathlib import Path
import textwrap
from types import NoneType

from rbd_ros.control import JointReference
from rbd_ros.ros.control.control_settings import LAWS, parameter_name
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.torque_controller import TorqueController

ROOT = Path(__file__).parents[1]
WIDTH = 99
LICENSE = ('# Copyright 2026 The rbd_ros authors', '# SPDX-License-Identifier: Apache-2.0')
HEADS = {
    'dynamics': ('Parameters of the dynamics node with their defaults, written by `make params` '
                 'from the code. Comments are lists that are empty by default, and parameters '
                 'that the files in config/robots set (robot:=ur at launch). Copy this file, and '
                 'name the copy:', '   ros2 launch rbd_ros dynamics.launch.py '
                 'params:=my.param.yaml'),
    'torque_controller': ('Parameters that the torque controller adds to those in '
                          'dynamics.param.yaml, or has other defaults for, written by `make '
                          'params` from the code. All of them may be set while the node runs: '
                          'the robot is then held where it is.',)}
BEGIN, END = '<!-- modes: written by `make params` -->', '<!-- end of modes -->'


def comment(text, indent=''):
    """Return the lines of a comment."""
    return textwrap.wrap(text, WIDTH, initial_indent=f'{indent}# ',
                         subsequent_indent=f'{indent}# ', break_on_hyphens=False)


def yaml_value(name, setting):
    """Return the default of a parameter as YAML, or an example in place of an empty list."""
    default = setting.default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return default or '""'
    if name == 'ignore':
        return '[equality]'
    if default == ():
        entry = 'link' if name.endswith('links') else 'joint'
        return f'[{entry}_1, {entry}_2]' if setting.entry is str else '[1.0, 1.0]'
    return repr(list(default) if isinstance(default, tuple) else default)


def parameter_file(name, settings):
    """Return the text of a file of defaults."""
    lines = [*LICENSE]
    for text in HEADS[name]:
        lines += [f'#{text}'] if text.startswith(' ') else comment(text)
    lines += ['/**:', '  ros__parameters:']
    for parameter, setting in settings.items():
        text = setting.description
        if setting.choices:
            text += f" One of {', '.join(setting.choices)}."
        mark = '# ' if setting.of_robot or setting.default == () else ''
        lines += [*comment(text, '    '),
                  f'    {mark}{parameter}: {yaml_value(parameter, setting)}', '']
    return '\n'.join(lines[:-1]) + '\n'


def modes_table():
    """Return the Markdown table of control modes."""
    lines = ['| mode | law | gains | reference |', '|---|---|---|---|']
    for mode, law in LAWS.items():
        gains = ', '.join(f'`{parameter_name(mode, gain)}`' for gain in law.gains)
        topic = ('none' if law.reference_type is NoneType else '`~/joint_trajectory`'
                 if law.reference_type is JointReference else '`~/pose_target`')
        lines.append(f'| `{mode}` | {law.purpose} | {gains} | {topic} |')
    return '\n'.join(lines)


def files():
    """Return the texts of all files by their paths."""
    dynamics = DynamicsNode.settings
    added = {name: one for name, one in TorqueController.settings.items()
             if dynamics.get(name) != one}
    page = ROOT / 'doc/how_to/torque_controller.md'
    before, _, rest = page.read_text(encoding='utf-8').partition(BEGIN)
    _, _, after = rest.partition(END)
    return {ROOT / 'config/dynamics.param.yaml': parameter_file('dynamics', dynamics),
            ROOT / 'config/torque_controller.param.yaml': parameter_file('torque_controller',
                                                                         added),
            page: f'{before}{BEGIN}\n{modes_table()}\n{END}{after}'}


if __name__ == '__main__':
    for where, written in files().items():
        where.write_text(written, encoding='utf-8')
