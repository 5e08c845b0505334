# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
One declaration for each quantity, from which its other forms derive.

A plain function of a robot is documented and decorated with `quantity`, which adds the method of
`Workspace` that calls the kernel, the maps of its results between coordinates, and the kernel for
many states. The methods for trees and for coupled coordinates and the function of `rbd_ros.batch`
derive from these, without overhead in calls.

"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from rbd_ros.workspace.closed_loops import ClosedMethods
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.documentation import method_doc
from rbd_ros.workspace.lanes import Outputs, States, Task
from rbd_ros.workspace.maps import Map
from rbd_ros.workspace.workspace import Workspace

Plain = TypeVar('Plain', bound=Callable[..., Any])


class Quantity(NamedTuple):
    """A declared quantity."""

    function: Callable[..., Any]    # of a robot
    method: Callable[..., Any]      # of `Workspace`, for trees
    task: Task | None               # for many states


QUANTITIES: dict[str, Quantity] = {}    # by name; those of imported modules


def quantity(method: Callable[..., Any], *maps: Map, part: int | None = None,
             states: States | None = None) -> Callable[[Plain], Plain]:
    """
    Declare a quantity by decorating its plain function, which is returned unchanged.

    `method` is that of `Workspace`, for trees; it has a docstring if it returns more than the
    plain function, of which `part` is the plain result. There is one map for each result of the
    method, or none if it is composed of other methods. `states` has the kernel for many states.

    """
    def declare(function: Plain) -> Plain:
        name = function.__name__
        doc = method_doc(function.__doc__ or '', method.__doc__)
        add_method(name, method, *maps, doc=doc)
        task = None
        if states is not None:
            own = maps if part is None else maps[part:part + 1]
            task = states.task(method, Outputs(states.shapes, states.cut, own),
                               lambda w, *state, **options: parts(
                                   getattr(w, name)(*state, **options), part))
        QUANTITIES[name] = Quantity(function, method, task)
        return function
    return declare


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


def add_method(name: str, method: Callable[..., Any], *maps: Map, doc: str | None = None) -> None:
    """Add a method to the classes of workspaces."""
    method.__name__, method.__qualname__ = name, f'Workspace.{name}'
    method.__doc__ = doc or method.__doc__
    setattr(Workspace, name, method)
    # Methods written out for coupled coordinates are faster than derived ones.
    for methods in (CoupledMethods, ClosedMethods):
        if name in vars(methods):
            getattr(methods, name).__doc__ = method.__doc__
        elif maps:
            methods.add_mapped(name, method, maps)
