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

from collections.abc import Callable
from typing import TypeAlias

try:
    import jax
except ImportError as error:
    raise ImportError("rbd_ros.jax needs the package jax: pip install 'rbd_ros[jax]'") from error

from rbd_ros.jax.functions import function, rate_function
from rbd_ros.model.model import Model

Function: TypeAlias = Callable[..., jax.Array]


def inverse_dynamics(model: Model) -> Function:
    """Return the function (q, v, a) -> tau (..., nv), the torques that produce a."""
    return function(model, 'inverse_dynamics')


def forward_dynamics(model: Model) -> Function:
    """Return the function (q, v, tau) -> a (..., nv), the accelerations due to tau."""
    return function(model, 'forward_dynamics')


def gravity_torques(model: Model) -> Function:
    """Return the function (q) -> g (..., nv), the torques that hold the robot still."""
    return function(model, 'gravity_torques')


def bias_torques(model: Model) -> Function:
    """Return the function (q, v) -> the torques (..., nv) at zero acceleration, C v + g."""
    return function(model, 'bias_torques')


def mass_matrix(model: Model) -> Function:
    """Return the function (q) -> the mass matrix M (..., nv, nv)."""
    return function(model, 'mass_matrix')


def forward_kinematics(model: Model, link: str) -> Function:
    """Return the function (q) -> the pose (..., 4, 4) of a link in the root's frame."""
    return function(model, 'forward_kinematics', link)


def body_jacobian(model: Model, link: str) -> Function:
    """Return the function (q) -> the Jacobian (..., 6, nv) of a link in its own axes."""
    return function(model, 'body_jacobian', link)


def world_jacobian(model: Model, link: str) -> Function:
    """Return the function (q) -> the Jacobian (..., 6, nv) of a link in the axes of the root."""
    return function(model, 'world_jacobian', link)


def center_of_mass(model: Model) -> Function:
    """Return the function (q) -> the centre of mass (..., 3) in the root's frame."""
    return function(model, 'center_of_mass')


def com_jacobian(model: Model) -> Function:
    """Return the function (q) -> the Jacobian (..., 3, nv) of the centre of mass."""
    return function(model, 'com_jacobian')


def configuration_rate(model: Model) -> Function:
    """Return the function (q, v) -> dq/dt (..., nq), which is v but for quaternions."""
    return rate_function(model)
