# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Hypotheses compete: least squares on some samples, judged on others, with a price per size.

Friction is no hypothesis: it is projected out of the torques of each joint. What is left is
reduced to the products of all columns, for each joint and part of the time, so that each set of
hypotheses is judged in a fraction of a millisecond. The score of a set is

    sum over joints of n_j log(squares left in held-out parts)
        + log(n) (fitted sizes) + |sizes / prior deviation|^2,

where n_j are the independent samples of a joint [Schwarz (1978) for the price; Stone (1974) for
held-out samples]. Its deviations are those of the jackknife over the parts.

"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.identification.diagnosis.hypotheses import Change, DRIVING, FACTORS, HYPOTHESES, WEAK
from rbd_ros.identification.diagnosis.motion import Motion, span
from rbd_ros.identification.least_squares import mass_scales
from rbd_ros.model.changes.friction import friction

FOLDS, ROUNDS = 4, 3
# What may be fitted without being a finding: errors of the masses, relative, and of the inertias
# of bodies of that mass.
MASSES, MASS_ERROR = 'masses', 0.25
# Score that a larger set must gain; sets that are enlarged next; and the largest number of
# hypotheses in one.
MIN_GAIN, BEAM, MOST = 10.0, 6, 4
MIN_ROWS = 3
ABOUT_ONE = 0.03    # Error of a factor that filters and linearisation may leave.
# Longest distance, in rows, at which errors count as correlated, and the least correlation.
MAX_LAG, MIN_CORRELATION = 40, 0.05
ROUNDING, RANK = 1e-12, 1e-10


class Candidate(NamedTuple):
    """A hypothesis that may be chosen."""

    kind: str
    change: Change
    columns: np.ndarray     # of int


class Fitted(NamedTuple):
    """A set of hypotheses, fitted."""

    chosen: tuple[int, ...]
    score: float
    dof: float              # number of sizes that the samples determine
    sizes: np.ndarray       # (columns,) of all hypotheses in the set
    left: np.ndarray        # (nv,) squares left in all samples


