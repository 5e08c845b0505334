# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
One declaration for each quantity, from which its other forms derive.

A method of `Workspace` that calls the kernel is documented and decorated with `quantity`, which
adds the maps of its results between coordinates and the kernel for many states. The plain function
of a robot, the methods for trees and for coupled coordinates and the function of `rbd_ros.batch`
derive from these, without overhead in calls.

"""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, overload, ParamSpec, TypeVar

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.workspace.closed_loops import ClosedMethods
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.documentation import form_doc, method_doc
from rbd_ros.workspace.lanes import Outputs, States, Task
from rbd_ros.workspace.maps import Map
from rbd_ros.workspace.workspace import Workspace, workspace_of

P = ParamSpec('P')
R = TypeVar('R')
Plain = TypeVar('Plain', bound=Callable[..., Any])
Method = Callable[Concatenate[Any, P], R]
Function = Callable[Concatenate[Model, P], R]
Check = Mapping[str, Callable[[object], None]]


class Quantity(NamedTuple):
    """A declared quantity."""

    function: Callable[..., Any]    # of a robot
    method: Callable[..., Any]      # of `Workspace`, for trees
    task: Task | None               # for many states


QUANTITIES: dict[str, Quantity] = {}    # by name; those of imported modules


@overload
def quantity(*maps: Map, kept: bool = ..., states: States | None = ..., check: Check = ...
             ) -> Callable[[Method[P, R]], Function[P, R]]: ...


@overload
def quantity(*maps: Map, part: int, returns: str, kept: bool = ..., states: States | None = ...
             ) -> Callable[[Method[P, Any]], Function[P, np.ndarray]]: ...


@overload
def quantity(*maps: Map, part: int, returns: str, kind: type[R]
             ) -> Callable[[Method[P, Any]], Function[P, R]]: ...


def quantity(*maps: Map, part: int | None = None, returns: str | None = None,
             kind: type = np.ndarray, kept: bool = False, states: States | None = None,
             check: Check = MappingProxyType({})) -> Any:
    """
    Declare a quantity by decorating its method of `Workspace`, for trees.

    The decorator returns the plain function of a robot.

    Parameters
    ----------
    *maps
        One for each result of the method, or none if it is composed of other methods.
    part, returns, kind : int, str, type
        If the method returns more than the plain function: which of its results that returns, what
        the documentation of the method says of its results, and the type of that part.
    kept : bool
        Whether the result, one array or two, is kept by the workspace; the plain function copies.
    states : States, optional
        The kernel for many states.
    check : mapping of str to callable
        By the name of a parameter, a function that refuses wrong values for the plain function.

    """
    def declare(method: Callable[..., Any]) -> Any:
        doc, names = method.__doc__ or '', list(signature(method).parameters)[1:]
        method.__doc__ = form_doc(doc, names, returns=returns)
        plain = plain_function(method, part, kind, kept, check)
        plain.__doc__ = form_doc(doc, names, 'model')
        return _declared(plain, method, *maps, part=part, states=states)
    return declare


def quantity_of(method: Callable[..., Any]) -> Callable[[Plain], Plain]:
    """Declare a quantity by decorating a plain function that does more than call the method."""
    def declare(function: Plain) -> Plain:
        method.__doc__ = method_doc(function.__doc__ or '', method.__doc__)
        return _declared(function, method)
    return declare


def _declared(function: Any, method: Callable[..., Any], *maps: Map, part: int | None = None,
              states: States | None = None) -> Any:
    name = function.__name__
    add_method(name, method, *maps)
    task = None
    if states is not None:
        own = maps if part is None else maps[part:part + 1]
        task = states.task(method, Outputs(states.shapes, states.cut, own),
                           lambda w, *state, **options: parts(
                               getattr(w, name)(*state, **options), part))
    QUANTITIES[name] = Quantity(function, method, task)
    return function


def plain_function(method: Callable[..., Any], part: int | None, kind: type, kept: bool,
                   check: Check) -> Any:
    """Return the function of a robot that calls a method of its workspace; options by keyword."""
    form, name = signature(method), method.__name__
    given = list(form.parameters.values())[1:]
    call = ', '.join(f'{x.name}={x.name}' if x.kind is x.KEYWORD_ONLY else x.name for x in given)
    result = f'workspace_of(model).{name}({call})' + ('' if part is None else f'[{part}]')
    if kept:
        pair = part is None and str(form.return_annotation).startswith('tuple')
        result = (f'(found := {result})[0].copy(), found[1].copy()' if pair
                  else f'{result}.copy()')
    function = function_of(
        name, Signature([
            Parameter('model', Parameter.POSITIONAL_OR_KEYWORD, annotation='Model'), *(
                x if x.default is x.empty else x.replace(kind=x.KEYWORD_ONLY) for x in given)],
            return_annotation=form.return_annotation if part is None else kind),
        ''.join(f'check_{x}({x}) or ' for x in check) + result,
        {'workspace_of': workspace_of, **{f'check_{x}': one for x, one in check.items()}})
    function.__module__, function.__wrapped__ = method.__module__, method
    return function


def function_of(name: str, form: Signature, result: str, names: dict[str, Any]) -> Any:
    """
    Return the function with this signature that returns an expression of names.

    It is written as source, as those of data classes are: passing on any arguments takes longer.

    """
    bare = form.replace(return_annotation=Signature.empty, parameters=[
        x.replace(annotation=x.empty, default=x.empty) for x in form.parameters.values()])
    exec(f'def {name}{bare}: return {result}', names)
    function: Any = names[name]
    function.__signature__, function.__kwdefaults__ = form, {
        x.name: x.default for x in form.parameters.values() if x.kind is x.KEYWORD_ONLY}
    return function


def robot_function(module: str, name: str, options: Sequence[str],
                   make: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a robot and options that passes these and its name to ``make``."""
    form = Signature([Parameter(one, Parameter.POSITIONAL_OR_KEYWORD)
                      for one in ('model', *options)])
    function: Callable[..., Any] = function_of(
        name, form, f"make({', '.join(['model', repr(name), *options])})", {'make': make})
    function.__module__ = module
    return function


def task_of(name: str) -> Task:
    """Return the task of a quantity that has a kernel for many states."""
    task = QUANTITIES[name].task
    assert task is not None
    return task


def parts(results: Any, part: int | None) -> Sequence[np.ndarray]:
    """Return the results of a method, or one of them, in a sequence."""
    if part is not None:
        return [results[part]]
    return results if isinstance(results, tuple) else [results]


def add_method(name: str, method: Callable[..., Any], *maps: Map) -> None:
    """Add a method to the classes of workspaces."""
    method.__name__, method.__qualname__ = name, f'Workspace.{name}'
    setattr(Workspace, name, method)
    # Methods written out for coupled coordinates are faster than derived ones.
    for methods in (CoupledMethods, ClosedMethods):
        if name in vars(methods):
            getattr(methods, name).__doc__ = method.__doc__
        elif maps:
            methods.add_mapped(name, method, maps)
