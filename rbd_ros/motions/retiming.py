# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The fastest motion along a path that keeps to the limits of the robot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import logging
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, number, rows
from rbd_ros.model.model import Model
from rbd_ros.motions.jerk_limits import smooth_motion
from rbd_ros.motions.limits import (
    check_positive, least_time_scale, Limits, limits_of, RATES, TOLERANCE)
from rbd_ros.motions.path_limits import NodeLimits, Path, SAME_PLACE
from rbd_ros.motions.polynomials import bernstein, rates, samples
from rbd_ros.motions.trajectory_efforts import effort_of_pace

# Solutions: until limits are exceeded by at most CLOSE, as a share, at CHECKS of each interval of
# the grid, at most ROUNDS. A slower pace removes the remainder. Coulomb friction is different at
# rest, so there are checks close to the ends.
ROUNDS, CLOSE = 6, 1e-3
CHECKS = np.array([0.0, 1e-4, 0.25, 0.5, 0.75, 0.9999, 1.0])
SETTLED = 2e-3      # relative change of the duration at which linear friction is close enough
# Limits that were exceeded are tightened by this additional share, and shares grow again by this
# factor at most.
MARGIN, LEAST_EXCESS = 2e-5, 0.5
# Efforts of states (q, v, a) as a function of the pace, see `effort_of_pace`.
Efforts: TypeAlias = Callable[..., Callable[[float], np.ndarray]]


class RetimedPath(NamedTuple):
    """
    Result of `retime`: a motion from rest to rest; arrays have the shape (points, nv).

    Between the points, the joints follow the cubic polynomials with these positions and
    velocities, as `rbd_ros.control.JointTrajectory` and joint_trajectory_controller do if a
    trajectory has no accelerations. Accelerations of the fastest motion jump at the points: `a`
    is the mean of both sides there, and `effort` belongs to it. At the last point, at which
    controllers stay, it is 0, and `effort` holds the robot.

    If the jerk is limited (`smooth`), accelerations are continuous, and the joints follow the
    quintic polynomials with positions, velocities and accelerations.

    """

    time: np.ndarray    # (points,), s
    q: np.ndarray       # (points, nq), rad or m
    v: np.ndarray       # rad/s or m/s
    a: np.ndarray       # rad/s^2 or m/s^2
    effort: np.ndarray  # N m or N
    smooth: bool


def retime(model: Model, waypoints: ArrayLike, *, velocity_limit: ArrayLike | None = None,
           acceleration_limit: ArrayLike | None = None, jerk_limit: ArrayLike | None = None,
           effort_share: float = 1.0, friction: bool = True, springs: bool = True) -> RetimedPath:
    """
    Return the fastest motion along a path that keeps to the limits of the robot.

    The path is a natural cubic spline through the waypoints. Velocities, accelerations,
    decelerations and efforts stay within the robot's limits; payloads, rotors and mimic joints are
    those of the model. Joints that depend on others in closed loops keep to their limits of
    velocity, at the points; mimic joints have no limits of their own. Needs the package toppra
    (extra ``retime``).

    With limits of jerk, the result is not the fastest motion, but one that is derived from it, see
    `rbd_ros.motions.jerk_limits`.

    Parameters
    ----------
    model : Model
        Robot whose joints have one coordinate each, with limits of acceleration or effort.
    waypoints : array_like, shape (points, nq)
        At least two different configurations, rad or m; with closed loops, those of dependent
        joints are guesses.
    velocity_limit, acceleration_limit, jerk_limit : array_like, shape (nv,), optional
        Further limits, rad/s or m/s, rad/s^2 or m/s^2, and rad/s^3 or m/s^3, such as those of
        MoveIt's joint_limits.yaml; the smaller of these and the model's holds.
    effort_share : float
        Share of the effort limits that the motion may use, above 0; the rest is left to feedback.
    friction, springs : bool
        Whether efforts include friction and damping, and `rbd_ros.spring_torques`.

    Raises
    ------
    StateError
        If no motion along the path keeps to the limits, or the path leaves the position limits
        between waypoints.
    ModelError
        If limits are missing.

    Notes
    -----
    The motion exceeds no limit by more than a millionth at the points and at five states between
    each two of them, and no limit of velocity in between. If the jerk is limited, efforts are
    checked at three states between points, all other limits everywhere. Closed loops take about
    half a second, and several seconds with limits of jerk.

    """
    check_model(model)
    share = number('effort_share', effort_share, 0.0, 1.0)
    if not share:
        raise StateError('effort_share is 0, with which no motor may move anything')
    names = [joint.name for joint, _, _ in model.unconstrained.moving_joints
             if joint.nq != joint.nv]
    if names:
        raise ModelError(f'{listed(names)} has several coordinates, through which no path of '
                         'positions leads: lock it, or load the robot without floating base')
    limits = limits_of(model, effort=share * model.effort_limit, velocity=velocity_limit,
                       acceleration=acceleration_limit, deceleration=acceleration_limit,
                       jerk=jerk_limit)
    check_positive(model, {f'{label} limit': getattr(limits, label) for label in RATES})
    path = Path(model, limits, rows(model, 'waypoints', waypoints, positions=True))
    _check(model, limits, path)
    nodes = NodeLimits(model, limits, path, friction, springs)
    efforts = partial(effort_of_pace, model, friction=friction, springs=springs)
    slower, allowed, exerted = np.ones((3, len(path.direction)))
    x, last = None, np.inf
    for _ in range(ROUNDS):
        fastest = nodes.fastest * np.square(np.minimum(
            np.append(slower, 1.0), np.append(1.0, slower)))
        x = _fastest(path.s, fastest, *nodes.constraints(x, allowed, exerted))
        if x is None:
            raise _stuck(model, limits, path, nodes)
        motion = _Motion(limits, path, x, efforts)
        speed, rate, force = motion.excess()
        settled = not nodes.friction_varies or abs(motion.duration / last - 1.0) <= SETTLED
        if settled and max(map(np.max, (speed, rate, force))) <= 1.0 + CLOSE:
            break
        last = motion.duration
        # Shares that keep to the limits, or exhaust them where they were too small.
        slower, allowed, exerted = (
            np.minimum(share / np.maximum(excess + MARGIN, LEAST_EXCESS), 1.0) for share, excess in
            ((slower, speed), (allowed, rate), (exerted, force)))
    assert x is not None
    if np.any(np.isfinite(limits.jerk)):
        return _with_limited_jerk(model, limits, path, nodes, x, efforts)
    return motion.within_limits()


