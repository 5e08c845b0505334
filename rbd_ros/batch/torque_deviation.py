# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far measured torques may be from those of an identified robot."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros import batch
from rbd_ros.analysis.regressors import friction_regressor, torque_regressor
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import check_model, finite_vector, number, one_or_rows, rows
from rbd_ros.model.changes.drives import COLUMNS, drive_parameter_names
from rbd_ros.model.changes.friction import direction, friction_terms
from rbd_ros.model.changes.inertial import inertial_parameter_names
from rbd_ros.model.model import Model

MAX_REGRESSOR_SIZE = 2 ** 22  # Most numbers of a regressor held in memory: 32 MB.


def torque_deviation(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *,
                     smooth: float = 0.0, bandwidth: float = np.inf) -> np.ndarray:
    """
    Return the standard deviations of measured torques from those of an identified robot.

    Without contact, 90 % of the torques measured in motions like those of the identification are
    within 1.645 deviations. Three independent parts are added as variances:

        Y Cov Y^T       the identified parameters, of which Y are the columns of the regressor,
        noise(|v|)^2    sensors, and what the model lacks, by joint, speed and bandwidth,
        (1 - s^2) F^2 / 3       dry friction F, which at rest has any size up to F,

    with the direction of motion s as in `rbd_ros.friction_torques`.

    Parameters
    ----------
    model : Model
        A robot with an uncertainty, from `rbd_ros.identification.with_uncertainty` or
        `rbd_ros.model.load_drives`. It stays with the robot if its payload or gravity changes.
    q, v, a : array_like
        State, as for `rbd_ros.inverse_dynamics`, or (states, nq) and (states, nv).
    smooth : float
        As for `rbd_ros.friction_torques`, rad/s or m/s.
    bandwidth : float
        Bandwidth of the measured torques, Hz: `Samples.cutoff` for those of
        `rbd_ros.identification.prepare`; infinite: as they were recorded.

    Returns
    -------
    ndarray, shape (nv,) or (states, nv), N m or N

    Raises
    ------
    ModelError
        If the robot has no uncertainty.

    """
    check_model(model)
    known = model.uncertainty
    if known is None:
        raise ModelError(
            f"robot '{model.name}' has no uncertainty: identify it (rbd_ros identify) and load "
            'the drives that were identified; a robot with other joints, bodies or drives loses '
            'it')
    smooth = number('smooth', smooth, 0.0)
    if bandwidth != np.inf:
        bandwidth = number('bandwidth', bandwidth, 0.0)
    v = one_or_rows(model, 'v', v)
    single = v.ndim == 1
    if single:
        q, v, a = (x[None] for x in (finite_vector(model, 'q', q, positions=True), v,
                                     finite_vector(model, 'a', a)))
    q, a = rows(model, 'q', q, len(v), positions=True), rows(model, 'a', a, len(v))
    bodies = inertial_parameter_names(model)
    place = {name: k for k, name in enumerate(
        bodies + drive_parameter_names(model, columns=tuple(COLUMNS)))}
    columns = np.array([place[name] for name in known.parameters], int)
    of_drives = columns >= len(bodies)
    step = 1 + MAX_REGRESSOR_SIZE // (model.nv * len(place))
    variance = known.noise_at(v, bandwidth) ** 2
    for start in range(0, len(v), step):
        k = slice(start, start + step)
        Y = np.empty((*v[k].shape, len(columns)))
        # A single state: without starting threads, and with the kernel of one state.
        regressor = (torque_regressor(model, q[0], v[0], a[0])[None] if single
                     else batch.torque_regressor(model, q[k], v[k], a[k]))
        Y[..., ~of_drives] = regressor[..., columns[~of_drives]]
        Y[..., of_drives] = friction_regressor(
            model, v[k], a[k], columns=tuple(COLUMNS), smooth=smooth)[
                ..., columns[of_drives] - len(bodies)]
        variance[k] += np.sum((Y @ known.factor.T) ** 2, axis=-1)
    terms = friction_terms(model, v, np.ones_like(v), v)
    dry = (model.friction * terms['friction']
           + model.stribeck_friction * terms['stribeck_friction'])
    variance += (1.0 - direction(v, smooth) ** 2) * dry ** 2 / 3.0
    deviation = np.sqrt(variance)
    return deviation[0] if single else deviation
