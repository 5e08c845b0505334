# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Motions from whose recordings the parameters of a robot can be identified well.

The motion is a Fourier series (Swevers et al. 1997). Its coefficients are optimised so that the
base regressor, including friction and rotors, is well conditioned, while every joint stays within
its limits of position, velocity, acceleration and effort. Collisions are not checked.

"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros import batch
from rbd_ros._internal.text import listed
from rbd_ros.dynamics import friction_torques
from rbd_ros.errors import ModelError, StateError
from rbd_ros.identification.excitation.criterion import Criterion, Limits
from rbd_ros.identification.excitation.fourier_series import FourierSeries, RestBasis
from rbd_ros.identification.excitation.quasi_newton import minimize
from rbd_ros.model.arguments import check_model, number, vector, whole_number
from rbd_ros.model.model import Model

# Where a joint has no limit: half a turn or half a metre to each side, and these velocities,
# rad/s and m/s. URDF has no limits of acceleration: the velocity limit is reached in this time, s.
REACH, SPEED, RUN_UP = (np.pi, 0.5), (1.0, 0.25), 0.5
# Samples per period of the fastest harmonic. Between them the series exceeds its samples by 2 % at
# most, 1/cos(pi/16) - 1: the search keeps to this share of the limits.
SAMPLES, KEPT = 16, 0.97
# At the end limits are checked at this many times as many samples; a motion that exceeds them is
# reduced by this factor until it does not.
FINER, LOSS = 16, 0.98
# Weights of the barrier at the limits, one after the other.
BARRIERS = (0.3, 0.1, 0.03, 0.01)
# Poses that are tried as the mean of the motion, and the least distance of efforts to their limits
# there, as a share of the limits.
POSES, ROOM = 200, 0.05
MOST_STEPS = 100_000


def excitation_limits(model: Model, *, lower: npt.ArrayLike | None = None,
                      upper: npt.ArrayLike | None = None,
                      velocity: npt.ArrayLike | None = None,
                      acceleration: npt.ArrayLike | None = None,
                      effort: npt.ArrayLike | None = None, share: float = 0.9) -> Limits:
    """
    Return the limits of a robot for `excite`: its own, or those given, times a share.

    Parameters
    ----------
    model : Model
        The robot, all of whose joints turn or slide.
    lower, upper : array_like, shape (nv,), optional
        Positions, rad or m. Without limits: half a turn, or 0.5 m, to each side of 0; with one
        alone: a turn, or 1 m, from that.
    velocity : array_like, shape (nv,), optional
        rad/s or m/s. Without a limit: 1 rad/s, or 0.25 m/s.
    acceleration : array_like, shape (nv,), optional
        rad/s^2 or m/s^2; default: such that the velocity limit is reached in 0.5 s.
    effort : array_like, shape (nv,), optional
        N m or N; infinite: no limit.
    share : float
        Share of every limit that may be used; of the range of positions, about its middle.

    Returns
    -------
    Limits
        With the fields ``lower upper velocity acceleration effort assumed``.

    Raises
    ------
    ModelError
        If a joint has several coordinates, or none moves.
    StateError
        If a limit is not positive; the message names the joint.

    """
    check_model(model)
    several = [joint.name for joint, _, _ in model.moving_joints if joint.nv != 1]
    if several or not model.nv:
        raise ModelError(f"robot '{model.name}': joints that turn or slide are needed, "
                         + (f'lock the others: {listed(several)}' if several else 'none moves'))
    share = number('share', share, 1e-3, 1.0)
    given = {label: own if x is None else vector(model, label, x) for label, x, own in (
        ('lower', lower, model.lower), ('upper', upper, model.upper),
        ('velocity', velocity, model.velocity_limit), ('effort', effort, model.effort_limit))}
    reach, speed = (np.where(model.angular, *both) for both in (REACH, SPEED))
    low, high, fast = given['lower'], given['upper'], given['velocity']
    none_low, none_high, none_fast = ~np.isfinite(low), ~np.isfinite(high), np.isinf(fast)
    new_low = np.where(none_low, np.where(none_high, -reach, high - 2.0 * reach), low)
    new_high = np.where(none_high, np.where(none_low, reach, low + 2.0 * reach), high)
    fast = np.where(none_fast, speed, fast)
    quick = fast / RUN_UP if acceleration is None else vector(model, 'acceleration', acceleration)
    middle, half = 0.5 * (new_low + new_high), 0.5 * share * (new_high - new_low)
    names = np.array(model.velocity_names)
    assumed = tuple(f'{what}: {listed(names[lacking])}' for what, lacking in (
        ('no limits of position', none_low | none_high), ('no limit of velocity', none_fast))
        if np.any(lacking))
    limits = Limits(middle - half, middle + half, share * fast, share * quick,
                    share * given['effort'], assumed)
    for label, size in (('range of positions', half), ('velocity limit', limits.velocity),
                        ('acceleration limit', limits.acceleration),
                        ('effort limit', limits.effort)):
        for name, x in zip(model.velocity_names, size):
            if not x > 0.0 or (np.isinf(x) and label != 'effort limit'):
                raise StateError(f"the {label} of '{name}' must be positive"
                                 f'{"" if label == "effort limit" else " and finite"}, got '
                                 f'{x / share:g}: give another one')
    return limits


