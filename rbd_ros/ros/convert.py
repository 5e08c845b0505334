# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
ROS messages to arrays of the library: the one place where linear-first becomes angular-first.

Twists of the library are (omega, v) and wrenches (moment, force); those of ROS name their parts.

"""

from collections.abc import Sequence

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, Point, Pose, Twist, Vector3, Wrench, WrenchStamped

import numpy as np
from rbd_ros._internal.cdr import Stamp
from rbd_ros.model.configurations import quaternion_of_matrix


def vector(message: Vector3 | Point) -> np.ndarray:
    """Return the three numbers of a Vector3 or Point."""
    return np.array([message.x, message.y, message.z])


def twist(message: Twist) -> np.ndarray:
    """Return a geometry_msgs/Twist as (omega, v)."""
    return np.concatenate((vector(message.angular), vector(message.linear)))


def wrench(message: Wrench) -> np.ndarray:
    """Return a geometry_msgs/Wrench as (moment, force)."""
    return np.concatenate((vector(message.torque), vector(message.force)))


def pose(message: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Return a geometry_msgs/Pose as its quaternion (x, y, z, w) and its position."""
    turn = message.orientation
    return np.array([turn.x, turn.y, turn.z, turn.w]), vector(message.position)


def inertia(message: Inertia) -> tuple[float, np.ndarray, np.ndarray]:
    """Return a geometry_msgs/Inertia as mass, centre of mass and matrix about that centre."""
    return message.m, vector(message.com), np.array([
        [message.ixx, message.ixy, message.ixz],
        [message.ixy, message.iyy, message.iyz],
        [message.ixz, message.iyz, message.izz]])


def inertia_message(mass: float, com: np.ndarray, matrix: np.ndarray) -> Inertia:
    """Return a mass, centre of mass and inertia about that centre as a geometry_msgs/Inertia."""
    entries = {'ixx': matrix[0, 0], 'ixy': matrix[0, 1], 'ixz': matrix[0, 2],
               'iyy': matrix[1, 1], 'iyz': matrix[1, 2], 'izz': matrix[2, 2]}
    return Inertia(m=float(mass), com=Vector3(x=float(com[0]), y=float(com[1]), z=float(com[2])),
                   **{name: float(x) for name, x in entries.items()})


def wrenches(messages: Sequence[WrenchStamped], prefix: str = '') -> dict[str, np.ndarray]:
    """
    Return external wrenches by link.

    Parameters
    ----------
    messages : sequence of geometry_msgs.msg.WrenchStamped
        ``frame_id`` is the link that the wrench acts on, at its origin and in its axes.
    prefix : str
        Prefix of the names of links in frame names.

    Returns
    -------
    dict of str to ndarray
        Moment and force; those on one link are added.

    """
    result: dict[str, np.ndarray] = {}
    for message in messages:
        link = message.header.frame_id.removeprefix(prefix)
        result[link] = result.get(link, 0.0) + wrench(message.wrench)
    return result


def parts_of_motion(name: str, motion: np.ndarray) -> dict[str, np.ndarray]:
    """Return a twist or acceleration as the parts of a geometry_msgs/Twist or Accel, by key."""
    return {f'{name}.angular': motion[:3], f'{name}.linear': motion[3:]}


def parts_of_wrench(name: str, wrench: np.ndarray) -> dict[str, np.ndarray]:
    """Return a wrench as the parts of a geometry_msgs/Wrench, by key."""
    return {f'{name}.torque': wrench[:3], f'{name}.force': wrench[3:]}


def parts_of_pose(name: str, T: np.ndarray) -> dict[str, np.ndarray]:
    """Return a pose as the parts of a geometry_msgs/Pose, by key."""
    return {f'{name}.position': T[:3, 3], f'{name}.orientation': quaternion_of_matrix(T[:3, :3])}


def seconds(stamp: Time | Stamp) -> float:
    """Return a stamp in seconds."""
    return stamp.sec + 1e-9 * stamp.nanosec


def time(stamp: Time | Stamp) -> Time:
    """Return a stamp as a builtin_interfaces/Time."""
    return Time(sec=stamp.sec, nanosec=stamp.nanosec)
