# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Control laws and observers, as plain functions and small classes that need no ROS."""

from rbd_ros.lazy_names import export

__getattr__, __dir__, __all__ = export(__name__, {
    'friction': ['friction_compensation'],
    'momentum_observer': ['MomentumObserver'],
})
