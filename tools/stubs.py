# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Stubs, which `make stubs` writes, of the packages whose names are imported at their first use.

`rbd_ros._internal.lazy_exports.export` does that, which type checkers and editors cannot follow.
The stub of `rbd_ros.batch` defines the functions that derive from declarations of quantities.

"""

import ast
import importlib
import inspect
from pathlib import Path
import re
from textwrap import wrap

PACKAGE = Path(__file__).parents[1] / 'rbd_ros'
HEAD = """\
# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

"""
DERIVED = 'rbd_ros.batch.functions'
IMPORTS = """\
import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.functions import Loaded
from rbd_ros.batch.threads import Progress
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.results import Derivatives, DynamicsTerms
"""


def exports(source):
    """Return the names that an ``__init__.py`` exports lazily, by module; None: it does not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'export':
            return ast.literal_eval(node.args[1])
    return None


def stub(package, names):
    """Return the stub of a package, given the names that it exports by module."""
    lines, derived = [], []
    for module, held in sorted(names.items()):
        source = module if module.startswith('rbd_ros.') else f'{package}.{module}'
        if source == DERIVED:
            lines, derived = [IMPORTS + '\n'.join(lines)], definitions(held)
        elif not held:
            lines.append(f'from {package} import {module} as {module}')
        else:
            one = f"from {source} import {', '.join(f'{name} as {name}' for name in held)}"
            lines += [one] if len(one) <= 99 else [
                line.replace('( ', '(').replace('~', ' ') for line in wrap(
                    f'from~{source}~import~( '      # ~: no break here
                    + ', '.join(f'{name}~as~{name}' for name in held) + ')', 99,
                    subsequent_indent='    ', break_on_hyphens=False)]
    version = '\n__version__: str\n' if package == 'rbd_ros' else ''
    return HEAD + '\n'.join(lines + derived) + '\n' + version


def definitions(names):
    """Return the lines of the functions that derive from declarations of quantities."""
    functions, lines = importlib.import_module(DERIVED), []
    for name in sorted(names):
        function = getattr(functions, name)
        # ~: no break here
        form = re.sub(r"'(.*?)'", r'\1', str(inspect.signature(function))).replace(' ', '~')
        lines += ['', *(line.replace('~', ' ') for line in wrap(
            f"def~{name}{form.replace(',~', ', ')}:", 99, break_on_hyphens=False,
            subsequent_indent='        ')), *wrap(
                f'"""{function.__doc__.partition(chr(10))[0]}"""', 99, initial_indent='    ',
                subsequent_indent='    ')]
    return lines


def stubs():
    """Return the stubs of all packages by path."""
    found = {}
    for path in sorted(PACKAGE.rglob('__init__.py')):
        names = exports(path.read_text(encoding='utf-8'))
        if names is not None:
            package = '.'.join(path.parent.relative_to(PACKAGE.parent).parts)
            if DERIVED == f'{package}.functions':
                names['functions'] = importlib.import_module(DERIVED).__all__
            found[path.with_suffix('.pyi')] = stub(package, names)
    return found


if __name__ == '__main__':
    for where, text in stubs().items():
        where.write_text(text, encoding='utf-8')
