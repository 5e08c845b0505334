# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions of a robot as functions of JAX, which `jax.jit`, `vmap`, `grad` and others take.

``inverse_dynamics(model)`` returns a function of arrays q (..., nq), v and a (..., nv) with any
number of leading axes, and so do its kin; units are those of `rbd_ros`. Values and first
derivatives come from the compiled functions of `rbd_ros.batch`, first derivatives analytically,
second and higher ones by differences of these, to ten digits or more. The derivative with respect
to a quaternion is that of the function of the unit quaternion in its direction. With closed loops
there are first derivatives only, along motions that keep the loops closed.

Results have the type of the arguments and are computed with 64 bits, which JAX must be allowed to
use: ``jax.config.update('jax_enable_x64', True)``. Arguments of the wrong shape raise StateError.
States that cannot be computed, such as those with infinite numbers, have NaN as results: compiled
functions of JAX raise no errors.

"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

try:
    import jax
except ImportError as error:
    raise ImportError("rbd_ros.jax needs the package jax: pip install 'rbd_ros[jax]'") from error

import jax.numpy as jnp
from rbd_ros.codegen.tracing import trace
from rbd_ros.differentiable import (
    Backend, backend_of, check_shapes, configuration_rate as rate, derivatives, function_of_robots,
    link_of, names_of_functions, public, value, velocity)
from rbd_ros.errors import StateError
from rbd_ros.jax.calls import call, contracted, jax_function
from rbd_ros.jax.handler import block_width
from rbd_ros.jax.primitives import Changes, Products
from rbd_ros.model.arguments import refuse_loops
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES

__all__ = ['configuration_rate', *names_of_functions()]
Function: TypeAlias = Callable[..., Any]     # of several results: a tuple of arrays


def _function(model: Model, name: str, *options: Any) -> Callable[..., Any]:
    """Return a function of a robot, with its derivatives of all orders."""
    if QUANTITIES[name].derivatives is None:
        # In operations that JAX differentiates.
        graph = trace(model, name, **dict(zip(QUANTITIES[name].options, options)))
        return public(model, name, [x.name for x in graph.inputs], _convert, jax_function(graph))
    link = options[0] if options else None

    def run(kernel: str, *states: jax.Array) -> tuple[jax.Array, ...]:
        return call(model, kernel, states, *link_of(kernel, link))
    backend = backend_of(model, name, link, jnp, run)
    differentiable = _with_derivatives(backend, name)
    return public(model, name, QUANTITIES[name].inputs, _convert,
                  lambda *x: (differentiable(*x),))


def configuration_rate(model: Model) -> Callable[..., jax.Array]:
    """Return the function (q, v) -> dq/dt (..., nq), which is v but for quaternions."""
    refuse_loops(model, 'configuration_rate')
    return public(model, 'configuration_rate', ('q', 'v'), _convert,
                  lambda *x: (rate(model, jnp, *x),))


def _convert(model: Model, labels: Sequence[str], arguments: Sequence[Any]
             ) -> tuple[list[jax.Array], Callable[[jax.Array], jax.Array]]:
    """Return arguments with 64 bits and equal leading axes, checked, and see `public`."""
    if not jax.config.jax_enable_x64:
        raise StateError('rbd_ros.jax needs numbers of 64 bits: '
                         "jax.config.update('jax_enable_x64', True), before other calls of JAX")
    states = [jnp.asarray(x) for x in arguments]
    check_shapes(model, labels, [x.shape for x in states])
    dtype = jnp.result_type(*states)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise StateError(f"{', '.join(labels)} must be real numbers, got {dtype}")
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.float64
    leading = jnp.broadcast_shapes(*(x.shape[:-1] for x in states))
    return [jnp.broadcast_to(x.astype(jnp.float64), (*leading, x.shape[-1]))
            for x in states], lambda x: x.astype(dtype)


def _with_derivatives(backend: Backend, name: str) -> Callable[..., jax.Array]:
    """Return a function of states (..., nq), (..., nv) with the same leading axes."""
    shape = backend.shape
    result = jax.custom_jvp(partial(value, backend, name))
    matrices = jax.custom_jvp(partial(derivatives, backend, name))
    changes = Changes(backend, matrices, prod(shape))
    kernel = QUANTITIES[name].derivatives
    in_rows = (isinstance(kernel, str) and block_width(backend.model, kernel) is not None
               and QUANTITIES[kernel].inputs == QUANTITIES[name].inputs)
    products = Products(backend.model, str(kernel), matrices, changes)

    def along(states: Sequence[jax.Array], directions: Sequence[jax.Array]) -> Any:
        # Derivatives are along velocities, and so are directions then.
        x = jnp.concatenate([velocity(backend, states[0], directions[0]), *directions[1:]], -1)
        change = (products(states, x) if in_rows else
                  contracted(matrices(*states), x, transposed=False))
        return result(*states), change.reshape(*change.shape[:-1], *shape)
    result.defjvp(along)
    matrices.defjvp(lambda states, directions: (matrices(*states), changes(states, directions)))
    return result


def __getattr__(name: str) -> Callable[..., Function]:
    return function_of_robots(__name__, name, _function)
