# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Serial chains given as products of exponentials [L (9.35)-(9.57)].

A chain consists of the home poses of its link frames, screws in the axes of the base, and
inertias. It offers Lynch and Park's algorithms, corrected, and a `Model` for all others.

"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import finite_array, real_array
from rbd_ros.model.changes.inertial import (
    centre_and_inertia, inertia_of_parameters, parameters_of_inertia)
from rbd_ros.model.description import Link, numbers
from rbd_ros.model.joints import Joint
from rbd_ros.model.model import build_model, Model, STANDARD_GRAVITY
from rbd_ros.model.se3 import Ad, ad, exp, inverse, is_pose, pose

# Largest deviation of a screw from unit length, and of a matrix from a pose or a rigid body's
# inertia: printed numbers have about this many digits.
TOLERANCE = 1e-6
ROUNDING = 1e-12    # smaller rotations and pitches, relative to 1 m, are treated as zero


def unit_screws(screws: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """
    Normalize screws of any length [L 9.3]; raise ModelError if one is zero or not finite.

    exp([S] theta) = exp([S / length] (length theta)): with unit screws, coordinates, velocities
    and accelerations are multiplied by ``length``, and torques are divided by it.

    Parameters
    ----------
    screws : array_like, shape (n, 6)
        (omega, v), angular first.

    Returns
    -------
    units, lengths : ndarray, shapes (n, 6) and (n,)
        Screws with omega of unit length, or v where omega is zero, and the divisors.

    """
    screws = np.zeros((0, 6)) if np.size(screws) == 0 else real_array(screws)
    if screws is None or screws.ndim != 2 or screws.shape[1] != 6:
        raise ModelError('screws must be real numbers of shape (n, 6)')
    turns, slides = np.linalg.norm(screws[:, :3], axis=1), np.linalg.norm(screws[:, 3:], axis=1)
    lengths = np.where(turns > ROUNDING * slides, turns, slides)
    for k, length in enumerate(lengths, 1):
        if not 0.0 < length < np.inf:
            raise ModelError(f'screw {k} must be finite and not zero, got {screws[k - 1]}')
    return screws / lengths[:, None], lengths


@dataclass(frozen=True, eq=False)
class ScrewChain:
    """
    A serial chain as a product of exponentials.

    Methods take and return arrays (n,) in rad and m (N m and N) for screws of unit length, and
    raise StateError if an argument is invalid; the class raises ModelError for an invalid chain.

    Parameters
    ----------
    home_poses : array_like, shape (n, 4, 4)
        M_i, poses of the link frames in the base frame at theta = 0 [L (9.38)]. A frame may be
        anywhere on its link; Lynch and Park have it at the centre of mass.
    screws : array_like, shape (n, 6)
        S_i in the base frame at theta = 0, angular first, of any length and pitch [L (9.36)].
    inertias : array_like, shape (n, 6, 6)
        G_i about the origins of the link frames, angular first [L (9.41)].
    gravity : array_like, shape (3,)
        Acceleration of gravity in the base frame, m/s^2.
    tip : array_like, shape (4, 4)
        Pose of the end effector's frame in the frame of the last link.

    """

    home_poses: np.ndarray
    screws: np.ndarray
    inertias: np.ndarray
    gravity: np.ndarray = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    tip: np.ndarray = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        n = len(self.screws)
        if not n:
            raise ModelError('a chain needs at least one screw')
        for label, shape in (('home_poses', (n, 4, 4)), ('screws', (n, 6)),
                             ('inertias', (n, 6, 6)), ('gravity', (3,)), ('tip', (4, 4))):
            value = numbers('the chain', label, getattr(self, label), shape)
            value.flags.writeable = False
            object.__setattr__(self, label, value)
        poses = {f'home pose {k}': T for k, T in enumerate(self.home_poses, 1)}
        for label, T in {**poses, 'tip': self.tip}.items():
            if not is_pose(T, TOLERANCE):
                raise ModelError(f'{label} is not a pose: expected a rotation, a position and the '
                                 f'row 0 0 0 1, got {T.tolist()}')
        for k, S in enumerate(self.screws, 1):
            if not np.any(S):
                raise ModelError(f'screw {k} must not be zero')

    def relative_poses(self) -> np.ndarray:
        """Return M_{i-1,i} (n, 4, 4), home poses in the previous link frame [L (9.39)]."""
        before = np.eye(4), *self.home_poses[:-1]
        return np.array([inverse(M_p) @ M for M_p, M in zip(before, self.home_poses)])

    def body_screws(self) -> np.ndarray:
        """Return A_i = Ad(M_i)^-1 S_i (n, 6), the screws in their link frames [L (9.40)]."""
        return np.array([Ad(inverse(M)) @ S for M, S in zip(self.home_poses, self.screws)])

    def poses(self, theta: npt.ArrayLike) -> np.ndarray:
        """Return exp([S_1] theta_1) ... exp([S_i] theta_i) M_i [L (9.36), (9.37), (9.49)]."""
        theta, = self._check(theta=theta)
        moved, T = np.eye(4), []
        for S, x, M in zip(self.screws, theta, self.home_poses):
            moved = moved @ exp(S * x)
            T.append(moved @ M)
        return np.array(T)

    def tip_jacobian(self, theta: npt.ArrayLike) -> np.ndarray:
        """Return the body Jacobian (6, n) of the end effector's frame [L (9.81)]."""
        T = self.poses(theta)
        to_tip = inverse(T[-1] @ self.tip)
        return np.transpose([Ad(to_tip @ T_i) @ A for T_i, A in zip(T, self.body_screws())])

    def inverse_dynamics(self, theta: npt.ArrayLike, rates: npt.ArrayLike,
                         accelerations: npt.ArrayLike, *, tip_wrench: npt.ArrayLike | None = None,
                         base_twist: npt.ArrayLike | None = None) -> np.ndarray:
        """
        Return the torques (n,) by Lynch and Park's recursion [L (9.50)-(9.57)].

        With A_i = Ad(M_i)^-1 S_i, T_{i,i-1} and Vdot_0 = (0, -g).

        Parameters
        ----------
        theta, rates, accelerations : array_like, shape (n,)
            Coordinates and their derivatives.
        tip_wrench, base_twist : array_like, shape (6,), optional
            F_tip in the frame of the end effector, moment first, exerted by the robot; V_0 of the
            base in its own axes, with constant components.

        """
        theta, rates, accelerations = self._check(theta=theta, rates=rates,
                                                  accelerations=accelerations)
        F, V = six('tip_wrench', tip_wrench), six('base_twist', base_twist)
        V_rate = np.concatenate((np.zeros(3), -self.gravity))
        links = []
        # Forward: twists and accelerations.
        for M, A, G, x, w, a in zip(self.relative_poses(), self.body_screws(), self.inertias,
                                    theta, rates, accelerations):
            to_link = Ad(inverse(M @ exp(A * x)))                                # L (9.53)
            V = to_link @ V + A * w                                              # L (9.54)
            V_rate = to_link @ V_rate + ad(V) @ A * w + A * a                    # L (9.55)
            links.append((to_link, A, G @ V_rate - ad(V).T @ G @ V))
        tau = []    # backward: wrenches and torques
        F = Ad(inverse(self.tip)).T @ F
        for to_link, A, wrench in reversed(links):
            F = F + wrench                                                       # L (9.56)
            tau.append(F @ A)                                                    # L (9.57)
            F = to_link.T @ F
        return np.array(tau[::-1])

    def mass_matrix(self, theta: npt.ArrayLike) -> np.ndarray:
        """Return M (n, n), column by column from unit accelerations [L (9.1), (9.61)]."""
        rest = np.zeros(len(self.screws))
        at_rest = self.inverse_dynamics(theta, rest, rest)
        return np.transpose([self.inverse_dynamics(theta, rest, unit) - at_rest
                             for unit in np.eye(len(rest))])

    def forward_dynamics(self, theta: npt.ArrayLike, rates: npt.ArrayLike, tau: npt.ArrayLike, *,
                         tip_wrench: npt.ArrayLike | None = None) -> np.ndarray:
        """
        Return the accelerations (n,) by GetJointAccel [L (9.2), (9.81), (9.89)].

        Corrected: the bias torques exclude F_tip, which would count twice otherwise.

        ``tau`` are torques (n,); the other arguments are as for `inverse_dynamics`.

        """
        tau, = self._check(tau=tau)
        F = six('tip_wrench', tip_wrench)
        bias = self.inverse_dynamics(theta, rates, np.zeros(len(tau)))
        external = self.tip_jacobian(theta).T @ F
        return np.linalg.solve(self.mass_matrix(theta), tau - bias - external)

    def model(self, name: str = 'chain') -> Model:
        """
        Return the chain as a `Model` [L (9.35)-(9.41)].

        Its joints are joint_1 to joint_n, revolute, prismatic or helical like the screws. Its
        links are base, link_1 to link_n with the frames of the chain, massless axis_1 to axis_n on
        the axes of the joints, and tip. ModelError is raised if an inertia is not a rigid body's,
        or a screw is not of unit length (`unit_screws`): joints of a `Model` move in rad and m.

        """
        _, lengths = unit_screws(self.screws)
        links, joints, before = [Link('base')], [], np.eye(4)
        for k, (M, S, G) in enumerate(zip(self.home_poses, self.screws, self.inertias), 1):
            if abs(lengths[k - 1] - 1.0) > TOLERANCE:
                raise ModelError(
                    f'screw {k} has length {lengths[k - 1]:.9g}, but joints move in rad and m; '
                    'unit_screws returns unit screws and the lengths to multiply coordinates by')
            kind, pitch, at = _joint_of(S)
            axis = S[3:] if kind == 'prismatic' else S[:3]
            on_axis = pose(np.eye(3), at)
            joints += [Joint(f'joint_{k}', kind, links[-1].name, f'axis_{k}',
                             inverse(before) @ on_axis, axis=axis, pitch=pitch),
                       Joint(f'frame_{k}', 'fixed', f'axis_{k}', f'link_{k}',
                             inverse(on_axis) @ M)]
            links += [Link(f'axis_{k}'), _link_of(f'link_{k}', G)]
            before = M
        joints.append(Joint('tip', 'fixed', links[-1].name, 'tip', self.tip))
        return build_model(name, [*links, Link('tip')], joints, gravity=self.gravity)

    def _check(self, **vectors: npt.ArrayLike) -> list[np.ndarray]:
        n = len(self.screws)
        return [finite_array(label, x, (n,)) for label, x in vectors.items()]


def six(label: str, vector: npt.ArrayLike | None) -> np.ndarray:
    """Return a twist or wrench as an array, zeros if there is none."""
    return np.zeros(6) if vector is None else finite_array(label, vector, (6,))


def _joint_of(S: np.ndarray) -> tuple[str, float, np.ndarray]:
    """Return a joint's kind, its pitch, and a point on its axis, from its unit screw."""
    turn, slide = S[:3], S[3:]
    if np.linalg.norm(turn) <= ROUNDING * np.linalg.norm(slide):
        return 'prismatic', 0.0, np.zeros(3)
    square = turn @ turn
    pitch = turn @ slide / square
    kind = 'revolute' if abs(pitch) <= ROUNDING else 'helical'
    return kind, 0.0 if kind == 'revolute' else pitch, np.cross(turn, slide) / square


def _link_of(name: str, G: np.ndarray) -> Link:
    pi = parameters_of_inertia(G)
    if np.max(np.abs(G - inertia_of_parameters(pi))) > TOLERANCE * np.max(np.abs(G)):
        raise ModelError(f'{name}: its 6 x 6 inertia is not that of a rigid body, [[I, m [c]], '
                         '[-m [c], m 1]]')
    return Link(name, pi[0], *centre_and_inertia(pi)) if pi[0] > 0.0 else Link(name)
