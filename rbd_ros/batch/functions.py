# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions that `quantity` declares with a kernel for many states.

Each is created at its first use. Functions that do more than call their kernel are in the other
modules. The stub of the package, which `make stubs` writes, has the types.
Errors are those of `rbd_ros.batch`.

"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Protocol

from rbd_ros.batch.tasks import Given, solve, solve_prescribed
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.documentation import states_doc
from rbd_ros.workspace.memory.lanes import States
from rbd_ros.workspace.quantity import function_of
from rbd_ros.workspace.workspace import workspace_of


class Loaded(Protocol):
    """An object of `rbd_ros.codegen.load`, whose code computes in place of the kernels."""

    def report(self) -> Mapping[str, Any]:
        """Return how each function computes, by name."""


def _by_code(loaded: Any, name: str, *arguments: Any, **options: Any) -> Any:
    if not hasattr(loaded, 'report'):
        check_model(loaded)     # raises
    return getattr(loaded, name)(*arguments, **{
        key: x for key, x in options.items() if x is not None})


def _given_link(model: Model, task: States, link: str) -> Given:
    check_model(model)
    assert task.of_link is not None
    return Given(task.of_link(workspace_of(model.unconstrained), link), {'link': link})


def _make(name: str) -> Callable[..., Any]:
    declared = QUANTITIES[name]
    task = declared.states
    assert task is not None
    plain, of_link = declared.function, task.of_link is not None
    returns = signature(plain).return_annotation
    states, masked = task.labels, 'prescribed' in declared.options
    form = ', '.join([
        "model: 'Model | Loaded'", *(f"{one}: 'ArrayLike'" for one in states),
        *["link: 'str'"] * of_link, *["prescribed: 'ArrayLike'"] * masked, '*',
        *["external_wrenches: 'Wrenches | None' = None"] * task.wrenched,
        f"out: '{returns} | None' = None", "threads: 'int | None' = None",
        "progress: 'Progress | None' = None"])
    more = (', prescribed' * masked + ', out, threads, progress'
            + ', given=given_link(model, task, link)' * of_link
            + ', external_wrenches=external_wrenches' * task.wrenched)
    given = [*states, *['link'] * of_link, *['prescribed'] * masked, *(f'{one}={one}' for one in (
        *['external_wrenches'] * task.wrenched, 'out', 'threads', 'progress'))]
    function: Callable[..., Any] = function_of(
        name, f'({form}) -> {returns!r}',
        f'result(solve(model, task, ({", ".join(states)},){more})) if isinstance(model, Model) '
        f'else by_code(model, {name!r}, {", ".join(given)})',
        {'result': task.result, 'solve': solve_prescribed if masked else solve, 'task': task,
         'given_link': _given_link, 'Model': Model, 'by_code': _by_code})
    function.__module__ = __name__
    function.__doc__ = states_doc(plain.__doc__ or '', signature(function).parameters)
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    """Return a function; the error for a function of one state states why there is none here."""
    if name not in QUANTITIES or QUANTITIES[name].states is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = function = _make(name)
    return function


__all__ = [name for name, quantity in QUANTITIES.items() if quantity.states is not None]
