# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of motions, and how much slower a motion must be to keep to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import vector
from rbd_ros.model.model import Model

LARGEST_TIME_SCALE = 1e6    # largest time scale; beyond, the robot counts as standing still
TOLERANCE = 1e-6    # numbers may exceed limits by this share: rounding of files and messages


class Limits(NamedTuple):
    """Limits of a motion, each of shape (nv,); infinite where there is none."""

    lower: np.ndarray           # rad or m
    upper: np.ndarray
    velocity: np.ndarray        # rad/s or m/s
    acceleration: np.ndarray    # rad/s^2 or m/s^2
    deceleration: np.ndarray    # likewise, where a joint becomes slower
    jerk: np.ndarray            # rad/s^3 or m/s^3
    effort: np.ndarray          # N m or N
    assumed: tuple[str, ...] = ()   # limits that the robot lacks, for which defaults are used
    # With closed loops, (nq, 2): limits of the coordinates of dependent joints.
    passive: np.ndarray | None = None

    def rates(self, v: np.ndarray, a: np.ndarray, reverses: np.ndarray | bool = False
              ) -> np.ndarray:
        """Return the limits of accelerations: the smaller one where the velocity reverses."""
        most = np.where(v * a < 0.0, self.deceleration, self.acceleration)
        return np.where(reverses, np.minimum(self.acceleration, self.deceleration), most)

    def slowdown(self, v: np.ndarray, a: np.ndarray, jerk: np.ndarray,
                 reverses: np.ndarray | bool = False) -> np.ndarray:
        """Return the factors (nv,) for durations that states (..., nv) require; 1: within."""
        result = np.ones(v.shape[-1])
        for order, values, limit in ((1, v, self.velocity), (2, a, self.rates(v, a, reverses)),
                                     (3, jerk, self.jerk)):
            with np.errstate(divide='ignore', invalid='ignore'):
                shares = np.nan_to_num(np.abs(values) / limit, nan=0.0)
            most = np.max(shares.reshape(-1, len(result)), axis=0, initial=0.0)
            result = np.maximum(result, np.where(most > 1.0 + TOLERANCE, most, 1.0)
                                ** (1.0 / order))
        return result

    def reduced(self, share: float) -> Limits:
        """Return a fraction of the limits; positions shrink about their middle."""
        lower, upper = _shrunk(np.stack((self.lower, self.upper), axis=1), share).T
        passive = None if self.passive is None else _shrunk(self.passive, share)
        rates = {label: share * getattr(self, label) for label in RATES}
        return self._replace(lower=lower, upper=upper, passive=passive, **rates)

    def contain(self, q: np.ndarray) -> bool:
        """Return whether configurations (points, nq) keep to the limits of dependent joints."""
        return self.passive is None or bool(
            np.all((q >= self.passive[:, 0]) & (q <= self.passive[:, 1])))


RATES = Limits._fields[2:7]


def limits_of(model: Model, **given: ArrayLike | None) -> Limits:
    """Return the smaller ones of the limits of independent joints and of those given, (nv,)."""
    own = {label: getattr(model, f'{label}_limit') for label in RATES}
    return Limits(model.lower, model.upper, **own | {
        label: np.minimum(own[label], vector(model, f'{label}_limit', most))
        for label, most in given.items() if most is not None})


def _shrunk(limits: np.ndarray, share: float) -> np.ndarray:
    """Return limits (n, 2), of which those with two ends shrink about their middle."""
    both = np.all(np.isfinite(limits), axis=1, keepdims=True)
    middle = np.mean(np.where(both, limits, 0.0), axis=1, keepdims=True)
    return np.where(both, middle + share * (limits - middle), limits)


def check_positive(model: Model, limits: Mapping[str, np.ndarray], *finite: str) -> None:
    """Raise StateError unless limits (nv,), by label, are positive, and some of them finite."""
    for label, values in limits.items():
        for name, x in zip(model.velocity_names, values):
            if not x > 0.0 or (label in finite and np.isinf(x)):
                raise StateError(f"the {label} of '{name}' must be positive"
                                 f'{" and finite" * (label in finite)}, got {x:g}: give another '
                                 'one')


def beyond(values: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return which velocities or efforts exceed the limits of their joints, up to rounding."""
    return np.abs(values) > (1.0 + TOLERANCE) * limits


def exceeding(model: Model, time: np.ndarray, v: np.ndarray, a: np.ndarray, effort: np.ndarray
              ) -> np.ndarray:
    """Return which joints (nv,) exceed their limits of motion or effort along a trajectory."""
    return (slowdown(model, time, v, a) > 1.0) | np.any(beyond(effort, model.effort_limit), axis=0)


def slowdown(model: Model, time: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the factors (nv,) for durations that the limits of motion require; 1: within."""
    # Jerk is the change of the acceleration from point to point.
    return limits_of(model).slowdown(v, a, np.diff(a, axis=0) / np.diff(time)[:, None])


def least_time_scale(limit: np.ndarray, least: float,
                     efforts: Callable[[float], np.ndarray]) -> float:
    """Return the least factor, from a given one up, that bisection finds for the efforts."""
    def within(pace: float) -> bool:
        return not np.any(beyond(efforts(pace), limit))
    low, high = 1.0 / LARGEST_TIME_SCALE, 1.0 / least
    if within(high):
        return least
    if not within(low):
        return np.inf
    while high > (1.0 + TOLERANCE) * low:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if within(middle) else (low, middle)
    return float(1.0 / low)
