# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays that kernels of many states work in; workspaces keep them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rbd_ros.batch.results import Quantity
from rbd_ros.kernels.lanes.lanes import WIDTH, zeros_for_lanes
from rbd_ros.workspace import Workspace


@dataclass(frozen=True)
class Room:
    """
    An array that workspaces keep; all zeros at first.

    Attributes
    ----------
    use : str
        What for, since several may have the same shape.
    shape : tuple of int
        Its shape.

    """

    use: str
    shape: tuple[int, ...]

    def __call__(self, workspace: Workspace) -> np.ndarray:
        """Make it."""
        return zeros_for_lanes(self.shape)


def table_of_lanes(workspace: Workspace) -> dict[str, np.ndarray]:
    """Return a table of bodies for states side by side, and lanes for q, v, a and tau."""
    nq, n = workspace.model.nq, workspace.model.nv
    return {use: zeros_for_lanes((size, WIDTH)) for use, size in (
        ('robot', len(workspace.robot)), ('q', nq), ('v', n), ('a', n), ('tau', n))}


def lanes_for(vectors: str, *results: Callable[[Workspace], np.ndarray]
              ) -> Callable[[Workspace], tuple[np.ndarray, ...]]:
    """
    Return a function of a workspace that makes the arrays that a kernel works in.

    Parameters
    ----------
    vectors : str
        Names, of one letter each, of those of the state; t: tau.
    *results : callable
        What makes further ones for a workspace.

    """
    def make(workspace: Workspace) -> tuple[np.ndarray, ...]:
        table = workspace._kept(table_of_lanes)
        return (table['robot'], *(table['tau' if x == 't' else x] for x in vectors),
                *(one(workspace) for one in results))
    return make


def lanes_of(quantity: Quantity) -> Callable[[Workspace], np.ndarray]:
    """Return what makes lanes for a result; entries that are never written are zero."""
    def make(workspace: Workspace) -> np.ndarray:
        return zeros_for_lanes((*quantity.shapes(workspace.model, workspace._nv)[0], WIDTH))
    return make
