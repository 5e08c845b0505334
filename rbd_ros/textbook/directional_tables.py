# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Kim's tables 5, 6 and 7 as printed: derivatives of the dynamics with respect to any scalar p.

For readers, and to test `inverse_dynamics_derivative` and its siblings, which are a thousand times
as fast. The tables contain the corrections of `doc/equations.md`. dx is the derivative of x with
respect to p. S_a has the columns with prescribed acceleration, S_p those with known torque (a
joint with several velocities may have both), so table 6 is table 7 without S_a.

"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros.model.arguments import Wrenches, wrenches
from rbd_ros.model.changes.inertial import inertia_matrices, inertia_of_parameters
from rbd_ros.model.joints import joint_subspace_rate, joint_subspace_rate_change
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, ad, inverse
from rbd_ros.textbook.sums_over_links import each_joint, mass_matrix, tree_coordinates
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.body_changes import check_directions, inertias_by_link, placements_by_joint
from rbd_ros.workspace.variation import Variation


class VariedBody(NamedTuple):
    """A link with the joint that leads to it, and the derivatives of both [K (64)]."""

    parent: int         # index of the parent link
    columns: slice      # the joint's entries of all joints' velocities
    A: np.ndarray       # Ad(T)^-1 with T the pose in the parent's frame
    dh: np.ndarray      # vee(T^-1 dT/dp) [K (61)]
    # (6, joint.nv): S, Sdot, dS = sum S_{,r} dq_r, and dSdot = sum S_{,rs} dq_s v_r + S_{,r} dv_r.
    S: np.ndarray
    S_rate: np.ndarray
    dS: np.ndarray
    dS_rate: np.ndarray
    G: np.ndarray       # inertia (6, 6)
    dG: np.ndarray
    f: np.ndarray       # external wrench (6,), in the link's axes
    df: np.ndarray
    armature: np.ndarray    # (joint.nv,): inertia of the rotors


def vary_bodies(model: Model, q: np.ndarray, v: np.ndarray, dq: np.ndarray, dv: np.ndarray,
                external_wrenches: Wrenches | None, variation: Variation) -> list[VariedBody]:
    """Return all links but the root, parents first, with their derivatives [K (64)]."""
    f = wrenches(model, external_wrenches)
    df = wrenches(model, variation.dwrenches, 'dwrenches')
    dG = {k: x if x.ndim == 2 else inertia_of_parameters(x)
          for k, x in inertias_by_link(model, variation.dinertia).items()}
    shifts = placements_by_joint(model, variation.dplacement)
    world_fixed = {model.link_index(link) for link in variation.world_fixed}
    G = inertia_matrices(model)
    bodies, moved = [], [np.zeros(6)]
    for k, (joint, q_k, parent, T, columns, S, S_rate) in enumerate(each_joint(model, q, v), 1):
        v_k, dq_k, dv_k = v[columns], dq[columns], dv[columns]
        dS = joint_subspace_rate(joint, q_k, dq_k)
        dS_rate = joint_subspace_rate_change(joint, q_k, v_k, dq_k, dv_k)
        A = Ad(inverse(T))
        # Motion of the link with p, relative to its parent and to the root.
        dh = S @ dq_k + A @ Ad(joint.placement) @ shifts.get(joint.name, np.zeros(6))
        moved.append(A @ moved[parent] + dh)
        f_k, df_k = f.get(k, np.zeros(6)), df.get(k, np.zeros(6))
        if k in world_fixed:
            turn = moved[k][:3]
            df_k = df_k - np.concatenate((np.cross(turn, f_k[:3]), np.cross(turn, f_k[3:])))
        bodies.append(VariedBody(parent, columns, A, dh, S, S_rate, dS, dS_rate, G[k],
                                 dG.get(k, np.zeros((6, 6))), f_k, df_k, np.array(joint.armature)))
    return bodies


