# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Polynomials between points, by their Bernstein coefficients, shape (degree + 1, pieces, n).

Reference: Farin, "Curves and Surfaces for CAGD", 5th edition, 5.3, 7.5.

"""

from typing import Any

import numpy as np


def bernstein(h: np.ndarray, q: np.ndarray, v: np.ndarray,
              a: np.ndarray | None = None) -> np.ndarray:
    """Return cubic polynomials through positions with velocities, quintic with accelerations."""
    # `h` (points - 1, 1) are durations, s.
    if a is None:
        return np.stack((q[:-1], q[:-1] + h * v[:-1] / 3.0, q[1:] - h * v[1:] / 3.0, q[1:]))
    return np.stack((
        q[:-1], q[:-1] + h * v[:-1] / 5.0, q[:-1] + 0.4 * h * v[:-1] + h ** 2 * a[:-1] / 20.0,
        q[1:] - 0.4 * h * v[1:] + h ** 2 * a[1:] / 20.0, q[1:] - h * v[1:] / 5.0, q[1:]))


def smooth_step(x: Any) -> tuple[Any, Any, Any]:
    """Return 10 x^3 - 15 x^4 + 6 x^5 and its derivatives at numbers or arrays x from 0 to 1."""
    return (x ** 3 * (10.0 - 15.0 * x + 6.0 * x * x), 30.0 * x * x * (1.0 - x) ** 2,
            60.0 * x * (1.0 - x) * (1.0 - 2.0 * x))


def rates(h: np.ndarray, curve: np.ndarray, order: int) -> list[np.ndarray]:
    """Return polynomials and their derivatives up to an order."""
    found = [curve]
    for _ in range(order):
        found.append((len(found[-1]) - 1) * np.diff(found[-1], axis=0) / h)
    return found


def value(curve: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return values at shares x of pieces, 0 to 1, by De Casteljau's algorithm; x broadcasts."""
    while len(curve) > 1:
        curve = (1.0 - x) * curve[:-1] + x * curve[1:]
    return curve[0]


def samples(curve: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return values (pieces, shares, n) at shares of pieces, (shares,) or (pieces, shares)."""
    return value(curve[:, :, None], shares[..., None])
