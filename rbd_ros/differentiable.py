# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions that `rbd_ros.jax` and `rbd_ros.torch` differentiate, and their derivatives.

A function of a robot maps arrays (..., nq) and (..., nv) to one array. Its Jacobians, one for each
argument, are (..., m, nq) or (..., m, nv), where m is the number of entries of the result. That
with respect to q is J T: the derivatives J of the library are taken along velocities, and T maps
dq/dt to the velocity. Functions are those of q with unit quaternions; hence a part of dq/dt along
a quaternion has no effect, and J T is the derivative in the space of all q.

The arrays are those of NumPy or of JAX, with ``xp`` the module numpy or jax.numpy.

"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np
from rbd_ros import batch
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.workspace.quantity import robot_function

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


@cache
def _takes_link(name: str) -> bool:
    return 'link' in signature(getattr(batch, name)).parameters


def link_of(name: str, link: str | None) -> list[str]:
    """Return the link, if a function of `rbd_ros.batch` takes one."""
    return [link] if link is not None and _takes_link(name) else []


class Robot(NamedTuple):
    """A robot, perhaps one of its links, and how its functions are computed."""

    model: Model
    link: str | None
    xp: Any
    # The function of `rbd_ros.batch` of a name, for arrays with the same leading axes.
    run: Callable[..., tuple[Array, ...]]

    def velocities(self, q: Array, value: float = 0.0) -> Array:
        """Return equal velocities for every configuration."""
        return self.xp.full((*q.shape[:-1], self.model.nv), value, q.dtype)

    def units(self, q: Array) -> tuple[Array, Array]:
        """Return nv copies of the configurations, along the first axis, and unit velocities."""
        n, xp = self.model.nv, self.xp
        unit = xp.eye(n, dtype=q.dtype).reshape(n, *(1,) * (q.ndim - 1), n)
        return (xp.broadcast_to(q, (n, *q.shape)),
                xp.broadcast_to(unit, (n, *q.shape[:-1], n)))


class Function(NamedTuple):
    """A function that can be differentiated; ``derivatives`` and ``value`` take a `Robot`."""

    arguments: tuple[str, ...]
    result: str                                     # for its documentation
    shape: Callable[[int], Shape]                   # of its result, by nv
    derivatives: Callable[..., Sequence[Array]]     # (..., *shape, nv), one for each argument
    value: Callable[..., Array] | None = None       # None: that of `rbd_ros.batch`
    of_link: bool = False


def _as_in_batch(name: str) -> Callable[..., Sequence[Array]]:
    """Return the derivatives that a function of `rbd_ros.batch` computes."""
    return lambda robot, *states: robot.run(name, *states)


def _gravity_derivatives(robot: Robot, q: Array) -> Sequence[Array]:
    zeros = robot.velocities(q)
    return robot.run('inverse_dynamics_derivatives', q, zeros, zeros)[:1]


def _bias_torques(robot: Robot, q: Array, v: Array) -> Array:
    return robot.run('inverse_dynamics', q, v, robot.velocities(q))[0]


def _bias_derivatives(robot: Robot, q: Array, v: Array) -> Sequence[Array]:
    return robot.run('inverse_dynamics_derivatives', q, v, robot.velocities(q))[:2]


def _mass_matrix(robot: Robot, q: Array) -> Array:
    zeros = robot.velocities(q)
    return robot.run('inverse_dynamics_derivatives', q, zeros, zeros)[2]


def _mass_matrix_derivatives(robot: Robot, q: Array) -> Sequence[Array]:
    # Torques of unit accelerations at rest are the columns of M, apart from gravity.
    Q, unit = robot.units(q)
    of_columns = robot.run('inverse_dynamics_derivatives', Q, robot.velocities(Q), unit)[0]
    return [robot.xp.moveaxis(of_columns - _gravity_derivatives(robot, q)[0], 0, -2)]


