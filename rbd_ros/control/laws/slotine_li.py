# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Adaptive control by Slotine and Li: inertial parameters adapt while the robot moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import (
    Controller, DAMPING, FRICTION_SPEED, Gain, joint_gain, MAX_DAMPING, MAX_KD)
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import number
from rbd_ros.model.changes.inertial import (
    inertial_parameters, moving_bodies, parameters_of_pseudo_inertia, pseudo_inertia_of_parameters)
from rbd_ros.model.model import Model
from rbd_ros.motions.references import JointReference

# Derivatives of a pseudo-inertia with respect to the ten parameters, and the matrices L_i with
# tr(L_i dP/dpi_k) = 1 for i = k, and 0 otherwise.
BASIS = pseudo_inertia_of_parameters(np.eye(10)).reshape(10, 16)
DUAL = np.linalg.solve(BASIS @ BASIS.T, BASIS).reshape(10, 4, 4)
RANGE = 1e5     # largest factor by which a pseudo-inertia may grow or shrink in any direction
MAX_GROWTH = 10.0   # 1/s: largest rate of growth of a pseudo-inertia
ROUNDING = 1e-13    # smallest share of the largest eigenvalue of P that counts as positive


def adapting_bodies(model: Model, links: Sequence[str] | None) -> list[int]:
    """Return the moving bodies of links (None: all), in parameter order, or raise ModelError."""
    of_link = {part: k for k, parts in enumerate(moving_bodies(model).values())
               for part, _ in parts}
    if links is None:
        return sorted(set(of_link.values()))
    found = set()
    for link in links:
        index = model.link_index(link)
        if index not in of_link:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it, so its "
                             'parameters cannot adapt')
        found.add(of_link[index])
    return sorted(found)


