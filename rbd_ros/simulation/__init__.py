# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions computed from torques: our integrators, or MuJoCo."""
