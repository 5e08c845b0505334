# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Efforts of joints as arrows: bent round the axes of joints that turn, along those that slide."""

import numpy as np
from rbd_ros.model.model import Model

# Pieces of an arc.
PIECES = 24
# rad, the arc of the largest torque
LARGEST_TURN = 1.75 * np.pi
# rad; smaller arcs are not drawn.
LEAST_TURN = 0.02


class JointArcs:
    """
    The axes of the joints of one robot, and arcs round them.

    Joints with one axis that do not mimic others are shown.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model: Model) -> None:
        shown = [(k + 1, joint) for k, joint in enumerate(model.joints)
                 if joint.name in model.velocity_names]
        self._columns = np.array([model.velocity_names.index(joint.name) for _, joint in shown],
                                 int)
        self._links = np.array([k for k, _ in shown], int)
        self._axes = np.array([joint.axis for _, joint in shown]).reshape(-1, 3)
        self._angular = model.angular[self._columns]
        # Perpendicular to them, where arcs begin.
        across = np.cross(self._axes, np.eye(3)[np.argmin(np.abs(self._axes), axis=1)])
        self._across = across / np.linalg.norm(across, axis=1, keepdims=True)

    def lines(self, poses: np.ndarray, efforts: np.ndarray, full: np.ndarray, radius: float
              ) -> np.ndarray:
        """
        Return arcs as points: the joint, then from where an effort is zero to its value.

        Parameters
        ----------
        poses : ndarray, shape (links, 4, 4)
            Poses of all links.
        efforts, full : ndarray, shape (nv,)
            Efforts, and those that make the largest arc, N m or N; larger ones do, too.
        radius : float
            Of the arcs, m; the largest straight arrow is twice as long.

        Returns
        -------
        ndarray, shape (efforts that are drawn, PIECES + 2, 3)
            m; efforts that are too small or not known are left out.

        """
        share = np.clip(efforts[self._columns] / full[self._columns], -1.0, 1.0)
        drawn = np.abs(share) * LARGEST_TURN >= LEAST_TURN      # False where it is not known
        links = self._links[drawn]
        turns = poses[links, :3, :3]
        axes, across = ((turns @ vectors[drawn, :, None])[:, :, 0]
                        for vectors in (self._axes, self._across))
        part = np.linspace(0.0, 1.0, PIECES + 1)[:, None] * share[drawn, None, None]
        angle = LARGEST_TURN * part
        bent = radius * (np.cos(angle) * across[:, None]
                         + np.sin(angle) * np.cross(axes, across)[:, None])
        straight = 2.0 * radius * part * axes[:, None]
        places = np.where(self._angular[drawn, None, None], bent, straight)
        # A spoke shows whose arc it is.
        spokes = np.zeros((len(links), 1, 3))
        return poses[links, None, :3, 3] + np.concatenate((spokes, places), axis=1)
