# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the recursions by state, time and parameters."""
