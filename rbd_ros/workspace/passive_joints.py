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


def passive_torques(model: Model, of_joints: Callable[..., np.ndarray], q: np.ndarray,
                    v: np.ndarray, *a: np.ndarray) -> np.ndarray:
    """Return torques (..., nv) of dependent joints, given the function of tree, G, V and A."""
    if model.loops is None:
        return np.zeros_like(v)
    if v.ndim == 2:
        return np.reshape([passive_torques(model, of_joints, *state)
                           for state in zip(q, v, *a)], v.shape)
    workspace: Any = workspace_of(model)
    workspace._move(q, v, *a)
    tau = np.array(of_joints(model.unconstrained, workspace._G, workspace._V, workspace._A))
    tau[model.loops.own] = 0.0
    return tau @ workspace._G


def passive_friction(model: Model, q: np.ndarray, v: np.ndarray,
                     smooth: float | np.ndarray = 0.0) -> np.ndarray:
    """Return the friction of dependent joints; ``smooth`` is one speed or one per velocity."""
    def of_joints(tree: Model, G: np.ndarray, V: np.ndarray, A: np.ndarray) -> np.ndarray:
        speed = smooth if np.ndim(smooth) == 0 else np.abs(G) @ smooth
        return friction(tree, V, direction(V, speed), V)
    return passive_torques(model, of_joints, q, v)


def passive_rotors(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the torques (..., nv) that accelerate the rotors of dependent joints."""
    return passive_torques(model, lambda tree, G, V, A: tree.armature * A, q, v, a)


def all_springs(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the torques (..., nv) of the springs of all joints at valid configurations."""
    if model.loops is None:
        return springs(model, q)
    if not model.unconstrained.stiffness.any():
        return np.zeros((*q.shape[:-1], model.nv))
    if q.ndim == 2:
        return np.reshape([all_springs(model, one) for one in q], (len(q), model.nv))
    return springs(model.unconstrained, q) @ velocity_map(model, q)
