# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The results of `Workspace` that have named parts, and the choices of its methods."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from rbd_ros.model.arguments import choice

Frame: TypeAlias = Literal['body', 'world-aligned']
FRAMES = ('body', 'world-aligned')
Factorization: TypeAlias = Literal['christoffel', 'body']
FACTORIZATIONS = ('christoffel', 'body')
CHRISTOFFEL = FACTORIZATIONS[0]


def is_body_form(factorization: Factorization) -> bool:
    """Return whether C is that of Garofalo et al., rather than that of Christoffel."""
    return choice('factorization', factorization, FACTORIZATIONS) != CHRISTOFFEL


class DynamicsTerms(NamedTuple):
    """
    What `all_terms` computes.

    Attributes
    ----------
    M : ndarray, shape (nv, nv)
        Mass matrix; kg m^2, kg m or kg by pair of joints.
    C : ndarray, shape (nv, nv)
        Coriolis matrix, with dM/dt - 2 C skew.
    g : ndarray, shape (nv,)
        Torques that hold the robot still, N m or N.
    coriolis_torques : ndarray, shape (nv,)
        C v, N m or N.
    com_jacobian : ndarray, shape (3, nv)
        Velocity of the centre of mass per velocity, in the root's frame.
    com : ndarray, shape (3,)
        Centre of mass in the root's frame, m.

    """

    M: np.ndarray
    C: np.ndarray
    g: np.ndarray
    coriolis_torques: np.ndarray
    com_jacobian: np.ndarray
    com: np.ndarray


class Derivatives(NamedTuple):
    """
    How the unknowns of a dynamics problem change with all that is given.

    Attributes
    ----------
    by_position, by_velocity, by_input : ndarray, shape (nv, nv)
        Rows: the unknowns. The input of a joint is its acceleration where its torque is unknown,
        and its torque where its acceleration is. Positions of ball and free joints are moved along
        their velocities, in the axes of the moving body.

    """

    by_position: np.ndarray
    by_velocity: np.ndarray
    by_input: np.ndarray


class TaskSpaceDynamics(NamedTuple):
    """
    What `task_space_dynamics` computes.

    Attributes
    ----------
    Lambda : ndarray, shape (6, 6)
        Task-space inertia, kg m^2, kg m and kg; angular first.
    eta : ndarray, shape (6,)
        Coriolis, gravity and centrifugal wrench: moment, N m, and force, N.
    J, J_dot : ndarray, shape (6, nv)
        Jacobian of the link and its rate of change; the link's twist is J v.
    J_bar : ndarray, shape (nv, 6)
        Dynamically consistent inverse of J: the motion of least kinetic energy for a twist. Its
        transpose maps torques to the wrench that they exert.
    null_projector : ndarray, shape (nv, nv)
        N = 1 - J_bar J. N v does not move the link; torques N^T tau do not accelerate it.
    condition : float
        Largest over smallest singular value of J, which has six, with lengths in units of
        `characteristic_length`; infinite where rank is lost.
    damped : bool
        Whether the condition number passed the limit, so that Lambda, eta, J_bar and
        null_projector are those of a damped inverse.

    """

    Lambda: np.ndarray
    eta: np.ndarray
    J: np.ndarray
    J_dot: np.ndarray
    J_bar: np.ndarray
    null_projector: np.ndarray
    condition: float
    damped: bool


class MatricesDot(NamedTuple):
    """
    What `matrices_dot` computes.

    Attributes
    ----------
    M_dot, C_dot : ndarray, shape (nv, nv)
        dM/dt and dC/dt.
    g_dot : ndarray, shape (nv,)
        dg/dt, N m/s or N/s.

    """

    M_dot: np.ndarray
    C_dot: np.ndarray
    g_dot: np.ndarray


class ParameterDerivatives(NamedTuple):
    """
    What `parameter_derivatives` computes.

    ``M[:, :, k]`` is the derivative of M by the inertial parameter k of the moving bodies, in the
    order of `rbd_ros.model.inertial_parameter_names`.

    Attributes
    ----------
    M, C : ndarray, shape (nv, nv, 10 * bodies)
        Of the mass and the Coriolis matrix.
    g : ndarray, shape (nv, 10 * bodies)
        Of the gravity torques.

    """

    M: np.ndarray
    C: np.ndarray
    g: np.ndarray


class Layout(NamedTuple):
    """An array that a kernel writes, and its parts in the order of their names."""

    shape: tuple[int, int]
    # Returns the parts of an array. `tuple.__new__` names them in half of the time that the class
    # of the named tuple takes.
    cut: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    cut_states: Callable[[np.ndarray], tuple[np.ndarray, ...]]      # of an array for many states


def layout_of(shape: tuple[int, int], places: Sequence[tuple[slice | int, ...]]) -> Layout:
    """Return the layout with parts at these indices."""
    return Layout(shape, itemgetter(*places), itemgetter(*((slice(None), *at) for at in places)))


@lru_cache
def term_layout(nv: int) -> Layout:
    """Return how `composite_bodies` writes the `DynamicsTerms` of nv velocities."""
    width = slice(nv)
    return layout_of((2 * nv + 6, max(nv, 3)), (
        (slice(nv), width), (slice(nv, 2 * nv), width), (2 * nv, width), (2 * nv + 1, width),
        (slice(2 * nv + 2, 2 * nv + 5), width), (2 * nv + 5, slice(3))))


@lru_cache
def derivative_layout(nv: int) -> Layout:
    """Return how kernels write `Derivatives` of nv velocities, side by side."""
    return layout_of((nv, 3 * nv), [(slice(None), slice(k * nv, (k + 1) * nv)) for k in range(3)])


def cut_terms(block: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `DynamicsTerms` of many states in the block that a kernel writes."""
    return term_layout(block.shape[1] // 2 - 3).cut_states(block)


def cut_derivatives(block: np.ndarray) -> Sequence[np.ndarray]:
    """Return the `Derivatives` of many states in the block that a kernel writes."""
    return derivative_layout(block.shape[1]).cut_states(block)
