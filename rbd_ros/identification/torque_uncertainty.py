# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How far torques measured in other motions may be from those of an identified robot.

The variance of a torque has two parts: that of the parameters, from their covariance, and that of
the noise, which is mostly what the model lacks: friction that depends on temperature, load and
position, elasticity, cables. Such errors persist for seconds and are partly fitted, so residuals
of the fit are too small. Instead, time is cut into `FOLDS`, and each fold is compared with the
robot that the others identify. The noise of each joint, by speed, is the smallest with which
intervals of 90 % hold 90 % (1 + 1/n) of these left-out residuals, n of which are independent: a
quantile, since their distribution is not normal, and 1/n more, since the next residual may be
larger than all of them. All of this is done for torques filtered as those of the fit, at a
quarter of that cut-off, and not at all. [Stone (1974) for cross-validation; Lei et al. (2018),
JASA 113, for intervals from quantiles of left-out residuals.]

"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rbd_ros import batch
from rbd_ros.errors import StateError
from rbd_ros.identification.least_squares import fit, Identification
from rbd_ros.identification.reduction import block_of, chunks, Partial, states_of
from rbd_ros.model.changes.friction import direction, friction
from rbd_ros.model.constraints import attach
from rbd_ros.model.model import Model
from rbd_ros.model.uncertainty import HALF_WIDTH, SHARE, Uncertainty
from rbd_ros.recordings.preparation import EDGE_PERIODS
from rbd_ros.recordings.samples import Samples
from rbd_ros.workspace.passive_joints import all_springs, passive_friction

# Speed over which Coulomb friction changes its sign, as a fraction of the standstill threshold:
# above the threshold joints have full friction, as in the fit.
FRICTION_SMOOTHING = 0.5


