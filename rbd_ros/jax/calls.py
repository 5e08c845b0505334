# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How JAX computes the functions of `rbd_ros.batch`: by kernels on the CPU, elsewhere in operations.

XLA needs minutes to compile thousands of operations one by one. Here a loop runs through those of
a graph: each of its steps computes WIDTH operations, which do not depend on each other. Before it
come the sines and cosines of inputs.

"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rbd_ros.codegen.evaluation import FUNCTIONS, INFIX, OPERATORS
from rbd_ros.codegen.graph import Graph, Operation
from rbd_ros.codegen.tracing import trace
from rbd_ros.differentiable import run_batch
from rbd_ros.jax.handler import block_width, number_of, TARGET
from rbd_ros.model.model import Model

WIDTH = 32
# Kinds that are not finite for some arguments: where others are meant, they get ones, because
# their derivatives are multiplied by zero.
UNBOUNDED = 'div', 'sqrt', 'exp'


def _of_one(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, _: function(x)


# Kinds of operations on x and y; the latter is x if there is only one argument.
_APPLY = {kind: function if kind in INFIX else _of_one(function) for kind, function in (
    *OPERATORS.items(), *((kind, getattr(jnp, kind)) for kind in FUNCTIONS))}


def call(model: Model, name: str, states: Sequence[jax.Array],
         link: str | None = None) -> tuple[jax.Array, ...]:
    """Return the results of a function of `rbd_ros.batch`; those of states with errors are NaN."""
    # Robots with closed loops have no straight-line code.
    kernels = _kernels(model, name, link)
    if jax.default_backend() == 'cpu' or model.loops is not None:
        return kernels(*states)
    return tuple(jax.lax.platform_dependent(*states, cpu=kernels,
                                            default=straight_line(model, name, link)))


def _kernels(model: Model, name: str, link: str | None) -> Callable[..., tuple[jax.Array, ...]]:
    """Return a function of `rbd_ros.batch` that calls the kernels."""
    nv, width = model.nv, block_width(model, name)
    number = np.int64(number_of(model, name, link))

    def call_kernels(*states: jax.Array) -> tuple[jax.Array, ...]:
        leading = states[0].shape[:-1]
        shapes = [(width,)] if width is not None else [x.shape[1:] for x in run_batch(
            model, name, [np.empty((0, x.shape[-1])) for x in states], link)]
        results = jax.ffi.ffi_call(
            TARGET, [jax.ShapeDtypeStruct((*leading, *shape), jnp.float64) for shape in shapes],
            vmap_method='broadcast_all')(*states, function=number)
        if width is None:
            return tuple(results)
        # The derivatives are side by side; rows are filled up for the processor's registers.
        block = results[0][..., :3 * nv * nv].reshape(*leading, nv, 3 * nv)
        return tuple(jnp.split(block, 3, -1))
    return call_kernels


def multiply(model: Model, name: str, states: Sequence[jax.Array], x: jax.Array,
             transposed: bool) -> jax.Array:
    """Return products of derivatives in rows, J (..., nv, 3 nv), and vectors; NaN after errors."""
    number = np.int64(number_of(model, name, None, transposed))

    def kernels(*arrays: jax.Array) -> jax.Array:
        shape = *arrays[0].shape[:-1], (3 if transposed else 1) * model.nv
        found: jax.Array = jax.ffi.ffi_call(
            TARGET, jax.ShapeDtypeStruct(shape, jnp.float64),
            vmap_method='broadcast_all')(*arrays, function=number)
        return found

    def operations(*arrays: jax.Array) -> jax.Array:
        return contracted(straight_line(model, name, None)(*arrays[:-1]), arrays[-1], transposed)
    if jax.default_backend() == 'cpu':
        return kernels(*states, x)
    found: jax.Array = jax.lax.platform_dependent(*states, x, cpu=kernels, default=operations)
    return found


def contracted(matrices: Sequence[jax.Array], x: jax.Array, transposed: bool) -> jax.Array:
    """Return the product of matrices, side by side, and vectors."""
    J = jnp.concatenate(matrices, -1)
    return jnp.einsum('...mk,...m->...k' if transposed else '...mk,...k->...m', J, x)


@cache
def straight_line(model: Model, name: str, link: str | None) -> Callable[..., Any]:
    """Return a function of `rbd_ros.batch` in operations of JAX alone."""
    return jax_function(trace(model, name, **{} if link is None else {'link': link}))


# -- Straight-line code. -------------------------------------------------------------------------
def jax_function(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """Return a function of JAX that computes a graph, for states with equal leading axes."""
    operations = graph.operations
    first = [k for k, x in enumerate(operations) if x.kind in ('constant', 'input') or (
        x.kind in ('sin', 'cos') and operations[x.arguments[0]].kind == 'input')]
    places, steps = _schedule(operations, first)
    used = {operations[k].kind for numbers in steps for k in numbers}
    kinds = [kind for kind in _APPLY if kind in used]
    # By step: where results go, and of each operation its kind and where its arguments are.
    starts = np.arange(len(steps)) * WIDTH + len(first)
    table = np.zeros((3, len(steps), WIDTH), np.int32)
    for step, numbers in enumerate(steps):
        for k, number in enumerate(numbers):
            kind, arguments = operations[number]
            table[0, step, k] = kinds.index(kind)
            table[1:, step, k] = places[arguments[0]], places[arguments[-1]]

    def function(*states: Any) -> tuple[Any, ...]:
        leading, dtype = states[0].shape[:-1], jnp.result_type(*states)
        values = jnp.zeros((len(first) + len(steps) * WIDTH, *leading), dtype)

        def value(k: int) -> Any:
            kind, arguments = operations[k]
            if kind == 'constant':
                return jnp.full(leading, arguments[0], dtype)
            if kind == 'input':
                return states[arguments[0]][..., arguments[1]]
            return _APPLY[kind](value(arguments[0]), None)
        values = values.at[:len(first)].set(jnp.stack([value(k) for k in first]))

        def run(values: Any, step: Any) -> tuple[Any, None]:
            start, (codes, x, y) = step
            x, y = values[x], values[y]
            codes = jnp.broadcast_to(codes.reshape(-1, *[1] * len(leading)), x.shape)
            results = jax.lax.select_n(codes, *[
                _APPLY[kind](*(jnp.where(codes == code, z, 1.0) if kind in UNBOUNDED else z
                               for z in (x, y))) for code, kind in enumerate(kinds)])
            return jax.lax.dynamic_update_slice_in_dim(values, results, start, 0), None
        if steps:
            values, _ = jax.lax.scan(run, values, (starts, tuple(table)))
        return tuple(jnp.moveaxis(values[places[numbers.ravel()]], 0, -1).reshape(
            *leading, *numbers.shape) for numbers in graph.results)
    return function


def _schedule(operations: tuple[Operation, ...],
              first: list[int]) -> tuple[np.ndarray, list[list[int]]]:
    """Return where each result is kept, and the operations of each step; ``first`` are done."""
    levels: list[list[int]] = []
    level, known = np.zeros(len(operations), int), set(first)
    for k, (_, arguments) in enumerate(operations):
        if k not in known:
            level[k] = 1 + max(level[j] for j in arguments)
            levels += [[] for _ in range(level[k] - len(levels))]
            levels[level[k] - 1].append(k)
    steps = [numbers[k:k + WIDTH] for numbers in levels for k in range(0, len(numbers), WIDTH)]
    places = np.zeros(len(operations), int)
    places[first] = np.arange(len(first))
    for step, numbers in enumerate(steps):
        places[numbers] = len(first) + step * WIDTH + np.arange(len(numbers))
    return places, steps
