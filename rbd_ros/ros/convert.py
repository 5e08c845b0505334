# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Conversion between ROS messages and the library's arrays, and between their orders.

Twists of the library are (omega, v), wrenches are (moment, force); ROS messages name their parts.
This is the only place where linear-first becomes angular-first.

"""

from collections.abc import Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Inertia, Point, Pose, Twist, Vector3, Wrench, WrenchStamped
import numpy as np
from rbd_ros._internal.cdr import Field, JointStateReader, Stamp, Template
from rbd_ros.model.se3 import quaternion_of_matrix
from rclpy import serialization
from sensor_msgs.msg import JointState


def joint_state_reader() -> JointStateReader:
    """Return a reader of serialized sensor_msgs/JointState messages."""
    return JointStateReader(lambda raw: serialization.deserialize_message(raw, JointState))


def template(message: Any, headers: list[Any], fields: Mapping[Any, Field]) -> Template:
    """Return a serialized message whose stamps and numbers can be replaced."""
    return Template(message, headers, fields, serialization.serialize_message,
                    serialization.deserialize_message)


def vector(message: Vector3 | Point) -> np.ndarray:
    """Return a Vector3 or Point as an array."""
    return np.array([message.x, message.y, message.z])


def twist(message: Twist) -> np.ndarray:
    """Return a geometry_msgs/Twist as (omega, v)."""
    return np.concatenate((vector(message.angular), vector(message.linear)))


def wrench(message: Wrench) -> np.ndarray:
    """Return a geometry_msgs/Wrench as (moment, force)."""
    return np.concatenate((vector(message.torque), vector(message.force)))


def pose(message: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Return the quaternion (x, y, z, w) and the position of a geometry_msgs/Pose."""
    turn = message.orientation
    return np.array([turn.x, turn.y, turn.z, turn.w]), vector(message.position)


def inertia(message: Inertia) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass and inertia about that centre of a geometry_msgs/Inertia."""
    return message.m, vector(message.com), np.array([[message.ixx, message.ixy, message.ixz],
                                                     [message.ixy, message.iyy, message.iyz],
                                                     [message.ixz, message.iyz, message.izz]])


def inertia_message(mass: float, com: np.ndarray, matrix: np.ndarray) -> Inertia:
    """Return a geometry_msgs/Inertia; the inertia is about the centre of mass."""
    entries = {'ixx': matrix[0, 0], 'ixy': matrix[0, 1], 'ixz': matrix[0, 2],
               'iyy': matrix[1, 1], 'iyz': matrix[1, 2], 'izz': matrix[2, 2]}
    return Inertia(m=float(mass), com=Vector3(x=float(com[0]), y=float(com[1]), z=float(com[2])),
                   **{name: float(x) for name, x in entries.items()})


def wrenches(messages: Sequence[WrenchStamped], prefix: str = '') -> dict[str, np.ndarray]:
    """
    Return external wrenches by link, as (moment, force); those on one link are added.

    ``frame_id`` names the link that a wrench acts on, at its origin and in its axes; `prefix` is
    removed from it.

    """
    result: dict[str, np.ndarray] = {}
    for message in messages:
        link = message.header.frame_id.removeprefix(prefix)
        result[link] = result.get(link, 0.0) + wrench(message.wrench)
    return result


def linear_first(vector: np.ndarray) -> np.ndarray:
    """Return the numbers of a geometry_msgs/Twist, Accel or Wrench in their order there."""
    return np.concatenate((vector[3:], vector[:3]))


def pose_numbers(T: np.ndarray) -> np.ndarray:
    """Return the numbers of a geometry_msgs/Pose in their order there."""
    return np.concatenate((T[:3, 3], quaternion_of_matrix(T[:3, :3])))


def seconds(stamp: Time | Stamp) -> float:
    """Return a stamp in seconds."""
    return stamp.sec + 1e-9 * stamp.nanosec


def time(stamp: Time | Stamp) -> Time:
    """Return a stamp as a builtin_interfaces/Time."""
    return Time(sec=stamp.sec, nanosec=stamp.nanosec)


def duration(seconds: float) -> Duration:
    """Return a duration as a message, rounded to nanoseconds."""
    sec, nanosec = divmod(round(1e9 * seconds), 10 ** 9)
    return Duration(sec=sec, nanosec=nanosec)
