# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Descent within a region outside of which the function is infinite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Share of the promised descent that a step must bring, and the shortest share of a step.
ARMIJO, SHORTEST = 1e-4, 1e-10
# Length of the first step, relative to the gradient.
FIRST = 1e-2
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def minimize(function: Function, x: np.ndarray, steps: int,
             tell: Callable[[], None] = lambda: None) -> np.ndarray:
    """
    Return where a function is smaller than at x, after some steps of BFGS.

    SciPy's line searches fail at infinite values; here a step that leaves the region is halved.

    Parameters
    ----------
    function : callable
        Returns value and gradient; the value is infinite where x must not be.
    x : ndarray, shape (n,)
        Where the value is finite.
    steps : int
        At most.
    tell : callable
        Called after every step.

    References
    ----------
    Nocedal and Wright, Numerical Optimization, algorithm 6.1 with (6.20).

    """
    H = None                        # the inverse of the Hessian, unknown at first
    value, gradient = function(x)
    for _ in range(steps):
        direction = -FIRST * gradient if H is None else -H @ gradient
        slope, share = float(direction @ gradient), 1.0
        if not slope < 0.0:
            break
        while True:
            new, new_gradient = function(x + share * direction)
            if new <= value + ARMIJO * share * slope:
                break
            share *= 0.5
            if share < SHORTEST:
                return x
        step, change = share * direction, new_gradient - gradient
        curvature = float(step @ change)
        if curvature > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            if H is None:
                H = np.eye(len(x)) * (curvature / (change @ change))
            Hy = H @ change
            H += (np.outer(step, step) * ((1.0 + change @ Hy / curvature) / curvature)
                  - (np.outer(step, Hy) + np.outer(Hy, step)) / curvature)
        x, value, gradient = x + step, new, new_gradient
        tell()
    return x
