# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Soft stops before position limits, and braking beyond velocity limits."""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import number
from rbd_ros.model.model import Model
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.passive_joints import all_springs, velocity_map

RANGE_SHARE = 0.1   # largest width of a zone, as a share of the range of the joint
RATE = 40.0     # 1/s: largest rate of the stops; brakes have half of it
# Product of rate, coupling and age; with 1/1.5 and above, a brake and a stop could add energy.
MARGIN = 0.5
# Share of the velocity limit over which accelerating torques fade. With a smaller one, large
# torques on small inertias would oscillate from sample to sample.
OVERSPEED = 0.5
LEAST_MOBILITY = 1e-9   # 1/(kg m^2) or 1/kg: joints that move less easily are not held by others
LEAST_INERTIA = 1e-12   # of a joint, as a share of the trace of M


def stated_speeds(limit: np.ndarray) -> np.ndarray:
    """Return limits of velocity or its rates; infinite where the description has none, or 0."""
    return np.where(limit > 0.0, limit, np.inf)


class MotionGuard:
    """
    Keep the torques of a control law from driving joints beyond their limits.

    Below, g includes the torques that hold springs.

    Torques of joints near their limits are first clamped to the effort limits. With an upper limit
    q_u, a zone of width w before it, and the inertia m = M_jj,

        d = max(0, q - max(q_u - w, min(q_r, q_u)))       depth in the zone
        tau <- g + max(0, 1 - 2 d/w) (tau - g)            if tau - g > 0
        tau <- tau - m max(0, W^2 d + 2 W min(d/w, 1) v)  W = 20/s

    and likewise at the lower limit. If the reference q_r is inside the zone, the zone begins
    there, so that motions up to the limit are possible. The spring is damped, but never pushes
    outwards. In the outer half of the zone, outward torques are limited to gravity.

    For each joint with a velocity limit v_l that is exceeded by e = abs(v) - v_l > 0,

        tau <- g + max(0, 1 - e / (0.5 v_l)) (tau - g)    if (tau - g) v > 0
        tau <- tau - 20/s m e sign(v)

    Decelerating torques are unchanged. Both are continuous in q, v and tau.

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
        self._fastest = (velocity * stated_speeds(tree.velocity_limit) if velocity
                         else np.full(tree.nv, np.inf))
        self._strongest = model.effort_limit
        self.stopping = self.braking = np.zeros(model.nv, bool)

    def limit(self, tau: np.ndarray, q: npt.ArrayLike, v: npt.ArrayLike,
              q_r: npt.ArrayLike | None = None, age: float = 0.002) -> np.ndarray:
        """
        Return torques that respect the limits of the joints.

        Parameters
        ----------
        tau : ndarray, shape (model.nv,)
            Torques of the control law, N m or N.
        q, v, q_r : array_like
            Measured configuration (model.nq,), rad or m, and velocity (model.nv,), rad/s or m/s;
            reference configuration (model.nq,), if there is one.

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
        terms = self._workspace.configuration_terms(q)
        g, M = terms.g + all_springs(self._model, q), terms.M
        outwards, depth = np.sign(depth), np.abs(depth)

        # Velocities of all joints per impulse on them; joints without inertia are not held.
        inverse = np.linalg.inv(M + LEAST_INERTIA * np.trace(M) * np.eye(len(M)))
        mobility = inverse if G is None else G @ inverse @ G.T
        inertia = 1.0 / np.maximum(np.diag(mobility), LEAST_MOBILITY)
        root = np.sqrt(inertia[near])
        coupling = np.linalg.norm(root[:, None] * mobility[np.ix_(near, near)] * root, 2)
        rate = min(RATE, MARGIN / (coupling * age)) if age > 0.0 else RATE
        held = -rate * inertia * (
            outwards * np.minimum(depth / width, 1.0)
            * np.maximum(outwards * V + 0.25 * rate * depth, 0.0) + 0.5 * excess * np.sign(V))

        def guarded(push: np.ndarray) -> np.ndarray:
            """Return what pushes on the joints, instead of tau - g."""
            push = np.where(outwards * push > 0.0,
                            np.maximum(1.0 - 2.0 * depth / width, 0.0), 1.0) * push
            push = np.where(V * push > 0.0, np.maximum(
                1.0 - excess / (OVERSPEED * self._fastest), 0.0), 1.0) * push
            return np.where(push * held <= 0.0, push + held,
                            np.where(np.abs(push) > np.abs(held), push, held))
        tau = np.where(near[own], np.clip(tau, -self._strongest, self._strongest), tau)
        push = np.zeros(len(V))
        push[own] = tau - g
        tau = g + guarded(push)[own]
        for k in np.setdiff1d(np.flatnonzero(near), own):
            # The torques that accelerate only this joint by 1 have the work of its inertia.
            push = np.zeros(len(V))
            push[k] = inertia[k] * (G[k] @ inverse @ (tau - g))
            tau = tau + G[k] * (guarded(push)[k] - push[k])
        return tau
