# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Write the pages that follow from the code to doc/generated, for Sphinx.

`main` is called by conf.py. The reference of the library has one page for each folder of rbd_ros/
and for each of its public modules; that of the node is what a node in this process says about
itself. Nothing here names a function, a topic, a service or a parameter.

"""

import ast
import contextlib
import importlib
import inspect
import os
from pathlib import Path
import re
import shutil

import rbd_ros

HERE = Path(__file__).parent
ROOT, GENERATED = HERE.parent, HERE / 'generated'
PACKAGE = ROOT / 'rbd_ros'

# Pages of the reference, in this order; other modules of rbd_ros/ are listed behind them as
# internal.
PAGES = {
    'model': 'The robot as data',
    'workspace': 'Workspaces, for control loops',
    'dynamics': 'Dynamics',
    'kinematics': 'Kinematics',
    'derivatives': 'Derivatives',
    'batch': 'Many states at once',
    'analysis': 'Analysis',
    'identification': 'Identification',
    'control': 'Control laws',
    'simulation': 'Simulation',
    'textbook': 'The equations as the texts have them',
    'view': 'Pages in a browser',
    'errors': 'Errors',
    'cli': 'The command',
    'kernels': 'Kernels',
    'ros': 'ROS',
}
# Of these the docstrings of the modules alone: what they hold is compiled, and not for users.
MODULES_ALONE = ('kernels',)


def main():
    """Write all pages anew."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    (GENERATED / 'api').mkdir(parents=True)
    write_reference()
    (GENERATED / 'node.md').write_text(node_page(), encoding='utf-8')
    (GENERATED / 'messages.md').write_text(messages_page(), encoding='utf-8')
    (GENERATED / 'examples.md').write_text(examples_page(), encoding='utf-8')


# -- Examples. -----------------------------------------------------------------------------------

def examples_page():
    """Return the page of the examples: what each says of itself, and its code."""
    lines = ['# Examples', '', 'One idea each; they are in `examples/` of the repository.', '']
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
    """Return the dotted names of all modules of rbd_ros, by the folder or file they belong to."""
    found = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        parts = path.relative_to(PACKAGE).with_suffix('').parts
        if parts[-1] == '__init__' or path.name.startswith('_'):
            continue
        found.setdefault(parts[0], []).append('.'.join(('rbd_ros', *parts)))
    return found


def write_reference():
    """Write a page for each folder and public module, and one that lists them."""
    found = modules()
    order = [name for name in PAGES if name in found]
    internal = [name for name in found if name not in PAGES]
    for name in order:
        _write_page(name, PAGES[name], found[name])
    _write_page('internal', 'Internal modules',
                [module for name in internal for module in found[name]])
    lines = ['# Library reference', '',
             'Pages are grouped as the folders of `rbd_ros/` are.', '',
             '```{toctree}', ':maxdepth: 1', '',
             *(f'{name}' for name in (*order, 'internal')), '```', '',
             '## Names at the top', '',
             'What `rbd_ros.X` gives, and the module that it comes from.', '',
             '| name | module | what it is |', '|---|---|---|']
    for name in sorted(rbd_ros.__all__, key=str.lower):
        thing = getattr(rbd_ros, name)
        if inspect.ismodule(thing):
            lines.append(f'| {{py:mod}}`{name} <{thing.__name__}>` | | {_summary(thing)} |')
        elif hasattr(thing, '__module__'):
            module, role = thing.__module__, 'class' if inspect.isclass(thing) else 'func'
            lines.append(f'| {{py:{role}}}`{name} <{module}.{name}>` | `{module}` '
                         f'| {_summary(thing)} |')
        else:
            lines.append(f'| `{name}` | | {thing} |')
    (GENERATED / 'api' / 'index.md').write_text('\n'.join(lines) + '\n', encoding='utf-8')


def _summary(thing):
    """Return the first sentence of a docstring, fit for a table."""
    text = (inspect.getdoc(thing) or '').split('\n\n')[0]
    return ' '.join(text.split()).replace('|', r'\|').replace('*', r'\*')


def _write_page(name, title, members):
    """Write a page with the docstrings of modules."""
    lines = [title, '=' * len(title), '']
    for module in members:
        try:
            importlib.import_module(module)
        except ImportError as error:
            lines += [f'``{module}`` is left out: {error}.', '']
            continue
        if len(members) > 1:
            heading = module.removeprefix('rbd_ros.')
            lines += [heading, '-' * len(heading), '']
        lines += [f'.. automodule:: {module}']
        lines += [] if name in MODULES_ALONE else ['   :members:']
        lines.append('')
    (GENERATED / 'api' / f'{name}.rst').write_text('\n'.join(lines), encoding='utf-8')


# -- Docstrings. ---------------------------------------------------------------------------------

def mark_literal_blocks(app, what, name, thing, options, lines):
    """Mark indented text in docstrings, up to the first section of numpydoc, as literal."""
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
    """Return a line in which underscores and bars outside of backquotes mean themselves."""
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
    """Leave out fields of named tuples, which the docstring of the class lists, and imports."""
    is_field = type(thing).__name__ == '_tuplegetter'
    return True if is_field or inspect.isbuiltin(thing) else None


# -- The node. -----------------------------------------------------------------------------------

