# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Primitives of JAX: derivatives of Jacobians along a direction, and products with vectors.

The derivatives are differences of Jacobians at points along the direction, in which they are
linear although this does not show. Where JAX needs that, in reverse mode, the derivatives along
all coordinates are computed and multiplied by the direction; also if there are many directions at
one state.

For one vector per state, as in `jax.jvp` and `jax.grad`, the product is computed where the
Jacobian is, while it is in the caches. Where there are many at one state, as in `jax.jacfwd` and
`jax.jacrev`, the Jacobian is computed once, and XLA multiplies.

"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
import jax.numpy as jnp
from rbd_ros.differentiable import (
    Backend, changes, changes_along_others, changes_along_q, halves, Jacobians)
from rbd_ros.jax.calls import contracted, multiply
from rbd_ros.model.model import Model


def _primitive(name: str, compute: Callable[..., Any], shape: Callable[..., Any],
               rules: Sequence[Callable[..., Any]], *, several: bool) -> Primitive:
    """Return a primitive with rules for forward mode, reverse mode and `jax.vmap`."""
    primitive = Primitive(name)
    primitive.multiple_results = several
    primitive.def_impl(compute)
    primitive.def_abstract_eval(shape)
    mlir.register_lowering(primitive, mlir.lower_fun(compute, multiple_results=several))
    for table, rule in zip((ad.primitive_jvps, ad.primitive_transposes,
                            batching.primitive_batchers), rules):
        table[primitive] = rule
    return primitive


# -- Derivatives of Jacobians. --------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Changes:
    """The derivatives of Jacobians, ``matrices``, which have ``size`` rows."""

    backend: Backend
    matrices: Jacobians
    size: int

    def __call__(self, states: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
        """Return the derivatives along directions, of the shapes of the Jacobians."""
        return CHANGES.bind(*states, *directions, of=self)

    def along(self, *arrays: Any) -> list[Any]:
        """Return the derivatives by differences, given states and directions."""
        return changes(self.backend, self.matrices, *halves(arrays))

    def by_all(self, *arrays: Any) -> list[Any]:
        """Return the derivatives as products of those along all coordinates and directions."""
        states, (along_q, *others) = halves(arrays)
        backend, matrices, q = self.backend, self.matrices, states[0]
        by_q = jax.vmap(lambda unit: changes_along_q(
            backend, matrices, states, jnp.broadcast_to(unit, q.shape)), out_axes=-1)
        found = [_times(x, along_q) for x in by_q(jnp.eye(q.shape[-1]))]
        if others:
            joined = jnp.concatenate(others, -1)
            by_others = jax.vmap(lambda unit: changes_along_others(
                backend, matrices, states,
                jnp.split(jnp.broadcast_to(unit, joined.shape), len(others), -1)), out_axes=-1)
            found = [x + _times(y, joined)
                     for x, y in zip(found, by_others(jnp.eye(joined.shape[-1])))]
        return found


def _times(derivatives: jax.Array, direction: jax.Array) -> jax.Array:
    return jnp.einsum('...mkh,...h->...mk', derivatives, direction)


def _change_shapes(*arguments: Any, of: Changes) -> list[Any]:
    nv = of.backend.model.nv
    return [x.update(shape=(*x.shape[:-1], of.size, nv)) for x in halves(arguments)[0]]


def _change_jvp(values: Sequence[Any], tangents: Sequence[Any], *, of: Changes) -> Any:
    whole = [ad.instantiate_zeros(x) for x in tangents]
    if all(type(x) is ad.Zero for x in halves(tangents)[0]):
        return of(*halves(values)), of(halves(values)[0], halves(whole)[1])
    return jax.jvp(of.by_all, values, whole)


def _transposed_change(weights: Sequence[Any], *arguments: Any, of: Changes) -> Any:
    states, directions = halves(arguments)
    (*found,) = jax.linear_transpose(lambda *x: of.by_all(*states, *x), *(
        jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in directions))(
            [ad.instantiate_zeros(x) for x in weights])
    return [None] * len(states) + found


def with_batch_first(arguments: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Return arrays whose first axis is that of the batch, of which some have none."""
    size = next(x.shape[axis] for x, axis in zip(arguments, axes) if axis is not None)
    return [jnp.broadcast_to(x, (size, *x.shape)) if axis is None
            else jnp.moveaxis(x, axis, 0) for x, axis in zip(arguments, axes)]


def _many_changes(arguments: Sequence[Any], axes: Sequence[int | None], *, of: Changes) -> Any:
    count = len(arguments) // 2
    if all(axis is None for axis in axes[:count]):
        found = jax.vmap(of.by_all, in_axes=tuple(axes))(*arguments)
    else:
        moved = with_batch_first(arguments, axes)
        found = of(moved[:count], moved[count:])
    return found, [0] * len(found)


CHANGES = _primitive('rbd_ros_jacobian_changes', lambda *arguments, of: of.along(*arguments),
                     _change_shapes, (_change_jvp, _transposed_change, _many_changes),
                     several=True)


# -- Products. ------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Products:
    """Products of the Jacobians of a function, side by side as one (..., m, k), and vectors."""

    model: Model
    kernel: str             # the function of `rbd_ros.batch` that writes the matrices
    matrices: Jacobians     # of states
    changes: Changes        # their derivatives along directions

    def __call__(self, states: Sequence[Any], x: Any, transposed: bool = False) -> Any:
        """Return J x (..., m), or with ``transposed`` the product of x (..., m) and J."""
        return PRODUCTS.bind(*states, x, of=self, transposed=transposed)


def _product_shape(*arguments: Any, of: Products, transposed: bool) -> Any:
    x, nv = arguments[-1], of.model.nv
    return x.update(shape=(*x.shape[:-1], 3 * nv if transposed else nv))


def _product(*arguments: Any, of: Products, transposed: bool) -> Any:
    return multiply(of.model, of.kernel, arguments[:-1], arguments[-1], transposed)


def _product_jvp(values: Sequence[Any], tangents: Sequence[Any], *, of: Products,
                 transposed: bool) -> Any:
    *states, x = values
    *directions, dx = tangents
    parts = []
    if type(dx) is not ad.Zero:
        parts.append(of(states, dx, transposed))
    if any(type(one) is not ad.Zero for one in directions):
        whole = [ad.instantiate_zeros(one) for one in directions]
        parts.append(contracted(of.changes(states, whole), x, transposed))
    change = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return of(states, x, transposed), change


def _transposed_product(weights: Any, *arguments: Any, of: Products, transposed: bool) -> Any:
    *states, _ = arguments
    if type(weights) is ad.Zero:
        return [None] * len(arguments)
    return [None] * len(states) + [of(states, weights, not transposed)]


def _many_products(arguments: Sequence[Any], axes: Sequence[int | None], *, of: Products,
                   transposed: bool) -> Any:
    moved = with_batch_first(arguments, axes)
    if all(axis is None for axis in axes[:-1]):
        return contracted(of.matrices(*arguments[:-1]), moved[-1], transposed), 0
    return of(moved[:-1], moved[-1], transposed), 0


PRODUCTS = _primitive('rbd_ros_jacobian_product', _product, _product_shape,
                      (_product_jvp, _transposed_product, _many_products), several=False)
