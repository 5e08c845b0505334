# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of robot descriptions and drive parameters."""
