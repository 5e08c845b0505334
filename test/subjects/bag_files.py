# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bags for the tests, written without ROS."""

import numpy as np
import pytest

rosbag2 = pytest.importorskip('rosbags.rosbag2')
typesys = pytest.importorskip('rosbags.typesys')

TYPES = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
KIND = 'sensor_msgs/msg/JointState'
PLUGINS = {'.db3': rosbag2.StoragePlugin.SQLITE3, '.mcap': rosbag2.StoragePlugin.MCAP}


def joint_state(stamp, names, position, velocity=(), effort=(), frame=''):
    """Return a serialized joint state; stamp in ns."""
    header = TYPES.types['std_msgs/msg/Header'](
        TYPES.types['builtin_interfaces/msg/Time'](stamp // 10 ** 9, stamp % 10 ** 9), frame)
    arrays = [np.array(x, float) for x in (position, velocity, effort)]
    return bytes(TYPES.serialize_cdr(TYPES.types[KIND](header, list(names), *arrays), KIND))


def write_bag(path, messages, suffix='.db3', other=()):
    """
    Write a bag to a folder.

    Messages are topic, time of receipt, ns, and serialized joint state; ``other`` are topics of
    strings without messages.

    """
    with rosbag2.Writer(path, version=9, storage_plugin=PLUGINS[suffix]) as writer:
        for topic in other:
            writer.add_connection(topic, 'std_msgs/msg/String', typestore=TYPES)
        connections = {}
        for topic, received, raw in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, KIND, typestore=TYPES)
            writer.write(connections[topic], received, raw)
    return path


def storage(path):
    """Return the file with the messages of a bag."""
    return next(file for file in path.iterdir() if file.suffix in PLUGINS)
