# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Straight-line code: the operations that compute a function of one robot.

Kinds of operations, and their arguments:

=============================  ==================================================================
``constant``                   its value, a float
``input``                      number of the input, and index in it (flat, row-major)
``add sub mul div``            two earlier operations
``neg sqrt sin cos exp tanh``  one earlier operation
``abs sign``                   one earlier operation; the sign is -1, 0 or 1
=============================  ==================================================================

`Tape` records operations on symbols: equal ones only once, with constants folded.

"""

from collections.abc import Sequence
import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np


class Array(NamedTuple):
    """An input or an output of a function."""

    name: str
    shape: tuple[int, ...]
    meaning: str


class Operation(NamedTuple):
    """One operation; arguments by kind as listed above."""

    kind: str
    arguments: tuple[Any, ...]

    @property
    def operands(self) -> tuple[int, ...]:
        """Return the numbers of the operations whose results this one takes."""
        return () if self.kind in ('constant', 'input') else self.arguments


class Graph(NamedTuple):
    """A function of one robot as operations in the order of their evaluation."""

    name: str           # of the function
    robot: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    operations: tuple[Operation, ...]   # only those that an output needs
    results: tuple[np.ndarray, ...]     # of each output: numbers of operations, in its shape


class Symbol:
    """The result of an operation; never a constant, for constants are floats."""

    __slots__ = ('number', 'tape')
    __array_ufunc__ = None      # NumPy's floats leave operators to the symbol

    def __init__(self, tape: 'Tape', number: int) -> None:
        self.tape, self.number = tape, number

    def __add__(self, other: 'Value') -> 'Value':
        return self.tape.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: 'Value') -> 'Value':
        return self.tape.subtract(self, other)

    def __rsub__(self, other: 'Value') -> 'Value':
        return self.tape.subtract(other, self)

    def __mul__(self, other: 'Value') -> 'Value':
        return self.tape.multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: 'Value') -> 'Value':
        return self.tape.divide(self, other)

    def __rtruediv__(self, other: 'Value') -> 'Value':
        return self.tape.divide(other, self)

    def __neg__(self) -> 'Value':
        return self.tape.negate(self)

    def __abs__(self) -> 'Value':
        return self.tape.apply('abs', self)

    def __pow__(self, exponent: int) -> 'Value':
        return self * self if exponent == 2 else NotImplemented

    def __bool__(self) -> bool:
        raise TypeError('straight-line code cannot branch on a value')

    def __lt__(self, other: object) -> bool:
        raise TypeError('straight-line code cannot compare values')

    __le__ = __gt__ = __ge__ = __lt__


# Symbols are equal if they are the same operation: `Tape` makes one of each.
Value: TypeAlias = Symbol | float


class Tape:
    """Records operations, each once, in the order of their evaluation."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.margins: list[Value] = []      # negative where a kernel reports an error
        self._symbols: list[Symbol] = []
        self._known: dict[Operation, Symbol] = {}

    def record(self, kind: str, *arguments: float) -> Symbol:
        """Return the result of an operation, recorded now or before."""
        operation = Operation(kind, arguments)
        symbol = self._known.get(operation)
        if symbol is None:
            symbol = self._known[operation] = Symbol(self, len(self.operations))
            self.operations.append(operation)
            self._symbols.append(symbol)
        return symbol

    def number(self, x: Value) -> int:
        """Return the number of the operation that gives x."""
        if isinstance(x, Symbol):
            return x.number
        return self.record('constant', float(x) + 0.0).number      # + 0.0: no negative zero

    def inputs(self, number: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return the symbols of an input."""
        symbols = [self.record('input', number, k) for k in range(math.prod(shape))]
        return np.array(symbols, object).reshape(shape)

    def _argument(self, x: Value, kind: str) -> Value | None:
        """Return the argument of x if x is an operation of this kind, which has one."""
        if isinstance(x, Symbol) and self.operations[x.number].kind == kind:
            return self._symbols[self.operations[x.number].arguments[0]]
        return None

    def _scaled(self, x: Value) -> tuple[float, Value]:
        """Return c > 0 and y with x = c y; c is 1 unless x is a product with a constant."""
        if isinstance(x, Symbol) and self.operations[x.number].kind == 'mul':
            first, second = self.operations[x.number].arguments
            if self.operations[first].kind == 'constant':
                return self.operations[first].arguments[0], self._symbols[second]
        return 1.0, x

    def _pair(self, kind: str, x: Value, y: Value) -> Symbol:
        """Record a sum or product; constants come first, then arguments by number."""
        a, b = self.number(x), self.number(y)
        if isinstance(x, Symbol) and (not isinstance(y, Symbol) or a > b):
            a, b = b, a
        return self.record(kind, a, b)

    def add(self, x: Value, y: Value) -> Value:
        for one, other in ((x, y), (y, x)):
            if not isinstance(one, Symbol):
                if one == 0.0:
                    return other
                if one < 0.0:
                    return self.subtract(other, -one)
            negated = self._argument(one, 'neg')
            if negated is not None:
                return self.subtract(other, negated)
        (c, base), (d, other) = self._scaled(x), self._scaled(y)
        if base is other:
            return self.multiply(c + d, base)
        return self._pair('add', x, y)

    def subtract(self, x: Value, y: Value) -> Value:
        if not isinstance(y, Symbol) and y <= 0.0:
            return self.add(x, -y)
        if not isinstance(x, Symbol) and x == 0.0:
            return self.negate(y)
        negated = self._argument(y, 'neg')
        if negated is not None:
            return self.add(x, negated)
        negated = self._argument(x, 'neg')
        if negated is not None:
            return self.negate(self.add(negated, y))
        (c, base), (d, other) = self._scaled(x), self._scaled(y)
        if base is other:
            return self.multiply(c - d, base)
        if not isinstance(x, Symbol) and x < 0.0:
            return self.negate(self.add(-x, y))
        return self.record('sub', self.number(x), self.number(y))

    def negate(self, x: Value) -> Value:
        if not isinstance(x, Symbol):
            return -x
        operation = self.operations[x.number]
        if operation.kind == 'neg':
            return self._symbols[operation.arguments[0]]
        if operation.kind == 'sub':
            a, b = operation.arguments
            return self.record('sub', b, a)
        return self.record('neg', x.number)

    def multiply(self, x: Value, y: Value) -> Value:
        if isinstance(x, Symbol) and not isinstance(y, Symbol):
            x, y = y, x
        if not isinstance(x, Symbol):
            if x == 0.0:
                return 0.0
            if x == 1.0:
                return y
            if x < 0.0:
                return self.negate(self.multiply(-x, y))
            c, base = self._scaled(y)
            if base is not y:
                return self.multiply(x * c, base)
        for one, other in ((x, y), (y, x)):
            negated = self._argument(one, 'neg')
            if negated is not None:
                return -self.multiply(negated, other)
        return self._pair('mul', x, y)

    def divide(self, x: Value, y: Value) -> Value:
        if not isinstance(y, Symbol):
            return self.multiply(1.0 / y, x)
        if not isinstance(x, Symbol) and x == 0.0:
            return 0.0
        return self.record('div', self.number(x), y.number)

    @staticmethod
    def apply(kind: str, x: Value) -> Value:
        """Return a function of one argument."""
        if not isinstance(x, Symbol):
            return float(np.sign(x)) if kind == 'sign' else getattr(
                math, {'abs': 'fabs'}.get(kind, kind))(x)
        negated = x.tape._argument(x, 'neg')
        if negated is not None:
            if kind in ('cos', 'abs'):
                return Tape.apply(kind, negated)
            if kind in ('sin', 'tanh', 'sign'):
                return -Tape.apply(kind, negated)
        return x.tape.record(kind, x.number)

    def graph(self, name: str, robot: str, inputs: tuple[Array, ...], outputs: tuple[Array, ...],
              values: Sequence[np.ndarray]) -> Graph:
        """Return the operations that the values of the outputs need."""
        results = [np.array([self.number(x) for x in array.ravel()], int).reshape(array.shape)
                   for array in values]
        needed = np.zeros(len(self.operations), bool)
        for numbers in results:
            needed[numbers] = True
        for k in range(len(self.operations) - 1, -1, -1):
            if needed[k]:
                needed[list(self.operations[k].operands)] = True
        places = np.cumsum(needed) - 1
        operations = tuple(
            operation._replace(arguments=tuple(places[list(operation.operands)].tolist()))
            if operation.operands else operation
            for operation, kept in zip(self.operations, needed) if kept)
        return Graph(name, robot, inputs, outputs, operations,
                     tuple(places[numbers] for numbers in results))
