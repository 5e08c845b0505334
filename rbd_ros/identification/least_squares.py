# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot's parameters from what recordings say: bodies, friction and rotors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.identification.parameters import ASYMMETRIES, BaseParameters, RobotParameters
from rbd_ros.identification.partials import Partial, partial, samples_of
from rbd_ros.identification.physical_consistency import nearest_consistent
from rbd_ros.identification.weighted_fit import torque_errors, weighted_fit, WeightedFit
from rbd_ros.model.arguments import check_model
from rbd_ros.model.drives import COLUMNS, USUAL
from rbd_ros.model.inertial import inconsistent_bodies, moving_bodies
from rbd_ros.model.model import Model

# Powers of a length in the parameters of a body.
POWERS = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
# Radius of gyration of a body as a share of the distance between joints, and if there is none, m.
GYRATION, SHORT = 0.5, 0.1
# How much a divergence of bodies from the model's counts: that of 1 is a deviation of 1 / sqrt(2)
# PRIOR standard deviations.
PRIOR = 0.1
# Mass of a body, at least, as a share of the mean.
LIGHT = 0.1


@dataclass(frozen=True)
class Identification:
    """
    What `fit` and `identify` compute.

    Attributes
    ----------
    parameters : RobotParameters
        Which parameters these are.
    names : tuple of str
        Their names: of the bodies, as in `rbd_ros.model.inertial_parameter_names`, then of the
        drives, as in `rbd_ros.model.drive_parameter_names`.
    values : ndarray, shape (parameters,)
        The estimates.
    covariance : ndarray, shape (parameters, parameters)
        Of them. What torques do not show is as uncertain as the model was taken to be.
    base : BaseParameters
        The combinations that torques can show: ``base.combination @ values`` are their estimates.
    residual : ndarray, shape (nv,)
        Root mean square of the torques less those of these parameters, N m or N.
    relative_error : float
        The square root of the sum of its squares over that of the torques, all joints together.
    correlation : ndarray, shape (nv,)
        How many samples of each joint count as one, because errors are correlated in time.
    sigma : ndarray
        How many times better than the model the torques say it, for each direction in the space of
        parameters, the best first.

    """

    parameters: RobotParameters
    names: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    base: BaseParameters
    residual: np.ndarray
    relative_error: float
    correlation: np.ndarray
    sigma: np.ndarray

    @property
    def deviation(self) -> np.ndarray:
        """Return the standard deviation of every parameter."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def base_values(self) -> np.ndarray:
        """Return the estimates of the combinations that torques can show."""
        return self.base.combination @ self.values

    @property
    def base_deviation(self) -> np.ndarray:
        """Return their standard deviations."""
        B = self.base.combination
        return np.sqrt(np.sum(B @ self.covariance * B, axis=1))

    @property
    def rank(self) -> int:
        """Return how many combinations of parameters the torques say better than the model."""
        return int(np.sum(self.sigma > 1.0))

    @property
    def pi(self) -> np.ndarray:
        """Return the inertial parameters, see `rbd_ros.model.inertial_parameter_names`."""
        return self.values[:10 * self.parameters.bodies]

    @property
    def model(self) -> Model:
        """
        Return the robot with these parameters.

        Raises
        ------
        ModelError
            If there can be no such robot.

        """
        return self.parameters.model_with(self.values)

    @property
    def inconsistent(self) -> tuple[str, ...]:
        """Return the bodies that cannot exist with these parameters, by their links."""
        return inconsistent_bodies(self.parameters.model, self.pi)


def fit(model: Model, part: Partial, *, consistent: bool = True) -> Identification:
    """
    Return the parameters that explain recorded torques best.

    Weighted least squares: joints count by the inverse of their residual's variance in the fit
    before. Combinations of parameters that torques hardly show stay near to the model's: these
    are taken to be right but for a standard deviation as large as the parameters themselves.

    Parameters
    ----------
    model : Model
        The robot, with the parameters to start from.
    part : Partial
        What its recordings say.
    consistent : bool
        Whether only robots that can exist are allowed, see `physical_consistency`: bodies, with
        positive definite pseudo-inertias, whose divergence from the model's then takes the place
        of the standard deviations; friction that takes energy; rotors with inertia.

    Returns
    -------
    Identification
        With the robot as its ``model``.

    Raises
    ------
    StateError
        If ``part`` is of another robot, or of a load.

    References
    ----------
    Garofalo et al. (15), (16) for the regressor.

    """
    check_model(model)
    parameters = RobotParameters(model, part.kind[1:])
    if part.kind[0] != 'robot' or part.names != parameters.names:
        raise StateError(f"part must be what partial returned for robot '{model.name}'")
    guess, spread = parameters.values, _spread(parameters, part)
    free = weighted_fit(part, guess, spread)
    values, covariance = free.theta, covariance_of(free, spread)
    if consistent:
        values, covariance = _nearest(parameters, free, guess, spread)
    return Identification(parameters, part.names, values, covariance, part.base,
                          *torque_errors(part, values), free.correlation, free.sigma)


def covariance_of(free: WeightedFit, spread: np.ndarray) -> np.ndarray:
    """Return the covariance of the free estimate; what is not shown has that of the guess."""
    V, D = free.directions, 1.0 / (free.sigma ** 2 + 1.0)
    rows = np.concatenate((free.scatter * D @ V, D[:, None] * V, np.eye(len(spread)) - V.T @ V))
    return _square(rows * spread)


def _nearest(parameters: RobotParameters, free: WeightedFit, guess: np.ndarray,
             spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimate among robots that can exist, and its covariance."""
    bodies = parameters.bodies
    drives = np.diag(1.0 / spread)[10 * bodies:]
    values, curvature = nearest_consistent(
        guess, np.concatenate((free.matrix, drives)),
        np.concatenate((free.target, drives @ guess)), spread, bodies, prior=PRIOR,
        conditions=_conditions(parameters))
    # The first term's derivative scatters by the noise, the others' as the guess is uncertain.
    curvature = np.concatenate((curvature, drives)) * spread
    R = np.linalg.qr(np.concatenate((free.matrix * spread, curvature)), mode='r')
    scatter = np.concatenate((free.scatter @ free.directions, curvature))
    R_inverse = np.linalg.inv(R)
    return values, _square(scatter @ R_inverse @ R_inverse.T * spread)


