# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Maps of results of the tree to the coordinates of closed loops, v_tree = G(q) v.

A `Map` is a formula. Evaluated for objects of `Jet`, it maps derivatives of the result, too:
those by time, and those along coordinates, which need the same derivatives of G.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

# Given G and a result for the tree, returns that of the robot.
Map: TypeAlias = Callable[[Any, Any], Any]


class MotionMap(NamedTuple):
    """Maps all results of a quantity, which depend on rates of G."""

    # Given the workspace of the robot, which has G and its rates, results and arguments.
    run: Callable[[Any, Any, Mapping[str, Any]], Sequence[np.ndarray]]


def mapped_by(maps: Sequence[Map | MotionMap]) -> Callable[[Any, Any, Mapping[str, Any]], Any]:
    """Return the function that maps what a method of the tree returns, given as in `MotionMap`."""
    formulas = [one for one in maps if not isinstance(one, MotionMap)]
    if len(formulas) == 1 and formulas[0] is not same:
        formula, = formulas
        return lambda w, x, given: formula(w._G, x)

    def each(w: Any, found: Any, given: Mapping[str, Any]) -> Sequence[np.ndarray]:
        return [(x.copy() if w._fresh else x) if formula is same else formula(w._G, x)
                for formula, x in zip(formulas, found if isinstance(found, tuple) else [found])]
    run = next((one.run for one in maps if isinstance(one, MotionMap)), each)

    def mapped(w: Any, found: Any, given: Mapping[str, Any]) -> Any:
        results = run(w, found, given)
        if not isinstance(found, tuple):
            return results[0]
        return tuple(results) if type(found) is tuple else type(found)(*results)
    return mapped


@dataclass(frozen=True)
class Jet:
    """A matrix, or another jet, and its derivative, or derivatives along an axis in front."""

    value: Any
    change: Any

    def __matmul__(self, other: Jet) -> Jet:
        return Jet(self.value @ other.value,
                   self.change @ other.value + self.value @ other.change)

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.change + other.change)

    @property
    def T(self) -> Jet:
        return Jet(*(x.T if isinstance(x, Jet) else x.swapaxes(-2, -1)
                     for x in (self.value, self.change)))


def derivative(formula: Callable[..., Any], *arguments: Sequence[Any]) -> Any:
    """Return the highest derivative of a formula, given its arguments and their derivatives."""
    found = formula(*(_jet(values) for values in arguments))
    for _ in arguments[0][1:]:
        found = found.change
    return found


