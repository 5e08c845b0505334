# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of motion seen from one link: F = Lambda Vdot + eta.

Lynch and Park (9.90)-(9.99), extended to arms with more joints than the task has dimensions, and
kept finite where it has fewer or the Jacobian loses rank.

"""

from typing import NamedTuple

import numpy as np
from rbd_ros.analysis.jacobians import world_jacobian_dot
from rbd_ros.errors import ModelError, SingularError
from rbd_ros.kinematics import world_jacobian
from rbd_ros.textbook.sums_over_links import body_jacobian_rates
from rbd_ros.validation import choice, number
from rbd_ros.workspace import Workspace

# A singular value that is a smaller share of the largest is zero but for rounding.
ROUNDING = 1e-14
# Of the way from the root to a link, for the unit of length.
SHARE_OF_WAY = 0.2


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
        Largest over smallest singular value of J, which has six, with lengths in units of
        `characteristic_length`; infinite where rank is lost.
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


def task_space_dynamics(model, q, v, link, *, frame='body', condition_limit=2e3):
    """
    Return the equations of motion of a link, F = Lambda Vdot + eta.

    F is the wrench that the joint torques exert at the link, J_bar^T tau, or the one that acts on
    it from outside where there are none. Where J is square and invertible, J_bar is J^-1.

    Lambda is (J M^-1 J^T + D)^-1. Lengths are measured in units of `characteristic_length`, in
    which turns and shifts compare, and J has the singular values sigma_i with the left singular
    vectors u_i. With sigma_0 the largest of them over ``condition_limit``,

        D = mu sum (sigma_0^2 - sigma_i^2) u_i u_i^T    over all sigma_i < sigma_0

    with mu the largest eigenvalue of J M^-1 J^T over the square of the largest sigma. Away from
    singular poses D is zero, it sets in continuously in q, and it lets directions in which the
    link cannot be moved at all (too few joints, a singular pose) have a large finite inertia
    instead of an infinite one; all others then are as they would be without it.

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
    condition_limit = number('condition_limit', condition_limit, 1.0)
    if choice('frame', frame, ('body', 'world-aligned')) == 'body':
        J, J_rate = (rows[k] for rows in body_jacobian_rates(model, q, v))
    else:
        J, J_rate = world_jacobian(model, q, link), world_jacobian_dot(model, q, v, link)
    if not J.any():
        raise ModelError(f"link '{link}' is part of the root: no joint moves it")
    b = workspace.bias_torques(q, v)
    Lambda, J_bar, condition = task_inertia(workspace.configuration_terms(q).M, J, condition_limit,
                                            characteristic_length(model, link))
    eta = J_bar.T @ b - Lambda @ (J_rate @ v)                                # L (9.99)
    return TaskSpaceDynamics(Lambda, eta, J, J_rate, J_bar, np.eye(model.nv) - J_bar @ J,
                             condition, condition > condition_limit)


def characteristic_length(model, link):
    """
    Return the length with which turns of a link compare with its shifts.

    Parameters
    ----------
    model : Model
        The robot.
    link : str
        The link's name.

    Returns
    -------
    float
        A fifth of the way from the root to the link along the joints, m: about the lever of a
        joint in the middle, and where condition numbers of arms are smallest. 1 m where that way
        has no length.

    """
    way, up = 0.0, {joint.child: joint for joint in model.joints}
    while link in up:
        way += np.linalg.norm(up[link].placement[:3, 3])
        link = up[link].parent
    return SHARE_OF_WAY * way if way > 0.0 else 1.0


def task_inertia(M, J, condition_limit, length):
    """
    Return Lambda, J_bar and the condition number, see `task_space_dynamics`.

    Parameters
    ----------
    M : ndarray, shape (nv, nv)
        Mass matrix.
    J : ndarray, shape (6, nv)
        Jacobian of the link, not zero.
    condition_limit : float
        Condition number of J beyond which the inverse is damped.
    length : float
        Unit of length in which J is judged, m.

    Returns
    -------
    Lambda, J_bar : ndarray, shape (6, 6), (nv, 6)
        Inertia and dynamically consistent inverse of J.
    condition : float
        Infinite where rank is lost.

    Raises
    ------
    SingularError
        If M has no inverse.

    """
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise SingularError('the mass matrix has no inverse here: some joint moves no '
                            'inertia') from None
    scale = np.array([1.0, 1.0, 1.0, 1.0 / length, 1.0 / length, 1.0 / length])
    J = scale[:, None] * J
    U, sigma, _ = np.linalg.svd(J)
    sigma = np.append(sigma, np.zeros(6 - len(sigma)))
    condition = sigma[0] / sigma[-1] if sigma[-1] > ROUNDING * sigma[0] else np.inf

    X = np.linalg.solve(L, J.T)                       # X^T X = J M^-1 J^T
    root_mu = np.linalg.norm(X, 2) / sigma[0]
    missing = np.maximum((sigma[0] / condition_limit) ** 2 - sigma ** 2, 0.0)
    # Of X with a square root of D below it, so that nothing is squared.
    _, roots, Wt = np.linalg.svd(np.vstack((X, root_mu * np.sqrt(missing)[:, None] * U.T)),
                                 full_matrices=False)
    Lambda = Wt.T @ np.diag(roots ** -2.0) @ Wt                              # L (9.98)
    J_bar = np.linalg.solve(L.T, X @ Lambda)
    return scale[:, None] * Lambda * scale, J_bar * scale, float(condition)
