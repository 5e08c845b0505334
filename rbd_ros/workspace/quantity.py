# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
One declaration for each quantity, from which its other forms derive.

A method of `Workspace` that calls a kernel is documented and decorated with `quantity`, which adds
the maps of its results to the coordinates of closed loops, the names of its results, the kernel
for many states and the rule of its derivatives. The methods for closed loops, the plain function
(`plain`), the functions of `rbd_ros.batch`, of generated code, CasADi, JAX and PyTorch, the
warm-up and the table of the documentation derive from it, without overhead in calls.

"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, overload, ParamSpec, TypeVar

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.workspace.derivative_rules import Rule
from rbd_ros.workspace.documentation import form_doc, ROWS, sections, USUAL
from rbd_ros.workspace.memory.lanes import States
from rbd_ros.workspace.memory.maps import Map, MotionMap
from rbd_ros.workspace.workspace import workspace_of

P = ParamSpec('P')
R = TypeVar('R')
Declared = TypeVar('Declared', bound=Callable[..., Any])
VECTORS = tuple(name for name in USUAL if name != 'link')


class Facts(NamedTuple):
    """The facts of a quantity that its declaration states."""

    name: str
    # Of `Workspace`, for trees; None: only a function of a robot, which takes many states, too.
    method: Any = None
    doc: str = ''                   # of the declaration, as it is written
    # Of each result of the method or a `MotionMap` of all; none if it is composed of others.
    maps: Sequence[Map | MotionMap] = ()
    part: int | None = None         # which of the results of the method the plain function returns
    kept: bool = False              # whether the workspace keeps arrays; plain functions copy them
    states: States | None = None    # the kernel for many states
    # By the name of a parameter, a function that refuses wrong values for the plain function.
    check: Mapping[str, Callable[[object], None]] = MappingProxyType({})
    # Meaning and unit of each result by its name, in generated code; default: the quantity.
    results: Mapping[str, str] = MappingProxyType({})
    # By which PyTorch, JAX and CasADi differentiate: the quantity that returns the derivatives,
    # one for each argument, further arguments being zero; or a rule, see
    # `rbd_ros.workspace.derivative_rules`. None: they differentiate the operations.
    derivatives: Rule | str | None = None
    untraced: str = ''              # why it cannot run on symbols, if it cannot
    # Results in the frame of the root, given those in a frame at (R, r) in it; see `of_joints`.
    # None: they cannot be found in another frame.
    in_root: Callable[[Any, Any, Any], Any] | None = None
    by_link: bool = False           # whether rows belong to links; those three take one link
    in_code: str = ''               # name in generated code; default: the same
    function: Any = None            # of a robot, if there is one


class Quantity(Facts):
    """A declared quantity."""

    @cached_property
    def arguments(self) -> list[str]:
        """Return the arguments that a call needs, without the robot."""
        return [x.name for x in signature(self.method or self.function).parameters.values()
                if x.default is x.empty][1:]

    @property
    def inputs(self) -> list[str]:
        """Return the arguments that are vectors."""
        return [name for name in self.arguments if name in VECTORS]

    @property
    def options(self) -> list[str]:
        """Return the arguments that are not vectors."""
        return [name for name in self.arguments if name not in VECTORS]

    def call(self, workspace: Any, *arguments: Any, **options: Any) -> tuple[Any, ...]:
        """Return the results, given the workspace of a robot."""
        if self.method is None:
            found = self.function(workspace.model, *arguments, **options)
        else:
            found = getattr(workspace, self.name)(*arguments, **options)
        found = found if self.part is None else found[self.part]
        return found if isinstance(found, tuple) else (found,)


QUANTITIES: dict[str, Quantity] = {}    # by name; those of imported modules


def of_joints(found: Any, R: Any, r: Any) -> Any:
    """Return results that belong to joints: the same in all frames."""
    return found


