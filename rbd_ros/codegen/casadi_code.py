# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A graph as a function of CasADi; RbdError is raised if CasADi is missing."""

from typing import Any

import numpy as np
from rbd_ros.codegen.evaluation import evaluate
from rbd_ros.codegen.graph import Graph
from rbd_ros.errors import RbdError


def import_casadi() -> Any:
    """Return the module; raise RbdError if it is missing."""
    try:
        import casadi
    except ImportError as error:
        raise RbdError('functions of CasADi need it: pip install "rbd_ros[casadi]"') from error
    return casadi


def casadi_function(graph: Graph) -> Any:
    """
    Return a `casadi.Function` of SX, with the names of the graph, its inputs and its outputs.

    CasADi differentiates it, and its method ``generate`` writes C, also for acados.

    Parameters
    ----------
    graph : Graph
        Of `rbd_ros.codegen.trace`. Vectors become columns. Entries of matrices that are always
        zero are not stored. A list of poses becomes a matrix with four rows for each.

    """
    inputs, outputs = casadi_expressions(graph)
    return import_casadi().Function(
        graph.name, inputs, outputs, [array.name for array in graph.inputs],
        [array.name for array in graph.outputs])


def casadi_expressions(graph: Graph) -> tuple[list[Any], list[Any]]:
    """Return symbols for the inputs, and the outputs as matrices of SX."""
    casadi = import_casadi()
    inputs = [casadi.SX.sym(array.name, *array.shape) for array in graph.inputs]
    outputs = []
    for x in evaluate(graph, [casadi.vertsplit(x) for x in inputs], casadi, casadi.SX):
        # CasADi stores columns, NumPy rows.
        columns = casadi.vertcat(*x.reshape(-1, x.shape[-1]).T.ravel())
        outputs.append(columns if x.ndim == 1 else casadi.sparsify(
            casadi.reshape(columns, np.prod(x.shape[:-1]), x.shape[-1])))
    return inputs, outputs