def table_5(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
            variation: Variation, *, external_wrenches: Wrenches | None = None) -> np.ndarray:
    """Return dtau, like `rbd_ros.analysis.inverse_dynamics_derivative` [K (64), T5]."""
    Workspace(model).inverse_dynamics(q, v, a, external_wrenches=external_wrenches)
    dq, dv, da = check_directions(model, variation, 'dq', 'dv', 'da')
    q, v, a, dq, dv, da = tree_coordinates(model, q, v, a, dq, dv, da)
    bodies = vary_bodies(model, q, v, dq, dv, external_wrenches, variation)

    # Root to leaves: twists, accelerations and the wrench on each link alone.            [K, T5]
    V, dV = [np.zeros(6)], [np.zeros(6)]
    Vdot, dVdot = [np.concatenate((np.zeros(3), -model.gravity))], [np.zeros(6)]
    F, dF = [np.zeros(6)], [np.zeros(6)]
    for i, body in enumerate(bodies, 1):
        V_i, dV_i, eta, deta = _twists(body, V, dV, v, dv)
        V.append(V_i)
        dV.append(dV_i)
        k, p, A = body.columns, body.parent, body.A
        w = A @ Vdot[p]
        Vdot.append(w + eta + body.S @ a[k])
        dVdot.append(A @ dVdot[p] - ad(body.dh) @ w + deta + body.dS @ a[k] + body.S @ da[k])
        B, dB = _bias(body, V_i, dV_i)
        F.append(body.G @ Vdot[i] + B)
        dF.append(body.dG @ Vdot[i] + body.G @ dVdot[i] + dB)

    # Leaves to root: wrenches and torques.                                               [K, T5]
    dtau = np.zeros(len(v))
    for i, body in reversed(list(enumerate(bodies, 1))):
        k, p, A = body.columns, body.parent, body.A
        dtau[k] = body.dS.T @ F[i] + body.S.T @ dF[i] + body.armature * da[k]
        F[p] = F[p] + A.T @ F[i]
        dF[p] = dF[p] + A.T @ (dF[i] - ad(body.dh).T @ F[i])
    return model.coordinates.G.T @ dtau


def table_6(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike,
            variation: Variation, *, external_wrenches: Wrenches | None = None) -> np.ndarray:
    """Return da, like `rbd_ros.analysis.forward_dynamics_derivative` [K (64), T6]."""
    return table_7(model, q, v, np.zeros(model.nv), tau, np.zeros(model.nv, bool), variation,
                   external_wrenches=external_wrenches)[0]


