# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Adaptive control by Slotine and Li: the robot learns what it carries while it moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rbd_ros.control.controller import Controller, FRICTION_SPEED
from rbd_ros.control.references import JointReference
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import number
from rbd_ros.model.inertial import (inertial_parameters, moving_bodies,
                                    parameters_of_pseudo_inertia, pseudo_inertia_of_parameters)
from rbd_ros.model.model import Model

# Derivatives of a pseudo-inertia by the ten parameters, and the matrices L_i for which
# tr(L_i dP/dpi_k) is 1 where i = k, and 0 elsewhere.
BASIS = pseudo_inertia_of_parameters(np.eye(10)).reshape(10, 16)
DUAL = np.linalg.solve(BASIS @ BASIS.T, BASIS).reshape(10, 4, 4)
# Times that a pseudo-inertia may become larger or smaller in any direction.
RANGE = 1e5
# 1/s: no pseudo-inertia grows or shrinks faster.
FASTEST = 10.0
# Smallest eigenvalue of a pseudo-inertia, as a share of the largest, that is told from zero.
ROUNDING = 1e-13


class SlotineLi(Controller):
    """
    Follow a motion with inertial parameters that adapt to the errors.

        v_ref = v_r + L (q_r - q),   s = v - v_ref
        tau = M^ a_ref + C^ v_ref + g^ - K s = Y(q, v, v_ref, a_ref) pi^ - K s

    where ^ means: of the parameters pi^ as they are believed to be. Those of each body that adapts
    change with its pseudo-inertia P^, by the natural gradient,

        dP^/dt = -adaptation P^ G P^,   tr(G P(x)) = s^T Y x  for all x,

    which does not depend on units and frames and keeps P^ positive definite: the body is one that
    can exist, at any time. With the true P and the divergence D(P | P^) = tr(P^^-1 P)
    - log det(P^^-1 P) - 4,

        V = s^T M s / 2 + sum D(P | P^) / adaptation,   dV/dt = -s^T K s:

    the errors of the motion vanish, and those of the parameters as far as the motion shows them.
    From one sample to the next, P^ goes along its geodesic, so it stays positive definite for
    steps of any length. Its speed is limited, for samples cannot follow faster ones: P^ does not
    change by more than a factor of e in 0.1 s in any direction, nor by more than 1e5 in all.

    Parameters
    ----------
    model : Model
        The robot as it is believed to be at first. Its armature and friction stay.
    rate : array_like, shape () or (model.nv,)
        L, 1/s: how fast errors of position die out.
    damping : array_like, shape () or (model.nv,)
        K, N m s/rad or N s/m. The stiffness of a joint is K L.
    adaptation : float
        1/J. How fast parameters change; 0: they stay.
    links : sequence of str, optional
        Links whose bodies adapt, such as the one that carries an unknown load; default: all that
        move.
    friction_speed : float, optional
        See `Controller`; friction is that of v_ref.
    longest_gap : float
        s. After a longer pause between samples, nothing is learnt of the time between.

    Attributes
    ----------
    parameters : ndarray, shape (10 * bodies,)
        pi^, in the order of `rbd_ros.model.inertial_parameter_names`.

    Raises
    ------
    ModelError
        If no link has one of those names, or a body that is to adapt does not move or cannot
        exist.

    References
    ----------
    Slotine and Li, Int. J. Robotics Research 6 (1987); the natural adaptation: Lee, Kwon and Park,
    IROS 2018; Y: Garofalo et al. (15), (16).

    """

    def __init__(self, model: Model, rate: npt.ArrayLike, damping: npt.ArrayLike,
                 adaptation: float, *, links: Sequence[str] | None = None,
                 friction_speed: float | None = FRICTION_SPEED,
                 longest_gap: float = 0.1) -> None:
        super().__init__(model, friction_speed=friction_speed)
        self._rate = self._gain('rate', rate)
        self._damping = self._gain('damping', damping)
        self._adaptation = number('adaptation', adaptation, 0.0)
        self._longest_gap = number('longest_gap', longest_gap, 0.0)
        self._bodies = bodies_of(model, links)
        self._known = inertial_parameters(model).reshape(-1, 10)
        self._roots = np.linalg.cholesky(_existing(model, self._known, self._bodies))
        self.reset()

    def reset(self) -> None:
        """Forget what was learnt: the parameters are those of the model."""
        # P^ = root X root^T, where root root^T is P_0.
        self._X = np.tile(np.eye(4), (len(self._bodies), 1, 1))
        self._time: float | None = None
        self._slope = np.zeros_like(self._X)
        self.parameters = self._known.ravel().copy()

    def _torques(self, t: float, q: np.ndarray, v: np.ndarray,
                 reference: JointReference) -> np.ndarray:
        v_ref = reference.v + self._rate * self._error(q, reference)
        a_ref = reference.a + self._rate * (reference.v - v)
        s = v - v_ref
        Y = self._workspace.slotine_li_regressor(q, v, v_ref, a_ref)
        if self._adaptation > 0.0:
            if self._time is not None and 0.0 < t - self._time <= self._longest_gap:
                self._learn(t - self._time)
            # root^T G root, of P^ = root X root^T: dX/dt = -adaptation X slope X.
            pushed = (s @ Y).reshape(-1, 10)[self._bodies]
            self._slope = (self._roots.swapaxes(1, 2) @ np.tensordot(pushed, DUAL, 1)
                           @ self._roots)
            self._time = t
        return (Y @ self.parameters + self.model.armature * a_ref - self._damping * s
                + self._friction(v_ref))

    def _learn(self, step: float) -> None:
        """Go along the geodesic for a step of time."""
        C = np.linalg.cholesky(self._X)
        w, U = np.linalg.eigh(C.swapaxes(1, 2) @ self._slope @ C)
        w *= -self._adaptation
        growth = np.exp(w * (step / np.maximum(np.abs(w).max(axis=1, keepdims=True) / FASTEST,
                                               1.0)))
        C = C @ U
        w, U = np.linalg.eigh((C * growth[:, None]) @ C.swapaxes(1, 2))
        self._X = (U * np.clip(w, 1.0 / RANGE, RANGE)[:, None]) @ U.swapaxes(1, 2)
        P = self._roots @ self._X @ self._roots.swapaxes(1, 2)
        parameters = self._known.copy()
        parameters[self._bodies] = parameters_of_pseudo_inertia(P)
        self.parameters = parameters.ravel()


