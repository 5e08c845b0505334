# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled code, and nothing else: recursions over the table of bodies."""
