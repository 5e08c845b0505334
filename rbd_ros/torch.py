# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions of a robot as functions of PyTorch, which autograd differentiates up to twice.

``inverse_dynamics(model)`` returns a function of tensors q (..., nq), v and a (..., nv) with any
number of leading axes, and so do its kin; units are those of `rbd_ros`. Values and first
derivatives come from the compiled functions of `rbd_ros.batch`, first derivatives analytically,
second ones by differences of these, to ten digits or more; third ones raise RuntimeError. The
derivative with respect to a quaternion is that of the function of the unit quaternion in its
direction. With closed loops there are first derivatives only, along motions that keep the loops
closed.

Tensors must be on the CPU. Results have the type of the arguments and are computed with 64 bits:
contiguous tensors of float64 are not copied. Errors are those of `rbd_ros`; those of states number
them in the order of rows.

"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
from rbd_ros.codegen.evaluation import evaluate
from rbd_ros.codegen.graph import Graph
from rbd_ros.codegen.tracing import trace
from rbd_ros.differentiable import (
    Backend, backend_of, changes, check_shapes, configuration_rate as rate, function_of_robots,
    halves, jacobians, names_of_functions, public, run_batch, value)
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import refuse_loops
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES

try:
    import torch
except ImportError as error:
    raise ImportError("rbd_ros.torch needs the package torch: pip install 'rbd_ros[torch]'"
                      ) from error

__all__ = ['configuration_rate', *names_of_functions()]
Function: TypeAlias = Callable[..., Any]     # of several results: a tuple of tensors


def configuration_rate(model: Model) -> Function:
    """Return the function (q, v) -> dq/dt (..., nq), which is v but for quaternions."""
    refuse_loops(model, 'configuration_rate')
    return public(model, 'configuration_rate', ('q', 'v'), _convert,
                  lambda *x: (rate(model, torch, *x),))


def _function(model: Model, name: str, *options: Any) -> Function:
    declared = QUANTITIES[name]
    if declared.derivatives is None:
        graph = trace(model, name, **dict(zip(declared.options, options)))
        return public(model, name, [x.name for x in graph.inputs], _convert,
                      partial(_evaluated, graph))
    link = options[0] if options else None

    def run(kernel: str, *states: np.ndarray) -> tuple[np.ndarray, ...]:
        return run_batch(model, kernel, states, link)
    backend = backend_of(model, name, link, np, run)
    return public(model, name, declared.inputs, _convert, lambda *states: (_Value.apply(
        backend, name, *states).reshape(*states[0].shape[:-1], *backend.shape),))


def _evaluated(graph: Graph, *states: torch.Tensor) -> list[torch.Tensor]:
    """Return results in operations of PyTorch, which autograd differentiates."""
    one = torch.ones_like(states[0][..., 0])
    return [torch.stack([x * one for x in array.ravel()], -1).reshape(*one.shape, *array.shape)
            for array in evaluate(graph, [x.unbind(-1) for x in states], torch, float)]


