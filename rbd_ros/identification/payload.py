# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Identify the payload of a known robot. StateError: invalid samples; ModelError: invalid link."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.identification.least_squares import body_size, covariance_of, LENGTH_POWERS
from rbd_ros.identification.parameters import LoadParameters
from rbd_ros.identification.physical_consistency import nearest_consistent
from rbd_ros.identification.reduction import Partial, reduce_samples, samples_of
from rbd_ros.identification.weighted_fit import torque_errors, weighted_fit
from rbd_ros.model.arguments import check_model
from rbd_ros.model.changes.inertial import centre_and_inertia, inertial_parameters
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples


class Payload(NamedTuple):
    """
    Result of `identify_payload` and `fit_payload`.

    Attributes
    ----------
    mass, com : float, ndarray of shape (3,)
        Mass, kg, and centre of mass in the link's frame, m.
    inertia : ndarray, shape (3, 3)
        About the centre of mass, in the link's axes, kg m^2.
    deviation : ndarray, shape (10,)
        Standard deviations of m, mcx, mcy, mcz, and the inertia Ixx, Iyy, Izz, Ixy, Ixz, Iyz about
        the link's origin. Where torques do not determine them, they are as uncertain as for a link
        of the robot. If the robot has an uncertainty (`rbd_ros.Model.uncertainty`), they include
        that of the robot.
    residual, rank : ndarray of shape (nv,), int
        RMS of the torques minus those of the robot with the payload, N m or N; how many
        combinations of the ten parameters the torques determine.
    com_deviation : ndarray, shape (3,)
        Standard deviations of the centre of mass, m.

    """

    mass: float
    com: np.ndarray
    inertia: np.ndarray
    deviation: np.ndarray
    residual: np.ndarray
    rank: int
    com_deviation: np.ndarray


def payload_partial(model: Model, link: str, samples: Samples, *, threads: int | None = None,
                    progress: Callable[[int, int], object] | None = None) -> Partial:
    """
    Reduce a recording to its information about a payload, for `merge` and `fit_payload`.

    Parameters
    ----------
    model, samples : Model, Samples
        The robot without the payload, with its friction and rotors; the result of `prepare`.
    link : str
        Link that carries the payload; it may be fixed, but a joint must move it.
    threads, progress
        As in `rbd_ros.batch`.

    """
    check_model(model)
    return reduce_samples(LoadParameters(model, link, True), samples, threads, progress)


def fit_payload(model: Model, part: Partial) -> Payload:
    """
    Return the physically consistent payload that explains recorded torques best.

    `rbd_ros.with_payload` takes mass, com and inertia of the result.

    Parameters
    ----------
    model, part : Model, Partial
        The robot, and the result of `payload_partial` for it.

    """
    check_model(model)
    if part.kind[0] != 'load':
        raise StateError('part must be what payload_partial returned')
    mass = inertial_parameters(model)[::10]
    deviation = (np.mean(mass) if np.any(mass > 0.0) else 1.0) * body_size(model) ** LENGTH_POWERS
    # What follows the ten parameters has a deviation of one.
    deviation = np.append(deviation, np.ones(len(part.names) - 10))
    prior = np.zeros(len(deviation))
    free = weighted_fit(part, prior, deviation)
    pi = nearest_consistent(prior, np.concatenate((free.matrix, np.diag(1.0 / deviation))),
                            np.concatenate((free.target, prior)), deviation, 1)[0]
    pi[10:] = 0.0
    com, inertia = centre_and_inertia(pi[:10])
    covariance = covariance_of(free, deviation)[:10, :10]
    to_com = np.concatenate((-com[:, None], np.eye(3)), axis=1) / pi[0]
    com_deviation = np.sqrt(np.sum(to_com @ covariance[:4, :4] * to_com, axis=1))
    # Variances of ten normalized parameters, halved by the torques where these say more.
    V = free.directions[:, :10]
    rest = np.eye(10) - V.T @ (V * (free.sigma ** 2 / (free.sigma ** 2 + 1.0))[:, None])
    return Payload(float(pi[0]), com, inertia, np.sqrt(np.diag(covariance)),
                   torque_errors(part, pi).rms, int(np.sum(np.linalg.eigvalsh(rest) < 0.5)),
                   com_deviation)


def identify_payload(model: Model, link: str, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                     tau: ArrayLike, *, time: ArrayLike | None = None,
                     usable: ArrayLike | None = None) -> Payload:
    """
    Return the physically consistent payload on a link that explains recorded torques best.

    If the torques do not determine a part (the inertia, if the robot stood still), it is almost
    zero. Without a payload so is the mass, and the centre of mass is meaningless.
    `rbd_ros.with_payload` takes mass, com and inertia of the result.

    Parameters
    ----------
    model, link
        As for `payload_partial`.
    q, v, a, tau, time, usable
        As for `rbd_ros.identify`, with the payload.

    """
    samples = samples_of(model, q, v, a, tau, time, usable)
    return fit_payload(model, payload_partial(model, link, samples))
