# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of motion seen from one link: F = Lambda Vdot + eta.

Lynch and Park (9.90)-(9.99), extended to arms with more joints than the task has dimensions, and
kept finite where it has fewer or the Jacobian loses rank.

"""

from typing import NamedTuple

import numpy as np
from rbd_ros.closed_form import body_jacobian_rates
from rbd_ros.errors import ModelError, SingularError, StateError
from rbd_ros.jacobians import world_jacobian_dot
from rbd_ros.kinematics import world_jacobian
from rbd_ros.workspace import Workspace

# A singular value that is a smaller share of the largest is zero but for rounding.
ROUNDING = 1e-14


class TaskSpaceDynamics(NamedTuple):
    """
    What `task_space_dynamics` computes.

    Attributes
    ----------
    Lambda : ndarray, shape (6, 6)
        Task-space inertia, kg m^2, kg m and kg; angular first.
    eta : ndarray, shape (6,)
        Coriolis, gravity and centrifugal wrench: moment, N m, and force, N.
    J, J_rate : ndarray, shape (6, nv)
        Jacobian of the link and its rate of change; the link's twist is J v.
    J_bar : ndarray, shape (nv, 6)
        Dynamically consistent inverse of J: the motion of least kinetic energy for a twist. Its
        transpose maps torques to the wrench that they exert.
    null_projector : ndarray, shape (nv, nv)
        N = 1 - J_bar J. N v does not move the link; torques N^T tau do not accelerate it.
    condition : float
        Largest over smallest singular value of J M^-1/2, which has six; infinite where rank is
        lost.
    damped : bool
        Whether the condition number passed the limit, so that Lambda, eta, J_bar and
        null_projector are those of a damped inverse.

    """

    Lambda: np.ndarray
    eta: np.ndarray
    J: np.ndarray
    J_rate: np.ndarray
    J_bar: np.ndarray
    null_projector: np.ndarray
    condition: float
    damped: bool


def task_space_dynamics(model, q, v, link, *, frame='body', condition_limit=1e3):
    """
    Return the equations of motion of a link, F = Lambda Vdot + eta.

    F is the wrench that the joint torques exert at the link, J_bar^T tau, or the one that acts on
    it from outside where there are none. Where J is square and invertible, J_bar is J^-1.

    With J M^-1/2 = U Sigma W^T, Lambda is U Sigma^-2 U^T. Singular values below the largest over
    ``condition_limit`` are replaced by that bound in Sigma^-2: directions in which the link can
    hardly be moved, or not at all (too few joints, a singular pose), get a large finite inertia
    instead of an infinite one, and all others are left as they are.

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
        Condition number of J M^-1/2 beyond which the inverse is damped; at least 1.

    Returns
    -------
    TaskSpaceDynamics
        With the fields ``Lambda eta J J_rate J_bar null_projector condition damped``.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has another shape or holds a non-finite number, or ``frame`` or
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
    workspace = Workspace(model)
    k = model.link_index(link)
    q, v = workspace.check(q=q, v=v)
    if not condition_limit >= 1.0:
        raise StateError(f'condition_limit must be at least 1, got {condition_limit}')
    if frame == 'body':
        J, J_rate = (rows[k] for rows in body_jacobian_rates(model, q, v))
    elif frame == 'world-aligned':
        J, J_rate = world_jacobian(model, q, link), world_jacobian_dot(model, q, v, link)
    else:
        raise StateError(f"frame must be 'body' or 'world-aligned', got '{frame}'")
    if not J.any():
        raise ModelError(f"link '{link}' is part of the root: no joint moves it")
    b = workspace.bias_torques(q, v)
    try:
        L = np.linalg.cholesky(workspace.configuration_terms(q).M)
    except np.linalg.LinAlgError:
        raise SingularError(f"the mass matrix of robot '{model.name}' has no inverse here: some "
                            'joint moves no inertia') from None

    X = np.linalg.solve(L, J.T)                                 # M^-1/2 J^T = W Sigma U^T
    _, sigma, Ut = np.linalg.svd(X)
    sigma = np.append(sigma, np.zeros(6 - len(sigma)))
    bound = sigma[0] / condition_limit
    full_rank = sigma[-1] > ROUNDING * sigma[0]
    Lambda = Ut.T @ np.diag(np.maximum(sigma, bound) ** -2.0) @ Ut           # L (9.98)
    J_bar = np.linalg.solve(L.T, X @ Lambda)
    eta = J_bar.T @ b - Lambda @ (J_rate @ v)                                # L (9.99)
    return TaskSpaceDynamics(Lambda, eta, J, J_rate, J_bar, np.eye(model.nv) - J_bar @ J,
                             float(sigma[0] / sigma[-1]) if full_rank else np.inf,
                             bool(sigma[-1] < bound))
