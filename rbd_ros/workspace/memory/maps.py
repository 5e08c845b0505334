# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Maps of results of the tree to the coordinates of closed loops, v_tree = G v."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

# Given G and a result for the tree, returns that of the robot.
Map: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]


def same(G: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return a result that does not depend on coordinates: poses, points, energies."""
    return x


def torques(G: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return G^T tau."""
    return tau @ G


def matrix(G: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return G^T M G, for the last two axes: M, C, derivatives of torques, or of a Jacobian."""
    return G.T @ M @ G


def columns(G: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return J G: Jacobians, their rates, momentum matrices."""
    return J @ G


def rows(G: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return G^T Y, whose columns are no coordinates: regressors."""
    return G.T @ Y


def matrix_by_parameters(G: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Return G^T D[:, :, k] G for each k: derivatives of a matrix, parameters on the last axis."""
    D = G.T @ D
    n, parameters = D.shape[-2:]
    folded = G.T @ D.reshape(*D.shape[:-2], n * parameters)
    return folded.reshape(*folded.shape[:-1], n, parameters)


def matrix_by_coordinates(G: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Return the derivatives of a matrix with respect to coordinates, on the last axis."""
    return matrix_by_parameters(G, D @ G)
