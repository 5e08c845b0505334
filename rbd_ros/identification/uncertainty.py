# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How certain estimates are whose errors are correlated in time.

Residuals of a real robot are not white noise: a filter, and friction that no model has, correlate
neighbours, and the deviations of ordinary least squares come out several times too small. Here the
derivatives of the sum of squares are summed over stretches that are long compared with that. The
variance of these sums is taken from how they differ [Liang and Zeger (1986)], with the errors that
each stretch would have if it had not been used for the estimate: the jackknife over stretches, CR3
of Bell and McCaffrey (2002).

"""

from __future__ import annotations

import numpy as np

# A stretch that alone determines a parameter has no residual there: no share counts as more.
MOST = 0.99


def inflation(scores: np.ndarray, information: np.ndarray, counts: np.ndarray) -> float:
    """
    Return how many samples count as one.

    Parameters
    ----------
    scores : ndarray, shape (stretches, n)
        Derivatives of half the sum of squares, in units of the noise, by parameters.
    information : ndarray, shape (stretches, n, n)
        Its second derivatives.
    counts : ndarray, shape (stretches,)
        How many samples there are.

    Returns
    -------
    float
        1 for white noise; otherwise by how much the variances are greater, in the mean over the
        parameters, but not more than there are in a stretch.

    """
    most = np.sum(counts) / max(np.count_nonzero(counts), 1)
    total = information.sum(axis=0)
    values, vectors = np.linalg.eigh(total)
    known = values > 1e-12 * np.max(values, initial=0.0)
    W = vectors[:, known] / np.sqrt(values[known])
    shares = W.T @ information @ W
    # White noise: the sum of squares that is left when the parameters have taken up their part.
    expected = np.sum(known) - np.sum(shares ** 2)
    found = np.sum((scores @ W) ** 2) / expected if expected > 0.0 else 1.0
    return float(np.clip(found, 1.0, max(most, 1.0)))


def scatter(scores: np.ndarray, information: np.ndarray, total: np.ndarray) -> np.ndarray:
    """
    Return how the sum of the scores scatters.

    Parameters
    ----------
    scores, information
        As for `inflation`.
    total : ndarray, shape (n, n)
        The sum of ``information``, and what else holds the parameters.

    Returns
    -------
    ndarray, shape (stretches, n)
        Z, of which Z^T Z is the covariance.

    """
    L = np.linalg.cholesky(total)
    L_inv = np.linalg.inv(L)
    values, vectors = np.linalg.eigh(L_inv @ information @ L_inv.T)
    whole = 1.0 / (1.0 - np.clip(values, 0.0, MOST))
    inner = (vectors.swapaxes(-1, -2) @ (scores @ L_inv.T)[..., None])[..., 0]
    return (vectors @ (whole * inner)[..., None])[..., 0] @ L.T
