# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Files that follow from the declarations of parameters and control laws; `make params` writes them.

They are the files of defaults, config/*.param.yaml, and the tables of modes and of their smallest
state rates in doc/how_to/torque_controller.md.

"""

from math import ceil
from pathlib import Path
import textwrap
from types import NoneType

from demo_gains import launched, made, slowest_rate
import numpy as np
from rbd_ros.control import JointReference
from rbd_ros.ros.control.law_factory import LAWS, parameter_name
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
BEGIN, END = '<!-- {}: written by `make params` -->', '<!-- end of {} -->'
AGES = {'recent': 0.0, 'one period late': None, '20 ms late': 0.02, '40 ms late': 0.04}


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


def rates_table():
    """Return the Markdown table of the smallest state rates of the demo arm."""
    def text(rate):
        return 'none' if rate == np.inf else f'{ceil(0.999 * rate):d}'
    lines = [f"| mode | {' | '.join(AGES)} |", '|---' * (1 + len(AGES)) + '|']
    for mode in LAWS:
        of_arm = made(launched(mode))
        lines.append(f'| `{mode}` | ' + ' | '.join(
            text(slowest_rate(of_arm, age)) for age in AGES.values()) + ' |')
    return '\n'.join(lines)


def with_table(page, name, table):
    """Return a page with another table between two marks."""
    begin, end = BEGIN.format(name), END.format(name)
    before, _, rest = page.partition(begin)
    return f'{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}'


def files():
    """Return the texts of all files by their paths."""
    dynamics = DynamicsNode.settings
    added = {name: one for name, one in TorqueController.settings.items()
             if dynamics.get(name) != one}
    page = ROOT / 'doc/how_to/torque_controller.md'
    text = with_table(page.read_text(encoding='utf-8'), 'modes', modes_table())
    return {ROOT / 'config/dynamics.param.yaml': parameter_file('dynamics', dynamics),
            ROOT / 'config/torque_controller.param.yaml': parameter_file('torque_controller',
                                                                         added),
            page: with_table(text, 'rates', rates_table())}


if __name__ == '__main__':
    for where, written in files().items():
        where.write_text(written, encoding='utf-8')
