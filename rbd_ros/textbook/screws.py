# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Screws of unit length: rotations in rad and translations in m."""

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import real_array

ROUNDING = 1e-12    # smaller rotations and pitches, relative to 1 m, are treated as zero


def unit_screws(screws: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """
    Normalize screws of any length [L 9.3]; raise ModelError if one is zero or not finite.

    exp([S] theta) = exp([S / length] (length theta)): with unit screws, coordinates, velocities
    and accelerations are multiplied by ``length``, and torques are divided by it.

    Parameters
    ----------
    screws : array_like, shape (n, 6)
        (omega, v), angular first.

    Returns
    -------
    units, lengths : ndarray, shapes (n, 6) and (n,)
        Screws with omega of unit length, or v where omega is zero, and the divisors.

    """
    screws = _screws(screws)
    turns, slides = np.linalg.norm(screws[:, :3], axis=1), np.linalg.norm(screws[:, 3:], axis=1)
    lengths = np.where(turns > ROUNDING * slides, turns, slides)
    for k, length in enumerate(lengths, 1):
        if not 0.0 < length < np.inf:
            raise ModelError(f'screw {k} must be finite and not zero, got {screws[k - 1]}')
    return screws / lengths[:, None], lengths


def _screws(screws: npt.ArrayLike) -> np.ndarray:
    """Return screws (n, 6), checked."""
    if np.size(screws) == 0:
        return np.zeros((0, 6))
    screws = real_array(screws)
    if screws is None or screws.ndim != 2 or screws.shape[1] != 6:
        raise ModelError('screws must be real numbers of shape (n, 6)')
    return screws
