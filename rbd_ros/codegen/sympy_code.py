# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A graph as expressions of SymPy, for reading; RbdError is raised if SymPy is missing."""

from collections.abc import Sequence
from typing import Any

from rbd_ros.codegen.evaluation import evaluate
from rbd_ros.codegen.graph import Graph
from rbd_ros.errors import RbdError

# Significant digits of numbers: one less than a float always keeps, so that 0.1 + 0.2 is 3/10.
DIGITS = 15


def sympy_expressions(graph: Graph, *inputs: Sequence[Any]) -> list[Any]:
    """
    Return the outputs of a graph as matrices of SymPy; a vector is a column.

    Numbers are rational, rounded to 15 digits, so that ``sympy.simplify`` can work with them. For
    robots with a few joints: M of an arm with seven fills pages.

    Parameters
    ----------
    graph : Graph
        Of `rbd_ros.codegen.trace`.
    *inputs : sequence of expressions
        The entries of each input; by default the symbols q1, q2 ..., v1 ...

    """
    try:
        import sympy
    except ImportError as error:
        raise RbdError('expressions need SymPy: pip install "rbd_ros[sympy]"') from error
    symbols = [sympy.symbols(f'{array.name}1:{array.shape[0] + 1}') for array in graph.inputs]
    outputs = evaluate(graph, inputs or symbols, sympy,
                       lambda x: sympy.Rational(f'{x:.{DIGITS}g}'))
    return [sympy.Matrix(x) for x in outputs]
