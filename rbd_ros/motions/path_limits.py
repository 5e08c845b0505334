# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Limits of a robot along a path q(s), as linear inequalities of u = d2s/dt2 and x = (ds/dt)^2.

    a   = q' u + q'' x
    tau = M q' u + (M q'' + C(q, q') q') x + g + tau_s + tau_f(q' sqrt(x))

with the torques tau_s of springs and tau_f of friction. All but the latter are linear. The
direction of each joint is known along the path, so Coulomb friction is constant between the places
where a joint reverses, which are nodes of the grid. Friction that depends on speed is linearized
about the last solution, which is exact when that no longer changes. u is constant between nodes,
and the inequalities hold at both ends of each interval.

Reference: Pham and Pham, "A New Approach to Time-Optimal Path Parameterization based on
Reachability Analysis", IEEE T-RO 34 (2018).

"""

import numpy as np
from rbd_ros import batch
from rbd_ros.dynamics import spring_torques
from rbd_ros.errors import StateError
from rbd_ros.model.changes.friction import friction as joint_friction
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import moved_closed
from rbd_ros.model.positions.configurations import independent_positions, normalize
from rbd_ros.motions.limits import Limits
from rbd_ros.workspace.passive_joints import passive_friction, velocity_map

FASTEST = 1e3           # largest ds/dt: toppra needs a limit
# Intervals of the grid: about this number in all, at least between two waypoints, and there by
# radian of the turn of the path, at most.
NODES, PER_PIECE, PER_RADIAN, MOST_PER_PIECE = 200, 2, 12, 16
# Nodes in the first and last interval, as shares: speed changes fast there.
ENDS = 0.003, 0.05, 0.3
SAME_PLACE = 1e-5       # waypoints that differ by less, rad or m, are one
STANDS = 1e-7           # a joint stands still if it moves by less, rad or m, per unit of s
LEAST = 1e-6            # coefficients of inequalities below this share count as zero
NEAR = 0.2              # nodes closer to a reversal, as a share of their distance, are left out
# x about which friction is linearized: at first, as a share of the fastest by limits of velocity,
# and least, as a share of the largest and absolute.
FIRST_GUESS, SLOWEST, TINY = 0.5, 1e-3, 1e-9
# Quarters of x, until efforts at standstill are below this share of the limit, or leave this share
# of what holding leaves of it.
QUARTERS, POSSIBLE, ROOM = 16, 0.95, 0.5
MOST_HELD = 0.999       # share of a limit that starting to move may take; else it is exceeded
STEP = 1e-3             # relative difference of x by which friction is differentiated


class Path:
    """A natural cubic spline through waypoints, and the nodes of the grid on it."""

    def __init__(self, model: Model, limits: Limits, waypoints: np.ndarray) -> None:
        from scipy.interpolate import CubicSpline    # lazily: SciPy is slow to import
        self._model, self._own, self.given = model, independent_positions(model), waypoints
        points = waypoints[:, self._own]
        self.numbers = _different(points)
        points = points[self.numbers]
        self.knots = np.concatenate(([0.0], np.cumsum(
            np.linalg.norm(np.diff(points, axis=0), axis=1))))
        # Tolerances of toppra are absolute, and suit speeds of about 1 / s.
        quickest = np.sum(np.max(np.abs(np.diff(points, axis=0)) / limits.velocity, axis=1))
        self.knots *= (quickest or 1.0) / self.knots[-1]
        # Natural: other ends let a short piece determine a long one beside it.
        self.spline = CubicSpline(self.knots, points, bc_type='natural')
        # Nodes, in proportion to the chords between waypoints, up to the duration, s, at limits of
        # velocity, or 1; q' and q'' of the independent coordinates there, (nodes, nv).
        self.s = self._grid()
        self.slope, self.bend = self.spline(self.s, 1), self.spline(self.s, 2)
        self.slope[np.abs(self.slope) < STANDS] = 0.0
        middle = self.spline(0.5 * (self.s[:-1] + self.s[1:]), 1)
        # Sign of q' in each interval; 0: the joint stands still. Where joints reverse or stand.
        self.direction = np.where(np.abs(middle) < STANDS, 0.0, np.sign(middle))
        self.stops = self.slope == 0.0
        self.stops[1:-1] |= self.direction[1:] != self.direction[:-1]
        self._first = (waypoints[0] if model.loops is None else
                       normalize(model, waypoints[0], 'waypoints, point 0,'))
        self.points = self.spline(self.s)
        self.q = self.configurations(self.points)

    def _grid(self) -> np.ndarray:
        pieces = np.diff(self.knots)
        tangent = self.spline(self.knots, 1)
        turn = (np.linalg.norm(np.diff(tangent, axis=0), axis=1)
                / np.maximum(np.linalg.norm(tangent, axis=1).mean(), TINY))
        counts = np.maximum(np.maximum(PER_PIECE, np.minimum(PER_RADIAN * turn, MOST_PER_PIECE)),
                            NODES * pieces / self.knots[-1]).round().astype(int)
        nodes = np.concatenate([knot + piece * np.arange(count) / count for knot, piece, count in
                                zip(self.knots, pieces, counts)] + [self.knots[-1:]])
        ends = np.array(ENDS)
        nodes = np.concatenate((nodes[:1], nodes[1] * ends, nodes[1:-1],
                                nodes[-1] - (nodes[-1] - nodes[-2]) * ends[::-1], nodes[-1:]))
        slope = self.spline.derivative()
        turns = np.concatenate(list(slope.roots(discontinuity=False, extrapolate=False)))
        turns = np.unique(turns[np.isfinite(turns)])
        nearest = np.minimum(np.searchsorted(nodes, turns), len(nodes) - 1)
        step = np.maximum(nodes[nearest] - nodes[np.maximum(nearest - 1, 0)], TINY)
        inside = (turns > NEAR * step) & (turns < self.knots[-1] - NEAR * step)
        turns, step = turns[inside], step[inside]
        if not len(turns):
            return nodes
        apart = np.concatenate(([True], np.diff(turns) > NEAR * step[1:]))
        turns, step = turns[apart], step[apart]
        place = np.clip(np.searchsorted(turns, nodes), 1, len(turns)) - 1
        after = np.minimum(place + 1, len(turns) - 1)
        far = np.minimum(np.abs(nodes - turns[place]), np.abs(nodes - turns[after]))
        free = far > NEAR * step[place]
        free[[0, -1]] = True
        return np.unique(np.concatenate((nodes[free], turns)))

    def configurations(self, x: np.ndarray) -> np.ndarray:
        """Return q (states, nq) for positions of the independent joints, each near the last."""
        if self._model.loops is None:
            return x
        q, found = self._first, []
        for one in x:
            q = moved_closed(self._model, q, one - q[self._own])
            found.append(q)
        return np.array(found)


def _different(points: np.ndarray) -> list[int]:
    """Return the indices of waypoints that differ from the one before."""
    found = [0] if len(points) else []
    for k in range(1, len(points)):
        if np.max(np.abs(points[k] - points[found[-1]])) > SAME_PLACE:
            found.append(k)
    if len(found) < 2:
        raise StateError(f'waypoints: at least two are needed that differ by more than '
                         f'{SAME_PLACE:g} rad or m')
    return found


def _both_ends(x: np.ndarray) -> np.ndarray:
    """Return values (nodes, ...) at the first and the last node of each interval."""
    return np.stack((x[:-1], x[1:]))


class NodeLimits:
    """The inequalities of velocities, accelerations and efforts at the nodes of a path."""

    def __init__(self, model: Model, limits: Limits, path: Path, friction: bool, springs: bool
                 ) -> None:
        self._model, self._limits, self._path = model, limits, path
        still = np.zeros_like(path.slope)
        rest = batch.inverse_dynamics(model, path.q, still, still)
        self._inertial = batch.inverse_dynamics(model, path.q, still, path.slope) - rest
        self._bent = batch.inverse_dynamics(model, path.q, path.slope, path.bend) - rest
        # Efforts (nodes, nv) that hold the robot still, N m or N.
        self._holding = rest + spring_torques(model, path.q) if springs else rest
        tree = model.unconstrained
        speeds = tree.damping, tree.damping_asymmetry, tree.stribeck_friction
        self._friction = friction and any(np.any(x) for x in (
            *speeds, tree.friction, tree.friction_asymmetry, tree.effort_offset))
        self.friction_varies = friction and any(map(np.any, speeds))
        self._still = self.friction(np.zeros(len(path.s)))
        # Largest efforts at standstill with linear friction, by side, end, interval and joint;
        # shares of the effort limits that starting to move takes, (intervals, nv), and below 1.
        hold = np.abs(_both_ends(self._holding) + self._still)
        self._most_still = np.maximum(POSSIBLE * limits.effort,
                                      (1.0 - ROOM) * limits.effort + ROOM * hold)
        self.starting_shares = np.max(hold, axis=(0, 1)) / limits.effort
        self._held = np.minimum(self.starting_shares, MOST_HELD)
        slopes, most = path.slope, limits.velocity
        if model.loops is not None:
            # Dependent joints have limits of velocity, too.
            others = [velocity_map(model, q) @ slope for q, slope in zip(path.q, path.slope)]
            slopes = np.concatenate((slopes, others), axis=1)
            most = np.concatenate((most, tree.velocity_limit))
        with np.errstate(divide='ignore', invalid='ignore'):
            rates = np.min(np.where(slopes != 0.0, most / np.abs(slopes), FASTEST), axis=1)
        # Largest x at the nodes by the limits of velocities.
        self.fastest = np.square(np.minimum(rates, FASTEST))

    def friction(self, x: np.ndarray) -> np.ndarray:
        """Return the least and the largest friction at both nodes of each interval."""
        # The shape is (least or largest, first or last node, intervals, nv). They differ where a
        # joint may have several directions: where it reverses, stands still or starts.
        path, model = self._path, self._model
        sign = path.direction
        if not self._friction:
            return np.zeros((2, 2, *sign.shape))
        speed = path.slope * np.sqrt(x)[:, None]
        v, stops = _both_ends(speed), _both_ends(path.stops) & (sign != 0.0)
        rests = np.zeros_like(stops)
        rests[0, 0] = rests[1, -1] = True
        signs = np.stack([np.broadcast_to(sign, v.shape), np.where(stops, -sign, sign),
                          np.where(rests, 0.0, sign)])
        found = joint_friction(model, np.broadcast_to(v, signs.shape), signs, v)
        return (np.stack((found.min(axis=0), found.max(axis=0)))
                + _both_ends(passive_friction(model, path.q, speed)))

    def constraints(self, x: np.ndarray | None, allowed: np.ndarray, exerted: np.ndarray
                    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a, b, c (intervals, inequalities) of the inequalities a u + b x + c <= 0."""
        # `x` (nodes,): the last solution, about which friction is linearized. Shares (intervals,)
        # of limits: `allowed` of accelerations, `exerted` of what starting to move leaves of
        # efforts.
        path, limits = self._path, self._limits
        fixed, slope = self._lines(x)
        shares = self._held + exerted[:, None] * (1.0 - self._held)
        step = 2.0 * np.diff(path.s)[:, None]
        found: list[tuple[np.ndarray, ...]] = []
        for end in (0, 1):
            here = slice(end, len(path.s) - 1 + end)
            unsure = path.stops[here] | (path.direction == 0.0)
            motion = path.slope[here], path.bend[here], np.zeros_like(path.direction)
            for side, sign in enumerate((-1.0, 1.0)):
                limit = np.where(sign * path.direction > 0.0, limits.acceleration,
                                 limits.deceleration)
                slower = np.minimum(limits.acceleration, limits.deceleration)
                effort = (self._inertial[here], self._bent[here] + slope[side, end],
                          self._holding[here] + fixed[side, end])
                for terms, most, share in (
                        (motion, np.where(unsure, slower, limit), allowed[:, None]),
                        (effort, limits.effort, shares)):
                    most = most * share
                    given = np.isfinite(most).any(axis=0)
                    a, b, c = (sign * one[:, given] / most[:, given] for one in terms)
                    # At the last node of an interval, x has grown by 2 u ds.
                    found.append((a + end * step * b, b, c))
        a, b, c = (np.concatenate(one, axis=1) for one in zip(*found))
        size = np.maximum(np.hypot(a, b), LEAST)
        return a / size, b / size, (c - 1.0) / size

    def _lines(self, x: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return friction at x = 0 and its slope, by lines that touch it at a last solution."""
        still = self._still
        if not self.friction_varies:
            return still, np.zeros_like(still)
        if x is None:
            x = FIRST_GUESS * self.fastest
        x = np.maximum(x, SLOWEST * np.max(x) + TINY)
        for _ in range(QUARTERS):
            low, high = (1.0 - STEP) * x, (1.0 + STEP) * x
            there = self.friction(low)
            ends = _both_ends(low)[..., None]
            slope = (self.friction(high) - there) / (2.0 * STEP / (1.0 - STEP) * ends)
            fixed = there - slope * ends
            # The lines must leave standstill possible, or the inequalities may have no solution.
            first, last = np.any(np.abs(_both_ends(self._holding) + fixed) > self._most_still,
                                 axis=(0, 3))
            wrong = np.append(first, False) | np.append(False, last)
            if not wrong.any():
                break
            x = np.where(wrong, 0.25 * x, x)
        return fixed, slope
