# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Trajectories through points of the joints, and motions of a link between two poses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rbd_ros.dynamics import friction_torques
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, finite_vector, number, rows, shown
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import moved_closed
from rbd_ros.model.positions.configurations import normalize
from rbd_ros.model.positions.steps import turning, without_turns
from rbd_ros.model.se3 import pose, rotation, rotation_vector, skew
from rbd_ros.motions.limits import limits_of, TOLERANCE
from rbd_ros.motions.polynomials import bernstein, samples, smooth_step
from rbd_ros.motions.references import checked_pose, JointReference, PoseReference
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.passive_joints import velocity_map

FADE_TIME = 0.5     # s: time in which the twist of the previous motion fades
# Efforts are checked at MIN_STATES to MAX_STATES states of each polynomial, about TOTAL_STATES in
# all. Intervals that may exceed a limit are divided at REFINED_STATES, up to ROUNDS times, as long
# as there are at most TOTAL_REFINED states.
MAX_STATES, MIN_STATES, TOTAL_STATES = 65, 4, 5000
REFINED_STATES, ROUNDS, TOTAL_REFINED = 5, 6, 50000
SAME_BRANCH = 1e-4  # rad or m: largest error of passive joints in points that are on one branch
QUINTIC = 6         # coefficients of a polynomial between points with accelerations


