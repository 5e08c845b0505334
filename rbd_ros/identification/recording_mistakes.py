# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Find common mistakes in recordings by undoing them: exchanged joints, wrong signs, degrees.

If the torques fit much better after a change, it was a mistake. A few hundred states suffice.
The criterion is the fraction of the squared torques that the best parameters leave unexplained,
each joint's torques in units of their size.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.parameters import base_of, RobotParameters, States
from rbd_ros.identification.reduction import states_of
from rbd_ros.recordings.samples import Samples

# Rows per parameter, and smallest number of states used.
ROWS_PER_PARAMETER, MIN_STATES = 30, 300
# Unexplained fraction of the squared torques up to which no mistake is suspected; ratio to which
# undoing a mistake must reduce it; smallest reduction by one step of the search.
NEGLIGIBLE_ERROR, MAX_ERROR_RATIO, MIN_GAIN = 1e-3, 0.3, 0.01
FULL_TURN = 2.0 * np.pi  # Angles beyond this suggest degrees, rad.
MAX_PAIRS = 60  # Most pairs of joints that are tried; for robots with more, only neighbours.
# Width of the beam search over orders of joints; it is 1 for robots with more joints than this, or
# if less than this fraction is unexplained.
BEAM_WIDTH, MAX_BEAM_JOINTS, MIN_BEAM_ERROR = 12, 8, 0.05
RIDGE = 1e-10  # Ridge term, relative to unit columns: keeps nearly dependent columns solvable.
FRICTION = ('.damping', '.friction')  # Suffixes of the friction coefficients.


def find_mistake(parameters: RobotParameters, samples: Samples) -> str | None:
    """Return a message about the mistake whose undoing improves the fit most, or None."""
    recording = _RecordingTest(parameters, samples)
    error = recording.unexplained(recording.states, recording.tau, recording.use)
    if error <= NEGLIGIBLE_ERROR:
        return None
    best, found = min(recording.outcomes())
    return found if best < MAX_ERROR_RATIO * error else None


