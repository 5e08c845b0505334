# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Closed loops, v_tree = G(q) v + gamma: their equations, dynamics and derivatives."""
