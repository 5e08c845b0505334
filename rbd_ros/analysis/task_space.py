# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of motion seen from one link: F = Lambda Vdot + eta.

Lynch and Park (9.90)-(9.99), extended to arms with more joints than the task has dimensions, and
kept finite where it has fewer or the Jacobian loses rank.

"""

from typing import Any

import numpy.typing as npt
from rbd_ros.model.model import Model
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.results import Frame, TaskSpaceDynamics
from rbd_ros.workspace.task_space import characteristic_length

__all__ = ['characteristic_length', 'task_space_dynamics', 'TaskSpaceDynamics']


def task_space_dynamics(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, link: str, *,
                        frame: Frame = 'body', condition_limit: float = 2e3) -> TaskSpaceDynamics:
    """
    Return the equations of motion of a link, F = Lambda Vdot + eta.

    F is the wrench that the joint torques exert at the link, J_bar^T tau, or the one that acts on
    it from outside where there are none. Where J is square and invertible, J_bar is J^-1.

    Lambda is (J M^-1 J^T + D)^-1. Lengths are measured in units of `characteristic_length`, in
    which rotations and translations compare; J has the singular values sigma_i with the left
    singular vectors u_i. With sigma_0 the largest of them over ``condition_limit``,

        D = mu sum (sigma_0^2 - sigma_i^2) u_i u_i^T    over all sigma_i < sigma_0

    with mu the largest eigenvalue of J M^-1 J^T over the square of the largest sigma. Away from
    singular poses D is zero, and near them it grows continuously in q. It gives directions in
    which the link cannot be moved at all (too few joints, a singular pose) a large finite inertia
    instead of an infinite one, and leaves all others as they would be without it.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration; rad for revolute, m for prismatic joints.
    v : array_like, shape (model.nv,)
        Velocity, rad/s or m/s.
    link : str
        The link's name.
    frame : {'body', 'world-aligned'}
        Axes of the twist and the wrench: the link's, or the root's; both at the link's origin.
    condition_limit : float
        Condition number of J beyond which the inverse is damped; at least 1.

    Returns
    -------
    TaskSpaceDynamics
        With the fields ``Lambda eta J J_dot J_bar null_projector condition damped``.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry, or ``frame`` or
        ``condition_limit`` is none of those above.
    ModelError
        If no link has that name, or no joint moves it.
    SingularError
        If a joint moves no inertia, so that M has no inverse.

    References
    ----------
    Lynch and Park (9.90)-(9.99), with b for J^-T b in (9.95); Lambda = (J M^-1 J^T)^-1 and
    J_bar = M^-1 J^T Lambda for redundant arms.

    """
    result = workspace_of(model).task_space_dynamics(q, v, link, frame=frame,
                                                     condition_limit=condition_limit)
    parts: list[Any] = [*(part.copy() for part in result[:6]), *result[6:]]
    return TaskSpaceDynamics(*parts)
