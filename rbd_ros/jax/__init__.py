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
from typing import Any, TypeAlias

try:
    import jax      # noqa: F401
except ImportError as error:
    raise ImportError("rbd_ros.jax needs the package jax: pip install 'rbd_ros[jax]'") from error

from rbd_ros.differentiable import function_of_robots, names_of_functions
from rbd_ros.jax.functions import configuration_rate, function

__all__ = ['configuration_rate', *names_of_functions()]
# Of several results: a tuple of them.
Function: TypeAlias = Callable[..., Any]


def __getattr__(name: str) -> Callable[..., Function]:
    return function_of_robots(__name__, name, function)
