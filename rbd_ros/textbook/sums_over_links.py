# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations as sums over links: the readable reference that the recursions are tested against.

Everything is in body frames, for joints with any S(q), in plain NumPy, regardless of speed.
A_i = Ad(T_i)^-1 maps twists from the parent to link i; Xi_i has S_i in the columns of its joint
and zeros elsewhere. Every link is a body of its own, fixed links included. With mimic joints,
Jacobians are taken with respect to all joints and then multiplied by G.

``model`` is the robot, ``q`` (nq,) its configuration, rad or m, and ``v`` (nv,) its velocity,
rad/s or m/s. StateError is raised if one of them is invalid.

"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from rbd_ros.analysis.jacobians import analytic_jacobian, link_com_jacobian
from rbd_ros.analysis.matrix_derivatives import mass_matrix_derivatives
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import finite_vector, refuse_loops
from rbd_ros.model.changes.inertial import inertia_matrices
from rbd_ros.model.joints import (
    Joint, joint_pose, joint_subspace, joint_subspace_rate, KINDS)
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import checked
from rbd_ros.model.se3 import Ad, ad, inertia_matrix, inverse
from rbd_ros.workspace.memory.results import Factorization


def check_state(model: Model, q: npt.ArrayLike, **velocities: npt.ArrayLike) -> list[np.ndarray]:
    """Return copies of q and of velocities given by name, checked; q with unit quaternions."""
    refuse_loops(model, 'rbd_ros.textbook')
    return [checked(model, q),
            *(finite_vector(model, label, x) for label, x in velocities.items())]


def tree_coordinates(model: Model, q: npt.ArrayLike,
                     *velocities: npt.ArrayLike) -> tuple[np.ndarray, ...]:
    """Return q and any number of velocities or accelerations of all joints, mimics included."""
    refuse_loops(model, 'rbd_ros.textbook')
    q, velocities = np.asarray(q, float), [np.asarray(x, float) for x in velocities]
    if model.coordinates.is_identity:
        return (q, *velocities)
    return (model.coordinates.position(q), *map(model.coordinates.velocity, velocities))


def each_joint(model: Model, q: np.ndarray, v: np.ndarray) -> Iterator[
        tuple[Joint, np.ndarray, int, np.ndarray, slice, np.ndarray, np.ndarray]]:
    """
    Yield (joint, q_i, parent, T, columns, S, S_rate) of every joint, from the root to the leaves.

    T (4, 4) is the pose of the child link in the frame of the link with index `parent` [K:
    T_{lambda(i),i}]; `columns` are the joint's entries of v; S and its own rate (6, joint.nv) are
    in the axes of the child link. q and v are those of `tree_coordinates`.

    """
    i = j = 0
    for joint in model.joints:
        q_i, columns = q[i:i + joint.nq], slice(j, j + joint.nv)
        yield (joint, q_i, model.link_index(joint.parent),
               joint.placement @ joint_pose(joint, q_i), columns, joint_subspace(joint, q_i),
               joint_subspace_rate(joint, q_i, v[columns]))
        i, j = i + joint.nq, j + joint.nv