def _square(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows


def _conditions(parameters: RobotParameters) -> tuple[np.ndarray, np.ndarray]:
    """Return combinations of parameters of drives, as rows, and what they are at least."""
    model, columns = parameters.model, parameters.columns
    rows, least = [], []
    for column, one in zip(columns, np.eye(len(columns))):
        asymmetry = {b: a for a, b in ASYMMETRIES.items()}.get(column)
        if asymmetry in columns:
            other = np.eye(len(columns))[columns.index(asymmetry)]
            rows += [one + other, one - other]
            least += 2 * [np.zeros(model.nv)]
        elif column != 'offset' and column not in ASYMMETRIES:
            rows.append(one)
            least.append(np.abs(getattr(model, COLUMNS[asymmetry])) if asymmetry
                         else np.zeros(model.nv))
    drives = np.kron(np.eye(model.nv), np.reshape(rows, (len(rows), len(columns))))
    return (np.concatenate((np.zeros((len(drives), 10 * parameters.bodies)), drives), axis=1),
            np.reshape(least, (len(rows), model.nv)).T.ravel())


def _spread(parameters: RobotParameters, part: Partial) -> np.ndarray:
    """
    Return how uncertain the model's parameters are taken to be, as standard deviations.

    A body's are as large as a body of that mass and of the size of the robot's links has them.
    Those of drives are so large that each alone could explain the torques.

    """
    model, bodies = parameters.model, parameters.bodies
    mass = parameters.values[:10 * bodies:10]
    mean = np.mean(mass) if np.any(mass > 0.0) else 1.0
    drives = np.ones((model.nv, len(parameters.columns)))
    for j, (factors, own) in enumerate(zip(part.factors, part.columns)):
        first = 10 * bodies + j * len(parameters.columns)
        B = part.base.combination[own, first:first + len(parameters.columns)]
        column, torque = np.linalg.norm(factors[:, :, :-1] @ B, axis=(0, 1)), part.squares[j]
        there = (column > 0.0) & (torque > 0.0)
        drives[j, there] = np.sqrt(torque) / column[there]
    return np.concatenate((
        np.outer(np.maximum(mass, LIGHT * mean), body_size(model) ** POWERS).ravel(),
        drives.ravel()))


def body_size(model: Model) -> float:
    """Return the radius of gyration of bodies that are as large as the joints are apart, m."""
    place = {part: T for parts in moving_bodies(model).values() for part, T in parts}
    pairs = [(model.link_index(joint.parent), joint) for joint in model.joints if joint.nv]
    apart = [np.linalg.norm((place[up] @ joint.placement)[:3, 3])
             for up, joint in pairs if up in place]
    apart = [distance for distance in apart if distance > 0.0]
    return GYRATION * float(np.mean(apart)) if apart else SHORT


def identify(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, *,
             friction: Sequence[str] = USUAL, rotors: bool = True, consistent: bool = True,
             time: ArrayLike | None = None, usable: ArrayLike | None = None) -> Identification:
    """
    Return the parameters that explain recorded torques best.

    Parameters
    ----------
    model : Model
        The robot, with the parameters to start from.
    q : array_like, shape (samples, model.nq)
        Configurations, rad and m.
    v, a, tau : array_like, shape (samples, model.nv)
        Velocities, accelerations and torques, N m or N.
    friction, rotors
        As for `partial`.
    consistent : bool
        As for `fit`.
    time : array_like, shape (samples,), optional
        Stamps, s; default: neighbours are equally far apart.
    usable : array_like of bool, shape (samples, model.nv), optional
        Which torques to use; default: all. Leave out joints that stand still if they have Coulomb
        friction: its direction is unknown then. `prepare` finds them.

    Returns
    -------
    Identification
        With the robot as its ``model``.

    Raises
    ------
    StateError
        If an array has another shape or holds a non-finite number, or there is no such friction.
    ModelError
        If no joint of the robot moves.

    References
    ----------
    Garofalo et al. (15), (16) for the regressor.

    """
    samples = samples_of(model, q, v, a, tau, time, usable)
    return fit(model, partial(model, samples, friction=friction, rotors=rotors),
               consistent=consistent)
