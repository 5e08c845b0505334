# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Names and colours of what is shown beside a robot's shapes, in RViz and in a browser."""

from typing import NamedTuple


class Layer(NamedTuple):
    """
    What is switched as one.

    Attributes
    ----------
    title : str
        What it is called on a page.
    color : tuple of float
        Red, green and blue, 0 to 1.

    """

    title: str
    color: tuple[float, float, float]


COM, LINK_COMS, ELLIPSOIDS, WRENCHES = 'com', 'link_coms', 'ellipsoids', 'wrenches'
GRAVITY, CORIOLIS, EXTERNAL_TORQUES = 'gravity', 'coriolis', 'external_torques'
MANIPULABILITY, FORCES, MASSES = 'manipulability', 'forces', 'effective_masses'
LAYERS = {
    COM: Layer('centre of mass', (0.9, 0.2, 0.15)),
    LINK_COMS: Layer('centres of mass of links', (0.15, 0.4, 0.9)),
    GRAVITY: Layer('gravity torques', (1.0, 0.6, 0.1)),
    CORIOLIS: Layer('Coriolis torques', (0.1, 0.7, 0.8)),
    EXTERNAL_TORQUES: Layer('external torques', (0.9, 0.2, 0.15)),
    WRENCHES: Layer('forces', (0.2, 0.8, 0.3)),
    ELLIPSOIDS: Layer('inertia ellipsoids of links', (0.6, 0.6, 0.6)),
    MANIPULABILITY: Layer('velocities that the chosen link can have', (0.95, 0.75, 0.1)),
    FORCES: Layer('forces that it can hold', (0.2, 0.8, 0.3)),
    MASSES: Layer('mass that it seems to have', (0.6, 0.3, 0.8)),
}
# Of the moments of wrenches, whose forces have the colour of their layer.
MOMENT_COLOR = (0.6, 0.3, 0.8)
