# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What `rbd_ros.jax` and `rbd_ros.torch` have in common: derivatives by the rules of quantities.

Quantities without a rule are evaluated and differentiated operation by operation, as they are
traced. The others map arrays (..., nq) and (..., nv) to one array. Its Jacobians, one for each
argument, are (..., m, nq) or (..., m, nv), where m is the number of entries of the result. That
with respect to q is J T: the derivatives J of the library are taken along velocities, and T maps
dq/dt to the velocity. Functions are those of q with unit quaternions; hence a part of dq/dt along
a quaternion has no effect, and J T is the derivative in the space of all q.

The arrays are those of NumPy or of JAX, with ``xp`` the module numpy or jax.numpy.

"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
import sys
from typing import Any, NamedTuple

import numpy as np
from rbd_ros import batch
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.quantity import function_of

# Differences of the eighth order: offsets, in steps, and their weights.
OFFSETS, WEIGHTS = (1.0, 2.0, 3.0, 4.0), (4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0)
# Step, rad or m, or a share of a quaternion's length. Jacobians contain sines of up to twice an
# angle, for which the error is 2e-14 of the derivative, as much as that of rounding.
STEP = 0.02

# Half of omega is BODY(q) dq/dt in the axes of the body and SPACE(q) dq/dt in those of its parent,
# for unit quaternions q = (x, y, z, w); first index: of the entry of q. R = SPACE BODY^T.
BODY, SPACE = (np.array([
    [[0.0, 0.0, 0.0, -1.0], [0.0, 0.0, s, 0.0], [0.0, -s, 0.0, 0.0]],
    [[0.0, 0.0, -s, 0.0], [0.0, 0.0, 0.0, -1.0], [s, 0.0, 0.0, 0.0]],
    [[0.0, s, 0.0, 0.0], [-s, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]],
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]]) for s in (1.0, -1.0))

Array = Any     # of NumPy or of JAX
Shape = tuple[int, ...]
Jacobians = Callable[..., Sequence[Array]]    # a function of arguments, see `jacobians`


def run_batch(model: Model, name: str, states: Sequence[np.ndarray],
              link: str | None = None) -> tuple[np.ndarray, ...]:
    """Call a function of `rbd_ros.batch` for arrays with any number of leading axes."""
    leading = states[0].shape[:-1]
    rows = [x.reshape(prod(leading), x.shape[-1]) for x in states]
    found = getattr(batch, name)(model, *rows, *link_of(name, link))
    return tuple(x.reshape(*leading, *x.shape[1:])
                 for x in (found if isinstance(found, tuple) else (found,)))


def link_of(name: str, link: str | None) -> list[str]:
    """Return the link, if a function of `rbd_ros.batch` takes one."""
    return [link] if link is not None and QUANTITIES[name].options else []


class Backend(NamedTuple):
    """A robot, perhaps one of its links, and how its functions are computed."""

    model: Model
    link: str | None
    xp: Any
    # The function of `rbd_ros.batch` of a name, for arrays with the same leading axes.
    run: Callable[..., tuple[Array, ...]]
    shape: Shape        # of the result

    def velocities(self, q: Array) -> Array:
        """Return velocities of zero for every configuration."""
        return self.xp.zeros((*q.shape[:-1], self.model.nv), q.dtype)

    def units(self, q: Array) -> tuple[Array, Array]:
        """Return nv copies of the configurations, along the first axis, and unit velocities."""
        n, xp = self.model.nv, self.xp
        unit = xp.eye(n, dtype=q.dtype).reshape(n, *(1,) * (q.ndim - 1), n)
        return (xp.broadcast_to(q, (n, *q.shape)),
                xp.broadcast_to(unit, (n, *q.shape[:-1], n)))

    def of_link(self, T: Array) -> Array:
        """Return the pose of the link, given those of all."""
        assert self.link is not None
        return T[..., self.model.link_index(self.link), :, :]


def names_of_functions() -> list[str]:
    """Return the names of the quantities that run on symbols."""
    return [one.name for one in QUANTITIES.values() if not one.untraced]


