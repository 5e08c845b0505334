# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Mistakes of recordings that are found by undoing them: if torques fit much better then, it was one.

A few hundred states are enough. What is compared is the share of the torques that the best
parameters leave unexplained, each joint's torques in units of their size.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.parameters import base_of, RobotParameters, States
from rbd_ros.identification.partials import states_of
from rbd_ros.recordings.samples import Samples

# Rows for every parameter, and states at least.
ROWS_PER_PARAMETER, LEAST_STATES = 30, 300
# Unexplained share of the squares of the torques above which mistakes are looked for, and to which
# share of itself it must shrink if one is undone. A step towards that explains so much more.
UNEXPLAINED, SHRINKS, GAIN = 1e-3, 0.3, 0.01
# Angles beyond which degrees are thought of, rad.
TURN = 2.0 * np.pi
# Pairs of joints that are tried; of robots with more, neighbours.
PAIRS = 60
# How many orders of joints are followed up, of robots with at most so many joints, if more than
# this share is unexplained; otherwise only the best one is.
BEAM, FEW, MIXED = 12, 8, 0.05
# Share of a column by which it counts as independent of the others.
RIDGE = 1e-10
# How the names of friction's coefficients end.
FRICTION = ('.damping', '.friction')


def mistake(parameters: RobotParameters, samples: Samples) -> str | None:
    """
    Return what is wrong with a recording, if undoing it makes torques fit much better.

    Parameters
    ----------
    parameters : RobotParameters
        What explains torques.
    samples : Samples
        The recording.

    Returns
    -------
    str or None
        A sentence that says what to do.

    """
    trial = _Trial(parameters, samples)
    left = trial.unexplained(trial.states, trial.tau, trial.use)
    if left <= UNEXPLAINED:
        return None
    best, found = min(trial.outcomes())
    return found if best < SHRINKS * left else None


