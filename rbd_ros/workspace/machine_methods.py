# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Methods of workspaces as machine code, where numba is missing.

What a quantity's declaration says of its arguments is enough: for each value of options, such as
the name of a link, there is code of its own, and one that takes external wrenches. Until it is
compiled, and wherever it does not apply (states that it cannot vouch for, errors), the method is
interpreted. Functions of many states wait for their code.

"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from inspect import Parameter, signature
from itertools import compress
from math import inf
from typing import Any
from weakref import ref, WeakKeyDictionary

import numpy as np
from rbd_ros._internal.arrays import real_array
from rbd_ros.kernels.jit import machine_code
from rbd_ros.kernels.jit.compiled import KernelNotReady, may_wait
from rbd_ros.kernels.tree.layout import WRENCH
from rbd_ros.model.body_table import empty_bodies, inertial_constants, pack
from rbd_ros.model.model import Model
from rbd_ros.workspace.quantity import QUANTITIES, VECTORS

# Values of options for which a workspace has code of one method; others are interpreted.
MOST = 64
# Options of code that are no options of methods: it takes wrenches; it computes several states at
# a time.
WRENCHES, STATES = 'external_wrenches', 'states'
# About what code writes for infinity: it reports results that are not finite.
INFINITE = 1e300
REQUIRED = Parameter.empty
Key = tuple[tuple[str, Any], ...]


@cache
def arguments_of(name: str) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return the arguments of a method by position, vectors, and the defaults of the others."""
    given = list(signature(QUANTITIES[name].method).parameters.values())[1:]
    return ([x.name for x in given if x.kind is x.POSITIONAL_OR_KEYWORD],
            [x.name for x in given if x.name in VECTORS],
            {x.name: x.default for x in given if x.name not in VECTORS})


class Method:
    """A method of a workspace: machine code for each value of its options."""

    def __init__(self, methods: 'MachineMethods', name: str) -> None:
        self.methods, self.name = methods, name
        self._positional, self._vectors, self._defaults = arguments_of(name)
        # None: interpreted.
        self._ready: dict[Key, Callable[..., Any] | None] = {}

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return getattr(type(self.methods.workspace), self.name).__get__(self.methods.workspace)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        vectors, key, wrenches = self._split(arguments, named)
        run = None if key is None else self._run_of(key)
        if run is None:
            return self.methods.interpret(self.name, *arguments, **named)
        return run(*vectors, **wrenches)

    def _split(self, arguments: tuple[Any, ...],
               named: dict[str, Any]) -> tuple[list[Any], Key | None, dict[str, Any]]:
        """Return vectors, options that are not their defaults (None: no code), and wrenches."""
        given = dict(zip(self._positional, arguments), **named)
        complete = len(given) == len(arguments) + len(named) and not {*self._vectors} - {*given}
        vectors = [given.pop(label, None) for label in self._vectors]
        key: list[tuple[str, Any]] = []
        wrenches = {} if given.get(WRENCHES) is None else {WRENCHES: given[WRENCHES]}
        for label, default in self._defaults.items():
            x = given.pop(label, default)
            if x is default and x is not REQUIRED:
                continue
            if label == WRENCHES:
                x = True
            elif type(x) is np.ndarray and x.dtype == bool:
                x = tuple(x.tolist())
            elif type(x) is list and {*map(type, x)} == {bool}:
                x = tuple(x)
            elif type(x) not in (str, int, float):
                return vectors, None, wrenches
            if x != default:
                key.append((label, x))
        # Otherwise the method raises an error.
        return vectors, tuple(key) if complete and not given else None, wrenches

    def _run_of(self, key: Key) -> Callable[..., Any] | None:
        """Return what runs code, or None if it is not ready; request it at the first call."""
        if key in self._ready:
            return self._ready[key]
        if QUANTITIES[self.name].untraced or len(self._ready) == MOST:
            return None
        code = code_of(self.methods.workspace.model, self.name, key)
        if not code.over.is_set():
            if not may_wait():
                raise KernelNotReady(code.over.is_set)
            return None
        run = self._ready[key] = self._bound(code, dict(key))
        if run is not None and not key and REQUIRED not in self._defaults.values():
            self.methods.replace(self.name, run)
        return run

    def _bound(self, code: machine_code.Code,
               options: dict[str, Any]) -> Callable[..., Any] | None:
        """Return the function of vectors that runs code."""
        runner, made, takes_wrenches = code.runner, code.made, options.pop(WRENCHES, False)
        if runner is None or made is None:
            return None
        memory, parts = runner.kept()
        result = built(made.structure, iter(parts))
        constants = inertial_constants(self.methods.workspace.model.unconstrained.tree,
                                       'factorization' in options)
        count, expected = len(runner.sizes) - 1 - takes_wrenches, {*[WRENCHES] * takes_wrenches}

        def others(*vectors: Any, **named: Any) -> Any:
            if len(vectors) != count or named.keys() != expected:
                return self(*vectors, **named)
            converted = [real_array(x) for x in vectors]
            forces = [wrench_columns(self.methods.workspace, x) for x in named.values()]
            if all(x is not None and x.shape == (size,)
                   for x, size in zip(converted, runner.sizes)) and runner.run(
                       1, [*map(np.array, converted), *forces, constants], parts) < 0:
                return result
            return self.methods.interpret(self.name, *vectors, **options, **named)
        run = others if takes_wrenches else runner.bound(
            code.caller, others, memory, parts, result, fixed=[constants])
        copies = self.methods.workspace._fresh and not QUANTITIES[self.name].kept
        if not copies and () not in made.shapes:
            return run

        def built_again(*vectors: Any, **named: Any) -> Any:
            # What is interpreted is new.
            found = run(*vectors, **named)
            return found if found is not result else built(
                made.structure, (x.copy() if copies else x for x in parts))
        return built_again


def wrench_columns(workspace: Any, external_wrenches: Any) -> np.ndarray:
    """Return wrenches as code takes them, those on all bodies in their frames, checked."""
    tree = getattr(workspace, '_tree', workspace)
    with workspace._wrenches(external_wrenches):
        wrenches: np.ndarray = tree.robot[tree._columns(WRENCH, 6)].ravel()
    return wrenches


def built(structure: Any, arrays: Iterator[np.ndarray]) -> Any:
    """Return arrays in nested tuples, as `Made` describes them."""
    if structure is None:
        return next(arrays)
    if structure is float:
        x = float(next(arrays))
        return x if x < 0.1 * INFINITE else inf
    if structure is bool:
        return bool(next(arrays) > 0.0)
    kind, parts = structure
    return tuple.__new__(kind, [built(one, arrays) for one in parts])


class MachineMethods:
    """The methods of a workspace for which there is machine code: attributes stand before them."""

    def __init__(self, workspace: Any, weak: bool = False) -> None:
        # Plain functions hold their workspace while they call it: no garbage collection is needed.
        self._workspace = ref(workspace) if weak else lambda: workspace
        self._attributes: dict[str, Callable[..., Any]] = {
            name: Method(self, name) for name, one in QUANTITIES.items() if one.method}
        vars(workspace).update(self._attributes)

    @property
    def workspace(self) -> Any:
        return self._workspace()

    def replace(self, name: str, run: Callable[..., Any]) -> None:
        """Use a function in place of a `Method`."""
        self._attributes[name] = vars(self.workspace)[name] = run

    def interpret(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Run a method, and methods that it calls: these may rely on what kernels leave behind."""
        interpreted(self.workspace)
        try:
            return getattr(self.workspace, name)(*arguments, **named)
        finally:
            vars(self.workspace).update(self._attributes)


