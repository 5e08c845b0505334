# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A graph as the source of a Python function that needs only NumPy; no errors are raised."""

from collections import Counter

import numpy as np
from rbd_ros.codegen.evaluation import applied, ATOM, Expression
from rbd_ros.codegen.graph import Graph

# Longest expression that becomes a part of another one, characters.
LONGEST = 34


def numpy_source(graph: Graph) -> str:
    """
    Return the source of a Python module with a function of arrays, for reading.

    Axes in front of those of an input are of states, and broadcast against those of the others.
    The results are those of the library up to rounding; arguments are not checked.

    Parameters
    ----------
    graph : Graph
        Of `rbd_ros.codegen.trace`.

    """
    inputs = [array.name for array in graph.inputs]
    assignments, expressions = _assignments(graph)
    states = [f'{name}.shape[:-1]' for name in inputs]
    lines = [f'"""The function {graph.name} of the robot {graph.robot!r}, by rbd_ros."""', '',
             'import numpy as np', '', '', f'def {graph.name}({", ".join(inputs)}):',
             *_docstring(graph), *(f'    {name} = np.asarray({name}, float)' for name in inputs),
             f'    states = np.broadcast_shapes({", ".join(states)})', *assignments]
    names = [f'{array.name}_result' if array.name in inputs else array.name
             for array in graph.outputs]
    for name, array, numbers in zip(names, graph.outputs, graph.results):
        shape = ', '.join(map(str, array.shape))
        lines.append(f'    {name} = np.zeros((*states, {shape}))')
        lines += [f'    {name}[{", ".join(["...", *map(str, index)])}] = {expressions[k].text}'
                  for index, k in np.ndenumerate(numbers)
                  if graph.operations[k] != ('constant', (0.0,))]
    return '\n'.join([*lines, f'    return {", ".join(names)}', ''])


def _docstring(graph: Graph) -> list[str]:
    lines = ['"""', f'Return {", ".join(array.name for array in graph.outputs)}.', '']
    for title, arrays in (('Parameters', graph.inputs), ('Returns', graph.outputs)):
        lines += [title, '-' * len(title)]
        for array in arrays:
            shape = ', '.join(['...', *map(str, array.shape)])
            lines += [f'{array.name} : ndarray, shape ({shape})', f'    {array.meaning}']
        lines.append('')
    return [f'    {line}'.rstrip() for line in [*lines, '"""']]


def _assignments(graph: Graph) -> tuple[list[str], list[Expression]]:
    """Return the assignments of intermediate results, and the expressions of all operations."""
    uses = Counter(k for operation in graph.operations for k in operation.operands)
    uses.update(int(k) for numbers in graph.results for k in numbers.ravel())
    lines: list[str] = []
    expressions: list[Expression] = []
    for k, (kind, arguments) in enumerate(graph.operations):
        name = ''
        if kind == 'constant':
            one = Expression(repr(arguments[0]), ATOM)
        elif kind == 'input':
            # An entry of an array is slower to read than a local name.
            array, index = graph.inputs[arguments[0]].name, arguments[1]
            one, name = Expression(f'{array}[..., {index}]', ATOM), f'{array}_{index}'
        else:
            one = applied(kind, [expressions[j] for j in arguments], 'np.{}'.format)
            if kind in ('sin', 'cos') and graph.operations[arguments[0]].kind == 'input':
                name = f'{kind}_{expressions[arguments[0]].text}'
            elif uses[k] > 1 or len(one.text) > LONGEST:
                name = f'x{k}'
        if name:
            lines.append(f'    {name} = {one.text}')
            one = Expression(name, ATOM)
        expressions.append(one)
    return lines, expressions
