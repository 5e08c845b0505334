# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the functions of one robot, from the same C as generated packages have."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
import ctypes
from math import prod
import os
from typing import Any

from rbd_ros import batch
from rbd_ros.codegen.c import Style
from rbd_ros.codegen.functions import FUNCTIONS
from rbd_ros.codegen.graph import Array, Graph, Tape
from rbd_ros.codegen.machine_code.calls import (
    BALANCED, LoadedFunction, outputs_of, Report, runner)
from rbd_ros.codegen.package import header, own_options, Package, source
from rbd_ros.codegen.package_texts import filled
from rbd_ros.codegen.symbols.symbolic_workspaces import symbolic_workspace
from rbd_ros.codegen.tracing import trace_with_margins
from rbd_ros.errors import ModelError, RbdError
from rbd_ros.kernels.jit.c_compiler import (
    abi, code_directory, Compiler, find_compiler, headers, kept, loaded, MODULE)
from rbd_ros.kernels.jit.kernel_cache import Directory
from rbd_ros.kernels.jit.machine_code import caller_of
from rbd_ros.model.arguments import check_model
from rbd_ros.model.changes.modifications import with_gravity
from rbd_ros.model.model import Model

PREFIX = 'robot'    # of names in the code


class Loaded:
    """
    Functions of one robot as machine code, with the names and arguments of `rbd_ros`.

    Arrays have one state, (nq,) and (nv,), or many, (N, nq) and (N, nv). Results of one state are
    kept and overwritten by the next call of the same function; ``out`` takes an array of the
    caller, or a tuple of them. An object serves one thread.

    """

    def __init__(self, model: Model, functions: Mapping[str, Any],
                 reports: Mapping[str, Report]) -> None:
        self.model, self._reports = model, dict(reports)
        vars(self).update(functions)

    def report(self) -> dict[str, Report]:
        """Return how each function computes, by name."""
        return dict(self._reports)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{name}' is not loaded: pass it to load, which has "
                             + ', '.join(one.name for one in FUNCTIONS.values()))


def load(model: Model, functions: Sequence[str] | None = None, *, parameters: Sequence[str] = (),
         single: bool = False, directory: str | os.PathLike[str] | None = None,
         **options: Any) -> Loaded:
    """
    Return functions of a robot as machine code, made by the system's C compiler.

    The compiler is the command in the environment variable ``CC``, else ``cc``. Its code is kept
    on disk, and compiled again for another robot, compiler or processor. Where the library is
    faster or has more (`Loaded.report`), and in states that code cannot vouch for, the library
    computes.

    Parameters
    ----------
    model : Model
        The robot.
    functions : sequence of str, optional
        Names of `FUNCTIONS`; default: all whose options are given.
    parameters : sequence of str, optional
        As for `trace`: further arguments of all functions, arrays (n,) behind the others, such
        as ``'pi'`` for a payload that changes.
    single : bool
        Whether to compute with float32.
    directory : path, optional
        Where machine code is kept; default: beside that of the kernels.
    options
        As for `trace`: ``link`` and ``prescribed``. For others, functions leave to the library.

    Returns
    -------
    Loaded
        An object with the functions as attributes.

    Raises
    ------
    RbdError
        If there is no compiler, or it fails, or its code cannot run here.
    ModelError
        As `trace`.

    """
    check_model(model)
    names = [name for name, one in FUNCTIONS.items() if all(x in options for x in one.options)
             and (one.method is None or hasattr(batch, one.name))
             ] if functions is None else functions
    style, compiler, folder = Style(PREFIX, single), find_compiler(), code_directory(directory)
    made: dict[str, LoadedFunction] = {}
    pending: dict[str, Future[tuple[ctypes.CDLL, float]]] = {}
    balance = balance_code = None
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        def compiled(graph: Graph) -> Future[tuple[ctypes.CDLL, float]]:
            # Each function in its own file, which serves whatever else is loaded with it.
            return pool.submit(compile_graph, model, style, graph, compiler, folder)
        caller = pool.submit(extension, compiler, folder)
        for name in dict.fromkeys(names):
            function = prepared(model, name, parameters, single, options, functions is None)
            made[function.name] = function
            if not function.reason:
                pending[function.name] = compiled(function.graph)
        if not parameters and not BALANCED.keys().isdisjoint(pending):
            balance = balance_of_wrenches(model)
            balance_code = compiled(balance)
    for name, code in pending.items():
        made[name].set_code(code.result(), caller_of(caller.result()))
        if balance is not None and balance_code is not None:
            made[name].balance = runner(balance_code.result()[0], balance, made[name].dtype)
    return Loaded(model, {name: one.for_users() for name, one in made.items()},
                  {name: one.report() for name, one in made.items()})


