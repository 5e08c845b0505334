# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Write stubs of the packages that import their names lazily.

A type checker cannot follow `rbd_ros._internal.lazy_exports.export`; it reads the
``__init__.pyi`` next to each such ``__init__.py``, which `make stubs` generates from it.

"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / 'rbd_ros'
HEAD = """\
# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

"""


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
        elif len(held) == 1:
            lines.append(f'from {source} import {held[0]} as {held[0]}')
        else:
            lines += [f'from {source} import (',
                      *(f'    {name} as {name},' for name in held), ')']
    version = '\n__version__: str\n' if package == 'rbd_ros' else ''
    return HEAD + '\n'.join(lines) + '\n' + version


def stubs():
    """Return the stubs of all packages by path."""
    found = {}
    for path in sorted(PACKAGE.rglob('__init__.py')):
        names = exports(path.read_text(encoding='utf-8'))
        if names is not None:
            package = '.'.join(path.parent.relative_to(PACKAGE.parent).parts)
            found[path.with_suffix('.pyi')] = stub(package, names)
    return found


if __name__ == '__main__':
    for where, text in stubs().items():
        where.write_text(text, encoding='utf-8')
