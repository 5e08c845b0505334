# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Location of the installed files of the package."""

import os
from pathlib import Path
import sys

from ament_index_python.packages import get_package_share_directory


def share(*parts: str) -> Path:
    """Return the path of a file in the package's share directory."""
    # ROS wheels from PyPI are in the Python environment, and no setup script names it.
    os.environ.setdefault('AMENT_PREFIX_PATH', sys.prefix)
    return Path(get_package_share_directory('rbd_ros'), *parts)
