# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of the body Jacobians of all links, from the root to the leaves [G (28)-(33)].

For joints with any S(q), with the terms that vanish for the constant Xi of Garofalo et al. Symbols
as in `sums_over_links`; p is the parent of link i, and xi = Xi v. The derivative with respect to
coordinate h is the ordinary one where v = dq/dt; for ball and free joints it is taken along the
body direction S_h. Jacobians are (links, 6, nv), derivatives ``dJ[i, h]`` (links, nv, 6, nv).

"""

import numpy as np
import numpy.typing as npt
from rbd_ros.model.joints import joint_subspace_rate, joint_subspace_rate_change
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, ad, inverse
from rbd_ros.textbook.sums_over_links import each_joint, rates_by_all_joints, tree_coordinates


def body_jacobian_second_rates(model: Model, q: npt.ArrayLike, v: npt.ArrayLike,
                               a: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return J and its first and second time derivatives [G (29), for any S(q)].

    Jddot_i = A Jddot_p - 2 ad_xi A Jdot_p - ad_{Xi a + Xidot v} A J_p + ad_xi ad_xi A J_p
    + Xiddot.

    """
    q, v, a = tree_coordinates(model, q, v, a)
    J, J_rate = rates_by_all_joints(model, q, v)
    J_second = np.zeros_like(J)
    for i, (joint, q_i, p, T, columns, S, S_rate) in enumerate(each_joint(model, q, v), 1):
        v_i, a_i = v[columns], a[columns]
        A, a_xi = Ad(inverse(T)), ad(S @ v_i)
        J_second[i] = (A @ J_second[p] - 2.0 * a_xi @ A @ J_rate[p]
                       - ad(S @ a_i + S_rate @ v_i) @ A @ J[p] + a_xi @ a_xi @ A @ J[p])
        J_second[i, :, columns] += joint_subspace_rate_change(joint, q_i, v_i, v_i, a_i)
    G = model.coordinates.G
    return J @ G, J_rate @ G, J_second @ G


def body_jacobian_derivatives(model: Model, q: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return J and d_h J_i = A d_h J_p - ad_{Xi^h} A J_p + d_h Xi [V (2.21), G (31)]."""
    J, _, dJ, _ = body_jacobian_rate_derivatives(model, q, np.zeros(model.nv))
    return J, dJ


def body_jacobian_rate_derivatives(model: Model, q: npt.ArrayLike, v: npt.ArrayLike
                                   ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """
    Return J, Jdot, and the derivatives of both with respect to q [G (31), (32)].

    d_h Jdot_i = A d_h Jdot_p - ad_{Xi^h} A Jdot_p - ad_{d_h Xi v} A J_p - ad_xi (d_h J - d_h Xi)
    + d_h Xidot. The derivative of Jdot with respect to v_h is d_h J [G (30), (33)].

    """
    q, v = tree_coordinates(model, q, v)
    J, J_rate = rates_by_all_joints(model, q, v)
    dJ, dJ_rate = np.zeros((2, len(J), len(v), 6, len(v)))
    for i, (joint, q_i, p, T, columns, S, _) in enumerate(each_joint(model, q, v), 1):
        v_i, units = v[columns], np.eye(joint.nv)
        A, a_xi = Ad(inverse(T)), ad(S @ v_i)
        dS = [joint_subspace_rate(joint, q_i, unit) for unit in units]
        dJ[i], dJ_rate[i] = A @ dJ[p], A @ dJ_rate[p]
        own = range(columns.start, columns.stop)
        for h, S_h, dS_h in zip(own, S.T, dS):
            dJ[i, h] -= ad(S_h) @ A @ J[p]
            dJ_rate[i, h] -= ad(S_h) @ A @ J_rate[p] + ad(dS_h @ v_i) @ A @ J[p]
        dJ_rate[i] -= a_xi @ dJ[i]
        for h, unit, dS_h in zip(own, units, dS):
            dJ[i, h, :, columns] += dS_h
            dJ_rate[i, h, :, columns] += joint_subspace_rate_change(
                joint, q_i, v_i, unit, np.zeros(joint.nv))
    G = model.coordinates.G
    return (J @ G, J_rate @ G, np.einsum('ikab,kh->ihab', dJ, G) @ G,
            np.einsum('ikab,kh->ihab', dJ_rate, G) @ G)
