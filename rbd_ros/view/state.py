# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a robot that a page shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np
from rbd_ros.dynamics import all_terms
from rbd_ros.kinematics import body_jacobian
from rbd_ros.model.model import Model


@dataclass(frozen=True)
class State:
    """A state of a robot with its dynamics; unknown values are NaN."""

    q: np.ndarray           # configuration (nq,)
    v: np.ndarray           # velocity (nv,)
    M: np.ndarray           # mass matrix (nv, nv)
    C: np.ndarray           # Coriolis matrix (nv, nv)
    gravity: np.ndarray     # torques (nv,), N m or N, like the next two
    coriolis: np.ndarray
    external: np.ndarray
    effort: np.ndarray      # efforts of the drives (nv,), N m or N
    com: np.ndarray     # centre of mass in the root frame (3,), m
    # Wrenches (moment, force) on links, at their origins and in their axes, N m and N.
    wrenches: Mapping[str, np.ndarray] = field(default_factory=dict)
    deviation: np.ndarray | None = None     # standard deviations of the model's torques (nv,)
    age: float = nan    # s, since it was received
    base: np.ndarray | None = None  # pose of the root frame (4, 4) if it moves

    @property
    def model(self) -> np.ndarray:
        """Return the efforts that the model explains (nv,); at rest if the others are unknown."""
        explained = self.effort + self.external
        return np.where(np.isnan(explained), self.gravity + np.nan_to_num(self.coriolis),
                        explained)


def computed_state(model: Model, q: np.ndarray, v: np.ndarray,
                   wrenches: Mapping[str, np.ndarray], base: np.ndarray | None = None) -> State:
    """Return the dynamics of a state, with the efforts that would keep its velocity constant."""
    terms = all_terms(model, q, v)
    external = np.zeros(model.nv)
    for link, wrench in wrenches.items():
        external += body_jacobian(model, q, link).T @ wrench
    g = terms.g
    if base is not None:    # gravity in the axes of the root
        weight = model.mass * base[:3, :3].T @ model.gravity
        g = -terms.com_jacobian.T @ weight
    return State(q, v, terms.M, terms.C, g, terms.coriolis_torques, external,
                 g + terms.coriolis_torques - external, terms.com, wrenches, base=base)
