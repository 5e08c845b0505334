# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of Jacobians along one direction, as a primitive of JAX.

They are differences of Jacobians at points along the direction, in which they are linear although
this does not show. Where JAX needs that, in reverse mode, the derivatives along all coordinates
are computed and multiplied by the direction; also if there are many directions at one state.

"""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
import jax.numpy as jnp
from rbd_ros.differentiable import (
    Backend, changes, changes_along_others, changes_along_q, halves, Jacobians)

changes_p = Primitive('rbd_ros_jacobian_changes')
changes_p.multiple_results = True


class Changes:
    """The derivatives of Jacobians, ``matrices``, which have ``size`` rows."""

    def __init__(self, backend: Backend, matrices: Jacobians, size: int) -> None:
        self.backend, self.matrices, self.size = backend, matrices, size

    def __call__(self, states: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
        """Return the derivatives along directions, of the shapes of the Jacobians."""
        return changes_p.bind(*states, *directions, of=self)

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


def _shapes(*arguments: Any, of: Changes) -> list[Any]:
    nv = of.backend.model.nv
    return [x.update(shape=(*x.shape[:-1], of.size, nv)) for x in halves(arguments)[0]]


def _jvp(values: Sequence[Any], tangents: Sequence[Any], *, of: Changes) -> Any:
    whole = [ad.instantiate_zeros(x) for x in tangents]
    if all(type(x) is ad.Zero for x in halves(tangents)[0]):
        return of(*halves(values)), of(halves(values)[0], halves(whole)[1])
    return jax.jvp(of.by_all, values, whole)


def _transpose(weights: Sequence[Any], *arguments: Any, of: Changes) -> Any:
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


def _batch(arguments: Sequence[Any], axes: Sequence[int | None], *, of: Changes) -> Any:
    count = len(arguments) // 2
    if all(axis is None for axis in axes[:count]):
        found = jax.vmap(of.by_all, in_axes=tuple(axes))(*arguments)
    else:
        moved = with_batch_first(arguments, axes)
        found = of(moved[:count], moved[count:])
    return found, [0] * len(found)


changes_p.def_impl(lambda *arguments, of: of.along(*arguments))
changes_p.def_abstract_eval(_shapes)
mlir.register_lowering(changes_p, mlir.lower_fun(
    lambda *arguments, of: of.along(*arguments), multiple_results=True))
ad.primitive_jvps[changes_p] = _jvp
ad.primitive_transposes[changes_p] = _transpose
batching.primitive_batchers[changes_p] = _batch
