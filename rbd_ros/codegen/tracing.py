# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Traces the functions of a robot: their graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rbd_ros._internal.text import did_you_mean
from rbd_ros.codegen.functions import CLOSING, FUNCTIONS, INPUTS
from rbd_ros.codegen.graph import Array, Graph, Tape
from rbd_ros.codegen.symbols.interpretation import buffer
from rbd_ros.codegen.symbols.parameters import parameter_arrays
from rbd_ros.codegen.symbols.symbolic_workspaces import results_of, symbolic_workspace
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.machine_methods import STATES, WRENCHES
from rbd_ros.workspace.memory.lanes import States
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
        the frames of their parent links, m; ``'gravity'`` (3,), m/s^2; and, as kernels read
        them, ``'bodies'``, `rbd_ros.model.body_table.inertial_constants`, and ``'wrenches'``, of
        moment, N m, and force, N, on each body of the table.
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
        parameters other than the last two.
    StateError
        If ``model`` is no robot, or the mask has another length.

    """
    return traced(model, function, parameters, options)


def traced(model: Model, function: str, parameters: Sequence[str], options: Mapping[str, Any],
           margins: bool = False) -> Graph:
    """Return the graph of `trace`, on demand with a last output: margins of kernels' checks."""
    check_model(model)
    closing = {} if model.loops is None else CLOSING
    declared = closing.get(function) or FUNCTIONS.get(function)
    if declared is None:
        known = [*closing, *FUNCTIONS]
        raise ModelError(f"there is no code for a function '{function}' of robot '{model.name}'"
                         + did_you_mean(str(function), known, ': choose from ' + ', '.join(known)))
    return _graph(model, declared, parameters, options, margins)[0]


def trace_method(model: Model, name: str, options: Mapping[str, Any]) -> tuple[Graph, Any]:
    """
    Return the graph of a method of `rbd_ros.Workspace`, with margins, and the `structure`.

    The last input are the ``'bodies'`` of `trace`; before them come the ``'wrenches'`` if there
    are external ones. The graph for `STATES` returns what the kernel for many states writes.

    """
    options = dict(options)
    parameters = *['wrenches'] * options.pop(WRENCHES, False), 'bodies'
    states = QUANTITIES[name].states if options.pop(STATES, False) else None
    declared = QUANTITIES[name]._replace(results={})
    if states is None:
        declared = declared._replace(part=None)
    graph, found = _graph(model, declared, parameters, options, True, states, damps=True)
    return graph, structure(found if len(found) > 1 else found[0])


def structure(found: Any) -> Any:
    """Return None for an array, the type of a number, or a class of tuples and its parts' ones."""
    if not isinstance(found, tuple):
        return None
    kinds = getattr(type(found), '__annotations__', {}).values() or [None] * len(found)
    return type(found), [structure(x) if isinstance(x, (tuple, np.ndarray)) else kind
                         for x, kind in zip(found, kinds, strict=True)]


def _arrays(found: Any) -> list[np.ndarray]:
    """Return the arrays in nested tuples, and numbers as arrays."""
    return [x for part in found for x in _arrays(part)] if isinstance(found, tuple) else [
        np.asarray(found, object)]


def _blocks(model: Model, states: States, results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return results of one state in the arrays that the kernel for many states writes."""
    shapes = states.shapes(model, model.nv)
    raw = [buffer(1, *x) for x in (
        states.written(shapes) if model.loops is None else shapes)]
    for part, x in zip(states.results(shapes, raw), results, strict=True):
        part[0] = x
    return [x[0] for x in raw]


def _graph(model: Model, declared: Quantity, parameters: Sequence[str],
           options: Mapping[str, Any], margins: bool,
           states: States | None = None, damps: bool = False) -> tuple[Graph, tuple[Any, ...]]:
    """Return the graph of a quantity, perhaps of many states, and its results as symbols."""
    names = declared.inputs
    if model.loops is not None:
        if {*parameters} - {'bodies', 'wrenches'}:
            raise ModelError(f"robot '{model.name}' has closed loops, for which parameters "
                             'cannot be inputs: leave them out')
        # The velocities of all joints depend on q.
        names = list(dict.fromkeys(('q', *names)))
    inputs = tuple(Array(name, (model.nq if name == 'q' else model.nv,), INPUTS[name])
                   for name in names)
    further, tape = parameter_arrays(model, parameters), Tape()
    symbols = [tape.inputs(k, array.shape) for k, array in enumerate((*inputs, *further))]
    workspace = symbolic_workspace(model, dict(zip(parameters, symbols[len(inputs):])),
                                   'factorization' in options, damps)
    given = dict(zip(names, symbols))
    place = workspace.stand_on_first_body(given['q']) if declared.in_root else None
    found = results_of(declared, workspace, **given, **options)
    if declared.in_root and place:
        found = declared.in_root(found, *place)
    values = _arrays(found) if states is None else _blocks(model, states, found)
    labels = declared.results or {f'part_{k}': declared.name for k in range(len(values))}
    outputs = tuple(Array(label, np.shape(x), meaning)
                    for (label, meaning), x in zip(labels.items(), values))
    values = values[:len(outputs)]
    if margins and (workspace.failures or tape.margins):
        values.append(np.array([*dict.fromkeys(tape.margins), *workspace.failures], object))
        outputs += Array('margins', values[-1].shape, 'negative where the library raises an '
                         'error although results are finite'),
    return tape.graph(declared.in_code, model.name, (*inputs, *further), outputs, values), found
