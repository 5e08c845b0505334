# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run the demo, or explain that ROS is missing."""

import sys

from rbd_ros.ros.runtime import entry_points

if __name__ == '__main__':
    try:
        from rbd_ros.ros.demo.command import main
    except ImportError as error:
        if (error.name or '').startswith('rbd_ros'):
            raise
        raise entry_points.missing('demo', error) from None
    sys.exit(main())