def prepared(model: Model, name: str, parameters: Sequence[str], single: bool,
             options: Mapping[str, Any], may_fail: bool) -> LoadedFunction:
    """Return a function with its graph, or with the reason why it is left to the library."""
    if name not in FUNCTIONS:
        raise ModelError(f"there is no code for a function '{name}': choose from "
                         + ', '.join(one.name for one in FUNCTIONS.values()))
    own = own_options(name, options)
    function = LoadedFunction(model, name, own, parameters, single)
    if not function.reason:
        try:
            function.set_graph(trace_with_margins(model, name, parameters, own))
        except ModelError as error:
            if not may_fail:
                raise
            function.reason = str(error)
    return function


def balance_of_wrenches(model: Model) -> Graph:
    """Return the function of torques that balance wrenches on the bodies of the kernels' table."""
    tape = Tape()
    q, forces = tape.inputs(0, (model.nq,)), tape.inputs(1, (len(model.tree.robot), 6))
    workspace = symbolic_workspace(with_gravity(model, (0.0, 0.0, 0.0)), {})
    workspace.push(forces)
    arrays = Array('q', q.shape, 'configuration'), Array('forces', (forces.size,), 'wrenches')
    return tape.graph('balance_of_wrenches', model.name, arrays,
                      (Array('tau', (model.nv,), 'torques'),), [workspace.gravity_torques(q)])


def compile_graph(model: Model, style: Style, graph: Graph, compiler: Compiler,
                  directory: Directory) -> tuple[ctypes.CDLL, float]:
    """Return the machine code of a function, and the time to compile it, s."""
    return loaded(compiler, sources_of(model, style, graph), directory)


def sources_of(model: Model, style: Style, graph: Graph) -> dict[str, str]:
    """Return the sources of a function, the one to compile last."""
    package, outputs = Package(model, style, [graph], {}, {}), outputs_of(graph)
    margins = len(outputs) < len(graph.outputs)
    inputs = [f'in[{k}] + state * steps[{k}]' for k in range(len(graph.inputs))]
    written = [f'out[{k}] + state * {prod(x.shape)}' for k, x in enumerate(outputs)]

    def finite(places: Sequence[str], arrays: Sequence[Array]) -> str:
        return ' && '.join(f'all_finite({place}, {prod(x.shape)})'
                           for place, x in zip(places, arrays))
    words = {
        'package': package.name, 'prefix': style.prefix, 'function': graph.name,
        'real': style.real, 'fabs': style.call('fabs'), 'zero': style.number(0.0),
        'largest': 'FLT_MAX' if style.single else 'DBL_MAX',
        'margins': graph.outputs[-1].shape[0] if margins else 0,
        'arguments': ', '.join([*inputs, *written, *['margins'] * margins]),
        'inputs_finite': finite(inputs, graph.inputs), 'outputs_finite': finite(written, outputs)}
    return {f'{package.name}.h': header(package), f'{package.name}.c': source(package),
            'states.c': filled('states.c', **words)}


def extension(compiler: Compiler, directory: Directory) -> bytes:
    """Return the code of the module that calls functions; nothing if it cannot be compiled."""
    include = headers()
    text = filled('extension.c', module=MODULE, versions=' '.join(abi()))
    try:
        return b'' if include is None else kept(
            compiler, {'extension.c': text}, directory, include)[0]
    except RbdError:
        return b''