def _check(model: Model, limits: Limits, path: Path) -> None:
    """Raise StateError if the path leaves the position limits, or nothing limits the motion."""
    moves = np.any(path.slope != 0.0, axis=0)
    bounded = (np.isfinite(limits.effort)
               | (np.isfinite(limits.acceleration) & np.isfinite(limits.deceleration)))
    if not np.any(moves & bounded):
        raise StateError('no joint that moves has a limit of effort or acceleration, so any '
                         'motion could be faster: give acceleration_limit')
    tree = model.unconstrained
    given = path.given
    lower = np.minimum(tree.lower, given.min(axis=0)) - SAME_PLACE
    upper = np.maximum(tree.upper, given.max(axis=0)) + SAME_PLACE
    wrong = np.argwhere((path.q < lower) | (path.q > upper))
    if len(wrong):
        node, k = wrong[0].tolist()
        before = int(np.searchsorted(path.knots, path.s[node], side='right')) - 1
        unit = 'rad' if tree.angular[k] else 'm'
        raise StateError(
            f"the path leads '{tree.velocity_names[k]}' to {path.q[node, k]:.4g} {unit} after "
            f'waypoint {path.numbers[before]}, beyond its limits {tree.lower[k]:.4g} ... '
            f'{tree.upper[k]:.4g}: give more waypoints there')


def _stuck(model: Model, limits: Limits, path: Path, nodes: NodeLimits) -> StateError:
    """Return why there is no motion along the path."""
    worst = nodes.starting_shares
    node, k = np.unravel_index(np.argmax(worst), worst.shape)
    # With a limit that friction alone exhausts, the joint never accelerates.
    if worst[node, k] < 1.0:
        return StateError('no motion along the path keeps to the limits of the robot')
    before = int(np.searchsorted(path.knots, path.s[node], side='right')) - 1
    limit, unit = limits.effort[k], 'N m' if model.angular[k] else 'N'
    return StateError(
        f"'{model.velocity_names[k]}' needs {worst[node, k] * limit:.4g} {unit} to move slowly "
        f'after waypoint {path.numbers[before]}, and may use {limit:.4g} {unit}: choose another '
        'path, reduce the payload, or raise effort_share if it is below 1')


def _with_limited_jerk(model: Model, limits: Limits, path: Path, nodes: NodeLimits,
                       x: np.ndarray, efforts: Efforts) -> RetimedPath:
    motion, scale = smooth_motion(limits, path, np.sqrt(x))
    if model.loops is not None:     # dependent joints have limits of velocity, too
        fastest = np.sqrt(np.interp(motion.s, path.s, nodes.fastest))
        scale = max(scale, float(np.max(motion.rate / fastest)))
    q, v, a, _ = (one.reshape(-1, model.nv) for one in motion.inside)
    scale = least_time_scale(limits.effort, scale, efforts(path.configurations(q), v, a))
    if not np.isfinite(scale):
        raise StateError('no motion with limited jerk keeps to the effort limits along the path: '
                         'choose another path, reduce the payload, or omit the limits of jerk')
    q, v, a = path.configurations(motion.q), motion.v / scale, motion.a / scale ** 2
    return RetimedPath(scale * motion.time, q, v, a, efforts(q, v, a)(1.0), True)


