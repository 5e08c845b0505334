# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How a robot, its state and what pushes it change with a scalar p, and what follows for each joint.

`Variation` is what a user gives; `vary_bodies` makes of it the quantities of Kim (64), which the
derivatives of the recursions begin with.

"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.inertial import inertia_of_parameters
from rbd_ros.model.joints import (joint_pose, joint_subspace, joint_subspace_rate,
                                  joint_subspace_rate_change)
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.textbook.sums_over_links import inertia_matrices
from rbd_ros.validation import finite_array, finite_vector, shown, wrenches


@dataclass(frozen=True)
class Variation:
    """
    Derivatives by a scalar p of all that the dynamics depend on. What is left out is constant.

    Attributes
    ----------
    dq : array_like, shape (nv,), optional
        Of the configuration, along the directions of v: rad and m per unit of p. For ball and
        free joints the turn and shift of the moving body in its own axes.
    dv, da, dtau : array_like, shape (nv,), optional
        Of velocity, acceleration and torque.
    dwrenches : mapping of str to array_like of shape (6,)
        For each link that is named, of the components in its own axes of the external wrench.
    world_fixed : collection of str
        Links whose external wrench keeps its moment and force in the axes of the root while the
        link turns (a weight that hangs on it), rather than in the link's own axes.
    dinertia : mapping of str to array_like of shape (10,) or (6, 6)
        For each link that is named, of its inertia about the origin of its frame: of the
        parameters m, mcx, mcy, mcz, Ixx, Iyy, Izz, Ixy, Ixz, Iyz, or of the matrix.
    dplacement : mapping of str to array_like of shape (6,)
        For each joint that is named, of where it sits on its parent: the twist vee(P^-1 dP/dp) in
        the joint's frame, angular first.

    """

    dq: np.ndarray | None = None
    dv: np.ndarray | None = None
    da: np.ndarray | None = None
    dtau: np.ndarray | None = None
    dwrenches: Mapping = field(default_factory=dict)
    world_fixed: Collection = ()
    dinertia: Mapping = field(default_factory=dict)
    dplacement: Mapping = field(default_factory=dict)


class VariedBody(NamedTuple):
    """
    A link with the joint that leads to it, and the derivatives of both by p [K (64)].

    Attributes
    ----------
    parent : int
        Index of the link that the joint leaves.
    columns : slice
        The joint's entries among the velocities of all joints.
    A, dh : ndarray, shapes (6, 6), (6,)
        Ad(T)^-1, with T the pose in the parent's frame, and vee(T^-1 dT/dp) [K (61)].
    S, S_rate, dS, dS_rate : ndarray, shape (6, joint.nv)
        Motion subspace, its rate, and how both change.
    G, dG : ndarray, shape (6, 6)
        Inertia.
    f, df : ndarray, shape (6,)
        External wrench, in the link's axes.
    armature : ndarray, shape (joint.nv,)
        Inertia of the rotors.

    """

    parent: int
    columns: slice
    A: np.ndarray
    dh: np.ndarray
    S: np.ndarray
    S_rate: np.ndarray
    dS: np.ndarray
    dS_rate: np.ndarray
    G: np.ndarray
    dG: np.ndarray
    f: np.ndarray
    df: np.ndarray
    armature: np.ndarray


def vary_subspace(joint, q, v, dq, dv):
    """
    Return S, its rate, and how both change with q along dq and v along dv, all 6 x nv.

    dS = sum S_{,r} dq_r, d(Sdot) = sum S_{,rs} dq_s v_r + S_{,r} dv_r.

    """
    return (joint_subspace(joint, q), joint_subspace_rate(joint, q, v),
            joint_subspace_rate(joint, q, dq), joint_subspace_rate_change(joint, q, v, dq, dv))


def vary_bodies(model, q, v, dq, dv, external_wrenches, variation):
    """
    Return the links but the root, parents first, with what changes about them [K (64)].

    Parameters
    ----------
    model : Model
        The robot.
    q, v, dq, dv : ndarray
        Of all joints, mimicking ones included, see `sums_over_links.tree_coordinates`.
    external_wrenches : mapping of str to array_like, or None
        External wrenches.
    variation : Variation
        Whose fields for q, v, a and tau are not read.

    Returns
    -------
    list of VariedBody
        Entry k - 1 is link k.

    Raises
    ------
    ModelError
        If a link or joint is not there.
    StateError
        If a derivative has a wrong shape or holds a non-finite number.

    """
    f = wrenches(model, external_wrenches)
    df = wrenches(model, variation.dwrenches, 'dwrenches')
    dG = _inertias_by_link(model, variation.dinertia)
    shifts = _by_joint(model, variation.dplacement)
    world_fixed = {model.link_index(link) for link in variation.world_fixed}
    G = inertia_matrices(model)
    bodies, moved = [], [np.zeros(6)]
    i = j = 0
    for k, joint in enumerate(model.joints, 1):
        parent, columns = model.link_index(joint.parent), slice(j, j + joint.nv)
        q_k = q[i:i + joint.nq]
        S, S_rate, dS, dS_rate = vary_subspace(joint, q_k, v[columns], dq[columns], dv[columns])
        X = joint_pose(joint, q_k)
        A = Ad(inverse(joint.placement @ X))
        # Of the link against its parent, and against the root.
        dh = S @ dq[columns] + Ad(inverse(X)) @ shifts.get(joint.name, np.zeros(6))
        moved.append(A @ moved[parent] + dh)
        f_k, df_k = f.get(k, np.zeros(6)), df.get(k, np.zeros(6))
        if k in world_fixed:
            turn = moved[k][:3]
            df_k = df_k - np.concatenate((np.cross(turn, f_k[:3]), np.cross(turn, f_k[3:])))
        bodies.append(VariedBody(parent, columns, A, dh, S, S_rate, dS, dS_rate, G[k],
                                 dG.get(k, np.zeros((6, 6))), f_k, df_k,
                                 np.array(joint.armature)))
        i, j = i + joint.nq, j + joint.nv
    return bodies


def check_direction(model, label, x):
    """Return a derivative of v's kind as an array, zeros if there is none, or refuse it."""
    if x is None:
        return np.zeros(model.nv)
    return finite_vector(model, label, x)


def _inertias_by_link(model, values):
    changes = {}
    for link, x in _named('dinertia', values).items():
        x = finite_array(f"dinertia of link '{link}'", x, (10,), (6, 6))
        changes[model.link_index(link)] = x if x.ndim == 2 else inertia_of_parameters(x)
    return changes


def _by_joint(model, values):
    known, values = {joint.name for joint in model.joints}, _named('dplacement', values)
    for name in values:
        if name not in known:
            raise ModelError(f"robot '{model.name}' has no joint '{name}', named in dplacement")
    return {name: finite_array(f"dplacement of joint '{name}'", x, (6,))
            for name, x in values.items()}


def _named(label, values):
    """Return what changes by the names of links or joints, or refuse what is no dict."""
    if not isinstance(values, Mapping):
        raise StateError(f'{label} must be a dict by names, got {shown(values)}')
    return values
