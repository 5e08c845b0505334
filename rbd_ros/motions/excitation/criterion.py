# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of excitation: condition number of the regressor, and distance to limits."""

import numpy as np
from rbd_ros import batch
from rbd_ros.analysis.regressors import friction_regressor
from rbd_ros.errors import StateError
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import moved
from rbd_ros.motions.excitation.fourier_series import RestBasis, whole_motion
from rbd_ros.motions.limits import Limits
from rbd_ros.workspace.passive_joints import all_springs, passive_friction, velocity_map

DRIVE_COLUMNS = ('viscous', 'coulomb', 'offset', 'rotor')  # Regressor columns of the drives.
ROUNDING = 1e-7  # Smaller pivots of QR, relative to the largest, are rounding errors.
# Random states per column of the regressor, as a sample of all states of the robot.
STATES_PER_COLUMN = 3
DRAWS = 4  # Positions of independent joints that are tried for each state with closed loops.
# Speed over which Coulomb friction changes its sign (for smoothness), as a fraction of the
# smallest velocity limit.
FRICTION_SMOOTHING = 0.05
# Step of the finite differences of the regressor, rad or m, per s, per s^2.
DIFFERENCE_STEP = 1e-8


class Criterion:
    """
    The logarithm of a condition number, plus a barrier at the limits, with gradient.

    With the base regressor Y of all samples, its rows scaled by the efforts of the joints and its
    columns by their size at random states within the limits, it is

        log(norm(Y) norm(pinv(Y))) - weight * (mean of the logarithms of the distances to limits)

    in Frobenius norms, a smooth upper bound of the logarithm of the condition number.

    """

    def __init__(self, model: Model, basis: RestBasis, limits: Limits,
                 rng: np.random.Generator) -> None:
        from scipy.linalg import qr  # Imported lazily: SciPy is slow to import.
        self._model, self._basis, self._limits = model, basis, limits
        self._smooth = FRICTION_SMOOTHING * float(np.min(limits.velocity))
        self._middle = 0.5 * (limits.lower + limits.upper)
        self._half = 0.5 * (limits.upper - limits.lower)
        # Subtract the largest discontinuous friction from the effort limits; the remaining
        # friction is linear in the velocity.
        self._effort = limits.effort - (
            model.friction + np.abs(model.friction_asymmetry) + model.stribeck_friction
            + np.abs(model.damping_asymmetry) * limits.velocity)
        for name, x in zip(model.velocity_names, self._effort):
            if not x > 0.0:
                raise StateError(f"the friction of '{name}' exceeds its effort limit: raise it")
        columns = 10 * len(model.links) + len(DRIVE_COLUMNS) * model.nv
        count = STATES_PER_COLUMN * columns // model.nv
        q = self._random_configurations(count, rng)
        v, a = (limit * rng.uniform(-1.0, 1.0, (count, model.nv))
                for limit in (limits.velocity, limits.acceleration))
        size = limits.effort
        if not np.all(np.isfinite(size)):
            size = np.sqrt(np.mean(batch.inverse_dynamics(model, q, v, a) ** 2, axis=0))
            size = np.maximum(size, 1e-9 * np.max(size) + 1e-300)
        # Of the regressor: scales of its rows and columns, and the columns that are kept.
        self._scale = 1.0 / size[:, None]
        self._kept: slice | np.ndarray = slice(None)
        Y = self._regressor(q, v, a).reshape(count * model.nv, -1)
        norm = np.sqrt(np.mean(Y ** 2, axis=0) * model.nv)
        seen = np.flatnonzero(norm > ROUNDING * np.max(norm))
        R, order = qr(Y[:, seen] / norm[seen], mode='r', pivoting=True)
        pivots = np.abs(np.diag(R))
        self._kept = np.sort(seen[order[:np.sum(pivots > ROUNDING * pivots[0])]])
        self._scale = self._scale / norm[self._kept]

    def _random_configurations(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return configurations within the limits, with closed loops."""
        shape, found = (count, self._model.nv), np.zeros((0, self._model.nq))
        for _ in range(DRAWS):
            q = self._middle + self._half * rng.uniform(-1.0, 1.0, shape)
            wholes = ([q] if self._model.loops is None else
                      [one for x in q if (one := self._whole(x[None])) is not None])
            found = np.concatenate((found, *wholes))[:count]
            if len(found) == count:
                return found
        raise StateError(f'the loops can be closed, within the limits of dependent joints, in '
                         f'{len(found)} of {DRAWS * count} random positions of the independent '
                         'joints only: give narrower limits of their positions')

    def _whole(self, q: np.ndarray) -> np.ndarray | None:
        """Return the configurations of positions, or None if dependent joints do not allow it."""
        found = whole_motion(self._model, q)
        return found if found is not None and self._limits.contain(found) else None

    def _regressor(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        Y = np.concatenate((batch.torque_regressor(self._model, q, v, a), friction_regressor(
            self._model, v, a, columns=DRIVE_COLUMNS, smooth=self._smooth)), axis=2)
        return Y[:, :, self._kept] * self._scale

    def condition_number(self, x: np.ndarray) -> float:
        """Return the condition number of the scaled base regressor of a motion."""
        basis = self._basis
        q = self._whole(basis.q @ x)
        if q is None:
            return np.inf
        Y = self._regressor(q, basis.v @ x, basis.a @ x)
        return float(np.linalg.cond(Y.reshape(-1, Y.shape[2])))

    # -- Limits. ----------------------------------------------------------------------------------
    def _effort_shares(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the efforts, with friction and springs, relative to their limits."""
        model = self._model
        tau = batch.inverse_dynamics(model, q, v, a) + model.damping * v + model.effort_offset
        return (tau + all_springs(model, q)
                + passive_friction(model, q, v, self._smooth)) / self._effort

    def _motion_shares(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        """Return positions about their middle and their rates, relative to their limits."""
        limits = self._limits
        return [(q - self._middle) / self._half, v / limits.velocity, a / limits.acceleration]

    def pose_margins(self, q: np.ndarray) -> np.ndarray:
        """Return the relative distances to effort limits at rest; negative in impossible poses."""
        margins = np.full(q.shape, -np.inf)
        for k, x in enumerate(q):
            whole, still = self._whole(x[None]), np.zeros((1, len(x)))
            if whole is not None:
                margins[k] = 1.0 - np.abs(self._effort_shares(whole, still, still)[0])
        return margins

    def margin(self, x: np.ndarray) -> float:
        """Return the least relative distance to a limit; negative outside."""
        q, v, a = self._basis.q @ x, self._basis.v @ x, self._basis.a @ x
        largest = float(np.max(np.abs(self._motion_shares(q, v, a))))
        if largest < 1.0:
            whole = self._whole(q)
            if whole is None:
                return -np.inf
            largest = max(largest, float(np.max(np.abs(self._effort_shares(whole, v, a)))))
        return 1.0 - largest

    # -- Value and gradient. ----------------------------------------------------------------------
    def __call__(self, x: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
        """Return value (infinite outside of the limits) and gradient for coefficients x."""
        # Limits of positions of dependent joints are no part of the barrier.
        basis, limits = self._basis, self._limits
        shape, x = x.shape, x.reshape(basis.size, self._model.nv)
        q, v, a = basis.q @ x, basis.v @ x, basis.a @ x
        whole, shares = self._whole(q), self._motion_shares(q, v, a)
        if whole is None or np.max(np.abs(shares)) >= 1.0:
            return np.inf, np.zeros(shape)
        both = self._both(whole, v, a)
        shares.append(both[:, :, -1])
        value, by_Y = _conditioning(both[:, :, :-1])
        if np.max(np.abs(shares[-1])) >= 1.0 or value == np.inf:
            return np.inf, np.zeros(shape)
        # The barrier: minus the mean logarithms of the distances to the limits.
        value -= weight * sum(float(np.mean(np.log1p(-z * z))) for z in shares)
        *by_motion, by_efforts = (weight * 2.0 * z / (1.0 - z * z) / z.size for z in shares)
        by_state = self._chain_rule(np.concatenate((by_Y, by_efforts[:, :, None]), axis=2), both,
                                    whole, v, a)
        gradient = sum(map_.T @ (through + direct / size) for map_, through, direct, size in zip(
            (basis.q, basis.v, basis.a), by_state, by_motion,
            (self._half, limits.velocity, limits.acceleration)))
        return value, gradient.reshape(shape)

    def _both(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return regressors (samples, nv, parameters), and shares of effort limits after them."""
        return np.concatenate((self._regressor(q, v, a), self._effort_shares(q, v, a)[:, :, None]),
                              axis=2)

    def _chain_rule(self, by_both: np.ndarray, both: np.ndarray, *states: np.ndarray
                    ) -> list[np.ndarray]:
        """Return derivatives with respect to q, v and a, given those with respect to `_both`."""
        model, samples = self._model, len(both)
        nv, tree = model.nv, model.unconstrained
        maps = (np.eye(nv)[None] if model.loops is None
                else np.array([velocity_map(model, one) for one in states[0]]))
        result = [np.zeros((samples, nv)) for _ in states]
        joints = max(1, batch.CHUNK // samples)
        for k, derivative in enumerate(result):
            for j in range(0, nv, joints):
                steps = DIFFERENCE_STEP * np.eye(nv)[j:j + joints, None]
                near = [x + (one == k) * steps for one, x in enumerate(states[1:], 1)]
                # Along the tangent, loops open by the square of the step.
                near.insert(0, moved(tree, np.repeat(states[0][None], len(steps), 0), (k == 0)
                                     * DIFFERENCE_STEP * maps.transpose(2, 0, 1)[j:j + joints]))
                change = self._both(*(x.reshape(-1, x.shape[-1]) for x in near)).reshape(
                    -1, samples, by_both[0].size)
                change -= both.reshape(samples, -1)
                derivative[:, j:j + joints] = np.einsum(
                    'jtk,tk->tj', change, by_both.reshape(samples, -1)) / DIFFERENCE_STEP
        return result


def _conditioning(Y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the logarithm of the condition number in Frobenius norms, and its derivative."""
    flat = Y.reshape(-1, Y.shape[2])
    # With F = Y^T Y: (log tr F + log tr F^-1) / 2, whose derivative with respect to Y is Y W.
    size, U = np.linalg.eigh(flat.T @ flat)
    if size[0] < ROUNDING ** 2 * size[-1]:
        return np.inf, Y
    trace, trace_inv = float(np.sum(size)), float(np.sum(1.0 / size))
    by_Y = Y @ ((U * (1.0 / trace - 1.0 / (trace_inv * size ** 2))) @ U.T)
    return 0.5 * float(np.log(trace) + np.log(trace_inv)), by_Y
