# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a link on springs and dampers, in all six directions."""

from __future__ import annotations

from math import sqrt, tan
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import Controller, critical_damping, FRICTION_SPEED, gains
from rbd_ros.control.references import JointReference, PoseReference
from rbd_ros.model.arguments import number
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rotation_vector, skew
from rbd_ros.workspace import Workspace

# Below this angle, rad, 1/x^2 - cot(x/2)/(2 x) is taken from its series.
SMALL = 1e-2


class CartesianImpedance(Controller):
    """
    Hold a link by springs and dampers along the root's axes, at the link's origin.

    The error is e = (phi, p_r - p): with R_r = exp([phi]) R, the rotation that is left, and the
    way that is left, both in the root's axes. The springs store the energy e^T K e / 2, and exert
    the wrench that is its gradient,

        F = B(phi)^T K e + D (V_r' - V),   B = diag(1 + [phi]/2 + c [phi]^2, 1)

    with de/dt = B (V_r' - V), and V_r' the reference's twist, its rotation turned from the
    reference to the link. The motion of the reference is fed forward, and a redundant robot is
    drawn to a posture where that does not move the link:

        tau = M a_r + C v_r + g + J^T F + N^T (K_0 (q_0 - q) - D_0 N v)
        v_r = J_bar V_r',   a_r = J_bar (dV_r'/dt - (dJ/dt) v_r)

    For a reference at rest and K_0 = 0, v^T M v / 2 + e^T K e / 2 grows by nothing but external
    forces: the robot is passive. The projected springs of the posture are not exactly passive.

    Parameters
    ----------
    model : Model
        The robot.
    link : str
        The link's name.
    stiffness : array_like, shape () or (6,)
        Diagonal of K: three of rotations, N m/rad, three of shifts, N/m.
    posture : array_like, shape (model.nq,)
        q_0.
    posture_stiffness : array_like, shape () or (model.nv,)
        Diagonal of K_0, N m/rad or N/m. Where it is zero, motions that do not move the link are
        undamped.
    damping_ratio : float
        Of all modes of K with the inertia Lambda that is felt at the link, and of K_0 with M; see
        `critical_damping`.
    condition_limit : float
        Condition number of J beyond which Lambda is damped; see `rbd_ros.task_space_dynamics`.
    friction_speed : float, optional
        See `Controller`.

    References
    ----------
    Ott, "Cartesian Impedance Control of Redundant and Flexible-Joint Robots", Springer 2008,
    chapter 4; the error of rotation and that of position apart, by the geodesic: Bullo and Murray,
    Automatica 35 (1999); N and J_bar: Khatib, IEEE J. Robotics and Automation 3 (1987).

    """

    reference_type: ClassVar[type] = PoseReference

    def __init__(self, model: Model, link: str, stiffness: npt.ArrayLike, *,
                 posture: npt.ArrayLike, posture_stiffness: npt.ArrayLike = 10.0,
                 damping_ratio: float = 1.0, condition_limit: float = 100.0,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._stiffness = gains('stiffness', stiffness, 6)
        self._posture = JointReference(model, posture)
        self._posture_stiffness = self._gain('posture_stiffness', posture_stiffness)
        self._ratio = number('damping_ratio', damping_ratio, 0.0)
        self._limit = number('condition_limit', condition_limit, 1.0)
        self._link, self._index = link, model.link_index(link)
        # Another one, so that its results and those of the first can be used together.
        self._task = Workspace(model)
        self._task.task_space_dynamics(self._posture.q, np.zeros(model.nv), link)   # it may refuse

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: PoseReference) -> np.ndarray:
        T = self._task.forward_kinematics(q)[self._index].copy()
        task = self._task.task_space_dynamics(q, v, self._link, frame='world-aligned',
                                              condition_limit=self._limit)
        terms = self._workspace.all_terms(q, v)
        V = task.J @ v
        e, B, V_r, V_r_dot = pose_error(T, V, reference)
        D = critical_damping(task.Lambda, self._stiffness, self._ratio)
        v_r = task.J_bar @ V_r
        a_r = task.J_bar @ (V_r_dot - task.J_dot @ v_r)
        F = B.T @ (self._stiffness * e) + D @ (V_r - V)
        D_0 = critical_damping(terms.M, self._posture_stiffness, self._ratio)
        N = task.null_projector
        aside = self._posture_stiffness * self._error(q, self._posture) - D_0 @ (N @ v)
        return (terms.M @ a_r + terms.C @ v_r + terms.g + task.J.T @ F + N.T @ aside
                + self._friction(v_r))


def pose_error(T: np.ndarray, V: np.ndarray, reference: PoseReference
               ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """
    Return how far a link is from its reference, and how that changes.

    Parameters
    ----------
    T : ndarray, shape (4, 4)
        Pose of the link in the root's frame.
    V : ndarray, shape (6,)
        Its twist in the root's axes, at its origin.
    reference : PoseReference
        Where it is to be.

    Returns
    -------
    e : ndarray, shape (6,)
        Rotation vector of at most pi rad, and shift, m, to the reference, in the root's axes.
    B : ndarray, shape (6, 6)
        With de/dt = B (V_r - V).
    V_r, V_r_dot : ndarray, shape (6,)
        Twist of the reference, its rotation turned from the axes of the reference to those of the
        link, and its derivative by time.

    References
    ----------
    The inverse of the right Jacobian of SO(3) is 1 + [phi]/2 + c [phi]^2: Chirikjian, "Stochastic
    Models, Information Theory, and Lie Groups 2", Birkhaeuser 2012, (10.86).

    """
    Q = T[:3, :3] @ reference.T[:3, :3].T
    phi = rotation_vector(Q.T)
    W, angle = skew(phi), sqrt(phi @ phi)
    c = (1.0 / 12.0 + angle ** 2 / 720.0 if angle < SMALL
         else 1.0 / angle ** 2 - 0.5 / (angle * tan(0.5 * angle)))
    B = np.eye(6)
    B[:3, :3] += 0.5 * W + c * W @ W
    V_r, V_r_dot = reference.V.copy(), reference.V_dot.copy()
    V_r[:3] = Q @ V_r[:3]
    V_r_dot[:3] = Q @ V_r_dot[:3] + skew(V) @ V_r[:3]
    return np.concatenate((phi, reference.T[:3, 3] - T[:3, 3])), B, V_r, V_r_dot