def _of_rate(name: str) -> Callable[..., Sequence[Array]]:
    """Return the derivatives of a Jacobian, its rates at unit velocities."""
    return lambda robot, q: [robot.xp.moveaxis(robot.run(name, *robot.units(q))[0], 0, -1)]


def _link_pose(robot: Robot, q: Array) -> Array:
    assert robot.link is not None
    return robot.run('forward_kinematics', q)[0][..., robot.model.link_index(robot.link), :, :]


def _pose_derivatives(robot: Robot, q: Array) -> Sequence[Array]:
    # The columns of R change by omega x R, the position by the linear velocity.
    xp, T, J = robot.xp, _link_pose(robot, q), robot.run('world_jacobian', q)[0]
    omega = J[..., None, :3, :]                                             # (..., 1, 3, nv)
    columns = xp.moveaxis(T[..., :3, :3], -1, -2)[..., None]                # (..., 3, 3, 1)
    turned = xp.stack([
        omega[..., i, :] * columns[..., j, :] - omega[..., j, :] * columns[..., i, :]
        for i, j in ((1, 2), (2, 0), (0, 1))], -3)                          # (..., 3, 3, nv)
    upper = xp.concatenate([turned, J[..., 3:, None, :]], -2)               # (..., 3, 4, nv)
    return [xp.concatenate([upper, xp.zeros_like(upper[..., :1, :, :])], -3)]


FUNCTIONS = {
    'inverse_dynamics': Function(
        ('q', 'v', 'a'), 'tau (..., nv), the torques that produce a', lambda n: (n,),
        _as_in_batch('inverse_dynamics_derivatives')),
    'forward_dynamics': Function(
        ('q', 'v', 'tau'), 'a (..., nv), the accelerations due to tau', lambda n: (n,),
        _as_in_batch('forward_dynamics_derivatives')),
    'gravity_torques': Function(
        ('q',), 'g (..., nv), the torques that hold the robot still', lambda n: (n,),
        _gravity_derivatives),
    'bias_torques': Function(
        ('q', 'v'), 'the torques (..., nv) at zero acceleration, C v + g', lambda n: (n,),
        _bias_derivatives, _bias_torques),
    'mass_matrix': Function(
        ('q',), 'the mass matrix M (..., nv, nv)', lambda n: (n, n), _mass_matrix_derivatives,
        _mass_matrix),
    'forward_kinematics': Function(
        ('q',), "the pose (..., 4, 4) of a link in the root's frame", lambda n: (4, 4),
        _pose_derivatives, _link_pose, True),
    'body_jacobian': Function(
        ('q',), 'the Jacobian (..., 6, nv) of a link in its own axes', lambda n: (6, n),
        _of_rate('jacobian_dot'), of_link=True),
    'world_jacobian': Function(
        ('q',), 'the Jacobian (..., 6, nv) of a link in the axes of the root', lambda n: (6, n),
        _of_rate('world_jacobian_dot'), of_link=True),
    'center_of_mass': Function(
        ('q',), "the centre of mass (..., 3) in the root's frame", lambda n: (3,),
        _as_in_batch('com_jacobian')),
    'com_jacobian': Function(
        ('q',), 'the Jacobian (..., 3, nv) of the centre of mass', lambda n: (3, n),
        _of_rate('com_jacobian_dot'))}


