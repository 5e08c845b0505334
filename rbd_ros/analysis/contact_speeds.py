# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How hard a robot hits: effective masses, and speeds at which contacts reach limits.

This is not a certified safety function: it computes what ISO/TS 15066 estimates, from the masses
of a robot description, and checks nothing of what a risk assessment requires.

A robot with the effective mass m_R touches a body region with the mass m_H and the stiffness k at
the relative speed w. All kinetic energy of the relative motion compresses the region:

    1/2 mu w^2 = F^2 / (2 k)    with    1 / mu = 1 / m_R + 1 / m_H

so a force F is reached at w = F / sqrt(mu k).    [ISO/TS 15066:2016, A.3.4]

Errors are those of `rbd_ros.dynamics`; StateError is also raised for a direction of length zero
and an unknown body region.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.dynamics import mass_matrix
from rbd_ros.errors import ModelError, StateError
from rbd_ros.kinematics import body_jacobian
from rbd_ros.model.arguments import choice, finite_array, finite_vector
from rbd_ros.model.model import Model

NO_MOTION = 1e-9    # m/s: slower links have no direction of motion


class BodyRegion(NamedTuple):
    """Limits of a contact with a region of the human body, and the region's spring and mass."""

    clamped_force: float    # N, for quasi-static contact
    free_force: float       # N, for transient contact, in which the region can give way
    stiffness: float        # N/m
    mass: float             # kg


def _region(force: float, stiffness: float, mass: float, transient: float = 2.0) -> BodyRegion:
    return BodyRegion(force, transient * force, 1e3 * stiffness, mass)


# ISO/TS 15066:2016, tables A.2 (N; twice that in transient contact, which is not allowed for skull
# and face, so that the same force is used there) and A.3 (N/mm, kg).
BODY_REGIONS = {
    'skull and forehead': _region(130.0, 150.0, 4.4, transient=1.0),
    'face': _region(65.0, 75.0, 4.4, transient=1.0),
    'neck': _region(150.0, 50.0, 1.2),
    'back and shoulders': _region(210.0, 35.0, 40.0),
    'chest': _region(140.0, 25.0, 40.0),
    'abdomen': _region(110.0, 10.0, 40.0),
    'pelvis': _region(180.0, 25.0, 40.0),
    'upper arms and elbow joints': _region(150.0, 30.0, 3.0),
    'lower arms and wrist joints': _region(160.0, 40.0, 2.0),
    'hands and fingers': _region(140.0, 75.0, 0.6),
    'thighs and knees': _region(220.0, 50.0, 75.0),
    'lower legs': _region(130.0, 60.0, 75.0),
}


class SpeedLimit(NamedTuple):
    """Result of `speed_limit`; not a certified safety function."""

    effective_mass: float   # of the robot, kg
    energy: float           # that the body region may take up, J
    limit: float            # relative speed at which the force is reached, m/s
    speed: float            # of the link along the direction, m/s
    factor: float           # for the velocity, to keep to the limit; at most 1


def effective_mass(model: Model, q: ArrayLike, link: str, direction: ArrayLike) -> float:
    """
    Return the mass that a contact feels: 1 / (u^T J M^-1 J^T u).

    Reference: Khatib, "Inertial Properties in Robotic Manipulation", IJRR 14 (1995).

    Parameters
    ----------
    model, q : Model, array_like of shape (model.nq,)
        Robot with rotors and payload, and its configuration, rad or m.
    link : str
        The link that is touched, at its origin.
    direction : array_like, shape (3,)
        Direction of the contact force in the axes of the link; its length does not matter.

    Returns
    -------
    float
        kg; infinite if no joint moves the link in this direction.

    """
    u = finite_array('direction', direction, (3,))
    size = float(np.linalg.norm(u))
    if not size > 0.0:
        raise StateError('direction must not be zero: give the direction of the contact')
    row = (u / size) @ body_jacobian(model, q, link)[3:]
    mobility = float(row @ np.linalg.solve(mass_matrix(model, q), row)) if row.any() else 0.0
    return 1.0 / mobility if mobility > 0.0 else np.inf


def speed_limit(model: Model, q: ArrayLike, v: ArrayLike, link: str, body_region: str, *,
                direction: ArrayLike | None = None, clamped: bool = False) -> SpeedLimit:
    """
    Return the speed of a link at which a contact reaches the limit for a body region.

    This is not a certified safety function. The body region is at rest, and the limits of pressure
    of ISO/TS 15066, which depend on the shape of the link, are not considered. What the drives do
    during the contact is not considered either: a clamped body part also bears their torques.

    Parameters
    ----------
    model, q, v
        Robot; configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.
    link : str
        The link that may touch a person, at its origin.
    body_region : str
        One of `BODY_REGIONS`.
    direction : array_like, shape (3,), optional
        Direction of the contact in the axes of the link; default: that of its motion.
    clamped : bool
        Whether the limit for quasi-static contact holds, since the region cannot give way: then
        it also moves no mass of its own.

    Raises
    ------
    StateError
        If no direction is given and the link does not move.

    """
    region = BODY_REGIONS[choice('body_region', body_region, BODY_REGIONS)]
    v = finite_vector(model, 'v', v)
    J = body_jacobian(model, q, link)[3:]
    velocity = J @ v
    if direction is None:
        if not np.linalg.norm(velocity) > NO_MOTION:
            raise StateError(f"link '{link}' does not move, so its motion has no direction: give "
                             'the direction of the contact')
        direction = velocity
    mass = effective_mass(model, q, link, direction)
    if mass == np.inf:
        raise ModelError(f"no joint moves link '{link}' in this direction")
    u = np.asarray(direction, float)
    speed = max(float(u @ velocity) / float(np.linalg.norm(u)), 0.0)
    reduced = mass if clamped else 1.0 / (1.0 / mass + 1.0 / region.mass)
    force = region.clamped_force if clamped else region.free_force
    limit = float(force / np.sqrt(reduced * region.stiffness))
    return SpeedLimit(mass, force ** 2 / (2.0 * region.stiffness), limit, speed,
                      min(1.0, limit / speed) if speed > 0.0 else 1.0)
