# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Inertial parameters from motions: which can be known at all, and what recorded torques say of them.

Everything rests on Y(q, v, a) pi = tau - (armature) a, see `analysis.regressors`. Torques of
friction are not modelled: take them off first (`rbd_ros.friction_torques`).

"""

from typing import NamedTuple

import numpy as np
from rbd_ros.analysis.regressors import link_regressor, torque_regressor
from rbd_ros.errors import ModelError, StateError
from rbd_ros.identification.physical_consistency import nearest_consistent
from rbd_ros.model.configurations import random_configuration
from rbd_ros.model.inertial import (armature_matrix, centre_and_inertia, inconsistent_bodies,
                                    inertial_parameter_names, inertial_parameters)
from rbd_ros.validation import check_model, rows, whole_number
from rbd_ros.workspace import Workspace

# A pivot of QR, or an entry of a combination, that is a smaller share of the largest is rounding.
ROUNDING = 1e-9
# About the size of a link, m: with it kg, kg m and kg m^2 become comparable.
LENGTH = 0.1
SCALE = LENGTH ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
# Noise of torques, as a share of the largest, that no sensor is below.
LEAST_NOISE = 1e-6
# How often the weights are taken from the residuals, and the parameters fitted with them.
FITS = 5


class BaseParameters(NamedTuple):
    """
    What `base_parameters` computes.

    Attributes
    ----------
    independent : ndarray of int, shape (base,)
        Columns of the regressor that are independent, and of which all others are combinations.
    names : tuple of str
        Of the parameters to which those columns belong.
    combination : ndarray, shape (base, parameters)
        B, with base parameters B pi: Y pi = Y[:, independent] B pi for every state.

    """

    independent: np.ndarray
    names: tuple
    combination: np.ndarray


def base_parameters(model, *, seed=0):
    """
    Return the minimum parameters: the combinations of inertial parameters that torques show.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    seed : int
        Of the random states at which the regressor is taken.

    Returns
    -------
    BaseParameters
        With the fields ``independent names combination``.

    References
    ----------
    QR with column pivoting of the regressor, Garofalo et al. (15), (16), at random states.

    """
    # Imported here: a node need not wait for SciPy when it starts.
    from scipy.linalg import qr, solve_triangular

    check_model(model)
    rng = np.random.default_rng(whole_number('seed', seed, least=0))
    names = inertial_parameter_names(model)
    # Three rows for every column, whatever the number of joints.
    states = -(-3 * len(names) // max(model.nv, 1))
    Y = np.vstack([torque_regressor(model, random_configuration(model, rng),
                                    *rng.normal(size=(2, model.nv))) for _ in range(states)]
                  or [np.zeros((0, 0))])
    R, order = qr(Y, mode='r', pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > ROUNDING * np.max(pivots, initial=0.0)))
    combination = np.zeros((rank, len(names)))
    combination[:, order[:rank]] = np.eye(rank)
    combination[:, order[rank:]] = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    combination[np.abs(combination) < ROUNDING] = 0.0
    ascending = np.argsort(order[:rank])
    independent = order[:rank][ascending]
    return BaseParameters(independent, tuple(names[k] for k in independent),
                          combination[ascending])


class Identification(NamedTuple):
    """
    What `identify` computes.

    Attributes
    ----------
    pi : ndarray, shape (10 * bodies,)
        Inertial parameters in the order of `rbd_ros.model.inertial_parameter_names`, for
        `rbd_ros.model.with_inertial_parameters`.
    deviation : ndarray, shape (10 * bodies,)
        Standard deviation of each that the noise of the torques causes. What the torques do not
        show, and was left as the model has it, has no part in it.
    residual : ndarray, shape (nv,)
        Standard deviation of the torques from those of pi, N m or N.
    rank : int
        How many combinations of parameters the torques showed.
    inconsistent : tuple of str
        Bodies that cannot exist with these parameters (by the names of their links).

    """

    pi: np.ndarray
    deviation: np.ndarray
    residual: np.ndarray
    rank: int
    inconsistent: tuple


def identify(model, q, v, a, tau, *, consistent=False, tolerance=1e-4):
    """
    Return the inertial parameters that explain recorded torques best.

    Weighted least squares: joints count by the inverse of their residual's variance in the fit
    before; in the first they all count the same. Combinations of parameters that the torques do
    not show keep their values in the model, in the metric in which 1 kg, 0.1 kg m and 0.01 kg m^2
    are alike.

    Parameters
    ----------
    model : Model
        The robot, with the parameters to start from.
    q : array_like, shape (samples, model.nq)
        Configurations, rad and m.
    v, a, tau : array_like, shape (samples, model.nv)
        Velocities, accelerations and torques, N m or N, without friction.
    consistent : bool
        Whether only bodies that can exist are allowed: then the least squares are searched for
        among positive definite pseudo-inertias (see `physical_consistency`).
    tolerance : float
        Singular value of the weighted regressor, as a share of the largest, below which a
        combination of parameters counts as not shown.

    Returns
    -------
    Identification
        With the fields ``pi deviation residual rank inconsistent``.

    Raises
    ------
    StateError
        If an array has the wrong shape or a non-finite entry.
    ModelError
        If no joint of the robot moves.

    References
    ----------
    Garofalo et al. (15), (16) for the regressor.

    """
    q, v, a, tau = _check_samples(model, q, v, a, tau)
    pi = inertial_parameters(model)
    Y = np.array([torque_regressor(model, *state) for state in zip(q, v, a)])
    fit = _fit(Y, tau - a @ armature_matrix(model), _least_noise(tau), pi, consistent, tolerance)
    return Identification(*fit, inconsistent_bodies(model, fit.pi))


class Payload(NamedTuple):
    """
    What `identify_payload` computes.

    Attributes
    ----------
    mass : float
        kg.
    com : ndarray, shape (3,)
        Centre of mass in the link's frame, m.
    inertia : ndarray, shape (3, 3)
        About that centre, in the link's axes, kg m^2.
    deviation : ndarray, shape (10,)
        Standard deviation, by the noise of the torques, of m, mcx, mcy, mcz, and the inertia
        Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the link's origin.
    residual : ndarray, shape (nv,)
        Standard deviation of the torques from those of the robot with the load, N m or N.
    rank : int
        How many combinations of the ten parameters the torques showed.

    """

    mass: float
    com: np.ndarray
    inertia: np.ndarray
    deviation: np.ndarray
    residual: np.ndarray
    rank: int


def identify_payload(model, link, q, v, a, tau, *, tolerance=1e-4):
    """
    Return the load on a link that explains recorded torques best, of all that can exist.

    `rbd_ros.with_payload` takes its mass, com and inertia. What the torques do not show (the
    inertia, if the robot stood still) is next to nothing. Where there is no load, the mass is, and
    the centre of mass means nothing.

    Parameters
    ----------
    model : Model
        The robot without the load.
    link : str
        What carries the load; it may be a fixed link.
    q : array_like, shape (samples, model.nq)
        Configurations, rad and m.
    v, a, tau : array_like, shape (samples, model.nv)
        Velocities, accelerations and torques with the load, N m or N, without friction.
    tolerance : float
        As for `identify`.

    Returns
    -------
    Payload
        With the fields ``mass com inertia deviation residual rank``.

    Raises
    ------
    StateError
        If an array has the wrong shape or a non-finite entry.
    ModelError
        If no link has that name, or no joint moves it.

    References
    ----------
    Garofalo et al. (15), (16) for the regressor, of one body alone.

    """
    q, v, a, tau = _check_samples(model, q, v, a, tau)
    k = model.link_index(link)
    workspace = Workspace(model)
    if model.tree.link_body[k] == 0:
        raise ModelError(f"link '{link}' is part of the root: no joint moves it")
    Y, rest = [], []
    for q_s, v_s, a_s, tau_s in zip(q, v, a, tau):
        gravity = workspace.forward_kinematics(q_s)[k, :3, :3].T @ model.gravity
        J, J_rate = workspace.body_jacobian_dot(q_s, v_s, link)
        Y.append(link_regressor(J, J_rate, gravity, v_s, v_s, a_s))
        rest.append(tau_s - workspace.inverse_dynamics(q_s, v_s, a_s))
    fit = _fit(np.array(Y), np.array(rest), _least_noise(tau), np.zeros(10), True, tolerance)
    com, inertia = centre_and_inertia(fit.pi)
    return Payload(float(fit.pi[0]), com, inertia, fit.deviation, fit.residual, fit.rank)


class _Fit(NamedTuple):
    pi: np.ndarray
    deviation: np.ndarray
    residual: np.ndarray
    rank: int


def _fit(Y, tau, least_noise, pi_0, consistent, tolerance):
    """Return the parameters nearest to pi_0 with the least squares of (tau - Y pi) / noise."""
    scale = np.tile(SCALE, len(pi_0) // 10)
    Z, rest = Y * scale, tau - Y @ pi_0

    # All joints alike at first, then each by the noise that the fit before showed it to have.
    noise = np.ones(tau.shape[1])
    for _ in range(FITS):
        sigma, Vt, seen = _weigh(Z, rest, 1.0 / noise, tolerance)
        noise = np.maximum(_deviations(rest - Z @ Vt.T @ seen, len(sigma)), least_noise)
    pi = pi_0 + scale * (Vt.T @ seen)
    if consistent:
        # What was seen, with its weight; what was not, near to where it was.
        unseen = np.eye(len(pi_0)) - Vt.T @ Vt
        matrix = np.vstack((sigma[:, None] * Vt, unseen)) / scale
        target = np.concatenate((sigma * seen, np.zeros(len(pi_0)))) + matrix @ pi_0
        pi = nearest_consistent(pi, matrix, target, SCALE)
    return _Fit(pi, scale * np.linalg.norm(Vt.T / sigma, axis=1),
                _deviations(tau - Y @ pi, len(sigma)), len(sigma))


def _least_noise(tau):
    return LEAST_NOISE * max(np.max(np.abs(tau), initial=0.0), np.finfo(float).eps)


def _weigh(Z, rest, weights, tolerance):
    """Return what weighted torques show: singular values, directions, and changes along them."""
    U, sigma, Vt = np.linalg.svd((Z * weights[:, None]).reshape(rest.size, -1),
                                 full_matrices=False)
    shown = sigma > tolerance * sigma[0]
    U, sigma, Vt = U[:, shown], sigma[shown], Vt[shown]
    return sigma, Vt, U.T @ (rest * weights).ravel() / sigma


def _deviations(residuals, rank):
    """Return the standard deviation for each joint, less what the parameters took up."""
    samples, nv = residuals.shape
    return np.sqrt(np.sum(residuals ** 2, axis=0) / max(samples - rank / nv, 1.0))


def _check_samples(model, q, v, a, tau):
    """Return recorded samples as arrays, or refuse them."""
    check_model(model)
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves")
    arrays = []
    for label, x in (('q', q), ('v', v), ('a', a), ('tau', tau)):
        arrays.append(rows(model, label, x, len(arrays[0]) if arrays else None,
                           positions=label == 'q'))
        if not len(arrays[0]):
            raise StateError('q holds no samples')
    return arrays
