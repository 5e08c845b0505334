# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run a node without its executable: ``python -m rbd_ros.ros.nodes dynamics_node``."""

import sys

from rbd_ros.ros.runtime import entry_points

if __name__ == '__main__':
    getattr(entry_points, sys.argv.pop(1))()
