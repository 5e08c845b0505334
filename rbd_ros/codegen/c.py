# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Graphs as functions in C99.

Operations are statements in the order in which they were recorded; a result that only the next few
operations need is part of their expressions, in which compilers may contract a*b + c. Cosines and
sines come first, all at once. Long functions are cut into parts, which compilers take time
proportional to; results that other parts need are in an array, whose entries are reused.

"""

from collections.abc import Iterator, Sequence
import re
from typing import NamedTuple

import numpy as np
from rbd_ros.codegen.evaluation import applied, ATOM, Expression
from rbd_ros.codegen.graph import Graph

PART = 300          # statements of a part
NEAR = 30           # operations between a result and its only use up to which it is inlined
LENGTH = 8          # results in one expression
WIDTH = 99


class Style(NamedTuple):
    """How a robot's code is written."""

    prefix: str         # of all names
    single: bool        # float instead of double
    lanes: bool = False     # vectors of numbers, one of each state; see lanes.c.in

    @property
    def scalar(self) -> str:
        return 'float' if self.single else 'double'

    @property
    def real(self) -> str:
        return f'{self.prefix}_lanes' if self.lanes else self.scalar

    @property
    def restrict(self) -> str:
        return f'{self.prefix.upper()}_RESTRICT'

    def number(self, x: float) -> str:
        """Return a literal."""
        if not self.single:
            return repr(float(x))
        # Subnormal numbers become zero.
        return f'{float(x) if abs(x) >= np.finfo(np.float32).tiny else 0.0!r}f'

    def call(self, kind: str) -> str:
        """Return the name of a function of the C library, or of the same one in lanes."""
        if kind == 'sign':
            return f'{self.prefix}_sign'
        return (f'{self.prefix}_' * self.lanes + {'abs': 'fabs'}.get(kind, kind)
                + 'f' * self.single)

    def alone(self, number: str) -> str:
        """Return a literal as an expression of the type ``real``."""
        return f'({self.real}){{0}} + {number}' if self.lanes else number


def prototype(style: Style, graph: Graph) -> str:
    """Return the declaration of the function of a graph, without a semicolon."""
    arguments = [f'const {style.real} *{style.restrict} {one.name}' for one in graph.inputs]
    arguments += [f'{style.real} *{style.restrict} {one.name}' for one in graph.outputs]
    return wrapped(f'void {style.prefix}_{graph.name}({", ".join(arguments)})', after=',')


def wrapped(statement: str, indent: str = '', after: str = '') -> str:
    """Return a statement in lines of at most WIDTH characters, cut at spaces ``after`` others."""
    lines, rest = [], indent + statement
    while len(rest) > WIDTH:
        cut = rest.rfind(f'{after} ', len(indent) + 8, WIDTH) + len(after)
        if cut < len(indent) + 8:
            break
        lines.append(rest[:cut])
        rest = f'{indent}    {rest[cut + 1:]}'
    return '\n'.join([*lines, rest])


