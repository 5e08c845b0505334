# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Base class of the control laws, and the declarations that make a law a control mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.arrays import lapack
from rbd_ros._internal.setting import Setting
from rbd_ros.dynamics import spring_torques
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, shown, sizes
from rbd_ros.model.changes.friction import direction, friction
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import difference
from rbd_ros.model.positions.steps import turning, without_turns
from rbd_ros.motions.references import JointReference
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.passive_joints import passive_friction

FRICTION_SPEED = 0.01   # rad/s or m/s: width of the sign change of compensated Coulomb friction
# Largest stiffness, N m/rad or N/m, damping, N m s/rad or N s/m, and accelerations per error of
# position, 1/s^2, and of velocity, 1/s, that a control mode accepts.
MAX_STIFFNESS, MAX_DAMPING, MAX_KP, MAX_KD = 1e5, 1e4, 1e5, 1e3
ROUNDING = 1e-13    # share of the largest square of a frequency below which one is zero
STIFFNESS, DAMPING = 'N m/rad or N/m', 'N m s/rad or N s/m'


@dataclass(frozen=True)
class Gain(Setting):
    """A gain of a control law; an empty list becomes None."""

    changeable: bool = True
    low: float | None = 0.0
    # Whether the gain scales the damping matrix, or adds its product with the mass matrix to it.
    damps: bool = False
    damps_inertia: bool = False
    # Raises ModelError if a model lacks one of these names.
    check: Callable[[Model, tuple[str, ...]], object] | None = None
    parameter: str = ''    # name of the parameter; default: mode, a dot, name of the gain


def joint_gain(default: tuple[float, ...], meaning: str, unit: str, high: float,
               **options: Any) -> Gain:
    """Declare a gain of each joint."""
    return Gain(default, meaning, unit, high=high, per='control_joints', **options)


class Circumstances(NamedTuple):
    """The values other than gains from which a control mode makes its law."""

    model: Model
    task_link: str  # link of the pose reference
    posture: np.ndarray     # configuration, rad or m, at which a redundant robot is held
    # Whether to compensate friction, and the largest error of measured velocities, rad/s or m/s.
    friction: bool
    dead_band: float
    springs: bool = False   # whether to compensate springs

    @property
    def friction_speed(self) -> float | None:
        return FRICTION_SPEED if self.friction else None


