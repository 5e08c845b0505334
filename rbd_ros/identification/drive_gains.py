# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Drive gains, from recordings with and without a known payload.

Recorded efforts may be currents, or torques computed with a wrong gain. With the true gain k of a
joint, k effort = known + Y theta + Y_load pi_load, so that

    effort = Y (theta / k) + (known + Y_load pi_load) / k,

and 1 / k is one more parameter, whose column is the torque of the payload. Each joint is fitted
separately, since the others have other gains. Noise is in the effort only, so least squares are
unbiased [after Gautier and Briot (2014), J. Dyn. Sys. Meas. Control 136(5)].

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.identification.least_squares import covariance_of
from rbd_ros.identification.parameters import (
    base_of, BaseParameters, LoadParameters, robot_parameters, RobotParameters, ROUNDING, States)
from rbd_ros.identification.reduction import merge, Partial, reduce_samples
from rbd_ros.identification.weighted_fit import weighted_fit
from rbd_ros.model.changes.drives import USUAL
from rbd_ros.model.changes.inertial import parameters_of_inertia
from rbd_ros.model.changes.modifications import with_payload
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import inertia_matrix
from rbd_ros.recordings.samples import Samples

# Deviation of a parameter, as a multiple of the value that would explain all efforts alone.
WEAK_PRIOR = 1e3


class DriveGains(NamedTuple):
    """
    Result of `identify_drive_gains`, each of shape (nv,).

    Attributes
    ----------
    gains : ndarray
        Factors that turn recorded efforts into torques, N m, or forces, N.
    deviation : ndarray
        Their standard deviations; inf where the payload had no effect.
    residual : ndarray
        Standard deviation of the recorded efforts from the fit.

    """

    gains: np.ndarray
    deviation: np.ndarray
    residual: np.ndarray


@dataclass(frozen=True)
class GainParameters(RobotParameters):
    """The robot parameters divided by the drive gains, followed by the inverse gains."""

    load: LoadParameters
    pi: np.ndarray              # (10,), the payload
    loaded: bool = True         # whether the robot carries it

    @property
    def kind(self) -> tuple[str, ...]:
        return ('gains', *self.load.kind, *super().kind)

    @property
    def names(self) -> tuple[str, ...]:
        return (*super().names, *(f'{name}.inverse_gain' for name in self.model.velocity_names))

    def regressor(self, states: States, threads: int | None = None) -> np.ndarray:
        torque = super().known(states, threads)
        if self.loaded:
            torque = torque + self.load.regressor(states, threads) @ self.pi
        return np.concatenate((super().regressor(states, threads),
                               torque[:, :, None] * np.eye(self.model.nv)), axis=2)

    def known(self, states: States, threads: int | None = None) -> np.ndarray:
        return np.zeros_like(states.v)


def identify_drive_gains(model: Model, link: str, mass: float, com: ArrayLike, inertia: ArrayLike,
                         unloaded: Samples | Sequence[Samples],
                         loaded: Samples | Sequence[Samples], *,
                         friction: Sequence[str] = USUAL, rotors: bool = True) -> DriveGains:
    """
    Return the gains that turn recorded efforts into torques.

    Parameters
    ----------
    model, link : Model, str
        The robot, whose masses and inertias are not used, and the link that carries the payload.
    mass, com, inertia
        The payload, as for `rbd_ros.with_payload`. A heavy one far out is best.
    unloaded, loaded : Samples or sequence of Samples
        Recordings without and with the payload, with similar motions.
    friction, rotors
        As for `rbd_ros.identification.partial`.

    Raises
    ------
    ModelError
        If no link has that name, no joint moves it, or no body has such a mass and inertia.

    """
    with_load = with_payload(model, link, mass, com, inertia)
    body = with_load.links[with_load.link_index(f'{link}/payload')]
    robot = robot_parameters(model, friction, rotors)
    parameters = GainParameters(
        model, robot.columns, LoadParameters(model, link),
        parameters_of_inertia(inertia_matrix(body.mass, body.com, body.inertia)))
    structure = _structure(robot, parameters.names)
    parts = []
    for label, some in (('unloaded', unloaded), ('loaded', loaded)):
        some = (some,) if isinstance(some, Samples) else tuple(some)
        if not some:
            raise StateError(f'{label} holds no recordings: gains follow from the effect of a '
                             'payload')
        parts += [reduce_samples(replace(parameters, loaded=label == 'loaded'), one,
                                 structure=structure) for one in some]
    whole = merge(*parts)
    fits = np.array([_inverse_gain(whole, j) for j in range(model.nv)])
    value, deviation, residual = fits.T
    with np.errstate(divide='ignore'):
        gains = 1.0 / value
    return DriveGains(gains, np.where(deviation < np.abs(value), deviation * gains ** 2, np.inf),
                      residual)


def _structure(robot: RobotParameters, names: tuple[str, ...]
               ) -> tuple[BaseParameters, np.ndarray]:
    """Return the base parameters of the robot followed by the inverse gains, see `base_of`."""
    from scipy.linalg import block_diag     # lazily: SciPy is slow to import
    base, support = base_of(robot)
    gains = np.eye(robot.model.nv)
    independent = np.append(base.independent, len(names) - len(gains) + np.arange(len(gains)))
    return (BaseParameters(independent, tuple(names[k] for k in independent),
                           block_diag(base.combination, gains)),
            np.concatenate((support, gains > 0.0), axis=1))


def _inverse_gain(part: Partial, joint: int) -> tuple[float, float, float]:
    """Return the inverse gain of a joint, its deviation, and the residual of the efforts."""
    active, factors = part.columns[joint], part.factors[joint]
    single = replace(part, columns=(active,), factors=(factors,), counts=part.counts[:, [joint]],
                     squares=part.squares[[joint]])
    size = np.linalg.norm(factors[:, :, :-1] @ part.base.combination[active], axis=(0, 1))
    prior_deviation = np.divide(WEAK_PRIOR * np.sqrt(part.squares[joint]), size,
                                out=np.ones_like(size), where=size > ROUNDING * np.max(size))
    found = weighted_fit(single, np.zeros(len(prior_deviation)), prior_deviation)
    column = joint - len(part.counts.T)     # the last parameters are the inverse gains
    deviation = np.sqrt(covariance_of(found, prior_deviation)[column, column])
    return found.theta[column], deviation, found.noise[0]
