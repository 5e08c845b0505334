# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.control.friction import friction_compensation as friction_compensation
from rbd_ros.control.momentum_observer import MomentumObserver as MomentumObserver