def _fastest(s: np.ndarray, fastest: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray
             ) -> np.ndarray | None:
    """Return the largest x at the nodes, with a u + b x + c <= 0 and x <= fastest, if any."""
    algorithm, constraint = _toppra()

    class Inequalities(constraint.LinearConstraint):    # type: ignore[name-defined]
        """Inequalities that are known at the nodes."""

        def __init__(self) -> None:
            super().__init__()
            self.identical = True

        def compute_constraint_params(self, path: Any, gridpoints: np.ndarray) -> tuple[Any, ...]:
            rows = a.shape[1]
            bounds = np.stack((np.zeros_like(s), fastest), axis=1)
            # The last node has no interval of its own.
            return (*(np.concatenate((x, x[-1:])) for x in (a, b, c)), np.eye(rows),
                    np.zeros(rows), None, bounds)

    line = SimpleNamespace(dof=1, path_interval=(s[0], s[-1]))    # what is asked of the path
    problem = algorithm.TOPPRA([Inequalities()], line, gridpoints=s, solver_wrapper='seidel')
    _, speed, _ = problem.compute_parameterization(0.0, 0.0)
    if speed is None or not np.all(np.isfinite(speed)) or not np.all(speed[1:-1] > 0.0):
        return None
    return np.square(speed)


def _toppra() -> tuple[Any, Any]:
    try:
        from toppra import algorithm, constraint
    except ImportError:
        raise ModelError("retiming needs the package toppra: pip install 'rbd_ros[retime]'"
                         ) from None
    # Its warnings become exceptions here.
    logging.getLogger('toppra').setLevel(logging.CRITICAL)
    return algorithm, constraint


class _Motion:
    """The motion with a solution x: cubic polynomials between the nodes."""

    def __init__(self, limits: Limits, path: Path, x: np.ndarray, efforts: Efforts) -> None:
        self._limits, self._path, self._efforts_of = limits, path, efforts
        speed = np.sqrt(x)
        self._spans = h = (2.0 * np.diff(path.s) / (speed[:-1] + speed[1:]))[:, None]
        self.duration = float(np.sum(h))
        self._v = v = path.slope * speed[:, None]
        curves = rates(h, bernstein(h, path.points, v), 2)
        self._begin, self._end = curves[2]      # accelerations at both ends of each interval
        inside, self._speeds, self._rates = (samples(one, CHECKS) for one in curves)
        self._efforts = efforts(path.configurations(inside.reshape(-1, v.shape[-1])), *(
            one.reshape(-1, v.shape[-1]) for one in (self._speeds, self._rates)))

    def excess(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the largest shares of limits by interval: velocities, their rates, efforts."""
        limits, v, a = self._limits, self._speeds, self._rates
        reverses = (np.min(v, axis=1) < 0.0) & (np.max(v, axis=1) > 0.0)
        most = limits.rates(v, a, reverses[:, None])
        effort = self._efforts(1.0).reshape(v.shape)
        speed, rate, force = (np.max(np.abs(x) / limit, axis=(1, 2)) for x, limit in (
            (np.concatenate((v, self._peaks()[:, None]), axis=1), limits.velocity), (a, most),
            (effort, limits.effort)))
        return speed, rate, force

    def _peaks(self) -> np.ndarray:
        """Return the extreme velocities inside the intervals, where acceleration changes sign."""
        a, b, h = self._begin, self._end, self._spans
        inside = a * b < 0.0
        rise = np.divide(h * a * a, 2.0 * (a - b), out=np.zeros_like(a), where=inside)
        return self._v[:-1] + rise

    def within_limits(self) -> RetimedPath:
        """Return the motion, slowed down by what is left above a limit."""
        speed, rate, _ = self.excess()
        least = max(1.0, np.max(speed), np.sqrt(np.max(rate)))
        scale = least_time_scale(self._limits.effort, least if least > 1.0 + TOLERANCE else 1.0,
                                 self._efforts)
        time = scale * np.concatenate(([0.0], np.cumsum(self._spans[:, 0])))
        v = self._v / scale
        a = np.concatenate((self._begin[:1], 0.5 * (self._begin[1:] + self._end[:-1]),
                            np.zeros((1, v.shape[1])))) / scale ** 2
        effort = self._efforts_of(self._path.q, v, a)(1.0)
        return RetimedPath(time, self._path.q.copy(), v, a, effort, False)