@contextlib.contextmanager
def running_node():
    """Give a dynamics node that uses all it can, in a corner of the network of its own."""
    from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
    import rclpy
    from rclpy.parameter import Parameter

    saved = {name: os.environ.get(name) for name in ('ROS_AUTOMATIC_DISCOVERY_RANGE',)}
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'OFF'
    rclpy.init()
    try:
        node = DynamicsNode(parameter_overrides=[Parameter('floating_base', value=True)])
        yield node
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
        for name, value in saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def node_page():
    """Return the page about topics, services and parameters."""
    lines = ['# Topics, services and parameters of the node', '']
    try:
        with running_node() as node:
            return '\n'.join([*lines, *_topics(node), *_services(node), *_parameters(node)]) + '\n'
    except ImportError as error:
        return '\n'.join([*lines, f'This page is made from the running node, and was built where '
                          f'ROS is not installed ({error}). The README has the tables.', ''])


def said_in_readme():
    """Return what the README's tables of topics and services say about names in backquotes."""
    said, table = {}, ''
    for line in (ROOT / 'README.md').read_text(encoding='utf-8').splitlines():
        cells = [cell.strip() for cell in line.strip('|').split(' | ')]
        if not line.startswith('|'):
            table = ''
        elif not table:
            table = cells[0]
        elif table in ('topic', 'service'):
            for name in re.findall('`([^`]+)`', cells[0]):
                said.setdefault(name, cells[-1])
    return said


def _private(node, name):
    """Return a name as users of the node know it."""
    own = node.get_fully_qualified_name() + '/'
    return '~/' + name.removeprefix(own) if name.startswith(own) else name.lstrip('/')


def _type(kind):
    """Return how ROS writes a type, with a link if it is one of rbd_msgs."""
    package, _, folder = kind.__module__.split('.')[0], '', kind.__module__.split('.')[1]
    text = f'{package}/{folder}/{kind.__name__}'
    return f'[{text}](messages.md#{kind.__name__.lower()})' if package == 'rbd_msgs' else text


def _is_ours(kind):
    """Return whether something is not rclpy's own, which every node has."""
    return kind.__module__.split('.')[0] not in ('rcl_interfaces', 'lifecycle_msgs',
                                                 'type_description_interfaces', 'rosgraph_msgs')


def _topics(node):
    said = said_in_readme()
    yield from ('What follows is what the node says about itself, with the words of the README '
                'beside it. Names with `~` begin with the name of the node, `/dynamics`.', '',
                '## Topics that it hears', '', '| topic | type | |', '|---|---|---|')
    for one in node.subscriptions:
        if _is_ours(one.msg_type):
            name = _private(node, one.topic_name)
            yield f'| `{name}` | {_type(one.msg_type)} | {said.get(name, "")} |'
    yield from ('', '## Topics that it publishes', '', '| topic | type | |', '|---|---|---|')
    for one in node.publishers:
        if _is_ours(one.msg_type):
            name = _private(node, one.topic_name)
            text = said.get(name) or said.get('/' + name, '')
            yield f'| `{name}` | {_type(one.msg_type)} | {text} |'


def _services(node):
    said = said_in_readme()
    yield from ('', '## Services', '', '| service | type | |', '|---|---|---|')
    for one in node.services:
        if _is_ours(one.srv_type):
            name = _private(node, one.srv_name)
            yield f'| `{name}` | {_type(one.srv_type)} | {said.get(name, "")} |'
    yield from ('', 'Every response has `success` and `message`. Besides there are the services '
                'that rclpy gives every node for its parameters and its life cycle.')


def _parameters(node):
    from rbd_ros.ros.parameters.parameters import DESCRIPTIONS
    yield from ('', '## Parameters', '')
    rows = {True: [], False: []}
    for name, (default, *_) in DESCRIPTIONS.items():
        descriptor = node.describe_parameter(name)
        text = descriptor.description
        for limits in (*descriptor.floating_point_range, *descriptor.integer_range):
            text += f' From {limits.from_value:g} to {limits.to_value:g}.'
        if descriptor.additional_constraints:
            text += f' {descriptor.additional_constraints}.'
        shown = {'STRING_ARRAY': '[] (names)', 'DOUBLE_ARRAY': '[] (numbers)'}.get(
            getattr(default, 'name', ''), repr(default).lower() if isinstance(default, bool)
            else repr(default))
        rows[descriptor.read_only].append(f'| `{name}` | `{shown}` | {text} |')
    for read_only, heading in ((False, 'May be set while the node runs'),
                               (True, 'Read when the node is configured')):
        yield from (f'### {heading}', '', '| parameter | default | meaning |', '|---|---|---|',
                    *rows[read_only], '')


def messages_page():
    """Return the page with the messages and services of rbd_msgs."""
    lines = ['# Messages and services of rbd_msgs', '']
    for folder in ('msg', 'srv'):
        for path in sorted((ROOT / 'rbd_msgs' / folder).glob(f'*.{folder}')):
            lines += [f'## {path.stem}', '', f'`rbd_msgs/{folder}/{path.stem}`', '',
                      f'```{{literalinclude}} ../../rbd_msgs/{folder}/{path.name}',
                      ':language: text', '```', '']
    return '\n'.join(lines)
