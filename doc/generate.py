# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Generate the reference pages of the site from the code, into doc/generated.

conf.py calls `main`. The library reference has one page per public module, and one per folder of
rbd_ros/, which the index and the search for names leave out. Parameters are read from nodes that
run in this process, launch arguments from the launch plans. No function, parameter or argument is
named here.

"""

import ast
from collections.abc import Mapping
import contextlib
import importlib
import inspect
import os
from pathlib import Path
import re
import shutil

import rbd_ros

HERE = Path(__file__).parent
GENERATED = HERE / 'generated'
# docs.ros.org builds a copy of this folder.
PACKAGE = Path(rbd_ros.__file__).parent
ROOT = PACKAGE.parent

# Public modules, and the titles of their pages.
PUBLIC = {
    'rbd_ros': 'rbd_ros: robots and their dynamics',
    'rbd_ros.model': 'rbd_ros.model: the robot as data',
    'rbd_ros.analysis': 'rbd_ros.analysis: what follows from dynamics',
    'rbd_ros.batch': 'rbd_ros.batch: many states at once',
    'rbd_ros.identification': 'rbd_ros.identification: recordings and parameters',
    'rbd_ros.control': 'rbd_ros.control: laws and observers',
    'rbd_ros.simulation': 'rbd_ros.simulation: robots in MuJoCo',
    'rbd_ros.codegen': 'rbd_ros.codegen: generated code',
    'rbd_ros.casadi': 'rbd_ros.casadi: functions for CasADi',
    'rbd_ros.textbook': 'rbd_ros.textbook: the equations as printed in the texts',
}
# Pages with the docstrings of modules only: their contents are compiled, and not for users.
MODULES_ALONE = ('kernels',)


def main():
    """Replace all generated pages."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    (GENERATED / 'api').mkdir(parents=True)
    write_reference()
    (GENERATED / 'parameters.md').write_text(parameters_page(), encoding='utf-8')
    (GENERATED / 'messages.md').write_text(messages_page(), encoding='utf-8')
    (GENERATED / 'examples.md').write_text(examples_page(), encoding='utf-8')
    (GENERATED / 'quantities.md').write_text(quantities_page(), encoding='utf-8')


# -- Quantities. ---------------------------------------------------------------------------------

def quantities_page():
    """Return the page that says which quantity exists in which form, from the declarations."""
    from rbd_ros import analysis, batch
    from rbd_ros.quantities import QUANTITIES
    lines = ['# Quantities and their forms', '',
             'Each quantity is declared once; its forms have the same name, arguments and units. '
             'A function of `rbd_ros.analysis` is marked by *a*, one for many states that is the '
             'plain function itself by *rows*. Generated code is C (`rbd_ros generate`), source '
             'for NumPy, expressions of SymPy, and functions of CasADi. Where numba is missing, '
             'states are computed by the C of their robot, or interpreted. Derivatives in JAX and '
             'PyTorch are those of the library (*rule*), or of the operations.', '',
             '| quantity | function | `Workspace` | `batch` | without numba | generated code '
             '| CasADi | JAX, PyTorch | results |', '|---|---|---|---|---|---|---|---|---|']
    for name, one in sorted(QUANTITIES.items()):
        home = '' if one.function is None else '✓' if name in rbd_ros.__all__ else (
            '✓ *a*' if name in analysis.__all__ else '✓')
        many = '*rows*' if one.method is None else '✓' if hasattr(batch, name) else ''
        traced, results = [f'no: {one.untraced}'] + 2 * [''], ''
        if not one.untraced:
            traced = ['✓' if one.in_code == name else f'`{one.in_code}`', '✓',
                      '✓ *rule*' if one.derivatives else '✓']
            results = '; '.join(f'`{x}`: {text}' for x, text in one.results.items())
        alone = 'NumPy' if one.method is None else (
            f'interpreted: {one.untraced}' if one.untraced else 'C')
        lines.append(f"| `{name}` | {home} | {'✓' * bool(one.method)} | {many} | {alone} | "
                     + ' | '.join(traced) + f' | {results} |')
    return '\n'.join([*lines, ''])