def table_7(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike,
            prescribed: npt.ArrayLike, variation: Variation, *,
            external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return da and dtau, like `rbd_ros.analysis.hybrid_dynamics_derivative` [K (64), T7]."""
    a, tau = Workspace(model).hybrid_dynamics(q, v, a, tau, prescribed,
                                              external_wrenches=external_wrenches)
    given = np.array(prescribed, bool)
    dq, dv, da, dtau = check_directions(model, variation, 'dq', 'dv', 'da', 'dtau')
    da[~given], dtau[given] = 0.0, 0.0
    if not model.coordinates.is_identity:
        return _dense(model, q, v, a, given, da, dtau, variation, external_wrenches)
    q, v = np.asarray(q, float), np.asarray(v, float)
    bodies = vary_bodies(model, q, v, dq, dv, external_wrenches, variation)

    # Root to leaves: twists.                                                             [K, T7]
    V, dV, eta, deta = [np.zeros(6)], [np.zeros(6)], [np.zeros(6)], [np.zeros(6)]
    # Articulated inertias and bias wrenches; index 0, the root, is not used.
    I_A, dI_A = [np.zeros((6, 6))], [np.zeros((6, 6))]
    B_A, dB_A = [np.zeros(6)], [np.zeros(6)]
    for body in bodies:
        for values, x in zip((V, dV, eta, deta), _twists(body, V, dV, v, dv)):
            values.append(x)
        for values, x in zip((B_A, dB_A), _bias(body, V[-1], dV[-1])):
            values.append(x)
        I_A.append(body.G)
        dI_A.append(body.dG)

    # Leaves to root: the effect of each articulated body on its parent.                  [K, T7]
    Psi, dPsi = [None] * len(V), [None] * len(V)
    for i, body in reversed(list(enumerate(bodies, 1))):
        k, S, dS, e, de = _split(body, given, a, da, eta[i], deta[i])
        Psi[i] = np.linalg.inv(S.T @ I_A[i] @ S + np.diag(body.armature[~given[body.columns]]))
        u = tau[k] - S.T @ (I_A[i] @ e + B_A[i])
        Pi = I_A[i] - I_A[i] @ S @ Psi[i] @ S.T @ I_A[i]
        beta = B_A[i] + I_A[i] @ (e + S @ Psi[i] @ u)

        Z = dS.T @ I_A[i] @ S
        dPsi[i] = -Psi[i] @ (S.T @ dI_A[i] @ S + Z + Z.T) @ Psi[i]
        dPi = dI_A[i] - (I_A[i] @ S @ dPsi[i] @ S.T @ I_A[i]
                         + _sym(dI_A[i] @ S @ Psi[i] @ S.T @ I_A[i])
                         + _sym(I_A[i] @ dS @ Psi[i] @ S.T @ I_A[i]))
        du = dtau[k] - dS.T @ (I_A[i] @ e + B_A[i]) - S.T @ (dI_A[i] @ e + I_A[i] @ de + dB_A[i])
        dbeta = (dB_A[i] + dI_A[i] @ (e + S @ Psi[i] @ u)
                 + I_A[i] @ (de + (dS @ Psi[i] + S @ dPsi[i]) @ u + S @ Psi[i] @ du))

        p, A, ad_dh = body.parent, body.A, ad(body.dh)
        I_A[p] = I_A[p] + A.T @ Pi @ A
        dI_A[p] = dI_A[p] + A.T @ (dPi - _sym(Pi @ ad_dh)) @ A
        B_A[p] = B_A[p] + A.T @ beta
        dB_A[p] = dB_A[p] + A.T @ (dbeta - ad_dh.T @ beta)

    # Root to leaves: accelerations, and torques where they are unknown.                  [K, T7]
    Vdot, dVdot = [np.concatenate((np.zeros(3), -model.gravity))], [np.zeros(6)]
    for i, body in enumerate(bodies, 1):
        k, S, dS, e, de = _split(body, given, a, da, eta[i], deta[i])
        w = body.A @ Vdot[body.parent]
        dw = body.A @ dVdot[body.parent] - ad(body.dh) @ w
        da[k] = (dPsi[i] @ (tau[k] - S.T @ (I_A[i] @ (w + e) + B_A[i]))
                 + Psi[i] @ (dtau[k] - (dS.T @ I_A[i] + S.T @ dI_A[i]) @ (w + e)
                             - S.T @ I_A[i] @ (dw + de) - dS.T @ B_A[i] - S.T @ dB_A[i]))
        c = body.columns
        Vdot.append(w + eta[i] + body.S @ a[c])
        dVdot.append(dw + deta[i] + body.dS @ a[c] + body.S @ da[c])
        F = I_A[i] @ Vdot[i] + B_A[i]
        dF = dI_A[i] @ Vdot[i] + I_A[i] @ dVdot[i] + dB_A[i]
        felt = body.dS.T @ F + body.S.T @ dF + body.armature * da[c]
        dtau[c] = np.where(given[c], felt, dtau[c])
    return da, dtau


def _dense(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, a: np.ndarray, given: np.ndarray,
           da: np.ndarray, dtau: np.ndarray, variation: Variation,
           external_wrenches: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate M a + b = tau itself [K (33)]: mimic joints form loops."""
    change = table_5(model, q, v, a, replace(variation, da=da),
                     external_wrenches=external_wrenches)
    M, p = mass_matrix(model, q), ~given
    da[p] = np.linalg.solve(M[np.ix_(p, p)], (dtau - change)[p])
    return da, np.where(given, change + M[:, p] @ da[p], dtau)


def _twists(body: VariedBody, V: Sequence[np.ndarray], dV: Sequence[np.ndarray], v: np.ndarray,
            dv: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return V, dV, eta = ad_V S v + Sdot v and d eta of a link, from V and dV of its parent."""
    v, dv = v[body.columns], dv[body.columns]
    carried = body.A @ V[body.parent]
    Sv, dSv = body.S @ v, body.dS @ v + body.S @ dv
    V_i = carried + Sv
    dV_i = body.A @ dV[body.parent] - ad(body.dh) @ carried + dSv
    eta = ad(V_i) @ Sv + body.S_rate @ v
    deta = ad(dV_i) @ Sv + ad(V_i) @ dSv + body.dS_rate @ v + body.S_rate @ dv
    return V_i, dV_i, eta, deta


def _bias(body: VariedBody, V: np.ndarray, dV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return B = -ad_V^T G V - f of a link alone, and dB."""
    h, dh = body.G @ V, body.dG @ V + body.G @ dV
    return -ad(V).T @ h - body.f, -ad(dV).T @ h - ad(V).T @ dh - body.df


def _split(body: VariedBody, given: np.ndarray, a: np.ndarray, da: np.ndarray, eta: np.ndarray,
           deta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the columns with known torque, their S and dS, and e = eta + S_a a_a with de."""
    c = body.columns
    known = given[c]
    columns = np.arange(c.start, c.stop)
    S_a, dS_a, a_a = body.S[:, known], body.dS[:, known], a[columns[known]]
    return (columns[~known], body.S[:, ~known], body.dS[:, ~known], eta + S_a @ a_a,
            deta + dS_a @ a_a + S_a @ da[columns[known]])


def _sym(X: np.ndarray) -> np.ndarray:
    return X + X.T