def model_torques(model: Model, samples: Samples, smooth: float | np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Return the torques of a robot along recorded motions, and their friction, (samples, nv)."""
    # Friction is filtered as the efforts were. It changes its sign over the speed `smooth`, rad/s
    # or m/s, well above the filtered noise of joints at rest.
    v = samples.v
    dry_friction = samples.low_pass(friction(model, v, direction(v, smooth), v)
                                    + passive_friction(model, samples.q, v, smooth))
    return (batch.inverse_dynamics(model, samples.q, v, samples.a) + dry_friction
            + all_springs(model, samples.q)), dry_friction


# Parts of time that are left out: long compared with the correlation of errors, and so many that
# the rest still determines the parameters.
FOLDS = 6
# Speeds at which the noise of a joint is estimated, if each of their bands has so many independent
# samples.
MAX_BANDS, MIN_BAND = 3, 50
NARROW = 0.25   # The smallest bandwidth of the noise, as a fraction of that of the fit.


class LeftOut(NamedTuple):
    """Fits of a robot from which one fold each is left out."""

    fold_of_block: np.ndarray   # (BLOCKS,)
    base_values: np.ndarray     # (folds, base), estimates of the base parameters
    factors: np.ndarray         # (folds, base, base), R: R^T R is their covariance
    bandwidths: np.ndarray      # at which torques are compared, Hz; the last one: as recorded


class Residuals(NamedTuple):
    """Left-out residuals of a joint."""

    speed: np.ndarray           # (samples,), rad/s or m/s
    variance: np.ndarray        # (samples,), of the noise with which each is just in its interval


def leave_out(found: Identification, part: Partial, samples: Sequence[Samples]) -> LeftOut:
    """Return the fits without each fold; ``part`` is what ``found`` was fitted to, of samples."""
    used = np.any(part.counts > 0, axis=1)
    folds = min(FOLDS, int(np.sum(used)))
    if folds < 2:
        raise StateError('the samples are too few to leave some out: record for a longer time')
    fold_of_block = np.maximum(np.cumsum(used) - 1, 0) * folds // np.sum(used)
    others = [fit(found.parameters.model, replace(part, counts=part.counts * kept, factors=tuple(
        one * kept[:, None] for one in part.factors)))
        for kept in (fold_of_block[:, None] != k for k in range(folds))]
    cutoff, rate = (min(getattr(one, label) for one in samples) for label in ('cutoff', 'rate'))
    # The filter of arrays is not known.
    bandwidths = [0.0] if np.isinf(cutoff) else [NARROW * cutoff, cutoff, 0.5 * rate]
    return LeftOut(fold_of_block, np.array([one.base_values for one in others]),
                   np.array([covariance_factor(one) for one in others]), np.array(bandwidths))


def covariance_factor(found: Identification) -> np.ndarray:
    """Return the upper triangular R with R^T R = the covariance of the base parameters."""
    values, vectors = np.linalg.eigh(found.covariance)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return np.asarray(np.linalg.qr(root @ found.base.combination.T, mode='r'))


def left_out_residuals(found: Identification, left_out: LeftOut, samples: Samples
                       ) -> list[list[Residuals]]:
    """Return the residuals by bandwidth and joint, where its torque is usable, else everywhere."""
    parameters, states = found.parameters, states_of(samples)
    # As they are compared afterwards: model, and friction at low speeds, are those of the robot.
    smooth, recorded = FRICTION_SMOOTHING * samples.threshold, replace(samples, cutoff=np.inf)
    filtered = samples.tau - model_torques(found.model, samples, smooth)[0]
    raw = samples.raw - model_torques(found.model, recorded, smooth)[0]
    changes = left_out.base_values - found.base_values
    fold, of_parameters = left_out.fold_of_block[block_of(samples)], np.empty_like(filtered)
    for chunk, part in chunks(parameters, states):
        Y = parameters.regressor(part)[:, :, found.base.independent]
        for k in np.unique(fold[chunk]):
            rows = fold[chunk] == k
            for error in filtered, raw:
                error[chunk][rows] -= Y[rows] @ changes[k]
            of_parameters[chunk][rows] = np.sum((Y[rows] @ left_out.factors[k].T) ** 2, axis=-1)
    compared = [_narrowed(samples, filtered, one) for one in left_out.bandwidths[:-1]]
    return [[Residuals(np.abs(v[use]), (left[use] / HALF_WIDTH) ** 2 - known[use])
             for v, left, known, use in zip(samples.v.T, error.T, of_parameters.T,
                                            (usable | ~np.any(usable, axis=0)).T)]
            for error, usable in (*compared, (raw, samples.usable))]


def _narrowed(samples: Samples, error: np.ndarray, bandwidth: float
              ) -> tuple[np.ndarray, np.ndarray]:
    """Return errors of filtered torques in a narrower bandwidth, and where they are usable."""
    if bandwidth >= samples.cutoff:
        return error, samples.usable
    usable = samples.usable.copy()
    edge = int(np.ceil(EDGE_PERIODS / bandwidth * samples.rate))
    for k in np.unique(samples.segment):
        rows = np.flatnonzero(samples.segment == k)
        usable[rows[:edge]] = usable[rows[-edge:]] = False
    return replace(samples, cutoff=bandwidth).low_pass(error), usable


def torque_uncertainty(found: Identification, residuals: Sequence[Sequence[Sequence[Residuals]]],
                       bandwidths: np.ndarray) -> Uncertainty:
    """Return the uncertainty of an identified robot, given the residuals of all recordings."""
    of_bandwidths = [[Residuals(*map(np.concatenate, zip(*same))) for same in zip(*recordings)]
                     for recordings in zip(*residuals)]
    # Filtered noise has two independent samples per period of its bandwidth.
    tables = [_noise_by_speed(joints, np.maximum(
        found.correlation, bandwidths[-1] / max(bandwidth, np.finfo(float).tiny)))
              for joints, bandwidth in zip(of_bandwidths, bandwidths)]
    speed = max((speed for speed, _ in tables), key=np.size)
    noise = [[np.interp(at, *row) for at, *row in zip(speed, *table)] for table in tables]
    return Uncertainty(found.parameters.model.velocity_names, found.base.names,
                       covariance_factor(found), speed, np.array(noise),
                       np.zeros(len(speed)), bandwidths)


def _noise_by_speed(joints: Sequence[Residuals], correlation: np.ndarray
                    ) -> tuple[np.ndarray, np.ndarray]:
    """Return speeds and noise, (joints, bands), given how many samples count as one."""
    independent = min(len(one.speed) / few for one, few in zip(joints, correlation))
    bands = int(np.clip(independent / MIN_BAND, 1, MAX_BANDS))
    speed, noise = np.zeros((2, len(joints), bands))
    for j, one in enumerate(joints):
        for k, rows in enumerate(np.array_split(np.argsort(one.speed), bands)):
            speed[j, k] = np.median(one.speed[rows])
            level = min(SHARE * (1.0 + correlation[j] / len(rows)), 1.0)
            noise[j, k] = np.sqrt(max(np.quantile(one.variance[rows], level), 0.0))
    return speed, noise


def with_uncertainty(found: Identification, part: Partial,
                     samples: Samples | Sequence[Samples]) -> Model:
    """
    Return the identified robot with the uncertainty of its torques, for `torque_deviation`.

    Parameters
    ----------
    found : Identification
        The result of `fit`.
    part, samples : Partial, Samples or sequence of Samples
        What it was fitted to, reduced, and the samples themselves.

    Returns
    -------
    Model
        ``found.model`` with `rbd_ros.Model.uncertainty`, which `rbd_ros.model.save_drives` saves.

    Raises
    ------
    ModelError
        If the identified robot cannot exist.
    StateError
        If there are too few samples.

    """
    samples = (samples,) if isinstance(samples, Samples) else tuple(samples)
    if not samples:
        raise StateError('samples holds no recordings')
    left_out = leave_out(found, part, samples)
    return attach(found.model, torque_uncertainty(found, [
        left_out_residuals(found, left_out, one) for one in samples], left_out.bandwidths))
