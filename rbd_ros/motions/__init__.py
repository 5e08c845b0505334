# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions in time: references, trajectories, the fastest within limits, and exciting ones."""