def _convert(model: Model, labels: Sequence[str], arguments: Sequence[torch.Tensor]
             ) -> tuple[list[torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]:
    """Return tensors of 64 bits with equal leading axes, checked, and see `public`."""
    for label, x in zip(labels, arguments):
        if not isinstance(x, torch.Tensor):
            raise StateError(f'{label} is no tensor but of type {type(x).__name__}: '
                             'use torch.as_tensor(...)')
        if x.dtype.is_complex:
            raise StateError(f'{label} has the type {x.dtype}; it must be real')
        if not x.dtype.is_floating_point:
            raise StateError(f'{label} has the type {x.dtype}; results and gradients have the '
                             'type of the arguments, which must be a floating-point type: '
                             'use .double()')
        if x.device.type != 'cpu':
            raise StateError(f'{label} is on the device {x.device}; rbd_ros.torch computes on the '
                             'CPU: use .cpu()')
    check_shapes(model, labels, [tuple(x.shape) for x in arguments])
    dtype = reduce(torch.promote_types, [x.dtype for x in arguments])
    leading = torch.broadcast_shapes(*(x.shape[:-1] for x in arguments))
    return [x.to(torch.float64).expand(*leading, -1) for x in arguments], lambda x: x.to(dtype)


class _Batched(torch.autograd.Function):
    """A function of tensors with leading axes, of which `torch.vmap` adds one."""

    @classmethod
    def vmap(cls, info: Any, in_dims: Sequence[int | None], *arguments: Any) -> Any:
        found = cls.apply(*(
            x if not isinstance(x, torch.Tensor) else x.movedim(axis, 0) if axis is not None
            else x.expand(info.batch_size, *x.shape) for x, axis in zip(arguments, in_dims)))
        return found, 0 if isinstance(found, torch.Tensor) else (0,) * len(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.of = inputs[:2]
        ctx.save_for_backward(*inputs[2:])
        ctx.save_for_forward(*inputs[2:])


class _Value(_Batched):
    """The entries (..., m) of the result of a function."""

    @staticmethod
    def forward(backend: Backend, name: str, *states: torch.Tensor) -> torch.Tensor:
        found = value(backend, name, *_arrays(states))
        return torch.from_numpy(found.reshape(
            *states[0].shape[:-1], prod(backend.shape)))

    @staticmethod
    def backward(ctx: Any, weights: torch.Tensor) -> Any:
        return None, None, *_Gradient.apply(*ctx.of, weights, *ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Any:
        return _Change.apply(*ctx.of, *ctx.saved_tensors, *directions[2:])


class _Gradient(_Batched):
    """The derivatives of the weighted sum of the entries, one for each argument."""

    @staticmethod
    def forward(backend: Backend, name: str, weights: torch.Tensor,
                *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return _tensors(_gradient(backend, name, *_arrays([weights, *states])))

    @staticmethod
    def backward(ctx: Any, *directions: torch.Tensor) -> Any:
        weights, *states = ctx.saved_tensors
        return (None, None, _Last.apply(_change, *ctx.of, *states, *directions)[0],
                *_Last.apply(_gradient_change, *ctx.of, weights, *states, *directions))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        (weights, *states), (change, *directions) = ctx.saved_tensors, tangents[2:]
        of_weights = _Last.apply(_gradient, *ctx.of, change, *states)
        of_states = _Last.apply(_gradient_change, *ctx.of, weights, *states, *directions)
        return tuple(x + y for x, y in zip(of_weights, of_states))


class _Change(_Batched):
    """The derivatives (..., m) of the entries along directions."""

    @staticmethod
    def forward(backend: Backend, name: str, *tensors: torch.Tensor) -> torch.Tensor:
        return _tensors(_change(backend, name, *_arrays(tensors)))[0]

    @staticmethod
    def backward(ctx: Any, weights: torch.Tensor) -> Any:
        states = ctx.saved_tensors[:len(ctx.saved_tensors) // 2]
        return (None, None,
                *_Last.apply(_gradient_change, *ctx.of, weights, *ctx.saved_tensors),
                *_Last.apply(_gradient, *ctx.of, weights, *states))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        states, directions = halves(ctx.saved_tensors)
        other, change = halves(tangents[2:])
        return (_Last.apply(_change, *ctx.of, *states, *change)[0]
                + _Last.apply(_change_change, *ctx.of, *states, *directions, *other)[0])


class _Last(_Batched):
    """What a function of arrays returns, which has no derivatives."""

    @staticmethod
    def forward(compute: Callable[..., Sequence[np.ndarray]], backend: Backend, name: str,
                *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return _tensors(compute(backend, name, *_arrays(tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.name = inputs[2]

    @staticmethod
    def backward(ctx: Any, *weights: torch.Tensor) -> Any:
        raise RuntimeError(f'third derivatives of {ctx.name} are not available in PyTorch')

    jvp = backward


def _arrays(tensors: Sequence[torch.Tensor]) -> list[np.ndarray]:
    return [x.detach().numpy() for x in tensors]


def _tensors(arrays: Sequence[np.ndarray]) -> tuple[torch.Tensor, ...]:
    return tuple(map(torch.from_numpy, arrays))


def _change(backend: Backend, name: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return the derivative of the entries, given states and directions."""
    states, directions = halves(arrays)
    return [_along(jacobians(backend, name, *states), directions)]


def _change_change(backend: Backend, name: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return the derivative of `_change`, given states, directions and changes of the states."""
    count = len(arrays) // 3
    states, directions, others = arrays[:count], arrays[count:2 * count], arrays[2 * count:]
    matrices = partial(jacobians, backend, name)
    return [_along(changes(backend, matrices, states, others), directions)]


def _along(matrices: Sequence[np.ndarray], directions: Sequence[np.ndarray]) -> np.ndarray:
    return np.add.reduce([np.einsum('...mk,...k->...m', J, x)
                          for J, x in zip(matrices, directions)])


def _gradient(backend: Backend, name: str, weights: np.ndarray,
              *states: np.ndarray) -> list[np.ndarray]:
    """Return the derivatives of the weighted sum of the entries."""
    return [np.einsum('...mk,...m->...k', J, weights) for J in jacobians(backend, name, *states)]


def _gradient_change(backend: Backend, name: str, weights: np.ndarray,
                     *arrays: np.ndarray) -> list[np.ndarray]:
    """Return the derivatives of `_gradient`, given states and directions; they are symmetric."""
    return [np.einsum('...mk,...m->...k', dJ, weights)
            for dJ in changes(backend, partial(jacobians, backend, name), *halves(arrays))]


def __getattr__(name: str) -> Callable[..., Function]:
    return function_of_robots(__name__, name, _function)
