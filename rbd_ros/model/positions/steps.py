# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Steps from one configuration of a tree to another, for arrays of configurations; quaternions.

A step is a velocity times a time. For ball and free joints it is in the axes of the moving body,
which turn with it.

"""

import numpy as np
from rbd_ros.model.joints import Joint, KINDS
from rbd_ros.model.model import Model

CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])  # Signs that invert a unit quaternion.
SMALL_ANGLE = 1e-2  # Below this angle, rad, series are more accurate than quotients.
TINY = np.finfo(float).tiny
FULL_TURN = 2.0 * np.pi  # rad
HALF = 0.5 + 1e-9   # Steps of half a turn keep their direction, up to rounding.


def quaternion_joints(model: Model) -> list[tuple[Joint, slice, slice]]:
    """Return the ball and free joints with their slices of q and v."""
    if model.nq == model.nv:
        return []
    return [(joint, q, v) for joint, q, v in model.moving_joints
            if not KINDS[joint.kind].is_screws]


def neutral_of_tree(model: Model) -> np.ndarray:
    """Return zeros and unit quaternions."""
    q = np.zeros(model.nq)
    for _, i, _ in quaternion_joints(model):
        q[i.start + 3] = 1.0
    return q


def random_of_tree(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Return a random configuration, see `rbd_ros.random_configuration`."""
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


def with_unit_quaternions(model: Model, Q: np.ndarray) -> np.ndarray:
    """Return configurations (..., nq) with unit quaternions; NaN where a quaternion is zero."""
    joints = quaternion_joints(model)
    if not joints:
        return Q
    Q = Q.copy()
    for _, i, _ in joints:
        quaternion = Q[..., i.start:i.start + 4]
        quaternion /= length(quaternion)
    return Q


def moved(model: Model, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return configurations (..., nq) after steps (..., nv), velocity times time."""
    # Quaternions must have unit length, and keep it up to rounding. The position of a free joint
    # moves by the second column of exp [Lynch and Park (3.88)].
    if model.nq == model.nv:
        return q + step
    result = np.empty_like(q)
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            result[..., i] = q[..., i] + step[..., k]
            continue
        quaternion, turn = q[..., i.start:i.start + 4], step[..., k.start:k.start + 3]
        result[..., i.start:i.start + 4] = multiply(quaternion, quaternion_of_turn(turn))
        if joint.kind == 'free':
            slide, angle = step[..., k.start + 3:k.stop], length(turn)
            # (1 - cos x)/x^2 and (x - sin x)/x^3.
            b = 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2
            c = np.where(angle < SMALL_ANGLE, 1.0 / 6.0 - angle ** 2 / 120.0,
                         (angle - np.sin(angle)) / np.maximum(angle, SMALL_ANGLE) ** 3)
            across = cross(turn, slide)
            shift = slide + b * across + c * cross(turn, across)
            result[..., i.start + 4:i.stop] = q[..., i.start + 4:i.stop] + turned(quaternion,
                                                                                  shift)
    return result


def step_between(model: Model, q_0: np.ndarray, q_1: np.ndarray) -> np.ndarray:
    """Return steps (..., nv) for `moved`, rotations by at most pi [Lynch and Park (3.92)]."""
    if model.nq == model.nv:
        return q_1 - q_0
    step = np.empty((*q_0.shape[:-1], model.nv))
    for joint, i, k in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            step[..., k] = q_1[..., i] - q_0[..., i]
            continue
        back = q_0[..., i.start:i.start + 4] * CONJUGATE
        x = multiply(back, q_1[..., i.start:i.start + 4])
        axis, w = x[..., :3], x[..., 3:]
        sine = length(axis)
        angle = 2.0 * np.arctan2(sine, np.abs(w))
        # -x is the same rotation as x: take the shorter way.
        turn = np.copysign(1.0, w) * axis * np.where(
            sine > 0.0, angle / np.maximum(sine, TINY), 2.0)
        step[..., k.start:k.start + 3] = turn
        if joint.kind == 'free':
            shift = turned(back, q_1[..., i.start + 4:i.stop] - q_0[..., i.start + 4:i.stop])
            # (1 - x/2 cot(x/2))/x^2
            half = 0.5 * np.maximum(angle, SMALL_ANGLE)
            d = np.where(angle < SMALL_ANGLE, 1.0 / 12.0 + angle ** 2 / 720.0,
                         0.25 * (1.0 - half / np.tan(half)) / half ** 2)
            across = cross(turn, shift)
            step[..., k.start + 3:k.stop] = shift - 0.5 * across + d * cross(turn, across)
    return step


def turning(model: Model) -> np.ndarray:
    """Return which velocities (nv,) are of continuous joints, whose full turns change no pose."""
    tree = model.unconstrained
    kinds = [joint.kind for joint in tree.joints for _ in range(joint.nv)]
    own = [joint.kind == 'continuous' for joint, _, _ in tree.moving_joints
           for _ in range(joint.nv)]
    turns = np.array(own, bool)
    for kind, column, ratio in zip(kinds, tree.coordinates.column, tree.coordinates.ratio):
        # A mimic need not return after a full turn of its leader.
        turns[column] &= kind in ('revolute', 'continuous') and ratio % 1.0 == 0.0
    return turns if model.loops is None else turns[model.loops.own]


def without_turns(step: np.ndarray | float, turns: np.ndarray | bool) -> np.ndarray:
    """Return steps (..., n), rad or m, by at most half a turn where ``turns``, see `turning`."""
    step = np.asarray(step)
    if not np.any(turns):
        return step
    x = step / FULL_TURN
    return step - np.where(turns, FULL_TURN * np.sign(x) * np.ceil(np.abs(x) - HALF), 0.0)


def quaternion_of_turn(rotation: np.ndarray) -> np.ndarray:
    """Return the quaternions (x, y, z, w) of rotation vectors (..., 3), rad."""
    angle = length(rotation)
    # sin(x / 2) / x, by np.sinc(t) = sin(pi t) / (pi t)
    return np.concatenate((0.5 * np.sinc(0.5 * angle / np.pi) * rotation, np.cos(0.5 * angle)),
                          axis=-1)


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the products of quaternions (..., 4), x, y, z, w."""
    a, b, u, w = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    return np.concatenate((u * b + w * a + cross(a, b),
                           u * w - np.sum(a * b, axis=-1, keepdims=True)), axis=-1)


def turned(quaternion: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return vectors (..., 3) rotated by unit quaternions (..., 4)."""
    axis = quaternion[..., :3]
    across = cross(axis, x)
    return x + 2.0 * (quaternion[..., 3:] * across + cross(axis, across))


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a x b of vectors (..., 3); for few vectors four times as fast as np.cross."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    result = np.empty(a.shape)
    result[..., 0] = y * w - z * v
    result[..., 1] = z * u - x * w
    result[..., 2] = x * v - y * u
    return result


def length(x: np.ndarray) -> np.ndarray:
    """Return the lengths of vectors, shape (..., 1)."""
    return np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