def functions_of_robots(module: str, make: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return the public functions of a module by name; ``make`` takes model, name and link."""
    found = {}
    for name, one in FUNCTIONS.items():
        found[name] = robot_function(module, name, ['link'] * one.of_link, make)
        found[name].__doc__ = (f"Return the function ({', '.join(one.arguments)}) -> "
                               f'{one.result}.')
    return found


def robot_of(model: Model, name: str, link: str | None, xp: Any,
             run: Callable[..., tuple[Array, ...]]) -> Robot:
    """Return the robot for a function, checked."""
    check_model(model)
    if FUNCTIONS[name].of_link:
        model.link_index(link)      # type: ignore[arg-type]  # ModelError
    return Robot(model, link, xp, run)


def check_count(name: str, labels: Sequence[str], arguments: Sequence[Any]) -> None:
    """Raise unless there is an argument for each label."""
    if len(arguments) != len(labels):
        raise StateError(f"{name} takes {len(labels)} argument{'s' * (len(labels) > 1)} "
                         f"({', '.join(labels)}), got {len(arguments)}")


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


def value(robot: Robot, name: str, *states: Array) -> Array:
    """Return the result of a function."""
    compute = FUNCTIONS[name].value
    return robot.run(name, *states)[0] if compute is None else compute(robot, *states)


def derivatives(robot: Robot, name: str, *states: Array) -> list[Array]:
    """Return the derivatives J (..., m, nv) along velocities, and with respect to v and others."""
    function, nv = FUNCTIONS[name], robot.model.nv
    entries = prod(function.shape(nv))
    return [x.reshape(*x.shape[:states[0].ndim - 1], entries, nv)
            for x in function.derivatives(robot, *states)]


def jacobians(robot: Robot, name: str, *states: Array) -> list[Array]:
    """Return the Jacobians (..., m, nq) or (..., m, nv), one for each argument."""
    first, *others = derivatives(robot, name, *states)
    return [_by_coordinates(robot, states[0], first), *others]


def velocity(robot: Robot, q: Array, rate: Array) -> Array:
    """Return T dq/dt (..., nv), the velocity of a change of q."""
    model, xp = robot.model, robot.xp
    if model.nq == model.nv:
        return rate
    v = xp.concatenate([
        rate[..., i] if T is None else _product(rate[..., i], xp.swapaxes(T, -1, -2))
        for i, _, T in _blocks(model.unconstrained, xp, q)], -1)
    # With closed loops, those of the other joints follow.
    return v if model.loops is None else v[..., model.loops.own]


def _by_coordinates(robot: Robot, q: Array, J: Array) -> Array:
    """Return J T (..., m, nq), given J (..., m, nv) along velocities."""
    model, xp = robot.model, robot.xp
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


def _scales(robot: Robot, q: Array) -> Array:
    """Return the changes of q, by coordinate, that count as one rad or m."""
    model, xp = robot.model, robot.xp
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


def changes(robot: Robot, matrices: Jacobians, states: Sequence[Array],
            directions: Sequence[Array]) -> list[Array]:
    """Return the derivatives of Jacobians along changes of the arguments."""
    along_q = changes_along_q(robot, matrices, states, directions[0])
    if len(states) == 1:
        return along_q
    others = changes_along_others(robot, matrices, states, directions[1:])
    return [x + y for x, y in zip(along_q, others)]


def changes_along_q(robot: Robot, matrices: Jacobians, states: Sequence[Array],
                    direction: Array) -> list[Array]:
    """Return the derivatives of Jacobians along a change of q, by differences of order eight."""
    model, xp, (q, *others) = robot.model, robot.xp, states
    if model.loops is not None:
        raise ModelError(f"robot '{model.name}' has closed loops, with which there are no second "
                         'derivatives')
    step = STEP / _positive(xp, xp.sum(xp.abs(direction) / _scales(robot, q), -1, keepdims=True))
    points = xp.stack([q + sign * offset * step * direction
                       for offset in OFFSETS for sign in (1.0, -1.0)])
    return [sum(weight * (J[2 * k] - J[2 * k + 1]) for k, weight in enumerate(WEIGHTS))
            / step[..., None]
            for J in matrices(points, *_repeated(xp, others, len(points)))]


def changes_along_others(robot: Robot, matrices: Jacobians, states: Sequence[Array],
                         directions: Sequence[Array]) -> list[Array]:
    """
    Return the derivatives of Jacobians along changes of all arguments but q.

    Jacobians of dynamics are quadratic in these: central differences of any step are exact.

    """
    xp, (q, *others) = robot.xp, states
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
