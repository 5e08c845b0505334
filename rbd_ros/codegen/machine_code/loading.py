# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the functions of one robot, from the same C as generated packages have."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import prod
import os
import pickle
from typing import Any, NamedTuple

import numpy as np
from rbd_ros import batch
from rbd_ros.batch.threads import CHUNK
from rbd_ros.codegen.c import Style
from rbd_ros.codegen.functions import FUNCTIONS
from rbd_ros.codegen.graph import Array, Graph
from rbd_ros.codegen.machine_code.calls import BALANCED, LoadedFunction, Report
from rbd_ros.codegen.package import filled, header, own_options, Package, source
from rbd_ros.codegen.tracing import traced
from rbd_ros.errors import ModelError, RbdError
from rbd_ros.kernels.jit.c_compiler import (
    code_directory, code_name, Compiler, find_compiler, headers, machine_code, MODULE, opened)
from rbd_ros.kernels.jit.kernel_cache import Directory
from rbd_ros.kernels.jit.machine_code import caller_of, Made, no_code, pickled, Runner, tools
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
    on disk, and made again for another robot, compiler, processor or version of rbd_ros. Where the
    library is faster or has more (`Loaded.report`), and in states that code cannot vouch for, the
    library computes.

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
    compiler, folder, robot = find_compiler(), code_directory(directory), pickled(model).hex()
    made: dict[str, LoadedFunction] = {}
    pending: dict[str, Future[tuple[Runner, float]]] = {}

    def origin(trace: Callable[[], Graph], *facts: object) -> Origin:
        return Origin(model, trace, f'{robot} {facts}', Style(PREFIX, single), compiler, folder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        caller = pool.submit(extension, compiler, folder)
        for name in dict.fromkeys(names):
            if name not in FUNCTIONS:
                raise ModelError(f"there is no code for a function '{name}': choose from "
                                 + ', '.join(one.name for one in FUNCTIONS.values()))
            own = own_options(name, options)
            function = LoadedFunction(model, name, own, parameters, single)
            made[function.name] = function
            if function.reason:
                continue
            of_one = origin(partial(traced, model, name, parameters, own, margins=True), name,
                            *parameters, *((x, np.array(given).tolist()) for x, given
                                           in function.fixed.items()))
            found, graph = of_one.described()
            if found.reason and functions is not None:
                raise ModelError(found.reason)
            function.set_description(found)
            if not function.reason:
                # Each function in its own file, which serves whatever else is loaded with it.
                pending[function.name] = pool.submit(of_one.compiled, found, graph)
                function.compile_lanes = of_one._replace(
                    style=of_one.style._replace(lanes=True)).code
            elif graph is not None:
                of_one.keep(found)
        if not parameters and not BALANCED.keys().isdisjoint(pending):
            of_wrenches = origin(partial(
                traced, with_gravity(model, (0.0, 0.0, 0.0)), 'gravity_torques', ('wrenches',),
                {}, margins=True), 'wrenches')
            balance = pool.submit(of_wrenches.compiled, *of_wrenches.described())
    for name, code in pending.items():
        made[name].set_code(code.result(), caller_of(caller.result()))
        if not parameters and name in BALANCED:
            made[name].balance = balance.result()[0]
    return Loaded(model, {name: one.for_users() for name, one in made.items()},
                  {name: one.report() for name, one in made.items()})


class Origin(NamedTuple):
    """What the code of a function is made from, and where it is kept."""

    model: Model
    trace: Callable[[], Graph]
    facts: str          # that determine the graph
    style: Style
    compiler: Compiler
    directory: Directory

    @property
    def file(self) -> str:
        return code_name(self.facts, repr(self.style), *tools())

    def described(self) -> tuple[Made, Graph | None]:
        """Return what is kept of the function, or what its graph says, and the graph."""
        data = self.directory.read(self.file)
        if data is not None:
            return pickle.loads(data), None
        try:
            graph = self.trace()
        except ModelError as error:
            return no_code(str(error)), None
        return description(graph), graph

    def keep(self, made: Made) -> None:
        """Keep a function for later programs."""
        self.directory.write(self.file, pickle.dumps(made))

    def code(self) -> tuple[Runner, float]:
        """Return the code of the function, and the time to compile it, s."""
        return self.compiled(*self.described())

    def compiled(self, made: Made, graph: Graph | None) -> tuple[Runner, float]:
        """Return the code of the function, which is `described`, and the time to compile it, s."""
        seconds, is_kept = 0.0, bool(made.code)
        if not is_kept:
            code, seconds = machine_code(self.compiler, sources_of(
                self.model, self.style, graph or self.trace()))
            made = made._replace(code=code)
        try:
            library = opened(made.code)
        except RbdError as error:
            if is_kept:
                self.directory.remove(self.file, str(error))
            raise
        if not is_kept:
            self.keep(made)
        return Runner(library, made, np.dtype(f'f{4 if self.style.single else 8}')), seconds


def outputs_of(graph: Graph) -> list[Array]:
    """Return the outputs without margins."""
    return [array for array in graph.outputs if array.name != 'margins']


def description(graph: Graph, structure: Any = None) -> Made:
    """Return what the calls of a function need to know, without its code."""
    return Made(b'', {x.name: prod(x.shape) for x in graph.inputs},
                [x.shape for x in outputs_of(graph)], structure, len(graph.operations))


def sources_of(model: Model, style: Style, graph: Graph) -> dict[str, str]:
    """Return the sources of a function, the one to compile last."""
    package, outputs = Package(model, style, [graph], {}, {}), outputs_of(graph)
    margins = len(outputs) < len(graph.outputs)
    arrays = [*(('in', k, x) for k, x in enumerate(graph.inputs)),
              *(('out', k, x) for k, x in enumerate(outputs))]
    if style.lanes:
        places = [f'{side}_{k}' for side, k, _ in arrays]
    else:
        places = [f'{side}[{k}] + state * ' + (f'steps[{k}]' if side == 'in' else
                                               f'{prod(x.shape)}') for side, k, x in arrays]

    def finite(wanted: str) -> str:
        return ' && '.join(f'all_finite({place}, {prod(x.shape)})'
                           for place, (side, _, x) in zip(places, arrays) if side == wanted)

    def lines(text: str, *sides: str) -> str:
        return '\n'.join('        ' + text.format(side=side, k=k, n=prod(x.shape))
                         for side, k, x in arrays if side in sides)
    words = {
        'package': package.name, 'prefix': style.prefix, 'function': graph.name,
        'real': style.scalar, 'zero': style.number(0.0),
        **{name: name + 'f' * style.single for name in ('fabs', 'sqrt', 'exp', 'tanh')},
        'largest': 'FLT_MAX' if style.single else 'DBL_MAX',
        'margins': graph.outputs[-1].shape[0] if margins else 0,
        'arguments': ', '.join([*places, *['margins'] * margins]),
        'inputs_finite': finite('in'), 'outputs_finite': finite('out'),
        'buffers': lines(f'{style.real} {{side}}_{{k}}[{{n}}];', 'in', 'out'),
        'gathered': lines('gather(in_{k}, in[{k}] + state * steps[{k}], steps[{k}], {n});', 'in'),
        'scattered': lines('scatter(out[{k}] + state * {n}, out_{k}, {n});', 'out')}
    return {f'{package.name}.h': header(package), f'{package.name}.c': source(package),
            (main := 'lanes.c' if style.lanes else 'states.c'): filled(main, **words)}


def extension(compiler: Compiler, directory: Directory) -> bytes:
    """Return the code of the module that calls functions; nothing if it cannot be compiled."""
    include = headers()
    if include is None:
        return b''
    text = filled('extension.c', module=MODULE, chunk=CHUNK)
    file = code_name(text, *tools(), *include)
    data = directory.read(file)
    if data is None:
        try:
            data, _ = machine_code(compiler, {'extension.c': text}, include)
        except RbdError:
            return b''
        directory.write(file, data)
    return data