def function_of_robots(module: str, name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return the public function of a module; ``make`` takes model, name and options."""
    one = QUANTITIES.get(name)
    if one is None or one.untraced:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    options = [*one.options, *['link'] * one.by_link]
    function: Callable[..., Any] = function_of(
        name, f"({', '.join(['model', *options])})",
        f"make({', '.join(['model', repr(name), *options])})", {'make': make})
    function.__module__ = module
    function.__doc__ = (
        f"Return the function ({', '.join(one.inputs)}) -> "
        + '; '.join(f'{label}: {meaning}' for label, meaning in one.results.items()) + '.')
    setattr(sys.modules[module], name, function)
    return function


def backend_of(model: Model, name: str, link: str | None, xp: Any,
               run: Callable[..., tuple[Array, ...]]) -> Backend:
    """Return the robot for a function, checked."""
    check_model(model)
    declared = QUANTITIES[name]
    if declared.by_link or declared.options:
        model.link_index(link)      # type: ignore[arg-type]  # ModelError
    nothing = [np.empty((0, model.nq if x == 'q' else model.nv)) for x in declared.inputs]
    shape = run_batch(model, name, nothing, link)[0].shape[1 + declared.by_link:]
    return Backend(model, link, xp, run, shape)


def public(model: Model, name: str, labels: Sequence[str], convert: Callable[..., Any],
           run: Callable[..., Sequence[Array]]) -> Callable[..., Any]:
    """Return a function of any arguments, which ``convert`` converts, and back the results."""
    def apply(*arguments: Any) -> Any:
        if len(arguments) != len(labels):
            raise StateError(f"{name} takes {len(labels)} argument{'s' * (len(labels) > 1)} "
                             f"({', '.join(labels)}), got {len(arguments)}")
        states, convert_back = convert(model, labels, arguments)
        found = tuple(map(convert_back, run(*states)))
        return found if len(found) > 1 else found[0]
    apply.__name__ = apply.__qualname__ = name
    return apply


def check_shapes(model: Model, labels: Sequence[str], shapes: Sequence[Shape]) -> None:
    """Raise unless the last axes have the length of q or v, and the leading ones agree."""
    for label, shape in zip(labels, shapes):
        length = model.nq if label == 'q' else model.nv
        if shape[-1:] != (length,):
            raise StateError(f"{label} has the shape {shape}, robot '{model.name}' needs "
                             f'(..., {length})')
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes))
    except ValueError:
        raise StateError('the leading axes of ' + ', '.join(
            f'{label} {shape}' for label, shape in zip(labels, shapes)) + ' differ') from None


def halves(x: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return states and their directions, given one after the other."""
    return x[:len(x) // 2], x[len(x) // 2:]


def value(backend: Backend, name: str, *states: Array) -> Array:
    """Return the result of a function."""
    found, = backend.run(name, *states)
    return backend.of_link(found) if QUANTITIES[name].by_link else found


def derivatives(backend: Backend, name: str, *states: Array) -> list[Array]:
    """Return the derivatives J (..., m, nv) along velocities, and with respect to v and others."""
    rule = QUANTITIES[name].derivatives
    if isinstance(rule, str):
        zeros = (len(QUANTITIES[rule].inputs) - len(states)) * [backend.velocities(states[0])]
        found = backend.run(rule, *states, *zeros)[:len(states)]
    else:
        assert rule is not None
        found = rule(backend, *states)
    return [x.reshape(*x.shape[:states[0].ndim - 1], prod(backend.shape), backend.model.nv)
            for x in found]


def jacobians(backend: Backend, name: str, *states: Array) -> list[Array]:
    """Return the Jacobians (..., m, nq) or (..., m, nv), one for each argument."""
    first, *others = derivatives(backend, name, *states)
    return [_by_coordinates(backend, states[0], first), *others]


def velocity(backend: Backend, q: Array, rate: Array) -> Array:
    """Return T dq/dt (..., nv), the velocity of a change of q."""
    model, xp = backend.model, backend.xp
    if model.nq == model.nv:
        return rate
    v = xp.concatenate([
        rate[..., i] if T is None else _product(rate[..., i], xp.swapaxes(T, -1, -2))
        for i, _, T in _blocks(model.unconstrained, xp, q)], -1)
    # With closed loops, those of the other joints follow.
    return v if model.loops is None else v[..., model.loops.own]


def _by_coordinates(backend: Backend, q: Array, J: Array) -> Array:
    """Return J T (..., m, nq), given J (..., m, nv) along velocities."""
    model, xp = backend.model, backend.xp
    if model.nq == model.nv:
        return J
    tree = model.unconstrained
    if model.loops is not None:
        # Velocities of dependent joints follow from the others.
        places = np.full(tree.nv, model.nv)
        places[model.loops.own] = np.arange(model.nv)
        J = xp.concatenate([J, xp.zeros_like(J[..., :1])], -1)[..., places]
    return xp.concatenate([J[..., k] if T is None else J[..., k] @ T
                           for _, k, T in _blocks(tree, xp, q)], -1)


def _blocks(model: Model, xp: Any, q: Array) -> Iterator[tuple[slice, slice, Array | None]]:
    """Yield parts of q and of v, and T there, with v = T dq/dt; None for the identity."""
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            yield i, k, None
            continue
        to_omega, R = _quaternion_maps(xp, q[..., i.start:i.start + 4])
        yield slice(i.start, i.start + 4), slice(k.start, k.start + 3), to_omega
        if joint.kind == 'free':
            # The velocity of the origin is R^T dp/dt.
            yield slice(i.start + 4, i.stop), slice(k.start + 3, k.stop), xp.swapaxes(R, -1, -2)


def _quaternion_maps(xp: Any, quaternion: Array) -> tuple[Array, Array]:
    """Return the matrix that maps a quaternion's rate to omega in body axes, and the rotation."""
    G, E = (xp.tensordot(quaternion, xp.asarray(x), 1) for x in (BODY, SPACE))
    square = xp.sum(quaternion * quaternion, -1)[..., None, None]
    return 2.0 * G / square, E @ xp.swapaxes(G, -1, -2) / square


def _scales(backend: Backend, q: Array) -> Array:
    """Return the changes of q, by coordinate, that count as one rad or m."""
    model, xp = backend.model, backend.xp
    # A joint that others mimic moves all of them.
    effect = np.maximum(1.0, np.sum(np.abs(model.coordinates.G), axis=0))
    if model.nq == model.nv:
        return xp.asarray(1.0 / effect)
    parts = []
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            parts.append(xp.broadcast_to(xp.asarray(1.0 / effect[k]), (*q.shape[:-1], joint.nq)))
            continue
        quaternion = q[..., i.start:i.start + 4]
        length = xp.sqrt(xp.sum(quaternion * quaternion, -1, keepdims=True))
        parts.append(xp.broadcast_to(length, quaternion.shape))
        if joint.kind == 'free':
            parts.append(xp.ones_like(q[..., i.start + 4:i.stop]))
    return xp.concatenate(parts, -1)


def changes(backend: Backend, matrices: Jacobians, states: Sequence[Array],
            directions: Sequence[Array]) -> list[Array]:
    """Return the derivatives of Jacobians along changes of the arguments."""
    along_q = changes_along_q(backend, matrices, states, directions[0])
    if len(states) == 1:
        return along_q
    others = changes_along_others(backend, matrices, states, directions[1:])
    return [x + y for x, y in zip(along_q, others)]


def changes_along_q(backend: Backend, matrices: Jacobians, states: Sequence[Array],
                    direction: Array) -> list[Array]:
    """Return the derivatives of Jacobians along a change of q, by differences of order eight."""
    model, xp, (q, *others) = backend.model, backend.xp, states
    if model.loops is not None:
        raise ModelError(f"robot '{model.name}' has closed loops, with which there are no second "
                         'derivatives')
    step = STEP / _positive(xp, xp.sum(xp.abs(direction) / _scales(backend, q), -1, keepdims=True))
    points = xp.stack([q + sign * offset * step * direction
                       for offset in OFFSETS for sign in (1.0, -1.0)])
    return [sum(weight * (J[2 * k] - J[2 * k + 1]) for k, weight in enumerate(WEIGHTS))
            / step[..., None]
            for J in matrices(points, *_repeated(xp, others, len(points)))]


def changes_along_others(backend: Backend, matrices: Jacobians, states: Sequence[Array],
                         directions: Sequence[Array]) -> list[Array]:
    """Return the derivatives of Jacobians along changes of all arguments but q."""
    # Jacobians of dynamics are quadratic in these: central differences of any step are exact.
    xp, (q, *others) = backend.xp, states
    step = 1.0 / _positive(xp, xp.max(xp.abs(xp.concatenate(directions, -1)), -1, keepdims=True))
    points = [xp.stack([x + step * dx, x - step * dx]) for x, dx in zip(others, directions)]
    return [(J[0] - J[1]) / (2.0 * step[..., None])
            for J in matrices(*_repeated(xp, [q], 2), *points)]


def _positive(xp: Any, size: Array) -> Array:
    return xp.where(size > 0.0, size, 1.0)


def _repeated(xp: Any, arrays: Sequence[Array], times: int) -> list[Array]:
    return [xp.broadcast_to(x, (times, *x.shape)) for x in arrays]


def configuration_rate(model: Model, xp: Any, q: Array, v: Array) -> Array:
    """Return dq/dt of a velocity, the inverse of T; ``xp`` may be torch, too."""
    if model.nq == model.nv:
        return v
    parts = []
    for i, k, T in _blocks(model, xp, q):
        part = v[..., k] if T is None else _product(v[..., k], T)
        if i.stop - i.start > k.stop - k.start:
            # Half the product of the quaternion and (omega, 0).
            part = 0.25 * xp.sum(q[..., i] * q[..., i], -1)[..., None] * part
        parts.append(part)
    return xp.concatenate(parts, -1)


def _product(row: Array, matrix: Array) -> Array:
    return (row[..., None, :] @ matrix)[..., 0, :]