# -- Examples. -----------------------------------------------------------------------------------

def examples_page():
    """Return the page of the examples: their docstrings and their code."""
    lines = ['# Examples', '', 'One idea each, in `examples/` of the repository.', '']
    for path in sorted((ROOT / 'examples').glob('[0-9][0-9]_*.py')):
        first = ast.parse(path.read_text(encoding='utf-8')).body[0]
        summary, _, rest = inspect.cleandoc(first.value.value).partition('\n\n')
        title, _, idea = ' '.join(summary.split()).partition(': ')
        lines += [f'## {int(path.name[:2])}. {title}', '',
                  f'{idea[:1].upper()}{idea[1:]} {" ".join(rest.split())}'.replace('``', '`'), '',
                  f'```{{literalinclude}} ../../examples/{path.name}',
                  f':lines: {first.end_lineno + 2}-', f':caption: examples/{path.name}', '```', '']
    return '\n'.join(lines)


# -- The library. --------------------------------------------------------------------------------

def modules():
    """Return the dotted names of all modules of rbd_ros by folder or file."""
    found = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        parts = path.relative_to(PACKAGE).with_suffix('').parts
        if parts[-1] == '__init__' or path.name.startswith('_'):
            continue
        found.setdefault(parts[0], []).append('.'.join(('rbd_ros', *parts)))
    return found


def write_reference():
    """Write a page for each public module and for each folder of rbd_ros/, and their index."""
    for home, title in PUBLIC.items():
        _write(home, public_page(home, title))
    folders = modules()
    for name, members in folders.items():
        _write(f'internal/{name}', internal_page(name, members))
    lines = ['# Library reference', '', 'Names that programs may use:', '',
             '```{toctree}', ':maxdepth: 1', '', *PUBLIC, '```', '',
             '`rbd_ros.jax` and `rbd_ros.torch` have the same functions: '
             '[derivatives in JAX and PyTorch](../../how_to/autodiff.md).', '',
             'All modules, for those who work on them, by folder of `rbd_ros/`:', '',
             '```{toctree}', ':maxdepth: 1', '', *(f'internal/{name}' for name in folders), '```']
    (GENERATED / 'api' / 'index.md').write_text('\n'.join(lines) + '\n', encoding='utf-8')


def _write(name, lines):
    """Write a page of the reference."""
    path = GENERATED / 'api' / f'{name}.rst'
    path.parent.mkdir(exist_ok=True)
    path.write_text('\n'.join([*lines, '']), encoding='utf-8')


def public_names(home):
    """Return the names that a module exports, without modules."""
    module = importlib.import_module(home)
    return sorted((name for name in module.__all__
                   if not inspect.ismodule(getattr(module, name))), key=str.lower)


def public_page(home, title):
    """Return the lines of the page of a public module: a table of its names, then each of them."""
    things = {name: getattr(importlib.import_module(home), name) for name in public_names(home)}
    lines = [title, '=' * len(title), '', f'.. automodule:: {home}', '',
             f'.. currentmodule:: {home}', '', '.. autosummary::', '   :nosignatures:', '',
             *(f'   {name}' for name, thing in things.items() if callable(thing)), '']
    for name, thing in things.items():
        if inspect.isclass(thing) and issubclass(thing, Exception):
            lines += [f'.. autoexception:: {name}']
        elif inspect.isclass(thing):
            lines += [f'.. autoclass:: {name}', '   :members:']
            lines += ['   :inherited-members:'] * (thing is rbd_ros.Workspace)
        elif callable(thing):
            lines += [f'.. autofunction:: {name}']
        else:
            what = ', '.join(map(str, thing)) if isinstance(thing, Mapping) else thing
            lines += [f'.. py:data:: {name}', '', f'   {what}']
        lines += ['']
    return lines