def bodies_of(model: Model, links: Sequence[str] | None) -> list[int]:
    """
    Return which of the moving bodies links are part of, each once.

    Parameters
    ----------
    model : Model
        The robot.
    links : sequence of str or None
        Names of links; None: of all that move.

    Returns
    -------
    list of int
        Indices of bodies in the order of the inertial parameters.

    Raises
    ------
    ModelError
        If no link has one of the names, or a link does not move.

    """
    of_link = {part: k for k, parts in enumerate(moving_bodies(model).values())
               for part, _ in parts}
    if links is None:
        return sorted(set(of_link.values()))
    found = set()
    for link in links:
        index = model.link_index(link)
        if index not in of_link:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it, so nothing "
                             'can be learnt of it')
        found.add(of_link[index])
    return sorted(found)


def _existing(model: Model, parameters: np.ndarray, bodies: list[int]) -> np.ndarray:
    """Return the pseudo-inertias of bodies, or refuse what cannot exist."""
    P = pseudo_inertia_of_parameters(parameters[bodies])
    heads = [model.link_names[k] for k in moving_bodies(model)]
    for body, values in zip(bodies, np.linalg.eigvalsh(P)):
        if not values[0] > ROUNDING * values[-1]:
            raise ModelError(
                f"link '{heads[body]}', with what is fixed to it, has a mass and inertia that no "
                'body can have: correct them, or name other links to adapt')
    return P
