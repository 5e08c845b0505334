# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a link on springs and dampers in all six directions."""

from __future__ import annotations

from math import sqrt, tan
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.arrays import lapack
from rbd_ros.analysis.task_space import characteristic_length
from rbd_ros.control.controller import (
    Circumstances, Controller, damping_forces, FRICTION_SPEED, Gain, joint_gain, MAX_STIFFNESS,
    STIFFNESS)
from rbd_ros.kernels.articulated_bodies import SINGULAR
from rbd_ros.model.arguments import number, sizes
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rotation_vector, skew
from rbd_ros.motions.references import JointReference, PoseReference

SERIES_ANGLE = 1e-2     # rad: below this angle, 1/x^2 - cot(x/2)/(2 x) is computed from its series
UNIT = np.eye(6)


class CartesianImpedance(Controller):
    """
    Hold a link by springs and dampers in the axes of the root, at the link's origin.

    The error is e = (phi, p_r - p) in the root's axes, with R_r = exp([phi]) R. The springs store
    the energy e^T K e / 2 and exert its gradient, the wrench

        F = B(phi)^T K e + D (V_r' - V),   B = diag(1 + [phi]/2 + c [phi]^2, 1)

    with de/dt = B (V_r' - V) and V_r' the reference's twist, rotated from the reference to the
    link. The motion of the reference is fed forward, and a redundant robot is drawn to a posture
    by torques that do not move the link:

        tau = M a_r + C v_r + g + J^T F + N^T (K_0 (q_0 - q) - D_0 N v)
        v_r = J_bar V_r',   a_r = J_bar (dV_r'/dt - (dJ/dt) v_r)

    For a reference at rest and K_0 = 0, only external forces increase v^T M v / 2 + e^T K e / 2:
    the robot is passive. The projected springs of the posture are not exactly passive.

    Reference: Ott, "Cartesian Impedance Control of Redundant and Flexible-Joint Robots", Springer
    2008, chapter 4; separate errors of rotation, along the geodesic, and of position: Bullo and
    Murray, Automatica 35 (1999); N and J_bar: Khatib, IEEE J. Robotics and Automation 3 (1987).

    Parameters
    ----------
    model, friction_speed, link, posture
        As for `Controller`; name of the link; q_0 (model.nq,), rad or m.
    stiffness : array_like, shape () or (6,)
        Diagonal of K: three rotations, N m/rad, three translations, N/m.
    posture_stiffness : array_like, shape () or (model.nv,)
        Diagonal of K_0, N m/rad or N/m. Where it is zero, motions in the null space are undamped.
    damping_ratio : float
        Of all modes of K with the link's inertia Lambda, and K_0 with M; see `critical_damping`.
    condition_limit : float
        Condition number of J beyond which Lambda is damped; see `rbd_ros.task_space_dynamics`.

    """

    reference_type: ClassVar[type] = PoseReference
    purpose = 'springs at `task_link`; a redundant robot keeps its posture'
    gains: ClassVar = {
        'stiffness': Gain((30.0, 30.0, 30.0, 300.0, 300.0, 300.0),
                          'Stiffness K about x, y and z, then along x, y and z of the root: one '
                          'number, or six.', STIFFNESS, high=MAX_STIFFNESS, sizes=(1, 6)),
        'damping_ratio': Gain(1.0, 'Damping ratio of all modes.', high=10.0, damps=True),
        'posture_stiffness': joint_gain((10.0,), 'Stiffness K_0 of motions that do not move '
                                        'task_link.', STIFFNESS, MAX_STIFFNESS)}

    def __init__(self, model: Model, link: str, stiffness: npt.ArrayLike, *,
                 posture: npt.ArrayLike, posture_stiffness: npt.ArrayLike = 10.0,
                 damping_ratio: float = 1.0, condition_limit: float = 100.0,
                 friction_speed: float | None = FRICTION_SPEED) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._stiffness = sizes('stiffness', stiffness, 6)
        self._posture = JointReference(model, posture)
        self._posture_stiffness = self._gain('posture_stiffness', posture_stiffness)
        self._ratio = number('damping_ratio', damping_ratio, 0.0)
        self._limit = number('condition_limit', condition_limit, 1.0)
        self._link, self._index = link, model.link_index(link)
        lengths = np.repeat((1.0, 1.0 / characteristic_length(model, link)), 3)
        self._lengths = np.outer(lengths, lengths)
        self.damping(self._posture.q)       # may raise

    @classmethod
    def from_gains(cls, given: Circumstances, **gains: Any) -> CartesianImpedance:
        if len(gains['stiffness']) == 1:
            gains['stiffness'] = gains['stiffness'][0]
        return cls(given.model, given.task_link, posture=given.posture,
                   friction_speed=given.friction_speed, **gains)

    def damping(self, q: np.ndarray) -> np.ndarray:
        M, v = self._workspace.mass_matrix(q), np.zeros(self.model.nv)
        J, _ = self._workspace.world_jacobian_dot(q, v, self._link)
        M_inverse, mobility, J_bar = self._task_terms(q, v, M, J)
        N = np.eye(len(M)) - J_bar @ J
        return (J.T @ damping_forces(mobility, self._stiffness, self._ratio, J)
                + N.T @ damping_forces(M_inverse, self._posture_stiffness, self._ratio, N))

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: PoseReference) -> np.ndarray:
        workspace, ratio = self._workspace, self._ratio
        T = workspace.forward_kinematics(q)[self._index].copy()
        M, C, g, *_ = workspace.all_terms(q, v)
        J, J_dot = workspace.world_jacobian_dot(q, v, self._link)
        V = J @ v
        e, B, V_r, V_r_dot = pose_error(T, V, reference)
        M_inverse, mobility, J_bar = self._task_terms(q, v, M, J)
        v_r = J_bar @ V_r
        a_r = J_bar @ (V_r_dot - J_dot @ v_r)
        F = (B.T @ (self._stiffness * e)
             + damping_forces(mobility, self._stiffness, ratio, V_r - V))
        # N = 1 - J_bar J
        aside = (self._posture_stiffness * self.error(q, self._posture)
                 - damping_forces(M_inverse, self._posture_stiffness, ratio, v - J_bar @ V))
        return (M @ a_r + C @ v_r + g + J.T @ (F - J_bar.T @ aside) + aside
                + self._friction(q, v_r))

    def _task_terms(self, q: np.ndarray, v: np.ndarray, M: np.ndarray,
                    J: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return M^-1, its upper triangle, and Lambda^-1 and J_bar of `task_space_dynamics`."""
        dposv, dsyev = lapack().dposv, lapack().dsyev
        # LAPACK is as fast where kernels are interpreted. It squares the condition number, but
        # that is limited.
        factor, moved, failed = dposv(M, J.T) if J.any() else (M, J.T, True)
        if not failed and (factor.diagonal() ** 2 > SINGULAR * M.diagonal()).all():
            mobility = J @ moved
            squares, vectors, _ = dsyev(J @ J.T * self._lengths)
            bound = squares[-1] / self._limit ** 2
            if squares[0] < bound:
                largest = dsyev(mobility * self._lengths, compute_v=0)[0][-1]
                missing = np.maximum(bound - squares, 0.0) * (largest / squares[-1])
                mobility += (vectors * missing) @ vectors.T / self._lengths
            _, Lambda, failed = dposv(mobility, UNIT)
            if not failed:
                return lapack().dpotri(factor)[0], mobility, moved @ Lambda
        # Errors name the joint that moves no inertia, or the link that no joint moves.
        task = self._workspace.task_space_dynamics(
            q, v, self._link, frame='world-aligned', condition_limit=self._limit)
        return np.linalg.inv(M), np.linalg.inv(task.Lambda), task.J_bar


def pose_error(T: np.ndarray, V: np.ndarray, reference: PoseReference
               ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return e, B, V_r and dV_r/dt of a link with pose T and twist V in the root's axes."""
    Q = T[:3, :3] @ reference.T[:3, :3].T
    phi = rotation_vector(Q.T)
    x, y, z = phi.tolist()
    angle = sqrt(x * x + y * y + z * z)
    # The inverse of the right Jacobian of SO(3) is 1 + [phi]/2 + c [phi]^2: Chirikjian,
    # "Stochastic Models, Information Theory, and Lie Groups 2", Birkhaeuser 2012, (10.86).
    c = (1.0 / 12.0 + angle ** 2 / 720.0 if angle < SERIES_ANGLE
         else 1.0 / angle ** 2 - 0.5 / (angle * tan(0.5 * angle)))
    B = UNIT.copy()
    B[:3, :3] = [
        [1.0 - c * (y * y + z * z), c * x * y - 0.5 * z, c * x * z + 0.5 * y],
        [c * x * y + 0.5 * z, 1.0 - c * (x * x + z * z), c * y * z - 0.5 * x],
        [c * x * z - 0.5 * y, c * y * z + 0.5 * x, 1.0 - c * (x * x + y * y)]]
    V_r, V_r_dot = reference.V.copy(), reference.V_dot.copy()
    V_r[:3] = Q @ V_r[:3]
    V_r_dot[:3] = Q @ V_r_dot[:3] + skew(V) @ V_r[:3]
    return np.concatenate((phi, reference.T[:3, 3] - T[:3, 3])), B, V_r, V_r_dot
