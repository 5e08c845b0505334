# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on configurations, which are not vectors if joints have quaternions."""

from math import sqrt

import numpy as np
import numpy.typing as npt

from rbd_ros.errors import StateError
from rbd_ros.model.joints import Joint, KINDS, quaternion_matrix
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import exp, log, pose
from rbd_ros.validation import check_model, finite_vector, number, shown


def _quaternion_joints(model: Model) -> list[tuple[Joint, slice, slice]]:
    """Return the ball and free joints with their entries of q and v."""
    return [(joint, q, v) for joint, q, v in model.moving_joints
            if not KINDS[joint.kind].is_screws]


def neutral(model: Model) -> np.ndarray:
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
    check_model(model)
    q = np.zeros(model.nq)
    for _, i, _ in _quaternion_joints(model):
        q[i.start + 3] = 1.0
    return q


def tree_coordinates(model: Model, q: npt.ArrayLike,
                     *velocities: npt.ArrayLike) -> tuple[np.ndarray, ...]:
    """
    Return q and velocities of all joints, mimicking ones included.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration.
    *velocities : array_like, shape (model.nv,)
        Velocities, accelerations and the like.

    Returns
    -------
    tuple of ndarray
        The arguments themselves if no joint mimics another.

    """
    q, velocities = np.asarray(q, float), [np.asarray(x, float) for x in velocities]
    fold = model.folding
    if fold is None:
        return (q, *velocities)
    return (fold.multiplier * q[fold.source] + fold.offset, *(fold.G @ x for x in velocities))


def normalize(model: Model, q: npt.ArrayLike, label: str = 'q') -> np.ndarray:
    """
    Return a configuration with unit quaternions.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m; quaternions of any length but zero.
    label : str
        Its name in errors.

    Returns
    -------
    ndarray, shape (model.nq,)
        The same configuration.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry, or a quaternion is zero.

    """
    q = finite_vector(model, label, q, positions=True)
    for joint, i, _ in _quaternion_joints(model):
        quaternion = q[i.start:i.start + 4]
        length = np.linalg.norm(quaternion)
        if not 0.0 < length < np.inf:
            raise StateError(f"the quaternion of joint '{joint.name}' is {quaternion}; it must be "
                             'finite and not zero')
        quaternion /= length
    return q


def random_configuration(model: Model, rng: np.random.Generator | int) -> np.ndarray:
    """
    Return a random configuration within the limits of the joints.

    Parameters
    ----------
    model : Model
        The robot.
    rng : numpy.random.Generator or int
        A generator of random numbers, or a seed.

    Returns
    -------
    ndarray, shape (model.nq,)
        Uniform between limits; without a limit, within pi rad or 1 m of zero, or of the other
        limit; rotations of ball and free joints are uniform.

    """
    check_model(model)
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise StateError(f'rng must be a generator of random numbers or a seed, got {shown(rng)}'
                         ) from None
    q = np.zeros(model.nq)
    for joint, i, k in model.moving_joints:
        reach = np.where(KINDS[joint.kind].angular, np.pi, 1.0)
        if not KINDS[joint.kind].is_screws:
            quaternion = rng.normal(size=4)
            q[i.start:i.start + 4] = quaternion / np.linalg.norm(quaternion)
            q[i.start + 4:i.stop] = rng.uniform(-1.0, 1.0, joint.nq - 4)
        else:
            lower, upper = model.lower[k], model.upper[k]
            # A single limit may be beyond the reach.
            low = np.where(np.isfinite(lower), lower, np.minimum(-reach, upper - reach))
            high = np.where(np.isfinite(upper), upper, np.maximum(reach, lower + reach))
            q[i] = rng.uniform(low, high)
    return q


def integrate(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, dt: float) -> np.ndarray:
    """
    Return the configuration after moving with the velocity v for the time dt.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s; for ball and free joints in the axes of the moving body, which
        turn with it.
    dt : float
        s.

    Returns
    -------
    ndarray, shape (model.nq,)
        With unit quaternions.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape, or ``q``, ``v`` or ``dt`` is not finite, or a
        quaternion is zero.

    """
    v, dt = finite_vector(model, 'v', v), number('dt', dt)
    q = normalize(model, q)
    if model.nq == model.nv:
        return q + dt * v
    result = q.copy()
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            result[i] = q[i] + dt * v[k]
            continue
        step = np.zeros(6)
        step[:joint.nv] = dt * v[k]
        quaternion = q[i.start:i.start + 4]
        result[i.start:i.start + 4] = multiply(quaternion, quaternion_of_turn(step[:3]))
        if joint.kind == 'free':
            result[i.start + 4:i.stop] += quaternion_matrix(quaternion) @ exp(step)[:3, 3]
    return normalize(model, result)


def difference(model: Model, q_0: npt.ArrayLike, q_1: npt.ArrayLike) -> np.ndarray:
    """
    Return the velocity that leads from one configuration to another in unit time.

    The inverse of `integrate`: ``integrate(model, q_0, difference(model, q_0, q_1), 1.0)`` is q_1.

    Parameters
    ----------
    model : Model
        The robot.
    q_0, q_1 : array_like, shape (model.nq,)
        Configurations, rad and m.

    Returns
    -------
    ndarray, shape (model.nv,)
        rad/s and m/s; rotations of ball and free joints by at most pi.

    Raises
    ------
    StateError
        If ``q_0`` or ``q_1`` has the wrong shape or is not finite, or a quaternion is zero.

    """
    q_0, q_1 = normalize(model, q_0, 'q_0'), normalize(model, q_1, 'q_1')
    v = np.zeros(model.nv)
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            v[k] = q_1[i] - q_0[i]
            continue
        R_0 = quaternion_matrix(q_0[i][:4])
        shift = R_0.T @ (q_1[i][4:] - q_0[i][4:]) if joint.kind == 'free' else np.zeros(3)
        turn = multiply(q_0[i][:4] * [-1.0, -1.0, -1.0, 1.0], q_1[i][:4])
        v[k] = log(pose(quaternion_matrix(turn), shift))[:joint.nv]
    return v


def quaternion_of_turn(rotation: np.ndarray) -> np.ndarray:
    """Return the quaternion (x, y, z, w) of a rotation vector, rad."""
    angle = np.linalg.norm(rotation)
    # sin(x / 2) / x, by np.sinc(t) = sin(pi t) / (pi t)
    return np.append(0.5 * np.sinc(0.5 * angle / np.pi) * rotation, np.cos(0.5 * angle))


def quaternion_of_matrix(R: np.ndarray) -> np.ndarray:
    """
    Return the quaternion (x, y, z, w) of a rotation matrix, w >= 0.

    The largest of the four is a root, the others are quotients by it [Shepperd (1978)].

    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    squares = 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz, 1.0 + xx + yy + zz
    row = squares.index(max(squares))
    products = ((squares[0], xy + yx, xz + zx, zy - yz), (xy + yx, squares[1], yz + zy, xz - zx),
                (xz + zx, yz + zy, squares[2], yx - xy), (zy - yz, xz - zx, yx - xy, squares[3]))
    quaternion = np.array(products[row]) * (0.5 / sqrt(squares[row]))
    return -quaternion if quaternion[3] < 0.0 else quaternion


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the product of two quaternions (x, y, z, w)."""
    return np.append(p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3]),
                     p[3] * q[3] - p[:3] @ q[:3])