def interpreted(workspace: Any) -> Any:
    """Return a workspace after letting its methods be interpreted."""
    for name in QUANTITIES:
        vars(workspace).pop(name, None)
    return workspace


_robots: 'WeakKeyDictionary[Model, dict[bool, bytes]]' = WeakKeyDictionary()


def robot_of(model: Model, keep_loads: bool = False) -> bytes:
    """Return a robot for `machine_code`, without what its code does not depend on."""
    kept = _robots.setdefault(model, {})
    if keep_loads not in kept:
        kept[keep_loads] = machine_code.pickled(without_inertias(model, keep_loads))
    return kept[keep_loads]


def without_inertias(model: Model, keep_loads: bool) -> Model:
    """Return a robot without inertias and gravity, and perhaps without links that are loads."""
    stays = [keep_loads or not link.is_load for link in model.links]
    links = tuple(replace(link, mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3)))
                  for link in compress(model.links, stays))
    tree = empty_bodies(model.tree, stays)
    return replace(
        model, links=links, joints=tuple(compress(model.joints, stays[1:])), tree=tree,
        gravity=np.zeros(3), mass=0.0, warnings=(), uncertainty=None,
        _link_index={link.name: k for k, link in enumerate(links)},
        loops=model.loops and replace(model.loops, robot=pack(tree.robot)[0]),
        _unconstrained=model._unconstrained and without_inertias(model._unconstrained, keep_loads))


def code_of(model: Model, name: str, options: Key = ()) -> machine_code.Code:
    """Return the code of a method; request what is not kept."""
    keep_loads = QUANTITIES[name].by_link or any(
        link.is_load and link.name in dict(options).values() for link in model.links)
    return machine_code.CODES.find(robot_of(model, keep_loads), name, options)


def runner_of_states(model: Model, name: str, options: Key) -> machine_code.Runner | None:
    """Return the code of a function of many states, or None if it is interpreted."""
    code = code_of(model, name, (*options, (STATES, True)))
    if not (code.over.is_set() or may_wait()):
        raise KernelNotReady(code.over.is_set)
    code.over.wait()
    return code.runner


def make_ready(model: Model, first: str, *others: str) -> None:
    """Wait for machine code of a method without options, and then request that of others."""
    code_of(model, first).over.wait()
    for name in others:
        code_of(model, name)
