# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""External wrenches of many states."""

from typing import NamedTuple

import numpy as np
from rbd_ros.model.arguments import Wrenches, wrenches_of_states
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.workspace import workspace_of


class Pushes(NamedTuple):
    """
    What acts on bodies from outside.

    Attributes
    ----------
    places : ndarray of int, shape (bodies,)
        Where the bodies are in the table of the kernels.
    forces : ndarray, shape (bodies, states or 1, 6)
        Moment and force on each, in its axes.
    of_links : dict of str to ndarray, shape (states or 1, 6)
        The same by links, as the user gave them.

    """

    places: np.ndarray
    forces: np.ndarray
    of_links: dict[str, np.ndarray]

    def of_chunk(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what kernels need for some states."""
        if not self.of_links:
            return self.places, self.forces
        if self.forces.shape[1] > 1:
            return self.places, np.ascontiguousarray(self.forces[:, start:stop])
        return self.places, np.repeat(self.forces, stop - start, axis=1)

    def picked(self, states: np.ndarray) -> 'Pushes':
        """Return what acts in some states."""
        def pick(x: np.ndarray) -> np.ndarray:
            return x[..., states, :] if x.shape[-2] > 1 else x
        return Pushes(self.places, pick(self.forces),
                      {link: pick(wrench) for link, wrench in self.of_links.items()})

    def of_state(self, k: int) -> Wrenches | None:
        """Return the wrenches in one state."""
        return {link: wrench[min(k, len(wrench) - 1)]
                for link, wrench in self.of_links.items()} or None


NOTHING_PUSHES = Pushes(np.zeros(0, int), np.zeros((0, 1, 6)), {})


def pushes(model: Model, external_wrenches: object, states: int) -> Pushes:
    """Return the wrenches that a user gives for states, as kernels need them."""
    if external_wrenches is None:
        return NOTHING_PUSHES
    of_links = wrenches_of_states(model, external_wrenches, states)
    if not of_links:
        return NOTHING_PUSHES
    tree = model.tree
    workspace = workspace_of(model.spanning_tree)
    links = [model.link_index(link) for link in of_links]
    bodies = sorted({int(tree.link_body[k]) for k in links})
    forces = np.zeros((len(bodies), max(map(len, of_links.values())), 6))
    for k, wrench in zip(links, of_links.values()):
        forces[bodies.index(int(tree.link_body[k]))] += wrench @ Ad(inverse(tree.link_pose[k]))
    return Pushes(workspace._places[bodies], forces, of_links)
