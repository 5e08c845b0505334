# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Wrenches by which constraints close the loops of a robot; errors are those of dynamics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kinematics import forward_kinematics
from rbd_ros.model.loops import equation_rows
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.workspace import workspace_of


class ConstraintForceMethods(RobotArrays):
    """The forces of constraints, none without closed loops."""

    def constraint_forces(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Return the forces of all equations of constraints, N and N m, in axes of frames a."""
        self.check(q=q, v=v, a=a)
        return np.zeros(0)


def constraint_forces(model: Model, q: ArrayLike, v: ArrayLike,
                      a: ArrayLike) -> dict[str, np.ndarray]:
    """
    Return the wrenches by which constraints close the loops of a robot.

    They are those of rigid-body dynamics, without friction of passive joints; of least norm where
    constraints are redundant. For reading: it is slower than `inverse_dynamics`.

    Parameters
    ----------
    model, q, v, a
        Robot; arguments as for `inverse_dynamics`.

    Returns
    -------
    dict of str to ndarray of shape (6,)
        By the name of the constraint: moment, N m, and force, N, on link b about the origin of
        frame a, in its axes; link a has the opposite.

    """
    forces, wrenches = workspace_of(model).constraint_forces(q, v, a), {}
    for one, rows in equation_rows(model.constraints):
        part, wrench = forces[rows], np.zeros(6)
        wrenches[one.name] = wrench
        if one.kind == 'distance':
            T = forward_kinematics(model, q)
            T_a = T[model.link_index(one.link_a)] @ one.placement_a
            p_b = T[model.link_index(one.link_b)] @ one.placement_b[:, 3]
            line = T_a[:3, :3].T @ (p_b[:3] - T_a[:3, 3])
            wrench[3:] = part[0] * line / np.linalg.norm(line)
        else:
            wrench[:one.equations - 3], wrench[3:] = part[:-3], part[-3:]
    return wrenches
