# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations as sums over bodies: the readable reference that the recursions are tested against.

Everything is in body frames, for joints with any S(q), in plain NumPy, regardless of speed.
A_i = Ad(T_i)^-1 takes twists from the parent to link i; Xi_i has S_i in the columns of its joint
and zeros elsewhere. Here every link is a body of its own, fixed ones included. If joints mimic
others, Jacobians are taken with respect to all joints and then multiplied by G.

"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.configurations import tree_coordinates
from rbd_ros.model.inertial import armature_matrix, inertia_matrices
from rbd_ros.model.joints import joint_pose, joint_subspace, joint_subspace_rate
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, ad, inverse
from rbd_ros.workspace.results import Factorization


def _fold(model: Model, J: np.ndarray) -> np.ndarray:
    return J @ model.coordinates.G


def each_joint(
        model: Model, q: np.ndarray,
        v: np.ndarray) -> Iterator[tuple[int, int, np.ndarray, slice, np.ndarray, np.ndarray]]:
    """
    Yield the joints from the root to the leaves.

    Parameters
    ----------
    model : Model
        The robot.
    q, v : ndarray
        Coordinates of all joints, see `tree_coordinates`.

    Yields
    ------
    k, parent : int
        Index of the child link of the joint, and of its parent.
    T : ndarray, shape (4, 4)
        Pose of link k in its parent's frame [K: T_{lambda(i),i}].
    columns : slice
        The joint's entries of v.
    S, S_rate : ndarray, shape (6, joint.nv)
        Motion subspace in the axes of link k, and its own rate of change.

    """
    i = j = 0
    for k, joint in enumerate(model.joints, 1):
        q_i, v_i = q[i:i + joint.nq], v[j:j + joint.nv]
        yield (k, model.link_index(joint.parent), joint.placement @ joint_pose(joint, q_i),
               slice(j, j + joint.nv), joint_subspace(joint, q_i),
               joint_subspace_rate(joint, q_i, v_i))
        i, j = i + joint.nq, j + joint.nv


def poses(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the pose of every link in the root's frame [L (9.51), V (2.3)].

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.

    Returns
    -------
    ndarray, shape (links, 4, 4)
        In the order of ``model.link_names``.

    """
    q, = tree_coordinates(model, q)
    T = [np.eye(4)]
    for _, parent, T_i, _, _, _ in each_joint(model, q, np.zeros(len(q))):
        T.append(T[parent] @ T_i)
    return np.array(T)


def body_jacobians(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the body Jacobian of every link, J_i = A_i J_parent + Xi_i [V (2.8), G (27)].

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.

    Returns
    -------
    ndarray, shape (links, 6, model.nv)
        Angular first.

    """
    return body_jacobian_rates(model, q, np.zeros(model.nv))[0]


def body_jacobian_rates(model: Model, q: npt.ArrayLike,
                        v: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """
    Return body Jacobians and their time derivatives [G (28), for any S(q)].

    Jdot_i = A_i Jdot_parent - ad_{S v} A_i J_parent + Xidot_i.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.
    v : array_like, shape (model.nv,)
        Velocity.

    Returns
    -------
    J, J_rate : ndarray, shape (links, 6, model.nv)
        Angular first.

    """
    q, v = tree_coordinates(model, q, v)
    J, J_rate = [np.zeros((6, len(v)))], [np.zeros((6, len(v)))]
    for _, parent, T, columns, S, S_rate in each_joint(model, q, v):
        A = Ad(inverse(T))
        J_i = A @ J[parent]
        J_rate_i = A @ J_rate[parent] - ad(S @ v[columns]) @ J_i
        J_i[:, columns] += S
        J_rate_i[:, columns] += S_rate
        J.append(J_i)
        J_rate.append(J_rate_i)
    return _fold(model, np.array(J)), _fold(model, np.array(J_rate))


def mass_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return M = sum J^T G J [V (1.12), G (6a), L (9.61)].

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        With the armature.

    """
    return armature_matrix(model) + sum(
        J.T @ G @ J for J, G in zip(body_jacobians(model, q), inertia_matrices(model)))


def momentum_bracket(h: np.ndarray) -> np.ndarray:
    """Return N(h) with N(h) x = -ad_x^T h [Garofalo et al. (7)]."""
    return -np.transpose([ad(unit).T @ h for unit in np.eye(6)])


def coriolis_factor(G: np.ndarray, V: np.ndarray, factorization: Factorization) -> np.ndarray:
    """
    Return the matrix B, linear in G and in V, of C = sum J^T (B J + G Jdot).

    Parameters
    ----------
    G : ndarray, shape (6, 6)
        Inertia of a link.
    V : ndarray, shape (6,)
        Its twist.
    factorization : {'christoffel', 'body'}
        1/2 (Psi + N(G V)), or Psi = G ad_V - ad_V^T G [G (3), (6b)].

    Returns
    -------
    ndarray, shape (6, 6)
        Skew; B V is the same for both.

    Raises
    ------
    StateError
        If the factorization is another.

    """
    Psi = G @ ad(V) - ad(V).T @ G
    if factorization == 'body':
        return Psi
    if factorization == 'christoffel':
        return 0.5 * (Psi + momentum_bracket(G @ V))
    raise StateError(f"factorization must be 'christoffel' or 'body', got '{factorization}'")


def coriolis_matrix(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
                    factorization: Factorization = 'christoffel') -> np.ndarray:
    """
    Return C, with dM/dt - 2 C skew.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.
    v : array_like, shape (model.nv,)
        Velocity.
    factorization : {'christoffel', 'body'}
        sum J^T (1/2 (Psi + N(G V)) J + G Jdot), or sum J^T (Psi J + G Jdot) [G (6b)], with
        Psi = G ad_V - ad_V^T G.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        C v is the same for both.

    """
    C = np.zeros((model.nv, model.nv))
    for J, J_rate, G in zip(*body_jacobian_rates(model, q, v), inertia_matrices(model)):
        C += J.T @ (coriolis_factor(G, J @ v, factorization) @ J + G @ J_rate)
    return C


def gravity_torques(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return g = sum J^T G Ad_{0i}^-1 a_0, with a_0 minus gravity [G (6c), L (9.84)].

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.

    Returns
    -------
    ndarray, shape (model.nv,)
        N m or N.

    """
    a_0 = np.concatenate((np.zeros(3), -model.gravity))
    return sum(J.T @ G @ Ad(inverse(T)) @ a_0 for J, G, T in zip(
        body_jacobians(model, q), inertia_matrices(model), poses(model, q)))
