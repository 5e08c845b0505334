# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Fit the parameters of a robot (bodies, friction, rotors) to reduced recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.identification.parameters import (
    ASYMMETRIES, BaseParameters, RobotParameters, ROUNDING)
from rbd_ros.identification.physical_consistency import AIR, nearest_consistent
from rbd_ros.identification.reduction import Partial, partial, samples_of
from rbd_ros.identification.weighted_fit import torque_errors, weighted_fit, WeightedFit
from rbd_ros.model.arguments import check_model
from rbd_ros.model.changes.drives import COLUMNS, USUAL
from rbd_ros.model.changes.inertial import inconsistent_bodies, inertial_parameters, moving_bodies
from rbd_ros.model.model import Model

# Powers of a length in the ten parameters of a body.
LENGTH_POWERS = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
# Radius of gyration of a body as a fraction of the distance between joints; and without one, m.
GYRATION_RATIO, DEFAULT_GYRATION = 0.5, 0.1
# Weight of the bodies' divergence from the model: at a divergence of 1, each parameter deviates by
# 1 / sqrt(2) of its prior standard deviation.
PRIOR_WEIGHT = 0.1
# Largest deviation of a parameter that torques determine, as a fraction of its prior deviation.
MAX_DETERMINED = 0.2
MIN_MASS_RATIO = 0.1  # Smallest prior mass of a body, as a fraction of the mean.


@dataclass(frozen=True, eq=False)
class Identification:
    """
    Result of `fit` and `identify`.

    Attributes
    ----------
    parameters, names : RobotParameters, tuple of str
        The identified parameters, and their names: of the bodies, as in
        `rbd_ros.model.inertial_parameter_names`, then as in `rbd_ros.model.drive_parameter_names`.
    values, covariance : ndarray, shape (parameters,) and (parameters, parameters)
        The estimates and their covariance. Where torques do not determine them, the uncertainty
        assumed for the model remains.
    base : BaseParameters
        The combinations that torques can determine: ``base.combination @ values`` estimates them.
    residual, relative_error : ndarray of shape (nv,), float
        RMS of the measured minus the computed torques, N m or N, and relative to that of the
        torques, all joints together.
    correlation : ndarray, shape (nv,)
        How many samples of each joint count as one, because errors are correlated in time.
    sigma : ndarray
        For each direction in parameter space, the ratio of prior to measured standard deviation,
        largest first.
    determined : ndarray of bool, shape (parameters,)
        Which parameters torques determine by themselves, not as terms of a combination.

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
    determined: np.ndarray

    @property
    def deviation(self) -> np.ndarray:
        """Return the standard deviations of all parameters."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def base_values(self) -> np.ndarray:
        """Return the estimates of the base parameters."""
        return self.base.combination @ self.values

    @property
    def base_deviation(self) -> np.ndarray:
        """Return the standard deviations of the base parameters."""
        B = self.base.combination
        return np.sqrt(np.sum(B @ self.covariance * B, axis=1))

    @property
    def rank(self) -> int:
        """Return how many combinations the torques determine better than the model."""
        return int(np.sum(self.sigma > 1.0))

    @property
    def pi(self) -> np.ndarray:
        """Return the inertial parameters, see `rbd_ros.model.inertial_parameter_names`."""
        return self.values[:10 * self.parameters.bodies]

    @property
    def model(self) -> Model:
        """Return the robot with these parameters; raise ModelError if it cannot exist."""
        return self.parameters.model_with(self.values)

    @property
    def inconsistent(self) -> tuple[str, ...]:
        """Return the links whose bodies cannot exist with these parameters."""
        return inconsistent_bodies(self.parameters.model, self.pi)


def fit(model: Model, part: Partial, *, consistent: bool = True) -> Identification:
    """
    Return the parameters that explain recorded torques best.

    Weighted least squares: each joint is weighted with the inverse variance of its residual in the
    previous iteration. Combinations of parameters that torques hardly determine stay near the
    model's, whose prior standard deviation is taken to be as large as the parameters themselves.
    [Garofalo et al. (15), (16) for the regressor.]

    Parameters
    ----------
    model, part : Model, Partial
        The robot with its initial parameters, and its reduced recordings.
    consistent : bool
        Whether to require physical consistency (see `physical_consistency`): bodies with positive
        definite pseudo-inertias, whose divergence from the model's then replaces their prior
        deviation; friction that dissipates energy; positive rotor inertias.

    Raises
    ------
    StateError
        If ``part`` belongs to another robot, or to a payload.

    """
    check_model(model)
    parameters = RobotParameters(model, part.kind[1:])
    if part.kind[0] != 'robot' or part.names != parameters.names:
        raise StateError(f"part must be what partial returned for robot '{model.name}'")
    prior, prior_deviation = parameters.values, _prior_deviation(parameters, part)
    free = weighted_fit(part, prior, prior_deviation)
    values, covariance = (_consistent_fit(parameters, free, prior, prior_deviation) if consistent
                          else (free.theta, covariance_of(free, prior_deviation)))
    B, determined = np.abs(part.base.combination), np.zeros(len(values), bool)
    determined[part.base.independent] = np.sum(B > ROUNDING * np.max(B), axis=1) == 1
    determined &= np.diag(covariance) < (MAX_DETERMINED * prior_deviation) ** 2
    return Identification(parameters, part.names, values, covariance, part.base,
                          *torque_errors(part, values), free.correlation, free.sigma, determined)


