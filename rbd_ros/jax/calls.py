# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How JAX computes the functions of `rbd_ros.batch`."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rbd_ros.codegen.jax_code import jax_function
from rbd_ros.codegen.tracing import trace
from rbd_ros.differentiable import run_batch
from rbd_ros.jax.handler import block_width, number_of, TARGET
from rbd_ros.model.model import Model


def call(model: Model, name: str, states: Sequence[jax.Array],
         link: str | None = None) -> tuple[jax.Array, ...]:
    """
    Return the results of a function of `rbd_ros.batch`; those of states with errors are NaN.

    ``states`` are arrays (..., nq) and (..., nv) of float64 with the same leading axes. On the CPU
    compiled kernels are called, elsewhere the function's straight-line code is run; robots with
    closed loops have none.

    """
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
    """
    Return products of derivatives, side by side in one matrix J (..., nv, 3 nv), and vectors.

    They are J x (..., nv), or with ``transposed`` those of x (..., nv) and J, and NaN for states
    that cannot be computed. ``name`` is that of a function in rows, see `block_width`.

    """
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
