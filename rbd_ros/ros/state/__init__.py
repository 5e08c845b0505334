# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The state of the robot, merged from joint states and odometry without glitches."""
