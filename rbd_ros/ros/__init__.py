# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 nodes: messages to arrays, the library, arrays to messages."""
