# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers that no user imports: text, atomic file writes, lazy exports."""
