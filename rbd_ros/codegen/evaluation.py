# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The operations of a graph: as texts, and carried out on the scalars of another library."""

from collections.abc import Callable, Mapping, Sequence
import operator
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.codegen.graph import Graph

OPERATORS: Mapping[str, Callable[..., Any]] = {
    'add': operator.add, 'sub': operator.sub, 'mul': operator.mul, 'div': operator.truediv,
    'neg': operator.neg, 'abs': abs}
FUNCTIONS = 'sqrt', 'sin', 'cos', 'exp', 'tanh', 'sign'     # as they are named in libraries
# How tightly operators bind; operands of weaker ones are in parentheses.
SUM, PRODUCT, ATOM = range(3)
INFIX = {'add': ('+', SUM), 'sub': ('-', SUM), 'mul': ('*', PRODUCT), 'div': ('/', PRODUCT)}


class Expression(NamedTuple):
    """The text of a value, how tightly its last operator binds, and how many it has."""

    text: str
    binding: int
    length: int = 0

    def within(self, binding: int) -> str:
        """Return the text as an operand, in parentheses if it binds less tightly."""
        return self.text if self.binding >= binding else f'({self.text})'


def applied(kind: str, operands: Sequence[Expression], function: Callable[[str], str]
            ) -> Expression:
    """Return an operation on others in C or Python; `function` gives the name of a function."""
    length = 1 + sum(one.length for one in operands)
    if kind in INFIX:
        sign, binding = INFIX[kind]
        # Operands on the right are evaluated first, as they were recorded.
        sign = f' {sign} ' if binding == SUM else sign
        return Expression(f'{operands[0].within(binding)}{sign}{operands[1].within(binding + 1)}',
                          binding, length)
    if kind == 'neg':
        return Expression(f'-{operands[0].within(ATOM)}', PRODUCT, length)
    return Expression(f'{function(kind)}({operands[0].text})', ATOM, length)


def evaluate(graph: Graph, inputs: Sequence[Sequence[Any]],
             library: Any, constant: Callable[[float], Any]) -> list[np.ndarray]:
    """Return the outputs, given the entries of each input and a library that has FUNCTIONS."""
    known = {**OPERATORS, **{kind: getattr(library, kind) for kind in FUNCTIONS}}
    values: list[Any] = []
    for kind, arguments in graph.operations:
        if kind == 'constant':
            values.append(constant(*arguments))
        elif kind == 'input':
            number, index = arguments
            values.append(inputs[number][index])
        else:
            values.append(known[kind](*(values[k] for k in arguments)))
    scalars = np.fromiter(values, object, len(values))
    return [scalars[numbers] for numbers in graph.results]
