# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Friction, springs and rotors of joints that depend on others because loops are closed.

The coefficients of a robot are those of its independent velocities v; those of all joints are in
``model.unconstrained``. With V = G v, torques tau_i of the dependent joints are G^T tau_i here.

"""

from collections.abc import Callable
from typing import Any

import numpy as np
from rbd_ros.model.changes.friction import direction, friction
from rbd_ros.model.changes.springs import springs
from rbd_ros.model.model import Model
from rbd_ros.workspace.workspace import workspace_of


def velocity_map(model: Model, q: np.ndarray) -> np.ndarray:
    """Return G, shape (velocities of the tree, nv), of a robot with closed loops."""
    workspace: Any = workspace_of(model)
    workspace._at(q)
    G: np.ndarray = workspace._G.copy()
    return G


def passive_torques(model: Model, q: np.ndarray, v: np.ndarray,
                    of_joints: Callable[[Model, np.ndarray, np.ndarray], np.ndarray]
                    ) -> np.ndarray:
    """
    Return the torques (..., nv) of joints that depend on others, zeros if there are none.

    ``of_joints`` returns the torques of all joints, given the robot without its constraints, G
    and the velocities of all joints; q and v are of one state or of several.

    """
    if model.loops is None:
        return np.zeros_like(v)
    if v.ndim == 2:
        return np.reshape([passive_torques(model, *state, of_joints) for state in zip(q, v)],
                          v.shape)
    G, own = velocity_map(model, q), model.loops.own
    tau = np.array(of_joints(model.unconstrained, G, G @ v))
    tau[own] = 0.0
    return tau @ G


def passive_friction(model: Model, q: np.ndarray, v: np.ndarray,
                     smooth: float | np.ndarray = 0.0) -> np.ndarray:
    """Return the friction of dependent joints; ``smooth`` is one speed or one per velocity."""
    def of_joints(tree: Model, G: np.ndarray, V: np.ndarray) -> np.ndarray:
        speed = smooth if np.ndim(smooth) == 0 else np.abs(G) @ smooth
        return friction(tree, V, direction(V, speed), V)
    return passive_torques(model, q, v, of_joints)


def passive_rotors(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the torques (..., nv) that accelerate the rotors of dependent joints."""
    if model.loops is None:
        return np.zeros_like(v)
    if v.ndim == 2:
        return np.reshape([passive_rotors(model, *state) for state in zip(q, v, a)], v.shape)
    workspace: Any = workspace_of(model)
    workspace._move(q, v, a)
    tau = model.unconstrained.armature * workspace._A
    tau[model.loops.own] = 0.0
    return tau @ workspace._G


def all_springs(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the torques (..., nv) of the springs of all joints at valid configurations."""
    if model.loops is None:
        return springs(model, q)
    if not model.unconstrained.stiffness.any():
        return np.zeros((*q.shape[:-1], model.nv))
    if q.ndim == 2:
        return np.reshape([all_springs(model, one) for one in q], (len(q), model.nv))
    return springs(model.unconstrained, q) @ velocity_map(model, q)
