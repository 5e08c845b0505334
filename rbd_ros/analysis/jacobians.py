# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Jacobians of links in further frames, and rates and derivatives of Jacobians.

The last index is that of the coordinate of differentiation; for ball and free joints the
derivative is taken along the direction of v. Errors are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import link_jacobians
from rbd_ros.kernels.states import batch_kinematics
from rbd_ros.kinematics import JACOBIANS
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import skew
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import lanes_of, shape, States
from rbd_ros.workspace.memory.maps import (
    bias_of, by_coordinates, columns, columns_dot, rates, rates_by_coordinates)
from rbd_ros.workspace.memory.results import JACOBIAN_DOT
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity
from rbd_ros.workspace.workspace import workspace_of

JACOBIAN_AND_RATE = 'J, J_dot : ndarray, shape (6, nv)'


class JacobianMethods(RobotArrays):
    """Rates and derivatives of Jacobians."""

    def _jacobian_and_rate(self, q: ArrayLike, v: ArrayLike, link: str,
                           aligned: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link and its rate, in its axes or, aligned, the root's."""
        rows, J, J_dot, _ = self._kept(scratch.jacobian_rates)
        if not link_jacobians.link_jacobian_rate(self.robot, self._traits, q, v,
                                                 self._link_row(link), aligned, rows):
            self._explain(q=q, v=v)
        return J, J_dot

    @quantity(rates, part=1, returns=JACOBIAN_AND_RATE, kept=True, states=States(
        batch_kinematics.jacobian_rate_states, JACOBIANS, [lanes_of(shape(12, -1))],
        of_link=lambda w, link: (w._link_row(link), False)), results=JACOBIAN_DOT)
    def jacobian_dot(self, q: ArrayLike, v: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the time derivative of the body Jacobian of a link.

        Reference: Garofalo et al. (28), with dS/dt.

        Returns
        -------
        ndarray, shape (6, nv)
            Angular first, in the link's axes: J a + Jdot v is the rate of the twist's components.

        """
        return self._jacobian_and_rate(q, v, link, False)

    @quantity(rates, part=1, returns=JACOBIAN_AND_RATE, kept=True, states=States(
        batch_kinematics.jacobian_rate_states, JACOBIANS, [lanes_of(shape(12, -1))],
        of_link=lambda w, link: (w._link_row(link), True)),
        results={'J_dot': 'rate of the world Jacobian of the link'})
    def world_jacobian_dot(self, q: ArrayLike, v: ArrayLike,
                           link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the rate of `world_jacobian`, Ad_R (Jdot + blockdiag([omega], [omega]) J).

        Returns
        -------
        ndarray, shape (6, nv)
            J a + Jdot v is the angular acceleration and the acceleration of the link's origin, in
            the root's axes, rad/s^2 and m/s^2.

        """
        return self._jacobian_and_rate(q, v, link, True)

    def _bias(self, q: ArrayLike, v: ArrayLike, link: str, aligned: bool) -> np.ndarray:
        bias = self._kept(scratch.link_acceleration)
        if not link_jacobians.link_bias(self.robot, self._traits, q, v, self._link_row(link),
                                        aligned, bias):
            self._explain(q=q, v=v)
        return bias[0]

    @quantity(bias_of('body_jacobian'), kept=True)
    def jacobian_dot_v(self, q: ArrayLike, v: ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v (6,) of a link, in its axes, rad/s^2 and m/s^2: where a is zero."""
        return self._bias(q, v, link, False)

    @quantity(bias_of('world_jacobian'), kept=True)
    def world_jacobian_dot_v(self, q: ArrayLike, v: ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v (6,) of a link, in the root's axes, rad/s^2 and m/s^2: where a is zero."""
        return self._bias(q, v, link, True)

    @quantity(rates, part=2, kept=True,
              returns='J, J_dot, J_ddot : ndarray, shape (6, nv)')
    def jacobian_ddot(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                      link: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """
        Return the second time derivative of the body Jacobian of a link.

        Reference: Garofalo et al. (29), with dS/dt and its rate.

        Returns
        -------
        ndarray, shape (6, nv), angular first, in the link's axes

        """
        rows, J, J_dot, J_ddot = self._kept(scratch.jacobian_rates)
        if not link_jacobians.link_jacobian_rates(self.robot, self._traits, q, v, a,
                                                  self._link_row(link), rows):
            self._explain(q=q, v=v, a=a)
        return J, J_dot, J_ddot

    @quantity(by_coordinates(columns, 'body_jacobian'))
    def jacobian_derivatives(self, q: ArrayLike, link: str) -> np.ndarray:
        """
        Return the derivatives of the body Jacobian of a link with respect to the coordinates.

        Reference: Vlasblom (1.13), (2.21); Garofalo et al. (30), (31), (33).

        Returns
        -------
        ndarray, shape (6, nv, nv)
            ``dJ[:, :, h]``, with respect to coordinate h, per rad or m, is also that of Jdot with
            respect to v_h.

        """
        of_J = self._result(scratch.jacobian_change)
        if not link_jacobians.link_jacobian_derivatives(self.robot, self._traits, q,
                                                        self._link_row(link), of_J):
            self._explain(q=q)
        return of_J.transpose(1, 2, 0)

    @quantity(rates_by_coordinates(columns_dot, lambda tree, given, found: (
        *tree.jacobian_dot(**given), found[1])), results={
            'by_q': 'rate of the Jacobian of the link, with respect to q; the last index',
            'by_v': 'the same, with respect to v'})
    def jacobian_dot_derivatives(self, q: ArrayLike, v: ArrayLike,
                                 link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the derivatives of Jdot of a link with respect to coordinates and velocities.

        Reference: Garofalo et al. (30), (32), (33).

        Returns
        -------
        by_q, by_v : ndarray, shape (6, nv, nv)
            Entry h of the last axis: with respect to coordinate h, with v held, or to v_h.

        """
        of_J, of_rate = self._result(scratch.jacobian_changes)
        if not link_jacobians.link_jacobian_rate_derivatives(self.robot, self._traits, q, v,
                                                             self._link_row(link), of_J, of_rate):
            self._explain(q=q, v=v)
        return of_rate.transpose(1, 2, 0), of_J.transpose(1, 2, 0)


jacobian_dot = plain(JacobianMethods.jacobian_dot, np.ndarray)
world_jacobian_dot = plain(JacobianMethods.world_jacobian_dot, np.ndarray)
jacobian_dot_v = plain(JacobianMethods.jacobian_dot_v)
world_jacobian_dot_v = plain(JacobianMethods.world_jacobian_dot_v)
jacobian_ddot = plain(JacobianMethods.jacobian_ddot, np.ndarray)
jacobian_derivatives = plain(JacobianMethods.jacobian_derivatives)
jacobian_dot_derivatives = plain(JacobianMethods.jacobian_dot_derivatives)


def link_com_jacobian(model: Model, q: ArrayLike, link: str) -> np.ndarray:
    """
    Return the Jacobian of a link about its own centre of mass, in the link's axes.

    Reference: Vlasblom (2.4), (2.9).

    Parameters
    ----------
    model, q, link
        Robot; configuration (nq,), rad or m; name of the link.

    Returns
    -------
    ndarray, shape (6, nv)
        J v is the angular velocity and the velocity of the link's centre of mass, rad/s and m/s.

    """
    J, _ = workspace_of(model).body_jacobian(q, link)
    return np.vstack((J[:3], J[3:] - skew(model.links[model.link_index(link)].com) @ J[:3]))


def link_com_world_jacobian(model: Model, q: ArrayLike, link: str) -> np.ndarray:
    """Return J^g, in axes of the root [Vlasblom (2.14)]; arguments as for `link_com_jacobian`."""
    J, T = workspace_of(model).world_jacobian(q, link)
    com = T[:3, :3] @ model.links[model.link_index(link)].com
    return np.vstack((J[:3], J[3:] - skew(com) @ J[:3]))


def analytic_jacobian(model: Model, q: ArrayLike, link: str) -> np.ndarray:
    """Return the linear rows of J^g [Vlasblom (2.15)]; arguments as for `link_com_jacobian`."""
    return link_com_world_jacobian(model, q, link)[3:]
