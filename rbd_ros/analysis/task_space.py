# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of motion seen from one link: F = Lambda Vdot + eta.

Lynch and Park (9.90)-(9.99), extended to arms with more joints than the task has dimensions, and
kept finite where it has fewer or the Jacobian loses rank.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.analysis.jacobians import JacobianMethods
from rbd_ros.dynamics import DynamicsMethods
from rbd_ros.errors import ModelError
from rbd_ros.kernels.task_space import task_space, UNMOVED
from rbd_ros.model.arguments import choice, number
from rbd_ros.model.model import Model
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.results import (
    Frame, FRAMES, JACOBIAN, JACOBIAN_DOT, TaskSpaceDynamics)
from rbd_ros.workspace.quantity import plain, quantity

__all__ = ['characteristic_length', 'task_space_dynamics', 'TaskSpaceDynamics']
LENGTH_SHARE = 0.2    # unit of length of condition numbers over distance from root to link


def characteristic_length(model: Model, link: str) -> float:
    """Return the unit of length, m, in which rotations and translations of a link compare."""
    # A fifth of the distance from the root to the link along the joints: about the lever arm of a
    # joint in the middle, which minimizes condition numbers of arms. 1 m if the distance is zero.
    way, up = 0.0, {joint.child: joint for joint in model.joints}
    while link in up:
        way += float(np.linalg.norm(up[link].placement[:3, 3]))
        link = up[link].parent
    return LENGTH_SHARE * way if way > 0.0 else 1.0


def condition_and_damped(condition: np.float64, limit: float) -> tuple[float, bool]:
    """Return the condition number, and whether it exceeds the limit."""
    return float(condition), bool(condition > limit)


def unit_of_length(workspace: WorkspaceBase, link: str) -> float:
    """Return the `characteristic_length` of a link, which a workspace computes once."""
    lengths = workspace._scratch.setdefault(characteristic_length, {})
    if link not in lengths:
        lengths[link] = characteristic_length(workspace.model, link)
    return lengths[link]


class TaskSpaceMethods(DynamicsMethods, JacobianMethods):
    """The equations of motion of a link."""

    def _task_terms(self, q: ArrayLike, M: np.ndarray, b: np.ndarray, rows: np.ndarray,
                    link: str, last: int,
                    limit: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (Lambda, eta, condition number), J_bar and the null-space projector."""
        results, length = self._kept(scratch.task_results), unit_of_length(self, link)
        status = task_space(np.ascontiguousarray(M), rows, b, self._kept(self._carriers), last,
                            length, limit, *self._kept(scratch.task_work), *results)
        if status == UNMOVED:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it")
        if status > 0:
            self._refuse(status - 1, q)
        return results

    def _jacobian_and_bias(self, q: ArrayLike, v: ArrayLike, link: str,
                           aligned: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return rows with J and Jdot v of a link, J, Jdot, and the last velocity."""
        J, J_dot = self._jacobian_and_rate(q, v, link, aligned)
        return self._kept(scratch.jacobian_rates)[0], J, J_dot, int(self._link_row(link)[0, 0]) - 1

    @quantity(kept=True, results={
        'Lambda': 'inertia of the link, angular first and in its axes',
        'eta': 'Coriolis, centrifugal and gravity wrench, N m and N', **JACOBIAN, **JACOBIAN_DOT,
        'J_bar': 'dynamically consistent inverse of J', 'null_projector': '1 - J_bar J'})
    def task_space_dynamics(self, q: ArrayLike, v: ArrayLike, link: str, *, frame: Frame = 'body',
                            condition_limit: float = 2e3) -> TaskSpaceDynamics:
        """
        Return the equations of motion of a link, F = Lambda Vdot + eta.

        A joint must move the link (ModelError). F is the wrench that the joint torques exert
        there, J_bar^T tau, or the external wrench on it where there are no torques. Where J is
        square and invertible, J_bar is J^-1.

        Lambda is (J M^-1 J^T + D)^-1. With lengths in units of `characteristic_length`, J has the
        singular values sigma_i and the left singular vectors u_i. With sigma_0 the largest of them
        over ``condition_limit``,

            D = mu sum (sigma_0^2 - sigma_i^2) u_i u_i^T    over all sigma_i < sigma_0

        with mu the largest eigenvalue of J M^-1 J^T over the square of the largest sigma. Away
        from singular poses D is zero, and near them it grows continuously in q. It gives
        directions in which the link cannot be moved at all (too few joints, a singular pose) a
        large finite inertia instead of an infinite one, and does not affect the others.

        Reference: Lynch and Park (9.90)-(9.99), with b for J^-T b in (9.95); for redundant
        arms Lambda = (J M^-1 J^T)^-1 and J_bar = M^-1 J^T Lambda.

        Other Parameters
        ----------------
        frame : {'body', 'world-aligned'}
            Axes of the twist and the wrench: the link's, or the root's; both at the link's origin.
        condition_limit : float
            Condition number of J beyond which the inverse is damped; at least 1.

        Returns
        -------
        TaskSpaceDynamics
            With the fields ``Lambda eta J J_dot J_bar null_projector condition damped``.

        """
        if type(condition_limit) is not float or not 1.0 <= condition_limit < np.inf:
            condition_limit = number('condition_limit', condition_limit, 1.0)
        aligned = choice('frame', frame, FRAMES) == 'world-aligned'
        rows, J, J_dot, last = self._jacobian_and_bias(q, v, link, aligned)
        b, M = self.bias_torques(q, v), self.mass_matrix(q)
        out, J_bar, N = self._task_terms(q, M, b, rows, link, last, condition_limit)
        return TaskSpaceDynamics(out[:6], out[6], J, J_dot, J_bar, N,
                                 *condition_and_damped(out[7, 0], condition_limit))

    def task_inertia(self, M: np.ndarray, q: ArrayLike, link: str, *,
                     condition_limit: float) -> tuple[np.ndarray, float]:
        """Return Lambda of a link in its own axes, and the condition number."""
        rows, _, _, last = self._jacobian_and_bias(q, self._zeros, link, False)
        out, _, _ = self._task_terms(q, M, self._zeros, rows, link, last, condition_limit)
        return out[:6], float(out[7, 0])


task_space_dynamics = plain(TaskSpaceMethods.task_space_dynamics)
