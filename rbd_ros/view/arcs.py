# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint efforts as arrows, bent around the axes of revolute joints and along prismatic ones."""

import numpy as np
from rbd_ros.model.model import Model

PIECES = 24     # line segments of an arc
# rad: arc of the largest torque, and of the smallest one that is drawn.
LARGEST_TURN, LEAST_TURN = 1.75 * np.pi, 0.02


class JointArcs:
    """Arrows at the joints of a robot that have one axis and mimic no other joint."""

    def __init__(self, model: Model) -> None:
        shown = [(k + 1, joint) for k, joint in enumerate(model.joints)
                 if joint.name in model.velocity_names]
        self.columns = np.array(
            [model.velocity_names.index(joint.name) for _, joint in shown], int)
        self.links = np.array([k for k, _ in shown], int)
        self._axes = np.array([joint.axis for _, joint in shown]).reshape(-1, 3)
        self._angular = model.angular[self.columns]
        # Perpendicular to the axes: where arcs begin.
        across = np.cross(self._axes, np.eye(3)[np.argmin(np.abs(self._axes), axis=1)])
        self._across = across / np.linalg.norm(across, axis=1, keepdims=True)

    def lines(self, poses: np.ndarray, efforts: np.ndarray, full: np.ndarray, radius: float
              ) -> np.ndarray:
        """
        Return a polyline (PIECES + 2, 3) per arrow: the joint, then the arc from zero to its tip.

        `poses` (links, 4, 4) are those of all links. `efforts` (nv,) are drawn relative to `full`
        (nv,) and clipped to it; small and unknown ones are left out. `radius`, m, is that of the
        arcs; the largest straight arrow is twice as long.

        """
        share = np.clip(efforts[self.columns] / full[self.columns], -1.0, 1.0)
        drawn = np.abs(share) * LARGEST_TURN >= LEAST_TURN      # False for NaN
        links = self.links[drawn]
        turns = poses[links, :3, :3]
        axes, across = ((turns @ vectors[drawn, :, None])[:, :, 0]
                        for vectors in (self._axes, self._across))
        part = np.linspace(0.0, 1.0, PIECES + 1)[:, None] * share[drawn, None, None]
        angle = LARGEST_TURN * part
        bent = radius * (np.cos(angle) * across[:, None]
                         + np.sin(angle) * np.cross(axes, across)[:, None])
        straight = 2.0 * radius * part * axes[:, None]
        places = np.where(self._angular[drawn, None, None], bent, straight)
        spokes = np.zeros((len(links), 1, 3))    # a spoke connects each arc to its joint
        return poses[links, None, :3, 3] + np.concatenate((spokes, places), axis=1)