def internal_page(name, members):
    """Return the lines of a page with the docstrings of modules, which the index leaves out."""
    title = f'rbd_ros/{name}'
    lines = [title, '=' * len(title), '']
    for module in members:
        try:
            importlib.import_module(module)
        except ImportError as error:
            lines += [f'``{module}`` is missing on this page: {error}.', '']
            continue
        if len(members) > 1:
            heading = module.removeprefix('rbd_ros.')
            lines += [heading, '-' * len(heading), '']
        lines += [f'.. automodule:: {module}', '   :no-index:']
        lines += [] if name in MODULES_ALONE else ['   :members:']
        lines += ['']
    return lines


# -- Docstrings. ---------------------------------------------------------------------------------

def mark_literal_blocks(app, what, name, thing, options, lines):
    """Mark indented text before the first section of a docstring as literal."""
    result, sections = [], False
    for k, line in enumerate(lines):
        sections = sections or (k + 1 < len(lines) and re.fullmatch('-{3,}', lines[k + 1].strip()))
        begins = (not sections and line.startswith(' ') and k > 1 and not lines[k - 1].strip()
                  and not result[-2].startswith((' ', '-', '*', '#.'))
                  and not re.match(r'\d+\. ', _head(result)))
        if begins:
            result += ['::', '']
        literal = not sections and line.startswith(' ')
        result.append(line if literal else _escaped(line))
    lines[:] = result


def _escaped(line):
    """Return a line with underscores and bars escaped outside of backquotes."""
    parts = re.split('(`+[^`]*`+)', line)
    parts[::2] = [re.sub(r'(?<=\w)_(?!\w)|\|', r'\\\g<0>', part) for part in parts[::2]]
    return ''.join(parts)


def _head(lines):
    """Return the first line of the last paragraph."""
    head = ''
    for line in reversed(lines[:-1]):
        if not line.strip():
            break
        head = line
    return head


def skip_fields(app, what, name, thing, skip, options):
    """Skip imports, and fields of named tuples, which the docstring of the class lists."""
    is_field = type(thing).__name__ == '_tuplegetter'
    return True if is_field or inspect.isbuiltin(thing) else None


# -- Parameters and launch arguments. ------------------------------------------------------------

@contextlib.contextmanager
def running(make):
    """Start the node that a function makes, invisible to other processes."""
    import rclpy

    saved = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE')
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'OFF'
    rclpy.init()
    try:
        node = make()
        yield node
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
        os.environ.pop('ROS_AUTOMATIC_DISCOVERY_RANGE')
        if saved is not None:
            os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = saved


def parameters_page():
    """Return the page about the parameters of all nodes and the arguments of all launch files."""
    lines = ['# Parameters and launch arguments', '',
             'This page is generated from the code. `ros2 param describe /dynamics NAME` prints '
             'the same for a running node, `ros2 launch rbd_ros dynamics.launch.py --show-args` '
             'for a launch file. [Getting started](../getting_started_ros.md#launch-arguments) '
             'explains how to write them.', '']
    try:
        return '\n'.join([*lines, *_launch_arguments(), *_node_parameters(),
                          *_robot_parameters()]) + '\n'
    except ImportError as error:
        return '\n'.join([*lines, f'ROS was missing when this page was built ({error}); '
                          '`config/*.param.yaml` list the parameters.', ''])


def _launch_arguments():
    """Yield the lines about launch arguments."""
    from rbd_ros.ros.launch import bringup_plan, launch_plan
    common = bringup_plan.ARGUMENTS.items() & launch_plan.ARGUMENTS.items()
    yield from ('## Launch arguments', '')
    for file, plan in (('dynamics', launch_plan), ('bringup', bringup_plan)):
        yield from (f'### {file}.launch.py', '')
        if plan is bringup_plan:
            yield from ('As above: ' + ', '.join(f'`{name}`' for name, _ in sorted(common))
                        + '. In addition:', '')
        yield from _table((name, one.default, f'{one.description[:1].upper()}'
                           f'{one.description[1:].rstrip(".")}.')
                          for name, one in plan.ARGUMENTS.items()
                          if plan is launch_plan or (name, one) not in common)