class Writer:
    """Writes one graph."""

    def __init__(self, style: Style, graph: Graph) -> None:
        self.style, self.graph = style, graph
        # For each operation: those that need it, and the entries of outputs that it gives.
        self.uses: list[list[int]] = [[] for _ in graph.operations]
        for k, operation in enumerate(graph.operations):
            for j in operation.operands:
                self.uses[j].append(k)
        self.places: dict[int, list[str]] = {}
        for array, numbers in zip(graph.outputs, graph.results):
            for k, number in enumerate(numbers.ravel().tolist()):
                self.places.setdefault(number, []).append(f'{array.name}[{k}]')
        self.expressions: dict[int, Expression] = {}
        self.angles = list(dict.fromkeys(
            arguments[0] for kind, arguments in graph.operations if kind in ('sin', 'cos')))

    def expression(self, k: int) -> Expression:
        """Return the expression of an operation in terms of earlier statements."""
        kind, arguments = self.graph.operations[k]
        if kind == 'constant':
            return Expression(self.style.number(arguments[0]), ATOM)
        if kind == 'input':
            return Expression(f'{self.graph.inputs[arguments[0]].name}[{arguments[1]}]', ATOM)
        if kind in ('cos', 'sin'):
            return Expression(f'{kind}_[{self.angles.index(arguments[0])}]', ATOM)
        operands = [self.expressions[j] for j in arguments]
        if kind == 'sign' and not self.style.lanes:
            one, zero = self.style.number(1.0), self.style.number(0.0)
            x = operands[0].within(ATOM)
            return Expression(f'(({x} > {zero} ? {one} : {zero}) - ({x} < {zero} ? {one} : '
                              f'{zero}))', ATOM, operands[0].length + 1)
        return applied(kind, operands, self.style.call)

    def is_inlined(self, k: int, found: Expression) -> bool:
        """Return whether an operation is written where its result is used."""
        if self.graph.operations[k].kind in ('constant', 'input', 'cos', 'sin'):
            return True
        uses = self.uses[k]
        if k not in self.places and all(
                self.graph.operations[j].kind in ('sin', 'cos') for j in uses):
            return True     # only an angle
        return (len(uses) == 1 and k not in self.places and uses[0] - k <= NEAR
                and found.length < LENGTH and self.graph.operations[uses[0]].kind != 'sign')

    def statements(self) -> Iterator[tuple[int, str]]:
        """Yield operations that need a statement, and their expressions; outputs follow them."""
        for k in range(len(self.graph.operations)):
            found = self.expression(k)
            if self.is_inlined(k, found):
                self.expressions[k] = found
                if k in self.places:
                    text = (self.style.alone(found.text)
                            if self.graph.operations[k].kind == 'constant' else found.text)
                    yield -1, f'{" = ".join(self.places[k])} = {text};'
            else:
                self.expressions[k] = Expression(f't{k}', ATOM)
                yield k, f'const {self.style.real} t{k} = {found.text};'
                if k in self.places:
                    yield -1, f'{" = ".join(self.places[k])} = t{k};'

    def function(self) -> str:
        """Return the definition of the function, after those of its parts."""
        head, statements = self.sines(), list(self.statements())
        unused = [f'(void){array.name};' for number, array in enumerate(self.graph.inputs)
                  if not any(kind == 'input' and arguments[0] == number
                             for kind, arguments in self.graph.operations)]
        if len(statements) <= PART:
            return self.definition(prototype(self.style, self.graph),
                                   [*unused, *head, *(text for _, text in statements)])
        parts = [statements[k:k + PART] for k in range(0, len(statements), PART)]
        size, texts = shared(parts, self.style.real)
        definitions, calls = [], []
        for number, lines in enumerate(texts, 1):
            names = {name for line in lines for name in re.findall(r'[A-Za-z_]\w*(?=\[)', line)}
            arguments = [(const, name) for const, name in (
                *(('const ', array.name) for array in self.graph.inputs), ('const ', 'cos_'),
                ('const ', 'sin_'), ('', 'shared_'), *(('', x.name) for x in self.graph.outputs))
                if name in names]
            name = f'{self.style.prefix}_{self.graph.name}_{number}'
            declared = ', '.join(f'{const}{self.style.real} *{self.style.restrict} {argument}'
                                 for const, argument in arguments)
            definitions.append(self.definition(
                wrapped(f'{self.style.prefix.upper()}_PART void {name}({declared})', after=','),
                lines))
            calls.append(f'{name}({", ".join(argument for _, argument in arguments)});')
        buffer = [f'{self.style.real} shared_[{size}];']
        return '\n'.join([*definitions, self.definition(
            prototype(self.style, self.graph), [*buffer, *unused, *head, *calls])])

    def definition(self, declaration: str, statements: Sequence[str]) -> str:
        body = '\n'.join(wrapped(line, '    ') for line in statements)
        return f'{declaration}\n{{\n{body}\n}}\n'

    def sines(self) -> list[str]:
        """Return the statements that compute all cosines and sines."""
        if not self.angles:
            return []
        real, count = self.style.real, len(self.angles)
        for k, (kind, _) in enumerate(self.graph.operations[:max(self.angles) + 1]):
            if kind not in ('sin', 'cos'):
                self.expressions[k] = self.expression(k)
        texts = ', '.join(self.expressions[k].text for k in self.angles)
        scalar = self.style.scalar
        arguments = (f'{count} * LANES, (const {scalar} *)angle_, ({scalar} *)cos_, '
                     f'({scalar} *)sin_' if self.style.lanes else f'{count}, angle_, cos_, sin_')
        return [f'const {real} angle_[{count}] = {{{texts}}};',
                f'{real} cos_[{count}], sin_[{count}];',
                f'{self.style.prefix}_cosines_and_sines({arguments});']


def shared(parts: Sequence[Sequence[tuple[int, str]]],
           real: str) -> tuple[int, list[list[str]]]:
    """Return the size of an array for results that other parts need, and statements with it."""
    number = re.compile(r'\bt(\d+)\b')

    def placed(found: re.Match[str]) -> str:
        return names.get(found[0], found[0])
    home = {k: part for part, statements in enumerate(parts) for k, _ in statements}
    last: dict[int, int] = {}
    for part, statements in enumerate(parts):
        for _, text in statements:
            last.update((int(k), part) for k in number.findall(text) if home[int(k)] < part)
    places: dict[int, int] = {}
    free: list[int] = []
    size, texts = 0, []
    for part, statements in enumerate(parts):
        lines = []
        names = {f't{k}': f'shared_[{place}]' for k, place in places.items()}
        for k, text in statements:
            lines.append(number.sub(placed, text))
            if k in last:
                if not free:
                    free, size = [size], size + 1
                places[k] = free.pop()
                lines.append(f'shared_[{places[k]}] = t{k};')
        texts.append(lines)
        # An entry is used again once no later part needs its result.
        free += sorted((places[k] for k, end in last.items() if end == part), reverse=True)
    return size, texts
