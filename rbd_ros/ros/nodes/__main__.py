# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run a node without its executable: ``python -m rbd_ros.ros.nodes dynamics_node``."""

from functools import partial
import sys

from rbd_ros.ros.runtime import entry_points

if __name__ == '__main__':
    nodes = {name: x for name, x in vars(entry_points).items() if isinstance(x, partial)}
    if len(sys.argv) < 2 or sys.argv[1] not in nodes:
        sys.exit('Which node?  python -m rbd_ros.ros.nodes ' + '|'.join(nodes))
    nodes[sys.argv.pop(1)]()