class SlotineLi(Controller):
    """
    Follow a motion with inertial parameters that adapt to the errors.

        v_ref = v_r + L (q_r - q),   s = v - v_ref
        tau = M^ a_ref + C^ v_ref + g^ - K s = Y(q, v, v_ref, a_ref) pi^ - K s

    where ^ means: computed with the estimated parameters pi^. The pseudo-inertia P^ of each body
    that adapts follows the natural gradient,

        dP^/dt = -adaptation P^ G P^,   tr(G P(x)) = s^T Y x  for all x,

    which does not depend on units and frames and keeps P^ positive definite, so that the estimate
    is physically consistent at any time. With the true P and the divergence
    D(P | P^) = tr(P^^-1 P) - log det(P^^-1 P) - 4,

        V = s^T M s / 2 + sum D(P | P^) / adaptation,   dV/dt = -s^T K s:

    the tracking errors vanish, and those of the parameters as far as the motion excites them.
    Between samples, P^ follows its geodesic and stays positive definite for steps of any length.
    Its speed is limited to what samples can follow: in any direction, P^ changes by at most a
    factor of e in 0.1 s, and of 1e5 in total.

    Reference: Slotine and Li, Int. J. Robotics Research 6 (1987); the natural adaptation: Lee,
    Kwon and Park, IROS 2018; Y: Garofalo et al. (15), (16).

    Parameters
    ----------
    model : Model
        The robot with the initial estimates. Armature and friction do not adapt.
    rate, damping : array_like, shape () or (model.nv,)
        L, decay rate of position errors, 1/s, and K, N m s/rad or N s/m; the stiffness is K L.
    adaptation : float
        Adaptation gain, 1/J; 0: no adaptation.
    links : sequence of str, optional
        Links whose bodies adapt, such as the one with an unknown payload; default: all that move.
        The bodies must be physically consistent (ModelError).
    friction_speed : float, optional
        See `Controller`; friction is that of v_ref.
    longest_gap : float
        s. No adaptation over longer pauses between samples.

    Attributes
    ----------
    parameters : ndarray, shape (10 * bodies,)
        pi^, in the order of `rbd_ros.model.inertial_parameter_names`.

    """

    purpose = 'inverse dynamics with inertial parameters that adapt'
    gains: ClassVar = {
        'rate': joint_gain((5.0,), 'Decay rate L of position errors.', '1/s', MAX_KD,
                           damps_inertia=True),
        'damping': joint_gain((10.0,), 'Damping K.', DAMPING, MAX_DAMPING, damps=True),
        'adaptation': Gain(0.0, 'Adaptation gain of inertial parameters; 0: none.', '1/J',
                           high=1e6),
        'links': Gain((), 'Links whose inertial parameters adapt; empty: all that move.',
                      low=None, entry=str, check=adapting_bodies)}

    def __init__(self, model: Model, rate: npt.ArrayLike, damping: npt.ArrayLike,
                 adaptation: float, *, links: Sequence[str] | None = None,
                 friction_speed: float | None = FRICTION_SPEED, longest_gap: float = 0.1) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._rate = self._gain('rate', rate)
        self._damping = self._gain('damping', damping)
        self._adaptation = number('adaptation', adaptation, 0.0)
        self._longest_gap = number('longest_gap', longest_gap, 0.0)
        self._bodies = adapting_bodies(model, links)
        self._known = inertial_parameters(model).reshape(-1, 10)
        self._roots = np.linalg.cholesky(_checked_inertias(model, self._known, self._bodies))
        self.reset()

    def reset(self) -> None:
        """Discard the adaptation: the parameters are those of the model."""
        # P^ = root X root^T, where root root^T is P_0 and X = C C^T.
        self._C = np.tile(np.eye(4), (len(self._bodies), 1, 1))
        self._time: float | None = None
        self._slope = np.zeros_like(self._C)
        self.parameters = self._known.ravel().copy()

    def damping(self, q: np.ndarray) -> np.ndarray:
        # Of a law that has not adapted yet.
        return self._workspace.mass_matrix(q) * self._rate + np.diag(self._damping)

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        v_ref = reference.v + self._rate * self.error(q, reference)
        a_ref = reference.a + self._rate * (reference.v - v)
        s = v - v_ref
        Y = self._workspace.slotine_li_regressor(q, v, v_ref, a_ref)
        if self._adaptation > 0.0:
            if self._time is not None and 0.0 < t - self._time <= self._longest_gap:
                self._adapt(t - self._time)
            # dX/dt = -adaptation X root^T G root X = -adaptation C slope C^T
            gradient = (s @ Y).reshape(-1, 10)[self._bodies]
            G = (gradient @ DUAL.reshape(10, 16)).reshape(-1, 4, 4)     # as tensordot, but faster
            factor = self._roots @ self._C
            self._slope = factor.swapaxes(1, 2) @ G @ factor
            self._time = t
        return (Y @ self.parameters + self._rotors(q, v, v_ref, a_ref) - self._damping * s
                + self._friction(q, v_ref))

    def _rotors(self, q: np.ndarray, v: np.ndarray, v_ref: np.ndarray,
                a_ref: np.ndarray) -> np.ndarray:
        """Return the torques of rotors, M a_ref + C v_ref of theirs."""
        if self.model.loops is None:
            return self.model.armature * a_ref
        workspace: Any = self._workspace
        workspace._move(q, v)
        _, of_joints = workspace._references(q, v_ref, a_ref)
        return workspace._torques(self.model.unconstrained.armature * of_joints)

    def _adapt(self, step: float) -> None:
        """Advance the parameters along the geodesic by a time step, s."""
        w, U = np.linalg.eigh(self._slope)
        w *= -self._adaptation
        growth = np.exp(w * (0.5 * step / np.maximum(
            np.abs(w).max(axis=1, keepdims=True) / MAX_GROWTH, 1.0)))
        self._C = self._C @ (U * growth[:, None])
        determinant = np.square(np.linalg.det(self._C))
        # The product of the three largest eigenvalues is at most that of three thirds of the sum.
        most = np.square(self._C).sum((1, 2))
        if not ((most <= RANGE) & (determinant * RANGE >= (most / 3.0) ** 3)).all():
            w, U = np.linalg.eigh(self._C @ self._C.swapaxes(1, 2))
            self._C = U * np.sqrt(np.clip(w, 1.0 / RANGE, RANGE))[:, None]
        factor = self._roots @ self._C
        parameters = self._known.copy()
        parameters[self._bodies] = parameters_of_pseudo_inertia(factor @ factor.swapaxes(1, 2))
        self.parameters = parameters.ravel()


def _checked_inertias(model: Model, parameters: np.ndarray, bodies: list[int]) -> np.ndarray:
    """Return the pseudo-inertias of bodies; raise if one is not positive definite."""
    P = pseudo_inertia_of_parameters(parameters[bodies])
    heads = [model.link_names[k] for k in moving_bodies(model)]
    for body, values in zip(bodies, np.linalg.eigvalsh(P)):
        if not values[0] > ROUNDING * values[-1]:
            raise ModelError(
                f"link '{heads[body]}', with what is fixed to it, has a mass and inertia that no "
                'body can have: correct them, or name other links to adapt')
    return P
