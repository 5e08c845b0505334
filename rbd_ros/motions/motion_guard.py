# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Soft stops before position limits, and braking beyond velocity limits."""

from __future__ import annotations

from math import copysign, inf

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.arrays import lapack
from rbd_ros.model.arguments import number
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.passive_joints import all_springs, velocity_map

RANGE_SHARE = 0.1   # largest width of a zone, as a share of the range of the joint
RATE = 40.0     # 1/s: largest rate k of the guard, and largest k L A; see `MotionGuard`
MARGIN = 0.5
# Share of the velocity limit over which accelerating torques fade. With a smaller one, large
# torques on small inertias would oscillate from sample to sample.
OVERSPEED = 0.5
SLOWEST = 1e-9  # rad/s or m/s: velocity limit of joints that must not move
LEAST_MOBILITY = 1e-9   # 1/(kg m^2) or 1/kg: joints that move less easily are not held by others
LEAST_INERTIA = 1e-14   # added to the diagonal of M, as a share of its trace


def braking_rate(age: float, coupling: float = 1.0) -> float:
    """Return the rate k of `MotionGuard`, 1/s, for an age A, s, and a coupling L."""
    return min(RATE, MARGIN / (coupling * age)) if age > 0.0 else RATE


class MotionGuard:
    """
    Keep the torques of a control law from driving joints beyond their limits.

    Below, g includes the torques that hold springs, and p = tau - g is the push of the law on a
    joint with the inertia m (the other joints free). Pushes of joints near their limits are first
    clamped to the effort limits. With an upper limit q_u, a zone of width w before it, a velocity
    limit v_l, and the rate k,

        d = max(0, q - max(q_u - w, min(q_r, q_u)))       depth in the zone
        p <- max(0, 1 - 2 d/w) p                          if p > 0
        h = m k min(d/w, 1) max(0, v + k d/4)             stop, against p > 0
        e = max(0, abs(v) - v_l)                          excess
        p <- max(0, 1 - 2 e / v_l) p                      if p v > 0
        b = m k e / 2                                     brake, against v

    and likewise at the lower limit. The push of the law counts: where it has the direction of stop
    and brake, only what it lacks is added. If the reference q_r is inside the zone, the zone
    begins there, so that motions up to the limit are possible. In the outer half of the zone,
    outward torques are limited to gravity. Torques are continuous in q, v and tau.

    The rate k is 40/s, or less, such that braking with late states takes energy from the robot.
    Let A be the largest age of a state while its torques act (period + delay), D = diag(m) and
    L the largest eigenvalue of D^1/2 M^-1 D^1/2 for the joints near their limits;
    then k <= 1 / (2 L A), see doc/derivations.md. With a limit R on the rate of torques, stops and
    brakes have at most R / k, so that they end in time.

    Joints that depend on others in closed loops are guarded in the same way, by torques G_i^T of
    the independent joints, with the inertia m = 1 / (G_i M^-1 G_i^T) and its share of tau - g.

    Parameters
    ----------
    model : Model
        Joints with quaternions have no zones.
    zone, velocity : float
        Width of the zones, rad or m, at most a tenth of the range of the joint, and v_l as a
        multiple of the velocity limits; 0: no zones, no braking.

    Attributes
    ----------
    stopping, braking : ndarray of bool, shape (model.nv,)
        The (independent) joints in their zones, or too fast, at the last `limit`.

    """

    def __init__(self, model: Model, *, zone: float = 0.1, velocity: float = 1.0) -> None:
        zone, velocity = number('zone', zone, 0.0), number('velocity', velocity, 0.0)
        self._workspace, self._model = Workspace(model), model
        # Of all joints; `own` are those of the robot, the others depend on them.
        tree = model.unconstrained
        self._own = np.arange(model.nv) if model.loops is None else model.loops.own
        self._identity = np.eye(model.nv)
        # The torque of each joint; -1 of those that depend on others.
        self._columns = np.full(tree.nv, -1)
        self._columns[self._own] = np.arange(model.nv)
        self._places = np.zeros(tree.nv, int)
        single = np.zeros(tree.nv, bool)
        for joint, q, v in tree.moving_joints:
            if joint.nq == joint.nv:
                self._places[v], single[v] = np.arange(q.start, q.stop), True
        width = np.minimum(zone, RANGE_SHARE * (tree.upper - tree.lower))
        has_zone = single & (width > 0.0)
        self._width = np.where(has_zone, width, 1.0)
        self._lower = np.where(has_zone, tree.lower, -np.inf)
        self._upper = np.where(has_zone, tree.upper, np.inf)
        self._fastest = (np.maximum(velocity * tree.velocity_limit, SLOWEST) if velocity
                         else np.full(tree.nv, np.inf))
        self._strongest = model.effort_limit
        self.stopping = self.braking = np.zeros(model.nv, bool)

    def limit(self, tau: np.ndarray, q: npt.ArrayLike, v: npt.ArrayLike,
              q_r: npt.ArrayLike | None = None, *, age: float = 0.002,
              effort_rate: float = inf) -> np.ndarray:
        """
        Return torques that respect the limits of the joints.

        Parameters
        ----------
        tau : ndarray, shape (model.nv,)
            Torques of the control law, N m or N.
        q, v, q_r : array_like
            Measured configuration (model.nq,), rad or m, and velocity (model.nv,), rad/s or m/s;
            reference configuration (model.nq,), if there is one.
        age : float
            Largest age of this state while the torques act, s: its delay and their period.
        effort_rate : float
            Limit on the rate of change of the torques that act, N m/s or N/s.

        Returns
        -------
        ndarray, shape (model.nv,), N m or N
            ``tau`` itself if no joint is near a limit.

        """
        q, v = self._workspace.check(q=q, v=v)
        G = None if self._model.loops is None else velocity_map(self._model, q)
        V, own = v if G is None else G @ v, self._own
        x, width = q[self._places], self._width
        above = self._upper - width
        below = self._lower + width
        if q_r is not None:
            x_r = np.asarray(q_r)[self._places]
            above = np.maximum(above, np.minimum(x_r, self._upper))
            below = np.minimum(below, np.maximum(x_r, self._lower))
        # Positive in the upper zone, negative in the lower one.
        depth = np.maximum(x - above, 0.0) - np.maximum(below - x, 0.0)
        excess = np.maximum(np.abs(V) - self._fastest, 0.0)
        near = (depth != 0.0) | (excess > 0.0)
        self.stopping, self.braking = depth[own] != 0.0, excess[own] > 0.0
        if not near.any():
            return tau
        # Without numba, code of all terms is what nodes compile first.
        terms = self._workspace.all_terms(q, np.zeros(self._model.nv))
        g, M = terms.g + all_springs(self._model, q), terms.M
        # From here on, arrays have only the joints that are near their limits.
        J = (self._identity if G is None else G)[near]
        depth, excess, V, width, fastest, column = (
            x[near].tolist() for x in (depth, excess, V, width, self._fastest, self._columns))
        # Velocities of all joints per impulse on these; joints without inertia are not held.
        _, _, moved, failed = lapack().dgesv(
            M + LEAST_INERTIA * M.trace() * self._identity, J.T)
        mobility = J @ moved
        inertia = 1.0 / np.maximum(mobility.diagonal(), LEAST_MOBILITY)
        root = np.sqrt(inertia)
        coupling, _, unknown = lapack().dsyev(root[:, None] * mobility * root, compute_v=0)
        if failed or unknown:
            raise np.linalg.LinAlgError('joints near their limits move no inertia')
        rate, m = braking_rate(age, coupling.item(-1)), inertia.tolist()
        most = effort_rate / rate if effort_rate * rate > 0.0 else inf

        def guarded(k: int, push: float) -> float:
            """Return what pushes on a joint, instead of tau - g."""
            outwards, d = copysign(1.0, depth[k]), abs(depth[k])
            held = -rate * m[k] * (
                outwards * min(d / width[k], 1.0) * max(outwards * V[k] + 0.25 * rate * d, 0.0)
                + 0.5 * copysign(excess[k], V[k]))
            held = max(min(held, most), -most)
            if outwards * push > 0.0:
                push *= max(1.0 - 2.0 * d / width[k], 0.0)
            if V[k] * push > 0.0:
                push *= max(1.0 - excess[k] / (OVERSPEED * fastest[k]), 0.0)
            return push + held if push * held <= 0.0 else max(push, held, key=abs)
        tau = tau.copy()
        # Joints that depend on others come last: they need the torques of these.
        for k in sorted(range(len(m)), key=lambda k: column[k] < 0):
            if (i := column[k]) >= 0:
                strongest = self._strongest.item(i)
                push = max(min(tau.item(i), strongest), -strongest) - g.item(i)
                tau[i] = g.item(i) + guarded(k, push)
            else:
                # The torques that accelerate only this joint by 1 have the work of its inertia.
                push = m[k] * float(moved[:, k] @ (tau - g))
                tau += J[k] * (guarded(k, push) - push)
        return tau