def covariance_of(free: WeightedFit, prior_deviation: np.ndarray) -> np.ndarray:
    """Return the covariance of the unconstrained estimate."""
    V, D = free.directions, 1.0 / (free.sigma ** 2 + 1.0)
    undetermined = np.eye(len(prior_deviation)) - V.T @ V
    rows = np.concatenate((free.scatter * D @ V, D[:, None] * V, undetermined))
    rows *= prior_deviation
    return rows.T @ rows


def _consistent_fit(parameters: RobotParameters, free: WeightedFit, prior: np.ndarray,
                    prior_deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the physically consistent estimate and its covariance."""
    bodies = parameters.bodies
    drives = np.diag(1.0 / prior_deviation)[10 * bodies:]
    values, curvature = nearest_consistent(
        prior, np.concatenate((free.matrix, drives)),
        np.concatenate((free.target, drives @ prior)), prior_deviation, bodies, prior=PRIOR_WEIGHT,
        conditions=_inequalities(parameters), air=AIR)
    # The derivative of the data term scatters with the noise, that of the prior with its
    # deviation.
    curvature = np.concatenate((curvature, drives)) * prior_deviation
    R = np.linalg.qr(np.concatenate((free.matrix * prior_deviation, curvature)), mode='r')
    scatter = np.concatenate((free.scatter @ free.directions, curvature))
    R_inverse = np.linalg.inv(R)
    root = scatter @ R_inverse @ R_inverse.T * prior_deviation
    return values, root.T @ root


def _inequalities(parameters: RobotParameters) -> tuple[np.ndarray, np.ndarray]:
    """Return G and h of the conditions G theta >= h on the drives."""
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


def _prior_deviation(parameters: RobotParameters, part: Partial) -> np.ndarray:
    """Return the prior standard deviations of the model's parameters."""
    # A body's are the parameters of a body of its mass and of the size of the robot's links; a
    # drive's are so large that each alone could explain the torques.
    model, bodies = parameters.model, parameters.bodies
    drives = np.ones((model.nv, len(parameters.columns)))
    for j, (factors, own) in enumerate(zip(part.factors, part.columns)):
        first = 10 * bodies + j * len(parameters.columns)
        B = part.base.combination[own, first:first + len(parameters.columns)]
        column, torque = np.linalg.norm(factors[:, :, :-1] @ B, axis=(0, 1)), part.squares[j]
        there = (column > 0.0) & (torque > 0.0)
        drives[j, there] = np.sqrt(torque) / column[there]
    return np.concatenate((mass_scales(model), drives.ravel()))


def mass_scales(model: Model) -> np.ndarray:
    """Return the parameters (10 * bodies,) of bodies with the robot's masses and sizes."""
    mass = inertial_parameters(model)[::10]
    mean = np.mean(mass) if np.any(mass > 0.0) else 1.0
    mass = np.maximum(mass, MIN_MASS_RATIO * mean)
    return np.outer(mass, body_size(model) ** LENGTH_POWERS).ravel()


def body_size(model: Model) -> float:
    """Return the assumed radius of gyration of bodies, from the distance between joints, m."""
    place = {part: T for parts in moving_bodies(model).values() for part, T in parts}
    pairs = [(model.link_index(joint.parent), joint) for joint in model.joints if joint.nv]
    apart = [np.linalg.norm((place[up] @ joint.placement)[:3, 3])
             for up, joint in pairs if up in place]
    apart = [distance for distance in apart if distance > 0.0]
    return GYRATION_RATIO * float(np.mean(apart)) if apart else DEFAULT_GYRATION


def identify(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, *,
             friction: Sequence[str] = USUAL, rotors: bool = True, consistent: bool = True,
             time: ArrayLike | None = None, usable: ArrayLike | None = None) -> Identification:
    """
    Return the parameters that explain recorded torques best.

    Parameters
    ----------
    model, q : Model, array_like of shape (samples, model.nq)
        The robot with its initial parameters, and configurations, rad and m.
    v, a, tau : array_like, shape (samples, model.nv)
        Velocities, accelerations and torques, N m or N.
    friction, rotors, consistent
        As for `partial` and `fit`.
    time : array_like, shape (samples,), optional
        Stamps, s; default: equidistant.
    usable : array_like of bool, shape (samples, model.nv), optional
        Torques to use; default: all. Exclude joints that stand still if they have Coulomb
        friction, whose direction is then unknown. `prepare` finds them.

    Raises
    ------
    StateError
        If an array has a wrong shape or holds a non-finite number, or a friction column is
        unknown.
    ModelError
        If no joint of the robot moves.

    """
    samples = samples_of(model, q, v, a, tau, time, usable)
    return fit(model, partial(model, samples, friction=friction, rotors=rotors),
               consistent=consistent)
