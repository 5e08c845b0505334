# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The operations of a graph, carried out on the scalars of another library."""

from collections.abc import Callable, Mapping, Sequence
import operator
from typing import Any

import numpy as np
from rbd_ros.codegen.graph import Graph

OPERATORS: Mapping[str, Callable[..., Any]] = {
    'add': operator.add, 'sub': operator.sub, 'mul': operator.mul, 'div': operator.truediv,
    'neg': operator.neg, 'abs': abs}


def evaluate(graph: Graph, inputs: Sequence[Sequence[Any]],
             functions: Mapping[str, Callable[[Any], Any]],
             constant: Callable[[float], Any]) -> list[np.ndarray]:
    """
    Return the outputs as arrays of scalars; operators are Python's.

    `inputs` has the entries of each input in row-major order, `functions` the other operations
    with one argument by kind, and `constant` makes a scalar of a number.

    """
    known = {**OPERATORS, **functions}
    values: list[Any] = []
    for kind, arguments in graph.operations:
        if kind == 'constant':
            values.append(constant(*arguments))
        elif kind == 'input':
            number, index = arguments
            values.append(inputs[number][index])
        else:
            values.append(known[kind](*(values[k] for k in arguments)))
    outputs = []
    for numbers in graph.results:
        output = np.empty(numbers.size, object)
        for k, number in enumerate(numbers.ravel()):
            output[k] = values[number]
        outputs.append(output.reshape(numbers.shape))
    return outputs