def _table(rows):
    """Yield a table of names, defaults and meanings."""
    yield from ('| name | default | meaning |', '|---|---|---|')
    for name, default, text in rows:
        shown = f'`{default}`' if default != '' else ''
        yield f'| `{name}` | {shown} | {_escaped_markdown(text)} |'
    yield ''


def _escaped_markdown(text):
    """Return plain text for a cell of a table."""
    return re.sub(r'[*|<]', r'\\\g<0>', ' '.join(text.split()))


def _declared(node):
    """Return default, description and whether it is read-only of each parameter of a node."""
    found = {}
    for name in node._parameters:
        descriptor = node.describe_parameter(name)
        if not descriptor.description or name.startswith((
                'use_sim_time', 'start_type_description_service', 'qos_overrides.')):
            continue            # of rclpy
        text = descriptor.description
        for limits in (*descriptor.floating_point_range, *descriptor.integer_range):
            text += f' From {limits.from_value:g} to {limits.to_value:g}.'
        if descriptor.additional_constraints:
            text += f' {descriptor.additional_constraints}.'
        found[name] = (_shown(node.get_parameter_or(name).value), text, descriptor.read_only)
    return found


def _shown(default):
    """Return a default as YAML writes it; arrays without a value are empty."""
    if default is None:
        return '[]'
    if isinstance(default, bool):
        return str(default).lower()
    return default if isinstance(default, str) else str(
        default if isinstance(default, (int, float)) else list(default))


def _node_parameters():
    """Yield the lines about the parameters of the dynamics node and the torque controller."""
    from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
    from rbd_ros.ros.nodes.torque_controller import TorqueController
    with running(DynamicsNode) as node:
        dynamics = _declared(node)
    with running(TorqueController) as node:
        controller = _declared(node)
    yield from ('## The dynamics node', '')
    for read_only, heading in ((False, 'May be set while the node runs'),
                               (True, 'Read when the node is configured')):
        yield from (f'### {heading}', '')
        yield from _table((name, default, text) for name, (default, text, fixed)
                          in dynamics.items() if fixed == read_only)
    others = [f'`{name}` is `{controller[name][0]}`' for name, (default, *_) in dynamics.items()
              if controller[name][0] != default]
    yield from ('## The torque controller', '',
                'It has the parameters of the dynamics node'
                + (f' (by default {", ".join(others)})' if others else '')
                + ', and these. All may be set while the node runs.', '')
    yield from _table((name, default, text) for name, (default, text, _) in controller.items()
                      if name not in dynamics)


def _robot_parameters():
    """Yield the lines about the parameters of the simulated robots and the viewer."""
    from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
    from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
    from rbd_ros.ros.nodes.viewer import ViewerNode
    from rbd_ros.ros.parameters.parameters import declare
    from rbd_ros.ros.runtime.report import Log
    from rclpy.node import Node
    seen = {}
    for title, kind in (('The simulated robot', SimulatedRobot),
                        ('The simulated robot in MuJoCo', RobotInMujoco),
                        ('The viewer', ViewerNode)):
        with running(lambda: Node('parameters')) as node:
            declare(node, kind.parameters, Log(node.get_logger()))
            declared = _declared(node)
        yield from (f'## {title}', '')
        if kind is RobotInMujoco:
            yield from ('It has the parameters of the simulated robot, and these.', '')
        yield from _table((name, default, text) for name, (default, text, _) in declared.items()
                          if kind is not RobotInMujoco or name not in seen)
        seen = declared


def messages_page():
    """Return the page with the messages and services of rbd_msgs."""
    lines = ['# Messages and services of rbd_msgs', '']
    for folder in ('msg', 'srv'):
        for path in sorted((ROOT / 'rbd_msgs' / folder).glob(f'*.{folder}')):
            lines += [f'## {path.stem}', '', f'`rbd_msgs/{folder}/{path.stem}`', '',
                      f'```{{literalinclude}} ../../rbd_msgs/{folder}/{path.name}',
                      ':language: text', '```', '']
    return '\n'.join(lines)
