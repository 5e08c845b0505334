# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians of links, and the centre of mass; errors are those of `rbd_ros.dynamics`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import centroidal, link_jacobians
from rbd_ros.kernels.states import batch_kinematics
from rbd_ros.kernels.tree import link_poses
from rbd_ros.model.model import Model
from rbd_ros.workspace.derivative_rules import of_pose, rate
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import lanes_of, shape, States
from rbd_ros.workspace.memory.maps import columns, same
from rbd_ros.workspace.memory.results import COM, COM_JACOBIAN, JACOBIAN
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity


JACOBIANS, COMS, COM_JACOBIANS = shape(6, -1), shape(3), shape(3, -1)
JACOBIAN_SCRATCH = lanes_of(JACOBIANS), lanes_of(shape(4, 4))
JACOBIAN_AND_POSE = 'J, T : ndarray, shapes (6, nv) and (4, 4)'
COM_SCRATCH = lanes_of(COM_JACOBIANS), lanes_of(COMS)


def shape_of_poses(model: Model, n: int) -> list[tuple[int, ...]]:
    """Return the shape of the poses of all links."""
    return [(len(model.links), 4, 4)]


class KinematicsMethods(RobotArrays):
    """Poses and Jacobians of links, and the centre of mass."""

    @quantity(same, states=States(
        batch_kinematics.link_poses_states, shape_of_poses,
        [lambda w: w._kept(scratch.link_table), lanes_of(shape_of_poses)]), derivatives=of_pose,
        by_link=True, results={'T': 'poses of all links in the frame of the root, 4 x 4 each'})
    def forward_kinematics(self, q: ArrayLike) -> np.ndarray:
        """
        Return the poses of all links in the root's frame.

        Reference: Kim (34); Lynch and Park (9.51); Vlasblom (2.3).

        Returns
        -------
        ndarray, shape (len(model.links), 4, 4)
            In the order of ``model.link_names``; each maps coordinates in the link to the root's.

        """
        T = self._result(scratch.link_matrices)
        links = self._kept(scratch.link_table)
        if not link_poses.link_poses(self.robot, self._traits, q, links, T):
            self._explain(q=q)
        return T

    @quantity(columns, same, part=0, returns=JACOBIAN_AND_POSE, kept=True, states=States(
        batch_kinematics.jacobian_states, JACOBIANS, JACOBIAN_SCRATCH,
        of_link=lambda w, link: (w._link_row(link),)), derivatives=rate('world_jacobian_dot'),
        results={'J': 'angular velocity of the link and velocity of its origin, in the axes of '
                      'the root, per velocity'})
    def world_jacobian(self, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the Jacobian of a link about its origin, in the axes of the root.

        Reference: Vlasblom (2.13), for any point of the body.

        Returns
        -------
        ndarray, shape (6, nv)
            J v is the link's angular velocity, rad/s, and the velocity of its origin, m/s.

        """
        try:
            row = self._world_rows[link]
        except (KeyError, TypeError):
            row = self._link_row(link)
        if not link_jacobians.jacobian_columns(self.robot, self._traits, q, row,
                                               self._jacobian_rows):
            self._explain(q=q)
        return self._jacobian_and_pose

    @quantity(columns, same, part=0, returns=JACOBIAN_AND_POSE, kept=True, states=States(
        batch_kinematics.jacobian_states, JACOBIANS, JACOBIAN_SCRATCH,
        of_link=lambda w, link: (w._link_row(link, False),)), derivatives=rate('jacobian_dot'),
        results=JACOBIAN, in_code='jacobian')
    def body_jacobian(self, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the Jacobian of a link about its origin, in its own axes.

        Reference: Vlasblom (2.8); Lynch and Park, text below (9.60); Garofalo et al. (27).

        Returns
        -------
        ndarray, shape (6, nv)
            J v is the link's twist, angular first, rad/s and m/s.

        """
        try:
            row = self._body_rows[link]
        except (KeyError, TypeError):
            row = self._link_row(link, False)
        if not link_jacobians.jacobian_columns(self.robot, self._traits, q, row,
                                               self._jacobian_rows):
            self._explain(q=q)
        return self._jacobian_and_pose

    def _com_and_jacobian(self, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        J, com = self._kept(scratch.com_rows)
        if not centroidal.center_of_mass(self.robot, self._traits, q, J, com):
            self._explain(q=q)
        return J, com

    @quantity(same, kept=True, states=States(
        batch_kinematics.center_of_mass_states, COMS, COM_SCRATCH), results=COM,
        derivatives='com_jacobian')
    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """
        Return the centre of mass of the whole robot, root link included.

        Returns
        -------
        ndarray, shape (3,)
            In the root's frame, m; the root's origin for a robot without mass.

        """
        return self._com_and_jacobian(q)[1]

    @quantity(columns, kept=True, states=States(
        batch_kinematics.com_jacobian_states, COM_JACOBIANS, COM_SCRATCH), results=COM_JACOBIAN,
        derivatives=rate('com_jacobian_dot'))
    def com_jacobian(self, q: ArrayLike) -> np.ndarray:
        """
        Return the Jacobian of the centre of mass.

        Reference: Garofalo et al. (7), by composite bodies.

        Returns
        -------
        ndarray, shape (3, nv)
            J v is the velocity of the centre of mass in the root's frame, m/s.

        """
        return self._com_and_jacobian(q)[0]


forward_kinematics = plain(KinematicsMethods.forward_kinematics)
world_jacobian = plain(KinematicsMethods.world_jacobian, np.ndarray)
body_jacobian = plain(KinematicsMethods.body_jacobian, np.ndarray)
center_of_mass = plain(KinematicsMethods.center_of_mass)
com_jacobian = plain(KinematicsMethods.com_jacobian)
