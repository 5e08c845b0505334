# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rules for derivatives of quantities that other quantities contain.

A rule takes a `rbd_ros.differentiable.Backend` and a state, and returns the derivatives
``(..., *shape, nv)`` of the result along velocities and with respect to v and other arguments.
``run`` of the backend calls a quantity of the robot by name for arrays of NumPy or of JAX with
leading axes, and ``xp`` is numpy or jax.numpy.

"""

from collections.abc import Callable, Sequence
from typing import Any

Array = Any     # of NumPy or of JAX
Rule = Callable[..., Sequence[Array]]


def rate(name: str) -> Rule:
    """Return the rule of a Jacobian whose rate is this quantity: the rates at unit velocities."""
    return lambda backend, q: [backend.xp.moveaxis(backend.run(name, *backend.units(q))[0], 0, -1)]


def of_mass_matrix(backend: Any, q: Array) -> Sequence[Array]:
    """Return the derivatives of M: torques of unit accelerations at rest, apart from gravity."""
    xp, name = backend.xp, 'inverse_dynamics_derivatives'
    (Q, unit), zeros = backend.units(q), backend.velocities(q)
    of_gravity = backend.run(name, q, zeros, zeros)[0]
    return [xp.moveaxis(backend.run(name, Q, backend.velocities(Q), unit)[0] - of_gravity, 0, -2)]


def of_pose(backend: Any, q: Array) -> Sequence[Array]:
    """Return the derivatives of the pose of a link."""
    # The columns of R change by omega x R, the position by the linear velocity.
    xp, J = backend.xp, backend.run('world_jacobian', q)[0]
    T = backend.of_link(backend.run('forward_kinematics', q)[0])
    omega = J[..., None, :3, :]                                             # (..., 1, 3, nv)
    columns = xp.moveaxis(T[..., :3, :3], -1, -2)[..., None]                # (..., 3, 3, 1)
    turned = xp.stack([
        omega[..., i, :] * columns[..., j, :] - omega[..., j, :] * columns[..., i, :]
        for i, j in ((1, 2), (2, 0), (0, 1))], -3)                          # (..., 3, 3, nv)
    upper = xp.concatenate([turned, J[..., 3:, None, :]], -2)               # (..., 3, 4, nv)
    return [xp.concatenate([upper, xp.zeros_like(upper[..., :1, :, :])], -3)]