class _RidgeFit:
    """Least squares with unit columns, nearly dependent ones included."""

    def __init__(self, A: np.ndarray) -> None:
        self._A = A
        self._L = np.linalg.cholesky(A.T @ A + RIDGE * np.eye(A.shape[1]))

    def unexplained(self, b: np.ndarray) -> float:
        """Return the fraction of |b|^2 that no combination of the columns explains."""
        explained = np.linalg.solve(self._L, self._A.T @ b)
        return float(1.0 - explained @ explained / max(b @ b, np.finfo(float).tiny))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the combination of columns that explains b best."""
        return np.linalg.solve(self._L.T, np.linalg.solve(self._L, self._A.T @ b))


class _RecordingTest:
    """A subset of the states of a recording, and its unexplained fraction after a change."""

    def __init__(self, parameters: RobotParameters, samples: Samples) -> None:
        self._parameters, self._model = parameters, parameters.model
        base, _ = base_of(parameters)
        self._independent, self._names = base.independent, base.names
        rows = np.flatnonzero(np.any(samples.usable, axis=1))
        wanted = max(MIN_STATES, ROWS_PER_PARAMETER * len(base.names) // self._model.nv)
        rows = rows[::max(1, len(rows) // wanted)]
        self.states = States(*(x[rows] for x in states_of(samples)))
        self.tau, self.use = samples.tau[rows], samples.usable[rows]

    def _weighted_fit(self, states: States, tau: np.ndarray, use: np.ndarray
                      ) -> tuple[_RidgeFit, np.ndarray, np.ndarray]:
        """Return the fit, the known torques and weights that scale torques to unit size."""
        size = np.sqrt(np.sum(tau ** 2, axis=0, where=use) / np.maximum(use.sum(axis=0), 1))
        weight = np.where(use, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
        Y = self._parameters.regressor(states)[:, :, self._independent] * weight[:, :, None]
        norm = np.linalg.norm(Y, axis=(0, 1))
        A = (Y / np.where(norm > 0.0, norm, 1.0)).reshape(-1, Y.shape[2])
        return _RidgeFit(A), self._parameters.known(states), weight

    def unexplained(self, states: States, tau: np.ndarray, use: np.ndarray) -> float:
        """Return the fraction of the squared torques that no parameters explain."""
        fit, known, weight = self._weighted_fit(states, tau, use)
        return fit.unexplained(((tau - known) * weight).ravel())

    def outcomes(self) -> Iterator[tuple[float, str]]:
        """Yield the unexplained fraction after undoing each mistake, and its message."""
        yield self._try_signs()
        yield from self._try_degrees()
        yield from self._try_orders()

    def _try_signs(self) -> tuple[float, str]:
        """Flip the sign of the efforts, joint by joint, as long as that helps."""
        fit, known, weight = self._weighted_fit(self.states, self.tau, self.use)
        names, nv = self._model.velocity_names, self._model.nv

        def torques(signs: np.ndarray) -> np.ndarray:
            return ((signs * self.tau - known) * weight).ravel()

        signs = np.ones(nv)
        error = fit.unexplained(torques(signs))
        while True:
            flipped = signs * (1.0 - 2.0 * np.eye(nv))
            outcomes = [fit.unexplained(torques(one)) for one in flipped]
            if min(outcomes) > max(error - MIN_GAIN, MAX_ERROR_RATIO * error):
                break
            error, signs = min(outcomes), flipped[np.argmin(outcomes)]
        # All signs flipped fit equally well: choose the physical alternative.
        if self._positive_functional(weight) @ fit.solve(torques(signs)) < 0.0:
            signs = -signs
        return error, wrong_sign_message([name for name, sign in zip(names, signs) if sign < 0.0])

    def _positive_functional(self, weight: np.ndarray) -> np.ndarray:
        """Return weights of the scaled parameters whose sum is positive for every real robot."""
        q, v, a, _ = self.states
        still = np.zeros_like(v)
        Y, Y_moved, Y_still = (
            self._parameters.regressor(one)[:, :, self._independent] for one in (
                self.states, States(q, still, a, still), States(q, still, still, still)))
        friction = np.array([name.endswith(FRICTION) for name in self._names])
        # Friction dissipates power; without friction columns, inertia forces oppose acceleration.
        energy = (np.where(friction, np.einsum('sj,sjp->p', v, Y), 0.0) if np.any(friction)
                  else np.einsum('sj,sjp->p', a, Y_moved - Y_still))
        norm = np.linalg.norm(Y * weight[:, :, None], axis=(0, 1))
        return energy / np.where(norm > 0.0, norm, 1.0)

    def _try_degrees(self) -> Iterator[tuple[float, str]]:
        angular = self._model.angular
        if self._model.nq != self._model.nv:
            return
        if np.any(np.abs(self.states.q[:, angular]) > FULL_TURN):
            unit = np.where(angular, np.pi / 180.0, 1.0)
            states = States(self.states.q * unit, self.states.v * unit, self.states.a * unit,
                            self.states.s)
            yield (self.unexplained(states, self.tau, self.use),
                   'positions seem to be in degrees: convert positions and velocities to radians')

    def _try_orders(self) -> Iterator[tuple[float, str]]:
        """Exchange joints, or their efforts only, pair by pair, as long as that helps."""
        nv = self._model.nv
        if self._model.nq != nv:
            return
        pairs = list(combinations(range(nv), 2))
        if len(pairs) > MAX_PAIRS:
            pairs = list(pairwise(range(nv)))

        def efforts(order: np.ndarray) -> float:
            return self.unexplained(self.states, self.tau[:, order], self.use[:, order])

        def joints(order: np.ndarray) -> float:
            return self.unexplained(States(*(x[:, order] for x in self.states)),
                                    self.tau[:, order], self.use[:, order])

        for with_states, error_of in ((False, efforts), (True, joints)):
            error, order = _best_order(nv, pairs, error_of)
            if np.any(order != np.arange(nv)):
                yield error, _exchange_message(self._model.velocity_names, order.tolist(),
                                               with_states)


def _best_order(count: int, pairs: Sequence[tuple[int, int]],
                error_of: Callable[[np.ndarray], float]) -> tuple[float, np.ndarray]:
    """Return the least unexplained fraction and its order: a beam search over exchanges."""
    first = tuple(range(count))
    errors = {first: error_of(np.arange(count))}
    best, beam = first, [first]
    width = BEAM_WIDTH if errors[first] > MIN_BEAM_ERROR and count <= MAX_BEAM_JOINTS else 1
    for _ in range(count - 1):
        for order in beam:
            for i, j in pairs:
                other = list(order)
                other[i], other[j] = order[j], order[i]
                if tuple(other) not in errors:
                    errors[tuple(other)] = error_of(np.array(other))
        beam = sorted(errors, key=lambda order: errors[order])[:width]
        if errors[beam[0]] <= max(errors[best] - MIN_GAIN, MAX_ERROR_RATIO * errors[best]):
            best = beam[0]
        elif width == 1:
            break
        if errors[best] <= NEGLIGIBLE_ERROR:
            break
    return errors[best], np.array(best)


def _exchange_message(names: Sequence[str], order: Sequence[int], with_states: bool) -> str:
    """Return the message for joints whose states and efforts, or efforts only, are exchanged."""
    moved = [k for k, other in enumerate(order) if k != other]
    if len(moved) == 2:
        i, j = moved
        if with_states:
            return (f"'{names[i]}' and '{names[j]}' seem to be exchanged: check the order in "
                    'which they were recorded, and exchange their names')
        return (f"the efforts of '{names[i]}' and '{names[j]}' seem to be exchanged: check the "
                'order in which they were recorded')
    if with_states:
        return (listed(f"'{names[order[k]]}' looks like '{names[k]}'" for k in moved)
                + ': check the order in which the joints were recorded, and rename them')
    return (listed(f"the efforts of '{names[order[k]]}' look like those of '{names[k]}'"
                   for k in moved) + ': check the order in which they were recorded')


def wrong_sign_message(names: Sequence[str]) -> str:
    """Return the message for joints whose efforts have the wrong sign."""
    scale = ' '.join(f'{name}=-1' for name in names)
    return (f'the efforts of {listed(names)} have the wrong sign: multiply them by -1 (--scale '
            f'{scale}; negative effort_convention.state_constants of the node)')
