# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rules for derivatives of quantities that other quantities contain.

A rule takes a robot and its state, and returns the derivatives ``(..., *shape, nv)`` of the result
along velocities and with respect to v and other arguments. The robot is a
`rbd_ros.differentiable.Robot`: its ``run`` calls a quantity by name for arrays of NumPy or of JAX
with leading axes, and ``xp`` is numpy or jax.numpy.

"""

from collections.abc import Callable, Sequence
from typing import Any

Array = Any     # of NumPy or of JAX
Rule = Callable[..., Sequence[Array]]


def rate(name: str) -> Rule:
    """Return the rule of a Jacobian whose rate is this quantity: the rates at unit velocities."""
    return lambda robot, q: [robot.xp.moveaxis(robot.run(name, *robot.units(q))[0], 0, -1)]


def of_mass_matrix(robot: Any, q: Array) -> Sequence[Array]:
    """Return the derivatives of M: torques of unit accelerations at rest, apart from gravity."""
    xp, name = robot.xp, 'inverse_dynamics_derivatives'
    (Q, unit), zeros = robot.units(q), robot.velocities(q)
    of_gravity = robot.run(name, q, zeros, zeros)[0]
    return [xp.moveaxis(robot.run(name, Q, robot.velocities(Q), unit)[0] - of_gravity, 0, -2)]


def of_pose(robot: Any, q: Array) -> Sequence[Array]:
    """Return the derivatives of the pose of a link."""
    # The columns of R change by omega x R, the position by the linear velocity.
    xp, J = robot.xp, robot.run('world_jacobian', q)[0]
    T = robot.of_link(robot.run('forward_kinematics', q)[0])
    omega = J[..., None, :3, :]                                             # (..., 1, 3, nv)
    columns = xp.moveaxis(T[..., :3, :3], -1, -2)[..., None]                # (..., 3, 3, 1)
    turned = xp.stack([
        omega[..., i, :] * columns[..., j, :] - omega[..., j, :] * columns[..., i, :]
        for i, j in ((1, 2), (2, 0), (0, 1))], -3)                          # (..., 3, 3, nv)
    upper = xp.concatenate([turned, J[..., 3:, None, :]], -2)               # (..., 3, 4, nv)
    return [xp.concatenate([upper, xp.zeros_like(upper[..., :1, :, :])], -3)]