def _jet(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else Jet(_jet(values[:-1]), _jet(values[1:]))


def first(D: np.ndarray) -> np.ndarray:
    """Return derivatives along coordinates with the axis of these, the last one, in front."""
    return D.transpose(2, 0, 1)


def last(D: np.ndarray) -> np.ndarray:
    """Return derivatives along coordinates with the axis of these behind."""
    return D.transpose(1, 2, 0)


# -- Formulas. ----------------------------------------------------------------------------------
def same(G: Any, x: Any) -> Any:
    """Return a result that does not depend on coordinates: poses, points, energies."""
    return x


def torques(G: Any, tau: Any) -> Any:
    """Return G^T tau."""
    return tau @ G


def matrix(G: Any, M: Any) -> Any:
    """Return G^T M G."""
    return G.T @ M @ G


def columns(G: Any, J: Any) -> Any:
    """Return J G: Jacobians, momentum matrices."""
    return J @ G


def rows(G: Any, Y: Any) -> Any:
    """Return G^T Y, whose columns are no coordinates: regressors."""
    return G.T @ Y


def columns_dot(G: Any, G_dot: Any, J: Any, J_dot: Any) -> Any:
    """Return the rate of J G."""
    return J_dot @ G + J @ G_dot


def coriolis(G: Any, G_dot: Any, M: Any, C: Any) -> Any:
    """Return G^T (C G + M dG/dt)."""
    return G.T @ (C @ G + M @ G_dot)


def matrix_by_parameters(G: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Return G^T D[:, :, k] G for each k: derivatives of a matrix, parameters on the last axis."""
    D = G.T @ D
    n, parameters = D.shape[-2:]
    folded = G.T @ D.reshape(*D.shape[:-2], n * parameters)
    return folded.reshape(*folded.shape[:-1], n, parameters)


# -- Maps of all results. -----------------------------------------------------------------------
def _rates(w: Any, found: Sequence[np.ndarray], given: Mapping[str, Any]) -> Sequence[np.ndarray]:
    G = w._rates_of_G(given['q'])
    return [derivative(columns, G[:k], found[:k]) for k in range(1, len(found) + 1)]


def bias_of(jacobian: str) -> MotionMap:
    """Return the map of dJ/dt v, given the method of J."""
    def run(w: Any, bias: np.ndarray, given: Mapping[str, Any]) -> Sequence[np.ndarray]:
        J, _ = getattr(w._tree, jacobian)(given['q'], given['link'])
        return [bias + J.dot(w._gamma)]     # faster than J @
    return MotionMap(run)


def by_coordinates(formula: Map, method: str) -> MotionMap:
    """Return the map of derivatives, on the last axis, of what a method returns first."""
    def run(w: Any, by_q: np.ndarray, given: Mapping[str, Any]) -> Sequence[np.ndarray]:
        G, found = w._G, getattr(w._tree, method)(**given)
        x = found[0] if isinstance(found, tuple) else found
        return [last(derivative(formula, (G, w._changes_of_G(given['q'])), (x, first(by_q @ G))))]
    return MotionMap(run)


def rates_by_coordinates(formula: Callable[..., Any],
                         terms: Callable[..., Sequence[np.ndarray]]) -> MotionMap:
    """Return the map of the derivatives of ``formula(G, G_dot, x, y)`` by q and v."""
    # ``terms`` returns x(q), y(q, v) and the derivatives of x; the results are those of y.
    def run(w: Any, found: Sequence[np.ndarray],
            given: Mapping[str, Any]) -> Sequence[np.ndarray]:
        v, = w.check(v=given['v'])
        G, (G_dot, dG, dG_dot), (by_q, by_v) = w._G, w._changes(given['q'], v), found
        x, y, x_by_q = terms(w._tree, {**given, 'v': w._V}, found)
        return [last(derivative(formula, (G, dG), (G_dot, dG_dot), (x, first(x_by_q @ G)),
                                (y, first(by_q @ G + by_v @ (dG @ v).T)))),
                last(formula(G, dG, x, first(by_v @ G)))]
    return MotionMap(run)


def _matrix_rates(w: Any, found: Any, given: Mapping[str, Any]) -> Sequence[np.ndarray]:
    G, G_dot, G_ddot = w._rates_of_G(given['q'])
    (M_dot, C_dot, g_dot), rates = found, (G, G_dot)
    terms = w._tree.all_terms(given['q'], w._V, given.get('factorization', 'christoffel'))
    M = terms.M, M_dot
    return [derivative(matrix, rates, M),
            derivative(coriolis, rates, (G_dot, G_ddot), M, (terms.C, C_dot)),
            derivative(torques, rates, (terms.g, g_dot))]


def _by_parameters(w: Any, found: Any, given: Mapping[str, Any]) -> Sequence[np.ndarray]:
    G, (M, C, g) = w._G, found
    of_rate = np.einsum('ji,jkp,kl->ilp', G, M, w._rates_of_G(given['q'])[1])
    return [matrix_by_parameters(G, M), matrix_by_parameters(G, C) + of_rate, rows(G, g)]


rates = MotionMap(_rates)                   # a Jacobian and its rates
matrix_rates = MotionMap(_matrix_rates)     # of M, C and g
parameters_of_terms = MotionMap(_by_parameters)     # derivatives of these
