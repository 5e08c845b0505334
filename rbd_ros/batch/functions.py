# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions that `quantity` declares with a kernel for many states.

Each is created at its first use. Functions that do more than call their kernel are in the other
modules. ``functions.pyi``, which `make stubs` writes, has the types.

"""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike
from rbd_ros.batch.tasks import Given, solve, tree_workspace
from rbd_ros.batch.threads import Progress
from rbd_ros.model.arguments import check_model, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.documentation import states_doc
from rbd_ros.workspace.lanes import Task
from rbd_ros.workspace.quantity import task_of

Function = Callable[..., Any]


def _of_q(task: Task) -> Function:
    def function(model: Model, Q: ArrayLike, *, out: Any = None, threads: int | None = None,
                 progress: Progress | None = None) -> Any:
        return task.result(solve(model, task, (Q,), out, threads, progress))
    return function


def _of_q_v(task: Task) -> Function:
    def function(model: Model, Q: ArrayLike, V: ArrayLike, *, out: Any = None,
                 threads: int | None = None, progress: Progress | None = None) -> Any:
        return task.result(solve(model, task, (Q, V), out, threads, progress))
    return function


def _of_q_v_a(task: Task) -> Function:
    def function(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *, out: Any = None,
                 threads: int | None = None, progress: Progress | None = None) -> Any:
        return task.result(solve(model, task, (Q, V, A), out, threads, progress))
    return function


def _of_q_v_a_wrenches(task: Task) -> Function:
    def function(model: Model, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *,
                 external_wrenches: Wrenches | None = None, out: Any = None,
                 threads: int | None = None, progress: Progress | None = None) -> Any:
        return task.result(solve(model, task, (Q, V, A), out, threads, progress,
                                 external_wrenches=external_wrenches))
    return function


def _of_q_link(task: Task) -> Function:
    def function(model: Model, Q: ArrayLike, link: str, *, out: Any = None,
                 threads: int | None = None, progress: Progress | None = None) -> Any:
        return task.result(solve(model, task, (Q,), out, threads, progress,
                                 given=_given_link(model, task, link)))
    return function


def _of_q_v_link(task: Task) -> Function:
    def function(model: Model, Q: ArrayLike, V: ArrayLike, link: str, *, out: Any = None,
                 threads: int | None = None, progress: Progress | None = None) -> Any:
        return task.result(solve(model, task, (Q, V), out, threads, progress,
                                 given=_given_link(model, task, link)))
    return function


# By the names of vectors, whether there are external wrenches, and whether there is a link.
MAKERS = {
    (('Q',), False, False): _of_q,
    (('Q', 'V'), False, False): _of_q_v,
    (('Q', 'V', 'A'), False, False): _of_q_v_a,
    (('Q', 'V', 'A'), True, False): _of_q_v_a_wrenches,
    (('Q',), False, True): _of_q_link,
    (('Q', 'V'), False, True): _of_q_v_link}


def _given_link(model: Model, task: Task, link: str) -> Given:
    check_model(model)
    assert task.of_link is not None
    return Given(task.of_link(tree_workspace(model), link), {'link': link})


def _make(name: str) -> Function:
    task, plain = task_of(name), QUANTITIES[name].function
    function = MAKERS[task.labels, task.wrenched, task.of_link is not None](task)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = states_doc(plain.__doc__ or '', task.labels)
    return function


def __getattr__(name: str) -> Function:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = function = _make(name)
    return function


__all__ = [name for name, quantity in QUANTITIES.items() if quantity.task is not None]
