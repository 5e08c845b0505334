# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kinetic and potential energy of a robot."""

from typing import NamedTuple

import numpy.typing as npt

from rbd_ros.dynamics import mass_matrix
from rbd_ros.kinematics import center_of_mass
from rbd_ros.model.arguments import finite_vector
from rbd_ros.model.model import Model


class Energy(NamedTuple):
    """
    What `energy` computes.

    Attributes
    ----------
    kinetic : float
        1/2 v^T M v, rotors included, J.
    potential : float
        Energy of gravity, zero with the centre of mass at the root's origin, J.

    """

    kinetic: float
    potential: float


def kinetic_energy(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> float:
    """
    Return the kinetic energy of the robot, its rotors included.

    Reference: Lynch and Park (9.10), (9.59), (9.60).

    Parameters
    ----------
    model, q, v
        Robot; configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

    Returns
    -------
    float
        1/2 v^T M v, J.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    """
    v = finite_vector(model, 'v', v)
    return 0.5 * float(v @ mass_matrix(model, q) @ v)


def potential_energy(model: Model, q: npt.ArrayLike) -> float:
    """
    Return the potential energy of the robot's weight.

    Reference: Lynch and Park (9.9).

    Parameters
    ----------
    model, q
        Robot; configuration (nq,), rad or m.

    Returns
    -------
    float
        J; zero with the centre of mass at the root's origin.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    """
    com = center_of_mass(model, q)
    return -model.mass * float(model.gravity @ com)


def energy(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> Energy:
    """
    Return the kinetic and the potential energy.

    Reference: Lynch and Park (9.3), (9.41); its rate of change is v^T tau (proposition 9.1 and
    before).

    Parameters
    ----------
    model, q, v
        Robot; configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

    Returns
    -------
    Energy
        With the fields ``kinetic potential``.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.

    """
    return Energy(kinetic_energy(model, q, v), potential_energy(model, q))
