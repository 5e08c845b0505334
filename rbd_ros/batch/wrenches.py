# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""External wrenches of many states."""

from typing import NamedTuple

import numpy as np
from rbd_ros.model.arguments import Wrenches, wrenches_of_states
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.workspace.workspace import workspace_of


class BatchWrenches(NamedTuple):
    """External wrenches on bodies; an axis of states has length 1 if all states have the same."""

    places: np.ndarray                  # (bodies,), of the bodies in the table of the kernels
    forces: np.ndarray                  # (bodies, states, 6), moment and force in the body's axes
    of_links: dict[str, np.ndarray]     # (states, 6), as the user gave them, by link

    def of_chunk(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the arguments of kernels for some states."""
        if not self.of_links:
            return self.places, self.forces
        if self.forces.shape[1] > 1:
            return self.places, np.ascontiguousarray(self.forces[:, start:stop])
        return self.places, np.repeat(self.forces, stop - start, axis=1)

    def of_bodies(self, model: Model, start: int, stop: int) -> np.ndarray:
        """Return those on all bodies in some states, (states, 6 bodies); one row: without axis."""
        slots = workspace_of(model.unconstrained)._places
        forces = self.forces if self.forces.shape[1] == 1 else self.forces[:, start:stop]
        found = np.zeros((forces.shape[1], len(slots), 6))
        found[:, np.searchsorted(slots, self.places)] = forces.swapaxes(0, 1)
        return found.reshape(len(found), -1) if len(found) > 1 else found.ravel()

    def take(self, states: np.ndarray) -> 'BatchWrenches':
        """Return the wrenches in some states, given by their indices."""
        def take(x: np.ndarray) -> np.ndarray:
            return x[..., states, :] if x.shape[-2] > 1 else x
        return BatchWrenches(self.places, take(self.forces),
                             {link: take(wrench) for link, wrench in self.of_links.items()})

    def of_state(self, k: int) -> Wrenches | None:
        return {link: wrench[min(k, len(wrench) - 1)]
                for link, wrench in self.of_links.items()} or None


NO_WRENCHES = BatchWrenches(np.zeros(0, int), np.zeros((0, 1, 6)), {})


def batch_wrenches(model: Model, external_wrenches: object, states: int) -> BatchWrenches:
    """Return the wrenches that a user gives for states, as kernels need them."""
    if external_wrenches is None:
        return NO_WRENCHES
    of_links = wrenches_of_states(model, external_wrenches, states)
    if not of_links or not states:
        return NO_WRENCHES
    tree = model.tree
    links = [model.link_index(link) for link in of_links]
    bodies = sorted({int(tree.link_body[k]) for k in links})
    forces = np.zeros((len(bodies), max(map(len, of_links.values())), 6))
    for k, wrench in zip(links, of_links.values()):
        forces[bodies.index(int(tree.link_body[k]))] += wrench @ Ad(inverse(tree.link_pose[k]))
    return BatchWrenches(workspace_of(model.unconstrained)._places[bodies], forces, of_links)
