# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a robot that a page shows, and the layers shown over it, also in RViz."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

import numpy as np
from rbd_ros.batch.torque_deviation import torque_deviation
from rbd_ros.dynamics import all_terms, friction_torques
from rbd_ros.kinematics import body_jacobian
from rbd_ros.model.model import Model
from rbd_ros.model.uncertainty import HALF_WIDTH


def rgb(color: tuple[float, float, float]) -> tuple[int, int, int]:
    """Return a colour with components 0 to 255 instead of 0 to 1."""
    red, green, blue = (round(255.0 * x) for x in color)
    return red, green, blue


class Layer(NamedTuple):
    """A group of drawings with one switch."""

    title: str  # label of the switch
    color: tuple[float, float, float]   # red, green and blue, 0 to 1


COM, LINK_COMS, ELLIPSOIDS, WRENCHES = 'com', 'link_coms', 'ellipsoids', 'wrenches'
GRAVITY, CORIOLIS, EXTERNAL_TORQUES = 'gravity', 'coriolis', 'external_torques'
PATH, NAMES = 'path', 'names'
MANIPULABILITY, FORCES, MASSES = 'manipulability', 'forces', 'effective_masses'
LAYERS = {COM: Layer('centre of mass', (0.9, 0.2, 0.15)),
          LINK_COMS: Layer('centres of mass of the links', (0.15, 0.4, 0.9)),
          GRAVITY: Layer('gravity torques', (1.0, 0.6, 0.1)),
          CORIOLIS: Layer('Coriolis torques', (0.1, 0.7, 0.8)),
          EXTERNAL_TORQUES: Layer('external torques', (0.9, 0.2, 0.15)),
          WRENCHES: Layer('external wrenches', (0.2, 0.8, 0.3)),
          ELLIPSOIDS: Layer('inertia ellipsoids of the links', (0.6, 0.6, 0.6)),
          PATH: Layer('path of the chosen link, 5 s', (0.0, 0.33, 0.67)),
          NAMES: Layer('names and efforts of the joints', (0.1, 0.1, 0.1)),
          MANIPULABILITY: Layer('velocity ellipsoid of the chosen link', (0.95, 0.75, 0.1)),
          FORCES: Layer('force ellipsoid of the chosen link', (0.2, 0.8, 0.3)),
          MASSES: Layer('effective mass of the chosen link', (0.6, 0.3, 0.8))}
MOMENT_COLOR = (0.6, 0.3, 0.8)    # of the moments of wrenches; forces have the layer's colour


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

    @property
    def residual(self) -> np.ndarray:
        """Return the efforts that the model does not explain (nv,)."""
        return self.effort - self.model

    @property
    def band(self) -> np.ndarray:
        """Return the half widths of the intervals that hold 90 % of the residuals (nv,)."""
        return HALF_WIDTH * (np.full_like(self.effort, nan) if self.deviation is None
                             else self.deviation)


def computed_state(model: Model, q: np.ndarray, v: np.ndarray,
                   wrenches: Mapping[str, np.ndarray], base: np.ndarray | None = None) -> State:
    """
    Return the dynamics of a state, with the efforts that would keep its velocity constant.

    They include friction; an identified robot has the deviation of measured efforts from them.

    """
    terms = all_terms(model, q, v)
    external = np.zeros(model.nv)
    for link, wrench in wrenches.items():
        external += body_jacobian(model, q, link).T @ wrench
    g = terms.g
    if base is not None:    # gravity in the axes of the root
        weight = model.mass * base[:3, :3].T @ model.gravity
        g = -terms.com_jacobian.T @ weight
    effort = g + terms.coriolis_torques + friction_torques(model, v, q=q) - external
    deviation = (None if model.uncertainty is None else
                 torque_deviation(model, q, v, np.zeros(model.nv)))
    return State(q, v, terms.M, terms.C, g, terms.coriolis_torques, external, effort, terms.com,
                 wrenches, deviation=deviation, base=base)