class Controller(ABC):
    """
    A control law: torques for a measured state and a reference.

    Friction is compensated for the reference velocity v_r, not the measured one, so that noise
    does not reach the torques. If friction tau_f(v) does not fall with the speed,

        (v_r - v) (tau_f(v_r) - tau_f(v)) >= 0,

    so this compensation only damps the error and never feeds energy to it.

    The error q_r - q of a continuous joint is the shortest way, at most half a turn.

    Parameters
    ----------
    model : Model
    friction_speed : float, optional
        ``smooth`` of `rbd_ros.friction_torques`: speed over which compensated Coulomb friction
        changes its sign, rad/s or m/s. None: friction is not compensated.

    Attributes
    ----------
    reference_type : type
        Type of the reference that `update` takes, or NoneType.
    compensates_springs : bool
        Whether the torques include those that hold springs, at the measured configuration; False
        unless it is set.

    """

    reference_type: ClassVar[type] = JointReference

    # Declarations of a control mode: purpose, gains by name (see `from_gains`), and whether the
    # torques contain C v, the root link may float, and references have torques.
    purpose: ClassVar[str] = ''
    gains: ClassVar[Mapping[str, Gain]] = {}
    contains_coriolis: ClassVar[bool] = True
    floating_base: ClassVar[bool] = False
    takes_torques: ClassVar[bool] = False

    def __init__(self, model: Model, *, friction_speed: float | None = None) -> None:
        self._workspace, self.model, self._turns = Workspace(model), model, turning(model)
        self.compensates_springs = False
        self._friction_speed = None if friction_speed is None else number(
            'friction_speed', friction_speed, 0.0)

    @classmethod
    def from_gains(cls, given: Circumstances, **gains: Any) -> Controller:
        """Return the law for gains by name; by default these are arguments of the constructor."""
        return cls(given.model, friction_speed=given.friction_speed, **gains)

    @property
    def follows(self) -> np.ndarray:
        """Return which joints follow their reference, shape (model.nv,)."""
        return np.ones(self.model.nv, bool)

    def reset(self) -> None:
        """Discard internal state. Most control laws are stateless."""
        return

    def update(self, t: float, q: npt.ArrayLike, v: npt.ArrayLike,
               reference: Any = None) -> np.ndarray:
        """
        Return the torques for a sample.

        After a StateError (invalid array, wrong reference type or robot) nothing has changed.

        Parameters
        ----------
        t, q, v
            Time, s; measured configuration (nq,), rad or m, and velocity (nv,), rad/s or m/s.
        reference : JointReference, PoseReference or None
            The desired motion at this time, of type ``reference_type``.

        Returns
        -------
        ndarray, shape (model.nv,), N m or N
            A new array, not clamped to effort limits.

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
        tau = self._torques(t, q, v, reference)
        return tau + self._springs(q) if self.compensates_springs else tau

    @abstractmethod
    def damping(self, q: np.ndarray) -> np.ndarray:
        """Return D = -d tau / d v at a configuration, at rest and without friction."""

    @abstractmethod
    def _torques(self, t: float, q: np.ndarray, v: np.ndarray, reference: Any) -> np.ndarray:
        """Return the torques for checked arguments."""

    def error(self, q: np.ndarray, reference: JointReference) -> np.ndarray:
        """Return the shortest step from the measured to the desired configuration, rad or m."""
        way = (reference.q - q if self.model.nq == self.model.nv
               else difference(self.model, q, reference.q))
        return without_turns(way, self._turns)

    def _friction(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | float:
        """Return the compensation of friction at the measured q and the desired velocity v."""
        if self._friction_speed is None:
            return 0.0
        own = friction(self.model, v, direction(v, self._friction_speed), v)
        return own if self.model.loops is None else own + passive_friction(
            self.model, q, v, self._friction_speed)

    def _springs(self, q: np.ndarray) -> np.ndarray | float:
        return spring_torques(self.model, q) if self.compensates_springs else 0.0

    def _gain(self, label: str, value: npt.ArrayLike) -> np.ndarray:
        return sizes(label, value, self.model.nv)


def critical_damping(inertia: np.ndarray, stiffness: np.ndarray, ratio: float) -> np.ndarray:
    """
    Return the damping matrix with which all modes have the same damping ratio.

    With the inertia M, springs K and the modes X, X^T M X = 1 and K X = M X W, D is 2 ratio M X
    W^(1/2) X^T M: in the coordinates in which the inertia is 1 and K is diagonal, D is diagonal,
    too. With S = K^(1/2) it is 2 ratio S (S M^-1 S)^(-1/2) S, where the power of zero is zero.
    Reference: double diagonalization by Albu-Schaeffer, Ott, Frese and Hirzinger, ICRA 2003.

    Parameters
    ----------
    inertia : ndarray, shape (n, n)
        Symmetric positive definite, else LinAlgError is raised.
    stiffness : ndarray, shape (n,)
        The diagonal of K, not negative. Motions without a spring are undamped.
    ratio : float
        1: critical damping of all modes.

    Returns
    -------
    ndarray, shape (n, n), symmetric positive semidefinite

    """
    if not len(stiffness):
        return np.zeros((0, 0))     # LAPACK refuses an empty matrix
    factor, failed = lapack().dpotrf(inertia)
    if failed:
        raise np.linalg.LinAlgError('the inertia is not positive definite')
    modes, weights = _damped_modes(lapack().dpotri(factor)[0], stiffness, ratio)
    return (modes * weights) @ modes.T


def damping_forces(mobility: np.ndarray, stiffness: np.ndarray, ratio: float,
                   motion: np.ndarray) -> np.ndarray:
    """Return D V, shape (n,) or (n, m), with the `critical_damping` D for an inverse inertia."""
    modes, weights = _damped_modes(mobility, stiffness, ratio)
    return modes @ (weights * (motion.T @ modes)).T


def _damped_modes(mobility: np.ndarray, stiffness: np.ndarray,
                  ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Return U and w with D = U diag(w) U^T, from the upper triangle of M^-1."""
    S = np.sqrt(stiffness)
    squares, modes, failed = lapack().dsyevd(mobility * S * S[:, None])
    if failed:
        raise np.linalg.LinAlgError('no modes were found: is the inertia finite?')
    squares[squares <= ROUNDING * squares[-1]] = np.inf
    return S[:, None] * modes, 2.0 * ratio / np.sqrt(squares)
