# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What all control laws have in common: a robot, and one method for each sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rbd_ros.control.references import JointReference
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, number, shown
from rbd_ros.model.configurations import difference
from rbd_ros.model.friction import direction, friction
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace

# rad/s or m/s, over which the compensation of Coulomb friction changes its sign.
FRICTION_SPEED = 0.01


class Controller(ABC):
    """
    A control law: torques for a measured state and a reference.

    Friction is compensated for the velocity of the reference, not for the measured one. Noise
    does not reach the torques then, and no energy is fed to the error: with friction tau_f(v) that
    does not fall with the speed,

        (v_r - v) (tau_f(v_r) - tau_f(v)) >= 0,

    so friction that is compensated so only damps the error.

    Parameters
    ----------
    model : Model
        The robot.
    friction_speed : float, optional
        As ``smooth`` for `rbd_ros.friction_torques`: the speed over which the compensation of
        Coulomb friction changes its sign, rad/s or m/s. None: friction is left alone.

    Attributes
    ----------
    model : Model
        The robot.
    reference_type : type
        What `update` takes for a reference, or NoneType.

    """

    reference_type: ClassVar[type] = JointReference

    def __init__(self, model: Model, *, friction_speed: float | None = None) -> None:
        self._workspace, self.model = Workspace(model), model
        self._friction_speed = None if friction_speed is None else number(
            'friction_speed', friction_speed, 0.0)

    def reset(self) -> None:
        """Forget what was learnt of earlier samples; most laws know nothing of them."""
        return

    def update(self, t: float, q: npt.ArrayLike, v: npt.ArrayLike,
               reference: Any = None) -> np.ndarray:
        """
        Return the torques for a sample.

        Parameters
        ----------
        t : float
            Time of the sample, s.
        q : array_like, shape (model.nq,)
            Measured configuration; rad for revolute, m for prismatic joints.
        v : array_like, shape (model.nv,)
            Measured velocity, rad/s or m/s.
        reference : JointReference, PoseReference or None
            What the robot is to do at this time, of the ``reference_type`` of the controller.

        Returns
        -------
        ndarray, shape (model.nv,)
            N m or N; a new array, without regard to the limits of the drives.

        Raises
        ------
        StateError
            If a vector has the wrong shape or a non-finite entry, or the reference is of another
            kind or for another robot; the controller is as before.
        SingularError
            If the law needs an acceleration, and a joint moves no inertia.

        """
        t = number('t', t)
        q, v = self._workspace.check(q=q, v=v)
        if not isinstance(reference, self.reference_type):
            raise StateError(f'reference must be a {self.reference_type.__name__}, got '
                             + shown(reference))
        if isinstance(reference, JointReference) and (
                len(reference.q) != len(q) or len(reference.v) != len(v)):
            raise StateError('the reference is one for another robot: it has '
                             f'{len(reference.v)} velocities, not {len(v)}')
        return self._torques(t, q, v, reference)

    @abstractmethod
    def _torques(self, t: float, q: np.ndarray, v: np.ndarray, reference: Any) -> np.ndarray:
        """Return the torques for what was checked."""

    def _error(self, q: np.ndarray, reference: JointReference) -> np.ndarray:
        """Return the way from the measured to the wanted configuration, rad or m."""
        if self.model.nq == self.model.nv:
            return reference.q - q
        return difference(self.model, q, reference.q)

    def _friction(self, v: np.ndarray) -> np.ndarray | float:
        """Return the friction that is compensated when the joints are to move with v."""
        if self._friction_speed is None:
            return 0.0
        return friction(self.model, v, direction(v, self._friction_speed), v)

    def _gain(self, label: str, value: npt.ArrayLike) -> np.ndarray:
        """Return a gain, not negative, for each velocity."""
        return gains(label, value, self.model.nv)


def gains(label: str, value: npt.ArrayLike, count: int) -> np.ndarray:
    """Return so many gains, given all of them or one for all; errors name them by their label."""
    array = finite_array(label, value, (), (count,))
    if np.any(array < 0.0):
        raise StateError(f'{label} must not be negative, got {shown(value)}')
    return np.broadcast_to(array, (count,)).copy()


def critical_damping(inertia: np.ndarray, stiffness: np.ndarray, ratio: float) -> np.ndarray:
    """
    Return the damping matrix with which all modes have the same damping ratio.

    With the inertia L L^T and springs K, D = 2 ratio L (L^-1 K L^-T)^(1/2) L^T: in the coordinates
    in which the inertia is 1 and K is diagonal, so is D.

    Parameters
    ----------
    inertia : ndarray, shape (n, n)
        Symmetric positive definite.
    stiffness : ndarray, shape (n,)
        The diagonal of K, not negative. Motions without a spring are without damping.
    ratio : float
        1: all modes are as fast as they can be without overshooting.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric positive semidefinite.

    References
    ----------
    Albu-Schaeffer, Ott, Frese and Hirzinger, ICRA 2003: double diagonalization.

    """
    L = np.linalg.cholesky(inertia)
    half = np.linalg.solve(L, np.diag(np.sqrt(stiffness)))      # half half^T = L^-1 K L^-T
    U, sigma, _ = np.linalg.svd(half)
    U = L @ U
    return 2.0 * ratio * (U * sigma) @ U.T