class Competition:
    """The candidates and their products."""

    def __init__(self, motion: Motion, kinds: Collection[str], nuisance: Collection[str]) -> None:
        self.motion = motion
        model, tau = motion.model, motion.tau
        self.candidates: list[Candidate] = []
        columns, deviation = [], []
        size = np.sqrt(np.mean(tau ** 2 + motion.described ** 2))
        if MASSES in nuisance:
            columns.append(motion.regressor * motion.factor[:, None])
            deviation.append(MASS_ERROR * mass_scales(model))
        count = sum(x.shape[2] for x in columns)
        self.always = list(range(count))
        for kind in kinds:
            changes = HYPOTHESES[kind].changes
            for change in changes(motion) if changes else ():
                norm = np.sqrt(np.mean(change.columns ** 2, axis=(0, 1)))
                if not np.any(norm > ROUNDING * size):
                    continue
                own = count + np.arange(change.columns.shape[2])
                count += len(own)
                self.candidates.append(Candidate(kind, change, own))
                columns.append(change.columns if kind in FACTORS
                               else change.columns * motion.factor[:, None])
                deviation.append(WEAK * size / np.maximum(norm, ROUNDING * size)
                                 if change.deviation is None else change.deviation)
        X = np.concatenate([*columns, (tau - motion.described)[:, :, None]], axis=2)
        self.scale = np.concatenate([*deviation, np.ones(1)])
        self.X, self.columns = X * self.scale, X
        blocks, nv = int(motion.block[-1]) + 1, model.nv
        self.G = np.zeros((blocks, nv, len(self.scale), len(self.scale)))
        drives = [motion.states.v, motion.states.s, *(
            x for kind, x in (('rotor', motion.states.a), ('torque_offset', np.ones_like(tau)))
            if kind in nuisance)]
        self.drives = np.stack(drives, axis=2).swapaxes(0, 1)   # (nv, rows, columns)
        # Work of the friction that explains each column, and of the declared one; its margin.
        self.work, (self.declared_work, self.margin, self.motion_size, self.rows) = np.zeros(
            (nv, len(self.scale))), np.zeros((4, nv))
        for j in range(nv):
            use = np.flatnonzero(motion.use[:, j])
            if len(use) < MIN_ROWS:
                continue
            N = self.drives[j, use]
            Q = span(N)
            A = self.X[use, j] - Q @ (Q.T @ self.X[use, j])
            v = motion.states.v[use, j]
            self.work[j] = (v @ N[:, :2]) @ np.linalg.pinv(N)[:2] @ self.X[use, j]
            self.declared_work[j] = v @ friction(model, *(
                x[use] for x in (motion.states.v, motion.states.s, motion.states.v)))[:, j]
            self.motion_size[j] = v @ v
            self.margin[j] = DRIVING * np.sqrt(v @ v * np.sum(tau[use, j] ** 2))
            self.X[use, j] = A
            self.rows[j] = len(use)
            for b in np.unique(motion.block[use]):
                one = A[motion.block[use] == b]
                self.G[b, j] = one.T @ one
        self.active = self.G[:, :, -1, -1].sum(axis=0) > 0.0
        self.whole = self.G.sum(axis=0)
        self.by_fold = np.array([self.G[f::FOLDS].sum(axis=0) for f in range(FOLDS)])
        self.total = np.where(self.active, self.whole[:, -1, -1], 1.0)
        self.count = self.rows / self._correlation()
        self.price = np.log(max(np.sum(self.count), 2.0))

    def _correlation(self) -> np.ndarray:
        """Return how many rows of each joint count as one, once all columns are fitted."""
        n = len(self.scale) - 1
        beta, left = np.zeros(n), self.total
        for _ in range(2 * ROUNDS):
            A = self._weighted(self.whole, self.rows / left)
            unit = 1.0 / np.sqrt(np.maximum(np.diag(A), ROUNDING))
            beta = unit[:n] * (np.linalg.pinv((A * np.outer(unit, unit))[:n, :n], RANK,
                                              hermitian=True) @ (unit[:n] * A[:n, n]))
            z = np.append(-beta, 1.0)
            left = np.maximum(np.einsum('a,jab,b->j', z, self.whole, z), ROUNDING * self.total)
        e, self.noise = self.X @ z, left
        found, block = np.ones(len(self.rows)), self.motion.block
        for j in np.flatnonzero(self.active):
            for lag in range(1, MAX_LAG + 1):
                both = self.motion.use[lag:, j] & self.motion.use[:-lag, j] & (
                    block[lag:] == block[:-lag])
                x, y = e[lag:, j][both], e[:-lag, j][both]
                rho = x @ y / max(np.sqrt((x @ x) * (y @ y)), np.finfo(float).tiny)
                if rho <= MIN_CORRELATION:
                    break
                found[j] += 2.0 * rho
        return found

    def _weighted(self, H: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the products (..., nv, n, n) summed over the joints that move."""
        return np.einsum('j,...jab->...ab', np.where(self.active, weights, 0.0), H)

    def reduction(self, chosen: tuple[int, ...]) -> np.ndarray:
        """Return the columns that are fitted, and what fixed ones leave, (columns, n + 1)."""
        free, last = self._free(chosen), len(self.scale) - 1
        C = np.zeros((last + 1, len(free) + 1))
        C[free, np.arange(len(free))] = C[last, -1] = 1.0
        for one in (self.candidates[k] for k in chosen):
            if one.change.fixed is not None:
                C[one.columns, -1] = -one.change.fixed / self.scale[one.columns]
        return C

    def mirrored(self, chosen: tuple[int, ...]) -> np.ndarray:
        """Return the signs (nv, columns) that columns have if efforts have the other sign."""
        flipped = self.factor([k for k in chosen if self.candidates[k].kind == 'sign']) < 0.0
        kept = np.zeros(len(self.scale), bool)
        kept[[-1, *(c for one in self.candidates if one.kind in FACTORS for c in one.columns)]] = 1
        return np.where(flipped[:, None] & ~kept, -1.0, 1.0)

    def products(self, chosen: tuple[int, ...], C: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the products of reduced columns."""
        free = [*self._free(chosen), len(self.scale) - 1]
        fixed = np.setdiff1d(np.flatnonzero(C[:, -1]), free)
        used = np.append(free, fixed)
        H, S = G[:, :, used[:, None], used], self.mirrored(chosen)[:, used]
        if np.any(S < 0.0):
            H *= S[:, :, None] * S[:, None]
        return C[used].T @ H @ C[used] if len(fixed) else H

    def fit(self, chosen: tuple[int, ...]) -> Fitted:
        """Fit a set of hypotheses, and judge it."""
        C = self.reduction(chosen)
        H = self.products(chosen, C, self.by_fold)
        whole, n = H.sum(axis=0), H.shape[-1] - 1
        left = self.noise
        for _ in range(ROUNDS):
            beta = _solved(self._weighted(whole, self.count / left))
            left = self._left(beta, whole)
        parts = self._weighted(H, self.count / left)
        A = parts.sum(axis=0)
        dof = n - np.trace(_inverse(A))
        held_out = sum(map(self._left, _solved(A - parts), H))
        score = (np.sum(self.count * np.log(held_out / self.total)) + self.price * dof
                 + beta @ beta)
        sizes = beta * self.scale[self._free(chosen)]
        factor = self.factor(chosen, sizes)
        for one, own in self.own(chosen):
            if one.change.fixed is None and not (sizes[own][0] >= one.change.least and HYPOTHESES[
                    one.kind].valid(sizes[own], self.motion.model)):
                score = np.inf
        # Friction that drives the joint is as unlikely as its work is in units of the noise.
        work = (self.declared_work + self.margin / np.abs(factor)
                + (self.work * self.mirrored(chosen)) @ C @ np.append(-beta, 1.0) / factor)
        drives = np.minimum(work, 0.0) ** 2 * factor ** 2 * self.count
        score += np.sum(drives / np.maximum(left * self.motion_size, np.finfo(float).tiny))
        return Fitted(chosen, float(score), float(dof), sizes, left)

    def _free(self, chosen: tuple[int, ...]) -> list[int]:
        return [*self.always, *(c for k in chosen if self.candidates[k].change.fixed is None
                                for c in self.candidates[k].columns)]

    def own(self, chosen: Sequence[int]) -> list[tuple[Candidate, slice]]:
        """Return the candidates of a set, and which of its sizes are theirs."""
        found, first = [], len(self.always)
        for k in chosen:
            one = self.candidates[k]
            count = 0 if one.change.fixed is not None else len(one.columns)
            found.append((one, slice(first, first + count)))
            first += count
        return found

    def factor(self, chosen: Sequence[int], sizes: np.ndarray | None = None,
               kinds: Collection[str] = FACTORS) -> np.ndarray:
        """Return the factors of the efforts (nv,) that a set contains."""
        factor = np.ones(len(self.rows))
        for one, own in self.own(chosen):
            if one.kind in kinds:
                joints = map(self.motion.model.velocity_names.index, one.change.joints)
                fixed: Any = one.change.fixed
                factor[[*joints]] *= 1.0 + (fixed if sizes is None or fixed is not None
                                            else sizes[own])
        return factor

    def _left(self, beta: np.ndarray, H: np.ndarray) -> np.ndarray:
        z = np.append(-beta, 1.0)
        return np.maximum(H @ z @ z, ROUNDING * self.total)

    def misfit(self, left: np.ndarray, best: Fitted) -> float:
        """Return the squares (nv,) that are left, in units of what the best set leaves."""
        return float(np.sum(self.count * left / best.left))

    def rest(self, one: Fitted) -> np.ndarray:
        """Return what a set leaves of the efforts before friction is fitted, (rows, nv)."""
        z = self.scale * self.reduction(one.chosen)[:, -1]
        z[self._free(one.chosen)] = -one.sizes
        return (self.columns * self.mirrored(one.chosen)) @ z

    def drive_sizes(self, rest: np.ndarray, use: np.ndarray) -> np.ndarray:
        """Return the sizes of friction that explain a rest best, (nv, columns)."""
        return np.array([np.linalg.lstsq(N[rows], x[rows], rcond=None)[0]
                         for N, x, rows in zip(self.drives, rest.T, use.T)])

    def unexplained(self, one: Fitted) -> float:
        """Return the share of the squared efforts that a set leaves, averaged over the joints."""
        size = np.sum(self.motion.tau ** 2, axis=0, where=self.motion.use)
        return float(np.mean(np.minimum(one.left / np.maximum(size, 1e-300), 1.0)))

    def search(self) -> Fitted:
        """Return the best set: sets are enlarged while that gains enough."""
        best = self.fit(())
        beam, seen = [best], {best.chosen}
        for _ in range(MOST):
            larger = []
            for one in beam:
                for k in range(len(self.candidates)):
                    chosen = tuple(sorted({*one.chosen, k}))
                    if chosen not in seen:
                        seen.add(chosen)
                        larger.append(self.fit(chosen))
            beam = sorted(larger, key=lambda one: one.score)[:BEAM]
            if not beam or beam[0].score > best.score - MIN_GAIN:
                break
            best = beam[0]
        # Factors of about -1 are signs.
        signs = {one.change.joints: k for k, one in enumerate(self.candidates)
                 if one.kind == 'sign'}
        plain = {signs.get(one.change.joints, k) if one.kind in FACTORS and np.all(np.abs(
            best.sizes[own] + 2.0) < ABOUT_ONE) else k
            for k, (one, own) in zip(best.chosen, self.own(best.chosen))}
        return self.fit(tuple(sorted(plain))) if plain != {*best.chosen} else best

    def jackknife(self, found: Fitted) -> np.ndarray:
        """Return the sizes that all samples but one part give, (parts, sizes)."""
        H = self.products(found.chosen, self.reduction(found.chosen), self.G)
        parts = self._weighted(H, self.count / found.left)
        return _solved(parts.sum(axis=0) - parts) * self.scale[self._free(found.chosen)]


def _inverse(A: np.ndarray) -> np.ndarray:
    """Return the inverse of products (..., n + 1, n + 1) without the last, with the prior's."""
    eye = np.eye(A.shape[-1] - 1)
    unit = 1.0 / np.sqrt(np.diagonal(A, axis1=-2, axis2=-1)[..., :-1] + 1.0)
    scale = unit[..., :, None] * unit[..., None, :]
    # Dependent columns stay solvable.
    return np.linalg.inv((A[..., :-1, :-1] + eye) * scale + ROUNDING * eye) * scale


def _solved(A: np.ndarray) -> np.ndarray:
    """Return the sizes (..., n) that products (..., n + 1, n + 1) and the prior give."""
    return np.asarray((_inverse(A) @ A[..., :-1, -1:])[..., 0])
