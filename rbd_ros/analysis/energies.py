# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kinetic and potential energy of a robot; errors are those of `rbd_ros.dynamics`."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike
from rbd_ros.dynamics import mass_matrix
from rbd_ros.kinematics import center_of_mass
from rbd_ros.model.arguments import finite_vector
from rbd_ros.model.model import Model


class Energy(NamedTuple):
    """Result of `energy`."""

    kinetic: float      # 1/2 v^T M v, rotors included, J
    potential: float    # of gravity, zero with the centre of mass at the root's origin, J


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike) -> float:
    """
    Return the kinetic energy 1/2 v^T M v, J, rotors included.

    Reference: Lynch and Park (9.10), (9.59), (9.60).

    Parameters
    ----------
    model, q, v
        Robot; configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

    """
    v = finite_vector(model, 'v', v)
    return 0.5 * float(v @ mass_matrix(model, q) @ v)


def potential_energy(model: Model, q: ArrayLike) -> float:
    """
    Return the potential energy of gravity, J, zero with the centre of mass at the root's origin.

    Reference: Lynch and Park (9.9).

    Parameters
    ----------
    model, q
        Robot; configuration (nq,), rad or m.

    """
    com = center_of_mass(model, q)
    return -model.mass * float(model.gravity @ com)


def energy(model: Model, q: ArrayLike, v: ArrayLike) -> Energy:
    """
    Return the kinetic and the potential energy; arguments as for `kinetic_energy`.

    Reference: Lynch and Park (9.3), (9.41); the rate of their sum is v^T tau (proposition 9.1).

    """
    return Energy(kinetic_energy(model, q, v), potential_energy(model, q))