class JointTrajectory:
    """
    A motion of the joints through points, as in trajectory_msgs/JointTrajectory.

    Each joint follows polynomials with the values of the points: quintic with accelerations, cubic
    with velocities. With positions only, velocities are chosen so that no joint overshoots its
    points, and the motion starts and ends at rest. Before and after the points the robot rests.

    Reference for positions only: Fritsch and Carlson, SIAM J. Numer. Anal. 17 (1980), by SciPy.

    Parameters
    ----------
    model, times
        Robot without quaternions; increasing times, s, (points,).
    q : array_like, shape (points, model.nq)
        Positions, rad or m. With closed loops those of dependent joints are guesses; between
        points the independent joints follow polynomials, and the others follow them.
    v, a : array_like, shape (points, model.nv)
        Optional velocities, rad/s or m/s, and accelerations, rad/s^2 or m/s^2, which need
        velocities.
    tau : array_like, shape (points, model.nv), optional
        Torques of free joints, N m or N; linear between points.
    first_v : array_like, shape (model.nv,), optional
        Velocity at the first point if only positions are given, rad/s or m/s; default: at rest.
        Joints that move there may overshoot their second point.

    """

    def __init__(self, model: Model, times: npt.ArrayLike, q: npt.ArrayLike,
                 v: npt.ArrayLike | None = None, a: npt.ArrayLike | None = None,
                 tau: npt.ArrayLike | None = None, first_v: npt.ArrayLike | None = None) -> None:
        # Imported lazily: SciPy is slow to import.
        from scipy.interpolate import BPoly, make_interp_spline, PchipInterpolator
        if model.unconstrained.nq != model.unconstrained.nv:
            raise StateError(f"'{model.name}' has joints with quaternions, which trajectories of "
                             'joints do not have')
        self._model, self.times = model, finite_array('times', times, (None,))
        if not len(self.times) or np.any(np.diff(self.times) <= 0.0):
            raise StateError(f'times must be one or more increasing times, got {shown(times)}')
        if a is not None and v is None:
            raise StateError('a trajectory with accelerations needs velocities')
        if v is not None and first_v is not None:
            raise StateError('first_v is for positions alone: v has the first velocity')
        first_v = 0.0 if first_v is None else finite_vector(model, 'first_v', first_v)
        count = len(self.times)
        q = rows(model, 'q', q, count, positions=True)
        self._ends = q[0], q[-1]
        if model.loops is not None:
            self._points = q = np.array([normalize(model, one) for one in q])
            self._ends, q = (q[0], q[-1]), q[:, model.loops.own]
            self._check_branches(q)
        given = [rows(model, label, x, count) for label, x in (('v', v), ('a', a))
                 if x is not None]
        self._tau = None if tau is None else make_interp_spline(
            self.times, rows(model, 'tau', tau, count), k=min(1, count - 1))
        if count > 1:
            if not given:
                given = [PchipInterpolator(self.times, q).derivative()(self.times)]
                given[0][0], given[0][-1] = first_v, 0.0
            # BPoly.from_derivatives is too slow: it computes one piece at a time.
            curve = BPoly(bernstein(np.diff(self.times)[:, None], q, *given), self.times)
            self._curves = curve, curve.derivative(), curve.derivative(2)

    def at(self, t: float) -> JointReference:
        """Return the `JointReference` at a time, s; at rest before and after the motion."""
        t = number('t', t)
        tau = None if self._tau is None else self._tau(min(max(t, self.times[0]), self.times[-1]))
        if t < self.times[0] or t >= self.times[-1]:
            return JointReference(self._model, self._ends[int(t >= self.times[-1])], tau=tau)
        q, v, a = (curve(t) for curve in self._curves)
        return JointReference(self._model, self._closed(t, q), v, a, tau)

    def _closed(self, t: float, x: np.ndarray) -> np.ndarray:
        """Return q at a time, given the positions of the independent joints."""
        model = self._model
        if model.loops is None:
            return x
        k = max(int(np.searchsorted(self.times, t, side='right')) - 1, 0)
        return moved_closed(model, self._points[k], x - self._points[k, model.loops.own])

    def _check_branches(self, x: np.ndarray) -> None:
        """Raise StateError if passive joints do not move from each point to the next."""
        for k, step in enumerate(np.diff(x, axis=0)):
            there = moved_closed(self._model, self._points[k], step)
            apart = np.abs(without_turns(there - self._points[k + 1],
                                         turning(self._model.unconstrained)))
            if np.max(apart) > SAME_BRANCH:
                name = self._model.position_names[int(np.argmax(apart))]
                raise StateError(
                    f'the independent joints lead from point {k + 1} to other positions than '
                    f"those of point {k + 2}: '{name}' is off by {np.max(apart):.4g}; the points "
                    'must be on one branch of the closed loops')

    def check_limits(self, *, effort: bool = True) -> None:
        """
        Raise StateError if the motion exceeds limits of the robot, also between its points.

        Positions, velocities and accelerations are checked at all their extrema, and jerks if the
        points have accelerations: otherwise accelerations jump at the points. A joint that starts
        beyond a position limit must not move further out. With ``effort``, efforts of inverse
        dynamics with friction are checked at states of every polynomial, and at more states where
        second differences do not rule out a violation in between. If this remains undecided
        (mostly less than 1e-5 of a limit below it), the motion is rejected.

        """
        if len(self.times) < 2:
            return
        model, (q, v, a), most = self._model, self._curves, limits_of(self._model)
        first = self._ends[0] if model.loops is None else self._ends[0][model.loops.own]
        self._check_extrema(q, np.minimum(most.lower, first), np.maximum(most.upper, first),
                            'reaches', ('rad', 'm'))
        self._check_extrema(v, -most.velocity, most.velocity, 'moves at', ('rad/s', 'm/s'))
        self._check_extrema(a, -most.deceleration, most.acceleration, 'accelerates at',
                            ('rad/s^2', 'm/s^2'), (-most.acceleration, most.deceleration))
        if len(q.c) == QUINTIC and np.any(np.isfinite(most.jerk)):
            self._check_extrema(a.derivative(), -most.jerk, most.jerk, 'has a jerk of',
                                ('rad/s^3', 'm/s^3'))
        if model.loops is not None:
            self._check_passive()
        if effort and np.any(np.isfinite(most.effort)):
            self._check_efforts()

    def _check_passive(self) -> None:
        """Raise StateError if a dependent joint exceeds its limits at one of many times."""
        model, (position, velocity, _) = self._model, self._curves
        tree, own = model.unconstrained, np.isin(model.unconstrained.velocity_names,
                                                 model.velocity_names)
        first, fastest = self._ends[0], tree.velocity_limit
        lower, upper = np.minimum(tree.lower, first), np.maximum(tree.upper, first)
        count = min(max(TOTAL_STATES // (len(self.times) - 1), MIN_STATES), MAX_STATES)
        for t in np.unique(np.linspace(self.times[:-1], self.times[1:], count)):
            q = self._closed(t, position(t))
            v = velocity_map(model, q) @ velocity(t)
            for x, least, most, verb, units in (
                    (q, lower, upper, 'reaches', ('rad', 'm')),
                    (v, -fastest, fastest, 'moves at', ('rad/s', 'm/s'))):
                excess = np.maximum(least - x, x - most)
                excess[own] = -np.inf
                k = int(np.argmax(excess))
                if excess[k] > TOLERANCE * max(1.0, abs(x[k])):
                    raise _beyond(tree, k, verb, units, x[k], t, most[k] if x[k] > most[k]
                                  else least[k])

    def _check_extrema(self, curve: Any, lower: np.ndarray, upper: np.ndarray, verb: str,
                       units: tuple[str, str],
                       backward: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """Raise StateError if a curve leaves limits, others where a joint moves ``backward``."""
        from scipy.interpolate import BPoly, PPoly
        bounds = np.array([(lower, upper), backward or (lower, upper)])
        v, hull = self._curves[1], curve.c.reshape(-1, len(lower))    # which contains the curve
        least, most = bounds[:, 0].max(axis=0), bounds[:, 1].min(axis=0)
        for k in np.flatnonzero((hull.min(axis=0) < least) | (hull.max(axis=0) > most)):
            one, speed = (PPoly.from_bernstein_basis(BPoly(x.c[:, :, k], x.x)) for x in (curve, v))
            # Between these times the velocity keeps its sign, and the curve is monotone.
            roots = [x.roots(discontinuity=False, extrapolate=False)
                     for x in (one.derivative(), speed)]
            times = np.concatenate((v.x, *roots))
            times = np.unique(times[np.isfinite(times)])
            # In shorter intervals, between roots that differ by rounding, so does the sign.
            wide = np.diff(times) > TOLERANCE * np.min(np.diff(v.x))
            begin, end = times[:-1][wide], times[1:][wide]
            middle, t = 0.5 * (begin + end), np.concatenate((begin, end))
            piece = np.tile(np.searchsorted(v.x, middle, side='right') - 1, 2)
            values = np.polyval(one.c[:, piece], t - v.x[piece])
            sign = np.tile(np.sign(speed(middle)), 2)
            limits = bounds[(sign < 0.0).astype(int), :, k].T
            size = np.where(np.isfinite(limits), np.abs(limits), 0.0)
            excess = (np.maximum(limits[0] - values, values - limits[1])
                      - TOLERANCE * np.maximum(size.max(axis=0), 1.0))
            worst = int(np.argmax(excess))
            if excess[worst] > 0.0:
                value, limit = values[worst], limits[int(values[worst] > limits[1, worst]), worst]
                if backward:
                    verb = 'decelerates at' if value * sign[worst] < 0.0 else verb
                    value, limit = abs(value), abs(limit)
                raise _beyond(self._model, int(k), verb, units, value, t[worst], limit)

    def _check_efforts(self) -> None:
        spans, most = np.diff(self.times), self._model.effort_limit * (1.0 + TOLERANCE)
        pieces = np.arange(len(spans))
        # Shares of the piece where each interval begins and ends.
        first, last = np.zeros(len(spans)), np.ones(len(spans))
        count = min(max(TOTAL_STATES // len(spans), MIN_STATES), MAX_STATES)
        for _ in range(ROUNDS):
            shares = np.linspace(first, last, count, axis=1)
            rigid, rubbing = self._efforts(pieces, shares)
            tau = rigid + rubbing
            self._refuse(np.abs(tau) > most, tau, self.times[pieces, None]
                         + shares * spans[pieces, None])
            # Deviation of a parabola through three states from the line through two of them.
            bend = np.diff(rigid, n=2, axis=1)
            bend = np.concatenate((2.0 * bend[:, :1] - bend[:, 1:2], bend,
                                   2.0 * bend[:, -1:] - bend[:, -2:-1]), axis=1)
            bend = 0.125 * _larger(np.abs(bend))
            top = _larger(rigid) + bend + _larger(rubbing)
            bottom = -_larger(-rigid) - bend - _larger(-rubbing)
            piece, step = np.nonzero(((top > most) | (bottom < -most)).any(axis=2))
            if not len(piece):
                return
            tau, times = np.where(top > -bottom, top, bottom)[piece, step], shares[piece, step]
            pieces, first, last = pieces[piece], times, shares[piece, step + 1]
            count = REFINED_STATES
            if len(pieces) * count > TOTAL_REFINED:
                break
        self._refuse(np.abs(tau) > most, tau, self.times[pieces] + first * spans[pieces])

    def _efforts(self, pieces: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the efforts of inverse dynamics and of friction at shares of some pieces."""
        model, size = self._model, (*shares.shape, self._model.nv)
        # Both ends of each piece, since accelerations may jump between pieces.
        q, v, a = (samples(curve.c[:, pieces], shares).reshape(-1, model.nv)
                   for curve in self._curves)
        if model.loops is not None:
            first = self._points[np.repeat(pieces, shares.shape[1])]
            q = np.array([moved_closed(model, *state) for state in zip(
                first, q - first[:, model.loops.own])])
        workspace = Workspace(model)
        rigid = np.array([workspace.inverse_dynamics(*state).copy() for state in zip(q, v, a)])
        return rigid.reshape(size), friction_torques(model, v, q=q).reshape(size)

    def _refuse(self, wrong: np.ndarray, tau: np.ndarray, times: np.ndarray) -> None:
        """Raise if any effort is wrong; the last axis is that of the joints."""
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            error = _beyond(self._model, place[-1], 'needs', ('N m', 'N'), tau[place],
                            times[place[:-1]], self._model.effort_limit[place[-1]])
            raise StateError(f'{error}: move more slowly')


def _beyond(model: Model, k: int, verb: str, units: tuple[str, str], value: float, time: float,
            limit: float) -> StateError:
    unit = units[0 if model.angular[k] else 1]
    return StateError(f"'{model.velocity_names[k]}' {verb} {value:.4g} {unit} at "
                      f'{time:.4g} s, its limit is {limit:.4g} {unit}')


def _larger(x: np.ndarray) -> np.ndarray:
    """Return the larger of each two neighbours along the second axis."""
    return np.maximum(x[:, :-1], x[:, 1:])


class PoseMotion:
    """
    A motion of a link from one pose to another, at rest at both ends.

    The origin moves along a line and the link turns about one axis, with the progress 10 x^3 - 15
    x^4 + 6 x^5 for the share x of the time: the motion with least jerk among those with zero speed
    and acceleration at both ends.

    Reference: Flash and Hogan, J. Neuroscience 5 (1985); Lynch and Park (9.11), (9.14), (9.15).

    Parameters
    ----------
    start, goal : array_like, shape (4, 4)
        Poses in the root's frame, m.
    duration, begin : float
        Positive duration and start time, s.
    twist : array_like, shape (6,), optional
        Initial twist from a previous motion: angular velocity, rad/s, and velocity of the origin,
        m/s, in the root's axes; default: at rest. It fades with t (1 - t/h)^3 within h =
        `FADE_TIME`, or the duration if that is shorter.

    """

    def __init__(self, start: npt.ArrayLike, goal: npt.ArrayLike, duration: float,
                 begin: float = 0.0, twist: npt.ArrayLike | None = None) -> None:
        self._start, goal = checked_pose('start', start), checked_pose('goal', goal)
        self._duration, self._begin = number('duration', duration, 0.0), number('begin', begin)
        if not self._duration > 0.0:
            raise StateError('duration must be more than zero, s')
        self._twist = np.zeros(6) if twist is None else finite_array('twist', twist, (6,))
        turn = rotation_vector(goal[:3, :3] @ self._start[:3, :3].T)
        # Rotation vector and translation in the root's axes.
        self._way = np.concatenate((turn, goal[:3, 3] - self._start[:3, 3]))

    def at(self, t: float) -> PoseReference:
        """Return the `PoseReference` at a time, s; at rest before and after the motion."""
        h, t = self._duration, number('t', t) - self._begin
        x = min(max(t / h, 0.0), 1.0)
        way, speed, rise = smooth_step(x)
        T = pose(rotation(way * self._way[:3]) @ self._start[:3, :3],
                 self._start[:3, 3] + way * self._way[3:])
        V, V_dot = speed / h * self._way, rise / h ** 2 * self._way
        if t < 0.0 or not self._twist.any():
            return PoseReference(T, V, V_dot)
        h = min(h, FADE_TIME)    # the previous motion's twist fades; its axis is constant, too
        x = min(t / h, 1.0)
        carried, slope = h * x * (1.0 - x) ** 3, (1.0 - x) ** 2 * (1.0 - 4.0 * x)
        bend = -6.0 * (1.0 - x) * (1.0 - 2.0 * x) / h
        omega = self._twist[:3]
        R = rotation(carried * omega)
        T = pose(R @ T[:3, :3], T[:3, 3] + carried * self._twist[3:])
        turned, rising = R @ V[:3], R @ V_dot[:3]
        V = np.concatenate((turned, V[3:])) + slope * self._twist
        V_dot = (np.concatenate((rising + slope * (skew(omega) @ turned), V_dot[3:]))
                 + bend * self._twist)
        return PoseReference(T, V, V_dot)