class Excitation(NamedTuple):
    """
    What `excite` finds.

    Attributes
    ----------
    joint_names : tuple of str
        Names of the columns of the motion.
    motion : FourierSeries
        Its method ``at`` returns positions, velocities and accelerations; it lasts ``period``.
    condition_number : float
        Of the base regressor of the motion, with columns scaled by their root mean square at
        random states of the robot.
    at_first : float
        That of the random motion with which the search began.

    """

    joint_names: tuple[str, ...]
    motion: FourierSeries
    condition_number: float
    at_first: float


def excite(model: Model, limits: Limits | None = None, *, duration: float = 20.0,
           harmonics: int = 8, seed: int = 0, steps: int = 160,
           progress: Callable[[int, int], object] | None = None) -> Excitation:
    """
    Return a motion that excites the parameters of a robot well, within limits.

    It begins and ends at rest, in the same pose. What is minimised is the logarithm of the
    condition number of the base regressor in the Frobenius norm, a smooth upper bound of the usual
    one, by a quasi-Newton method with barriers at the limits, which no motion on the way exceeds.
    (The alternative, D-optimality, also rewards larger signals of parameters that are well visible
    anyway; on three arms it left condition numbers about twice as large.)

    Parameters
    ----------
    model : Model
        The robot. Its inertial parameters matter for the efforts.
    limits : Limits, optional
        Default: `excitation_limits` of the robot.
    duration : float
        s.
    harmonics : int
        From 2 to 100; the fastest has the frequency harmonics / duration.
    seed : int
        Of the random initial motion; the same one gives the same result.
    steps : int
        Of the search, at most 100,000.
    progress : callable, optional
        Called as ``progress(done, steps)``.

    Returns
    -------
    Excitation
        With the fields ``joint_names motion condition_number at_first``.

    Raises
    ------
    ModelError
        If a joint has several coordinates, or none moves.
    StateError
        If gravity and friction leave no room within the effort limits.

    References
    ----------
    Swevers, Ganseman, Tukel, De Schutter, Van Brussel: Optimal robot excitation and
    identification, IEEE Transactions on Robotics and Automation 13 (1997).

    """
    limits = excitation_limits(model) if limits is None else limits
    rng = np.random.default_rng(whole_number('seed', seed, least=0))
    steps = whole_number('steps', steps, most=MOST_STEPS)
    basis = RestBasis(duration, harmonics, SAMPLES * harmonics)
    criterion = Criterion(model, basis, limits.reduced(KEPT), rng)
    start = _start(model, criterion, basis, limits, rng)
    x, done = start, 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, steps)

    for k, weight in enumerate(BARRIERS):
        until = steps * (k + 1) // len(BARRIERS)
        x = minimize(partial(criterion, weight=weight), x.ravel(), until - done, tell).reshape(
            start.shape)
        done = until
    x = _within(model, limits, basis, x)
    return Excitation(model.velocity_names, basis.series(x), criterion.condition_number(x),
                      criterion.condition_number(start))


def _start(model: Model, criterion: Criterion, basis: RestBasis, limits: Limits,
           rng: np.random.Generator) -> np.ndarray:
    """Return a random motion that keeps clear of all limits."""
    middle = 0.5 * (limits.lower + limits.upper)
    half = 0.5 * (limits.upper - limits.lower)
    poses = middle + half * rng.uniform(-0.5, 0.5, (POSES, model.nv))
    poses[0] = middle               # the first choice
    still = np.zeros_like(poses)
    room = criterion.effort_room(batch.inverse_dynamics(model, poses, still, still), still)
    enough = np.min(room, axis=1)
    pose = int(np.argmax(enough > 4.0 * ROOM)) if np.any(enough > 4.0 * ROOM) else int(
        np.argmax(enough))
    if enough[pose] < ROOM:
        worst = model.velocity_names[int(np.argmin(room[pose]))]
        raise StateError(f"gravity and friction exceed the effort limit of '{worst}' in every "
                         'pose that was tried: raise it, or give other limits of position')
    shape = limits.velocity * rng.normal(size=(basis.size, model.nv))
    shape[0] = 0.0
    size = 1.0
    while True:
        x = size * shape
        x[0] = poses[pose]
        if criterion.room(x) > 0.5 * ROOM:
            return x
        size *= 0.8


def _within(model: Model, limits: Limits, basis: RestBasis, x: np.ndarray) -> np.ndarray:
    """Return a motion that keeps to all limits at many more times than the search looked at."""
    t = np.arange(0.0, 1.0, 1.0 / (FINER * len(basis.q))) * basis.period
    while True:
        q, v, a = basis.series(x).at(t)
        tau = batch.inverse_dynamics(model, q, v, a) + friction_torques(model, v)
        if (np.all((q >= limits.lower) & (q <= limits.upper))
                and np.all(np.abs(v) <= limits.velocity)
                and np.all(np.abs(a) <= limits.acceleration)
                and np.all(np.abs(tau) <= limits.effort)):
            return x
        x = np.concatenate((x[:1], LOSS * x[1:]))
