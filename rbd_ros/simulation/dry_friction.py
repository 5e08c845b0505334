# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Impulses of stops and of Coulomb friction in one time step."""

import numpy as np

ROUNDING = 1e-12    # rounding of a velocity, as a share of the terms that it is the sum of
MAX_CHANGES = 1000  # bound, never reached, on how often the set of free joints changes


def resting_impulses(A: np.ndarray, v: np.ndarray, lower: np.ndarray,
                     upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the impulses that bring joints to rest as far as they can, and which joints rest."""
    # Impulses p result in the velocities v + A p, where A is the inverse of a mass matrix or a
    # block of it. Each joint comes to rest, or its impulse is at the bound that opposes its
    # velocity: p is the unique minimum of 1/2 p^T A p + p^T v within bounds that contain 0 and may
    # be infinite. Active sets: Nocedal and Wright, Numerical Optimization (2006), algorithm 16.3,
    # releasing several bounds at a time.
    # At first all joints slide; those without a bound in that direction are free.
    p = np.where(v > 0.0, lower, upper)
    free = np.isinf(p)
    p[free] = 0.0
    for _ in range(MAX_CHANGES):
        while free.any():
            step = np.zeros_like(v)    # towards rest, as far as the first bound in the way
            step[free] = np.linalg.solve(A[np.ix_(free, free)], -(v + A @ p)[free])
            margin = np.where(step > 0.0, upper, lower) - p
            share = np.divide(margin, step, out=np.full_like(v, np.inf), where=step != 0.0)
            first = np.argmin(share)
            if share[first] >= 1.0:
                p += step
                break
            p += share[first] * step
            p[first] = (upper if step[first] > 0.0 else lower)[first]
            free[first] = False
        w = v + A @ p
        rounding = ROUNDING * (np.abs(v) + np.abs(A) @ np.abs(p))
        loose = ~free & (((p == lower) & (w < -rounding) & (p < upper))
                         | ((p == upper) & (w > rounding) & (p > lower)))
        if not loose.any():
            break
        free |= loose
    return p, free
