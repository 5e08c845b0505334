# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Products of Jacobians and vectors, as a primitive of JAX.

For one direction or one weight per state, as in `jax.jvp` and `jax.grad`, the product is computed
where the Jacobian is, while it is in the caches. Where there are many at one state, as in
`jax.jacfwd` and `jax.jacrev`, the Jacobian is computed once, and XLA multiplies.

"""

from collections.abc import Callable, Sequence
from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from rbd_ros.differentiable import Jacobians
from rbd_ros.jax.calls import contracted, multiply
from rbd_ros.jax.changes import with_batch_first
from rbd_ros.model.model import Model

product_p = Primitive('rbd_ros_jacobian_product')


class Products:
    """
    Products of the Jacobians of a function, side by side in one matrix (..., m, k), and vectors.

    Parameters
    ----------
    model : Model
    kernel : str
        The function of `rbd_ros.batch` that writes the matrices.
    matrices, changes
        The Jacobians of states, and their derivatives along directions.

    """

    def __init__(self, model: Model, kernel: str, matrices: Jacobians,
                 changes: Callable[..., Sequence[Any]]) -> None:
        self.model, self.kernel, self.matrices, self.changes = model, kernel, matrices, changes

    def __call__(self, states: Sequence[Any], x: Any, transposed: bool = False) -> Any:
        """Return J x (..., m), or with ``transposed`` the product of x (..., m) and J."""
        return product_p.bind(*states, x, of=self, transposed=transposed)

    def by_matrices(self, states: Sequence[Any], x: Any, transposed: bool) -> Any:
        """Return the product by means of the matrices."""
        return contracted(self.matrices(*states), x, transposed)

    def of_changes(self, states: Sequence[Any], directions: Sequence[Any], x: Any,
                   transposed: bool) -> Any:
        """Return the product with the derivatives of the matrices along changes of states."""
        return contracted(self.changes(states, directions), x, transposed)


def _shape(*arguments: Any, of: Products, transposed: bool) -> Any:
    x, nv = arguments[-1], of.model.nv
    return x.update(shape=(*x.shape[:-1], 3 * nv if transposed else nv))


def _compute(*arguments: Any, of: Products, transposed: bool) -> Any:
    return multiply(of.model, of.kernel, arguments[:-1], arguments[-1], transposed)


def _jvp(values: Sequence[Any], tangents: Sequence[Any], *, of: Products, transposed: bool) -> Any:
    *states, x = values
    *directions, dx = tangents
    parts = []
    if type(dx) is not ad.Zero:
        parts.append(of(states, dx, transposed))
    if any(type(one) is not ad.Zero for one in directions):
        whole = [ad.instantiate_zeros(one) for one in directions]
        parts.append(of.of_changes(states, whole, x, transposed))
    change = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return of(states, x, transposed), change


def _transpose(weights: Any, *arguments: Any, of: Products, transposed: bool) -> Any:
    *states, _ = arguments
    if type(weights) is ad.Zero:
        return [None] * len(arguments)
    return [None] * len(states) + [of(states, weights, not transposed)]


def _batch(arguments: Sequence[Any], axes: Sequence[int | None], *, of: Products,
           transposed: bool) -> Any:
    moved = with_batch_first(arguments, axes)
    if all(axis is None for axis in axes[:-1]):
        return of.by_matrices(arguments[:-1], moved[-1], transposed), 0
    return of(moved[:-1], moved[-1], transposed), 0


product_p.def_impl(_compute)
product_p.def_abstract_eval(_shape)
mlir.register_lowering(product_p, mlir.lower_fun(_compute, multiple_results=False))
ad.primitive_jvps[product_p] = _jvp
ad.primitive_transposes[product_p] = _transpose
batching.primitive_batchers[product_p] = _batch
