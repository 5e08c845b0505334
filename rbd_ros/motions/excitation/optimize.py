# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Find motions whose recordings determine the parameters of a robot well.

The coefficients of a Fourier series (Swevers et al. 1997) are optimized within the limits of all
joints. Collisions are not checked.

"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, number, vector, whole_number
from rbd_ros.model.model import Model
from rbd_ros.motions.excitation.criterion import Criterion
from rbd_ros.motions.excitation.fourier_series import (
    FourierSeries, passive_limits, RestBasis, whole_motion)
from rbd_ros.motions.limits import check_positive, Limits
from rbd_ros.motions.trajectory_efforts import effort_of_pace

# Defaults for missing limits: positions to each side of 0, rad and m; velocities, rad/s and m/s;
# time in which the velocity limit is reached, s.
DEFAULT_REACH, DEFAULT_SPEED, DEFAULT_ACCELERATION_TIME = (np.pi, 0.5), (1.0, 0.25), 0.5
# Samples per period of the fastest harmonic. Between samples the series exceeds them by at most
# 2 %, 1/cos(pi/16) - 1: the search keeps to this fraction of the limits.
SAMPLES, SEARCH_LIMIT_FRACTION = 16, 0.97
# The result is checked at this many times as many samples, and reduced by this factor until it
# keeps to the limits.
CHECK_REFINEMENT, REDUCTION = 16, 0.98
BARRIER_WEIGHTS = (0.3, 0.1, 0.03, 0.01)  # Successive weights of the barrier at the limits.
# Poses tried as the mean of the motion; smallest relative distance of their efforts to the limits.
POSES, MIN_EFFORT_MARGIN = 200, 0.05
MAX_STEPS = 100_000
# Line search: fraction of the predicted decrease that a step must achieve, smallest step length,
# and length of the first step relative to the gradient.
ARMIJO, MIN_STEP, FIRST_STEP = 1e-4, 1e-10, 1e-2


def excitation_limits(model: Model, *, lower: npt.ArrayLike | None = None,
                      upper: npt.ArrayLike | None = None, velocity: npt.ArrayLike | None = None,
                      acceleration: npt.ArrayLike | None = None,
                      effort: npt.ArrayLike | None = None, share: float = 0.9) -> Limits:
    """
    Return limits for `excite`: those of the robot, or those given, times a share.

    With closed loops these are of the independent joints, and of the positions of the others.

    Parameters
    ----------
    model : Model
        The robot; each joint has one coordinate, with closed loops each independent one.
    lower, upper : array_like, shape (nv,), optional
        Positions, rad or m. Without limits: half a turn, or 0.5 m, to each side of 0; with a
        single limit: a turn, or 1 m, from it.
    velocity, acceleration, effort : array_like, shape (nv,), optional
        rad/s or m/s, without a limit 1 rad/s or 0.25 m/s; rad/s^2 or m/s^2, without limits of
        acceleration or deceleration so that the velocity limit is reached in 0.5 s; N m or N, may
        be infinite.
    share : float
        Fraction of every limit to use; positions shrink about their middle.

    Raises
    ------
    ModelError
        If an independent joint has several coordinates, or none moves.
    StateError
        If a limit is not positive; the message names the joint.

    """
    check_model(model)
    several = [joint.name for joint, _, k in model.unconstrained.moving_joints if joint.nv != 1
               and (model.loops is None or np.isin(model.loops.own, range(k.start, k.stop)).any())]
    if several or not model.nv:
        raise ModelError(f"robot '{model.name}': joints with one coordinate are needed, "
                         + (f'lock the others: {listed(several)}' if several else 'none moves'))
    share = number('share', share, 1e-3, 1.0)
    given = {label: own if x is None else vector(model, label, x) for label, x, own in (
        ('lower', lower, model.lower), ('upper', upper, model.upper),
        ('velocity', velocity, model.velocity_limit), ('effort', effort, model.effort_limit))}
    reach, speed = (np.where(model.angular, *both) for both in (DEFAULT_REACH, DEFAULT_SPEED))
    low, high, fast = given['lower'], given['upper'], given['velocity']
    none_low, none_high, none_fast = ~np.isfinite(low), ~np.isfinite(high), np.isinf(fast)
    low, high = (np.where(none_low, np.where(none_high, -reach, high - 2.0 * reach), low),
                 np.where(none_high, np.where(none_low, reach, low + 2.0 * reach), high))
    fast = np.where(none_fast, speed, fast)
    # A periodic motion decelerates as it accelerates.
    most = np.minimum(model.acceleration_limit, model.deceleration_limit)
    rate = (np.where(np.isinf(most), fast / DEFAULT_ACCELERATION_TIME, most)
            if acceleration is None else vector(model, 'acceleration', acceleration))
    names = np.array(model.velocity_names)
    assumed = tuple(f'{what}: {listed(names[lacking])}' for what, lacking in (
        ('no limits of position', none_low | none_high), ('no limit of velocity', none_fast))
        if np.any(lacking))
    finite = {'range of positions': 0.5 * (high - low), 'velocity limit': fast,
              'acceleration limit': rate}
    check_positive(model, {**finite, 'effort limit': given['effort']}, *finite)
    return Limits(low, high, fast, rate, rate, model.jerk_limit, given['effort'], assumed,
                  None if model.loops is None else passive_limits(model)).reduced(share)


