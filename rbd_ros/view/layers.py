# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Names and colours of the layers shown over a robot, in RViz and in a browser."""

from typing import NamedTuple


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
