# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Stubs, which `make stubs` writes, of all that type checkers and editors cannot follow.

These are the packages whose names are imported at their first use by
`rbd_ros._internal.lazy_exports.export`, the methods that `rbd_ros.workspace.quantity` adds to
`Workspace`, and the functions of `rbd_ros.batch` that come from its declarations.

"""

import ast
import importlib
import inspect
from pathlib import Path
from textwrap import indent, wrap

import numpy as np

PACKAGE = Path(__file__).parents[1] / 'rbd_ros'
HEAD = """\
# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

"""
FORMS_HEAD = HEAD.replace('__init__.py', 'declarations of quantities') + '# ruff: noqa: E501\n\n'


def exports(source):
    """Return the names that an ``__init__.py`` exports lazily, by module; None: it does not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'export':
            return ast.literal_eval(node.args[1])
    return None


def stub(package, names):
    """Return the stub of a package, given the names that it exports by module."""
    lines = []
    for module, held in sorted(names.items()):
        source = module if module.startswith('rbd_ros.') else f'{package}.{module}'
        if not held:
            lines.append(f'from {package} import {module} as {module}')
        else:
            one = f"from {source} import {', '.join(f'{name} as {name}' for name in held)}"
            lines += [one] if len(one) <= 99 else [
                line.replace('( ', '(').replace('~', ' ') for line in wrap(
                    f'from~{source}~import~( '      # ~: no break here
                    + ', '.join(f'{name}~as~{name}' for name in held) + ')', 99,
                    subsequent_indent='    ', break_on_hyphens=False)]
    version = '\n__version__: str\n' if package == 'rbd_ros' else ''
    return HEAD + '\n'.join(lines) + '\n' + version


# -- Forms of quantities. ------------------------------------------------------------------------

def imports_of(module):
    """Return the statement that imports each name into a module."""
    found = {}
    for node in ast.parse(inspect.getsource(module)).body:
        for alias in getattr(node, 'names', []):
            name = alias.asname or alias.name
            found[name] = (
                f'from {node.module} import {name}' if isinstance(node, ast.ImportFrom)
                else f'import {alias.name} as {name}' if alias.asname else f'import {name}')
    return found


def definition(function):
    """Return the definition of a function, and the imports that its annotations need."""
    node = ast.parse(inspect.getsource(function).lstrip()).body[0]
    imports = imports_of(inspect.getmodule(function))
    parts = [node.returns, *(one.annotation for one in (*node.args.args, *node.args.kwonlyargs))]
    used = {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}
    return node, {imports[name] for name in used if name in imports}


def written(name, arguments, returns, doc, margin=''):
    """Return the lines of a function in a stub."""
    tail = f') -> {returns}:'.replace(' ', '~')     # stays on one line
    head = [line.replace('~', ' ') for line in wrap(
        f'def {name}({arguments}{tail}', 95, break_on_hyphens=False, subsequent_indent=' ' * 8)]
    doc = doc.strip()
    text = indent(f'"""\n{doc}\n\n"""' if '\n' in doc else f'"""{doc}"""', '    ',
                  lambda line: line.strip() != '')
    return indent('\n'.join([*head, text]) + '\n', margin, lambda line: line.strip() != '')


def workspace_stub():
    """Return the stub of `Workspace`, with the methods that quantities add to it."""
    module = importlib.import_module('rbd_ros.workspace.workspace')
    importlib.import_module('rbd_ros.quantities')
    workspace = module.Workspace
    imports = {'from typing import Any', 'from rbd_ros.model.model import Model',
               'from rbd_ros.workspace.robot_arrays import RobotArrays'}
    methods = []
    for name, method in sorted(vars(workspace).items()):
        if inspect.isfunction(method) and method.__module__ != module.__name__:
            node, more = definition(method)
            node.args.args[0] = ast.arg('self')
            methods.append(written(name, ast.unparse(node.args), ast.unparse(node.returns),
                                   method.__doc__ or f'Do the work of `{name.strip("_")}`.',
                                   '    '))
            imports |= more
    imports.discard('from rbd_ros.workspace.workspace import Workspace')
    return '\n'.join([
        FORMS_HEAD + import_lines(imports), '',
        'class Workspace(RobotArrays):',
        indent(f'"""\n{inspect.getdoc(workspace)}\n"""', '    ', lambda line: line.strip() != ''),
        '', '    def __new__(cls, model: Model, **options: Any) -> Workspace: ...', '',
        *methods, 'class CoupledWorkspace(Workspace): ...', '',
        'class ClosedWorkspace(Workspace):',
        '    _A: np.ndarray',
        '    _G: np.ndarray',
        '    def _at(self, q: ArrayLike) -> None: ...',
        '    def _move(self, q: ArrayLike, v: ArrayLike, *a: ArrayLike) -> None: ...',
        '    def _in_tree(self, q: ArrayLike, **vectors: ArrayLike) -> list[Any]: ...',
        '    def _torques(self, tau: np.ndarray) -> np.ndarray: ...', '',
        'def workspace_of(model: Model) -> Workspace: ...', ''])


def batch_stub():
    """Return the stub of the functions for many states."""
    functions = importlib.import_module('rbd_ros.batch.functions')
    imports = {'from rbd_ros.batch.threads import Progress',
               'from numpy.typing import ArrayLike', 'from rbd_ros.model.model import Model'}
    found = []
    for name in sorted(functions.__all__):
        quantity = functions.QUANTITIES[name]
        _, more = definition(quantity.method)
        returns, task = quantity.function.__signature__.return_annotation, quantity.task
        if not isinstance(returns, str):
            returns = 'np.ndarray' if returns is np.ndarray else returns.__name__
        imports |= {one for one in more if not one.endswith((
            'import Factorization', 'import RobotArrays', 'import Workspace'))}
        arguments = ['model: Model', *(f'{label}: ArrayLike' for label in task.labels),
                     *['link: str'] * (task.of_link is not None), '*',
                     *['external_wrenches: Wrenches | None = None'] * task.wrenched,
                     f'out: {returns} | None = None', 'threads: int | None = None',
                     'progress: Progress | None = None']
        found.append(written(name, ', '.join(arguments), returns,
                             getattr(functions, name).__doc__))
    return '\n'.join([
        FORMS_HEAD + import_lines(imports), '',
        *found])


def import_lines(imports):
    """Return import statements in the order of their modules."""
    return '\n'.join(sorted(imports, key=lambda line: (line.split()[1], line))) + '\n'


def stubs():
    """Return the stubs of all packages by path."""
    found = {}
    for path in sorted(PACKAGE.rglob('__init__.py')):
        names = exports(path.read_text(encoding='utf-8'))
        if names is not None:
            package = '.'.join(path.parent.relative_to(PACKAGE.parent).parts)
            found[path.with_suffix('.pyi')] = stub(package, names)
    found[PACKAGE / 'workspace/workspace.pyi'] = workspace_stub()
    found[PACKAGE / 'batch/functions.pyi'] = batch_stub()
    return found


if __name__ == '__main__':
    for where, text in stubs().items():
        where.write_text(text, encoding='utf-8')