class Excitation(NamedTuple):
    """
    Result of `excite`.

    Attributes
    ----------
    joint_names, motion : tuple of str, FourierSeries
        Names of the columns of the motion, whose method ``at`` returns q, v and a.
    condition_number, at_first : float
        Of the base regressor, with columns scaled by their RMS at random states: of the motion,
        and of the random initial motion.

    """

    joint_names: tuple[str, ...]
    motion: FourierSeries
    condition_number: float
    at_first: float


def excite(model: Model, limits: Limits | None = None, *, duration: float = 20.0,
           harmonics: int = 8, seed: int = 0, steps: int = 160,
           progress: Callable[[int, int], object] | None = None) -> Excitation:
    """
    Return a motion, within limits, whose recording determines the parameters of a robot well.

    It starts and ends at rest, in the same pose. The logarithm of the condition number of the base
    regressor in the Frobenius norm, a smooth upper bound of the usual one, is minimized with a
    quasi-Newton method and barriers at the limits, which no iterate exceeds. (D-optimality, which
    also rewards larger signals of well visible parameters, left condition numbers about twice as
    large on three arms.) [Swevers et al., Optimal robot excitation and identification, IEEE
    Transactions on Robotics and Automation 13 (1997).]

    Parameters
    ----------
    model, limits : Model, Limits, optional
        The robot, whose inertial parameters affect the efforts; default: its `excitation_limits`.
    duration, harmonics : float, int
        Duration, s; 2 to 100 harmonics, of which the fastest has the frequency
        harmonics / duration.
    seed, steps : int
        Seed of the random initial motion, and steps of the search, at most 100,000.
    progress : callable, optional
        Called as ``progress(done, steps)``.

    Raises
    ------
    ModelError
        If an independent joint has several coordinates, or none moves.
    StateError
        If gravity and friction exceed the effort limits, or the loops cannot be closed in most
        positions within the limits.

    """
    limits = excitation_limits(model) if limits is None else limits
    rng = np.random.default_rng(whole_number('seed', seed, least=0))
    steps = whole_number('steps', steps, most=MAX_STEPS)
    basis = RestBasis(duration, harmonics, SAMPLES * harmonics)
    # Bernstein's inequality: the jerk is at most the acceleration times the highest frequency.
    highest = 2.0 * np.pi * harmonics / basis.period
    limits = limits._replace(acceleration=np.minimum(limits.acceleration, limits.jerk / highest))
    criterion = Criterion(model, basis, limits.reduced(SEARCH_LIMIT_FRACTION), rng)
    start = _initial_motion(model, criterion, basis, limits, rng)
    x, done = start, 0

    def count_step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, steps)

    for k, weight in enumerate(BARRIER_WEIGHTS):
        until = steps * (k + 1) // len(BARRIER_WEIGHTS)
        x = minimize(partial(criterion, weight=weight), x.ravel(), until - done, count_step)
        x = x.reshape(start.shape)
        done = until
    x = _within_limits(model, limits, basis, x)
    return Excitation(model.velocity_names, basis.series(x), criterion.condition_number(x),
                      criterion.condition_number(start))


