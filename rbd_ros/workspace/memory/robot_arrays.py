# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays of one robot that the kernels read and write."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels.tree.layout import LANES, PRESCRIBED, WRENCH
from rbd_ros.model.arguments import Wrenches, wrenches
from rbd_ros.model.body_table import pack
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.memory import scratch


class RobotArrays(WorkspaceBase):
    """
    The arrays of one robot.

    Kernels convert anything but float64 vectors. They return False if a result is not finite or an
    argument is wrong; only then does `_explain` check the arguments.

    """

    _carriers = staticmethod(scratch.carriers)

    def __init__(self, model: Model, *, fresh: bool = False) -> None:
        super().__init__(model, fresh=fresh)
        self.robot, self._places, self._tau = self._pack(model)
        n, self._traits = model.nv, model.tree.traits
        self._a = np.zeros(n)
        # The Jacobian of a link and its pose, and the views of them that are handed out.
        self._jacobian_rows = np.zeros((10, max(n, 4)))
        self._jacobian_and_pose = self._jacobian_rows[:6, :n], self._jacobian_rows[6:, :4]
        # For each link its body and its pose there, for its own axes and for those of the root.
        self._body_rows: dict[str, np.ndarray] = {}
        self._world_rows: dict[str, np.ndarray] = {}

    def _pack(self, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the array of the robot, places of its bodies, and the torques behind them."""
        robot, places = pack(model.tree.robot)
        first = len(robot) - len(places) + 1
        return robot, places, robot[first:first + model.nv]

    def _columns(self, first: int, number: int, body: slice | int = slice(None)) -> np.ndarray:
        """Return the indices in `robot` of columns of bodies, one row per body."""
        return self._places[body, None] + LANES * np.arange(first, first + number)

    def _link_row(self, link: str, in_root: bool = True) -> np.ndarray:
        """Return the row of a link for the axes of the root, or for its own."""
        rows = self._world_rows if in_root else self._body_rows
        try:
            return rows[link]
        except (KeyError, TypeError):
            k, tree = self.model.link_index(link), self.model.tree
            pose = tree.link_pose[k]
            rows[link] = np.array([[tree.link_body[k], *pose[:3, :3].T.ravel(), *pose[:3, 3],
                                    in_root]], float)
            return rows[link]

    def _prescribe(self, prescribed: ArrayLike) -> None:
        """Set the mask of given accelerations for the kernels of articulated bodies."""
        self.robot[self._places[1:] + LANES * PRESCRIBED] = prescribed

    @contextmanager
    def _wrenches(self, external_wrenches: Wrenches) -> Iterator[None]:
        """Apply external wrenches to the bodies, and clear them on exit."""
        tree = self.model.tree
        forces = wrenches(self.model, external_wrenches)
        try:
            for k, wrench in forces.items():
                there = self._columns(WRENCH, 6, tree.link_body[k])
                self.robot[there] += Ad(inverse(tree.link_pose[k])).T @ wrench
            yield
        finally:
            self.robot[self._columns(WRENCH, 6)] = 0.0
