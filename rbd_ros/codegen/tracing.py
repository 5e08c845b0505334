# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Traces the functions of a robot: their graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rbd_ros._internal.text import did_you_mean
from rbd_ros.codegen.closed_loops import CLOSING
from rbd_ros.codegen.functions import FUNCTIONS, INPUTS
from rbd_ros.codegen.graph import Array, Graph, Tape
from rbd_ros.codegen.parameters import parameter_arrays
from rbd_ros.codegen.symbols.symbolic_workspaces import results_of, symbolic_workspace
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.quantity import Quantity


def trace(model: Model, function: str, *, parameters: Sequence[str] = (),
          **options: Any) -> Graph:
    """
    Return the operations that compute a function of a robot.

    Where the library raises an error, because a state is not finite or a joint moves no inertia,
    results are not finite or have no meaning. With closed loops, so are those of open
    configurations, and nothing is damped.

    Parameters
    ----------
    model : Model
        The robot.
    function : str
        A function of `rbd_ros`, one of `rbd_ros.codegen.FUNCTIONS`; or, for a robot with closed
        loops, ``'closure_step'``: q after a step of Newton's method, by which the dependent
        joints follow the others, and the size of the gaps before it, m and rad.
    parameters : sequence of str, optional
        Parameters that become further inputs, in place of the robot's own: ``'pi'``, those of
        `rbd_ros.model.inertial_parameters`; ``'positions'`` of the joints (3 * moving joints,) in
        the frames of their parent links, m; ``'gravity'`` (3,), m/s^2; and ``'bodies'``, gravity
        and inertias as `rbd_ros.model.body_table.inertial_constants` has them.
    options
        Of some functions: ``link``, the name of a link, and ``prescribed``, a mask (nv,).

    Returns
    -------
    Graph
        Its inputs are the arrays that the function takes, its outputs those that it returns.

    Raises
    ------
    ModelError
        If there is no such function, parameter or link; of a robot with closed loops, if there are
        parameters other than ``'bodies'``.
    StateError
        If ``model`` is no robot, or the mask has another length.

    """
    return _traced(model, function, parameters, options, False)


def trace_with_margins(model: Model, function: str, parameters: Sequence[str],
                       options: Mapping[str, Any]) -> Graph:
    """
    Return the graph of `trace` with the margins of the kernels' checks, if there are any.

    One of the last output, ``margins``, is negative where the library raises an error although
    results are finite.

    """
    return _traced(model, function, parameters, options, True)


def trace_method(model: Model, name: str, options: Mapping[str, Any]) -> tuple[Graph, Any]:
    """
    Return the graph of a method of `rbd_ros.Workspace`, with margins, and how it returns results.

    The latter is None for an array, else a class of tuples and its parts. The last input are the
    ``'bodies'`` of `trace`.

    """
    declared = QUANTITIES[name]._replace(part=None, results={})
    graph, found = _graph(model, declared, ('bodies',), options, True)
    return graph, structure(found if len(found) > 1 else found[0])


def structure(found: Any) -> Any:
    """Return None for an array, else a class of tuples and the structures of its parts."""
    return (type(found), [structure(x) for x in found]) if isinstance(found, tuple) else None


def _arrays(found: Any) -> list[np.ndarray]:
    """Return the arrays in nested tuples."""
    return [x for part in found for x in _arrays(part)] if isinstance(found, tuple) else [found]


def _traced(model: Model, function: str, parameters: Sequence[str], options: Mapping[str, Any],
            margins: bool) -> Graph:
    check_model(model)
    closing = {} if model.loops is None else CLOSING
    declared = closing.get(function) or FUNCTIONS.get(function)
    if declared is None:
        known = [*closing, *FUNCTIONS]
        raise ModelError(f"there is no code for a function '{function}' of robot '{model.name}'"
                         + did_you_mean(str(function), known, ': choose from ' + ', '.join(known)))
    return _graph(model, declared, parameters, options, margins)[0]


def _graph(model: Model, declared: Quantity, parameters: Sequence[str],
           options: Mapping[str, Any], margins: bool) -> tuple[Graph, tuple[Any, ...]]:
    """Return the graph of a quantity, and its results as symbols."""
    names = declared.inputs
    if model.loops is not None:
        if {*parameters} - {'bodies'}:
            raise ModelError(f"robot '{model.name}' has closed loops, for which parameters "
                             'cannot be inputs: leave them out')
        # The velocities of all joints depend on q.
        names = list(dict.fromkeys(('q', *names)))
    inputs = tuple(Array(name, (model.nq if name == 'q' else model.nv,), INPUTS[name])
                   for name in names)
    further, tape = parameter_arrays(model, parameters), Tape()
    symbols = [tape.inputs(k, array.shape) for k, array in enumerate((*inputs, *further))]
    workspace = symbolic_workspace(model, dict(zip(parameters, symbols[len(inputs):])),
                                   'factorization' in options)
    found = results_of(declared, workspace, **dict(zip(names, symbols)), **options)
    values: tuple[Any, ...] = tuple(_arrays(found))
    labels = declared.results or {f'part_{k}': declared.name for k in range(len(values))}
    outputs = tuple(Array(label, np.shape(x), meaning)
                    for (label, meaning), x in zip(labels.items(), values))
    values = values[:len(outputs)]
    if margins and (workspace.failures or tape.margins):
        values = *values, np.array([*dict.fromkeys(tape.margins), *workspace.failures], object)
        outputs += Array('margins', values[-1].shape, 'negative where results have no meaning'),
    return tape.graph(declared.in_code, model.name, (*inputs, *further), outputs, values), found