def quantity(*maps: Map | MotionMap, returns: str | None = None,
             **facts: Any) -> Callable[[Declared], Declared]:
    """
    Declare a quantity by decorating its method of `Workspace` for trees, or a function of a robot.

    `Facts` explains maps and facts; functions have neither maps nor states. ``returns`` documents
    a method that returns more than the plain function.

    """
    def declare(method: Declared) -> Declared:
        doc, name, names = method.__doc__ or '', method.__name__, list(
            signature(method).parameters)
        found = Quantity(name, method, doc, maps, **{
            'results': {name: sections(doc)[''].partition('.')[0].removeprefix('Return ')},
            'in_code': name, **facts})
        if names[0] == 'model':
            found = found._replace(method=None, function=method)
        else:
            method.__doc__ = form_doc(doc, names[1:], returns=returns)
        if found.states is not None:
            found = found._replace(states=states_of(found, found.states, names))
        QUANTITIES[name] = found
        return method
    return declare


def states_of(declared: Quantity, states: States, names: Sequence[str]) -> States:
    """Return the kernel of a quantity for many states, with what the method's arguments tell."""
    labels, one = [ROWS[name] for name in names if name in ROWS], declared.call
    return replace(states, name=declared.name, labels=tuple(labels),
                   single=lambda w, *state, **options: one(w, *state[:len(labels)], **options),
                   wrenched='external_wrenches' in names)


@overload
def plain(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Model, P], R]: ...


@overload
def plain(method: Callable[Concatenate[Any, P], Any],
          kind: type[R]) -> Callable[Concatenate[Model, P], R]: ...


def plain(method: Any, kind: type | None = None) -> Any:
    """Return the function of a robot that calls a method; ``kind`` of the part that it returns."""
    form, name = signature(method), method.__name__
    declared, given = QUANTITIES[name], list(form.parameters.values())[1:]
    assert (declared.part is None) == (kind is None)
    returns = form.return_annotation if kind is None else (
        'np.ndarray' if kind is np.ndarray else kind.__name__)
    needed, options = [x for x in given if x.default is x.empty], [
        x for x in given if x.default is not x.empty]       # by keyword
    arguments = ["model: 'Model'", *map(str, needed), *['*'] * bool(options), *map(str, options)]
    call = ', '.join(f'{x.name}={x.name}' if x.kind is x.KEYWORD_ONLY else x.name for x in given)
    result = f'workspace_of(model).{name}({call})'
    if options:     # machine code is called without options that have their defaults
        usual = ' and '.join(f'{x.name} is default_{x.name}' for x in options)
        bare = ', '.join(x.name for x in needed)
        result = f'(workspace_of(model).{name}({bare}) if {usual} else {result})'
    if declared.part is not None:
        result = f'{result}[{declared.part}]'
    if declared.kept:
        result = f'{result}.copy()' if returns == 'np.ndarray' else f'copied({result})'
    function = function_of(
        name, f"({', '.join(arguments)}) -> {returns!r}",
        ''.join(f'check_{x}({x}) or ' for x in declared.check) + result,
        {'workspace_of': workspace_of, 'copied': copied,
         **{f'default_{x.name}': x.default for x in options},
         **{f'check_{x}': one for x, one in declared.check.items()}})
    function.__module__, function.__signature__ = method.__module__, signature(function)
    function.__wrapped__ = method       # whose source `inspect` shows
    function.__doc__ = form_doc(declared.doc, [x.name for x in given], 'model')
    QUANTITIES[name] = declared._replace(function=function)
    return function


def copied(results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return results with copies of their arrays."""
    # Named tuples are made in half of the time that their class takes.
    return tuple.__new__(type(results), [
        x.copy() if type(x) is np.ndarray else x for x in results])


def function_of(name: str, form: str, result: str, names: dict[str, Any]) -> Any:
    """Return the function with this signature that returns an expression of names."""
    # As those of data classes: passing on any arguments takes longer.
    exec(f'def {name}{form}: return {result}', names)
    return names[name]