class _Fit:
    """Least squares of columns that are of one size, nearly dependent ones included."""

    def __init__(self, A: np.ndarray) -> None:
        self._A = A
        self._L = np.linalg.cholesky(A.T @ A + RIDGE * np.eye(A.shape[1]))

    def unexplained(self, b: np.ndarray) -> float:
        """Return the share of |b|^2 that no combination of the columns explains."""
        explained = np.linalg.solve(self._L, self._A.T @ b)
        return float(1.0 - explained @ explained / max(b @ b, np.finfo(float).tiny))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the combination that explains b best."""
        return np.linalg.solve(self._L.T, np.linalg.solve(self._L, self._A.T @ b))


class _Trial:
    """Some states of a recording."""

    def __init__(self, parameters: RobotParameters, samples: Samples) -> None:
        self._parameters, self._model = parameters, parameters.model
        base, _ = base_of(parameters)
        self._independent, self._names = base.independent, base.names
        rows = np.flatnonzero(np.any(samples.usable, axis=1))
        wanted = max(LEAST_STATES, ROWS_PER_PARAMETER * len(base.names) // self._model.nv)
        rows = rows[::max(1, len(rows) // wanted)]
        self.states = States(*(x[rows] for x in states_of(samples)))
        self.tau, self.use = samples.tau[rows], samples.usable[rows]

    def _columns(self, states: States, tau: np.ndarray, use: np.ndarray
                 ) -> tuple[_Fit, np.ndarray, np.ndarray]:
        """Return regressor, known torques and weights, for torques in units of their size."""
        size = np.sqrt(np.sum(tau ** 2, axis=0, where=use) / np.maximum(use.sum(axis=0), 1))
        weight = np.where(use, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
        Y = self._parameters.regressor(states)[:, :, self._independent] * weight[:, :, None]
        norm = np.linalg.norm(Y, axis=(0, 1))
        A = (Y / np.where(norm > 0.0, norm, 1.0)).reshape(-1, Y.shape[2])
        return _Fit(A), self._parameters.known(states), weight

    def unexplained(self, states: States, tau: np.ndarray, use: np.ndarray) -> float:
        """Return the share of the squares of the torques that no parameters explain."""
        fit, known, weight = self._columns(states, tau, use)
        return fit.unexplained(((tau - known) * weight).ravel())

    def outcomes(self) -> Iterator[tuple[float, str]]:
        """Return what is left unexplained for every mistake that is undone, and its sentence."""
        yield self._signs()
        yield from self._degrees()
        yield from self._orders()

    def _signs(self) -> tuple[float, str]:
        """Negate the efforts of one joint after the other, as long as that helps."""
        fit, known, weight = self._columns(self.states, self.tau, self.use)
        names, nv = self._model.velocity_names, self._model.nv

        def torques(signs: np.ndarray) -> np.ndarray:
            return ((signs * self.tau - known) * weight).ravel()

        signs = np.ones(nv)
        left = fit.unexplained(torques(signs))
        while True:
            flipped = signs * (1.0 - 2.0 * np.eye(nv))
            outcomes = [fit.unexplained(torques(one)) for one in flipped]
            if min(outcomes) > max(left - GAIN, SHRINKS * left):
                break
            left, signs = min(outcomes), flipped[np.argmin(outcomes)]
        # Negated altogether they fit as well.
        if self._positive(weight) @ fit.solve(torques(signs)) < 0.0:
            signs = -signs
        return left, wrong_sign([name for name, sign in zip(names, signs) if sign < 0.0])

    def _positive(self, weight: np.ndarray) -> np.ndarray:
        """Return a sum of parameters, as columns have them, that is positive of all robots."""
        q, v, a, _ = self.states
        still = np.zeros_like(v)
        Y, Y_moved, Y_still = (
            self._parameters.regressor(one)[:, :, self._independent] for one in (
                self.states, States(q, still, a, still), States(q, still, still, still)))
        friction = np.array([name.endswith(FRICTION) for name in self._names])
        # Friction takes energy; if there is none, acceleration takes it.
        energy = (np.where(friction, np.einsum('sj,sjp->p', v, Y), 0.0) if np.any(friction)
                  else np.einsum('sj,sjp->p', a, Y_moved - Y_still))
        norm = np.linalg.norm(Y * weight[:, :, None], axis=(0, 1))
        return energy / np.where(norm > 0.0, norm, 1.0)

    def _degrees(self) -> Iterator[tuple[float, str]]:
        """Take angles for degrees."""
        angular = self._model.angular
        if self._model.nq == self._model.nv and np.any(np.abs(self.states.q[:, angular]) > TURN):
            unit = np.where(angular, np.pi / 180.0, 1.0)
            states = States(self.states.q * unit, self.states.v * unit, self.states.a * unit,
                            self.states.s)
            yield (self.unexplained(states, self.tau, self.use),
                   'positions seem to be in degrees: convert them, and velocities, to radians')

    def _orders(self) -> Iterator[tuple[float, str]]:
        """Exchange joints, or their efforts alone, pair after pair, as long as that helps."""
        nv = self._model.nv
        if self._model.nq != nv:
            return
        pairs = list(combinations(range(nv), 2))
        if len(pairs) > PAIRS:
            pairs = list(pairwise(range(nv)))

        def efforts(order: np.ndarray) -> float:
            return self.unexplained(self.states, self.tau[:, order], self.use[:, order])

        def joints(order: np.ndarray) -> float:
            return self.unexplained(States(*(x[:, order] for x in self.states)),
                                    self.tau[:, order], self.use[:, order])

        for whole, left_by in ((False, efforts), (True, joints)):
            left, order = _best_order(nv, pairs, left_by)
            if np.any(order != np.arange(nv)):
                yield left, exchanged(self._model.velocity_names, order.tolist(), whole)


def _best_order(count: int, pairs: Sequence[tuple[int, int]],
                left_by: Callable[[np.ndarray], float]) -> tuple[float, np.ndarray]:
    """Return what is left by the best order, and that order: a beam search over exchanges."""
    first = tuple(range(count))
    lefts = {first: left_by(np.arange(count))}
    best, beam = first, [first]
    width = BEAM if lefts[first] > MIXED and count <= FEW else 1
    for _ in range(count - 1):
        for order in beam:
            for i, j in pairs:
                other = list(order)
                other[i], other[j] = order[j], order[i]
                if tuple(other) not in lefts:
                    lefts[tuple(other)] = left_by(np.array(other))
        beam = sorted(lefts, key=lambda order: lefts[order])[:width]
        if lefts[beam[0]] <= max(lefts[best] - GAIN, SHRINKS * lefts[best]):
            best = beam[0]
        elif width == 1:
            break
        if lefts[best] <= UNEXPLAINED:
            break
    return lefts[best], np.array(best)


def exchanged(names: Sequence[str], order: Sequence[int], whole: bool) -> str:
    """Return the sentence for joints whose names, or efforts alone, are exchanged."""
    moved = [k for k, other in enumerate(order) if k != other]
    if len(moved) == 2:
        i, j = moved
        return (f"'{names[i]}' and '{names[j]}' seem to be exchanged: look in which order they "
                'were recorded, and exchange their names' if whole else
                f"the efforts of '{names[i]}' and '{names[j]}' seem to be exchanged: look in "
                'which order they were recorded')
    if whole:
        return (listed(f"'{names[order[k]]}' looks like '{names[k]}'" for k in moved)
                + ': look in which order joints were recorded, and rename them')
    return (listed(f"the efforts of '{names[order[k]]}' look like those of '{names[k]}'"
                   for k in moved) + ': look in which order they were recorded')


def wrong_sign(names: Sequence[str]) -> str:
    """Return the sentence for joints whose efforts have the wrong sign."""
    return (f'the efforts of {listed(names)} have the wrong sign: multiply them by -1')