def _initial_motion(model: Model, criterion: Criterion, basis: RestBasis, limits: Limits,
                    rng: np.random.Generator) -> np.ndarray:
    """Return a random motion that keeps clear of all limits."""
    middle = 0.5 * (limits.lower + limits.upper)
    half = 0.5 * (limits.upper - limits.lower)
    poses = middle + half * rng.uniform(-0.5, 0.5, (POSES, model.nv))
    poses[0] = middle               # preferred
    margin = criterion.pose_margins(poses)
    least_margin = np.min(margin, axis=1)
    comfortable = least_margin > 4.0 * MIN_EFFORT_MARGIN
    pose = int(np.argmax(comfortable if np.any(comfortable) else least_margin))
    if least_margin[pose] < MIN_EFFORT_MARGIN:
        worst = model.velocity_names[int(np.argmin(margin[pose]))]
        raise StateError(f"gravity and friction exceed the effort limit of '{worst}' in every "
                         'pose that was tried: raise it, or change the position limits')
    x = limits.velocity * rng.normal(size=(basis.size, model.nv))
    x[0] = poses[pose]
    while criterion.margin(x) <= 0.5 * MIN_EFFORT_MARGIN:
        x[1:] *= 0.8
    return x


def _within_limits(model: Model, limits: Limits, basis: RestBasis, x: np.ndarray) -> np.ndarray:
    """Return the motion, reduced until it keeps to all limits between samples too."""
    t = np.arange(0.0, 1.0, 1.0 / (CHECK_REFINEMENT * len(basis.q))) * basis.period
    while True:
        q, v, a = basis.series(x).at(t)
        whole = whole_motion(model, q)
        if (np.all((q >= limits.lower) & (q <= limits.upper))
                and np.all(np.abs(v) <= limits.velocity)
                and np.all(np.abs(a) <= limits.acceleration)
                and whole is not None and limits.contain(whole)
                and np.all(np.abs(effort_of_pace(model, whole, v, a)(1.0)) <= limits.effort)):
            return x
        x = np.concatenate((x[:1], REDUCTION * x[1:]))


def minimize(function: Callable[[np.ndarray], tuple[float, np.ndarray]], x: np.ndarray,
             steps: int, count_step: Callable[[], None] = lambda: None) -> np.ndarray:
    """Return a point where a function is smaller than at x, after at most some steps of BFGS."""
    # The function returns value and gradient; the value is infinite where x is not allowed
    # (SciPy's line searches fail there; here the step is halved). [Nocedal and Wright, Numerical
    # Optimization, algorithm 6.1 with (6.20).]
    H = None                        # the inverse Hessian, initially unknown
    value, gradient = function(x)
    for _ in range(steps):
        direction = -FIRST_STEP * gradient if H is None else -H @ gradient
        slope, share = float(direction @ gradient), 1.0
        if not slope < 0.0:
            break
        while True:
            new, new_gradient = function(x + share * direction)
            if new <= value + ARMIJO * share * slope:
                break
            share *= 0.5
            if share < MIN_STEP:
                return x
        step, change = share * direction, new_gradient - gradient
        curvature = float(step @ change)
        if curvature > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            if H is None:
                H = np.eye(len(x)) * (curvature / (change @ change))
            Hy = H @ change
            H += (np.outer(step, step) * ((1.0 + change @ Hy / curvature) / curvature)
                  - (np.outer(step, Hy) + np.outer(Hy, step)) / curvature)
        x, value, gradient = x + step, new, new_gradient
        count_step()
    return x