def poses(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """Return the pose of every link in the root frame (links, 4, 4) [L (9.51), V (2.3)]."""
    q, = tree_coordinates(model, q)
    T = [np.eye(4)]
    for _, _, parent, T_i, _, _, _ in each_joint(model, q, np.zeros(len(q))):
        T.append(T[parent] @ T_i)
    return np.array(T)


def body_jacobians(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """Return J_i = A_i J_parent + Xi_i of every link (links, 6, nv) [V (2.8), G (27)]."""
    return body_jacobian_rates(model, q, np.zeros(model.nv))[0]


def body_jacobian_rates(model: Model, q: npt.ArrayLike,
                        v: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return body Jacobians and Jdot_i = A_i Jdot_p - ad_{S v} A_i J_p + Xidot_i [G (28)]."""
    J, J_rate = rates_by_all_joints(model, *tree_coordinates(model, q, v))
    return J @ model.coordinates.G, J_rate @ model.coordinates.G


def rates_by_all_joints(model: Model, q: np.ndarray,
                        v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `body_jacobian_rates` of all joints, given `tree_coordinates`."""
    J, J_rate = np.zeros((2, len(model.links), 6, len(v)))
    for i, (_, _, p, T, columns, S, S_rate) in enumerate(each_joint(model, q, v), 1):
        A = Ad(inverse(T))
        J[i] = A @ J[p]
        J_rate[i] = A @ J_rate[p] - ad(S @ v[columns]) @ J[i]
        J[i, :, columns] += S
        J_rate[i, :, columns] += S_rate
    return J, J_rate


def mass_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """Return M = sum J^T G J, armature included [V (1.12), G (6a), L (9.61)]."""
    return np.diag(model.armature) + sum(
        J.T @ G @ J for J, G in zip(body_jacobians(model, q), inertia_matrices(model)))


def momentum_bracket(h: np.ndarray) -> np.ndarray:
    """Return N(h) with N(h) x = -ad_x^T h [Garofalo et al. (7)]."""
    return -np.transpose([ad(unit).T @ h for unit in np.eye(6)])


def coriolis_factor(G: np.ndarray, V: np.ndarray, factorization: Factorization) -> np.ndarray:
    """
    Return the skew matrix B (6, 6), linear in G and V, of C = sum J^T (B J + G Jdot).

    With Psi = G ad_V - ad_V^T G [G (3)] of one link, B is Psi for the factorization 'body'
    [G (6b)], and 1/2 (Psi + N(G V)) for 'christoffel'; B V is the same for both.

    """
    Psi = G @ ad(V) - ad(V).T @ G
    if factorization == 'body':
        return Psi
    if factorization == 'christoffel':
        return 0.5 * (Psi + momentum_bracket(G @ V))
    raise StateError(f"factorization must be 'christoffel' or 'body', got '{factorization}'")


def coriolis_matrix(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *,
                    factorization: Factorization = 'christoffel') -> np.ndarray:
    """Return C = sum J^T (B J + G Jdot), with dM/dt - 2 C skew; B as in `coriolis_factor`."""
    C = np.zeros((model.nv, model.nv))
    for J, J_rate, G in zip(*body_jacobian_rates(model, q, v), inertia_matrices(model)):
        C += J.T @ (coriolis_factor(G, J @ v, factorization) @ J + G @ J_rate)
    return C


def gravity_torques(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """Return g = sum J^T G Ad_{0i}^-1 a_0, with a_0 minus gravity [G (6c), L (9.84)]."""
    a_0 = np.concatenate((np.zeros(3), -model.gravity))
    return sum(J.T @ G @ Ad(inverse(T)) @ a_0 for J, G, T in zip(
        body_jacobians(model, q), inertia_matrices(model), poses(model, q)))


# -- Lagrange's equations of motion; Vlasblom's sums in frames at the centres of mass. -----------
# For readers and tests: `rbd_ros.mass_matrix`, `coriolis_matrix` and `gravity_torques` compute the
# same in one pass.
def christoffel_symbols(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the Christoffel symbols of the first kind of M [V (1.15), L (9.13), (9.86)].

    ``Gamma[i, j, k]`` = 1/2 (d_k M_ij + d_j M_ik - d_i M_jk), shape (nv, nv, nv). ModelError is
    raised for joints with quaternions: the directions of their v do not commute, so these are not
    the symbols of the equations of motion.

    """
    q, = check_state(model, q)
    for joint, _, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws:
            raise ModelError(
                f"joint '{joint.name}' of kind '{joint.kind}' has no Christoffel symbols, because "
                'its v is not dq/dt; use coriolis_matrix, which supports all kinds, or a joint of '
                'kind euler_zyx or free_euler_zyx, which allows the same motions')
    dM = mass_matrix_derivatives(model, q)      # d_k M_ij at [i, j, k]
    return 0.5 * (dM + dM.transpose(0, 2, 1) - dM.transpose(2, 0, 1))


def christoffel_coriolis_matrix(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """Return C, (nv, nv), as the Christoffel symbols times v [V (1.16), L (9.87)]."""
    q, v = check_state(model, q, v=v)
    return christoffel_symbols(model, q) @ v


def com_frame_mass_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return M, (nv, nv), as a sum over links in frames at their centres of mass [V (1.12), (2.17)].

    V (2.19) is taken in the axes of the link instead of its principal axes.

    """
    q, = check_state(model, q)
    M = np.diag(model.armature)
    for link in model.links:
        J = link_com_jacobian(model, q, link.name)
        M = M + J.T @ inertia_matrix(link.mass, np.zeros(3), link.inertia) @ J
    return M


def com_frame_gravity_torques(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """Return g, (nv,), as a sum of weights times analytic Jacobians [V (1.17), (2.23), (2.24)]."""
    q, = check_state(model, q)
    return -sum(analytic_jacobian(model, q, link.name).T @ (link.mass * model.gravity)
                for link in model.links)
