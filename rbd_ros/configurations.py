# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on configurations, which for joints with quaternions are no vectors."""

import numpy as np

from rbd_ros.joints import KINDS, quaternion_matrix
from rbd_ros.spatial import exp


def neutral(model):
    """
    Return the configuration in which every joint is at rest: zeros, and unit quaternions.

    Parameters
    ----------
    model : Model
        The robot.

    Returns
    -------
    ndarray, shape (model.nq,)
        rad, m.

    """
    return np.array([1.0 if name.endswith('_qw') and not KINDS[joint.kind].is_screws else 0.0
                     for joint, q, _ in model.moving_joints
                     for name in model.position_names[q]])


def integrate(model, q, v, dt):
    """
    Return the configuration after moving with the velocity v for the time dt.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s; for ball and free joints in the axes of the moving body.
    dt : float
        s.

    Returns
    -------
    ndarray, shape (model.nq,)
        With unit quaternions.

    """
    q, v = np.array(q, float), np.asarray(v, float)
    if model.nq == model.nv:
        return q + dt * v
    result = q.copy()
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            result[i] = q[i] + dt * v[k]
            continue
        twist = np.zeros(6)
        twist[:joint.nv] = dt * v[k]
        turn = _quaternion_of_turn(twist[:3])
        result[i][:4] = _multiply(q[i][:4] / np.linalg.norm(q[i][:4]), turn)
        if joint.kind == 'free':
            result[i][4:] = q[i][4:] + quaternion_matrix(q[i][:4]) @ exp(twist)[:3, 3]
    return result


def _quaternion_of_turn(rotation):
    """Return the quaternion (x, y, z, w) of a rotation vector, rad."""
    angle = np.linalg.norm(rotation)
    # sin(x / 2) / x, by np.sinc(t) = sin(pi t) / (pi t)
    return np.append(0.5 * np.sinc(0.5 * angle / np.pi) * rotation, np.cos(0.5 * angle))


def _multiply(p, q):
    """Return the product of two quaternions (x, y, z, w)."""
    return np.append(p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3]),
                     p[3] * q[3] - p[:3] @ q[:3])
