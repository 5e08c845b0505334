# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Named results of `Workspace`, and the options of its methods."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from rbd_ros.kernels.tree.columns import rows_of_terms
from rbd_ros.model.arguments import choice

Frame: TypeAlias = Literal['body', 'world-aligned']
FRAMES = ('body', 'world-aligned')
Factorization: TypeAlias = Literal['christoffel', 'body']
FACTORIZATIONS = ('christoffel', 'body')
CHRISTOFFEL = FACTORIZATIONS[0]
# Results of several quantities, their meanings and their units.
TORQUES, ACCELERATIONS = 'torques or forces, N m or N', 'accelerations, rad/s^2 or m/s^2'
M = {'M': 'mass matrix, kg m^2, kg m or kg'}
C = {'C': 'Coriolis matrix, with C v in N m or N'}
COM = {'com': 'centre of mass in the frame of the root, m'}
COM_JACOBIAN = {'com_jacobian': 'of the centre of mass, in the axes of the root, m/s per rad/s or '
                                'm/s'}
JACOBIAN = {'J': 'twist of the link, angular first and in its axes, per velocity'}
JACOBIAN_DOT = {'J_dot': 'rate of the Jacobian of the link, in its axes'}


def is_body_form(factorization: Factorization) -> bool:
    """Return whether C is the factorization of Garofalo et al., not that of Christoffel."""
    return choice('factorization', factorization, FACTORIZATIONS) != CHRISTOFFEL


class DynamicsTerms(NamedTuple):
    """Result of `all_terms`."""

    M: np.ndarray       # mass matrix (nv, nv); kg m^2, kg m or kg by pair of joints
    C: np.ndarray       # Coriolis matrix (nv, nv), with dM/dt - 2 C skew
    g: np.ndarray       # torques (nv,) that hold the robot still, N m or N
    coriolis_torques: np.ndarray    # C v (nv,), N m or N
    com_jacobian: np.ndarray        # (3, nv), of the centre of mass, in the root's frame
    com: np.ndarray     # centre of mass (3,) in the root's frame, m


class Derivatives(NamedTuple):
    """
    Derivatives, shape (nv, nv), of the unknowns of a dynamics problem, one per row.

    The input of a joint is its acceleration where its torque is unknown, and its torque where its
    acceleration is unknown. Positions of ball and free joints are moved along their velocities, in
    the axes of the moving body.

    """

    by_position: np.ndarray
    by_velocity: np.ndarray
    by_input: np.ndarray


class TaskSpaceDynamics(NamedTuple):
    """Result of `task_space_dynamics`."""

    Lambda: np.ndarray  # task-space inertia (6, 6), angular first: kg m^2, kg m and kg
    eta: np.ndarray     # Coriolis, centrifugal and gravity wrench (6,): moment, N m, and force, N
    J: np.ndarray       # Jacobian (6, nv) of the link, whose twist is J v
    J_dot: np.ndarray   # its time derivative (6, nv)
    # Dynamically consistent inverse of J, (nv, 6): the motion of least kinetic energy for a twist.
    # Its transpose maps torques to the wrench that they exert.
    J_bar: np.ndarray
    # N = 1 - J_bar J, (nv, nv). N v does not move the link; torques N^T tau do not accelerate it.
    null_projector: np.ndarray
    # Largest over smallest of the six singular values of J, with lengths in units of
    # `characteristic_length`; infinite where rank is lost.
    condition: float
    # Whether the condition number exceeded the limit, so that Lambda, eta, J_bar and
    # null_projector are those of a damped inverse.
    damped: bool


def by_state(of: str) -> dict[str, str]:
    """Return the results that are derivatives by position and velocity."""
    return {'by_position': f'of {of}, with respect to q',
            'by_velocity': f'of {of}, with respect to v'}


class MatricesDot(NamedTuple):
    """Result of `matrices_dot`."""

    M_dot: np.ndarray   # dM/dt (nv, nv)
    C_dot: np.ndarray   # dC/dt (nv, nv)
    g_dot: np.ndarray   # dg/dt (nv,), N m/s or N/s


class ParameterDerivatives(NamedTuple):
    """Result of `parameter_derivatives`; the last axis as in `inertial_parameter_names`."""

    M: np.ndarray       # (nv, nv, 10 * bodies)
    C: np.ndarray       # (nv, nv, 10 * bodies)
    g: np.ndarray       # (nv, 10 * bodies)


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
    width, (C, g, Cv, J_com, com) = slice(nv), rows_of_terms(nv)
    return layout_of((com + 1, max(nv, 3)), (
        (slice(C), width), (slice(C, g), width), (g, width), (Cv, width),
        (slice(J_com, com), width), (com, slice(3))))


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
