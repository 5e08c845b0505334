# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compares a model with the MuJoCo model that it was read from."""

import mujoco
import numpy as np
import rbd_ros
from rbd_ros.model.joints import quaternion_matrix


def random_state(model, seed):
    """Return q and v of order 1."""
    rng = np.random.default_rng(seed)
    q = rbd_ros.integrate(model, rbd_ros.neutral(model), rng.normal(size=model.nv), 1.0)
    return q, rng.normal(size=model.nv)


def in_mujoco(compiled, model, q, v):
    """
    Return qpos, and T and the rate of T, with qvel = T v, of a state.

    The linear velocity of a free joint is in the world's axes in MuJoCo. Joints that the model
    fixes are at their position in it.

    """
    qpos, (T, rate) = compiled.qpos0.copy(), np.zeros((2, compiled.nv, model.nv))
    q_tree, G = model.coordinates.position(q), model.coordinates.G
    at_q = at_v = 0
    for joint in model.joints:
        if joint.name.endswith('/frame') or not joint.nv:
            continue
        j = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
        j = int(joint.name.rpartition('_')[2]) if j < 0 else j
        to, dof = compiled.jnt_qposadr[j], compiled.jnt_dofadr[j]
        x, rows = q_tree[at_q:at_q + joint.nq], G[at_v:at_v + joint.nv]
        at_q, at_v = at_q + joint.nq, at_v + joint.nv
        if joint.kind == 'free':
            R, w = quaternion_matrix(x[:4]), (rows @ v)[:3]
            qpos[to:to + 7] = [*x[4:], x[3], *x[:3]]
            T[dof:dof + 3], T[dof + 3:dof + 6] = R @ rows[3:], rows[:3]
            rate[dof:dof + 3] = R @ np.cross(w, rows[3:].T).T
        elif joint.kind == 'spherical':
            qpos[to:to + 4] = [x[3], *x[:3]]
            T[dof:dof + 3] = rows
        else:
            qpos[to], T[dof] = x[0], rows[0]
    return qpos, T, rate


def differences(compiled, model, seed=0, fixed=()):
    """
    Return the relative differences of M, bias and passive torques from MuJoCo's.

    ``fixed`` has qpos of joints that the model fixes, by name.

    """
    q, v = random_state(model, seed)
    qpos, T, rate = in_mujoco(compiled, model, q, v)
    for name, x in dict(fixed).items():
        qpos[compiled.joint(name).qposadr[0]] = x
    data = mujoco.MjData(compiled)
    data.qpos[:], data.qvel[:] = qpos, T @ v
    mujoco.mj_forward(compiled, data)
    M = np.zeros((compiled.nv, compiled.nv))
    mujoco.mj_fullM(compiled, data, M)
    expected = (T.T @ M @ T, T.T @ (data.qfrc_bias + M @ rate @ v),
                T.T @ (data.qfrc_spring + data.qfrc_damper))
    found = (rbd_ros.mass_matrix(model, q), rbd_ros.bias_torques(model, q, v),
             -rbd_ros.spring_torques(model, q) - model.damping * v)
    # Without forces, those that M allows are the scale.
    return [float(np.max(np.abs(a - b), initial=0.0)
                  / np.max(np.abs(np.append(b, expected[0])), initial=1e-9))
            for a, b in zip(found, expected)]
